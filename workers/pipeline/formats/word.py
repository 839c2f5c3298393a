"""Word files by python-docx, which opens the package; the walk over blocks is ours.

Headings by style or outline level, list items with their number, tables as rows, text boxes once (they are stored twice),
then notes, comments, headers and footers, which belong to no place in the body's flow.
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from docx.opc.exceptions import PackageNotFoundError
from docx.opc.oxml import parse_xml
from docx.package import Package
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - a compiled module without stubs

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import Source
from workers.pipeline.extracted import Extracted
from workers.pipeline.formats import mail, web
from workers.pipeline.formats.draft import Draft
from workers.pipeline.formats.drawings import drawn_words
from workers.pipeline.formats.strict import as_usual
from workers.pipeline.formats.tables import lines_of
from workers.pipeline.formats.word_numbering import BULLET, ListStyle, Mark, Numbering
from workers.pipeline.formats.word_numbering import W as _W
from workers.pipeline.formats.word_numbering import value_of as _value
from workers.pipeline.formats.word_runs import FALLBACK, text_of
from workers.pipeline.zip_guard import check_zip

_BESIDE = {
    "footnotes": "Footnotes",
    "endnotes": "Endnotes",
    "comments": "Comments",
    "header": "Header",
    "footer": "Footer",
}
_WRAPPERS = {
    f"{_W}sdt", f"{_W}sdtContent", f"{_W}ins", f"{_W}customXml", f"{_W}footnote", f"{_W}endnote", f"{_W}comment",
}  # fmt: skip
_IMPORTED = f"{_W}altChunk"
_BLOCKS, _ROW, _CELL = {f"{_W}p", f"{_W}tbl", _IMPORTED}, {f"{_W}tr"}, {f"{_W}tc"}
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_PAGES, _ARCHIVED = {"text/html", "application/xhtml+xml"}, "message/rfc822"
_DEEPEST_TABLE = 10
_MOST_SPANNED = 64


def read(source: Source) -> Extracted:
    check_zip(source.data)
    main = _main_part(source)
    draft = Draft({"kind": "office"}, sections=True)
    body = _root(main)
    styles = _Styles(main)
    styles.drop_hidden(body)
    numbering = Numbering(map(_root, _related(main, "numbering")), styles.lists)
    walker = _Walker(main, draft, styles.ranks, numbering)
    for container in body.iterchildren(f"{_W}body"):
        walker.blocks(container)
    for name, root in _beside(main):
        styles.drop_hidden(root)
        draft.part(name)
        walker.blocks(root)
    return draft.finish()


def _main_part(source: Source) -> Any:
    try:
        return Package.open(as_usual(source)).main_document_part
    except (PackageNotFoundError, etree.XMLSyntaxError, KeyError, ValueError, AttributeError) as error:
        raise TaskFailed("damaged", f"not a Word file ({type(error).__name__})") from error


def _root(part: Any) -> Any:
    element = getattr(part, "element", None)
    try:
        return parse_xml(part.blob) if element is None else element
    except etree.XMLSyntaxError as error:
        raise TaskFailed("damaged", "a part of the file is not XML") from error


def _related(main: Any, name: str) -> Iterator[Any]:
    for relation in main.rels.values():
        if not relation.is_external and relation.reltype.rpartition("/")[2] == name:
            yield relation.target_part


def _beside(main: Any) -> Iterator[tuple[str, Any]]:
    for name, title in _BESIDE.items():
        said: set[str] = set()
        for part in _related(main, name):
            root = _root(part)
            words = "".join(root.itertext())
            if words not in said:  # first page, even pages: often the same words again
                said.add(words)
                yield title, root


class _Styles:
    """What styles say about their paragraphs, also through the style they are based on; asking per paragraph is slow."""

    def __init__(self, main: Any) -> None:
        self.ranks: dict[str, int] = {}  # of headings
        hides: dict[str, bool] = {}
        based: dict[str, str] = {}
        numbers: dict[str, tuple[str, str]] = {}  # and the style that says so
        levels: dict[str, str] = {}
        for part in _related(main, "styles"):
            for style in _root(part).iterchildren(f"{_W}style"):
                key = style.get(f"{_W}styleId", "")
                said = {child.tag: child for child in style}
                properties = said.get(f"{_W}pPr")
                based[key] = _value(said.get(f"{_W}basedOn"))
                if (rank := _heading_rank(_value(said.get(f"{_W}name")).lower(), properties)) is not None:
                    self.ranks[key] = rank
                if (mark := _child(said.get(f"{_W}rPr"), "vanish")) is not None:
                    hides[key] = _is_on(mark)
                if (listed := _child(properties, "numPr")) is not None:
                    if number := _value(listed.find(f"{_W}numId")):
                        numbers[key] = number, key
                    if level := _value(listed.find(f"{_W}ilvl")):
                        levels[key] = level
        for known in (self.ranks, hides, numbers, levels):
            _inherit(known, based)
        self.lists = {key: ListStyle(*number, levels.get(key, "")) for key, number in numbers.items()}
        self._hidden = {key for key, hidden in hides.items() if hidden}

    def drop_hidden(self, root: Any) -> None:
        """Takes out the runs that Word does not show."""
        gone = [mark.getparent().getparent() for mark in root.iter(f"{_W}vanish") if _is_on(mark)]
        for style in root.iter(f"{_W}rStyle", f"{_W}pStyle") if self._hidden else ():
            if _value(style) in self._hidden:
                gone += [run for run in style.getparent().getparent().iter(f"{_W}r") if not _is_shown(run)]
        for run in gone:
            if run is not None and run.tag == f"{_W}r" and run.getparent() is not None:
                run.getparent().remove(run)


def _child(properties: Any, name: str) -> Any:
    return None if properties is None else properties.find(f"{_W}{name}")


def _heading_rank(name: str, properties: Any) -> int | None:
    outline = _value(_child(properties, "outlineLvl"))
    if name.startswith("heading ") and name[8:].isdecimal():
        return int(name[8:])
    if name == "title":
        return 0
    return int(outline) + 1 if outline.isdecimal() and int(outline) < 9 else None


def _inherit(known: dict[str, Any], based: dict[str, str]) -> None:
    for key in based:
        ancestor, steps = key, 0
        while ancestor and ancestor not in known and steps < 20:
            ancestor, steps = based.get(ancestor, ""), steps + 1
        if ancestor in known:
            known[key] = known[ancestor]


def _is_on(mark: Any) -> bool:
    return _value(mark) not in {"0", "false", "off"}


def _is_shown(run: Any) -> bool:
    """Whatever its style says."""
    mark = run.find(f"{_W}rPr/{_W}vanish")
    return mark is not None and not _is_on(mark)


class _Walker:
    def __init__(self, main: Any, draft: Draft, ranks: dict[str, int], numbering: Numbering) -> None:
        self._main, self._draft, self._ranks, self._numbering = main, draft, ranks, numbering
        self._items: list[str] = []

    def blocks(self, container: Any) -> None:
        for element in _flat(container):
            if element.tag == f"{_W}p":
                self._paragraph(element)
            elif element.tag == _IMPORTED:
                self._end_list()
                self._page(self._main.rels.get(element.get(_RELATION)))
            else:
                self._end_list()
                self._draft.lines(lines_of(_rows(element, 0, self._numbering), _head(element)))
        self._end_list()

    def _paragraph(self, element: Any) -> None:
        properties, style = _properties(element)
        outline = _value(_child(properties, "outlineLvl"))
        rank = int(outline) + 1 if outline.isdecimal() and int(outline) < 9 else self._ranks.get(style)
        mark = self._numbering.mark(properties, style)
        text = text_of(element)
        if rank is not None and text.strip():
            self._end_list()
            self._draft.heading(rank, _numbered(mark, text.strip()))
        elif text.strip() and mark.text:
            self._items.append(f"{'  ' * mark.depth}{mark.text} {' '.join(text.split())}")
        else:
            self._end_list()
            self._draft.block(text)
        for box in _boxes(element):
            self._end_list()
            self.blocks(box)
        for drawing in element.iter(f"{_W}drawing"):
            for words in drawn_words(drawing, self._part):
                self._end_list()
                self._draft.block(words)

    def _page(self, found: Any) -> None:
        """A whole page that Word would take in when it opens the file: programs that export pages leave the work to it."""
        if found is None or found.is_external:
            return
        data, kind = found.target_part.blob, str(found.target_part.content_type)
        if kind == _ARCHIVED:
            web.write(self._draft, mail.page_of(Source(data, kind)), paths=False)
        elif kind in _PAGES:
            web.write(self._draft, web.decode(Source(data, kind)), paths=False)

    def _part(self, relation: str) -> bytes | None:
        found = self._main.rels.get(relation)
        return None if found is None or found.is_external else found.target_part.blob

    def _end_list(self) -> None:
        if self._items:
            self._draft.lines(self._items)
            self._items = []


def _properties(paragraph: Any) -> tuple[Any, str]:
    """And the name of its style. They stand first in it: to look for them took longer than to read a cell."""
    properties = next(iter(paragraph), None)
    if properties is None or properties.tag != f"{_W}pPr":
        return None, ""
    return properties, _value(properties.find(f"{_W}pStyle"))


def _numbered(mark: Mark, text: str) -> str:
    """Outside of a list, where a bullet says nothing."""
    return text if mark.text in {"", BULLET} else f"{mark.text} {text}"


def _flat(container: Any, wanted: set[str] = _BLOCKS) -> Iterator[Any]:
    """Paragraphs and tables, or rows, or cells, through the wrappers that may stand around them."""
    stack = [iter(container)]
    while stack:
        element = next(stack[-1], None)
        if element is None:
            stack.pop()
        elif element.tag in wanted:
            yield element
        elif element.tag in _WRAPPERS:
            stack.append(iter(element))


def _boxes(paragraph: Any) -> Iterator[Any]:
    """Text boxes anchored in this paragraph; each is stored a second time for older programs, which is skipped."""
    around = next(paragraph.iterancestors(f"{_W}txbxContent"), None)
    for box in paragraph.iter(f"{_W}txbxContent"):
        inside = (ancestor.tag for ancestor in box.iterancestors())
        if FALLBACK not in inside and next(box.iterancestors(f"{_W}txbxContent"), None) is around:
            yield box


def _rows(table: Any, depth: int, numbering: Numbering) -> list[list[str]]:
    rows: list[list[str]] = []
    for row in _flat(table, _ROW):
        cells = [""] * _spanned(row.find(f"{_W}trPr/{_W}gridBefore"))
        for cell in _flat(row, _CELL):
            merge = cell.find(f"{_W}tcPr/{_W}vMerge")
            if merge is not None and _value(merge) != "restart" and rows and len(cells) < len(rows[-1]):
                cells.append(rows[-1][len(cells)])  # goes on from the row above
            else:
                cells.append(_cell(cell, depth, numbering))
            cells += [""] * (_spanned(cell.find(f"{_W}tcPr/{_W}gridSpan")) - 1)
        rows.append(cells)
    return rows


def _head(table: Any) -> range:
    """The rows that Word repeats on every page."""
    repeated = (row.find(f"{_W}trPr/{_W}tblHeader") for row in _flat(table, _ROW))
    return range(sum(1 for _ in takewhile(lambda mark: mark is not None and _is_on(mark), repeated)))


def _spanned(columns: Any) -> int:
    return min(int(_value(columns)), _MOST_SPANNED) if _value(columns).isdecimal() else 0


def _cell(cell: Any, depth: int, numbering: Numbering) -> str:
    pieces: list[str] = []
    for element in _flat(cell):
        if element.tag == f"{_W}p":
            pieces.append(_numbered(numbering.mark(*_properties(element)), text_of(element)))
            pieces += [text_of(inner) for box in _boxes(element) for inner in box.iter(f"{_W}p")]
        elif depth < _DEEPEST_TABLE:
            pieces += lines_of(_rows(element, depth + 1, numbering))
    return "; ".join(piece for piece in pieces if piece.strip())
