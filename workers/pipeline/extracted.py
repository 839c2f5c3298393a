"""What extraction hands to the next stages: one kept text, and the units it is made of.

Offsets are Python string indices into the kept text. Units are in order and never overlap; between two parts that
must not be merged (pages, objects) stands `SEPARATOR`, which belongs to no unit. A unit's `region` still knows where
its characters came from (page and box, source line), also after `replace_spans` has masked some of them.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self

SEPARATOR = "\f"

# How strongly a boundary separates what stands before it from what comes after; 1 to 6 are headings of that rank.
PART, PARAGRAPH, STOP, LINE, SENTENCE, WORD, CHARACTER = 0, 7, 8, 9, 10, 11, 12


class Move(NamedTuple):
    """A replaced span, before and after, relative to its unit."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


class Region(Protocol):
    def locate(self, start: int, end: int) -> dict[str, Any]:
        """Locator fields for this part of the unit; offsets are relative to the unit."""
        ...

    def replaced(self, moves: Sequence[Move]) -> "Region": ...


@dataclass(slots=True)
class Unit:
    kind: str  # page, block, text, code
    text_start: int
    text_end: int
    locator: dict[str, Any]
    heading_path: str = ""
    level: int = PART  # of the boundary at its start
    code_language: str | None = None
    region: Region | None = None


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file inside a file; it becomes a document of its own."""

    name: str
    mime_type: str | None
    data: bytes
    title: str | None = None  # the name, without what the mail itself told to be personal or a secret


@dataclass(slots=True)
class Extracted:
    text: str
    units: list[Unit]
    page_count: int | None = None
    warnings: list[str] = field(default_factory=list[str])
    attachments: list[Attachment] = field(default_factory=list[Attachment], kw_only=True)

    def replace_spans(self, spans: Sequence[tuple[int, int, str]]) -> "Extracted":
        """The same document with each (start, end, replacement) put in place; spans are in order and do not overlap.

        Units, headings and regions move along. A replacement belongs to the unit in which its span begins, or else to
        the first one it touches; a unit that is swallowed whole disappears.
        """
        text, moves = _rewrite(self.text, spans)
        units: list[Unit] = []
        after, reached = 0, 0
        for unit in self.units:
            while after < len(moves) and moves[after].old_end <= unit.text_start:
                after += 1
            last = after
            while last < len(moves) and moves[last].old_start < unit.text_end:
                last += 1
            touched = moves[after:last]
            shift = moves[after - 1].new_end - moves[after - 1].old_end if after else 0
            start, end = unit.text_start + shift, unit.text_end + shift
            if touched:
                first, final = touched[0], touched[-1]
                start = min(start, first.new_start)
                within = unit.text_end < final.old_end
                end = final.new_end if within else unit.text_end + final.new_end - final.old_end
            start = max(start, reached)
            if start >= end:
                continue
            reached = end
            units.append(_moved(unit, start, end, touched))
        return Extracted(text, units, self.page_count, self.warnings, attachments=self.attachments)


def _rewrite(text: str, spans: Sequence[tuple[int, int, str]]) -> tuple[str, list[Move]]:
    pieces: list[str] = []
    moves: list[Move] = []
    position = length = 0
    for start, end, replacement in spans:
        if not position <= start < end <= len(text):
            raise ValueError("spans must be in order, apart from each other, not empty and inside the text")
        pieces += (text[position:start], replacement)
        length += start - position
        moves.append(Move(start, end, length, length + len(replacement)))
        length += len(replacement)
        position = end
    pieces.append(text[position:])
    return "".join(pieces), moves


def _moved(unit: Unit, start: int, end: int, touched: Sequence[Move]) -> Unit:
    region = unit.region
    if region is not None and touched:
        region = region.replaced(
            [
                Move(
                    max(move.old_start, unit.text_start) - unit.text_start,
                    min(move.old_end, unit.text_end) - unit.text_start,
                    min(max(move.new_start, start), end) - start,
                    min(max(move.new_end, start), end) - start,
                )
                for move in touched
            ]
        )
    return Unit(
        unit.kind,
        start,
        end,
        unit.locator,
        unit.heading_path,
        unit.level,
        unit.code_language,
        region,
    )


class Run(NamedTuple):
    """Kept characters and the source characters they stand for: one by one if the lengths agree, else as a whole."""

    kept_start: int
    kept_end: int
    source_start: int
    source_end: int

    def clipped(self, start: int, end: int) -> "Run":
        low, high = max(start, self.kept_start), min(end, self.kept_end)
        if self.kept_end - self.kept_start != self.source_end - self.source_start:
            return Run(low, high, self.source_start, self.source_end)
        distance = self.source_start - self.kept_start
        return Run(low, high, low + distance, high + distance)


class OffsetMap:
    """From kept offsets to source offsets, run by run. Flat arrays: a document has hundreds of thousands of runs."""

    __slots__ = ("_columns",)

    def __init__(self, runs: Sequence[Run]) -> None:
        self._columns = tuple(array("l", (run[column] for run in runs)) for column in range(4))

    @classmethod
    def plain(cls, length: int, source_start: int) -> Self:
        return cls([Run(0, length, source_start, source_start + length)])

    def source_ranges(self, start: int, end: int) -> list[tuple[int, int]]:
        """The source of [start, end), neighbouring ranges joined."""
        ranges: list[tuple[int, int]] = []
        for run in self._between(start, end):
            if ranges and ranges[-1][1] == run.source_start:
                ranges[-1] = (ranges[-1][0], run.source_end)
            else:
                ranges.append((run.source_start, run.source_end))
        return ranges

    def replaced(self, moves: Sequence[Move]) -> "OffsetMap":
        runs: list[Run] = []
        position = shift = 0
        for move in moves:
            runs += self._shifted(position, move.old_start, shift)
            sources = self.source_ranges(move.old_start, move.old_end)
            length, share = move.new_end - move.new_start, move.new_start
            for number, source in enumerate(sources, start=1):
                # Each source range, on its own line perhaps, keeps a share of the placeholder.
                until = move.new_start + number * length // len(sources)
                if share < until:
                    runs.append(Run(share, until, *source))
                share = until
            position, shift = move.old_end, move.new_end - move.old_end
        kept_ends = self._columns[1]
        runs += self._shifted(position, kept_ends[-1] if kept_ends else 0, shift)
        return OffsetMap(runs)

    def _shifted(self, start: int, end: int, shift: int) -> Iterator[Run]:
        for run in self._between(start, end):
            yield run._replace(kept_start=run.kept_start + shift, kept_end=run.kept_end + shift)

    def _between(self, start: int, end: int) -> Iterator[Run]:
        kept_starts, kept_ends, source_starts, source_ends = self._columns
        for index in range(max(0, bisect_right(kept_starts, start) - 1), len(kept_starts)):
            if kept_starts[index] >= end:
                return
            if kept_ends[index] > start:
                run = Run(kept_starts[index], kept_ends[index], source_starts[index], source_ends[index])
                yield run.clipped(start, end)


class SourceLines:
    """Region of a unit that came from a text file: which lines of it."""

    __slots__ = ("_newlines", "_offsets", "first_line")

    def __init__(self, newlines: "array[int]", offsets: OffsetMap, first_line: int = 1) -> None:
        self._newlines = newlines
        self._offsets = offsets
        self.first_line = first_line

    def locate(self, start: int, end: int) -> dict[str, Any]:
        ranges = self._offsets.source_ranges(start, end)
        if not ranges:
            return {}
        return {
            "lineStart": self.first_line + bisect_left(self._newlines, ranges[0][0]),
            "lineEnd": self.first_line + bisect_left(self._newlines, ranges[-1][1] - 1),
        }

    def replaced(self, moves: Sequence[Move]) -> "SourceLines":
        return SourceLines(self._newlines, self._offsets.replaced(moves), self.first_line)


def newline_offsets(text: str) -> "array[int]":
    offsets = array("l")
    position = text.find("\n")
    while position >= 0:
        offsets.append(position)
        position = text.find("\n", position + 1)
    return offsets
