"""Revoked means gone: nothing of a connection is left in any table, and nothing comes back, however hard somebody writes."""

import asyncio
from typing import Any

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import text

from gateway.connections import repository
from gateway.connections.webhook_service import keep_watches
from gateway.corpus import erasure
from gateway.db import new_id
from gateway.ingestion import facade
from gateway.ingestion.events import record_event
from tests.fixtures.corpus import ask
from tests.fixtures.processes import until
from tests.fixtures.tenants import TestMandate
from tests.integration.connections.test_lifecycle import consume, kept_here, lines, rows, tenant_of
from tests.integration.connections.test_webhooks import Watched, watch_of
from workers.maintenance import Maintenance

__all__ = ["kept_here", "lines"]
# Where a person is known whether or not they ever connected anything.
PERSONS = {"user", "membership", "session", "api_key", "feature_member"}


def canary(mandate: TestMandate) -> str:
    """A word nobody else in this database says."""
    return f"zanzibar{mandate.id.hex[-10:]}"


def everything(url: str, needles: list[str]) -> dict[str, list[str]]:
    """Every row of every table that mentions one of these, by table. As superuser: no policy hides a row from the look."""
    found: dict[str, list[str]] = {}
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
        ).fetchall()
        for (table,) in tables:
            hits = connection.execute(
                sql.SQL("SELECT to_jsonb(t)::text FROM {} t WHERE to_jsonb(t)::text ~* %s").format(
                    sql.Identifier(table)
                ),
                ["|".join(needles)],
            ).fetchall()
            if hits:
                found[table] = [row[0] for row in hits]
    return found


async def fill(client, db, mandate, made, bench, vault, vendor) -> dict[str, list[Any]]:
    """Something of the connection in every store that can hold something of one."""
    tenant, word = tenant_of(mandate), canary(mandate)
    await consume(db, mandate.id)
    sources = await rows(
        db, mandate.id, "SELECT id FROM data_source WHERE connection_id = :id ORDER BY id", id=made["uuid"]
    )
    await rows(db, mandate.id, "DELETE FROM job WHERE kind = 'sync' RETURNING 1")
    source = sources[0].id
    fields = {"sourceKind": "outlook_message", "connectionId": made["id"], "dataSourceId": str(source)}
    [parent] = await bench.hand_in(
        tenant, ask(tenant, "mail", f"The {word} letter about refunds.", title=word, **fields)
    )
    [child] = await bench.hand_in(
        tenant,
        ask(
            tenant,
            "attachment",
            f"Attached {word} table.",
            **(fields | {"sourceKind": "outlook_attachment", "parentDocumentId": str(parent.document_id)}),
        ),
    )
    await bench.drain(tenant)
    await bench.hand_in(tenant, ask(tenant, "late", f"A {word} still on its way.", **fields))
    search = {"q": f"{word} refunds", "connectionId": made["id"]}
    hits = (await client.get("/v1/search", params=search, headers=mandate.auth("member"))).json()["hits"]
    assert hits
    await client.post(
        "/v1/citations",
        json={"turnId": "turn-1", "chunkIds": [hits[0]["chunkId"]]},
        headers=mandate.auth("member"),
    )
    answered = await client.post(
        "/v1/answers", json={"question": f"What about {word}?"}, headers=mandate.auth("member")
    )
    assert answered.status_code == 200
    watched = Watched(mandate, made, source, vendor_id=f"sub-{word}-{source}")
    async with db.tenant_session(mandate.id) as session:
        await keep_watches(session, vault, "msft", source, [watch_of(watched)])
        for statement in (
            (
                "INSERT INTO remote_item (mandate_id, data_source_id, external_id, connection_id, source_kind, name, "
                "container_id, state, generation) VALUES (:mandate, :source, 'x', :connection, 'outlook_message', "
                f"'{word}', 'inbox', 'handed', 1)"
            ),
            (
                "INSERT INTO item_failure (mandate_id, id, data_source_id, external_id, reason, detail) "
                f"VALUES (:mandate, :id, :source, 'y', 'forbidden', '{word}')"
            ),
            "UPDATE data_source SET cursor = 'canary-cursor', phase = 'delta' WHERE id = :source",
        ):
            await session.execute(
                text(statement),
                {"mandate": mandate.id, "source": source, "connection": made["uuid"], "id": new_id()},
            )
    await client.post("/v1/webhooks/msft", content=watched.body("delivery-1"))
    await made["browser"].get(made["authorizeUrl"])  # a sign-in under way
    return {"documents": [parent.document_id, child.document_id], "sources": [row.id for row in sources]}


