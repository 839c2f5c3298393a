"""Measures an embedder's scale: how similar are questions to what answers them, and to what has nothing to do with them?

    python -m gateway.corpus.calibration COLLECTION COLLECTION [--embedder SPEC]

Two collections (BEIR layout) about different subjects. *Related* is the best similarity of a question to a passage judged
to answer it. *Unrelated* is its best similarity to any passage of the other collection: what would slip into a context if
the corpus had no answer. The floor is the 5th percentile of related, the lower of the two collections: 95 of 100
questions keep an answer. `relevance.LEAST_SIMILARITY` and wiki/calibration.md hold what came out.
"""

import argparse
import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gateway.corpus.embedders import Embedder, build_embedder
from gateway.corpus.evaluation import Collection, load_collection
from gateway.corpus.lexical.terms import count_terms
from gateway.corpus.relevance import share, telling
from gateway.settings import get_settings

PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)
KEPT = 5  # the percentile of related that the floor lets through

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """Best similarity per question, and the best share of words in a passage of the other collection."""

    related: Scores
    unrelated: Scores
    foreign_words: Scores

    def floor(self) -> float:
        return float(np.percentile(self.related, KEPT))

    def unrelated_above(self, floor: float) -> float:
        """Share of questions about something else that would be given at least one passage."""
        return float((self.unrelated >= floor).mean())


async def measure(embedder: Embedder, own: Collection, other: Collection) -> Scale:
    documents, queries = list(own.documents), list(own.queries)
    asked = await embedder.embed([own.queries[query] for query in queries])
    similar = asked @ (await embedder.embed([own.documents[document] for document in documents])).T
    foreign = asked @ (await embedder.embed(list(other.documents.values()))).T
    place = {document: index for index, document in enumerate(documents)}
    related: list[float] = []
    for row, query in enumerate(queries):
        grades = own.judgements.get(query, {})
        answers = [place[document] for document, grade in grades.items() if grade > 0 and document in place]
        if answers:
            related.append(float(similar[row, answers].max()))
    words = await asyncio.to_thread(_foreign_words, own.queries, other.documents)
    return Scale(np.array(related), foreign.max(axis=1).astype(np.float64), words)


def _foreign_words(queries: Mapping[str, str], documents: Mapping[str, str]) -> Scores:
    held = [count_terms(text, "en").keys() for text in documents.values()]
    best: list[float] = []
    for text in queries.values():
        groups = telling(text, "en")
        best.append(max(share(groups, terms) for terms in held))
    return np.array(best)


async def report(folders: tuple[Path, Path], spec: str) -> str:
    settings = get_settings()
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else None
    embedder = build_embedder(spec, api_key=key, base_url=settings.openai_base_url)
    first, second = (load_collection(folder) for folder in folders)
    try:
        scales = [await measure(embedder, first, second), await measure(embedder, second, first)]
    finally:
        await embedder.aclose()
    floor = min(scale.floor() for scale in scales)
    lines = [
        f"{embedder.model}: floor {floor:.2f}",
        "percentile       " + "".join(f"{p:>7}" for p in PERCENTILES),
    ]
    for folder, scale in zip(folders, scales, strict=True):
        for name, scores in (
            ("related", scale.related),
            ("unrelated", scale.unrelated),
            ("words", scale.foreign_words),
        ):
            found = "".join(f"{value:7.2f}" for value in np.percentile(scores, PERCENTILES))
            lines.append(f"{folder.name[:10]:<10} {name:<9}{found}  ({len(scores)} questions)")
        lines.append(
            f"{folder.name[:10]:<10} unrelated questions at or above the floor: {scale.unrelated_above(floor):.0%}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the similarity scale of an embedder.")
    parser.add_argument("collections", nargs=2, type=Path)
    parser.add_argument("--embedder", default=get_settings().embedder)
    chosen = parser.parse_args()
    sys.stdout.write(asyncio.run(report(tuple(chosen.collections), chosen.embedder)) + "\n")


if __name__ == "__main__":
    main()
