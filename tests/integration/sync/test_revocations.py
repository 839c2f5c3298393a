"""Revoked means gone, also in the middle of a sync: nothing of the connection is left, and nothing is written later."""

import asyncio
import os
import random

from gateway.connections import repository as connections
from gateway.corpus import erasure
from tests.conformance.brook import Brook
from tests.fixtures.corpus import rows_of
from tests.integration.sync.conftest import open_bank

FULL = os.environ.get("CATCHMENT_ACCEPTANCE") == "full"
REVOCATIONS = 100 if FULL else 6
# Everything that could hold a row of a connection, but for the connection's own.
TABLES = {
    "document": "connection_id = :id",
    "remote_item": "connection_id = :id",
    "data_source": "connection_id = :id",
    "job": "connection_id = :id AND finished_at IS NULL",
    "chunk": "document_id IN (SELECT id FROM document WHERE connection_id = :id)",
    "segment": "owner_id = :id",
}


async def left_of(bank) -> dict[str, int]:
    counts = {}
    for table, condition in TABLES.items():
        [row] = await rows_of(
            bank.db,
            bank.tenant,
            f"SELECT count(*) AS n FROM {table} WHERE {condition}",
            id=bank.connection_id,
        )
        counts[table] = row.n
    return {table: n for table, n in counts.items() if n}


async def revoke(bank) -> None:
    async with bank.db.tenant_session(bank.tenant.mandate_id) as session:
        receipt = await erasure.begin_erasure(session, "connection", str(bank.connection_id), "revoked:msft")
    await erasure.finish_erasure(bank.db, bank.bench.blobs, bank.tenant.mandate_id, receipt)


async def test_revocations_while_a_sync_is_writing(bank):
    chance = random.Random(1)
    in_time = 0
    for number in range(REVOCATIONS):
        world = Brook(page_size=2)
        for thing in range(8):
            kind = "note" if thing % 2 else "file"
            world.create(f"t{thing}", f"Text {thing} of connection {number}.", kind=kind)
        one = await open_bank(bank.bench, bank.places, world, bank.tenant)
        await one.ask()
        running = asyncio.create_task(one.drain())
        pages, reached = chance.randrange(1, 5), asyncio.Event()
        world.during_page = lambda w=world, p=pages, r=reached: r.set() if w.requests["pages"] >= p else None
        await asyncio.wait(
            [running, asyncio.ensure_future(reached.wait())], return_when=asyncio.FIRST_COMPLETED
        )
        reached.set()
        in_time += not running.done()
        await revoke(one)
        await running
        await one.drain()
        assert await left_of(one) == {}
    assert in_time >= REVOCATIONS // 2
    assert await bank.rows("SELECT 1 FROM chunk") == []
    print(
        f"\n{REVOCATIONS} revocations, {in_time} of them while the sync was writing: 0 rows left, 0 later writes"
    )


async def test_revoking_one_of_two_who_see_the_same_file_leaves_the_others(bank):
    bank.world.create("f", "Both see this file, and it is read once.")
    other = await open_bank(bank.bench, bank.places, bank.world, bank.tenant)
    await bank.sync()
    await other.sync()
    assert len(bank.bench.embedded()) == 1
    await revoke(bank)
    assert await bank.corpus() == {}
    assert await other.corpus() == {"f": "Both see this file, and it is read once."}
    assert len(await bank.rows("SELECT 1 FROM text_vector")) == 1
    async with bank.db.tenant_session(bank.tenant.mandate_id) as session:
        states = await connections.share_lock(session, [bank.connection_id, other.connection_id])
    assert [states[key].state for key in (bank.connection_id, other.connection_id)] == ["revoked", "active"]
