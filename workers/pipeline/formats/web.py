"""HTML by selectolax (Lexbor): what a reader of the page would see, block by block, each with its CSS path.

Scripts, styles, templates and hidden elements are left out: words nobody sees are no part of what the page says, and a
favourite place for instructions to machines. Mails and books bring HTML too and use `write` with places of their own.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import Source
from workers.pipeline.extracted import LINE, PARAGRAPH, Extracted, Move
from workers.pipeline.formats import text as plain
from workers.pipeline.formats.draft import Draft
from workers.pipeline.formats.web_lists import Numbering
from workers.pipeline.formats.web_replaced import REPLACED, instead_of_words
from workers.pipeline.formats.web_styles import Styles, readable
from workers.pipeline.formats.web_tables import Table, is_data
from workers.pipeline.formats.web_tags import BLOCKS, check_depth, expanded

_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.IGNORECASE)
_XML = re.compile(r"\s*<\?xml\s")
_LONGEST_PATH = 61  # steps
Path: TypeAlias = "tuple[Path | None, str]"  # the way to the element around, and the step from there


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


_UNSEEN = _names(
    """head script style template noscript svg iframe object embed canvas audio video datalist map area annotation
    annotation-xml"""
)
_HEADINGS = frozenset(f"h{rank}" for rank in range(1, 7))
_IDENTIFIER = re.compile(r"[a-z][a-z0-9_-]{0,29}")  # nothing that could be a token
_BREAK = "\x1e"
_BODY: Path = (None, "body")
_TITLE: Path = (None, "head > title")


def read(source: Source) -> Extracted:
    draft = Draft({"kind": "web", "url": source.uri})
    page = decode(source)
    write(draft, expanded(page) if _is_xhtml(source, page) else page)
    return draft.finish()


def _is_xhtml(source: Source, page: str) -> bool:
    name = (source.file_name or "").lower()
    said = source.mime_type == "application/xhtml+xml" or name.endswith((".xhtml", ".xht"))
    return said or _XML.match(page) is not None


def decode(source: Source) -> str:
    """UTF-8 where it is valid, whatever the page claims; else what is declared, there or in the page."""
    data = bytes(source.data)
    charset = source.charset
    if charset is None and (found := _META_CHARSET.search(data, 0, 4096)):
        charset = found.group(1).decode("ascii")
    if not data.isascii():
        try:
            data.decode("utf-8")
            charset = "utf-8"
        except UnicodeError:
            pass
    return plain.decode(Source(data, source.mime_type, source.file_name, charset))


def write(draft: Draft, html: str, *, paths: bool = True, **place: Any) -> None:
    """The page's blocks into the draft; without `paths` only the given place is noted."""
    check_depth(html)
    try:
        _write(draft, html, paths=paths, place=place)
    except SelectolaxError as error:  # anything is a page, and our selectors are sound: it got no memory
        raise TaskFailed("too_large", "ran out of memory") from error


def _write(draft: Draft, html: str, *, paths: bool, place: dict[str, Any]) -> None:
    tree = LexborHTMLParser(html)
    page = _Page(draft, place, styles=Styles(tree, html.count("<")), paths=paths)
    title = tree.css_first("head > title")
    root = tree.body or tree.root
    if root is None:
        return
    if paths and title is not None:
        heading = tree.css_first("h1")
        words = " ".join(title.text().split())
        if heading is None or " ".join(heading.text().split()) != words:
            draft.block(words, region=_Place(_TITLE), **place)
    page.walk(root)


