"""What every embedder is, and the two ways it can fail."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gateway.errors import CatchmentError

Vectors = NDArray[np.float32]

FREE = Decimal(0)

# 0.3 was found on SciFact; 0.5 is a round number inside a flat optimum (0.4 to 0.8) seen for MiniLM on Cranfield and CISI.
STATIC_SHARE, CONTEXTUAL_SHARE = 0.3, 0.5


class Embedder(Protocol):
    """Text to unit vectors. The same text always gives the same vector, whatever else is in the batch."""

    model: str  # stable, with a version: vectors of different models are never compared
    dimensions: int
    max_batch: int  # texts per call that the embedder handles best
    price_per_million_tokens: Decimal  # US dollars
    dense_share: float  # how much its ranking counts beside BM25 in `fusion`

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row per text: float32, length 1, never NaN, also for empty and odd texts."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> int:
        """What the spend ledger books: exact where tokens are charged, an estimate where they are free."""
        ...

    async def aclose(self) -> None: ...


class EmbedderRefused(CatchmentError):
    """The embedding service refuses the request."""

    code = "embedder.refused"
    status = 502

    def __init__(self, detail: str, positions: Sequence[int] = ()) -> None:
        # Which of the texts were refused; empty when it was not about a text (key, model, address).
        self.positions = tuple(positions)
        super().__init__(detail)


class EmbedderUnavailable(CatchmentError):
    """The embedding service does not answer properly; try again shortly."""

    code = "embedder.unavailable"
    status = 503
    retryable = True

    def __init__(self, detail: str, retry_after: float | None = None) -> None:
        self.retry_after = retry_after  # seconds, when the service named them
        super().__init__(detail)


def unit_vectors(vectors: NDArray[np.floating]) -> Vectors:
    """Rows scaled to length 1. A row without direction becomes the first axis: valid, deterministic, near nothing."""
    scaled = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    blank = lengths[:, 0] == 0
    lengths[blank] = 1
    scaled = scaled / lengths
    scaled[blank, 0] = 1
    return scaled


def well_formed(text: str) -> str:
    """Half surrogate pairs, which no encoder takes, become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def estimated_tokens(texts: Sequence[str]) -> int:
    return sum(len(text) // 4 + 1 for text in texts)
