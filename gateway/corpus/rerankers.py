"""Rerankers: a second, slower look at the best hits, by a model that reads question and passage together.

    openai:MODEL          a service with the `/rerank` call that OpenAI-compatible servers share (vLLM, Jina, Cohere, …)
    cross-encoder:FOLDER  a local model, where the package sentence-transformers is installed

None is needed and none is the default. One that fails costs a search nothing but its opinion.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx

from gateway.errors import CatchmentError, ConfigurationError

SECONDS = 5.0  # a search that waits longer than this for a second opinion is better off without


class RerankerUnavailable(CatchmentError):
    """The reranker does not answer properly."""

    code = "reranker.unavailable"
    status = 503
    retryable = True


class HttpReranker:
    def __init__(
        self,
        model: str,
        base_url: str,
        api_key: str | None = None,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._model = model
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx.AsyncClient(
            base_url=base_url.rstrip("/"), headers=headers, timeout=SECONDS, transport=transport
        )

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        body = {"model": self._model, "query": query, "documents": list(texts), "top_n": len(texts)}
        try:
            async with asyncio.timeout(SECONDS):  # of all of it: a service may also drip
                response = await self._http.post("/rerank", json=body)
            response.raise_for_status()
            results: list[dict[str, Any]] = response.json()["results"]
            by_index = {int(one["index"]): float(one["relevance_score"]) for one in results}
            found = [by_index[index] for index in range(len(texts))]
        except (httpx.HTTPError, TimeoutError, ValueError, KeyError, TypeError) as error:
            raise RerankerUnavailable(
                f"The reranker gave no usable answer ({type(error).__name__})."
            ) from error
        if not all(map(math.isfinite, found)):
            raise RerankerUnavailable("The reranker answered with scores that are no numbers.")
        return found

    async def aclose(self) -> None:
        await self._http.aclose()


class CrossEncoderReranker:
    """`predict` gives a raw score per pair of texts; it runs in a thread and is squeezed into 0 to 1."""

    def __init__(self, predict: Callable[[list[tuple[str, str]]], Sequence[float]]) -> None:
        self._predict = predict

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        try:
            raw = await asyncio.to_thread(self._predict, [(query, text) for text in texts])
            found = [float(score) for score in raw]
        except Exception as error:  # the model's own, whatever it is: the search goes on without it
            raise RerankerUnavailable(f"The reranker failed ({type(error).__name__}).") from error
        if len(found) != len(texts) or any(map(math.isnan, found)):
            raise RerankerUnavailable("The reranker answered with scores that are no numbers.")
        return [1 / (1 + math.exp(-max(-60.0, min(60.0, score)))) for score in found]

    async def aclose(self) -> None:
        return None


def build_reranker(
    spec: str, *, api_key: str | None = None, base_url: str | None = None
) -> HttpReranker | CrossEncoderReranker:
    kind, _, argument = spec.partition(":")
    if kind == "openai" and argument:
        if base_url is None:
            raise ConfigurationError("a reranker over HTTP needs CATCHMENT_OPENAI_BASE_URL")
        return HttpReranker(argument, base_url, api_key)
    if kind == "cross-encoder" and argument:
        return CrossEncoderReranker(_load_cross_encoder(Path(argument)))
    raise ConfigurationError(f"no reranker is called {spec!r}: openai:MODEL or cross-encoder:FOLDER")


def _load_cross_encoder(folder: Path) -> Callable[[list[tuple[str, str]]], Sequence[float]]:
    if not folder.is_dir():
        raise ConfigurationError(
            "the reranker's model is a folder on this machine; none is fetched at run time"
        )
    if find_spec("sentence_transformers") is None:
        raise ConfigurationError("a local reranker needs the package sentence-transformers")
    cross_encoder: Any = import_module("sentence_transformers").CrossEncoder

    return cross_encoder(str(folder), local_files_only=True).predict
