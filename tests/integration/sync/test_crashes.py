"""A worker may die anywhere between the vendor's answer and the last commit: nothing is lost, nothing is doubled."""

import pytest

from gateway.ingestion import ledger_repository as ledger
from tests.fixtures.corpus import rows_of
from tests.integration.sync.crashing import SYNC_POINTS, die_at
from workers.sync import fence, listing


@pytest.mark.parametrize("passes", [0, 1, 2])
@pytest.mark.parametrize("point", SYNC_POINTS)
async def test_a_killed_bootstrap_goes_on_where_it_was(bank, point, passes):
    for number in range(10):
        bank.world.create(f"f{number}", f"File number {number}.")
    bank.world.create("n", "A note.", kind="note")
    await bank.ask()
    died = await die_at(point, bank, passes)
    assert died or (point == "fetch.after_download" and passes)
    before = bank.world.requests["pages"]
    await bank.drain()
    assert await bank.corpus() == bank.world.truth()
    again = {"sync.before_page_commit": 1, "sync.inside_page": 1}.get(point, 0)
    pages = 4  # of three items each
    if point in {"sync.before_page_commit", "sync.inside_page", "sync.after_page_commit"}:
        # Only the page in flight is asked for again; the rest of the bootstrap and one delta follow.
        assert bank.world.requests["pages"] - before == pages - (passes + 1) + again + 1
    assert max(bank.world.downloads.values()) <= (2 if point == "fetch.after_download" else 1)
    assert len(bank.bench.embedded()) == 11


@pytest.mark.parametrize("point", SYNC_POINTS)
async def test_a_killed_delta_applies_its_changes_once(bank, point):
    for number in range(6):
        bank.world.create(f"f{number}", f"File number {number}.")
    await bank.sync()
    bank.world.edit("f1", "Edited.")
    bank.world.delete("f2")
    bank.world.create("new", "New.")
    bank.world.move("f3", "p2")
    await bank.ask()
    await die_at(point, bank)
    await bank.drain()
    assert await bank.corpus() == bank.world.truth()


async def late_page(bank, monkeypatch) -> list[str]:
    """A worker stops with a page in its hand past its lease; another one finishes; the first wakes up."""
    bank.world.page_size = 2
    for number in range(6):
        bank.world.create(f"f{number}", f"File number {number}.")
    await bank.ask()
    real = listing.Walk._commit
    stopped = False

    async def stop_once(self, page, cursor):
        nonlocal stopped
        if not stopped:
            stopped = True
            await rows_of(
                bank.db, bank.tenant, "UPDATE job SET lease_until = now() - interval '1 s' RETURNING 1"
            )
            other = bank.bench.second_worker()
            other.places = bank.places
            await bank.bench.drain(bank.tenant, other)
        await real(self, page, cursor)

    monkeypatch.setattr(listing.Walk, "_commit", stop_once)
    await bank.bench.runner.answer("backfill", bank.tenant.mandate_id)
    monkeypatch.setattr(listing.Walk, "_commit", real)
    await bank.drain()
    source = await bank.source()
    return [source.phase, str(source.listing_generation)]


async def test_a_late_page_does_not_move_the_cursor_back(bank, monkeypatch):
    assert await late_page(bank, monkeypatch) == ["delta", "1"]
    assert await bank.corpus() == bank.world.truth()
    assert max(bank.world.downloads.values()) == 1


async def test_without_the_fence_the_compare_and_set_still_holds(bank, monkeypatch):
    async def no_fence(session, claims):
        return {job_id for job_id, _ in claims}

    monkeypatch.setattr(fence.ledger, "hold", no_fence)
    assert ledger.hold is no_fence
    await late_page(bank, monkeypatch)
    assert await bank.corpus() == bank.world.truth()


async def revoked_meanwhile(bank, monkeypatch) -> int:
    """The connection is revoked between the vendor's answer and the page's commit."""
    from gateway.connections import repository as connections

    for number in range(4):
        bank.world.create(f"f{number}", f"File number {number}.", kind="note")
    real = listing.Walk._commit

    async def revoke_first(self, page, cursor):
        async with bank.db.tenant_session(bank.tenant.mandate_id) as session:
            await connections.revoke(session, bank.connection_id)
        await real(self, page, cursor)

    monkeypatch.setattr(listing.Walk, "_commit", revoke_first)
    await bank.sync()
    [row] = await bank.rows(
        "SELECT (SELECT count(*) FROM document) + (SELECT count(*) FROM remote_item) AS n"
    )
    return row.n


async def test_a_page_that_comes_after_the_revocation_writes_nothing(bank, monkeypatch):
    assert await revoked_meanwhile(bank, monkeypatch) == 0


async def test_without_the_check_of_the_connection_it_would_write(bank, monkeypatch):
    from dataclasses import replace

    real = fence.connections.share_lock

    async def blind(session, ids):
        return {
            key: replace(state, state="active", generation=1)
            for key, state in (await real(session, ids)).items()
        }

    monkeypatch.setattr(fence.connections, "share_lock", blind)
    assert await revoked_meanwhile(bank, monkeypatch) > 0
