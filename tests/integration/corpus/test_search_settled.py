"""Search in a mandate whose vectors are settled: what is known from the last search is used, and only while it holds."""

from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from gateway.corpus import lexicon, search_repository, settlement_repository
from gateway.corpus.search_repository import SETTINGS, Filters, Space, View, halfvec_literal
from gateway.db import Database, new_id
from gateway.errors import StoreUnavailable
from gateway.readers import Connection
from tests.fixtures.stores import DatabaseUrls
from tests.integration.corpus.searching import Library, Meanwhile, wordllama

FILLER = [f"the {word} stands in the yard" for word in ("tree", "wall", "cart", "bell", "gate", "barn")]


async def settle(library: Library) -> None:
    async with library.db.tenant_session(library.mandate_id) as session:
        await settlement_repository.mark(session, wordllama().model, settled=True, limit=1000)


@pytest.fixture
async def library(db: Database) -> Library:
    library = await Library.open(db)
    await library.put("the pump is in the mill", *FILLER)
    await settle(library)
    # from here on its state is known
    assert (await library.texts("pump", limit=3))[0] == "the pump is in the mill"
    return library


async def test_what_is_known_is_not_asked_again(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    read, asked = search_repository.read_state, []

    def watched(*arguments: Any) -> Any:
        asked.append(arguments)
        return read(*arguments)

    monkeypatch.setattr(search_repository, "read_state", watched)
    await library.texts("where is the pump?", limit=3)
    assert not asked
    await library.put("another pump")
    await library.texts("where is the pump?", limit=3)
    assert asked


async def test_neighbours_of_others_do_not_take_the_places_of_ones_own(
    library: Library, database_urls: DatabaseUrls
) -> None:
    crowd = await Library.open(library.db)
    await crowd.put(*(f"the pump number {number} is in the mill" for number in range(300)))
    await settle(crowd)
    model, width = wordllama().model, wordllama().dimensions
    async with await psycopg.AsyncConnection.connect(database_urls.owner_url, autocommit=True) as owner:
        await settlement_repository.build_index(owner, model, width, 307)
    query = halfvec_literal((await wordllama().embed(["the pump number 7 is in the mill"]))[0])
    view = View(library.mandate_id, None, Filters())

    def found(connection: Connection) -> int:
        connection.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        return len(
            search_repository.nearest(connection, view, Space(model, width, query), share=1.0, limit=7)
        )

    assert await library.db.read(library.mandate_id, found, SETTINGS) == 7


async def test_a_language_that_came_since_is_stemmed(library: Library) -> None:
    await library.put("die Bäume stehen im Hof", language="de")
    assert "die Bäume stehen im Hof" in await library.texts("Baum", method="bm25")


async def test_what_settles_between_two_searches_is_found(library: Library) -> None:
    await library.put("the weir holds the water")
    assert "the weir holds the water" in await library.texts("weir water", method="dense")
    await settle(library)
    assert "the weir holds the water" in await library.texts("weir water", method="dense")


async def test_what_is_taken_out_leaves_the_words_that_are_kept_counted(library: Library) -> None:
    loaded = await library.put("pump pump pump")
    await settle(library)
    assert (await library.texts("pump", method="bm25"))[0] == "pump pump pump"
    async with library.db.tenant_session(library.mandate_id) as session:
        await lexicon.take_out(session, loaded.chunk_ids)
        await session.execute(text("DELETE FROM chunk WHERE id = :id"), {"id": loaded.chunk_ids[0]})
    hits = await library.find("pump", method="bm25")
    assert [hit.text for hit in hits] == ["the pump is in the mill"]
    fresh = await Library.open(library.db)
    await fresh.put("the pump is in the mill", *FILLER)
    assert [hit.score for hit in await fresh.find("pump", method="bm25")] == [hit.score for hit in hits]


@pytest.mark.parametrize("moment", ["nearest", "visible"])
async def test_a_connection_revoked_during_the_search_is_not_served_and_others_take_its_place(
    library: Library, monkeypatch: pytest.MonkeyPatch, meanwhile: Meanwhile, moment: str
) -> None:
    connection_id = await library.connect()
    await library.put(
        "mail about the pump",
        connection_id=connection_id,
        source_kind="outlook_message",
        source_id=str(new_id()),
    )
    await settle(library)
    assert await library.texts("mail about the pump", limit=1) == ["mail about the pump"]
    run = getattr(search_repository, moment)

    def revoked_meanwhile(*arguments: Any, **options: Any) -> Any:
        found = run(*arguments, **options)
        meanwhile(library.revoke(connection_id))
        return found

    monkeypatch.setattr(search_repository, moment, revoked_meanwhile)
    assert await library.texts("mail about the pump", limit=1) == ["the pump is in the mill"]


@pytest.mark.parametrize(
    ("method", "moment"),
    [("convex", "nearest"), ("convex", "visible"), ("convex", "page"), ("bm25", "visible"), ("bm25", "page")],
)
async def test_a_document_revised_during_the_search_is_found_all_the_same(
    library: Library, monkeypatch: pytest.MonkeyPatch, meanwhile: Meanwhile, method: str, moment: str
) -> None:
    loaded = await library.put("the sluice of 1911")
    await settle(library)
    assert await library.texts("sluice", limit=1) == ["the sluice of 1911"]  # its state is known again
    run, revised = getattr(search_repository, moment), []

    async def revise() -> None:
        await library.put("the sluice of 1912")
        async with library.db.tenant_session(library.mandate_id) as session:
            await lexicon.take_out(session, loaded.chunk_ids)
            await session.execute(text("DELETE FROM chunk WHERE id = :id"), {"id": loaded.chunk_ids[0]})

    def revised_first(*arguments: Any, **options: Any) -> Any:
        if not revised:
            revised.append(True)
            meanwhile(revise())
        return run(*arguments, **options)

    monkeypatch.setattr(search_repository, moment, revised_first)
    hits = await library.find("sluice", limit=3, method=method)
    assert hits[0].text == "the sluice of 1912"


async def test_a_search_that_loses_its_connection_says_so_and_the_next_search_works(
    library: Library, monkeypatch: pytest.MonkeyPatch, database_urls: DatabaseUrls
) -> None:
    nearest = search_repository.nearest

    def cut_off(connection: Any, *arguments: Any, **options: Any) -> Any:
        with psycopg.connect(database_urls.superuser_url, autocommit=True) as admin:
            admin.execute("SELECT pg_terminate_backend(%s)", [connection.info.backend_pid])
        return nearest(connection, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(search_repository, "nearest", cut_off)
        with pytest.raises(StoreUnavailable):
            await library.texts("pump", limit=3)
    assert (await library.texts("pump", limit=3))[0] == "the pump is in the mill"
