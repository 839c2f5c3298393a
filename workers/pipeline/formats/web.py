"""HTML by selectolax (Lexbor): what a reader of the page would see, block by block, each with its CSS path.

Scripts, styles, templates and hidden elements are left out: words nobody sees are no part of what the page says, and a
favourite place for instructions to machines. Mails and books bring HTML too and use `write` with places of their own.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import Source
from workers.pipeline.extracted import LINE, PARAGRAPH, Extracted
from workers.pipeline.formats import text as plain
from workers.pipeline.formats.draft import At, Draft
from workers.pipeline.formats.tables import lines_of

_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.IGNORECASE)
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_DEEPEST = 2_000  # the parser's time grows with the square of the depth; a page has some dozens
_LONGEST_PATH = 60  # steps


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


_UNSEEN = _names(
    "head script style template noscript svg iframe object embed canvas audio video datalist map area"
)
_VOID = _names("area base br col embed hr img input link meta param source track wbr")
_SELF_CLOSING = _names("p li td th tr dt dd option tbody thead tfoot colgroup rt rp optgroup")
_BLOCKS = _names(
    """html body div p section article aside main nav header footer h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table tr td th
    thead tbody tfoot caption blockquote pre figure figcaption form fieldset legend details summary address hr center
    textarea dialog option"""
)
_HEADINGS = frozenset(f"h{rank}" for rank in range(1, 7))
_NOUGHT = r"\s*:\s*0(?![.\d]*[1-9])"
_HIDDEN_STYLE = re.compile(
    rf"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|font-size{_NOUGHT}|opacity{_NOUGHT}|"
    r"(?<![\w-])color\s*:\s*transparent|scale[xy]?\(\s*0(?![.\d]*[1-9])|"
    r"(?<![\w-])(?:left|right|top|bottom|text-indent)\s*:\s*-\d{4}|clip\s*:\s*rect\(|clip-path\s*:\s*inset\(\s*(?:50|100)%",
    re.IGNORECASE,
)
_NO_ROOM = re.compile(rf"(?<![\w-])(?:max-)?(?:height|width){_NOUGHT}", re.IGNORECASE)
_CUT_OFF = re.compile(r"overflow(?:-[xy])?\s*:\s*(?:hidden|clip)", re.IGNORECASE)
_STYLE_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_RULE = re.compile(r"([^{}@;]+)\{([^{}]*)\}")
_ELSEWHERE = re.compile(r"@media(?!\s+(?:all|screen)\s*\{)[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")
_IDENTIFIER = re.compile(r"[a-z][a-z0-9_-]{0,29}")  # nothing that could be a token
_BREAK = "\x1e"
_MOST_RULES = 100
_MOST_HIDDEN = 200_000


def read(source: Source) -> Extracted:
    draft = Draft({"kind": "web", "url": source.uri})
    write(draft, decode(source))
    return draft.finish()


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
    tree = LexborHTMLParser(html)
    page = _Page(draft, place, hidden=_hidden_by_style(tree), paths=paths)
    title = tree.css_first("head > title")
    root = tree.body or tree.root
    if root is None:
        return
    if paths and title is not None:
        heading = tree.css_first("h1")
        words = " ".join(title.text().split())
        if heading is None or " ".join(heading.text().split()) != words:
            draft.block(words, region=At(cssPath="head > title"), **place)
    page.walk(root)


def check_depth(html: str) -> None:
    depth = 0
    for found in _TAG.finditer(html):
        name = found.group(2).lower()
        if name in _VOID or name in _SELF_CLOSING:
            continue
        depth = max(0, depth - 1) if found.group(1) else depth + 1
        if depth > _DEEPEST:
            raise TaskFailed("damaged", "nested too deeply")


def _hidden_by_style(tree: LexborHTMLParser) -> set[int]:
    """Elements that the page's own style rules hide; rules for print and small screens do not count."""
    selectors: dict[str, None] = {}
    for style in tree.css("style"):
        rules = _ELSEWHERE.sub("", _STYLE_COMMENT.sub("", style.text() or ""))
        for selector, body in _RULE.findall(rules):
            if _hides(body):
                selectors[selector.strip()] = None
    hidden: set[int] = set()
    for selector in list(selectors)[:_MOST_RULES]:
        try:
            hidden.update(node.mem_id for node in tree.css(selector))
        except (SelectolaxError, ValueError):
            continue  # a selector only browsers know
        if len(hidden) > _MOST_HIDDEN:
            break
    return hidden


