"""A second opinion, when there is one."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from gateway.corpus.rerankers import CrossEncoderReranker, HttpReranker, RerankerUnavailable, build_reranker
from gateway.errors import ConfigurationError


def service(answer: httpx.Response | Exception, seen: list[httpx.Request] | None = None) -> HttpReranker:
    def respond(request: httpx.Request) -> httpx.Response:
        if seen is not None:
            seen.append(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return HttpReranker("m", "http://reranker/v1/", "key", transport=httpx.MockTransport(respond))


async def test_scores_come_back_in_the_order_of_the_texts() -> None:
    seen: list[httpx.Request] = []
    results = [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]
    reranker = service(httpx.Response(200, json={"results": results}), seen)
    assert await reranker.scores("q", ["a", "b"]) == [0.1, 0.9]
    assert str(seen[0].url) == "http://reranker/v1/rerank"
    assert json.loads(seen[0].content) == {"model": "m", "query": "q", "documents": ["a", "b"], "top_n": 2}
    assert seen[0].headers["authorization"] == "Bearer key"
    await reranker.aclose()


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(500),
        httpx.Response(200, text="not json"),
        httpx.Response(200, json={}),
        httpx.Response(200, json={"results": [{"index": 0, "relevance_score": 1}]}),
        httpx.Response(200, json={"results": [{"index": i, "relevance_score": None} for i in (0, 1)]}),
        httpx.Response(
            200,
            text='{"results": [{"index": 0, "relevance_score": NaN}, {"index": 1, "relevance_score": 1}]}',
        ),
        httpx.ConnectError("away"),
        httpx.ReadTimeout("slow"),
    ],
)
async def test_an_answer_that_is_none_is_said_so(answer: httpx.Response | Exception) -> None:
    with pytest.raises(RerankerUnavailable):
        await service(answer).scores("q", ["a", "b"])


async def test_a_service_that_drips_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def drip() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.01)  # each piece comes well within any patience for one piece

    monkeypatch.setattr("gateway.corpus.rerankers.SECONDS", 0.1)
    with pytest.raises(RerankerUnavailable):
        await service(httpx.Response(200, content=drip())).scores("q", ["a", "b"])


async def test_a_local_models_scores_lie_between_0_and_1() -> None:
    reranker = CrossEncoderReranker(lambda pairs: [float(len(text)) for _, text in pairs])
    scores = await reranker.scores("q", ["", "long" * 1000])
    assert scores == [0.5, pytest.approx(1.0)]


def _fail(_pairs: list[tuple[str, str]]) -> list[float]:
    raise RuntimeError("out of memory")


@pytest.mark.parametrize("predict", [_fail, lambda _pairs: [float("nan"), 1.0], lambda _pairs: [1.0]])
async def test_a_local_model_that_fails_is_said_so_too(
    predict: Callable[[list[tuple[str, str]]], list[float]],
) -> None:
    with pytest.raises(RerankerUnavailable):
        await CrossEncoderReranker(predict).scores("q", ["a", "b"])


@pytest.mark.parametrize("spec", ["", "openai", "openai:m", "cross-encoder:/nowhere/at/all", "magic:m"])
def test_a_setting_that_names_none_is_refused(spec: str) -> None:
    with pytest.raises(ConfigurationError):
        build_reranker(spec)


def test_a_service_is_built_from_its_setting() -> None:
    assert isinstance(build_reranker("openai:m", base_url="http://x/v1"), HttpReranker)
