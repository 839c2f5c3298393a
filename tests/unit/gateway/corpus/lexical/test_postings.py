"""Packing, removing and merging lose nothing and leave nothing behind."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.corpus.lexical.postings import (
    MAX_CHUNKS,
    CorruptPostings,
    Directory,
    PackedSegment,
    build_segment,
    merge_segments,
    remove_from_directory,
    remove_ordinals,
    unpack_rows,
)

Chunks = list[tuple[int, dict[str, int]]]

COUNTS = st.dictionaries(
    st.sampled_from(["a", "b", "c", "=a-1", "~the", "ü"]),
    st.sampled_from([1, 1, 1, 2, 255, 256, 65_535]),
)


@st.composite
def chunk_lists(draw: Any, max_size: int = 12) -> Chunks:
    counts = draw(st.lists(COUNTS, max_size=max_size))
    numbers = draw(st.lists(st.integers(0, 2**62), min_size=len(counts), max_size=len(counts), unique=True))
    return list(zip(numbers, counts, strict=True))


def unpacked(segment: PackedSegment) -> Chunks:
    """The living chunks with their terms, read back from the bytes."""
    directory = Directory(segment.directory)
    counts: list[dict[str, int]] = [{} for _ in range(len(directory))]
    for term, row in segment.rows:
        postings = unpack_rows([row])
        assert list(postings.ordinals) == sorted(set(postings.ordinals))
        for ordinal, frequency in zip(postings.ordinals, postings.frequencies, strict=True):
            counts[ordinal][term] = int(frequency)
    return [
        (int(number), counts[ordinal])
        for ordinal, number in enumerate(directory.chunk_numbers)
        if directory.alive[ordinal]
    ]


def without(segment: PackedSegment, ordinals: list[int]) -> PackedSegment:
    rows = [(term, remove_ordinals(row, ordinals)) for term, row in segment.rows]
    return PackedSegment(
        remove_from_directory(segment.directory, ordinals),
        [(term, row) for term, row in rows if row is not None],
    )


def same(one: PackedSegment, other: PackedSegment) -> bool:
    return one.directory == other.directory and dict(one.rows) == dict(other.rows)


@given(chunk_lists())
def test_what_is_packed_can_be_read_back(chunks: Chunks):
    assert unpacked(build_segment(chunks)) == chunks


@given(st.sets(st.integers(0, 3_000), min_size=1), st.integers(1, 65_535))
def test_any_spread_of_one_term_can_be_read_back(ordinals: set[int], frequency: int):
    chunks = [(number, {"a": frequency} if number in ordinals else {}) for number in range(3_001)]
    [(_, row)] = build_segment(chunks).rows
    postings = unpack_rows([row])
    assert postings.ordinals.tolist() == sorted(ordinals)
    assert set(postings.frequencies.tolist()) == {frequency}


def test_a_length_counts_words_and_not_markers():
    segment = build_segment([(7, {"word": 3, "=word-1": 2, "~the": 5}), (8, {"~the": 1}), (9, {})])
    assert Directory(segment.directory).lengths.tolist() == [3, 0, 0]


@given(chunk_lists(), st.data())
def test_removing_chunks_is_as_if_they_had_never_been_packed(chunks: Chunks, data: st.DataObject):
    gone = data.draw(st.lists(st.integers(0, len(chunks) - 1), unique=True)) if chunks else []
    left = without(build_segment(chunks), gone)
    kept = [chunk for ordinal, chunk in enumerate(chunks) if ordinal not in gone]
    assert unpacked(left) == kept
    assert {term for term, _ in left.rows} == {term for _, counts in kept for term in counts}
    assert same(merge_segments([left]), build_segment(kept))


def test_a_removed_chunk_leaves_neither_number_nor_length():
    packed = remove_from_directory(build_segment([(4711, {"a": 9}), (4712, {"a": 2})]).directory, [0])
    directory = Directory(packed)
    assert directory.chunk_numbers.tolist() == [-1, 4712]
    assert directory.lengths.tolist() == [0, 2]
    assert directory.ordinals_of([4711, 4712, -1]) == [1]


@given(st.lists(chunk_lists(max_size=5), max_size=4), st.data())
def test_merging_is_as_if_packed_together(parts: list[Chunks], data: st.DataObject):
    gone = [data.draw(st.lists(st.integers(0, len(part) - 1), unique=True)) if part else [] for part in parts]
    merged = merge_segments([without(build_segment(p), g) for p, g in zip(parts, gone, strict=True)])
    living = [
        chunk
        for part, dead in zip(parts, gone, strict=True)
        for ordinal, chunk in enumerate(part)
        if ordinal not in dead
    ]
    assert same(merged, build_segment(living))


def test_a_merge_can_be_done_one_range_of_terms_at_a_time():
    parts = [
        build_segment([(n, {"a": 1, "b": n + 1, f"w{n}": 1}) for n in numbers])
        for numbers in ((1, 2), (3, 4))
    ]
    ranges = [
        merge_segments(
            [PackedSegment(d, [row for row in rows if (row[0] < "b") == low]) for d, rows in parts]
        )
        for low in (True, False)
    ]
    whole = merge_segments(parts)
    assert [part.directory for part in ranges] == [whole.directory] * 2
    assert dict(ranges[0].rows) | dict(ranges[1].rows) == dict(whole.rows)


def test_a_merge_drops_terms_of_the_dead_even_if_their_rows_were_not_rewritten():
    segment = build_segment([(1, {"b": 1}), (2, {"secret": 1, "b": 1}), (3, {"b": 1})])
    merged = merge_segments([PackedSegment(remove_from_directory(segment.directory, [1]), segment.rows)])
    assert unpacked(merged) == [(1, {"b": 1}), (3, {"b": 1})]
    assert [term for term, _ in merged.rows] == ["b"]


def test_many_rows_of_every_packing_are_unpacked_together():
    rng = np.random.default_rng(5)
    chunks: Chunks = [
        (
            n,
            {
                f"t{t}": int(f)
                for t, f in zip(rng.integers(0, 300, 40), rng.integers(1, 400, 40), strict=True)
            },
        )
        for n in range(2_000)
    ]
    parts = [build_segment(chunks[start : start + 500]) for start in range(0, 2_000, 500)]
    assert unpacked(merge_segments(parts)) == chunks


def test_frequent_terms_take_at_most_two_bytes_a_chunk():
    segment = build_segment([(n, {"often": 1 + n % 3, "once": 1}) for n in range(1_000)])
    sizes = {term: len(row) for term, row in segment.rows}
    assert sizes["often"] <= 2_003
    assert sizes["once"] <= 1_003


def test_a_frequency_past_the_limit_is_kept_at_the_limit():
    [(_, counts)] = unpacked(build_segment([(1, {"a": 10**9})]))
    assert counts == {"a": 65_535}


def test_a_segment_has_a_largest_size():
    full = build_segment([(n, {"a": 1}) for n in range(MAX_CHUNKS)])
    assert len(Directory(full.directory)) == MAX_CHUNKS
    assert unpack_rows([full.rows[0][1]]).ordinals[-1] == MAX_CHUNKS - 1
    with pytest.raises(ValueError, match="at most"):
        build_segment([(n, {}) for n in range(MAX_CHUNKS + 1)])
    with pytest.raises(ValueError, match="at most"):
        merge_segments([full, build_segment([(1, {"a": 1})])])


@pytest.mark.parametrize("chunks", [[(-1, {"a": 1})], [(1, {"a": 0})], [(1, {"a": -2})]])
def test_what_cannot_be_is_refused(chunks: Chunks):
    with pytest.raises(ValueError):
        build_segment(chunks)


@pytest.mark.parametrize(
    "row", [b"", b"\x00", b"\x00\x01", b"\x01\x01\x00", b"\x10\x00", b"\x07abc", b"\x12\x00\x00\x01"]
)
def test_bytes_that_are_no_row_are_refused(row: bytes):
    with pytest.raises(CorruptPostings):
        unpack_rows([row])


def test_bytes_that_are_no_directory_are_refused():
    with pytest.raises(CorruptPostings):
        Directory(b"123")
