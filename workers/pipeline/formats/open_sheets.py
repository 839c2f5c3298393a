"""What calamine does not tell of an ods file: how numbers are shown, comments, words in boxes and charts, formulas without a value.

The sheets are parsed a second time, row by row, and nothing of them is kept but this: they may be a hundred megabytes.
"""

import io
import posixpath
import zipfile
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import Any

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - a compiled module without stubs

from gateway.corpus.child import TaskFailed
from workers.pipeline.formats.hardened import parse_xml
from workers.pipeline.formats.number_formats import NumberFormat, format_of
from workers.pipeline.formats.opendocument_styles import NS as _NS
from workers.pipeline.formats.opendocument_styles import STYLE as _STYLE
from workers.pipeline.formats.opendocument_styles import TEXT as _TEXT
from workers.pipeline.formats.rows import Place

CONTENT = "content.xml"
_TABLE, _OFFICE, _DRAW = f"{{{_NS}table:1.0}}", f"{{{_NS}office:1.0}}", f"{{{_NS}drawing:1.0}}"
_NUMBER, _CHART, _SVG = f"{{{_NS}datastyle:1.0}}", f"{{{_NS}chart:1.0}}", f"{{{_NS}svg-compatible:1.0}}"
_XLINK = "{http://www.w3.org/1999/xlink}"
_NUMBERS = {"float", "percentage", "currency"}
_ROWS_SPANNED, _COLUMNS_SPANNED = (f"{_TABLE}number-{what}-spanned" for what in ("rows", "columns"))
_PARAGRAPH = f"{_TEXT}p"
_MOST_REPEATS = 1_000  # of one cell or row with a format or a comment; a repeat count may be anything
_MOST_ANCESTORS = 20
_MOST_DIGITS = 30


Merged = tuple[
    tuple[int, int], tuple[int, int]
]  # first and last cell, row and column counted from 0, as calamine does


@dataclass(slots=True)
class _Sheet:
    rows: "array[int]" = field(default_factory=lambda: array("l"))
    columns: "array[int]" = field(default_factory=lambda: array("l"))
    forms: "array[int]" = field(default_factory=lambda: array("l"))
    comments: list[tuple[Place, str]] = field(default_factory=list[tuple[Place, str]])
    merged: list[Merged] = field(default_factory=list[Merged])
    drawn: list[tuple[Place, str]] = field(default_factory=list[tuple[Place, str]])
    styles: list[tuple[int, str]] = field(
        default_factory=list[tuple[int, str]]
    )  # of columns: until which, and what
    reached: int = 0  # rows


