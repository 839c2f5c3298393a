"""What calamine does not tell of an xlsx file: how numbers are shown, comments, words in boxes, charts,
formulas without a value.

Read from the parts of the archive, whose sheets are only looked through: they may be a hundred megabytes.
"""

import posixpath
import re
import zipfile
from collections.abc import Iterator
from itertools import chain
from operator import itemgetter
from typing import Any

from gateway.corpus.child import TaskFailed
from workers.pipeline.formats.drawings import alternative_text, drawn_words
from workers.pipeline.formats.hardened import parse_xml
from workers.pipeline.formats.number_formats import BUILT_IN, NumberFormat, format_of
from workers.pipeline.formats.rows import Place

_WORKBOOK = "xl/workbook.xml"
_ROW = re.compile(rb'<(?:\w+:)?row [^>]*?\br="(\d+)"')
_CELL = re.compile(rb'<(?:\w+:)?c r="([A-Z]{1,3})(\d+)"')
_STYLED = re.compile(rb'<(?:\w+:)?c r="([A-Z]{1,3})(\d{1,7})" s="(\d{1,6})"')
# How a cell with a formula ends that has no value: seldom, and quickly seen, so that a sheet is not looked through in vain.
_ENDS_EMPTY = (b"</f></c>", b"/></c>", b"<v></v></c>")
# An empty text is a value too, so what calls itself one is none of these.
_WITHOUT_VALUE = re.compile(
    rb'<c (?![^<>]*\bt="str")[^<>]*><f(?:[^<>]*/>|[^<>]*>[^<]*</f>)(?:<v\s*/>|<v></v>)?</c>'
)
_REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})")


