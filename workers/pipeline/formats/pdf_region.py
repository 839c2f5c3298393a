"""Where on a PDF page a piece of kept text stands."""

import ctypes
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from workers.pipeline.extracted import Move, OffsetMap

Box = tuple[float, float, float, float]  # left, bottom, right, top
_NEAR = 8  # boxes before
KeptLine = tuple[int, int, list[Box]]  # start and end in the unit, and its boxes


class Document:
    """An open PDF; at most one page is held open, for boxes of parts of lines."""

    def __init__(self, pdf: pdfium.PdfDocument) -> None:
        self.pdf = pdf
        self._index = -1
        self._page: Any = None
        self._textpage: Any = None

    def open(self, index: int) -> tuple[Any, Any]:
        if index != self._index:
            if self._page is not None:
                self._textpage.close()
                self._page.close()
                self._page = self._textpage = None
            self._index = -1
            page = self.pdf[index]
            self._textpage = page.get_textpage()
            self._page, self._index = page, index
        return self._page, self._textpage


class PageRegion:
    """Boxes for any part of a page. Whole lines are remembered; parts of lines are asked of pdfium again."""

    __slots__ = ("_box_counts", "_boxes", "_document", "_ends", "_index", "_offsets", "_starts")

    def __init__(self, document: Document, index: int, offsets: OffsetMap, lines: Sequence[KeptLine]) -> None:
        self._document = document
        self._index = index
        self._offsets = offsets
        # Flat arrays: a document of ten thousand pages has half a million lines.
        self._starts = array("l", (start for start, _, _ in lines))
        self._ends = array("l", (end for _, end, _ in lines))
        self._box_counts = array("l", [0])
        self._boxes = array("d")
        for _, _, boxes in lines:
            for box in boxes:
                self._boxes.extend(box)
            self._box_counts.append(len(self._boxes) // 4)

    def locate(self, start: int, end: int) -> dict[str, Any]:
        boxes = _blocks(self.line_boxes(start, end))
        if not boxes:
            return {"bbox": None, "boxes": []}
        return {"bbox": _rounded(union(boxes)), "boxes": [_rounded(box) for box in boxes]}

    def line_boxes(self, start: int, end: int) -> list[Box]:
        """One box per line piece that [start, end) touches, in reading order."""
        found: list[Box] = []
        line = max(0, bisect_right(self._starts, start) - 1)
        while line < len(self._starts) and self._starts[line] < end:
            low, high = max(start, self._starts[line]), min(end, self._ends[line])
            whole = low == self._starts[line] and high == self._ends[line]
            characters = [] if whole or low >= high else self._offsets.source_ranges(low, high)
            if whole or (low < high and not characters):  # a note on the page is in one place
                first, last = self._box_counts[line], self._box_counts[line + 1]
                flat = self._boxes[4 * first : 4 * last]
                found += zip(flat[0::4], flat[1::4], flat[2::4], flat[3::4], strict=True)
            elif characters:
                _, textpage = self._document.open(self._index)
                for first, last in characters:
                    found += boxes_of(textpage, first, last)
            line += 1
        return found

    def replaced(self, moves: Sequence[Move]) -> "PageRegion":
        lines: list[KeptLine] = []
        for index, (start, end) in enumerate(zip(self._starts, self._ends, strict=True)):
            flat = self._boxes[4 * self._box_counts[index] : 4 * self._box_counts[index + 1]]
            boxes = list(zip(flat[0::4], flat[1::4], flat[2::4], flat[3::4], strict=True))
            lines.append((_shifted(start, moves, last=False), _shifted(end, moves, last=True), boxes))
        return PageRegion(self._document, self._index, self._offsets.replaced(moves), lines)


def _shifted(offset: int, moves: Sequence[Move], *, last: bool) -> int:
    """Where an edge of a line is after the moves; inside a replaced span the line keeps to the whole replacement."""
    index = bisect_right(moves, offset, key=lambda move: move.old_start) - 1
    if index < 0:
        return offset
    move = moves[index]
    if move.old_start < offset < move.old_end:
        return move.new_end if last else move.new_start
    if offset == move.old_start:
        return move.new_start
    return offset + move.new_end - move.old_end


def boxes_of(textpage: Any, first: int, last: int) -> list[Box]:
    """Boxes of pdfium's characters [first, last), one per line."""
    return joined(rectangles(textpage, first, last))


def rectangles(textpage: Any, first: int, last: int) -> list[Box]:
    """Pdfium's own: one per line and run of text, several where the font changes or a gap is wide."""
    left, top, right, bottom = (ctypes.c_double() for _ in range(4))
    return [
        (left.value, bottom.value, right.value, top.value)
        for number in range(pdfium_c.FPDFText_CountRects(textpage, first, last - first))
        if pdfium_c.FPDFText_GetRect(textpage, number, left, top, right, bottom)
    ]


def turned(boxes: Sequence[Box], angle: int) -> list[Box]:
    """Boxes as they stand when what is turned clockwise by this angle is upright; by its negative, back again."""
    match angle % 360:
        case 90:
            return [(-top, left, -bottom, right) for left, bottom, right, top in boxes]
        case 180:
            return [(-right, -top, -left, -bottom) for left, bottom, right, top in boxes]
        case 270:
            return [(bottom, -right, top, -left) for left, bottom, right, top in boxes]
        case _:
            return list(boxes)


def joined(boxes: Sequence[Box]) -> list[Box]:
    """Neighbours on one baseline made one."""
    lines: list[Box] = []
    for box in boxes:
        if lines and _same_line(lines[-1], box):
            lines[-1] = union([lines[-1], box])
        else:
            lines.append(box)
    return lines


def _same_line(one: Box, other: Box) -> bool:
    overlap = min(one[3], other[3]) - max(one[1], other[1])
    return overlap > 0.5 * min(one[3] - one[1], other[3] - other[1])


def _blocks(lines: Sequence[Box]) -> list[Box]:
    """Lines that stand right under each other in one column become one box: a locator stays small. Not where the box would
    be around others too: a line above a table and its first cell, the last cell and a line below it.
    """
    blocks: list[list[Box]] = []
    for line in lines:
        if blocks and _under(blocks[-1][-1], line):
            whole = union([*blocks[-1], line])
            if not any(_meet(whole, union(other)) for other in blocks[-1 - _NEAR : -1]):
                blocks[-1].append(line)
                continue
        if blocks and _meet(union(blocks[-1]), line):
            blocks[-1:] = _apart(blocks[-1], line)
        blocks.append([line])
    return [union(block) for block in blocks]


def _apart(block: list[Box], line: Box) -> list[list[Box]]:
    """In two, so that neither is around the line."""
    for middle in range(len(block) - 1, 0, -1):
        halves = [block[:middle], block[middle:]]
        if not any(_meet(union(half), line) for half in halves):
            return halves
    return [block]


def _meet(one: Box, other: Box) -> bool:
    across, high = (min(one[side + 2], other[side + 2]) - max(one[side], other[side]) for side in (0, 1))
    return across > 0 and high > 0


def _under(upper: Box, lower: Box) -> bool:
    height = max(upper[3] - upper[1], lower[3] - lower[1])
    gap = upper[1] - lower[3]
    overlap = min(upper[2], lower[2]) - max(upper[0], lower[0])
    narrower = min(upper[2] - upper[0], lower[2] - lower[0])
    return -0.5 * height < gap < height and overlap > 0.5 * narrower


def union(boxes: Sequence[Box]) -> Box:
    return (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )


def _rounded(box: Box) -> list[float]:
    return [round(edge, 1) for edge in box]
