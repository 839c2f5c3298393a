"""OpenDocument texts and slides (odt, odp) by zipfile and lxml; sheets (ods) are read by `sheets`."""

import io
import zipfile
from collections.abc import Iterator
from typing import Any

from workers.pipeline.extract import Source
from workers.pipeline.extracted import Extracted
from workers.pipeline.formats.draft import Draft
from workers.pipeline.formats.hardened import entry, parse_xml
from workers.pipeline.formats.opendocument_styles import NS as _NS
from workers.pipeline.formats.opendocument_styles import STYLE as _STYLE
from workers.pipeline.formats.opendocument_styles import TEXT as _TEXT
from workers.pipeline.formats.opendocument_styles import Styles
from workers.pipeline.formats.tables import lines_of
from workers.pipeline.zip_guard import check_zip

_TABLE, _OFFICE, _SVG = f"{{{_NS}table:1.0}}", f"{{{_NS}office:1.0}}", f"{{{_NS}svg-compatible:1.0}}"
_DRAW, _PRESENTATION = f"{{{_NS}drawing:1.0}}", f"{{{_NS}presentation:1.0}}"
_BOX = f"{_DRAW}text-box"
_NO_NUMBER = "<number>"  # what stands where a slide's number will be
_MOST_REPEATS = 100  # a repeat count may be anything
_DEEPEST_TABLE = 10


def read(source: Source) -> Extracted:
    check_zip(source.data)
    with zipfile.ZipFile(io.BytesIO(source.data)) as archive:
        content = parse_xml(entry(archive, "content.xml"))
        styles = parse_xml(entry(archive, "styles.xml")) if "styles.xml" in archive.namelist() else None
    draft = Draft({"kind": "office"}, sections=True)
    walker = _Walker(draft, Styles([content] if styles is None else [styles, content]))
    for body in content.iterfind(f"{_OFFICE}body/{_OFFICE}text"):
        walker.blocks(body)
    slides = content.findall(f"{_OFFICE}body/{_OFFICE}presentation/{_DRAW}page")
    for number, page in enumerate(slides, start=1):
        draft.part(_title(page))
        walker.place = {"slide": number}
        walker.blocks(page)
        for notes in page.iterfind(f"{_PRESENTATION}notes"):
            draft.part(_title(page))
            walker.place = {"slide": number, "section": "Notes"}
            walker.blocks(notes)
        walker.end(slide=number)
    walker.end()
    if styles is not None and not slides:
        for name in ("header", "footer"):
            draft.part(name.capitalize())
            for element in styles.iter(f"{_STYLE}{name}"):
                walker.blocks(element)
    return draft.finish(len(slides) or None)


def _title(page: Any) -> str:
    for frame in page.iterfind(f"{_DRAW}frame"):
        if frame.get(f"{_PRESENTATION}class") == "title":
            return " ".join("".join(frame.itertext()).split())
    return ""