class WorkbookParts:
    """`most_cells` is the largest rectangle that a sheet spans."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = archive.namelist()
        self.most_cells = 0
        self.without_value = 0  # formulas
        self.broken = 0  # parts that are not XML
        for name in self._names:
            if name.startswith("xl/worksheets/") and name.endswith(".xml"):
                self._look_through(archive.read(name))
        self._formats = dict(self._numbers())
        self._sheets = dict(self._by_title())

    def formats(self, title: str) -> Iterator[tuple[int, int, NumberFormat]]:
        """Row and column, counted from one, of cells that show their number in a way of their own."""
        name = self._sheets.get(title, "")
        if not self._formats or name not in self._names:
            return
        columns: dict[bytes, int] = {}
        for cell in _STYLED.finditer(self._archive.read(name)):
            letters, row, style = cell.groups()
            if shown := self._formats.get(style):
                if (column := columns.get(letters)) is None:
                    column = columns[letters] = column_number(letters)
                yield int(row), column, shown

    def comments(self, title: str) -> list[tuple[Place, str]]:
        parts = dict(self._related(self._sheets.get(title, "")))
        talks = list(self._remarks(parts.get("threadedComment", "")))
        talked = {place for place, _ in talks}
        # A talk is stored as a comment too, for older programs, after a word about these.
        notes = [note for note in self._remarks(parts.get("comments", "")) if note[0] not in talked]
        return sorted(notes + talks, key=itemgetter(0))

    def chart_sheets(self) -> list[str]:
        """Titles of sheets that are a chart and nothing else."""
        return [title for title, part in self._sheets.items() if part.startswith("xl/chartsheets/")]

    def drawn(self, title: str) -> list[tuple[Place, str]]:
        """Words in text boxes and charts, and what is said about pictures; each at the cell it begins over."""
        name = dict(self._related(self._sheets.get(title, ""))).get("drawing", "")
        root = self._root(name)
        parts = {relation: target for relation, (_, target) in self._relations(name)}

        def part(relation: str) -> bytes | None:
            return self._archive.read(parts[relation]) if parts.get(relation) in self._names else None

        found: list[tuple[Place, str]] = []
        anchors = ("{*}oneCellAnchor", "{*}twoCellAnchor", "{*}absoluteAnchor")
        for anchor in () if root is None else root.iter(*anchors):
            if next(anchor.iterancestors("{*}Fallback"), None) is None:
                column = _number_at(anchor, "col")
                place = Place(_number_at(anchor, "row"), column, column)
                words = chain(_words(anchor), *map(str.splitlines, drawn_words(anchor, part)))
                found += [(place, said) for said in words if said]
        return sorted(found, key=itemgetter(0))

    def _look_through(self, sheet: bytes) -> None:
        rows = [int(number[-7:]) for number in _ROW.findall(sheet)]
        columns = {letters for letters, _ in _CELL.findall(sheet)}
        widest = max(map(column_number, columns), default=1)
        self.most_cells = max(self.most_cells, (max(rows, default=1) - min(rows, default=0)) * widest)
        if any(end in sheet for end in _ENDS_EMPTY):
            self.without_value += sum(1 for _ in _WITHOUT_VALUE.finditer(sheet))

    def _numbers(self) -> Iterator[tuple[bytes, NumberFormat]]:
        """By the number of the style, as cells say it."""
        root = self._root("xl/styles.xml")
        if root is None:
            return
        codes = dict(BUILT_IN)
        for named in root.iterfind("{*}numFmts/{*}numFmt"):
            codes[str(named.get("numFmtId"))] = str(named.get("formatCode"))
        for style, cell in enumerate(root.iterfind("{*}cellXfs/{*}xf")):
            if shown := format_of(codes.get(str(cell.get("numFmtId")), "")):
                yield b"%d" % style, shown

    def _by_title(self) -> Iterator[tuple[str, str]]:
        root = self._root(_WORKBOOK)
        parts = dict(self._relations(_WORKBOOK))
        for sheet in () if root is None else root.iterfind("{*}sheets/{*}sheet"):
            relation = next((value for name, value in sheet.items() if name.endswith("}id")), "")
            yield str(sheet.get("name")), parts.get(relation, ("", ""))[1]

    def _related(self, part: str) -> Iterator[tuple[str, str]]:
        return (related for _, related in self._relations(part))

    def _relations(self, part: str) -> Iterator[tuple[str, tuple[str, str]]]:
        """What a part refers to: name of the relation, its kind, and the part."""
        folder, name = posixpath.split(part)
        root = self._root(f"{folder}/_rels/{name}.rels")
        for relation in () if root is None else root:
            kind = str(relation.get("Type")).rpartition("/")[2]
            target = posixpath.normpath(posixpath.join("/", folder, str(relation.get("Target"))))
            yield str(relation.get("Id")), (kind, target.lstrip("/"))

    def _remarks(self, part: str) -> Iterator[tuple[Place, str]]:
        root = self._root(part)
        for remark in () if root is None else root.iter("{*}comment", "{*}threadedComment"):
            words = " ".join("".join(remark.itertext()).split())
            if words and (cell := _REFERENCE.fullmatch(str(remark.get("ref")))):
                column = column_number(cell[1].encode())
                yield Place(int(cell[2]), column, column), words

    def _root(self, name: str) -> Any:
        """None for what is not there or broken: it costs no more than itself."""
        if name not in self._names:
            return None
        try:
            return parse_xml(self._archive.read(name))
        except TaskFailed:
            self.broken += 1
            return None


def column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - ord("A") + 1
    return number


def _number_at(anchor: Any, name: str) -> int:
    number = (anchor.findtext(f"{{*}}from/{{*}}{name}") or "").strip()
    return int(number[:7]) + 1 if number.isdecimal() else 1


def _words(anchor: Any) -> Iterator[str]:
    for picture in anchor.iter("{*}pic"):
        for properties in picture.iterfind("{*}nvPicPr/{*}cNvPr"):
            yield alternative_text(properties)
    for paragraph in anchor.iter("{http://schemas.openxmlformats.org/drawingml/2006/main}p"):
        yield " ".join("".join(text.text or "" for text in paragraph.iter("{*}t")).split())
