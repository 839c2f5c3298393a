"""How good retrieval is: labelled collections in BEIR layout and the measures `catchment bench retrieval` prints.

A run maps a query id to document ids, best first. Every measure is the mean over the judged queries; a judged query
that the run does not answer counts zero, so that failing on hard queries never looks like success.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Judgements = Mapping[str, Mapping[str, int]]
Run = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Collection:
    """`documents` and `queries` by id; `judgements` by query id, then document id. Grades above zero are relevant."""

    documents: dict[str, str]
    queries: dict[str, str]
    judgements: dict[str, dict[str, int]]


def load_collection(folder: Path) -> Collection:
    """Reads `corpus.jsonl`, `queries.jsonl` and `qrels.tsv` (also as `qrels/test.tsv` or `qrels/dev.tsv`). A title leads its text.

    Collections bring the queries they were trained with along; those that nobody judged are left out.
    """
    documents = {
        str(row["_id"]): f"{row.get('title') or ''}\n{row.get('text') or ''}".strip()
        for row in _json_lines(folder / "corpus.jsonl")
    }
    judgements = _judgements(folder)
    queries = {
        str(row["_id"]): str(row["text"])
        for row in _json_lines(folder / "queries.jsonl")
        if str(row["_id"]) in judgements
    }
    return Collection(documents, queries, judgements)


def _judgements(folder: Path) -> dict[str, dict[str, int]]:
    """Tab-separated with or without a heading, or in TREC's four columns."""
    names = ("qrels.tsv", "qrels/test.tsv", "qrels/dev.tsv")
    path = next((folder / name for name in names if (folder / name).exists()), folder / names[0])
    judgements: dict[str, dict[str, int]] = {}
    for line in path.read_text(encoding="utf-8-sig").splitlines():
        columns = line.split("\t") if "\t" in line else line.split()
        if not columns or not re.fullmatch(r"-?\d+(\.\d+)?", columns[-1].strip()):
            continue  # an empty line, or the heading
        query, document, grade = columns[0], columns[-2], columns[-1]
        judgements.setdefault(query, {})[document] = int(float(grade))
    return judgements


def ndcg(run: Run, judgements: Judgements, depth: int = 10) -> float:
    def one(found: Sequence[str], grades: Mapping[str, int]) -> float:
        ideal = _gain(sorted(grades.values(), reverse=True)[:depth])
        return _gain([grades.get(document, 0) for document in found[:depth]]) / ideal

    return _mean(run, judgements, one)


def recall(run: Run, judgements: Judgements, depth: int = 100) -> float:
    def one(found: Sequence[str], grades: Mapping[str, int]) -> float:
        relevant = {document for document, grade in grades.items() if grade > 0}
        return len(relevant.intersection(found[:depth])) / len(relevant)

    return _mean(run, judgements, one)


def mrr(run: Run, judgements: Judgements) -> float:
    def one(found: Sequence[str], grades: Mapping[str, int]) -> float:
        ranks = (rank for rank, document in enumerate(found, 1) if grades.get(document, 0) > 0)
        return 1 / next(ranks, math.inf)

    return _mean(run, judgements, one)


def summary(run: Run, judgements: Judgements) -> dict[str, float]:
    return {
        "ndcg@10": ndcg(run, judgements),
        "recall@100": recall(run, judgements),
        "mrr": mrr(run, judgements),
    }


def _gain(grades: Sequence[int]) -> float:
    return sum(max(grade, 0) / math.log2(rank + 2) for rank, grade in enumerate(grades))


def _mean(
    run: Run, judgements: Judgements, one: Callable[[Sequence[str], Mapping[str, int]], float]
) -> float:
    judged = {query: grades for query, grades in judgements.items() if any(g > 0 for g in grades.values())}
    if not judged:
        raise ValueError("no query has a relevant document: nothing to measure")
    # one document twice in a run must not be rewarded twice
    answers = {query: list(dict.fromkeys(run.get(query, ()))) for query in judged}
    return sum(one(answers[query], grades) for query, grades in judged.items()) / len(judged)


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)
