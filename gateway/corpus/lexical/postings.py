"""Packed posting segments: how the lexical leg is stored.

A segment is a batch of chunks indexed together. It consists of a *directory* (chunk number and length by local
ordinal) and one *row* per term (which ordinals hold it, and how often). Segments are written once; a removal rewrites
the directory and the rows it touches, so that no term of an erased text stays behind; a merge drops the dead and
renumbers. Nothing derived is stored: `bm25` counts its statistics from the directories and rows it is given.

Row:        one byte that says how the rest is packed, then n ordinals ascending, then n frequencies.
            Ordinals are uint16, or, where all steps are under 256, the first as uint16 and the steps as uint8.
            Frequencies are left out when all are 1, else uint8 or uint16.
Directory:  n chunk numbers as int64, then n lengths as uint32. A removed chunk has number -1 and length 0.

All integers are little-endian. All work is over whole arrays: a merge handles hundreds of thousands of rows at once.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gateway.corpus.lexical.terms import UNCOUNTED

POSTINGS_VERSION = 1
MAX_CHUNKS = 65_535  # per segment: ordinals are uint16

_MAX_FREQUENCY = 65_535
_DEAD = -1
_STEPS = 0x10  # in a row's first byte: ordinals as steps; the low bits are the bytes per frequency

_HEADS = [bytes((kind,)) for kind in range(_STEPS + 3)]

Integers = NDArray[np.integer[Any]]


class CorruptPostings(ValueError):
    """The bytes are not a row or directory that this module wrote."""


class PackedSegment(NamedTuple):
    directory: bytes
    rows: list[tuple[str, bytes]]


class Postings(NamedTuple):
    """Unpacked rows, end to end: the numbers of the rows as they follow each other, and what each holds."""

    rows: NDArray[np.int64]
    counts: NDArray[np.int64]
    ordinals: NDArray[np.int32]
    frequencies: Integers

    def spread(self, by_row: NDArray[np.int64]) -> NDArray[np.int64]:
        """A value per row as a value per posting."""
        return np.repeat(by_row[self.rows], self.counts)


class Directory:
    """A view over a directory's bytes; making one copies nothing."""

    def __init__(self, packed: bytes) -> None:
        size, rest = divmod(len(packed), 12)
        if rest:
            raise CorruptPostings(f"a directory of {len(packed)} bytes")
        self.packed = packed
        self.chunk_numbers: NDArray[np.int64] = np.frombuffer(packed, "<i8", size)
        self.lengths: NDArray[np.uint32] = np.frombuffer(packed, "<u4", size, 8 * size)

    @classmethod
    def of(cls, chunk_numbers: Integers, lengths: Integers) -> "Directory":
        return cls(chunk_numbers.astype("<i8").tobytes() + lengths.astype("<u4").tobytes())

    def __len__(self) -> int:
        return len(self.chunk_numbers)

    @property
    def alive(self) -> NDArray[np.bool_]:
        return self.chunk_numbers != _DEAD

    def ordinals_of(self, chunk_numbers: Iterable[int]) -> list[int]:
        """Where these chunks stand; chunks that are not in the segment are left out."""
        wanted = np.fromiter(chunk_numbers, np.int64)
        found: list[int] = np.flatnonzero(np.isin(self.chunk_numbers, wanted[wanted >= 0])).tolist()
        return found

    def without(self, ordinals: Iterable[int]) -> "Directory":
        gone = np.fromiter(ordinals, np.int64)
        chunk_numbers, lengths = self.chunk_numbers.copy(), self.lengths.copy()
        chunk_numbers[gone], lengths[gone] = _DEAD, 0
        return Directory.of(chunk_numbers, lengths)


