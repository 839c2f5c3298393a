"""The query log never delays or fails a search, survives the database, and forgets what an erasure takes."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from gateway.db import Database, new_id
from gateway.insights import repository
from gateway.insights.query_log import Asked, QueryLog
from tests.fixtures.stores import DatabaseUrls
from tests.fixtures.tenants import TestMandate
from tests.integration.retrieval.conftest import Shelf


async def logged(db: Database, mandate_id: UUID) -> list[Any]:
    async with db.tenant_session(mandate_id) as session:
        return await repository._run(
            session, "SELECT * FROM query_log WHERE mandate_id = :mandate_id ORDER BY at, id"
        )


def note(mandate: TestMandate, q: str = "where is it", **fields: Any) -> Asked:
    return Asked(mandate_id=mandate.id, q=q, result_count=0, took_ms=3, **fields)


@pytest.fixture
async def log(db: Database) -> AsyncIterator[QueryLog]:
    async with QueryLog(db, linger=0.0, pause=0.02) as log:
        yield log


async def test_a_password_somebody_searches_for_is_not_written_down(
    db: Database, log: QueryLog, mandate: TestMandate
) -> None:
    log.note(note(mandate, "is the password Winter!Sun42 still in use?"))
    await log.drained()
    (row,) = await logged(db, mandate.id)
    assert row.q == "is the password [secret:password] still in use?"


async def test_nor_one_that_narrows_a_search(db: Database, log: QueryLog, mandate: TestMandate) -> None:
    connection = str(uuid4())
    narrowed = {
        "tags": ["pwd=Winter!Sun42", "crm"],
        "sourceId": "password: Winter!Sun42",
        "connectionId": connection,
    }
    log.note(replace(note(mandate, "herons"), filters=narrowed))
    await log.drained()
    (row,) = await logged(db, mandate.id)
    assert row.filters == {
        "tags": ["pwd=[secret:password]", "crm"],
        "sourceId": "password: [secret:password]",
        "connectionId": connection,
    }


async def test_a_search_is_remembered_with_who_asked_from_where(
    db: Database, log: QueryLog, mandate: TestMandate
) -> None:
    asked = note(
        mandate,
        origin="mcp",
        user_id=mandate.users["member"],
        agent_deployment_id="support-bot",
        filters={"types": ["rule"]},
        top_score=0.5,
    )
    log.note(asked)
    await log.drained()
    (row,) = await logged(db, mandate.id)
    assert (row.id, row.q, row.origin, row.user_id) == (
        asked.id,
        "where is it",
        "mcp",
        mandate.users["member"],
    )
    assert (row.agent_deployment_id, row.filters, row.took_ms) == ("support-bot", {"types": ["rule"]}, 3)


async def test_a_full_queue_drops_and_counts_while_the_table_is_locked_and_writes_the_rest_after(
    db: Database, scratch: DatabaseUrls, mandate: TestMandate
) -> None:
    database = Database(scratch.runtime_url, pool_size=2)
    async with await psycopg.AsyncConnection.connect(scratch.superuser_url) as admin:
        await admin.execute(
            "INSERT INTO mandate (mandate_id, slug, name) VALUES (%s, %s, 'Test')", (mandate.id, mandate.slug)
        )
        await admin.commit()
        await admin.execute("LOCK TABLE query_log IN ACCESS EXCLUSIVE MODE")
        async with QueryLog(database, capacity=10, linger=0.0) as log:
            for number in range(25):
                log.note(note(mandate, f"question {number}"))
            assert log.dropped == 15
            await admin.rollback()
            await log.drained()
            assert len(await logged(database, mandate.id)) == 10
            log.note(note(mandate, "there is room again"))
            await log.drained()
            assert len(await logged(database, mandate.id)) == 11
    await database.dispose()


async def test_notes_wait_while_the_database_is_away_and_arrive_once(
    scratch: DatabaseUrls, mandate: TestMandate
) -> None:
    database = Database(scratch.runtime_url, pool_size=2)
    async with await psycopg.AsyncConnection.connect(scratch.superuser_url, autocommit=True) as admin:
        await admin.execute(
            "INSERT INTO mandate (mandate_id, slug, name) VALUES (%s, %s, 'Test')", (mandate.id, mandate.slug)
        )
    # The database itself lets nobody in, and throws out who is there.
    elsewhere = scratch.named("postgres").superuser_url
    async with (
        await psycopg.AsyncConnection.connect(elsewhere, autocommit=True) as admin,
        QueryLog(database, linger=0.0, pause=0.01) as log,
    ):
        log.note(note(mandate, "before"))
        await log.drained()
        await admin.execute(f'ALTER DATABASE "{scratch.name}" ALLOW_CONNECTIONS false')
        await admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (scratch.name,)
        )
        for number in range(5):
            log.note(note(mandate, f"during {number}"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(log.drained(), 0.3)
        assert log.dropped == 0
        await admin.execute(f'ALTER DATABASE "{scratch.name}" ALLOW_CONNECTIONS true')
        await asyncio.wait_for(log.drained(), 10)
        assert [row.q for row in await logged(database, mandate.id)] == [
            "before",
            *(f"during {number}" for number in range(5)),
        ]
    await database.dispose()


async def test_one_note_that_cannot_be_written_costs_that_one(
    db: Database, log: QueryLog, mandate: TestMandate
) -> None:
    gone = note(mandate, filters={"tags": ["\x00"]})
    for asked in (note(mandate, "first"), gone, note(mandate, "second")):
        log.note(asked)
    await log.drained()
    assert [row.q for row in await logged(db, mandate.id)] == ["first", "second"]
    assert log.dropped == 1


async def test_notes_of_a_mandate_that_is_gone_do_not_hold_up_the_others(
    db: Database, log: QueryLog, mandate: TestMandate
) -> None:
    log.note(Asked(mandate_id=new_id(), q="from nowhere", result_count=0, took_ms=1))
    log.note(note(mandate, "from here"))
    await log.drained()
    assert [row.q for row in await logged(db, mandate.id)] == ["from here"]
    assert log.dropped == 1


@pytest.mark.parametrize("q", ["a\x00b", "half \ud800 pair", "x" * 1000, "ü" * 1000])
async def test_any_text_is_kept_in_some_form(
    db: Database, log: QueryLog, mandate: TestMandate, q: str
) -> None:
    log.note(note(mandate, q))
    await log.drained()
    (row,) = await logged(db, mandate.id)
    assert row.q
    assert log.dropped == 0


async def test_the_words_of_a_question_go_with_the_document_it_found(
    db: Database, log: QueryLog, mandate: TestMandate, shelf: Shelf
) -> None:
    first = await shelf.put(mandate.id, "first", "The merger is called Project Heron.")
    second = await shelf.put(mandate.id, "second", "Lunch is at noon.")
    log.note(
        note(mandate, "what is project heron", document_ids=first.document_ids, filters={"tags": ["heron"]})
    )
    log.note(note(mandate, "when is lunch", document_ids=second.document_ids))
    await log.drained()
    async with db.tenant_session(mandate.id) as session:
        counts = await repository.forget_documents(session, first.document_ids)
    assert counts == {"query_log": 1, "answer": 0, "citation": 0}
    rows = await logged(db, mandate.id)
    assert [(row.q, row.filters) for row in rows] == [(None, {}), ("when is lunch", {})]


async def test_a_note_written_after_the_erasure_keeps_no_words(
    db: Database, log: QueryLog, mandate: TestMandate, shelf: Shelf
) -> None:
    found = await shelf.put(mandate.id, "first", "The merger is called Project Heron.")
    async with db.tenant_session(mandate.id) as session:
        await repository._count(
            session,
            "DELETE FROM document WHERE mandate_id = :mandate_id AND id = :id",
            id=found.document_ids[0],
        )
    log.note(note(mandate, "what is project heron", document_ids=found.document_ids))
    await log.drained()
    (row,) = await logged(db, mandate.id)
    assert (row.q, row.result_count) == (None, 0)


async def test_an_erasure_waits_for_a_note_that_is_being_written(
    db: Database, mandate: TestMandate, shelf: Shelf
) -> None:
    """The document is held while its question is written, so that the erasure that follows finds the question."""
    found = await shelf.put(mandate.id, "first", "The merger is called Project Heron.")
    async with db.tenant_session(mandate.id) as writing:
        assert await repository.keep_documents(writing, found.document_ids) == set(found.document_ids)
        with pytest.raises(OperationalError, match="could not obtain lock"):
            async with db.tenant_session(mandate.id) as erasing:
                await erasing.execute(
                    text("SELECT id FROM document WHERE id = :id FOR UPDATE NOWAIT"),
                    {"id": found.document_ids[0]},
                )


async def test_a_hit_in_the_commons_does_not_blank_the_question(
    db: Database, log: QueryLog, mandate: TestMandate, shelf: Shelf, commons: UUID
) -> None:
    shared = await shelf.put(
        commons, f"commons-{mandate.slug}", "Water boils at 100 degrees.", scope="global"
    )
    log.note(note(mandate, "when does water boil", document_ids=shared.document_ids))
    await log.drained()
    (row,) = await logged(db, mandate.id)
    assert row.q == "when does water boil"


async def test_erasing_a_person_takes_their_questions_and_leaves_the_others(
    db: Database, log: QueryLog, mandate: TestMandate
) -> None:
    log.note(note(mandate, "mine", user_id=mandate.users["member"]))
    log.note(note(mandate, "theirs", user_id=mandate.users["owner"]))
    await log.drained()
    async with db.tenant_session(mandate.id) as session:
        assert (await repository.forget_user(session, mandate.users["member"]))["query_log"] == 1
    assert [row.q for row in await logged(db, mandate.id)] == ["theirs"]


async def test_a_question_narrowed_to_a_connection_is_forgotten_with_it(
    db: Database, log: QueryLog, mandate: TestMandate
) -> None:
    connection = new_id()
    log.note(note(mandate, "about it", filters={"connectionId": str(connection)}))
    log.note(note(mandate, "about another", filters={"connectionId": str(new_id())}))
    await log.drained()
    async with db.tenant_session(mandate.id) as session:
        assert await repository.forget_connection(session, connection) == {"query_log": 1}
    assert [row.q for row in await logged(db, mandate.id)] == [None, "about another"]