async def test_sql_over_every_table_finds_only_what_is_kept(
    client, db, database_urls, mandate, connect, kept_here, vault, vendor, app
):
    made = await connect(mandate)
    other = await connect(mandate, "owner", account="bob")
    known = await fill(client, db, mandate, made, kept_here, vault, vendor)
    await app.state.query_log.drained()
    word = canary(mandate)
    needles = [
        *(word, str(made["uuid"])),
        *(str(one) for values in known.values() for one in values),
        str(mandate.users["member"]),
    ]
    before = everything(database_urls.superuser_url, needles)
    stores = {
        *("connection", "data_source", "remote_item", "item_failure", "watch", "webhook_route", "job"),
        *("webhook_delivery", "oauth_state", "document", "chunk", "document_text", "timeline"),
        *("query_log", "citation", "answer"),
    }
    assert stores <= set(before), stores - set(before)

    def count(table: str) -> int:
        return len(before[table])

    await client.delete(f"/v1/connections/{made['id']}", headers=mandate.auth("member"))
    search = {"q": f"{word} refunds"}
    found = await client.get("/v1/search", params=search, headers=mandate.auth("member"))
    assert found.json()["hits"] == [], "withheld from the fence on, before anything is erased"
    await consume(db, mandate.id)
    async with db.tenant_session(mandate.id) as session:
        # announced meanwhile, and not yet looked at
        await record_event(session, "FileCommitted", {"connectionId": made["id"], "content": {"text": word}})
    # nobody here can run a sync; a purge ends it all the same
    later = "UPDATE job SET run_after = now() + interval '1 day' WHERE kind = 'sync' RETURNING 1"
    assert len(await rows(db, mandate.id, later)) == 1
    await kept_here.drain(tenant_of(mandate))
    await app.state.query_log.drained()

    after = everything(database_urls.superuser_url, needles)
    assert set(after) - PERSONS <= {"connection", "receipt", "outbox", "query_log"}, after
    [receipt] = await rows(db, mandate.id, "SELECT * FROM receipt")
    kept = list(await rows(db, mandate.id, "SELECT * FROM connection WHERE id = :id", id=made["uuid"]))
    assert [
        (row.state, row.user_id, row.surfaces, row.policy, row.account, row.sealed_tokens, row.reason)
        for row in kept
    ] == [("revoked", None, [], {}, {}, None, None)]
    assert all(getattr(kept[0], name) for name in ("created_at", "established_at", "revoked_at", "purged_at"))
    # bells carry no payload, and the search after the fence found nothing of it
    assert all(word not in row for row in after.get("outbox", []))
    assert receipt.status == "done"
    expected = {
        **{store: count(store) for store in ("remote_item", "item_failure", "watch", "webhook_route")},
        **{store: count(store) for store in ("webhook_delivery", "oauth_state")},
        "document_text": 3,
        "chunk": 3,
        "data_source": 2,
        "token": 1,
        "document": 4,  # mail, attachment, the one on its way, and the summary
    }
    assert {store: receipt.counts[store] for store in expected} == expected
    assert receipt.counts["job"] >= 4
    assert receipt.counts["event"] == 1
    assert (vendor.unwatched, len(vendor.taken_back)) == ([f"sub-{word}-{known['sources'][0]}"], 1)
    # the other account's are untouched
    assert (
        len(await rows(db, mandate.id, "SELECT FROM data_source WHERE connection_id = :id", id=other["uuid"]))
        == 2
    )


async def test_erasing_a_user_ends_their_connections_as_well(
    client, db, database_urls, mandate, connect, kept_here, vault, vendor
):
    made = await connect(mandate)
    known = await fill(client, db, mandate, made, kept_here, vault, vendor)
    vendor.answers["unwatch"] = RuntimeError("a vendor's library stumbles")
    answer = await client.post(
        "/v1/erasures", json={"userId": str(mandate.users["member"])}, headers=mandate.auth()
    )
    await rows(db, mandate.id, "DELETE FROM job WHERE kind = 'sync' RETURNING 1")
    await kept_here.drain(tenant_of(mandate))
    assert answer.status_code == 202
    needles = [canary(mandate), str(made["uuid"]), *(str(one) for values in known.values() for one in values)]
    assert set(everything(database_urls.superuser_url, needles)) <= PERSONS | {"receipt", "connection"}
    assert vendor.unwatched == []


# -- against somebody who writes


