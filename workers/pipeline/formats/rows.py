"""Rows of cells, from a sheet or a CSV file, as one unit whose parts still know their cell range."""

from collections.abc import Container, Iterator, Sequence
from typing import Any, NamedTuple

from workers.pipeline.formats.draft import Draft, Places
from workers.pipeline.formats.numerals import in_letters
from workers.pipeline.formats.tables import goes_on, head_of, lines_of


class Place(NamedTuple):
    """A row's cells, counted from 1 as the reader of a sheet does."""

    row: int
    first_column: int
    last_column: int


def write_rows(
    draft: Draft,
    rows: Sequence[Sequence[str]],
    *,
    first_row: int = 1,
    first_column: int = 1,
    spanning: Container[int] = (),
    **place: Any,
) -> None:
    """Rows with blank ones between them are tables of their own, each with its own head. `spanning` are the numbers of
    rows with cells over several columns: as a head they may be continued by the row below.
    """
    lines: list[str] = []
    places: list[Place] = []
    for start, end in _tables(rows):
        if lines:
            lines.append("")
            places.append(places[-1])
        table = rows[start:end]
        top = head_of(table)
        both = top is not None and start + top in spanning and goes_on(table[top], table[top + 1])
        head = range(top, top + 2) if top is not None and both else None
        for offset, line in enumerate(lines_of(table, head)):
            row = rows[start + offset]
            filled = [column for column, cell in enumerate(row) if cell]
            lines.append(line)
            places.append(
                Place(first_row + start + offset, first_column + filled[0], first_column + filled[-1])
            )
    write_lines(draft, lines, places, **place)


def write_lines(draft: Draft, lines: Sequence[str], places: Sequence[Place], **place: Any) -> None:
    region = Places.of_lines(
        lines, range(len(lines)), lambda first, last: _cell_range(places[first : last + 1])
    )
    draft.block("\n".join(lines), unit="rows", region=region, **place)


def column_name(number: int) -> str:
    return in_letters(number).upper()


def _tables(rows: Sequence[Sequence[str]]) -> Iterator[tuple[int, int]]:
    start: int | None = None
    for number, row in enumerate([*rows, ()]):
        blank = not any(row)
        if not blank and start is None:
            start = number
        elif blank and start is not None:
            yield start, number
            start = None


def _cell_range(places: Sequence[Place]) -> dict[str, Any]:
    """Of every row: a title above and a note below a table are narrower than it."""
    left = min(place.first_column for place in places)
    right = max(place.last_column for place in places)
    return {"cellRange": f"{column_name(left)}{places[0].row}:{column_name(right)}{places[-1].row}"}