class _Page:
    def __init__(self, draft: Draft, place: dict[str, Any], *, styles: Styles, paths: bool) -> None:
        self._draft, self._place, self._styles, self._paths = draft, place, styles, paths
        self._ruled = styles.hide
        self._inline: list[str] = []
        self._blocks: list[Path] = [_BODY]
        self._mark = ""
        self._lists: list[Numbering] = []
        self._listed = 0
        self._raw = 0
        self._layouts = 0
        self._ids: set[str] = set()

    def walk(self, root: LexborNode) -> None:
        inside: list[tuple[str, Path, int, Iterator[tuple[LexborNode, Path]]]] = [
            ("", _BODY, 0, iter([(root, _BODY)]))
        ]
        while inside:
            tag, path, sight, children = inside[-1]
            if (child := next(children, None)) is None:
                inside.pop()
                self._leave(tag, path)
            elif (opened := self._look(*child, sight)) is not None:
                inside.append(opened)
        self._flush()

    def _look(
        self, node: LexborNode, path: Path, around: int
    ) -> tuple[str, Path, int, Iterator[tuple[LexborNode, Path]]] | None:
        """The element, if what is inside is to be looked at too."""
        tag = node.tag or ""
        if tag == "-text":
            if not around or readable(around):
                self._inline.append(node.text_content or "")
            return None
        sight = self._sight(tag, node, around)
        if sight is None or not self._enter(tag, node, path, sight):
            return None
        return tag, path, sight, self._children(node, path)

    def _children(self, node: LexborNode, path: Path) -> Iterator[tuple[LexborNode, Path]]:
        counts: Counter[str] = Counter()
        child = node.child
        while child is not None:
            tag = child.tag or ""
            if tag == "-text":
                yield child, path
            elif tag[:1].isalpha():
                counts[tag] += 1
                name = child.attributes.get("id") if self._paths else None
                if name and name not in self._ids and _IDENTIFIER.fullmatch(name):
                    self._ids.add(name)
                    yield child, (None, f"{tag}#{name}")
                elif self._paths:
                    yield child, (path, f"{tag}:nth-of-type({counts[tag]})")
                else:
                    yield child, path
            child = child.next

    def _sight(self, tag: str, node: LexborNode, around: int) -> int | None:
        """How what is directly inside can be seen; None if the element cannot, whatever is inside."""
        if tag in _UNSEEN and not self._holds_page(tag, node):
            return None
        if tag == "body":
            return 0  # one that is hidden is shown by a script once the page is there
        attributes = node.attributes
        if tag == "dialog" and "open" not in attributes:
            return None
        style = None
        if attributes:
            if "hidden" in attributes or "popover" in attributes:
                return None
            style = attributes.get("style")
        if not (style or around or self._ruled):
            return 0
        return self._styles.sight(node, style, around)

    def _holds_page(self, tag: str, node: LexborNode) -> bool:
        """Written into this one; in a mail or a book nobody would see it."""
        return tag == "iframe" and self._paths and bool(node.attributes.get("srcdoc"))

    def _page_inside(self, frame: LexborNode, path: Path) -> None:
        self._flush()
        headings = self._draft.headings
        try:
            write(self._draft, frame.attributes["srcdoc"] or "", paths=False, region=_Place(path))
        except TaskFailed:
            self._draft.warnings.append("a page inside the page could not be read")
        self._draft.put_under(headings)

    def _enter(self, tag: str, node: LexborNode, path: Path, sight: int) -> bool:
        """False if the element is done with."""
        if tag in BLOCKS:
            self._flush()
            self._blocks.append(path)
        if tag == "iframe":
            self._page_inside(node, path)
            return False
        if tag == "br":
            self._inline.append("\n" if self._raw else _BREAK)
        elif tag in REPLACED:
            self._inline.append(instead_of_words(node, sight))
        elif tag in {"ul", "ol"}:
            self._lists.append(Numbering(node))
        elif tag == "li":
            self._begin_item(node)
        elif tag in {"pre", "textarea"}:
            self._raw += 1
        elif tag == "table":
            if is_data(node, inside=self._layouts > 0):
                self._draft.lines(Table(node, sight, self._sight).lines(), **self._where(path))
                self._blocks.pop()
                return False
            self._layouts += 1
        return True

    def _leave(self, tag: str, path: Path) -> None:
        if tag in _HEADINGS:
            text = self._taken()
            self._draft.heading(int(tag[1]), " ".join(text.split()), **self._where(path))
        if tag not in BLOCKS:
            return
        self._flush()
        self._blocks.pop()
        if tag in {"ul", "ol"}:
            self._lists.pop()
        elif tag == "li":
            self._listed -= 1
            self._mark = ""
        elif tag in {"pre", "textarea"}:
            self._raw -= 1
        elif tag == "table":
            self._layouts -= 1

    def _begin_item(self, item: LexborNode) -> None:
        depth = max(0, len(self._lists) - 1)
        self._listed += 1
        self._mark = "  " * min(depth, 10) + (self._lists[-1].mark(item) if self._lists else "- ")

    def _taken(self) -> str:
        text = "".join(self._inline)
        self._inline = []
        if self._raw:
            return text.strip("\n")
        return "\n".join(filter(None, (" ".join(line.split()) for line in text.split(_BREAK))))

    def _flush(self) -> None:
        text = self._taken()
        if not text.strip():
            return
        mark, self._mark = self._mark, ""
        level = LINE if self._listed else PARAGRAPH
        self._draft.block(mark + text, level=level, **self._where(self._blocks[-1]))

    def _where(self, path: Path) -> dict[str, Any]:
        return {"region": _Place(path), **self._place} if self._paths else self._place


class _Place:
    """Region of a block. There may be hundreds of thousands, and few of them are asked."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def locate(self, start: int, end: int) -> dict[str, Any]:
        del start, end
        steps: list[str] = []
        path: Path | None = self._path
        while path is not None and len(steps) < _LONGEST_PATH:
            path, step = path
            steps.append(step)
        return {"cssPath": " > ".join(reversed(steps))}

    def replaced(self, moves: Sequence[Move]) -> "_Place":
        del moves
        return self
