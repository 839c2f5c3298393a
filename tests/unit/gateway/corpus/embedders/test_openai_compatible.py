"""The client of an OpenAI-compatible service, against a real server on loopback that misbehaves on demand."""

import asyncio
import base64
import json
import logging
import math
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from itertools import chain
from typing import Any

import numpy as np
import pytest

from gateway.corpus.embedders import EmbedderRefused, EmbedderUnavailable
from gateway.corpus.embedders import openai_compatible as module
from gateway.corpus.embedders.openai_compatible import OpenAiEmbedder

WIDTH = 4
KEY = "sk-very-secret"
Answer = Callable[[dict[str, Any]], bytes]


def http(status: int, body: bytes, headers: str = "") -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def failure(status: int, code: str = "", headers: str = "", message: str = "no") -> Answer:
    body = json.dumps({"error": {"message": message, "type": "some_error", "code": code or None}}).encode()
    return lambda _: http(status, body, headers)


def vector_of(text: str) -> list[float]:
    return [float(len(text)), float(sum(text.encode()) % 97), 1.0, -2.0]


def data(request: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"object": "embedding", "index": n, "embedding": vector_of(t)} for n, t in enumerate(request["input"])
    ]


def listing(items: list[dict[str, Any]]) -> bytes:
    return http(200, json.dumps({"object": "list", "data": items, "usage": {"total_tokens": 1}}).encode())


def good(request: dict[str, Any]) -> bytes:
    assert request["encoding_format"] == "base64"
    for item in (items := data(request)):
        item["embedding"] = base64.b64encode(np.array(item["embedding"], "<f4").tobytes()).decode()
    return listing(items)


def expected(texts: list[str]) -> np.ndarray:
    vectors = np.array([vector_of(text) for text in texts])
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class Service:
    """Answers with the scripted answers first, then as it should."""

    def __init__(self, script: list[Answer], usual: Answer = good) -> None:
        self.script, self.usual = script, usual
        self.requests: list[dict[str, Any]] = []
        self.heads: list[str] = []
        self.times: list[float] = []
        self.url = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(
                    int(line[15:])
                    for line in head.split("\r\n")
                    if line.lower().startswith("content-length:")
                )
                self.times.append(asyncio.get_running_loop().time())
                self.heads.append(head)
                self.requests.append(json.loads(await reader.readexactly(length)))
                answer = self.script.pop(0) if self.script else self.usual
                writer.write(answer(self.requests[-1]))
                await writer.drain()
                if answer in (cut, silent):
                    break
        except asyncio.IncompleteReadError:
            pass  # the client has gone
        finally:
            writer.close()


def cut(request: dict[str, Any]) -> bytes:
    return good(request)[:-20]


def silent(_: dict[str, Any]) -> bytes:
    return b""


@asynccontextmanager
async def serving(*script: Answer, usual: Answer = good) -> AsyncIterator[tuple[Service, OpenAiEmbedder]]:
    service = Service(list(script), usual)
    server = await asyncio.start_server(service.handle, "127.0.0.1", 0)
    service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    embedder = OpenAiEmbedder(
        "test-model",
        dimensions=WIDTH,
        price=Decimal(1),
        api_key=KEY,
        base_url=service.url + "/",
        first_pause=0.001,
    )
    try:
        yield service, embedder
    finally:
        await embedder.aclose()
        server.close()
        await server.wait_closed()


async def test_texts_become_unit_vectors_in_one_request():
    async with serving() as (service, embedder):
        vectors = await embedder.embed(["lift", "drag", "größe"])
    assert np.allclose(vectors, expected(["lift", "drag", "größe"]), atol=1e-6)
    assert vectors.dtype == np.float32
    assert service.requests == [
        {"model": "test-model", "encoding_format": "base64", "input": ["lift", "drag", "größe"]}
    ]
    assert service.heads[0].startswith("POST /v1/embeddings ")
    assert f"authorization: Bearer {KEY}".lower() in service.heads[0].lower()


