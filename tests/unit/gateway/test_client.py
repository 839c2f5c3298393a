"""The Python client against a real server on the loopback: retries, typed errors, and answers from a newer service."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from gateway import errors
from gateway.client import CatchmentClient, NotFinished, ServiceError, SyncCatchmentClient, problem
from gateway.db import new_id
from gateway.ingestion.schemas import IngestionHandle

Answer = tuple[int, Any, dict[str, str]]
USER = new_id()


class Service:
    """Answers with what it is told, in turn; the last answer stays. Requests are kept as `METHOD target`."""

    def __init__(self) -> None:
        self.url = ""
        self.answers: list[Answer] = []
        self.requests: list[tuple[str, dict[str, str], bytes]] = []

    def say(self, body: Any, status: int = 200, **headers: str) -> None:
        self.answers.append((status, body, headers))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            self.requests.append((lines[0].removesuffix(" HTTP/1.1"), headers, body))
            status, content, extra = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            data = json.dumps(content).encode()
            head = [f"HTTP/1.1 {status} X", f"Content-Length: {len(data)}", "Connection: close"]
            head += [f"{name}: {value}" for name, value in extra.items()]
            writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + data)
            await writer.drain()
        finally:
            writer.close()


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    service = Service()
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield service


@pytest.fixture
async def client(service: Service) -> AsyncIterator[CatchmentClient]:
    async with CatchmentClient(service.url, "ck_key", act_as=USER) as client:
        yield client


def handle(**fields: Any) -> dict[str, Any]:
    return {
        "jobId": str(new_id()), "documentId": str(new_id()), "outcome": "queued", "status": "pending", **fields
    }  # fmt: skip


def status(name: str) -> dict[str, Any]:
    return {
        "jobId": str(new_id()), "documentId": None, "kind": "ingest", "lane": "interactive", "status": name,
        "reason": None, "error": None, "attempts": 1, "createdAt": "2026-01-01T00:00:00Z", "finishedAt": None,
    }  # fmt: skip


async def test_a_busy_service_is_asked_again_when_it_said_so(
    service: Service, client: CatchmentClient
) -> None:
    service.say({"code": "store.unavailable"}, 503, **{"Retry-After": "0"})
    service.say({"code": "store.unavailable"}, 503, **{"Retry-After": "0"})
    service.say(handle())
    assert (await client.ingest("text", source_id="s")).outcome == "queued"
    assert len(service.requests) == 3
    line, headers, body = service.requests[0]
    assert line == "POST /v1/ingestions"
    assert headers["authorization"] == "Bearer ck_key"
    assert headers["x-act-as-user"] == str(USER)
    assert json.loads(body) == {"sourceKind": "paste", "sourceId": "s", "content": {"text": "text"}}


async def test_it_gives_up_in_the_end_with_what_the_service_said(
    service: Service, client: CatchmentClient
) -> None:
    service.say(
        {"code": "store.unavailable", "detail": "The database does not answer."}, 503, **{"Retry-After": "0"}
    )
    with pytest.raises(errors.StoreUnavailable, match="database"):
        await client.search("q")
    assert len(service.requests) == 4


@pytest.mark.parametrize(
    ("code", "status_code", "kind"),
    [
        ("auth.required", 401, errors.NotAuthenticated),
        ("auth.forbidden", 403, errors.NotAllowed),
        ("erasure.held", 409, errors.LegalHold),
        ("not_found", 404, errors.NotFound),
        ("request.invalid", 422, errors.FieldsInvalid),
        ("request.invalid", 400, errors.InvalidRequest),
        ("search.query_empty", 400, errors.InvalidRequest),  # a code of its own, a kind we know
        ("content.too_large", 413, errors.TooLarge),
        ("teapot", 418, ServiceError),
    ],
)
async def test_a_problem_is_raised_as_the_error_it_names(
    service: Service, client: CatchmentClient, code: str, status_code: int, kind: type[errors.CatchmentError]
) -> None:
    service.say({"code": code, "detail": "Because.", "status": status_code, "requestId": "r-1"}, status_code)
    with pytest.raises(errors.CatchmentError, match="Because") as caught:
        await client.request("GET", "/documents")
    assert type(caught.value) is kind
    assert (caught.value.code, caught.value.extra["code"]) == (code, code)
    assert kind("another").code == kind.code, "the class keeps its own"
    assert caught.value.extra["requestId"] == "r-1"
    assert len(service.requests) == 1


def test_an_answer_that_is_no_problem_json_still_becomes_an_error() -> None:
    error = problem(httpx.Response(502, content=b"<html>bad gateway"))
    assert isinstance(error, ServiceError)
    assert "502" in error.detail
    assert error.code == "client.unknown_error"


async def test_a_newer_services_extra_fields_are_no_trouble(
    service: Service, client: CatchmentClient
) -> None:
    service.say(handle(colour="red"))
    assert (await client.ingest(b"\x00\x01", source_id="s", title="T")).status == "pending"
    assert json.loads(service.requests[0][2])["content"] == {"base64": "AAE="}


async def test_waiting_ends_with_the_job_however_it_ended(service: Service, client: CatchmentClient) -> None:
    for name in ("pending", "embedding", "failed"):
        service.say(status(name))
    assert (await client.wait(new_id(), seconds=5)).status == "failed"


async def test_waiting_gives_up_in_time(service: Service, client: CatchmentClient) -> None:
    service.say(status("pending"))
    with pytest.raises(NotFinished):
        await client.wait(new_id(), seconds=0.2)


async def test_a_skipped_request_has_no_job_to_wait_for(client: CatchmentClient) -> None:
    skipped = IngestionHandle(
        job_id=None, document_id=None, outcome="skipped", status="skipped", reason="quota"
    )
    with pytest.raises(errors.NotFound, match="quota"):
        await client.wait(skipped)


async def test_filters_travel_as_the_api_takes_them(service: Service, client: CatchmentClient) -> None:
    service.say({"queryId": str(new_id()), "tookMs": 1, "hits": []})
    await client.search("a b", limit=3, types=["rule", "note"], connectionId=None, origin="cli")
    assert service.requests[0][0] == "GET /v1/search?q=a+b&limit=3&types=rule&types=note&origin=cli"


async def test_the_synchronous_face_says_and_raises_the_same(service: Service) -> None:
    def work() -> None:
        with SyncCatchmentClient(service.url, "ck_key") as client:
            assert client.ingest("text", source_id="s").outcome == "queued"
            with pytest.raises(errors.NotFound):
                client.document(new_id())

    service.say(handle())
    service.say({"code": "not_found"}, 404)
    await asyncio.to_thread(work)


def test_every_call_has_a_synchronous_twin() -> None:
    def calls(face: type[Any]) -> set[str]:
        return {name for name, value in vars(face).items() if callable(value) and name[0] != "_"}

    assert calls(CatchmentClient) - {"aclose"} == calls(SyncCatchmentClient) - {"close"}


@pytest.mark.parametrize("key", ["ck_schlüssel", "ck_two\nlines"])
def test_a_key_that_cannot_be_sent_is_refused_and_leaves_no_thread_behind(key: str) -> None:
    before = threading.active_count()
    with pytest.raises(errors.NotAuthenticated):
        SyncCatchmentClient("http://test", key)
    assert threading.active_count() == before