class OpenSheetParts:
    """As `WorkbookParts`, for the other format."""

    most_cells = 0  # it repeats what is empty instead of saying how large a sheet is

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = frozenset(archive.namelist())
        self.without_value = 0
        self.broken = 0
        self._forms: list[NumberFormat] = []
        self._of_style: dict[str, int] = {}  # index of its form
        self._sheets: dict[str, _Sheet] = {}
        styles = self._root("styles.xml")
        self._known = {} if styles is None else _named(styles)
        try:
            self._read(archive.read(CONTENT))
        except etree.XMLSyntaxError:
            self.broken += 1

    def formats(self, title: str) -> Iterator[tuple[int, int, NumberFormat]]:
        if sheet := self._sheets.get(title):
            for row, column, form in zip(sheet.rows, sheet.columns, sheet.forms, strict=True):
                yield row, column, self._forms[form]

    def comments(self, title: str) -> list[tuple[Place, str]]:
        return self._sheets[title].comments if title in self._sheets else []

    def drawn(self, title: str) -> list[tuple[Place, str]]:
        return sorted(self._sheets[title].drawn, key=itemgetter(0)) if title in self._sheets else []

    def merged(self, title: str) -> list[Merged]:
        return self._sheets[title].merged if title in self._sheets else []

    def chart_sheets(self) -> list[str]:
        return []

    def _read(self, content: bytes) -> None:
        wanted = [f"{_TABLE}{name}" for name in ("table", "table-column", "table-row", "shapes")]
        parsed = etree.iterparse(
            io.BytesIO(content), ("start", "end"), tag=[*wanted, f"{_OFFICE}automatic-styles"],
            resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False,
        )  # fmt: skip
        sheet = _Sheet()
        for event, element in parsed:
            kind = element.tag.rpartition("}")[2]
            if event == "start":
                if kind == "table":
                    sheet = self._sheets.setdefault(str(element.get(f"{_TABLE}name")), _Sheet())
            elif kind == "automatic-styles":
                self._known |= _named(element)
                self._learn_formats()
            elif kind == "table-column":
                last = sheet.styles[-1][0] if sheet.styles else 0
                style = str(element.get(f"{_TABLE}default-cell-style-name", ""))
                sheet.styles.append((last + _repeats(element, "columns"), style))
            elif kind == "shapes":
                sheet.drawn += ((Place(1, 1, 1), words) for words in self._words(element))
            elif kind == "table-row":
                self._read_row(sheet, element)
                element.clear()
                while element.getprevious() is not None:
                    del element.getparent()[0]

    def _read_row(self, sheet: _Sheet, row: Any) -> None:
        default = str(row.get(f"{_TABLE}default-cell-style-name", ""))
        repeated = _repeats(row, "rows")
        rows = range(sheet.reached + 1, sheet.reached + 1 + min(repeated, _MOST_REPEATS))
        sheet.reached += repeated
        column = 1
        for cell in row.iterchildren(f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
            across = _repeats(cell, "columns")
            kind = cell.get(f"{_OFFICE}value-type")
            if kind in _NUMBERS:
                style = str(cell.get(f"{_TABLE}style-name") or default or _of_column(sheet, column))
                form = self._of_style.get(style)
                for number in () if form is None else range(column, column + min(across, _MOST_REPEATS)):
                    sheet.rows.extend(rows)
                    sheet.columns.extend([number] * len(rows))
                    sheet.forms.extend([form or 0] * len(rows))
            elif kind is None and cell.get(f"{_TABLE}formula") and cell.find(_PARAGRAPH) is None:
                self.without_value += 1
            if (down := cell.get(_ROWS_SPANNED)) or cell.get(_COLUMNS_SPANNED):
                last = rows[0] - 2 + _number(down), column - 2 + _number(cell.get(_COLUMNS_SPANNED))
                sheet.merged.append(((rows[0] - 1, column - 1), last))
            if len(cell) > 1 or (len(cell) and cell[0].tag != _PARAGRAPH):
                self._read_beside(sheet, cell, Place(rows[0], column, column))
            column += across

    def _read_beside(self, sheet: _Sheet, cell: Any, place: Place) -> None:
        remarks = (_paragraphs(remark) for remark in cell.iterchildren(f"{_OFFICE}annotation"))
        sheet.comments += ((place, words) for words in remarks if words)
        # Calamine takes words in boxes for those of their cell, if it has any.
        in_cell = cell.get(f"{_OFFICE}value-type") == "string"
        sheet.drawn += ((place, words) for words in self._words(cell, boxes=not in_cell))

    def _words(self, container: Any, *, boxes: bool = True) -> Iterator[str]:
        """In boxes, about pictures, and of charts their titles."""
        for drawing in container.iter(f"{_DRAW}frame", f"{_DRAW}custom-shape"):
            said = ("".join(element.itertext()) for element in drawing.iter(f"{_SVG}title", f"{_SVG}desc"))
            charts = (
                self._titles(str(element.get(f"{_XLINK}href"))) for element in drawing.iter(f"{_DRAW}object")
            )
            for words in chain((_paragraphs(drawing),) if boxes else (), said, *charts):
                if flat := " ".join(words.split()):
                    yield flat

    def _titles(self, link: str) -> Iterator[str]:
        root = self._root(posixpath.normpath(f"{link}/{CONTENT}"))
        for title in () if root is None else root.iter(f"{_CHART}title", f"{_CHART}subtitle"):
            yield _paragraphs(title)

    def _root(self, name: str) -> Any:
        if name not in self._names:
            return None
        try:
            return parse_xml(self._archive.read(name))
        except TaskFailed:
            self.broken += 1
            return None

    def _learn_formats(self) -> None:
        by_code: dict[str, int] = {}
        for name, style in self._known.items():
            if style.get(f"{_STYLE}family") != "table-cell":
                continue
            code = _code(self._known, _data_style(self._known, name))
            if code not in by_code and (form := format_of(code)):
                by_code[code] = len(self._forms)
                self._forms.append(form)
            if code in by_code:
                self._of_style[name] = by_code[code]


def _named(root: Any) -> dict[str, Any]:
    """Styles by their name; those of cells and of their numbers do not share any."""
    kinds = (f"{_STYLE}style", *(f"{_NUMBER}{kind}-style" for kind in ("number", "percentage", "currency")))
    return {str(style.get(f"{_STYLE}name")): style for style in root.iter(*kinds)}


def _data_style(known: dict[str, Any], name: str) -> str:
    for _ in range(_MOST_ANCESTORS):
        if (style := known.get(name)) is None:
            return ""
        if found := style.get(f"{_STYLE}data-style-name"):
            return str(found)
        name = str(style.get(f"{_STYLE}parent-style-name"))
    return ""


def _code(known: dict[str, Any], name: str) -> str:
    """A style of numbers as the code it would have in Excel; '' for what is none of them. Of several by condition the one for what
    is not negative.
    """
    style = known.get(name)
    if style is None or not style.tag.startswith(_NUMBER):
        return ""
    for condition in style.iterchildren(f"{_STYLE}map"):
        if str(condition.get(f"{_STYLE}condition")).replace(" ", "") in {"value()>=0", "value()>0"}:
            style = known.get(str(condition.get(f"{_STYLE}apply-style-name")), style)
    pieces: list[str] = []
    for part in style:
        kind = str(part.tag).rpartition("}")[2]
        if kind in {"text", "currency-symbol"}:
            words = "".join(part.itertext()).replace('"', "")
            is_share = style.tag.endswith("percentage-style")
            pieces += (f'"{piece}"' if piece != "%" or not is_share else "%" for piece in _at_signs(words))
        elif kind == "number":
            if part.get(f"{_NUMBER}display-factor") or len(part):
                return ""
            digits, places = (
                min(_number(part.get(f"{_NUMBER}{name}"), 0), _MOST_DIGITS)
                for name in ("min-integer-digits", "decimal-places")
            )
            pieces.append("0" * max(1, digits) + ("." + "0" * places if places else ""))
        elif kind not in {"properties", "text-properties", "map"}:
            return ""
    return "".join(pieces)


def _at_signs(words: str) -> Iterator[str]:
    before, sign, behind = words.partition("%")
    return filter(None, (before, sign, behind))


def _of_column(sheet: _Sheet, column: int) -> str:
    return next((style for last, style in sheet.styles if column <= last), "")


def _repeats(element: Any, what: str) -> int:
    return max(_number(element.get(f"{_TABLE}number-{what}-repeated")), 1)


def _number(words: str | None, otherwise: int = 1) -> int:
    return int(words[:9]) if words and words.isdecimal() else otherwise


def _paragraphs(container: Any) -> str:
    return " ".join(" ".join("".join(words.itertext()) for words in container.iter(_PARAGRAPH)).split())