def build_segment(chunks: Sequence[tuple[int, Mapping[str, int]]]) -> PackedSegment:
    """Packs (chunk number, term counts) pairs; a chunk's ordinal is its place in the sequence.

    A chunk's length is the number of its words: terms that only mark (`=`, `~`) are not counted.
    """
    _check_size(len(chunks))
    numbers = np.fromiter((number for number, _ in chunks), np.int64, len(chunks))
    if len(numbers) and numbers.min() < 0:
        raise ValueError("chunk numbers start at 0")
    index = _numbering()
    terms = _integers(map(index.__getitem__, chain.from_iterable(counts for _, counts in chunks)))
    frequencies = _integers(chain.from_iterable(counts.values() for _, counts in chunks))
    if len(frequencies) and frequencies.min() < 1:
        raise ValueError("a term that does not occur has no place in the counts")
    frequencies = np.minimum(frequencies, _MAX_FREQUENCY)
    ordinals = np.repeat(np.arange(len(chunks)), _integers(len(counts) for _, counts in chunks))
    counted = np.fromiter((not term.startswith(UNCOUNTED) for term in index), np.bool_, len(index))
    lengths = np.zeros(len(chunks), np.int64)
    np.add.at(lengths, ordinals, frequencies * counted[terms])
    return PackedSegment(
        Directory.of(numbers, lengths).packed, _pack_rows(list(index), terms, ordinals, frequencies)
    )


def remove_ordinals(row: bytes, ordinals: Iterable[int]) -> bytes | None:
    """The row without these ordinals; None when nothing is left and the row is to be deleted."""
    postings = unpack_rows([row])
    kept = ~np.isin(postings.ordinals, np.fromiter(ordinals, np.int64))
    if kept.all():
        return row
    same_term = np.zeros(int(kept.sum()), np.int64)
    rows = _pack_rows([""], same_term, postings.ordinals[kept], postings.frequencies[kept])
    return rows[0][1] if rows else None


def remove_from_directory(directory: bytes, ordinals: Iterable[int]) -> bytes:
    return Directory(directory).without(ordinals).packed


def merge_segments(segments: Sequence[PackedSegment]) -> PackedSegment:
    """One segment with the living chunks of all, in order. Rows may come in any order.

    Rows are independent of each other: called with the same directories and the rows of one range of terms at a time,
    it gives the same rows as in one go, with memory for one range.
    """
    directories = [Directory(segment.directory) for segment in segments]
    alive = _joined([directory.alive for directory in directories])
    _check_size(int(alive.sum()))
    index = _numbering()
    row_terms = _integers(index[term] for segment in segments for term, _ in segment.rows)
    row_bases = np.repeat(bases(directories), _integers(len(segment.rows) for segment in segments))
    postings = unpack_rows([row for segment in segments for _, row in segment.rows])
    places = postings.ordinals + postings.spread(row_bases)
    living = alive[places]
    ordinals = (np.cumsum(alive) - 1)[places[living]]
    terms = postings.spread(row_terms)[living]
    rows = _pack_rows(list(index), terms, ordinals, postings.frequencies[living])
    numbers = _joined([directory.chunk_numbers for directory in directories])[alive]
    lengths = _joined([directory.lengths for directory in directories])[alive]
    return PackedSegment(Directory.of(numbers, lengths).packed, rows)


def bases(directories: Sequence[Directory]) -> NDArray[np.int64]:
    """The first place of each when the directories are laid end to end."""
    return np.cumsum([0, *map(len, directories)], dtype=np.int64)[:-1]


def unpack_rows(packed: Sequence[bytes]) -> Postings:
    """All postings of all rows; a row's postings are together, but rows of one packing come before the next."""
    kinds: dict[int, list[int]] = {}
    for number, row in enumerate(packed):
        if not row:
            raise CorruptPostings("an empty row")
        kinds.setdefault(row[0], []).append(number)
    parts = [_unpack_kind(kind, [packed[n] for n in numbers], numbers) for kind, numbers in kinds.items()]
    if len(parts) == 1:
        return parts[0]
    return Postings(*(_joined(arrays) for arrays in zip(*parts, strict=True))) if parts else _NO_POSTINGS


_NO_POSTINGS = Postings(
    np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int64)
)


