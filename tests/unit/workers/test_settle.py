"""Whose vectors belong in the index."""

from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from gateway.corpus.settlement_repository import Count
from workers.settle import LEAST, large_mandates


def census(*sizes: tuple[int, int]) -> dict[UUID, Count]:
    return {uuid4(): Count("m", settled, unsettled) for settled, unsettled in sizes}


def test_a_small_mandate_stays_outside() -> None:
    assert large_mandates(census((0, LEAST - 1))) == set()


def test_a_large_one_belongs_inside() -> None:
    found = census((0, 100_000), (0, 200))
    assert large_mandates(found) == {next(iter(found))}


def test_one_that_would_drown_in_the_index_stays_outside() -> None:
    found = census((0, 10_000_000), (0, 20_000))
    assert large_mandates(found) == {next(iter(found))}


def test_who_is_inside_leaves_only_when_it_has_shrunk_well_below() -> None:
    inside, shrunk, outside = census((LEAST * 3 // 4, 0), (LEAST // 4, 0), (0, LEAST * 3 // 4)).items()
    assert large_mandates(dict((inside, shrunk, outside))) == {inside[0]}


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=30))
def test_nobody_is_inside_while_somebody_larger_is_outside(sizes: list[tuple[int, int]]) -> None:
    found = census(*sizes)
    large = large_mandates(found)
    entering = [sum(found[one][1:]) for one in large if found[one].settled == 0]
    staying_out = [sum(found[one][1:]) for one in found.keys() - large]
    assert max(staying_out, default=0) <= min(entering, default=10**9)
