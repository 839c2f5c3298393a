"""Text that means nothing, with the word frequencies of prose, and vectors to go with it, for benchmarks and tests.

A vector is the mean of its words' directions in a few dozen dimensions, as static embeddings are, turned into the full
width, with a little noise in the passages: so neighbours are real neighbours, and as hard to tell apart as in a real corpus.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gateway.corpus.embedders.protocol import FREE, Vectors, estimated_tokens, unit_vectors

Kind = Literal["rare", "middling", "frequent", "mixed"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_WORDS = 60_000
_LATENT = 32
# From which ranks each kind of query takes how many words; rank 0 is in every other passage.
_RANKS: dict[Kind, tuple[tuple[int, int, int], ...]] = {
    "rare": ((20_000, 60_000, 3),),
    "middling": ((500, 5_000, 3),),
    "frequent": ((0, 30, 3),),
    "mixed": ((0, 30, 2), (30, 500, 3), (5_000, 60_000, 3)),
}


class SyntheticText:
    """A generator of passages, and the embedder they belong to."""

    max_batch = 256
    price_per_million_tokens: Decimal = FREE
    dense_share = 0.3

    def __init__(self, seed: int, *, dimensions: int = 256, passage_words: int = 150) -> None:
        self.model, self.dimensions = f"synthetic-{dimensions}@1", dimensions
        self._passage_words = passage_words
        self._random = np.random.default_rng(seed)
        meaning = np.random.default_rng(0)
        self._words = [_word(rank) for rank in range(_WORDS)]
        self._ranks = {word: rank for rank, word in enumerate(self._words)}
        self._directions = meaning.standard_normal((_WORDS, _LATENT), np.float32)
        # frequent words say little
        self._directions *= np.minimum(np.arange(_WORDS, dtype=np.float32) / 1000, 1)[:, None] + 0.05
        self._turn = meaning.standard_normal((_LATENT, dimensions), np.float32)
        chances = 1 / np.arange(1, _WORDS + 1)
        self._chances = np.cumsum(chances / chances.sum())

    def passages(self, count: int) -> tuple[list[str], Vectors]:
        """Texts and their vectors."""
        drawn = np.searchsorted(self._chances, self._random.random((count, self._passage_words)))
        ranks = np.minimum(drawn, _WORDS - 1)
        # a passage keeps to its subject: a third of its words come from one neighbourhood
        subjects = self._random.integers(1000, _WORDS - 200, count)[:, None]
        ranks[:, ::3] = subjects + self._random.integers(0, 200, ranks[:, ::3].shape)
        texts = [" ".join([self._words[rank] for rank in row]) for row in ranks.tolist()]
        return texts, self._vectors(self._directions[ranks].mean(axis=1), noise=0.2)

    def query(self, kind: Kind) -> str:
        parts = (self._random.integers(low, high, count) for low, high, count in _RANKS[kind])
        return " ".join(self._words[rank] for rank in np.concatenate(list(parts)).tolist())

    async def embed(self, texts: Sequence[str]) -> Vectors:
        means = [
            self._directions[[self._ranks.get(word, 0) for word in text.split()] or [0]].mean(axis=0)
            for text in texts
        ]
        return self._vectors(np.array(means), noise=0.0)

    def count_tokens(self, texts: Sequence[str]) -> int:
        return estimated_tokens(texts)

    async def aclose(self) -> None:
        return None

    def _vectors(self, latent: NDArray[np.float32], noise: float) -> Vectors:
        turned = latent @ self._turn
        blur = self._random.standard_normal(turned.shape, np.float32)
        return unit_vectors(turned + blur * (noise * np.abs(turned).mean()))


def _word(rank: int) -> str:
    """Pronounceable, distinct, and left alone by the stemmer."""
    consonants, vowels, word = "bcdfgklmnprstvz", "aeiou", ""
    rest = rank + 7
    while rest:
        word += consonants[rest % 15] + vowels[rest // 15 % 5]
        rest //= 75
    return word + "n"
