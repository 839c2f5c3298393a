"""One ranking out of two."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.corpus.fusion import fuse

HITS = st.dictionaries(st.integers(0, 20), st.floats(0, 50, width=32), max_size=10).map(
    lambda hits: list(hits.items())
)


def test_a_convex_sum_weighs_how_far_ahead_a_hit_is():
    fused = fuse([("a", 0.9), ("b", 0.8), ("c", 0.7)], [("b", 12.0), ("c", 3.0), ("d", 2.0)], weight=0.3)
    assert dict(fused) == pytest.approx({"a": 0.3, "b": 0.85, "c": 0.07, "d": 0.0})
    assert [hit for hit, _ in fused] == ["b", "a", "c", "d"]


def test_reciprocal_ranks_weigh_places_only():
    fused = dict(fuse([("a", 0.9), ("b", 0.1)], [("b", 99.0), ("a", 98.0)], method="rrf"))
    assert fused["a"] == fused["b"] == pytest.approx(0.5 / 61 + 0.5 / 62)


def test_reciprocal_ranks_do_not_depend_on_the_order_given():
    dense, lexical = [("a", 0.1), ("b", 0.9)], [("c", 1.0), ("b", 7.0)]
    assert dict(fuse(dense, lexical, method="rrf")) == dict(fuse(dense[::-1], lexical[::-1], method="rrf"))


@pytest.mark.parametrize("method", ["convex", "rrf"])
def test_a_leg_that_found_nothing_leaves_the_other_its_order(method: str):
    hits = [("a", 3.0), ("b", 2.0), ("c", 1.0)]
    assert [hit for hit, _ in fuse(hits, [], method=method)] == ["a", "b", "c"]
    assert [hit for hit, _ in fuse([], hits, method=method)] == ["a", "b", "c"]
    assert [hit for hit, _ in fuse(hits, [("c", 0.0), ("b", 0.0)], method=method)] == ["a", "b", "c"]
    assert fuse([], [], method=method) == []


def test_a_lone_hit_is_the_best_there_is():
    assert fuse([("a", 0.2)], []) == [("a", 1.0)]
    assert dict(fuse([("a", 0.2)], [("b", 4.0)])) == {"a": 0.3, "b": 0.7}


def test_no_word_of_the_query_is_not_a_rank():
    assert dict(fuse([("a", 0.9)], [("b", 2.0), ("a", 0.0)], method="rrf"))["a"] == 0.5 / 61


@pytest.mark.parametrize("weight", [-0.1, 1.1])
def test_a_share_outside_zero_and_one_is_refused(weight: float):
    with pytest.raises(ValueError, match="between 0 and 1"):
        fuse([("a", 1.0)], [], weight=weight)


@given(HITS, HITS, st.sampled_from(["convex", "rrf"]), st.floats(0, 1))
def test_every_hit_appears_once_best_first_and_within_bounds(
    dense: list[tuple[int, float]], lexical: list[tuple[int, float]], method: str, weight: float
):
    fused = fuse(dense, lexical, method=method, weight=weight)
    matched = {hit for hit, score in lexical if score > 0}
    least, most = matched | dict(dense).keys(), dict(lexical).keys() | dict(dense).keys()
    hits, scores = [hit for hit, _ in fused], [score for _, score in fused]
    assert len(hits) == len(set(hits))
    assert least <= set(hits) <= most
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 + 1e-9 for score in scores)


@given(HITS, HITS)
def test_scale_and_offset_of_a_leg_do_not_matter(
    dense: list[tuple[int, float]], lexical: list[tuple[int, float]]
):
    spread = {score for _, score in dense}
    moved = [(hit, score * 0.5 + 3) for hit, score in dense]
    if len({score for _, score in moved}) == len(spread):  # unless rounding made two of them equal
        assert dict(fuse(moved, lexical)) == pytest.approx(dict(fuse(dense, lexical)), abs=1e-3)
