"""How a reader that walks a document's structure writes it down: blocks in order, headings, parts, and where each was."""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from workers.pipeline.extracted import (
    LINE,
    PARAGRAPH,
    PART,
    SEPARATOR,
    Attachment,
    Extracted,
    Move,
    OffsetMap,
    Region,
    Unit,
)
from workers.pipeline.formats import text as plain

HEADING_CHARACTERS = 200


class Draft:
    """The kept text in the making. `locator` is what every block has, with `sections` also the headings it is under; each
    block adds its own place.
    """

    def __init__(self, locator: dict[str, Any], *, sections: bool = False) -> None:
        self.locator = locator
        self._sections = sections
        self.units: list[Unit] = []
        self.attachments: list[Attachment] = []
        self.warnings: list[str] = []
        self._pieces: list[str] = []
        self._length = 0
        self.headings: list[tuple[int, str]] = []
        self.path = ""  # of headings; one string for all blocks under them
        self._next_level: int | None = PART

    def part(self, heading: str = "") -> None:
        """What follows shares no chunk with what was before: a slide, a sheet, a part of a mail."""
        self._next_level = PART
        self.put_under([(0, _title(heading))] if _title(heading) else [])

    def heading(self, rank: int, text: str, *, region: Region | None = None, **place: Any) -> None:
        """Rank 1 to 6; 0 is the title of the whole."""
        title = _title(text)
        above = [entry for entry in self.headings if entry[0] < rank]
        self.put_under([*above, (rank, title)] if title else above)
        if title and self.block(text, level=min(max(rank, 1), 6), region=region, **place):
            self._next_level = LINE  # a heading does not part from what it heads

    def put_under(self, headings: list[tuple[int, str]]) -> None:
        self.headings = headings
        self.path = " > ".join(title for _, title in headings)

    def block(
        self,
        text: str,
        *,
        level: int = PARAGRAPH,
        unit: str = "block",
        region: Region | None = None,
        **place: Any,
    ) -> bool:
        """False if there was nothing to write down."""
        text = plain.clean(text).replace(SEPARATOR, "\n").strip("\n")
        if not text.strip():
            return False
        if self._next_level is not None:
            level, self._next_level = self._next_level, None
        self._separate(level)
        locator = {**self.locator, **place} if place or self._sections else self.locator
        if self._sections and self.path:
            locator.setdefault("section", self.path)
        self.units.append(
            Unit(unit, self._length, self._length + len(text), locator, self.path, level, region=region)
        )
        self._write(text)
        return True

    def code(self, text: str, language: str, region: Region | None = None, **place: Any) -> None:
        self._next_level = PART
        if self.block(text, unit="code", region=region, kind="code", **place):
            self.units[-1].code_language = language

    def lines(self, lines: Sequence[str], *, region: Region | None = None, **place: Any) -> None:
        """Lines that belong together: rows of a table, items of a list."""
        self.block("\n".join(line for line in lines if line.strip()), region=region, **place)

    def take(self, text: str, units: Sequence[Unit], **place: Any) -> None:
        """Units that another reader made of this text."""
        if not units or not text.strip():
            return
        first_level = PARAGRAPH if self._next_level is None else self._next_level
        self._next_level = None
        self._separate(first_level)
        for number, unit in enumerate(units):
            unit.text_start += self._length
            unit.text_end += self._length
            unit.locator = {**unit.locator, **self.locator, **place}
            unit.heading_path = " > ".join(filter(None, (self.path, unit.heading_path)))
            if number == 0:
                unit.level = first_level
        self.units += units
        self._write(text)

    def finish(self, page_count: int | None = None) -> Extracted:
        text = "".join(self._pieces)
        return Extracted(text, self.units, page_count, self.warnings, attachments=self.attachments)

    def _separate(self, level: int) -> None:
        if self._pieces:
            self._write(SEPARATOR if level == PART else "\n" if level == LINE else "\n\n")

    def _write(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)


def _title(text: str) -> str:
    return " ".join(text.split())[:HEADING_CHARACTERS]


class Places:
    """Region of a unit made of smaller parts, each with a place of its own: rows, values, elements.

    `join` makes locator fields of the first and the last place a stretch touches.
    """

    __slots__ = ("_join", "_offsets", "_places", "_starts")

    def __init__(
        self,
        starts: "array[int]",
        places: Sequence[Any],
        join: Callable[[Any, Any], dict[str, Any]],
        offsets: OffsetMap,
    ) -> None:
        self._starts, self._places, self._join, self._offsets = starts, places, join, offsets

    @classmethod
    def of_lines(
        cls, lines: Sequence[str], places: Sequence[Any], join: Callable[[Any, Any], dict[str, Any]]
    ) -> "Places":
        """One place per line of a text that is these lines."""
        starts = array("l")
        length = 0
        for line in lines:
            starts.append(length)
            length += len(line) + 1
        return cls(starts, places, join, OffsetMap.plain(max(0, length - 1), 0))

    def locate(self, start: int, end: int) -> dict[str, Any]:
        ranges = self._offsets.source_ranges(start, end)
        if not ranges or not self._places:
            return {}
        first = max(0, bisect_right(self._starts, ranges[0][0]) - 1)
        last = max(first, bisect_right(self._starts, ranges[-1][1] - 1) - 1)
        return self._join(self._places[first], self._places[last])

    def replaced(self, moves: Sequence[Move]) -> "Places":
        return Places(self._starts, self._places, self._join, self._offsets.replaced(moves))
