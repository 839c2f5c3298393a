"""What calamine does not tell of an xls file: how numbers are shown, and comments. Read from its records (BIFF8), of which there is
one for every cell; older versions of the format are left to calamine alone.
"""

import io
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

import olefile

from workers.pipeline.formats.number_formats import BUILT_IN, NumberFormat, format_of
from workers.pipeline.formats.rows import Place

_BOF, _EOF, _CONTINUE, _ENCRYPTED = 0x0809, 0x000A, 0x003C, 0x002F
_SHEET, _FORMAT, _STYLE = 0x0085, 0x041E, 0x00E0
_NUMBER, _RK, _ROW_OF_RK, _FORMULA = 0x0203, 0x027E, 0x00BD, 0x0006
_NOTE, _OBJECT, _TEXT = 0x001C, 0x005D, 0x01B6
_BIFF8 = 0x0600
_HEAD, _CELL, _ROW = struct.Struct("<HH"), struct.Struct("<HHH"), struct.Struct("<HH")
_WIDE = 1  # flag: two bytes a character

Record = tuple[int, bytes]


@dataclass(slots=True)
class _Sheet:
    rows: "array[int]" = field(default_factory=lambda: array("l"))
    columns: "array[int]" = field(default_factory=lambda: array("l"))
    forms: "array[int]" = field(default_factory=lambda: array("l"))
    comments: list[tuple[Place, str]] = field(default_factory=list[tuple[Place, str]])


class OldSheetParts:
    """As `WorkbookParts`, for the oldest format."""

    most_cells = without_value = 0  # both are calamine's to see

    def __init__(self, data: bytes) -> None:
        self.broken = 0
        self._styles: list[NumberFormat | None] = []
        self._sheets: dict[str, _Sheet] = {}
        try:
            self._read(_workbook(data))
        except (OSError, ValueError, IndexError, struct.error):
            self.broken += 1

    def formats(self, title: str) -> Iterator[tuple[int, int, NumberFormat]]:
        if sheet := self._sheets.get(title):
            for row, column, style in zip(sheet.rows, sheet.columns, sheet.forms, strict=True):
                if form := self._styles[style]:
                    yield row, column, form

    def comments(self, title: str) -> list[tuple[Place, str]]:
        return sorted(self._sheets[title].comments) if title in self._sheets else []

    def drawn(self, title: str) -> list[tuple[Place, str]]:
        del title
        return []

    def chart_sheets(self) -> list[str]:
        return []

    def _read(self, stream: bytes) -> None:
        codes = dict(BUILT_IN)
        starts: dict[str, int] = {}
        for kind, data in _records(stream, 0):
            if kind == _ENCRYPTED:
                return
            if kind == _FORMAT:
                codes[str(int.from_bytes(data[:2], "little"))] = _string(data[2:], 2)
            elif kind == _STYLE:
                self._styles.append(format_of(codes.get(str(int.from_bytes(data[2:4], "little")), "")))
            elif kind == _SHEET:
                starts[_string(data[6:], 1)] = int.from_bytes(data[:4], "little")
        for title, start in starts.items():
            self._sheets[title] = self._sheet(stream, start)

    def _sheet(self, stream: bytes, start: int) -> _Sheet:
        sheet, notes = _Sheet(), _Notes()
        for kind, data in _records(stream, start):
            if kind in {_NUMBER, _RK, _FORMULA}:
                self._keep(sheet, *_CELL.unpack_from(data))
            elif kind == _ROW_OF_RK:
                row, column = _ROW.unpack_from(data)
                for number, at in enumerate(range(4, len(data) - 6, 6)):
                    self._keep(sheet, row, column + number, int.from_bytes(data[at : at + 2], "little"))
            else:
                notes.take(kind, data)
        sheet.comments += notes.found()
        return sheet

    def _keep(self, sheet: _Sheet, row: int, column: int, style: int) -> None:
        if style < len(self._styles) and self._styles[style]:
            sheet.rows.append(row + 1)
            sheet.columns.append(column + 1)
            sheet.forms.append(style)


class _Notes:
    """Comments: which cell has one, and in another place what its box says."""

    def __init__(self) -> None:
        self._places: dict[int, Place] = {}  # by the number of the box
        self._said: dict[int, str] = {}
        self._box, self._length = 0, 0  # the text that goes on in the next record

    def take(self, kind: int, data: bytes) -> None:
        if kind == _NOTE:
            row, column, _, number = struct.unpack_from("<4H", data)
            self._places[number] = Place(row + 1, column + 1, column + 1)
        elif kind == _OBJECT:
            self._box = int.from_bytes(data[6:8], "little")
        elif kind == _CONTINUE and self._length:
            words = _characters(data[1:], self._length, wide=bool(data[0] & _WIDE))
            self._said[self._box] = self._said.get(self._box, "") + words
            self._length -= len(words)
            return
        self._length = int.from_bytes(data[10:12], "little") if kind == _TEXT else 0

    def found(self) -> Iterator[tuple[Place, str]]:
        for number, place in self._places.items():
            if words := " ".join(self._said.get(number, "").split()):
                yield place, words


def _workbook(data: bytes) -> bytes:
    with olefile.OleFileIO(io.BytesIO(data)) as file:
        return file.openstream("Workbook").read() if file.exists("Workbook") else b""


def _records(stream: bytes, at: int) -> Iterator[Record]:
    """Of one part, the workbook's or a sheet's; with what is drawn in it as a part of its own."""
    depth = 0
    while at + _HEAD.size <= len(stream):
        kind, length = _HEAD.unpack_from(stream, at)
        at += _HEAD.size
        if kind == _BOF:
            if not depth and int.from_bytes(stream[at : at + 2], "little") != _BIFF8:
                return
            depth += 1
        elif kind == _EOF:
            depth -= 1
            if depth <= 0:
                return
        elif depth == 1:
            yield kind, stream[at : at + length]
        at += length


def _string(data: bytes, bytes_of_length: int) -> str:
    length = int.from_bytes(data[:bytes_of_length], "little")
    flags = data[bytes_of_length]
    return _characters(data[bytes_of_length + 1 :], length, wide=bool(flags & _WIDE))


def _characters(data: bytes, length: int, *, wide: bool) -> str:
    return data[: 2 * length].decode("utf-16-le", "replace") if wide else data[:length].decode("latin-1")
