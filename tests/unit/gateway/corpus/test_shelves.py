"""A search's scores are those of `bm25.score`, whichever way they are asked for."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.corpus.lexical.bm25 import Shelf, score
from gateway.corpus.lexical.postings import Directory, build_segment
from gateway.corpus.shelves import Kept, Postings, Scores

TERMS = ["run", "walk", "=acme-1", "~the", "lauf", "sun"]


def postings_of(chunks: list[dict[str, int]], per_segment: int) -> Postings:
    rows: dict[str, list[tuple[int, bytes]]] = {}
    directories: list[Directory] = []
    for start in range(0, len(chunks), per_segment):
        numbered = list(enumerate(chunks[start : start + per_segment], 100 + start))
        segment = build_segment(numbered)
        for term, row in segment.rows:
            rows.setdefault(term, []).append((len(directories), row))
        directories.append(Directory(segment.directory))
    return Postings(Kept({}, {}, directories, Shelf(dict(enumerate(directories)))), rows)


CHUNKS = st.lists(st.dictionaries(st.sampled_from(TERMS), st.integers(1, 5)), min_size=1, max_size=40)
GROUPS = st.lists(
    st.lists(st.sampled_from([*TERMS, "nowhere"]), min_size=1, max_size=3, unique=True), max_size=5
)


@settings(max_examples=150, deadline=None)
@given(CHUNKS, GROUPS, st.integers(1, 15), st.integers(1, 50), st.randoms(use_true_random=False))
def test_scores_and_order_are_those_of_bm25(
    chunks: list[dict[str, int]], groups: list[list[str]], per_segment: int, limit: int, chance: random.Random
) -> None:
    postings = postings_of(chunks, per_segment)
    scores = Scores(postings, groups, limit)
    reference = score(groups, postings.rows, postings.kept.shelf, limit=limit)
    assert list(scores.best) == reference.chunk_numbers.tolist()
    assert list(scores.best.values()) == pytest.approx(reference.scores.tolist())
    asked = chance.sample(range(100, 100 + len(chunks)), k=chance.randint(0, len(chunks)))
    some = score(groups, postings.rows, postings.kept.shelf, limit=1, including=asked)
    all_of_them = dict(zip(some.chunk_numbers.tolist(), some.scores.tolist(), strict=True))
    assert scores.of([*asked, 7, 9_999]) == pytest.approx({n: all_of_them[n] for n in asked})


async def test_only_some_or_all_but_some_are_served() -> None:
    postings = postings_of([{"run": n} for n in range(1, 9)], per_segment=3)
    scores = await postings.score([["run"]], 3)
    assert len(scores.best) == 3
    best = list(await scores.best_of(100, None))
    assert list(await scores.best_of(2, None, without=best[:3])) == best[3:5]
    assert list(await scores.best_of(100, [best[5], best[2], 12345])) == [best[2], best[5]]
    assert await scores.best_of(100, []) == {}


async def test_a_removed_chunk_has_no_score_even_while_a_row_still_names_it() -> None:
    postings = postings_of([{"run": 1}, {"run": 3}], per_segment=2)
    gone = postings.kept.directories[0].without([1])
    kept = Kept({}, {}, [gone], Shelf({0: gone}))
    scores = await Postings(kept, postings.rows).score([["run"]], 10)
    assert list(scores.best) == [100]
    assert np.isfinite(list(scores.best.values())).all()