def _hides(style: str) -> bool:
    """Nothing of it can be seen: not shown, without size or colour, or out of the picture."""
    if "/*" in style:
        style = _STYLE_COMMENT.sub("", style)
    return _HIDDEN_STYLE.search(style) is not None or (
        _NO_ROOM.search(style) is not None and _CUT_OFF.search(style) is not None
    )


class _Page:
    def __init__(self, draft: Draft, place: dict[str, Any], *, hidden: set[int], paths: bool) -> None:
        self._draft, self._place, self._hidden, self._paths = draft, place, hidden, paths
        self._inline: list[str] = []
        self._blocks: list[tuple[str, ...]] = [("body",)]
        self._mark = ""
        self._lists: list[list[Any]] = []
        self._listed = 0
        self._raw = 0
        self._ids: set[str] = set()

    def walk(self, root: LexborNode) -> None:
        stack: list[tuple[LexborNode, tuple[str, ...], bool]] = [(root, ("body",), False)]
        while stack:
            node, path, leaving = stack.pop()
            tag = node.tag or ""
            if leaving:
                self._leave(tag, path)
            elif tag == "-text":
                self._inline.append(node.text_content or "")
            elif self._enter(tag, node, path):
                stack.append((node, path, True))
                stack.extend(reversed([(child, step, False) for child, step in self._children(node, path)]))
        self._flush()

    def _children(
        self, node: LexborNode, path: tuple[str, ...]
    ) -> Iterator[tuple[LexborNode, tuple[str, ...]]]:
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
                    yield child, (f"{tag}#{name}",)
                elif self._paths:
                    yield child, (*path[-_LONGEST_PATH:], f"{tag}:nth-of-type({counts[tag]})")
                else:
                    yield child, path
            child = child.next

    def _enter(self, tag: str, node: LexborNode, path: tuple[str, ...]) -> bool:
        """False if the element is done with, or not to be seen."""
        # A body that is hidden is shown by a script once the page is there.
        if tag in _UNSEEN or (tag != "body" and self._is_hidden(node)):
            return False
        if tag in _BLOCKS:
            self._flush()
            self._blocks.append(path)
        if tag == "br":
            self._inline.append("\n" if self._raw else _BREAK)
        elif tag == "img":
            self._inline.append(f" {node.attributes.get('alt') or ''} ")
        elif tag in {"ul", "ol"}:
            self._lists.append([tag, _first_number(node) - 1])
        elif tag == "li":
            self._begin_item()
        elif tag in {"pre", "textarea"}:
            self._raw += 1
        elif tag == "table" and self._is_data(node):
            self._table(node, path)
            self._blocks.pop()
            return False
        return True

    def _leave(self, tag: str, path: tuple[str, ...]) -> None:
        if tag in _HEADINGS:
            text = self._taken()
            self._draft.heading(int(tag[1]), " ".join(text.split()), **self._where(path))
        if tag not in _BLOCKS:
            return
        self._flush()
        self._blocks.pop()
        if tag in {"ul", "ol"}:
            self._lists.pop()
        elif tag == "li":
            self._listed -= 1
        elif tag in {"pre", "textarea"}:
            self._raw -= 1

    def _is_hidden(self, node: LexborNode) -> bool:
        attributes = node.attributes
        if node.tag == "dialog" and "open" not in attributes:
            return True
        if not attributes:
            return node.mem_id in self._hidden
        style = attributes.get("style")
        return (
            "hidden" in attributes
            or "popover" in attributes
            or (style is not None and _hides(style))
            or node.mem_id in self._hidden
        )

    def _begin_item(self) -> None:
        depth = max(0, len(self._lists) - 1)
        self._listed += 1
        number = ""
        if self._lists:
            self._lists[-1][1] += 1
            number = f"{self._lists[-1][1]}. " if self._lists[-1][0] == "ol" else ""
        self._mark = "  " * min(depth, 10) + (number or "- ")

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

    def _where(self, path: tuple[str, ...]) -> dict[str, Any]:
        return {"region": At(cssPath=" > ".join(path)), **self._place} if self._paths else self._place

    def _is_data(self, table: LexborNode) -> bool:
        """Rows of cells rather than a layout: nothing inside that is itself made of blocks."""
        return table.css_first("table table, table h1, table h2, table h3, table ul, table pre") is None

    def _table(self, table: LexborNode, path: tuple[str, ...]) -> None:
        rows: list[list[str]] = []
        below: dict[int, tuple[int, str]] = {}  # column → rows it still reaches, and its text
        caption = table.css_first("caption")
        heads = 0
        named: list[bool] = []
        for row in table.css("tr"):
            if self._is_hidden(row):
                continue
            heads += heads == len(rows) and _is_head(row)
            named.append(_names_itself(row))
            cells: list[str] = []
            for cell in row.css("td, th"):
                self._pass_down(cells, below)
                words = self._words(cell)
                below[len(cells)] = (_span(cell, "rowspan") - 1, words)
                cells.append(words)
                cells += [""] * (_span(cell, "colspan") - 1)
            self._pass_down(cells, below)
            rows.append(cells)
        title = self._words(caption) if caption is not None else ""
        # A first row that is named like those below it is one of them.
        rows_named = any(named[heads : heads + 1]) and 2 * sum(named) > len(rows) - heads
        lines = lines_of(rows, range(heads), rows_named=rows_named)
        self._draft.lines([title, *lines], **self._where(path))

    def _pass_down(self, cells: list[str], below: dict[int, tuple[int, str]]) -> None:
        while (reach := below.get(len(cells), (0, "")))[0] > 0:
            below[len(cells)] = (reach[0] - 1, reach[1])
            cells.append(reach[1])

    def _words(self, node: LexborNode) -> str:
        pieces: list[str] = []
        stack = [node]
        while stack:
            element = stack.pop()
            tag = element.tag or ""
            if tag == "-text":
                pieces.append(element.text_content or "")
                continue
            if tag in _UNSEEN or not tag[:1].isalpha() or self._is_hidden(element):
                continue
            if tag in _BLOCKS or tag == "br":
                pieces.append(" ")
            children: list[LexborNode] = []
            child = element.child
            while child is not None:
                children.append(child)
                child = child.next
            stack.extend(reversed(children))
        return " ".join("".join(pieces).split())


def _first_number(items: LexborNode) -> int:
    start = items.attributes.get("start") or "1"
    return int(start[:6]) if start.isdecimal() else 1


def _is_head(row: LexborNode) -> bool:
    around = row.parent
    in_head = around is not None and around.tag == "thead"
    return in_head or (row.css_first("th") is not None and not any(map(_says, row.css("td"))))


def _names_itself(row: LexborNode) -> bool:
    """`<th scope=row>Capital<td>Bern`: its first cell, and only that, is a name."""
    cells = row.css("th, td")
    return len(cells) > 1 and cells[0].tag == "th" and all(cell.tag == "td" for cell in cells[1:])


def _says(cell: LexborNode) -> bool:
    return bool((cell.text() or "").strip())


def _span(cell: LexborNode, name: str) -> int:
    value = cell.attributes.get(name) or "1"
    return min(max(int(value[:4]), 1), 100) if value.isdigit() else 1
