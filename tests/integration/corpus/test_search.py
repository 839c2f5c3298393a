"""Search finds what it should and shows only what it may."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import text

from gateway.connections import repository as connections
from gateway.corpus import candidates, chunk_repository, lexicon, search_repository
from gateway.corpus.boundary import unwrap
from gateway.corpus.embedders import EmbedderRefused, EmbedderUnavailable
from gateway.corpus.embedders.protocol import Vectors
from gateway.corpus.loading import ReadyDocument
from gateway.corpus.rerankers import RerankerUnavailable
from gateway.corpus.search import (
    Member,
    QueryEmpty,
    QueryTooLong,
    SearchInvalid,
    SearchQuery,
    search,
)
from gateway.db import Database
from gateway.errors import InvalidRequest, StoreUnavailable
from tests.fixtures.stores import DatabaseUrls
from tests.integration.corpus.searching import Library, Meanwhile, wordllama

FILLER = [f"Unrelated remarks number {n} about gardening, weather and music." for n in range(60)]


@pytest.fixture
async def library(db: Database) -> Library:
    return await Library.open(db)


# -- what is found


async def test_meaning_and_words_both_find(library: Library) -> None:
    await library.put("The refund is paid within five working days.", *FILLER)
    assert (await library.texts("refund"))[0].startswith("The refund")
    assert (await library.texts("how long until I get my money back"))[0].startswith("The refund")


@pytest.mark.parametrize(
    ("passage", "query"),
    [
        ("Please order part ACME-4711-X before Friday.", "ACME-4711-X"),
        ("Please order part ACME-4711-X before Friday.", "acme-4711-x"),
        ("Write to anna.muster+billing@example.org for copies.", "anna.muster+billing@example.org"),
        ("Ticket PROJ-1234 was closed without a fix.", "PROJ-1234"),
        ("The handler parse_http_header_v2 drops folded lines.", "parse_http_header_v2"),
        ("Call getUserProfileById before rendering.", "getUserProfileById"),
        ("Runs on version 10.4.2-rc1 only.", "10.4.2-rc1"),
        (
            "Build failed at commit 9fceb02d0ae598e95dc970b74767f19372d61af8.",
            "9fceb02d0ae598e95dc970b74767f19372d61af8",
        ),
        ("The C++ module links against zlib.", "C++"),
        ("Invoice no. 2026/00042 is overdue.", "2026/00042"),
    ],
)
async def test_codes_addresses_and_identifiers_are_found(library: Library, passage: str, query: str) -> None:
    await library.put(passage, *FILLER)
    assert (await library.texts(query))[0] == passage


@pytest.mark.parametrize(
    ("language", "passage", "query"),
    [
        ("de", "Die Kündigungen der Verträge müssen schriftlich erfolgen.", "Vertrag kündigen"),
        ("fr", "Les factures impayées seront transmises au service juridique.", "facture impayée"),
        ("es", "Las devoluciones se aceptan durante treinta días.", "devolución aceptada"),
        ("en", "Cancelled subscriptions are refunded pro rata.", "cancelling a subscription"),
    ],
)
async def test_other_languages_are_stemmed_whatever_the_query_is_written_in(
    library: Library, language: str, passage: str, query: str
) -> None:
    await library.put(passage, language=language)
    await library.put(*FILLER)
    hits = await library.find(query, method="bm25")
    assert hits
    assert hits[0].text == passage


async def test_a_quoted_phrase_comes_first_even_of_the_most_frequent_words(library: Library) -> None:
    shuffled = [f"to or not be to be, said number {n}" for n in range(150)]
    speech = f"{' '.join(FILLER[:5])} He wondered: To be or\nnot to be. {' '.join(FILLER[5:9])}"
    await library.put(speech, *shuffled)
    assert speech not in await library.texts("to be or not to be")
    assert (await library.texts('"to be or not to be"'))[0] == speech


async def test_a_quoted_phrase_is_found_through_markup_and_other_spellings(library: Library) -> None:
    marked = "All **fire doors** must be `kept shut` during tests of the alarm."
    umlauts = "Alle Büromöbel, die geprüft werden müssen, stehen im Keller."
    await library.put(marked, umlauts)
    await library.put("Fire doors kept kept shut. Must be doors. Fire must be kept.", *FILLER)
    await library.put("Geprüft müssen werden Büromöbel geprüft. Werden müssen Büromöbel.")
    assert (await library.texts('"fire doors must be kept shut"'))[0] == marked
    assert (await library.texts('"bueromoebel, die geprueft werden muessen"'))[0] == umlauts


async def test_a_quoted_phrase_is_found_across_two_chunks_of_a_document(library: Library) -> None:
    pages = ("The yearly inspection of the sluice gate must be", "performed by certified staff before March.")
    await library.put(*pages)
    await library.put(*(f"Staff certified by must: performed be certified, staff {n}" for n in range(9)))
    await library.put("What must be")  # ends as the one before it in the corpus, but is of another document
    await library.put("performed by certified staff")
    texts = await library.texts('"must be performed by certified staff"')
    assert set(texts[:2]) == set(pages)


async def test_a_quoted_phrase_is_found_among_very_many_texts_with_its_words(library: Library) -> None:
    note = f"{' '.join(FILLER[:9])} They keep a report maintenance annual. {' '.join(FILLER[9:])}"
    await library.put(*(f"Annual maintenance report {n}: report of maintenance annual." for n in range(400)))
    await library.put(note)
    assert (await library.texts('"report maintenance annual"'))[0] == note


async def test_a_query_of_function_words_alone_is_answered(library: Library) -> None:
    await library.put("The Who played all night.", *FILLER)
    assert (await library.texts("the who", method="bm25"))[0].startswith("The Who")


async def test_of_sources_with_one_text_the_one_whose_title_was_asked_for_is_shown(library: Library) -> None:
    said = "Press the red button and wait until the lamp goes out."
    for title in ("Alpha handbook", "Beta quickstart guide", "Gamma leaflet"):
        await library.put(said, title=title)
    await library.put(*FILLER)
    for query, first in (
        ("beta quickstart guide", "Beta quickstart guide"),
        ("red button", "Alpha handbook"),
    ):
        hit = (await library.find(query))[0]
        assert (hit.title, hit.citation.title, len(hit.sources)) == (first, first, 3)


async def test_words_of_the_heading_find_the_passage_below(library: Library) -> None:
    await library.put("Ten days, in writing.", heading="Contract > Termination period")
    await library.put(*FILLER)
    assert (await library.texts("termination period", method="bm25")) == ["Ten days, in writing."]


async def test_a_quoted_title_finds_its_document_first(library: Library) -> None:
    await library.put("Press the red button.", title="Reset of the login")
    await library.put(*(f"login reset of the {name}" for name in ("door", "gate", "bell")), *FILLER)
    assert (await library.texts('"reset of the login"'))[0] == "Press the red button."


async def test_what_is_gone_is_not_found_and_what_is_new_is(library: Library) -> None:
    first = await library.put("A very peculiar zebra.", *FILLER)
    assert (await library.texts("zebra"))[0] == "A very peculiar zebra."
    async with library.db.tenant_session(library.mandate_id) as session:
        await lexicon.take_out(session, first.chunk_ids[:1])
        await chunk_repository.delete_chunks(session, first.chunk_ids[:1])
    await library.put("Another zebra altogether.")
    assert [text for text in await library.texts("zebra") if "zebra" in text] == ["Another zebra altogether."]


@pytest.mark.parametrize("method", ["convex", "rrf", "dense", "bm25"])
async def test_every_method_ranks_best_first(library: Library, method: str) -> None:
    await library.put("Solar panels on the roof.", "Panels of experts met.", *FILLER)
    hits = await library.find("solar panels roof", method=method)
    assert hits[0].text == "Solar panels on the roof."
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


async def test_an_empty_mandate_has_no_hits(library: Library) -> None:
    assert await library.find("anything") == []


async def test_the_same_question_has_the_same_answer(library: Library) -> None:
    await library.put(*(f"Equal text {n} about pumps" for n in range(40)))
    first, second = await library.find("pumps"), await library.find("pumps")
    assert [hit.chunk_id for hit in first] == [hit.chunk_id for hit in second]


# -- citations


async def test_a_hit_carries_its_text_its_wrapped_text_and_its_citation(library: Library) -> None:
    connection_id = await library.connect()
    loaded = await library.put(
        "The pump must be primed.",
        heading="Manual > Start",
        title="Pump manual",
        uri="https://example.org/pump.pdf",
        source_kind="sharepoint_item",
        source_id="item-1",
        content_version='"{etag},3"',
        connection_id=connection_id,
    )
    hit = (await library.find("prime the pump"))[0]
    assert hit.citation.model_dump(mode="json", by_alias=True) == {
        "documentId": str(loaded.document_ids[0]),
        "chunkId": str(loaded.chunk_ids[0]),
        "sourceKind": "sharepoint_item",
        "title": "Pump manual",
        "uri": "https://example.org/pump.pdf",
        "revision": '"{etag},3"',
        "connectionId": str(connection_id),
        "contentHash": hit.citation.content_hash,
        "verifiedAt": hit.citation.model_dump(mode="json")["verified_at"],
        "locator": {"kind": "text", "charStart": 0, "charEnd": 24},
    }
    assert len(bytes.fromhex(hit.citation.content_hash)) == 32
    assert unwrap(hit.prompt_text) == hit.text == "The pump must be primed."
    origin = hit.prompt_text.split("\n")[0]
    for stated in (
        "sharepoint_item",
        "Pump manual",
        "Manual > Start",
        str(hit.chunk_id),
        hit.citation.content_hash,
    ):
        assert stated in origin


async def test_without_a_version_of_the_source_the_revision_is_our_count(library: Library) -> None:
    await library.put("Nothing but text.")
    assert (await library.find("text"))[0].citation.revision == "1"


async def test_identical_chunks_are_one_hit_that_names_all_visible_sources(library: Library) -> None:
    mine = await library.put("Shared paragraph.", scope="personal", user_id=library.users["owner"])
    ours = await library.put("Shared paragraph.", title="Wiki")
    theirs = await library.put("Shared paragraph.", scope="personal", user_id=library.users["member"])
    await library.put("Another paragraph.")
    hits = await library.find("shared paragraph")
    assert [hit.text for hit in hits] == ["Shared paragraph.", "Another paragraph."]
    assert [source.document_id for source in hits[0].sources] == [*mine.document_ids, *ours.document_ids]
    assert hits[0].citation == hits[0].sources[0]
    [hit, _] = await library.find("shared paragraph", who="member")
    assert {source.document_id for source in hit.sources} == {*ours.document_ids, *theirs.document_ids}


async def test_copies_of_one_text_do_not_crowd_out_the_others(library: Library) -> None:
    footer = "Confidential footer: delete this message if received in error."
    await library.put_documents(
        [ReadyDocument(texts=[f"Mail {n}", footer], source_id=f"mail-{n}") for n in range(400)]
    )
    others = [f"Section {n} explains what a footer is and who may delete this message." for n in range(12)]
    await library.put(*others)
    hits = await library.find("footer delete this message received in error", limit=10, method="bm25")
    assert hits[0].text == footer
    assert len({hit.text for hit in hits}) == len(hits) == 10
    assert len(hits[0].sources) == search_repository.SOURCES


# -- who sees what


async def test_scope_decides_who_finds_what(library: Library) -> None:
    instance = await library.instance("admin", "member")
    await library.put("plan of the owner", scope="personal", user_id=library.users["owner"])
    await library.put("plan of the member", scope="personal", user_id=library.users["member"])
    await library.put("plan of the instance", scope="featureInstance", feature_instance_id=instance)
    await library.put("plan of the mandate", scope="mandate")
    shown = {
        "owner": {"plan of the owner", "plan of the mandate"},
        "admin": {"plan of the instance", "plan of the mandate"},
        "member": {"plan of the member", "plan of the instance", "plan of the mandate"},
        None: {"plan of the mandate"},
    }
    for who, expected in shown.items():
        for method in ("convex", "rrf", "dense", "bm25"):
            assert set(await library.texts("plan", who=who, method=method)) == expected, (who, method)


async def test_one_mandate_never_finds_anothers(library: Library, db: Database) -> None:
    other = await Library.open(db)
    await other.put("secret recipe of the neighbours")
    await library.put("our own recipe")
    assert await library.texts("secret recipe") == ["our own recipe"]
    both = Member(library.mandate_id, other.users["owner"])
    assert [hit.text for hit in (await search(db, wordllama(), both, SearchQuery(q="recipe"))).hits] == [
        "our own recipe"
    ]


@pytest.mark.parametrize("state", ["pending", "needs_reauth", "revoked"])
async def test_nothing_of_a_connection_that_is_not_active_is_served(library: Library, state: str) -> None:
    connection_id = await library.connect()
    await library.put("mail about the merger", connection_id=connection_id, source_kind="outlook_message")
    await library.put("note about the merger")
    assert len(await library.texts("merger")) == 2
    async with library.db.tenant_session(library.mandate_id) as session:
        await session.execute(
            text("UPDATE connection SET state = :state WHERE id = :id"), {"state": state, "id": connection_id}
        )
    for method in ("convex", "dense", "bm25"):
        assert await library.texts("merger", method=method) == ["note about the merger"]


async def test_a_connection_revoked_during_the_search_is_not_served(
    library: Library, monkeypatch: pytest.MonkeyPatch, meanwhile: Meanwhile
) -> None:
    connection_id = await library.connect()
    await library.put("mail about the merger", connection_id=connection_id, source_kind="outlook_message")
    nearest = search_repository.nearest

    def revoked_meanwhile(*arguments, **options):
        found = nearest(*arguments, **options)
        meanwhile(library.revoke(connection_id))
        return found

    monkeypatch.setattr(search_repository, "nearest", revoked_meanwhile)
    assert await library.texts("merger") == []


# -- filters


@pytest.fixture
async def shelved(library: Library) -> tuple[Library, UUID, UUID]:
    """Five documents about pumps that differ in everything a filter looks at."""
    connection_id, instance = await library.connect(), await library.instance("owner")
    await library.put("pump rule", type="rule", tags=["safety", "plant"])
    await library.put("pump note", type="note", tags=["plant"])
    await library.put("pump page", source_kind="web_page", source_id="https://example.org/p")
    await library.put("pump mail", connection_id=connection_id, source_kind="outlook_message")
    await library.put("pump record", scope="featureInstance", feature_instance_id=instance)
    return library, connection_id, instance


async def test_filters_narrow_and_combine(shelved: tuple[Library, UUID, UUID]) -> None:
    library, connection_id, instance = shelved
    now = datetime.now(UTC)
    cases: list[tuple[dict[str, object], set[str]]] = [
        ({}, {"pump rule", "pump note", "pump page", "pump mail", "pump record"}),
        ({"types": ["rule"]}, {"pump rule"}),
        ({"types": ["rule", "note"]}, {"pump rule", "pump note"}),
        ({"types": ["web_page"]}, {"pump page"}),
        ({"source_kinds": ["web_page", "outlook_message"]}, {"pump page", "pump mail"}),
        ({"connection_id": connection_id}, {"pump mail"}),
        ({"connection_id": uuid4()}, set()),
        ({"source_id": "https://example.org/p"}, {"pump page"}),
        ({"feature_instance_id": instance}, {"pump record"}),
        ({"tags": ["plant"]}, {"pump rule", "pump note"}),
        ({"tags": ["safety", "nowhere"]}, {"pump rule"}),
        ({"tags": ["plant"], "types": ["note"]}, {"pump note"}),
        ({"tags": ["plant"], "source_kinds": ["web_page"]}, set()),
        (
            {"since": now - timedelta(hours=1), "until": now + timedelta(hours=1), "types": ["rule"]},
            {"pump rule"},
        ),
        ({"since": now + timedelta(hours=1)}, set()),
        ({"until": now - timedelta(hours=1)}, set()),
    ]
    for filters, expected in cases:
        for method in ("convex", "dense", "bm25"):
            found = await library.texts("pump", method=method, **filters)
            assert set(found) == expected, (filters, method)


async def test_a_filter_never_widens_what_is_visible(shelved: tuple[Library, UUID, UUID]) -> None:
    library, _, instance = shelved
    assert await library.texts("pump", who="member", feature_instance_id=instance) == []


async def test_a_narrow_filter_or_scope_still_fills_the_answer(library: Library) -> None:
    """The visible texts are the farthest by meaning and by words: whoever filters the first few finds none of them."""
    crowd = [f"pump pump pump station number {n} pump" for n in range(1500)]
    await library.put_documents(
        [ReadyDocument(texts=crowd[at : at + 50], source_id=f"crowd-{at}") for at in range(0, 1500, 50)]
    )
    rare = [f"a remark on valves, and once on a pump, line {n}" for n in range(12)]
    await library.put(*rare, tags=["few"])
    hidden = [f"pump pump pump of somebody else {n}" for n in range(300)]
    await library.put(*hidden, scope="personal", user_id=library.users["member"])
    for method in ("convex", "dense", "bm25"):
        for _ in range(2):  # the second time the view is known to be narrow
            found = await library.texts("pump", limit=10, tags=["few"], method=method)
            assert len(found) == 10, method
            assert set(found) <= set(rare)
        mine = await library.texts("pump of somebody else", limit=100, method=method)
        assert len(mine) == 100
        assert not set(mine) & set(hidden)


async def test_a_wide_view_with_little_of_it_near_the_query_is_filled_too(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    # so that 40 visible chunks count as many
    monkeypatch.setattr(candidates, "STEPS", (("wide", 1), ("narrow", 20), ("wide", 2), ("narrow", None)))
    crowd = [f"pump pump pump station number {n} pump" for n in range(600)]
    await library.put(*crowd)
    await library.put(*(f"valve remark {n} with a pump" for n in range(40)), tags=["few"])
    for method in ("convex", "dense", "bm25"):
        assert len(await library.texts("pump", limit=10, tags=["few"], method=method)) == 10


# -- what cannot be asked


@pytest.mark.parametrize("q", ["", "   ", "?!.,;-–—…", "\n\t", "()[]{}", "🙂", "\u200b"])
async def test_a_query_without_a_letter_or_digit_is_refused(library: Library, q: str) -> None:
    with pytest.raises(QueryEmpty) as refusal:
        await library.find(q)
    assert refusal.value.code == "search.query_empty"
    assert refusal.value.status == 400


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"q": "x" * 1001}, QueryTooLong),
        ({"q": "x", "limit": 0}, SearchInvalid),
        ({"q": "x", "limit": 101}, SearchInvalid),
        ({"q": "x", "source_id": "a\0b"}, SearchInvalid),
        ({"q": "x", "tags": ["\ud800"]}, SearchInvalid),
        (
            {"q": "x", "since": datetime(2026, 2, 1, tzinfo=UTC), "until": datetime(2026, 1, 1, tzinfo=UTC)},
            SearchInvalid,
        ),
    ],
)
async def test_what_cannot_be_asked_is_refused(
    library: Library, options: dict, error: type[InvalidRequest]
) -> None:
    with pytest.raises(error):
        await library.find(options.pop("q"), **options)


async def test_odd_queries_are_answered(library: Library) -> None:
    await library.put("Plain text about x.")
    for q in (
        "x" * 1000,
        "x \0 x",
        "x \ud800",
        "a' OR 1=1; --",
        "%s %(x)s {y}",
        '"x',
        "x " * 500,
        "日本語 x",
    ):
        await library.find(q)


# -- services around it


class Away:
    """An embedding service that answers with an error, or never."""

    model, dimensions, dense_share, max_batch = wordllama().model, 256, 0.3, 1
    price_per_million_tokens = wordllama().price_per_million_tokens

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if self._error is None:
            await asyncio.Event().wait()
        raise self._error or AssertionError("nobody sets that event")

    def count_tokens(self, texts: Sequence[str]) -> int:
        return 0

    async def aclose(self) -> None: ...


@pytest.mark.parametrize(
    "error",
    [EmbedderUnavailable("away"), EmbedderRefused("no such key"), None],
    ids=["away", "refuses", "hangs"],
)
async def test_without_the_embedding_service_words_are_still_found(
    library: Library, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    monkeypatch.setattr("gateway.corpus.search.EMBEDDING_SECONDS", 3.0 if error else 0.05)
    await library.put("The refund is paid.", *FILLER)
    result = await search(library.db, Away(error), Member(library.mandate_id), SearchQuery(q="refund"))
    assert result.degraded
    assert result.hits[0].text == "The refund is paid."
    whole = await search(library.db, wordllama(), Member(library.mandate_id), SearchQuery(q="refund"))
    assert not whole.degraded


async def test_a_text_without_a_vector_of_the_model_is_found_by_its_words(library: Library) -> None:
    await library.put("Only words lead here: xylophone.")
    async with library.db.tenant_session(library.mandate_id) as session:
        await session.execute(text("DELETE FROM text_vector"))
    hits = await library.find("xylophone")
    assert [(hit.text, hit.cosine) for hit in hits] == [("Only words lead here: xylophone.", None)]


class Backwards:
    """Prefers short texts."""

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return [1 / len(text) for text in texts]


async def test_a_reranker_has_the_last_word(library: Library) -> None:
    await library.put("pump", "pump pump station", "pump pump pump station in the north")
    viewer = Member(library.mandate_id)
    query = SearchQuery(q="pump pump station north", limit=2)
    result = await search(library.db, wordllama(), viewer, query, reranker=Backwards())
    assert [hit.text for hit in result.hits] == ["pump", "pump pump station"]
    assert result.hits[0].score == pytest.approx(0.25)


async def test_a_connection_revoked_while_a_reranker_thinks_is_not_served(library: Library) -> None:
    connection_id = await library.connect()
    await library.put("mail about the merger", connection_id=connection_id, source_kind="outlook_message")
    await library.put(
        "shared words on the merger", connection_id=connection_id, source_kind="outlook_message"
    )
    await library.put("shared words on the merger", title="Wiki")

    class Revoking(Backwards):
        async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
            async with library.db.tenant_session(library.mandate_id) as session:
                await connections.revoke(session, connection_id)
            return await super().scores(query, texts)

    viewer = Member(library.mandate_id)
    result = await search(library.db, wordllama(), viewer, SearchQuery(q="merger"), reranker=Revoking())
    [hit] = result.hits
    assert (hit.text, hit.title) == ("shared words on the merger", "Wiki")
    assert [source.title for source in hit.sources] == ["Wiki"]
    assert hit.citation == hit.sources[0]
    assert hit.chunk_id == hit.citation.chunk_id
    assert "outlook" not in hit.prompt_text


class Gone:
    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        raise RerankerUnavailable("gone")


async def test_a_reranker_that_fails_costs_nothing_but_its_opinion(library: Library) -> None:
    await library.put("pump", "pump pump station")
    viewer, query = Member(library.mandate_id), SearchQuery(q="pump station")
    plain = await search(library.db, wordllama(), viewer, query)
    result = await search(library.db, wordllama(), viewer, query, reranker=Gone())
    assert [hit.chunk_id for hit in result.hits] == [hit.chunk_id for hit in plain.hits]


async def test_segments_merged_during_a_search_are_read_again(
    library: Library, monkeypatch: pytest.MonkeyPatch, meanwhile: Meanwhile
) -> None:
    for n in range(9):
        await library.put(f"pump number {n}")
    read, merged = search_repository.read_directories, []

    async def merge() -> int:
        async with library.db.tenant_session(library.mandate_id) as session:
            return await lexicon.merge_small(session, None, fewer_than=2000)

    def merged_meanwhile(*arguments):
        if not merged:
            merged.append(meanwhile(merge()))
        return read(*arguments)

    monkeypatch.setattr(search_repository, "read_directories", merged_meanwhile)
    assert len(await library.texts("pump", method="bm25")) == 9
    assert merged == [9]


async def test_scores_are_the_same_before_and_after_a_merge(library: Library) -> None:
    for n in range(9):
        await library.put(f"pump number {n} {'pump ' * n}")
    before = await library.find("pump number", method="bm25")
    async with library.db.tenant_session(library.mandate_id) as session:
        await lexicon.merge_small(session, None, fewer_than=2000)
    after = await library.find("pump number", method="bm25")
    assert [(hit.text, hit.score) for hit in before] == [(hit.text, hit.score) for hit in after]


async def test_a_search_waits_for_no_second_connection(library: Library) -> None:
    """More searches at once than the pool has connections: each needs one."""
    await library.put("pump", *FILLER)
    found = await asyncio.gather(*(library.texts("pump") for _ in range(30)))
    assert all(texts[0] == "pump" for texts in found)


async def test_a_search_that_loses_its_connection_says_so_and_the_next_one_works(
    library: Library, monkeypatch: pytest.MonkeyPatch, database_urls: DatabaseUrls
) -> None:
    await library.put("pump")
    page = search_repository.page

    def cut_off(connection, *arguments):
        with psycopg.connect(database_urls.superuser_url, autocommit=True) as admin:
            admin.execute("SELECT pg_terminate_backend(%s)", [connection.info.backend_pid])
        return page(connection, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(search_repository, "page", cut_off)
        with pytest.raises(StoreUnavailable):
            await library.texts("pump")
    assert await library.texts("pump") == ["pump"]


def test_a_query_is_a_value() -> None:
    query = SearchQuery(q="x", tags=["b", "a", "a"], types=[])
    assert query.filters() == replace(query, tags=["a", "b"], types=None).filters()
