"""The calibration finds the scale of a model whose scale is known, and refuses to find one where there is none."""

from collections.abc import Sequence

import numpy as np
import pytest

from gateway.corpus.calibration import measure
from gateway.corpus.embedders.lookup import LookupEmbedder
from gateway.corpus.evaluation import Collection


class Angled(LookupEmbedder):
    """Questions `q…` stand at a known angle to passages of the same letter, and at a right angle to all others."""

    def __init__(self, cosine: float) -> None:
        super().__init__(4)
        self._cosine = cosine

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = []
        for text in texts:
            axis = 0 if "alpha" in text else 2
            row = np.zeros(4, np.float32)
            row[axis] = 1.0
            if text.startswith("q"):
                row[axis], row[axis + 1] = self._cosine, (1 - self._cosine**2) ** 0.5
            rows.append(row)
        return np.stack(rows)


def collection(word: str) -> Collection:
    ids = [str(number) for number in range(20)]
    return Collection(
        documents={number: f"{word} {number}" for number in ids},
        queries={number: f"q {word} {number}" for number in ids},
        judgements={number: {number: 1} for number in ids[:10]},
    )


@pytest.mark.parametrize("cosine", [0.2, 0.45, 0.9])
async def test_the_floor_is_where_the_related_ones_begin(cosine: float) -> None:
    scale = await measure(Angled(cosine), collection("alpha"), collection("beta"))
    assert scale.floor() == pytest.approx(cosine, abs=1e-6)
    assert len(scale.related) == 10  # only judged questions have a related passage
    assert len(scale.unrelated) == 20
    assert scale.unrelated_above(scale.floor()) == 0


async def test_vectors_without_meaning_show_as_such() -> None:
    scale = await measure(LookupEmbedder(64), collection("alpha"), collection("beta"))
    assert scale.unrelated_above(scale.floor()) > 0.8


async def test_words_of_the_other_subject_are_counted() -> None:
    scale = await measure(LookupEmbedder(64), collection("alpha"), collection("beta"))
    assert scale.foreign_words.max() < 0.7  # they share the number and the letter q, never the subject
