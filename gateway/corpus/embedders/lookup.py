"""Vectors that mean nothing, at next to no cost, for benchmarks and tests of everything around embedding.

With a journal, every embedded text leaves one line (its SHA-256) in a file that any number of processes append to, so
that a test can say exactly what was embedded how often, also across a `kill -9`: the line is written before the work.
"""

import asyncio
import hashlib
import os
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np

from gateway.corpus.embedders.protocol import FREE, Vectors, estimated_tokens, unit_vectors

_TABLE_ROWS = 1024
_PICKS = 4  # rows summed per text: 2^40 different vectors


class LookupEmbedder:
    dense_share = 0.0

    def __init__(
        self,
        dimensions: int,
        *,
        journal: Path | None = None,
        delay: float = 0.0,  # seconds per batch, to stand in for a service
        max_batch: int = 100,
        price: Decimal = FREE,
    ) -> None:
        self.model = model_id(dimensions)
        self.dimensions = dimensions
        self.max_batch = max_batch
        self.price_per_million_tokens = price
        self._journal = journal
        self._delay = delay
        self._table = np.random.default_rng(0).standard_normal((_TABLE_ROWS, dimensions), np.float32)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        for start in range(0, len(texts), self.max_batch):
            batch = texts[start : start + self.max_batch]
            vectors[start : start + len(batch)] = await asyncio.to_thread(self._look_up, batch)
            if self._delay:
                await asyncio.sleep(self._delay)
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> int:
        return estimated_tokens(texts)

    async def aclose(self) -> None:
        return None

    def _look_up(self, texts: Sequence[str]) -> Vectors:
        digests = [text_digest(text) for text in texts]
        if self._journal is not None:
            _append(self._journal, "".join(f"{digest.hex()}\n" for digest in digests))
        picks = np.frombuffer(b"".join(digests), "<u2").reshape(len(digests), -1)[:, :_PICKS] % _TABLE_ROWS
        return unit_vectors(self._table[picks].sum(axis=1))


def model_id(dimensions: int) -> str:
    return f"lookup-{dimensions}@1"


def text_digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def _append(path: Path, lines: str) -> None:
    # one write on an O_APPEND descriptor: lines of different processes never mix
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, lines.encode())
    finally:
        os.close(descriptor)
