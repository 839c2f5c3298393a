"""Rows of a table on a PDF page, and lines that stand beside each other.

Nearly every program draws a table cell by cell, each with all its lines, so the order of the stream says which lines make a
cell; it is believed where cells follow each other to the right and rows down the page. Where it was drawn in another way
only the baselines are left: what overlaps is a row.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from workers.pipeline.formats.pdf_region import Box, joined, union

NEW_LINE, NEXT_CELL, GOES_ON = "\n", "\t", " "
_INDENT = 2  # heights; what begins further left than the cell is below the table
_PITCH_IN_HEIGHTS = 1.75  # from line to line of one cell; boxes are as high as their letters
_ALIGNED = 4  # lines: as many or more in every cell, side by side, were drawn column by column
_COLUMN = 12  # lines: so many in two cells of a row are columns of text
_CELLS_APART = 1.0  # of their height; nearer is one word after the other
_ROWS_APART = 4  # heights of a line; what is further below belongs to no table with it


@dataclass(slots=True)
class Line:
    """[start, end) of the page's raw text, and pdfium's rectangles for it."""

    start: int
    end: int
    boxes: list[Box]
    box: Box = (0, 0, 0, 0)  # of the first line, where a hyphen joined two
    before: str = NEW_LINE  # what parts it from the line that is read before it

    def __post_init__(self) -> None:
        if self.boxes:
            self.box = joined(self.boxes)[0]


@dataclass(slots=True)
class _Row:
    """`cells` in the order they were drawn; `climbs` how often one began higher than the one before it ended."""

    box: Box
    cells: list[list[Line]] = field(default_factory=list[list[Line]])
    climbs: int = 0

    def add(self, cell: list[Line]) -> None:
        self.cells.append(cell)
        self.box = union([self.box, around(cell)])


def around(lines: Sequence[Line]) -> Box:
    boxes = [box for line in lines for box in line.boxes] or [line.box for line in lines]
    return union(boxes)


def beside(one: Box, other: Box) -> bool:
    shared = min(one[3], other[3]) - max(one[1], other[1])
    return shared > 0.5 * min(one[3] - one[1], other[3] - other[1])


def parted(lines: list[Line]) -> list[Line]:
    """Lines in their order; who stands right of the one before is the next cell of its row."""
    for one, other in pairwise(lines):
        if other.box[0] >= one.box[2] and beside(one.box, other.box):
            near = other.box[0] - one.box[2] < _CELLS_APART * (one.box[3] - one.box[1])
            other.before = GOES_ON if near else NEXT_CELL
    return lines


def table_of(pieces: Sequence[Line]) -> list[Line] | None:
    """A page as drawn if it is rows of cells with several lines; two columns written line by line have none of these."""
    rows = _rows_as_drawn(pieces)
    beyond_one = sum(len(row.cells) > 1 for row in rows or ())
    climbing = sum(row.climbs > 0 for row in rows or ())
    return _written(rows) if rows and climbing and climbing * 4 >= beyond_one else None


def in_rows(band: Sequence[Line]) -> list[Line]:
    """What stands beside no column of text, from top to bottom, each row from left to right."""
    return _written(_rows_as_drawn(sorted(band, key=lambda piece: piece.start)) or _by_baseline(band))


def _rows_as_drawn(pieces: Sequence[Line]) -> list[_Row] | None:
    """From top to bottom. None where rows overlap, so that the page was not drawn in rows."""
    rows: list[_Row] = []
    heights = sorted(piece.box[3] - piece.box[1] for piece in pieces)
    height = heights[3 * len(heights) // 4]  # of a line with letters that reach above and below it
    for cell in _cells(pieces, height):
        box = around(cell)
        if rows and _begins_right_of(rows[-1], box):
            row = rows.pop()
            rows += _without_paragraph(row, box)
            rows[-1].climbs += box[3] > row.cells[-1][-1].box[3] + 0.5 * height
            rows[-1].add(cell)
        else:
            rows.append(_Row(box, [cell]))
    rows.sort(key=lambda row: -row.box[3])
    if any(_overlap(one.box, other.box) for one, other in pairwise(rows)) or any(map(_are_columns, rows)):
        return None
    return rows


def _begins_right_of(row: _Row, box: Box) -> bool:
    """Whether a cell goes on in this row; the paragraph above its first cell may be wider."""
    lines = row.cells[-1][_wider(row.cells[-1], box) :]
    above = row.cells[-1][: len(row.cells[-1]) - len(lines)]
    if not lines or (above and (len(row.cells) > 1 or _overlap(around(above), box))):
        return False
    return _overlap(around(lines) if above else row.box, box)


def _without_paragraph(row: _Row, box: Box) -> list[_Row]:
    """The row, and before it as one of its own what was drawn right above its only cell."""
    lines = row.cells[-1]
    wider = _wider(lines, box)
    if not wider:
        return [row]
    return [_Row(around(part), [part]) for part in (lines[:wider], lines[wider:])]


def _wider(lines: Sequence[Line], box: Box) -> int:
    """How many of these lines, from the first on, reach under or over what begins right of the others."""
    wide = [number for number, line in enumerate(lines, start=1) if line.box[2] > box[0] + 1]
    return wide[-1] if wide else 0


def _cells(pieces: Sequence[Line], height: float) -> list[list[Line]]:
    """Lines drawn one under the other, as near as lines of a paragraph are."""
    cells = [[pieces[0]]]
    for one, other in pairwise(pieces):
        lowest = one.boxes[-1]
        below = 0 < lowest[3] - other.box[3] <= _PITCH_IN_HEIGHTS * height + lowest[3] - lowest[1] - height
        begins = cells[-1][0].box[0] - _INDENT * height < other.box[0]
        if not (below and begins and min(lowest[2], other.box[2]) > max(lowest[0], other.box[0])):
            cells.append([])
        cells[-1].append(other)
    return cells


def _are_columns(row: _Row) -> bool:
    """Columns drawn one after the other: cells of too many lines, or of as many, each beside its like."""
    counts = sorted(len(cell) for cell in row.cells)
    if len(counts) < 2 or counts[-2] < _ALIGNED:
        return False
    if counts[-2] >= _COLUMN:
        return True
    lines = zip(row.cells[0], row.cells[1], strict=False)
    return counts[0] == counts[-1] and all(beside(one.box, other.box) for one, other in lines)


def _written(rows: Sequence[_Row]) -> list[Line]:
    for table in _tables(rows):
        if len(table) > 1:
            columns = _columns_of(table)
            for row in table:
                _part(row, columns)
        else:
            parted([line for cell in table[0].cells for line in cell])
    return [line for row in rows for cell in row.cells for line in cell]


def _tables(rows: Sequence[_Row]) -> Iterator[list[_Row]]:
    """Rows of several cells near each other; what stands alone is a table of one row."""
    table = list(rows[:1])
    for one, other in pairwise(rows):
        line = other.cells[0][0].box
        apart = one.box[1] - other.box[3] > _ROWS_APART * (line[3] - line[1])
        if apart or min(len(one.cells), len(other.cells)) < 2:
            yield table
            table = []
        table.append(other)
    yield table


def _columns_of(table: Sequence[_Row]) -> list[float]:
    """Where each begins, if every cell is in one of as many as the longest row has; else the empty ones cannot be told."""
    starts: list[float] = []
    reached = -inf
    for left, _, right, _ in sorted(around(cell) for row in table for cell in row.cells):
        if left > reached:
            starts.append(left)
        reached = max(reached, right)
    longest = max(len(row.cells) for row in table)
    return starts if len(starts) == longest and all(_in_step(row, starts) for row in table) else []


def _in_step(row: _Row, starts: Sequence[float]) -> bool:
    """Whether its cells are in different columns, one after the other."""
    columns = [bisect_right(starts, around(cell)[0]) for cell in row.cells]
    return all(one < other for one, other in pairwise(columns))


def _part(row: _Row, columns: Sequence[float]) -> None:
    """A row of a table is a line, with a tab between cells, also where one is empty."""
    before = 0
    for number, cell in enumerate(row.cells):
        for line in cell:
            line.before = GOES_ON
        column = bisect_right(columns, around(cell)[0]) - 1 if columns else number
        cell[0].before = NEXT_CELL * (column - before)
        before = column
    first = row.cells[0][0]
    first.before = NEW_LINE + first.before


def _by_baseline(band: Sequence[Line]) -> list[_Row]:
    """Boxes are as high as their letters: a row is what overlaps."""
    rows: list[_Row] = []
    for piece in sorted(band, key=lambda piece: -(piece.box[1] + piece.box[3])):
        if not rows or not beside(rows[-1].box, piece.box):
            rows.append(_Row(piece.box))
        rows[-1].cells.append([piece])
    for row in rows:
        row.cells.sort(key=lambda cell: cell[0].box[0])
    return rows


def _overlap(one: Box, other: Box) -> bool:
    """Whether they share more of the page's height than letters that reach below their line."""
    shared = min(one[3], other[3]) - max(one[1], other[1])
    return shared > 0.4 * min(one[3] - one[1], other[3] - other[1], 12)
