"""Sheets of the oldest Excel format, written here record by record."""

import struct

import pytest

from tests.fixtures.compound_file import compound_file
from workers.pipeline.chunk import chunk
from workers.pipeline.extract import FORMATS, Source, extract
from workers.pipeline.extracted import Extracted

_CODES = {"share": "0.0%", "money": '#,##0.00 "€"', "code": "00000"}
_STYLES = {"": 0, "day": 14, "share": 164, "money": 165, "code": 166}  # numbers of their formats
_OF_STYLE = {name: number for number, name in enumerate(_STYLES)}


def record(number: int, data: bytes = b"") -> bytes:
    return struct.pack("<HH", number, len(data)) + data


def begin(kind: int) -> bytes:
    return record(0x0809, struct.pack("<HHHHII", 0x0600, kind, 0, 1997, 0, 6))


def wide(text: str, form: str = "<HB") -> bytes:
    return struct.pack(form, len(text), 1) + text.encode("utf-16-le")


def place(row: int, column: int, style: str) -> bytes:
    return struct.pack("<HHH", row, column, _OF_STYLE[style])


def words(row: int, column: int, text: str) -> bytes:
    return record(0x0204, place(row, column, "") + wide(text))


def number(row: int, column: int, value: float, style: str) -> bytes:
    return record(0x0203, place(row, column, style) + struct.pack("<d", value))


def whole(value: int) -> bytes:
    return struct.pack("<I", value << 2 | 2)


def comment(row: int, column: int, box: int, *pieces: str) -> bytes:
    """A box, its text in one or more pieces, and the cell it belongs to."""
    drawn = record(0x005D, struct.pack("<HHHH", 0x15, 0x12, 0x19, box) + bytes(14))
    said = record(0x01B6, struct.pack("<HH6xHH4x", 0, 0, sum(map(len, pieces)), 16))
    said += b"".join(record(0x003C, b"\x01" + piece.encode("utf-16-le")) for piece in pieces)
    return (
        drawn
        + said
        + record(0x003C, bytes(16))
        + record(0x001C, struct.pack("<4H", row, column, 0, box) + wide("Ann"))
    )


def workbook(*cells: bytes, version: int = 0x0600) -> bytes:
    codes = b"".join(
        record(0x041E, struct.pack("<H", 164 + at) + wide(code)) for at, code in enumerate(_CODES.values())
    )
    styles = b"".join(record(0x00E0, struct.pack("<HH16x", 0, form)) for form in _STYLES.values())
    name = wide("Old", "<BB")
    length = len(begin(5) + codes + styles) + len(record(0x0085, bytes(6) + name)) + len(record(0x000A))
    bound = record(0x0085, struct.pack("<IBB", length, 0, 0) + name)
    sheet = (
        begin(0x10) + record(0x0200, struct.pack("<IIHHH", 0, 9, 0, 9, 0)) + b"".join(cells) + record(0x000A)
    )
    book = begin(5) + codes + styles + bound + record(0x000A) + sheet
    return compound_file({"Workbook": book.ljust(4096, b"\0")})


def read(*cells: bytes) -> Extracted:
    return extract(Source(workbook(*cells), "application/vnd.ms-excel"), FORMATS["xls"])


@pytest.mark.parametrize(
    ("value", "style", "shown"),
    [
        (0.125, "share", "12.5%"),
        (-1234.5, "money", "-1234.50 €"),
        (1234, "code", "01234"),
        (0.125, "", "0.125"),
        (46082, "day", "2026-03-01"),
    ],
)
def test_a_number_is_said_as_its_sheet_shows_it(value: float, style: str, shown: str):
    assert read(words(0, 0, "value"), number(0, 1, value, style)).text == f"value | {shown}"


def test_numbers_that_are_stored_short_keep_their_formats():
    short = record(0x027E, place(0, 1, "code") + whole(12))
    cells = struct.pack("<H", _OF_STYLE["share"]) + whole(1) + struct.pack("<H", _OF_STYLE["code"]) + whole(7)
    row = record(0x00BD, struct.pack("<HH", 1, 1) + cells + struct.pack("<H", 2))
    result = record(0x0006, place(2, 1, "money") + struct.pack("<dHIH", 5.0, 0, 0, 0))
    text = read(words(0, 0, "a"), short, words(1, 0, "b"), row, words(2, 0, "c"), result).text
    assert text == "a | 00012\nb | 100.0% | 00007\nc | 5.00 €"


def test_comments_are_read_after_their_sheet_and_know_their_cells():
    extracted = read(
        words(0, 0, "a"), words(1, 2, "b"), comment(1, 2, 7, "Ist es ", "so?"), comment(0, 0, 8, "Ja.")
    )
    found = [(item.text, item.locator["cellRange"]) for item in chunk(extracted, language="de")][1:]
    assert found == [("Ja.\nIst es so?", "A1:C2")]


def test_records_that_are_cut_short_cost_what_they_say():
    extracted = read(words(0, 0, "a"), record(0x001C, b"\0"))
    assert extracted.text == "a"
    assert extracted.warnings == ["comments, drawings or formats of cells could not be read"]
