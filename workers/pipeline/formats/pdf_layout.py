"""Reading order of a PDF page whose content stream is not in it.

Most pages are in order and stay untouched. On some a block was drawn too late, a headline say, or the left of two columns: it is
moved as a whole. A page whose lines jump up or across too often is sorted by cutting it into
bands (at lines as wide as the page) and columns (at gutters that run the whole height of a band), again and again. Rows of
a table jump across as well (`pdf_rows.py`); a gutter therefore only counts where both sides are wide enough to be read as text.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median

from workers.pipeline.formats.pdf_region import Box
from workers.pipeline.formats.pdf_rows import Line, around, beside, in_rows, parted, table_of

_UPWARD_SHARE = 0.15
_ACROSS_SHARE = 0.30
_GAP_IN_HEIGHTS = 1.5
_WIDE = 0.6  # of the band: such a line spans columns
_COLUMN = 0.2  # of the page: narrower is a column of a table
_NARROWEST = 14  # line heights: narrower are names of fields, addresses, cells
_FILLED = 0.5  # of its column, by the middle line
_WELL_FILLED = 0.75  # the same for three columns and more, which rows of a table resemble
_FEW = 4  # lines; fewer do not show that they are a column
_ALIKE = 0.6  # width of one column by that of another; narrower is a margin
_MOST_BLOCKS = 50
_NEAR = 3  # pieces with the nearest tops


def in_reading_order(
    lines: list[Line], edges: Callable[[int, int], list[tuple[float, float]]], *, left_first: bool = True
) -> list[Line]:
    """The lines, rearranged only if the page looks disordered. `edges` gives left and right of each character, `left_first`
    is whether its script reads columns from the left.
    """
    if len(lines) < 2 or not all(line.boxes for line in lines):
        return lines
    pieces = [piece for line in lines for piece in _split_at_gaps(line, edges)]
    left, right = min(piece.box[0] for piece in pieces), max(piece.box[2] for piece in pieces)
    upward, across = _jumps(pieces)
    if table := table_of(pieces) if upward else None:
        return table
    if upward <= _UPWARD_SHARE and across <= _ACROSS_SHARE:
        return parted(_late_ones_moved(lines, right - left, left_first=left_first))
    return _sorted(pieces, right - left)


def _late_ones_moved(lines: list[Line], page_width: float, *, left_first: bool) -> list[Line]:
    """Blocks that go down the page without a jump, each before the first one that it clearly belongs before."""
    blocks = _blocks(lines)
    if not 1 < len(blocks) <= _MOST_BLOCKS:
        return lines
    ordered: list[list[Line]] = []
    for block in blocks:
        box = around(block)
        for place, other in enumerate(ordered):
            if _is_above(box, other) or (left_first and _is_left(block, other, page_width)):
                # What stands higher, a title over both columns, stays before it.
                higher = next((n for n, line in enumerate(other) if not _is_title_of(line.box, box)), 0)
                ordered[place : place + 1] = filter(None, [other[:higher], block, other[higher:]])
                break
        else:
            ordered.append(block)
    return [line for block in ordered for line in block]


def _blocks(lines: list[Line]) -> list[list[Line]]:
    blocks = [lines[:1]]
    for one, other in pairwise(lines):
        if other.box[1] - one.box[1] > 0.5 * max(one.box[3] - one.box[1], 1):
            blocks.append([])
        blocks[-1].append(other)
    return blocks


def _is_above(box: Box, other: list[Line]) -> bool:
    """Right above, or anywhere above a few lines: they may be the foot of the page."""
    below = around(other)
    return box[1] >= below[3] and (len(other) < _FEW or _share_a_column(box, below))


def _is_title_of(line: Box, box: Box) -> bool:
    return line[1] >= box[3] and _share_a_column(line, box)


def _share_a_column(box: Box, other: Box) -> bool:
    return min(box[2], other[2]) > max(box[0], other[0])


def _is_left(block: list[Line], other: list[Line], page_width: float) -> bool:
    """Whether the two stand beside each other as columns of text, this one on the left."""
    facing = _level_with(block, around(other))
    beside = _level_with(other, around(facing)) if facing else []
    if min(len(facing), len(beside)) < _FEW:
        return False
    left, right = around(facing), around(beside)
    width, across = left[2] - left[0], right[2] - right[0]
    return (
        right[0] >= left[2]
        and min(width, across) > _ALIKE * max(width, across)
        and all(_reads_as_text(side, page_width, _FILLED) for side in (facing, beside))
    )


def _level_with(lines: list[Line], box: Box) -> list[Line]:
    return [line for line in lines if box[1] < (line.box[1] + line.box[3]) / 2 < box[3]]


def _split_at_gaps(line: Line, edges: Callable[[int, int], list[tuple[float, float]]]) -> list[Line]:
    """A line apart where a gap is wider than 1.5 line heights: the other side may be another column, or a cell a little
    higher. A line that a hyphen joined to the next one goes back to the left.
    """
    left, bottom, right, top = line.box
    widest = _GAP_IN_HEIGHTS * (top - bottom)
    pairs = list(pairwise(line.boxes))
    if any(other[0] < one[0] for one, other in pairs) or not any(
        other[0] - one[2] > widest for one, other in pairs
    ):
        return [line]
    pieces: list[Line] = []
    start, start_left, reached = line.start, left, left
    for offset, (char_left, char_right) in enumerate(edges(line.start, line.end)):
        if char_right <= char_left:  # a space that pdfium put in has no box
            continue
        if char_left - reached > widest and reached > start_left:
            pieces.append(Line(start, line.start + offset, [_within(line, start_left, reached)]))
            start, start_left = line.start + offset, char_left
        reached = max(reached, char_right)
    pieces.append(Line(start, line.end, [_within(line, start_left, max(right, reached))]))
    return pieces


def _within(line: Line, left: float, right: float) -> Box:
    """As high as what of the line is there."""
    found = [box for box in line.boxes if box[0] < right and box[2] > left] or [line.box]
    return left, min(box[1] for box in found), right, max(box[3] for box in found)


def _jumps(pieces: Sequence[Line]) -> tuple[float, float]:
    """The share of steps that go up, and of those that go across."""
    upward = across = 0
    for one, other in pairwise(pieces):
        height = max(one.box[3] - one.box[1], 1)
        rise = other.box[1] - one.box[1]
        if rise > 0.5 * height:
            upward += 1
        elif abs(rise) <= 0.5 * height and other.box[0] > one.box[2]:
            across += 1
    return upward / (len(pieces) - 1), across / (len(pieces) - 1)


def _sorted(pieces: list[Line], page_width: float) -> list[Line]:
    ordered: list[Line] = []
    for band in _bands(pieces):
        sides = _columns(band, page_width)
        if sides is None:
            ordered += in_rows(band)
        else:
            for side in sides:
                ordered += _sorted(side, page_width)
    return ordered


def _bands(pieces: list[Line]) -> list[list[Line]]:
    """From top to bottom: lines as wide as the region stand alone, what is between them together. A wide cell has others of
    its row beside it.
    """
    left, right = min(piece.box[0] for piece in pieces), max(piece.box[2] for piece in pieces)
    bands: list[list[Line]] = [[]]
    ordered = sorted(pieces, key=lambda piece: -piece.box[3])
    for number, piece in enumerate(ordered):
        near = (*ordered[max(0, number - _NEAR) : number], *ordered[number + 1 : number + 1 + _NEAR])
        if piece.box[2] - piece.box[0] > _WIDE * (right - left) and not any(
            beside(piece.box, other.box) for other in near
        ):
            bands += [[piece], []]
        else:
            bands[-1].append(piece)
    return [band for band in bands if band]


def _columns(band: list[Line], page_width: float, filled: float = _FILLED) -> list[list[Line]] | None:
    """The two sides of the widest gutter, if both can be read as text."""
    by_left = sorted(band, key=lambda piece: piece.box[0])
    best, where, reached = 0.0, 0, by_left[0].box[2]
    for index, piece in enumerate(by_left[1:], start=1):
        if piece.box[0] - reached > best:
            best, where = piece.box[0] - reached, index
        reached = max(reached, piece.box[2])
    sides = [by_left[:where], by_left[where:]]
    if best <= 0 or not all(_reads_as_text(side, page_width, filled) for side in sides):
        return None
    return sides


def _reads_as_text(side: list[Line], page_width: float, filled: float) -> bool:
    """A column, or several beside each other."""
    width = max(piece.box[2] for piece in side) - min(piece.box[0] for piece in side)
    widths = sorted(piece.box[2] - piece.box[0] for piece in side)
    heights = median(piece.box[3] - piece.box[1] for piece in side)
    if width <= max(_COLUMN * page_width, _NARROWEST * heights) or (filled > _FILLED and len(side) < _FEW):
        return False
    if widths[len(widths) // 2] > filled * width:
        return True
    return width > 2 * _COLUMN * page_width and any(
        _columns(band, page_width, _WELL_FILLED) for band in _bands(side)
    )
