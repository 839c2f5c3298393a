"""A configured reranker has its say on every way in, and costs nothing but its opinion when it fails."""

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI, Request
from pydantic import SecretStr

from gateway.app import create_app
from gateway.db import Database
from gateway.errors import ConfigurationError
from gateway.mcp_tools import TOOLS, call
from gateway.settings import Settings
from gateway.tenancy.access import authenticate
from tests.fixtures.tenants import TestMandate
from tests.integration.retrieval.conftest import Shelf
from tests.integration.retrieval.reranking import Opinion, opinions

LONG = "Refunds, refunds, refunds: how refunds are paid out, and when refunds are paid out, is written here."
SHORT = "Refunds are paid out on Fridays, as everybody knows who ever waited for one."


@pytest.fixture
async def opinion() -> AsyncIterator[Opinion]:
    async with opinions() as service:
        yield service


@pytest.fixture
async def app(settings: Settings, opinion: Opinion) -> AsyncIterator[FastAPI]:
    changes = {
        "reranker": "openai:second-look",
        "openai_base_url": opinion.url,
        "openai_api_key": SecretStr("rk-1"),
    }
    gateway = create_app(settings.model_copy(update=changes))
    async with gateway.router.lifespan_context(gateway):
        yield gateway


async def test_the_order_is_the_rerankers_on_every_way_in(
    app: FastAPI,
    client: httpx.AsyncClient,
    mandate: TestMandate,
    shelf: Shelf,
    opinion: Opinion,
    db: Database,
) -> None:
    await shelf.put(mandate.id, "long", LONG)
    await shelf.put(mandate.id, "short", SHORT)
    opinion.scores = lambda texts: [0.9 if text == SHORT else 0.1 for text in texts]
    q = "when are refunds paid out"
    found = (await client.get("/v1/search", params={"q": q}, headers=mandate.auth())).json()["hits"]
    assert [(hit["text"], hit["score"]) for hit in found] == [(SHORT, 0.9), (LONG, 0.1)]
    context = (await client.post("/v1/context", json={"query": q}, headers=mandate.auth())).json()
    assert context["text"].index(SHORT) < context["text"].index(LONG)
    principal = await authenticate(db, {"authorization": f"Bearer {mandate.keys['owner']}"}, {})
    request = Request({"type": "http", "app": app})
    by_mcp = await call(TOOLS["knowledge_search"], request, principal, {"query": q})
    assert by_mcp.structured_content["hits"][0]["score"] == 0.9
    assert opinion.asked
    assert {(body["model"], key) for body, key in opinion.asked} == {("second-look", "Bearer rk-1")}


async def test_a_reranker_that_fails_leaves_the_order_as_it_was(
    app: FastAPI, client: httpx.AsyncClient, mandate: TestMandate, shelf: Shelf, opinion: Opinion
) -> None:
    await shelf.put(mandate.id, "long", LONG)
    opinion.scores = None
    found = await client.get("/v1/search", params={"q": "refunds"}, headers=mandate.auth())
    assert [hit["text"] for hit in found.json()["hits"]] == [LONG]


async def test_a_reranker_that_cannot_be_built_is_said_at_the_start(settings: Settings) -> None:
    gateway = create_app(settings.model_copy(update={"reranker": "magic"}))
    with pytest.raises(ConfigurationError, match="magic"):
        async with gateway.router.lifespan_context(gateway):
            pass