async def test_vectors_as_plain_numbers_are_taken_too():
    async with serving(usual=lambda request: listing(data(request))) as (_, embedder):
        assert np.allclose(await embedder.embed(["lift"]), expected(["lift"]), atol=1e-6)


async def test_vectors_are_placed_by_index_not_by_order():
    async with serving(usual=lambda request: listing(data(request)[::-1])) as (_, embedder):
        assert np.allclose(await embedder.embed(["a", "bb", "ccc"]), expected(["a", "bb", "ccc"]), atol=1e-6)


async def test_blank_and_odd_texts_are_answered_without_troubling_the_service():
    async with serving() as (service, embedder):
        vectors = await embedder.embed(["", "lift", " \n", "\ud800"])
    assert [request["input"] for request in service.requests] == [["lift", "?"]]
    assert vectors[0].tolist() == vectors[2].tolist() == [1, 0, 0, 0]
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)


async def test_requests_are_bounded_by_count_and_by_tokens(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_MAX_TOKENS_PER_REQUEST", 50)
    texts = [f"word {n}" for n in range(600)] + ["word " * 60, "word"]
    monkeypatch.setattr(OpenAiEmbedder, "max_batch", 10)
    async with serving() as (service, embedder):
        vectors = await embedder.embed(texts)
    assert np.allclose(vectors, expected(texts), atol=1e-6)
    assert list(chain.from_iterable(request["input"] for request in service.requests)) == texts
    for request in service.requests:
        assert len(request["input"]) <= 10
        assert len(request["input"]) == 1 or embedder.count_tokens(request["input"]) <= 50


async def test_a_narrower_vector_is_asked_for_where_the_model_can():
    async with serving() as (service, _):
        embedder = OpenAiEmbedder(
            "text-embedding-3-small", dimensions=WIDTH, price=Decimal(1), api_key=None, base_url=service.url
        )
        await embedder.embed(["lift"])
        await embedder.aclose()
    assert service.requests[0]["dimensions"] == WIDTH
    assert "authorization" not in service.heads[0].lower()


@pytest.mark.parametrize(
    "trouble",
    [
        failure(429),
        failure(500),
        failure(503),
        failure(408),
        lambda _: http(502, b"<html>bad gateway</html>"),
        cut,
        silent,
        lambda _: http(200, b"{"),
        lambda _: http(200, b'{"data": 7}'),
        lambda request: listing(data(request)[:-1]),
        lambda request: listing(data(request) * 2),
        lambda request: listing([{**item, "index": 0} for item in data(request)]),
        lambda request: listing([{**item, "embedding": "!!!"} for item in data(request)]),
        lambda request: listing([{**item, "embedding": [math.nan] * WIDTH} for item in data(request)]),
    ],
)
async def test_what_may_pass_is_tried_again(trouble: Answer):
    async with serving(trouble, trouble, trouble) as (service, embedder):
        assert np.allclose(await embedder.embed(["a", "bb"]), expected(["a", "bb"]), atol=1e-6)
    assert len(service.requests) == 4


async def test_what_does_not_pass_is_given_back_as_unavailable():
    async with serving(usual=failure(500)) as (service, embedder):
        with pytest.raises(EmbedderUnavailable, match="500") as caught:
            await embedder.embed(["a"])
    assert len(service.requests) == 5
    assert caught.value.retry_after is None
    assert caught.value.retryable


async def test_a_service_that_is_not_there_is_unavailable():
    async with serving() as (service, _):
        pass
    embedder = OpenAiEmbedder(
        "m", dimensions=WIDTH, price=Decimal(1), api_key=None, base_url=service.url, first_pause=0.001
    )
    with pytest.raises(EmbedderUnavailable):
        await embedder.embed(["a"])
    await embedder.aclose()


@pytest.mark.parametrize("header", ["Retry-After: 0.3\r\n", "Retry-After-Ms: 300\r\nRetry-After: 9\r\n"])
async def test_a_pause_the_service_asks_for_is_kept(header: str):
    async with serving(failure(429, headers=header)) as (service, embedder):
        await embedder.embed(["a"])
    assert service.times[1] - service.times[0] >= 0.3


async def test_a_long_pause_is_left_to_the_caller():
    async with serving(failure(429, headers="Retry-After: 120\r\n")) as (service, embedder):
        with pytest.raises(EmbedderUnavailable) as caught:
            await embedder.embed(["a"])
    assert len(service.requests) == 1
    assert caught.value.retry_after == 120


async def test_a_pause_may_be_given_as_a_date():
    date = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    async with serving(failure(503, headers=f"Retry-After: {date}\r\n")) as (_, embedder):
        with pytest.raises(EmbedderUnavailable) as caught:
            await embedder.embed(["a"])
    assert caught.value.retry_after == pytest.approx(3600, abs=10)


async def test_an_empty_account_is_not_hammered():
    async with serving(usual=failure(429, code="insufficient_quota")) as (service, embedder):
        with pytest.raises(EmbedderUnavailable, match="insufficient_quota") as caught:
            await embedder.embed(["a"])
    assert len(service.requests) == 1
    assert caught.value.retry_after == 300


@pytest.mark.parametrize(
    ("status", "code"), [(401, "invalid_api_key"), (403, "forbidden"), (404, "model_not_found")]
)
async def test_what_will_not_pass_is_refused_at_once(status: int, code: str):
    async with serving(usual=failure(status, code)) as (service, embedder):
        with pytest.raises(EmbedderRefused, match=f"{status} .{code}") as caught:
            await embedder.embed(["a", "b"])
    assert len(service.requests) == 1
    assert caught.value.positions == ()


async def test_vectors_of_another_width_are_refused():
    async with serving(usual=lambda request: listing([{"index": 0, "embedding": [1.0, 2.0]}])) as (
        _,
        embedder,
    ):
        with pytest.raises(EmbedderRefused, match="2 dimensions where 4"):
            await embedder.embed(["a"])


async def test_one_text_that_is_refused_is_named_and_the_others_are_not_blamed():
    def picky(request: dict[str, Any]) -> bytes:
        return failure(400)(request) if "bad" in request["input"] else good(request)

    texts = [f"t{n}" for n in range(20)]
    texts[3] = texts[17] = "bad"
    async with serving(usual=picky) as (service, embedder):
        with pytest.raises(EmbedderRefused) as caught:
            await embedder.embed(texts)
    assert caught.value.positions == (3, 17)
    assert len(service.requests) < 20


async def test_a_service_that_refuses_everything_is_soon_left_alone():
    async with serving(usual=failure(400, "unsupported_parameter")) as (service, embedder):
        with pytest.raises(EmbedderRefused, match="unsupported_parameter") as caught:
            await embedder.embed([f"t{n}" for n in range(200)])
    assert caught.value.positions == ()
    assert len(service.requests) < 40


@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
async def test_neither_text_nor_key_reaches_a_log_or_an_error(status: int, caplog: pytest.LogCaptureFixture):
    text = "the patient is called Rosa"
    quoting = good if status == 200 else failure(status, code=text, message=f"{text} {KEY}")
    with caplog.at_level(logging.DEBUG):
        async with serving(usual=quoting) as (_, embedder):
            try:
                await embedder.embed([text])
            except (EmbedderRefused, EmbedderUnavailable) as error:
                shown = (
                    "".join(traceback.format_exception(error)) + repr(error) + str(error.problem("/", "1"))
                )
                assert "Rosa" not in shown
                assert KEY not in shown
            else:
                assert status == 200
    assert "Rosa" not in caplog.text
    assert KEY not in caplog.text
    assert KEY not in repr(vars(embedder))


async def test_tokens_are_counted_as_the_service_does():
    embedder = OpenAiEmbedder("m", dimensions=WIDTH, price=Decimal(1), api_key=None)
    assert embedder.count_tokens(["hello world", "", "<|endoftext|>"]) == 2 + 0 + 7
    await embedder.aclose()
