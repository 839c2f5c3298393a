"""A search's scores are those of `bm25.score`, whichever way they are asked for."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.corpus.lexical.bm25 import Shelf, score
from gateway.corpus.lexical.postings import Directory, build_segment
from gateway.corpus.lexical.scores import FREQUENT, Impact, Scores, impact_of
from gateway.corpus.shelves import MOST_FREQUENT, Kept, Postings

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
    return Postings(Kept(b"", {}, directories, Shelf(dict(enumerate(directories)))), rows, {})


def scores_of(postings: Postings, groups: list[list[str]], limit: int) -> Scores:
    impacts = {term: impact_of(rows, postings.kept.shelf) for term, rows in postings.rows.items()}
    return Scores(postings.kept.shelf, groups, impacts, limit)


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
    scores = scores_of(postings, groups, limit)
    reference = score(groups, postings.rows, postings.kept.shelf, limit=limit)
    assert list(scores.best) == reference.chunk_numbers.tolist()
    assert list(scores.best.values()) == pytest.approx(reference.scores.tolist())
    asked = chance.sample(range(100, 100 + len(chunks)), k=chance.randint(0, len(chunks)))
    some = score(groups, postings.rows, postings.kept.shelf, limit=1, including=asked)
    all_of_them = dict(zip(some.chunk_numbers.tolist(), some.scores.tolist(), strict=True))
    assert scores.of([*asked, 7, 9_999]) == pytest.approx({n: all_of_them[n] for n in asked})


def test_only_some_or_all_but_some_are_served() -> None:
    postings = postings_of([{"run": n} for n in range(1, 9)], per_segment=3)
    scores = postings.score([["run"]], 3)
    assert len(scores.best) == 3
    best = list(scores.best_of(100, None))
    assert list(scores.best_of(2, None, without=best[:3])) == best[3:5]
    assert list(scores.best_of(100, [best[5], best[2], 12345])) == [best[2], best[5]]
    assert scores.best_of(100, []) == {}


def test_a_removed_chunk_has_no_score_even_while_a_row_still_names_it() -> None:
    postings = postings_of([{"run": 1}, {"run": 3}], per_segment=2)
    gone = postings.kept.directories[0].without([1])
    kept = Kept(b"", {}, [gone], Shelf({0: gone}))
    scores = Postings(kept, postings.rows, {}).score([["run"]], 10)
    assert list(scores.best) == [100]
    assert np.isfinite(list(scores.best.values())).all()


def test_the_best_of_very_many_are_those_of_bm25() -> None:
    chance = random.Random(3)
    postings = postings_of([{"run": chance.randint(1, 9), "sun": 1} for _ in range(20_000)], 9_000)
    for limit in (1, 50, 400):
        scores = postings.score([["run"]], limit)
        reference = score([["run"]], postings.rows, postings.kept.shelf, limit=limit)
        assert list(scores.best) == reference.chunk_numbers.tolist()


def test_frequent_words_are_kept_counted_out_and_score_the_same_without_their_rows() -> None:
    chunks = [{"run": 1 + n % 3, **({"rare": 1} if n % (2 * FREQUENT) == 0 else {})} for n in range(64)]
    postings = postings_of(chunks, per_segment=30)
    first = postings.score([["run", "lauf"], ["rare"]], 10)
    assert set(postings.kept.frequent) == {"run"}
    again = Postings(postings.kept, {"rare": postings.rows["rare"]}, {"run": postings.kept.frequent["run"]})
    second = again.score([["run", "lauf"], ["rare"]], 10)
    assert second.best == first.best
    impact = again.impact("run")
    assert impact is not None
    assert impact.held_at().tolist() == list(range(64))


def test_the_frequent_words_asked_for_longest_ago_are_forgotten_first() -> None:
    kept = postings_of([{"run": 1}], 1).kept
    impact = Impact(None, np.ones(1, np.float32), 1)
    for n in range(MOST_FREQUENT):
        kept.remember({str(n): impact})
    kept.remember({"0": impact, "new": impact})
    assert len(kept.frequent) == MOST_FREQUENT
    assert {"0", "new"} <= set(kept.frequent)
    assert "1" not in kept.frequent