async def unlocked(session, ids):
    """`share_lock` without its lock."""
    found = {}
    for one in ids:
        row = await repository.find(session, one)
        if row is not None:
            found[one] = repository.ConnectionState(row.authority, row.user_id, row.state, row.generation)
    return found


@pytest.mark.parametrize("locked", [True, False], ids=["with the lock", "without it"])
async def test_a_writer_that_looked_before_the_fence(db, mandate, connect, kept_here, monkeypatch, locked):
    """It has seen an active connection and is about to write. With the lock the fence waits for it, and its row goes with
    the rest; without, its row would stay for ever."""
    made = await connect(mandate)
    tenant = tenant_of(mandate)
    reached, go = asyncio.Event(), asyncio.Event()
    real = repository.share_lock

    async def look_and_wait(session, ids):
        states = await (real if locked else unlocked)(session, ids)
        reached.set()
        await go.wait()
        return states

    async def end() -> None:
        async with db.tenant_session(mandate.id) as session:
            receipt = await erasure.begin_erasure(session, "connection", made["id"], "revoked:msft")
        await erasure.finish_erasure(db, kept_here.blobs, mandate.id, receipt)

    with monkeypatch.context() as patch:
        patch.setattr(facade.connections, "share_lock", look_and_wait)
        writer = asyncio.create_task(
            kept_here.hand_in(
                tenant, ask(tenant, "late", "Late.", sourceKind="outlook_message", connectionId=made["id"])
            )
        )
        await reached.wait()
        ending = asyncio.create_task(end())
        if locked:
            await until(lambda: waits_for_lock(db), 30, "the fence waits for the writer")
            assert not ending.done()
        else:
            await ending
        go.set()
        await asyncio.gather(writer, ending)
    left = await rows(db, mandate.id, "SELECT FROM document WHERE connection_id = :id", id=made["uuid"])
    assert len(left) == (0 if locked else 1)
    [late] = await kept_here.hand_in(
        tenant, ask(tenant, "later", "Later.", sourceKind="outlook_message", connectionId=made["id"])
    )
    assert (late.outcome, late.reason) == ("skipped", "revoked")


async def waits_for_lock(db) -> bool:
    async with db.routing_session() as session:
        return bool(
            await session.scalar(
                text("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND locktype <> 'advisory')")
            )
        )


async def test_revocations_while_writers_write(db, mandate, connect, kept_here):
    """Writers and a worker at full speed, twenty times (a hundred in the acceptance): nothing is left, nothing comes later."""
    tenant = tenant_of(mandate)
    left: list[int] = []
    for round_number in range(20):
        made = await connect(mandate)
        stopped = asyncio.Event()

        async def write(name: str, made=made, stopped=stopped, round_number=round_number) -> list[str]:
            outcomes: list[str] = []
            while not stopped.is_set():
                number = len(outcomes)
                wanted = [
                    ask(
                        tenant,
                        f"{name}-{number}-{part}",
                        f"{round_number} {name} {number} {part}",
                        sourceKind="outlook_message",
                        connectionId=made["id"],
                    )
                    for part in range(3)
                ]
                outcomes += [handle.outcome for handle in await kept_here.hand_in(tenant, *wanted)]
            return outcomes

        async def work(stopped=stopped) -> None:
            while not stopped.is_set():
                await kept_here.runner.answer("interactive", mandate.id)
                await asyncio.sleep(0)  # the others' turn

        async def count(made=made) -> int:
            found = await rows(
                db,
                mandate.id,
                "SELECT count(*) AS n FROM document WHERE connection_id = :id",
                id=made["uuid"],
            )
            return found[0].n

        tasks = [asyncio.create_task(write(name)) for name in "ab"]
        worker = asyncio.create_task(work())
        await until(lambda count=count: _more_than(count, 5), 30, "writers have begun")
        async with db.tenant_session(mandate.id) as session:
            receipt = await erasure.begin_erasure(session, "connection", made["id"], "revoked:msft")
        await erasure.finish_erasure(db, kept_here.blobs, mandate.id, receipt)
        left.append(await count())
        stopped.set()
        outcomes = await asyncio.gather(*tasks)
        await worker
        left.append(await count())
        assert all("queued" in one for one in outcomes)
    assert left == [0] * 40
    # what a worker was just embedding for a text that is gone is collected when it has let go of it
    await Maintenance(db, kept_here.settings).tidy(mandate.id)
    for table in ("chunk", "text_vector", "posting", "segment"):
        assert await rows(db, mandate.id, f"SELECT FROM {table}") == [], table


async def _more_than(count, number: int) -> bool:
    return await count() > number
