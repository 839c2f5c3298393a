"""The ways to the rows, past the layers that a session has: each sees one tenant and leaves nothing behind."""

import asyncio
import threading

import psycopg
import pytest
from sqlalchemy import text

from gateway.db import Database, switch_tenant
from gateway.errors import StoreUnavailable
from gateway.readers import Connection
from tests.fixtures.stores import DatabaseUrls
from tests.integration.corpus.searching import Library

COUNT = "SELECT count(*) FROM chunk"


@pytest.fixture
async def library(db: Database) -> Library:
    library = await Library.open(db)
    await library.put("the pump is in the mill", "the weir holds the water")
    return library


def counted(connection: Connection) -> tuple[int]:
    return connection.execute(COUNT).fetchall()[0]


async def test_who_reads_sees_its_tenant_and_the_settings_are_gone_afterwards(library: Library) -> None:
    other = await Library.open(library.db)

    def looks(connection: Connection) -> None:
        assert counted(connection) == (2,)
        assert connection.execute("SHOW work_mem").fetchall() == [("8MB",)]
        switch_tenant(connection, other.mandate_id)
        assert counted(connection) == (0,)

    await library.db.read(library.mandate_id, looks, {"work_mem": "8MB"})

    def looks_later(connection: Connection) -> None:
        assert counted(connection) == (0,)
        assert connection.execute("SHOW work_mem").fetchall() != [("8MB",)]

    await library.db.read(other.mandate_id, looks_later)


async def test_who_reads_cannot_write(library: Library) -> None:
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        await library.db.read(
            library.mandate_id, lambda connection: connection.execute("DELETE FROM chunk") and None
        )
    assert await library.db.read(library.mandate_id, counted) == (2,)


async def test_what_fails_is_the_readers_to_hear_and_the_connection_serves_the_next(
    database_urls: DatabaseUrls,
) -> None:
    alone = Database(database_urls.runtime_url, pool_size=1)
    library = await Library.open(alone)

    def fails(connection: Connection) -> None:
        connection.execute("SELECT 1/0")

    with pytest.raises(psycopg.errors.DivisionByZero):
        await alone.read(library.mandate_id, fails)
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        await alone.read(library.mandate_id, counted, {"work_mem": "none"})
    assert await alone.read(library.mandate_id, counted) == (0,)
    await alone.dispose()


async def test_readers_that_find_no_place_wait_for_one(database_urls: DatabaseUrls) -> None:
    two = Database(database_urls.runtime_url, pool_size=2)
    library = await Library.open(two)
    inside: list[int] = []
    most: list[int] = []
    lock = threading.Lock()

    def reads(connection: Connection) -> None:
        with lock:
            inside.append(1)
            most.append(len(inside))
        counted(connection)
        with lock:
            inside.pop()

    await asyncio.gather(*(two.read(library.mandate_id, reads) for _ in range(30)))
    assert len(most) == 30
    assert max(most) <= 2
    await two.dispose()


async def test_who_reads_has_a_second_look_beside_it_and_both_end(database_urls: DatabaseUrls) -> None:
    """Also when there are as many readers as places: what they wait for is nobody's who waits."""
    alone = Database(database_urls.runtime_url, pool_size=1)
    library = await Library.open(alone)

    def looks_twice(connection: Connection) -> tuple[tuple[int], int]:
        beside = alone.read_beside(
            library.mandate_id, lambda second: (counted(second), second.info.backend_pid)
        )
        return beside.result()[0], beside.result()[1] - connection.info.backend_pid

    for count, difference in await asyncio.gather(
        *(alone.read(library.mandate_id, looks_twice) for _ in range(8))
    ):
        assert count == (0,)
        assert difference != 0
    await alone.dispose()


async def test_what_fails_beside_is_heard_by_who_asked(library: Library) -> None:
    def fails(connection: Connection) -> None:
        connection.execute("SELECT 1/0")

    def looks(_connection: Connection) -> None:
        library.db.read_beside(library.mandate_id, fails).result()

    with pytest.raises(psycopg.errors.DivisionByZero):
        await library.db.read(library.mandate_id, looks)
    assert await library.db.read(library.mandate_id, counted) == (2,)


async def test_a_connection_cut_off_while_it_lay_idle_is_replaced_unnoticed(
    library: Library, database_urls: DatabaseUrls
) -> None:
    def process(connection: Connection) -> int:
        return connection.info.backend_pid

    before = await library.db.read(library.mandate_id, process)
    with psycopg.connect(database_urls.superuser_url, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(%s)", [before])
    assert await library.db.read(library.mandate_id, process) != before


async def test_a_tenant_connection_that_is_left_halfway_is_an_ordinary_one_again(
    database_urls: DatabaseUrls,
) -> None:
    alone = Database(database_urls.runtime_url, pool_size=1)
    library = await Library.open(alone)
    inside = asyncio.Event()

    async def hang() -> None:
        async with alone.tenant_connection(library.mandate_id) as connection:
            inside.set()
            await connection.execute("SELECT pg_sleep(60)")

    hanging = asyncio.create_task(hang())
    await inside.wait()
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging
    async with alone.tenant_session(library.mandate_id) as session:
        # In autocommit the tenant would be forgotten with the statement that set it.
        assert await session.scalar(text("SHOW app.mandate_id")) == str(library.mandate_id)
    await alone.dispose()


@pytest.mark.parametrize(
    ("state", "words", "named"),
    [("53100", "disk is full", "disk full"), ("53300", "takes no more connections", "too many connections")],
)
async def test_a_database_that_lacks_something_says_what(
    db: Database, capsys: pytest.CaptureFixture[str], state: str, words: str, named: str
) -> None:
    with pytest.raises(StoreUnavailable, match=words):
        async with db.routing_session() as session:
            await session.execute(text(f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{state}'; END $$"))
    said = capsys.readouterr().out
    assert "house.store.unavailable" in said
    assert named in said