class _Walker:
    def __init__(self, draft: Draft, styles: Styles) -> None:
        self._draft, self._styles = draft, styles
        self.place: dict[str, Any] = {}
        self._notes: list[str] = []
        self._comments: list[str] = []

    def blocks(self, container: Any) -> None:
        stack = [iter(container)]
        while stack:
            element = next(stack[-1], None)
            if element is None:
                stack.pop()
            elif not isinstance(element.tag, str) or self._styles.hides(element):
                continue
            elif element.tag == f"{_TEXT}h":
                self._heading(element)
            elif element.tag == f"{_TEXT}p":
                self._paragraph(element)
            elif element.tag == f"{_TEXT}list" and element.find(f".//{_TEXT}h") is None:
                self._draft.lines(list(self._items(element)), **self.place)
            elif element.tag == f"{_TABLE}table":
                self._draft.lines(lines_of(self._rows(element, 0), _head(element)), **self.place)
            elif element.tag == f"{_OFFICE}annotation":  # on a slide
                self._comments.append(self._joined(element))
            elif element.tag not in {f"{_TEXT}tracked-changes", f"{_PRESENTATION}notes", f"{_OFFICE}forms"}:
                stack.append(
                    iter(element)
                )  # sections, frames, text boxes, groups, lists that number headings

    def end(self, **place: Any) -> None:
        for name, lines in (("Notes", self._notes), ("Comments", self._comments)):
            if lines:
                self._draft.part(name)
                self._draft.lines(lines, **place)
                lines.clear()

    def _heading(self, element: Any) -> None:
        level = element.get(f"{_TEXT}outline-level", "1")
        rank = int(level) if level.isdecimal() else 1
        text = " ".join(self._text(element).split())
        number = self._styles.heading(element, rank) if text else ""
        self._draft.heading(rank, f"{number} {text}" if number else text, **self.place)

    def _paragraph(self, element: Any) -> None:
        self._draft.block(self._text(element), **self.place)
        for box in _boxes(element):
            self.blocks(box)

    def _items(self, items: Any, depth: int = 0, style: str = "") -> Iterator[str]:
        style = items.get(f"{_TEXT}style-name") or style
        if depth == 0:
            self._styles.begin(items, style)
        for item in items.iterchildren(f"{_TEXT}list-item", f"{_TEXT}list-header"):
            is_new = item.tag == f"{_TEXT}list-item"
            for element in item:
                if element.tag == f"{_TEXT}list" and depth < _DEEPEST_TABLE:
                    yield from self._items(element, depth + 1, style)
                elif element.tag in {f"{_TEXT}p", f"{_TEXT}h"} and not self._styles.hides(element):
                    start = item.get(f"{_TEXT}start-value")
                    mark = self._styles.mark(style, depth, start) if is_new else ""
                    words = " ".join(self._text(element).split())
                    yield f"{'  ' * depth}{mark}{' ' if mark else ''}{words}"
                    yield from (self._joined(box) for box in _boxes(element))
                    is_new = False  # further paragraphs of the item

    def _rows(self, table: Any, depth: int) -> list[list[str]]:
        rows: list[list[str]] = []
        for row in table.iter(f"{_TABLE}table-row"):
            if next(row.iterancestors(f"{_TABLE}table")) is not table:
                continue
            cells: list[str] = []
            for cell in row.iterchildren(f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
                covered = cell.tag == f"{_TABLE}covered-table-cell"
                words = self._cell(cell, depth)
                if covered and rows and len(cells) < len(rows[-1]) and not (cells and cells[-1]):
                    words = words or rows[-1][len(cells)]
                cells += [words] * _repeats(cell, f"{_TABLE}number-columns-repeated")
            rows += [cells] * _repeats(row, f"{_TABLE}number-rows-repeated")
        return rows

    def _cell(self, cell: Any, depth: int) -> str:
        pieces: list[str] = []
        for element in cell:
            if element.tag == f"{_TABLE}table" and depth < _DEEPEST_TABLE:
                pieces += lines_of(self._rows(element, depth + 1), _head(element))
            elif element.tag == f"{_TEXT}list":
                pieces += self._items(element)
            elif isinstance(element.tag, str) and not self._styles.hides(element):
                pieces.append(self._text(element))
                pieces += (self._joined(box) for box in _boxes(element))
        return "; ".join(piece for piece in pieces if piece.strip())

    def _joined(self, container: Any) -> str:
        return " ".join(self._text(paragraph) for paragraph in container.iter(f"{_TEXT}p", f"{_TEXT}h"))

    def _text(self, paragraph: Any) -> str:
        """The paragraph's own words; notes and comments are put aside, text boxes come after it."""
        pieces = [paragraph.text or ""]
        stack = [iter(paragraph)]
        tails = [""]
        while stack:
            element = next(stack[-1], None)
            if element is None:
                stack.pop()
                pieces.append(tails.pop())
                continue
            tag = element.tag if isinstance(element.tag, str) else ""
            if tag == f"{_TEXT}s":
                pieces.append(" " * _repeats(element, f"{_TEXT}c"))
            elif tag == f"{_TEXT}tab":
                pieces.append("\t")
            elif tag == f"{_TEXT}line-break":
                pieces.append("\n")
            elif tag == f"{_TEXT}note":
                self._notes.append(self._joined(element))
            elif tag == f"{_OFFICE}annotation":
                self._comments.append(self._joined(element))
            elif tag in {f"{_SVG}title", f"{_SVG}desc"}:
                pieces.append(f"\n{' '.join((element.text or '').split())}\n")
            elif not self._is_unread(element, tag):
                pieces.append(element.text or "")
                stack.append(iter(element))
                tails.append(element.tail or "")
                continue
            pieces.append(element.tail or "")
        return "".join(pieces)

    def _is_unread(self, element: Any, tag: str) -> bool:
        no_number = tag == f"{_TEXT}page-number" and element.text == _NO_NUMBER
        return no_number or tag in {"", _BOX} or self._styles.hides(element)


def _head(table: Any) -> range:
    """The rows that are repeated on every page; they stand first."""
    rows = table.iterfind(f"{_TABLE}table-header-rows/{_TABLE}table-row")
    return range(sum(_repeats(row, f"{_TABLE}number-rows-repeated") for row in rows))


def _boxes(paragraph: Any) -> Iterator[Any]:
    """Text boxes anchored in this paragraph, not those inside of them."""
    for box in paragraph.iter(_BOX):
        if next(box.iterancestors(_BOX), None) is next(paragraph.iterancestors(_BOX), None):
            yield box


def _repeats(element: Any, name: str) -> int:
    value = element.get(name, "1")
    return min(max(int(value[:4]), 1), _MOST_REPEATS) if value.isdecimal() else 1
