"""Retrieval, shown on real processes and at size. Figures are printed (`pytest -s`); `CATCHMENT_ACCEPTANCE=full` runs full
sizes: whole collections, 100,000 chunks, and the promises of an idle machine.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import bm25s
import httpx2
import numpy as np
import pytest
import Stemmer
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from sqlalchemy import text as sql

from gateway.corpus import search_repository as repository
from gateway.corpus.boundary import unwrap, wrap
from gateway.corpus.evaluation import Collection, load_collection, ndcg
from gateway.corpus.lexical.bm25 import K1, B
from gateway.corpus.search_repository import Filters, View
from gateway.corpus.settlement_repository import index_name
from gateway.db import Database
from tests.acceptance.large_corpus import (
    FULL,
    LARGE,
    QUERIES,
    SCANS,
    SMALL,
    World,
    build_world,
    nearest_plan,
    prepared_plan,
    recall,
)
from tests.acceptance.test_door import make_pdf, settled, upload
from tests.fixtures.processes import REPOSITORY, House
from tests.fixtures.stores import DatabaseUrls
from tests.unit.gateway.corpus.test_boundary import HIDDEN, INJECTIONS

COLLECTIONS = Path(os.environ.get("CATCHMENT_COLLECTIONS", REPOSITORY.parent / "shared" / "data"))
pytestmark = pytest.mark.timeout(3600 if FULL else 300)


@pytest.fixture
async def house(database_urls, redis_url, tmp_path):
    house = House(database_urls.runtime_url, redis_url, tmp_path, CATCHMENT_EMBEDDER="wordllama")
    yield house
    house.stop()


@pytest.fixture(scope="module")
async def world(db: Database, database_urls: DatabaseUrls) -> World:
    return await build_world(db, database_urls)


def catchment(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "gateway", *arguments, "--json"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


# -- quality, on labelled collections


def part_of(folder: Path, target: Path) -> Path:
    """The collection with every fourth of its questions; all of them in the full profile."""
    assert folder.is_dir(), (
        f"the labelled collection {folder.name} belongs beside the project, in ../shared/data"
    )
    if FULL:
        return folder
    (target / "corpus.jsonl").write_bytes((folder / "corpus.jsonl").read_bytes())
    asked = (folder / "queries.jsonl").read_text().splitlines()[::4]
    names = {str(json.loads(line)["_id"]) for line in asked}
    heading, *judged = (folder / "qrels.tsv").read_text().splitlines()
    (target / "queries.jsonl").write_text("\n".join(asked))
    kept = [line for line in judged if line.split("\t")[0] in names]
    (target / "qrels.tsv").write_text("\n".join([heading, *kept]))
    return target


def reference(collection: Collection) -> float:
    """The library we are measured against, on the same text with the same stemmer."""
    stemmer = Stemmer.Stemmer("english")
    names, texts = list(collection.documents), list(collection.documents.values())
    options = {"stopwords": "en", "stemmer": stemmer, "show_progress": False}
    index = bm25s.BM25(k1=K1, b=B)
    index.index(bm25s.tokenize(texts, **options), show_progress=False)
    asked = bm25s.tokenize(list(collection.queries.values()), **options)
    found, _ = index.retrieve(asked, k=100, show_progress=False)
    run = {q: [names[n] for n in row] for q, row in zip(collection.queries, found.tolist(), strict=True)}
    return ndcg(run, collection.judgements)


@pytest.mark.parametrize("name", ["cranfield", "cisi"])
async def test_words_match_bm25s_and_both_legs_together_are_at_least_as_good_as_either(
    name: str, tmp_path: Path
):
    folder = part_of(COLLECTIONS / name, tmp_path)
    figures = await asyncio.to_thread(catchment, "bench", "retrieval", "--collection", str(folder))
    theirs = await asyncio.to_thread(reference, load_collection(folder))
    legs = "; ".join(f"{leg} nDCG@10 {values['ndcg@10']:.4f}" for leg, values in figures.items())
    print(f"\n{name}: {legs}; bm25s {theirs:.4f}")
    assert set(figures) == {"dense", "bm25", "hybrid"}
    assert set(figures["hybrid"]) == {"ndcg@10", "recall@100", "mrr"}
    assert figures["hybrid"]["ndcg@10"] >= max(figures["dense"]["ndcg@10"], figures["bm25"]["ndcg@10"])
    assert figures["bm25"]["ndcg@10"] == pytest.approx(theirs, abs=0.01)


# -- speed


async def test_search_latency_is_printed_beside_bare_queries():
    """The aim is p50 ≤ 8 ms, p99 ≤ 25 ms and 1.5 times the bare legs on an idle machine: what was reached is printed, and stands
    in wiki/figures.md. What is held here is a ratio, because it is the same on any machine.
    """
    chunks, queries = (100_000, 150) if FULL else (5_000, 8)
    figures = await asyncio.to_thread(
        catchment, "bench", "search", "--chunks", str(chunks), "--queries", str(queries)
    )
    busy = os.getloadavg()[0]
    print(f"\nsearch at {chunks} chunks, load {busy:.1f}: {json.dumps(figures)}")
    assert figures.pop("chunks") == chunks
    assert set(figures) == {"rare", "middling", "frequent", "mixed"}
    for kind, times in figures.items():
        assert set(times) == {"search", "bareIndex", "bareLegs"}, kind
        ratio = times["search"]["p50"] / times["bareLegs"]["p50"]
        reached = times["search"]["p50"] <= 8 and times["search"]["p99"] <= 25 and ratio <= 1.5
        print(f"{kind}: {ratio:.2f} times the bare legs, the aim is {'' if reached else 'not '}reached")
        if FULL:
            assert ratio <= 2, kind


# -- plans


async def test_the_dense_leg_uses_its_indexes(world: World) -> None:
    vector = (await world.synthetic.embed([world.synthetic.query("mixed")]))[0]
    plan = await nearest_plan(world, world.large[0], vector, indexed=True)
    assert f"Index Scan using {index_name(world.synthetic.model)}" in plan
    assert "vector_tail" in plan
    assert not SCANS.search(plan), plan


async def test_a_small_mandates_vectors_are_found_by_its_key(world: World) -> None:
    vector = (await world.synthetic.embed(["x"]))[0]
    plan = await nearest_plan(world, world.small[0], vector, indexed=False)
    assert "vector_tail" in plan
    assert not SCANS.search(plan), plan


async def test_the_lexical_leg_uses_its_indexes(world: World) -> None:
    parameters = {"mandate_id": world.large[0], "terms": ["one", "two"]}
    plan = await prepared_plan(world, world.large[0], repository._POSTINGS, parameters)
    assert "posting_pkey" in plan
    assert not SCANS.search(plan.replace("Seq Scan on segment", "")), plan  # a handful of rows


async def test_candidates_are_looked_up_by_key(world: World) -> None:
    view = View(world.large[0], None, Filters(tags=("tenth",)))
    parameters = {**view.parameters, "numbers": "{}", "model": "m", "query": None}
    plan = await prepared_plan(world, world.large[0], view.sql.visible.decode(), parameters)
    for index in ("chunk_number_lookup", "chunk_text_hash", "document_pkey", "text_vector_pkey"):
        assert index in plan
    assert not SCANS.search(plan), plan


async def test_a_page_of_hits_is_looked_up_by_key(world: World) -> None:
    view = View(world.large[0], None, Filters())
    parameters = {**view.parameters, "numbers": "{1,2,3}"}
    plan = await prepared_plan(world, world.large[0], view.sql.page.decode(), parameters)
    for index in ("chunk_number_lookup", "document_pkey"):
        assert index in plan
    assert not SCANS.search(plan), plan


async def test_the_state_of_a_mandate_costs_a_few_hops(world: World) -> None:
    model = world.synthetic.model
    parameters = {"mandate_id": world.large[0], "model": model, "index": index_name(model)}
    plan = await prepared_plan(world, world.large[0], repository._STATE, parameters)
    assert plan.count("Scan using chunk_language") == 2, plan
    assert "vector_settled" in plan
    assert not SCANS.search(plan.replace("Seq Scan on segment", "")), plan  # a handful of rows


# -- recall


async def test_recall_in_large_mandates(world: World) -> None:
    found = [await recall(world, mandate_id, QUERIES) for mandate_id in world.large]
    print(f"recall@10 of {LARGE} chunks beside as many of another mandate: {found}")
    assert min(found) >= 0.95


async def test_recall_in_small_mandates(world: World) -> None:
    found = [await recall(world, mandate_id, 2) for mandate_id in world.small]
    print(f"recall@10 of {len(found)} mandates with {SMALL} chunks: {np.mean(found):.3f}")
    assert min(found) >= 0.95


@pytest.mark.parametrize("tag", ["tenth", "hundredth"])
async def test_recall_through_a_filter(world: World, tag: str) -> None:
    found = await recall(world, world.large[0], QUERIES // 3, tag)
    print(f"recall@10 of the {tag} part of {LARGE} chunks: {found:.3f}")
    assert found >= 0.95


async def test_the_effort_of_an_index_scan_grows_as_the_share_of_the_index_shrinks(world: World) -> None:
    async def state_of(mandate_id: UUID) -> repository.State:
        return await world.db.read(
            mandate_id,
            lambda connection: repository.read_state(connection, mandate_id, world.synthetic.model),
        )

    state = await state_of(world.large[0])
    assert state.share == pytest.approx(0.5, abs=0.02)
    assert state.languages == ["en"]
    state = await state_of(world.small[0])
    assert state.share is None


async def test_small_mandates_stay_out_of_the_index(world: World) -> None:
    for mandate_id, expected in ((world.large[0], LARGE), (world.large[1], LARGE), (world.small[0], 0)):
        async with world.db.tenant_session(mandate_id) as session:
            settled = await session.scalar(sql("SELECT count(*) FROM text_vector WHERE settled"))
        assert settled == expected


# -- the boundary


def test_ten_thousand_texts_come_back_from_inside_their_boundary():
    chance = random.Random(5)
    alphabet = [
        *"⟪⟫⟦⟧U+0123456789ABCDEF \n\t",
        *"".join((*HIDDEN.values(), *INJECTIONS.values())),
        "\ud800",
        "é",
    ]
    known = [*HIDDEN.values(), *INJECTIONS.values()]
    for number in range(10_000):
        said = "".join(chance.choices(alphabet, k=chance.randrange(200)))
        if number % 2:
            said = chance.choice(known) + said + chance.choice(known)
        if number % 7 == 0:
            said = wrap(said, {"title": said})  # a wrap inside a wrap is text like any other
        wrapped = wrap(said, {"title": said, "source": "paste"})
        assert unwrap(wrapped) == said
        assert wrapped.count("⟪") == wrapped.count("⟫") == 2
        assert wrapped.startswith("⟪untrusted ")
        word = wrapped.rsplit("⟪end ", 1)[1].rstrip("⟫")
        assert wrapped.count(word) == 2
    print(f"\n10,000 texts wrapped and unwrapped, made of {len(known)} known attempts and their characters")


# -- one corpus, three ways in


async def test_a_question_finds_the_page_and_the_picture_shows_the_region(db, tenant, house):
    door = await house.start_gateway()
    house.start_worker()
    async with door.client(tenant.key) as client:
        await upload(
            client, make_pdf(5, {3: "the penstock valve is inspected on the ninth of May"}), scope="mandate"
        )
        await settled(db, tenant, 60)
        answer = (
            await client.get("/v1/search", params={"q": "when is the penstock valve inspected?"})
        ).json()
        hit = answer["hits"][0]
        assert "penstock" in hit["text"]
        assert (hit["citation"]["locator"]["kind"], hit["citation"]["locator"]["page"]) == ("pdf", 4)
        assert set(hit["citation"]) == {
            *("documentId", "chunkId", "sourceKind", "title", "uri"),
            *("revision", "connectionId", "contentHash", "verifiedAt", "locator"),
        }
        assert unwrap(hit["promptText"]) == hit["text"]
        page = await client.get(
            f"/v1/documents/{hit['documentId']}/pages/4.png", params={"chunk": hit["chunkId"]}
        )
        assert (page.status_code, page.content[:8]) == (200, b"\x89PNG\r\n\x1a\n")
        plain = await client.get(f"/v1/documents/{hit['documentId']}/pages/4.png")
        assert plain.content != page.content, "the region is drawn"
        empty = await client.get("/v1/search", params={"q": "?!…"})
        assert (empty.status_code, empty.json()["code"]) == (400, "search.query_empty")


async def test_an_mcp_client_searches_and_cites_and_a_key_without_the_role_is_refused(db, tenant, house):
    door = await house.start_gateway()
    house.start_worker()
    async with door.client(tenant.key) as client:
        body = {
            "sourceKind": "paste",
            "sourceId": "n",
            "title": "Note",
            "content": {"text": "The spare key hangs in the mill."},
        }
        handle = await client.post("/v1/ingestions", json=body)
        assert handle.status_code == 202
        await settled(db, tenant, 60)
        writer = await client.post("/v1/keys", json={"name": "writer", "scopes": ["write"]})
    headers = {"Authorization": f"Bearer {tenant.key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(f"{door.url}/mcp", http_client=http)) as agent,
    ):
        tools = {tool.name for tool in (await agent.list_tools()).tools}
        assert tools == {"knowledge_search", "knowledge_context", "knowledge_ingest", "knowledge_reindex"}
        found = await agent.call_tool("knowledge_search", {"query": "where is the spare key?"})
        first = found.content[0].text
        print(f"\nMCP: {first.splitlines()[0]}")
        assert first.startswith(f"[entry {handle.json()['documentId']} · chunk ")
        assert first.splitlines()[0].endswith("] Note")
        assert "mill" in first
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {writer.json()['key']}"}) as http:
        refused = await http.post(f"{door.url}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert refused.status_code == 403