def _unpack_kind(kind: int, packed: list[bytes], numbers: list[int]) -> Postings:
    stepped, width = bool(kind & _STEPS), kind & ~_STEPS
    if width > 2:
        raise CorruptPostings(f"a row packed in an unknown way ({kind})")
    head, size = (2, 1 + width) if stepped else (1, 2 + width)
    sizes = _integers(map(len, packed)) - head
    if (sizes % size).any() or (sizes <= 0).any():
        raise CorruptPostings("a row is cut short")
    counts = sizes // size
    # where the frequencies begin: after the packing byte and n ordinals (stepped: one byte more for the first)
    splits: list[int] = (counts * (1 if stepped else 2) + head).tolist()
    if stepped:
        first = np.frombuffer(b"".join([row[1:3] for row in packed]), "<u2").astype(np.uint32)
        steps = np.frombuffer(
            b"".join([b"\0" + row[3:at] for row, at in zip(packed, splits, strict=True)]), "u1"
        )
        climbed = np.cumsum(
            steps, dtype=np.uint32
        )  # may wrap round over very many rows; differences stay right
        ordinals = climbed + np.repeat(first - climbed[np.cumsum(counts) - counts], counts)
    else:
        joined = b"".join([row[1:at] for row, at in zip(packed, splits, strict=True)])
        ordinals = np.frombuffer(joined, "<u2")
    if width:
        joined = b"".join([row[at:] for row, at in zip(packed, splits, strict=True)])
        frequencies = np.frombuffer(joined, f"<u{width}")
    else:
        frequencies = np.ones(len(ordinals), np.uint8)
    return Postings(_integers(numbers), counts, ordinals.astype(np.int32, copy=False), frequencies)


def _pack_rows(
    terms: Sequence[str], term_ids: Integers, ordinals: Integers, frequencies: Integers
) -> list[tuple[str, bytes]]:
    """Rows from postings in any order."""
    if not len(term_ids):
        return []
    # one number per posting, so that one sort orders everything; faster than sorting indices and gathering thrice
    postings = term_ids.astype(np.int64) << 32 | ordinals.astype(np.int64) << 16 | frequencies
    postings.sort()
    term_ids, ordinals, frequencies = postings >> 32, postings >> 16 & 0xFFFF, postings & 0xFFFF
    starts = np.flatnonzero(np.diff(term_ids, prepend=-1))
    steps = np.diff(ordinals, prepend=0)
    steps[starts] = 0
    ends = np.append(starts[1:], len(term_ids))
    stepped = (np.maximum.reduceat(steps, starts) <= 0xFF) & (ends - starts > 1)
    highest = np.maximum.reduceat(frequencies, starts)
    widths = (highest > 1) + (highest > 0xFF).astype(np.int64)
    wide, narrow = ordinals.astype("<u2").tobytes(), steps.astype("u1").tobytes()
    by_width = (b"", frequencies.astype("u1").tobytes(), frequencies.astype("<u2").tobytes())
    rows: list[tuple[str, bytes]] = []
    names: list[int] = term_ids[starts].tolist()
    plan = zip(names, starts.tolist(), ends.tolist(), stepped.tolist(), widths.tolist(), strict=True)
    for name, start, end, as_steps, width in plan:
        counted = by_width[width][width * start : width * end]
        if as_steps:
            packed = _HEADS[_STEPS | width] + wide[2 * start : 2 * start + 2] + narrow[start + 1 : end]
        else:
            packed = _HEADS[width] + wide[2 * start : 2 * end]
        rows.append((terms[name], packed + counted))
    return rows


def _check_size(chunks: int) -> None:
    if chunks > MAX_CHUNKS:
        raise ValueError(f"a segment holds at most {MAX_CHUNKS} chunks, not {chunks}")


def _numbering() -> defaultdict[str, int]:
    """Terms to numbers, in the order in which they are first asked for."""
    index: defaultdict[str, int] = defaultdict()
    index.default_factory = index.__len__
    return index


def _integers(values: Iterable[int]) -> NDArray[np.int64]:
    return np.fromiter(values, np.int64)


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)
