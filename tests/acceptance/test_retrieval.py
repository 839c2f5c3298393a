"""Retrieval, shown on real processes. Figures are printed (`pytest -s`); `CATCHMENT_ACCEPTANCE=full` runs full sizes.

EXPLAIN of both legs and recall at scale stand in tests/integration/corpus/test_search_at_scale.py, which reads the same
switch; the 10,000 examples of wrap and unwrap in tests/unit/gateway/corpus/test_boundary.py.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.acceptance.test_door import make_pdf, settled, upload
from tests.fixtures.processes import REPOSITORY, House

FULL = os.environ.get("CATCHMENT_ACCEPTANCE") == "full"
COLLECTIONS = REPOSITORY.parent / "shared" / "data"


@pytest.fixture
async def house(database_urls, redis_url, tmp_path):
    house = House(database_urls.runtime_url, redis_url, tmp_path, CATCHMENT_EMBEDDER="wordllama")
    yield house
    house.stop()


def catchment(*arguments: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-m", "gateway", *arguments, "--json"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["cranfield", "cisi"] if FULL else ["cranfield"])
async def test_hybrid_is_at_least_as_good_as_either_leg(name: str):
    folder = COLLECTIONS / name
    assert folder.is_dir(), f"the labelled collection {name} belongs beside the project, in ../shared/data"
    figures = await asyncio.to_thread(catchment, "bench", "retrieval", "--collection", str(folder))
    print(
        f"\n{name}: " + "; ".join(f"{leg} nDCG@10 {values['ndcg@10']:.4f}" for leg, values in figures.items())
    )
    assert set(figures) == {"dense", "bm25", "hybrid"}
    assert figures["hybrid"]["ndcg@10"] >= max(figures["dense"]["ndcg@10"], figures["bm25"]["ndcg@10"])


async def test_search_latency_is_printed_beside_bare_queries():
    chunks = 100_000 if FULL else 5_000
    figures = await asyncio.to_thread(catchment, "bench", "search", "--chunks", str(chunks))
    print(f"\nsearch at {chunks} chunks, load {os.getloadavg()[0]:.1f}: {json.dumps(figures)}")
    assert figures["chunks"] == chunks
    assert len(figures) >= 5


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
        assert hit["text"] in hit["promptText"]
        page = await client.get(
            f"/v1/documents/{hit['documentId']}/pages/4.png", params={"chunk": hit["chunkId"]}
        )
        assert (page.status_code, page.content[:8]) == (200, b"\x89PNG\r\n\x1a\n")
        empty = await client.get("/v1/search", params={"q": "?!…"})
        assert (empty.status_code // 100, "code" in empty.json()) == (4, True)


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
        assert (await client.post("/v1/ingestions", json=body)).status_code == 202
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
        assert first.startswith("[entry ")
        assert "· chunk " in first.splitlines()[0]
        assert "mill" in first
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {writer.json()['key']}"}) as http:
        refused = await http.post(f"{door.url}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert refused.status_code == 403


def test_the_collections_are_where_the_tests_look():
    assert Path(COLLECTIONS).is_dir()
