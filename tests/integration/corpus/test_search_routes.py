"""Search over HTTP: its shape, its filters, and what it refuses."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import httpx
import pytest
from fastapi import FastAPI

from gateway import retrieval
from gateway.corpus.boundary import unwrap
from gateway.corpus.search_schemas import SearchOut
from gateway.db import Database
from gateway.tenancy import service
from tests.fixtures.tenants import TestMandate
from tests.integration.corpus.searching import Library


@pytest.fixture(scope="module")
async def answering(app: FastAPI) -> AsyncIterator[FastAPI]:
    """The gateway with what answers questions, wherever it is put together."""
    if hasattr(app.state, "query_log"):
        yield app
        return
    for router in retrieval.ROUTERS:
        app.include_router(router, prefix="/v1")
    async with retrieval.running(app):
        yield app


@pytest.fixture
async def http(answering: FastAPI, client: httpx.AsyncClient) -> httpx.AsyncClient:
    return client


@pytest.fixture
def library(db: Database, mandate: TestMandate) -> Library:
    return Library(db, mandate.id, {str(role): user for role, user in mandate.users.items()})


async def test_a_search_answers_as_the_contract_says(
    http: httpx.AsyncClient, library: Library, mandate: TestMandate
) -> None:
    loaded = await library.put(
        "The pump must be primed.", heading="Start", title="Manual", uri="https://example.org/m"
    )
    answer = await http.get("/v1/search", params={"q": "prime the pump"}, headers=mandate.auth("member"))
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert set(body) == {"queryId", "tookMs", "hits", "answered", "degraded"}
    assert isinstance(body["tookMs"], int)
    [hit] = body["hits"]
    assert set(hit) == {
        *("chunkId", "documentId", "score", "text", "promptText", "title", "citation", "sources"),
    }
    assert hit["chunkId"] == str(loaded.chunk_ids[0])
    assert unwrap(hit["promptText"]) == hit["text"] == "The pump must be primed."
    assert "Start" in hit["promptText"]
    assert set(hit["citation"]) == {
        *("documentId", "chunkId", "sourceKind", "title", "uri", "revision", "connectionId", "contentHash"),
        *("verifiedAt", "locator"),
    }
    assert hit["sources"] == [hit["citation"]]
    SearchOut.model_validate(body)


async def test_an_answer_says_when_nothing_here_is_about_the_question(
    http: httpx.AsyncClient, library: Library, mandate: TestMandate
) -> None:
    await library.put("The pump must be primed.", "The valve is red.", title="Manual")
    for question, answered in (("prime the pump", True), ("xyzzyqwert plugh", False), ("zzqq flurbo", False)):
        body = (await http.get("/v1/search", params={"q": question}, headers=mandate.auth())).json()
        assert (body["answered"], len(body["hits"])) == (answered, 2)


async def test_filters_travel_in_the_query_string(
    http: httpx.AsyncClient, library: Library, mandate: TestMandate
) -> None:
    await library.put("pump rule", type="rule", tags=["a"])
    await library.put("pump note", type="note", tags=["b", "c,d"])
    await library.put("pump page", source_kind="web_page", source_id="w")
    cases = {
        "types=rule": {"pump rule"},
        "types=rule,note": {"pump rule", "pump note"},
        "types=rule&types=note": {"pump rule", "pump note"},
        "sourceKinds=web_page": {"pump page"},
        "sourceKinds=web_page,%20upload&sourceKinds=entry": {"pump page"},
        "sourceKinds=": {"pump rule", "pump note", "pump page"},
        "sourceId=w": {"pump page"},
        "tags=a,b": {"pump rule", "pump note"},
        "tags=a,%20b": {"pump rule", "pump note"},
        "tags=c,d": {"pump note"},
        "tags=": {"pump rule", "pump note", "pump page"},
        "from=2020-01-01": {"pump rule", "pump note", "pump page"},
        "to=2020-01-01T00:00:00Z": set(),
        "to=2020-01-01": set(),
        f"to={datetime.now(UTC).date()}": {"pump rule", "pump note", "pump page"},  # that day is meant too
        "from=2020-01-01T00:00:00%2B02:00&types=note": {"pump note"},
        "method=rrf&origin=cli&limit=100": {"pump rule", "pump note", "pump page"},
        f"connectionId={mandate.id}": set(),
        f"featureInstanceId={mandate.id}": set(),
    }
    for filters, expected in cases.items():
        answer = await http.get(f"/v1/search?q=pump&{filters}", headers=mandate.auth())
        assert answer.status_code == 200, answer.text
        assert {hit["text"] for hit in answer.json()["hits"]} == expected, filters


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("q=", 400, "search.query_empty"),
        ("q=%3F%21", 400, "search.query_empty"),
        (f"q={'x' * 1001}", 400, "search.query_too_long"),
        ("q=x&from=2026-02-01&to=2026-01-01", 400, "search.invalid"),
        ("q=x&sourceId=a%00b", 400, "search.invalid"),
        ("", 422, "request.invalid"),
        ("q=x&limit=0", 422, "request.invalid"),
        ("q=x&limit=101", 422, "request.invalid"),
        ("q=x&limit=many", 422, "request.invalid"),
        ("q=x&connectionId=nonsense", 422, "request.invalid"),
        ("q=x&method=magic", 422, "request.invalid"),
        ("q=x&sourceKinds=web_pages", 422, "request.invalid"),
        ("q=x&sourceKinds=web_page,uploads", 422, "request.invalid"),
        ("q=x&origin=elsewhere", 422, "request.invalid"),
        ("q=x&colour=red", 422, "request.invalid"),
    ],
)
async def test_what_cannot_be_asked_gets_a_clear_answer(
    http: httpx.AsyncClient, mandate: TestMandate, query: str, status: int, code: str
) -> None:
    answer = await http.get(f"/v1/search?{query}", headers=mandate.auth())
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json()["detail"]


async def test_a_search_needs_a_key_that_may_read(
    http: httpx.AsyncClient, db: Database, mandate: TestMandate
) -> None:
    assert (await http.get("/v1/search?q=x")).status_code == 401
    async with db.tenant_session(mandate.id) as session:
        _, key = await service.make_key(session, "writes only", ("write",), user_id=mandate.users["member"])
    refused = await http.get("/v1/search?q=x", headers={"Authorization": f"Bearer {key}"})
    assert (refused.status_code, refused.json()["code"]) == (403, "auth.forbidden")


async def test_a_key_finds_what_its_user_may_see(
    http: httpx.AsyncClient, library: Library, mandate: TestMandate
) -> None:
    await library.put("diary of the owner", scope="personal", user_id=mandate.users["owner"])

    async def found(headers: dict[str, str]) -> int:
        answer = await http.get("/v1/search?q=diary", headers=headers)
        return len(answer.json()["hits"])

    assert await found(mandate.auth("owner")) == 1
    assert await found(mandate.auth("admin")) == 0
    assert await found(mandate.auth("service")) == 0
    acting = {**mandate.auth("service"), "X-Act-As-User": str(mandate.users["owner"])}
    assert await found(acting) == 1
