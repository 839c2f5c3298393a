"""Scores are BM25, to the letter, however the chunks are spread over segments."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.corpus.lexical.bm25 import K1, B, Ranking, Shelf, StaleShelf, score
from gateway.corpus.lexical.postings import (
    Directory,
    PackedSegment,
    build_segment,
    merge_segments,
    remove_from_directory,
    remove_ordinals,
)

Chunk = tuple[int, dict[str, int]]
TERMS = ["a", "b", "c", "d", "=a-1", "~the"]

CHUNKS = st.lists(st.dictionaries(st.sampled_from(TERMS), st.integers(1, 6)), max_size=15).map(
    lambda counts: [(17 * n % 101, c) for n, c in enumerate(counts)]
)
QUERIES = st.lists(
    st.lists(st.sampled_from([*TERMS, "absent"]), min_size=1, max_size=3, unique=True), max_size=5
)


def naive(
    groups: Sequence[Sequence[str]], chunks: Sequence[Chunk], k1: float = K1, b: float = B
) -> dict[int, float]:
    """BM25 as the formula reads, chunk by chunk."""
    lengths = {n: sum(f for t, f in counts.items() if t[0] not in "=~") for n, counts in chunks}
    average = sum(lengths.values()) / len(chunks) if chunks else 0
    scores: dict[int, float] = {}
    for group in groups:
        frequencies = {n: max((counts.get(t, 0) for t in group), default=0) for n, counts in chunks}
        holding = sum(1 for f in frequencies.values() if f)
        idf = math.log(1 + (len(chunks) - holding + 0.5) / (holding + 0.5))
        for n, frequency in frequencies.items():
            if frequency:
                norm = k1 * (1 - b + b * (lengths[n] / average if average else 0))
                scores[n] = scores.get(n, 0) + idf * frequency / (frequency + norm)
    return scores


def search(groups: Sequence[Sequence[str]], segments: dict[int, PackedSegment], **options: Any) -> Ranking:
    rows: dict[str, list[tuple[int, bytes]]] = {}
    for number, segment in segments.items():
        for term, row in segment.rows:
            rows.setdefault(term, []).append((number, row))
    return score(groups, rows, Shelf({n: Directory(s.directory) for n, s in segments.items()}), **options)


def split(chunks: list[Chunk], size: int) -> dict[int, PackedSegment]:
    return {100 + at: build_segment(chunks[at : at + size]) for at in range(0, len(chunks), size)}


def assert_same(ranking: Ranking, expected: dict[int, float]) -> None:
    found = dict(zip(ranking.chunk_numbers.tolist(), ranking.scores.tolist(), strict=True))
    assert found == pytest.approx(expected, rel=1e-5)
    order = list(zip((-ranking.scores).tolist(), ranking.chunk_numbers.tolist(), strict=True))
    assert order == sorted(order)


@given(CHUNKS, QUERIES, st.integers(1, 15))
def test_scores_are_those_of_the_formula(chunks: list[Chunk], groups: list[list[str]], size: int):
    assert_same(search(groups, split(chunks, size)), naive(groups, chunks))


@given(CHUNKS, QUERIES, st.sampled_from([0.0, 0.9, 2.0]), st.sampled_from([0.0, 0.4, 1.0]))
def test_the_constants_can_be_chosen(chunks: list[Chunk], groups: list[list[str]], k1: float, b: float):
    assert_same(search(groups, split(chunks, 4), k1=k1, b=b), naive(groups, chunks, k1, b))


@given(CHUNKS, QUERIES, st.integers(1, 15))
def test_segmentation_and_merging_change_no_score_at_all(
    chunks: list[Chunk], groups: list[list[str]], size: int
):
    whole, parts = search(groups, split(chunks, 100)), split(chunks, size)
    merged = {1: merge_segments(list(parts.values()))}
    for other in (search(groups, parts), search(groups, merged)):
        assert other.chunk_numbers.tolist() == whole.chunk_numbers.tolist()
        assert other.scores.tolist() == whole.scores.tolist()


@given(CHUNKS, QUERIES, st.data())
def test_after_a_removal_scores_are_those_of_the_rest(
    chunks: list[Chunk], groups: list[list[str]], data: st.DataObject
):
    gone = data.draw(st.sets(st.integers(0, len(chunks) - 1))) if chunks else set[int]()
    segment = build_segment(chunks)
    rows = [(term, remove_ordinals(row, gone)) for term, row in segment.rows]
    left = PackedSegment(
        remove_from_directory(segment.directory, gone), [(term, row) for term, row in rows if row is not None]
    )
    kept = [chunk for ordinal, chunk in enumerate(chunks) if ordinal not in gone]
    assert_same(search(groups, {1: left}), naive(groups, kept))


@given(CHUNKS, QUERIES, st.integers(1, 5))
def test_a_limit_keeps_the_best(chunks: list[Chunk], groups: list[list[str]], limit: int):
    everything = search(groups, split(chunks, 4))
    best = search(groups, split(chunks, 4), limit=limit)
    assert best.chunk_numbers.tolist() == everything.chunk_numbers.tolist()[:limit]
    assert best.scores.tolist() == everything.scores.tolist()[:limit]


@given(CHUNKS, QUERIES, st.data())
def test_a_mask_narrows_what_is_served_but_not_the_statistics(
    chunks: list[Chunk], groups: list[list[str]], data: st.DataObject
):
    segments = split(chunks, 4)
    sizes = {n: len(Directory(s.directory)) for n, s in segments.items()}
    masks = {
        n: np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), np.bool_)
        for n, size in sizes.items()
        if data.draw(st.booleans())
    }
    allowed = {
        int(number)
        for n, mask in masks.items()
        for number in Directory(segments[n].directory).chunk_numbers[mask]
    }
    expected = {n: s for n, s in naive(groups, chunks).items() if n in allowed}
    assert_same(search(groups, segments, allowed=masks), expected)


@given(CHUNKS, QUERIES, st.sets(st.integers(-1, 110)))
def test_chunks_asked_for_are_scored_even_if_they_are_not_among_the_best(
    chunks: list[Chunk], groups: list[list[str]], asked: set[int]
):
    scores = naive(groups, chunks)
    present = asked & {number for number, _ in chunks}
    best = search(groups, split(chunks, 4), limit=1)
    expected = {n: scores.get(n, 0.0) for n in present | set(best.chunk_numbers.tolist())}
    assert_same(search(groups, split(chunks, 4), limit=1, including=asked), expected)


def test_a_chunk_that_is_asked_for_but_not_allowed_is_not_returned():
    segments = split([(1, {"a": 1}), (2, {"a": 1})], 2)
    masks = {100: np.array([True, False])}
    assert search([["a"]], segments, allowed=masks, including=[1, 2]).chunk_numbers.tolist() == [1]


def test_a_dead_chunk_is_never_returned_even_from_a_row_that_still_names_it():
    segment = build_segment([(1, {"a": 1}), (2, {"a": 1})])
    stale = PackedSegment(remove_from_directory(segment.directory, [0]), segment.rows)
    assert search([["a"]], {1: stale}, including=[1, -1]).chunk_numbers.tolist() == [2]


def test_a_repeated_word_weighs_more():
    chunks = [(1, {"a": 1, "c": 1}), (2, {"b": 1, "c": 1}), (3, {"c": 2})]
    assert search([["a"], ["a"], ["b"]], split(chunks, 9)).chunk_numbers.tolist() == [1, 2]


def test_a_word_stemmed_two_ways_counts_once():
    chunks = [(1, {"nation": 1, "x": 1}), (2, {"nation": 1, "nations": 1}), (3, {"x": 2})]
    one, two = search([["nation", "nations"]], split(chunks, 9)).scores.tolist()
    assert one == two


def test_a_row_of_an_unknown_segment_asks_for_fresh_directories():
    segment = build_segment([(1, {"a": 1})])
    with pytest.raises(StaleShelf):
        score([["a"]], {"a": [(2, segment.rows[0][1])]}, Shelf({1: Directory(segment.directory)}))


def test_an_empty_mandate_has_no_hits():
    assert score([["a"]], {}, Shelf({}), including=[1]).chunk_numbers.tolist() == []


def test_words_that_stand_in_every_chunk_still_rank():
    rng = np.random.default_rng(3)
    chunks: list[Chunk] = [
        (n, dict(Counter({"the": int(rng.integers(1, 9)), "of": int(rng.integers(1, 9)), f"w{n % 50}": 1})))
        for n in range(3_000)
    ]
    ranking = search([["the"], ["of"]], split(chunks, 700), limit=20)
    expected = naive([["the"], ["of"]], chunks)
    assert ranking.scores.tolist() == pytest.approx(sorted(expected.values(), reverse=True)[:20], rel=1e-5)
