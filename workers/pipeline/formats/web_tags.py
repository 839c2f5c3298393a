"""The tags of a page as its parser will find them: how deep they nest, and those of XHTML that close themselves.

A script, a comment or a drawing may hold thousands of what looks like tags; verses with an anchor that nobody closed are not
inside each other. So depth is counted roughly at first, and by the rules of the standard where that comes out too deep.
"""

import html
import re

from gateway.corpus.child import TaskFailed

_DEEPEST = 2_000  # the parser's time grows with the square of the depth; a page has some dozens
_STRETCH = 16_384
_SIMPLE = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_ATTRIBUTES = r"""(?:\s++|/(?!>)|[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^\s>"'][^\s>]*+)?)?)*+"""
_TOKEN = re.compile(
    rf"<!--(?:-?>|.*?(?:--!?>|\Z))|<[!?][^>]*+|<(?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*+){_ATTRIBUTES}(?P<closed>/?)(?:>|\Z)",
    re.DOTALL,
)
_XHTML_TOKEN = re.compile(
    rf"<!--.*?(?:-->|\Z)|<!\[CDATA\[(?P<data>.*?)(?:\]\]>|\Z)|"
    rf"<(?P<raw>script|style)\b{_ATTRIBUTES}>.*?(?:</(?P=raw)\s*>|\Z)|"
    rf"<(?P<name>[a-zA-Z][^\s/>]*+){_ATTRIBUTES}(?P<closed>/?)(?:>|\Z)",
    re.DOTALL,
)


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


BLOCKS = _names(
    """html body div p section article aside main nav header footer h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table tr td th
    thead tbody tfoot caption blockquote pre figure figcaption form fieldset legend details summary address hr center
    textarea dialog option"""
)
_VOID = _names("area base br col embed hr img input link meta param source track wbr")
_OPTIONAL_END = _names("p li td th tr dt dd option tbody thead tfoot colgroup rt rp optgroup")
_RAW = {
    name: re.compile(rf"</{name}[\s/>]", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}
_FORMATTING = _names("a b big code em font i nobr s small strike strong tt u")
_CLOSES_PARAGRAPH = _names(
    """address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2
    h3 h4 h5 h6 header hgroup hr li main menu nav ol p pre search section summary ul"""
)
_CELLS = _names("td th")
_ROWS = _names("tbody thead tfoot caption colgroup")
_TABLE_PARTS = _CELLS | _ROWS | {"tr"}
_SCOPE = _names("applet caption marquee object table td template th")
_SPECIAL = (
    _CLOSES_PARAGRAPH | _SCOPE | _TABLE_PARTS | _names("body button foreignobject desc title html select")
)
_NOT_IN_DRAWINGS = _CLOSES_PARAGRAPH | _names(
    "b big body br center code em embed head i img listing meta nobr ruby s small span strike strong sub sup table tt u var"
)
# An end tag or an implied end reaches no further than the nearest of these.
_BARRIERS = {
    "special": _SPECIAL,
    "scope": _SCOPE | {"button"},
    "list": _SPECIAL - {"address", "div", "p"},
    "table": _names("table template"),
    "drawing": _names("svg math"),
    "page": _names("foreignobject desc title annotation-xml mi mo mn ms mtext"),
}
_SAME_AGAIN = (
    3  # formatting that nobody closes is opened again in the next paragraph, so often if it is the same
)


def expanded(page: str) -> str:
    """XHTML as HTML: `<title/>` with an end tag of its own, and marked sections as the text they are."""
    return _XHTML_TOKEN.sub(_expanded, page) if "/>" in page or "<![CDATA[" in page else page


def _expanded(found: re.Match[str]) -> str:
    if (data := found["data"]) is not None:
        return html.escape(data, quote=False)
    name = found["name"]
    if name is None or not found["closed"] or name.lower() in _VOID:
        return found.group()
    return f"{found.group()[:-2]}></{name}>"


def check_depth(page: str) -> None:
    """Raises TaskFailed before the parser gets a page that would take it minutes."""
    if _may_be_deep(page) and _seems_deep(page):
        _Nesting().read(page)


def _may_be_deep(page: str) -> bool:
    """By the marks alone, stretch by stretch: most pages are done with here."""
    depth = 0
    for begin in range(0, len(page), _STRETCH):
        ends = page.count("</", begin, begin + _STRETCH)
        starts = page.count("<", begin, begin + _STRETCH) - ends
        if depth + starts > _DEEPEST:
            return True
        depth = max(depth + starts - ends, starts)
    return False


def _seems_deep(page: str) -> bool:
    depth = 0
    for found in _SIMPLE.finditer(page):
        name = found.group(2).lower()
        if name in _VOID or name in _OPTIONAL_END:
            continue
        depth = max(0, depth - 1) if found.group(1) else depth + 1
        if depth > _DEEPEST:
            return True
    return False


class _Nesting:
    """Open elements, as far as the standard's tree construction matters for their number."""

    def __init__(self) -> None:
        self._open: list[tuple[str, str]] = []  # name, and the whole tag
        self._places: dict[str, list[int]] = {barrier: [] for barrier in _BARRIERS}  # also by name
        self._unclosed: list[tuple[str, str]] = []  # formatting that goes on in the next block

    def read(self, page: str) -> None:
        position = 0
        while found := _TOKEN.search(page, position):
            position = found.end()
            name = (found["name"] or "").lower()
            if not name or name in _VOID:
                continue
            if found["end"]:
                self._end(name)
            elif name in _RAW and not self._in_drawing():
                closing = _RAW[name].search(page, position)
                position = closing.start() if closing else len(page)
            else:
                self._start(name, found.group(), closed=bool(found["closed"]))
            if len(self._open) + len(self._unclosed) > _DEEPEST:
                raise TaskFailed("damaged", "nested too deeply")

    def _start(self, name: str, tag: str, *, closed: bool) -> None:
        while self._in_drawing() and name in _NOT_IN_DRAWINGS:
            self._close_from(self._last("drawing"))
        if closed and (self._in_drawing() or name in _BARRIERS["drawing"]):
            return
        if not self._in_drawing():
            if name in _TABLE_PARTS and self._last("table") < 0:
                return
            self._imply_ends(name)
        places = [self._places.setdefault(name, [])]
        places += [self._places[barrier] for barrier, names in _BARRIERS.items() if name in names]
        for place in places:
            place.append(len(self._open))
        self._open.append((name, tag))

    def _imply_ends(self, name: str) -> None:
        if name == "a":
            self._end(name)
        if name in {"li", "dt", "dd"}:
            self._close({"li"} if name == "li" else {"dt", "dd"}, "list")
        if name in _CLOSES_PARAGRAPH:
            self._close({"p"}, "scope")
        elif name in _CELLS:
            self._close(_CELLS, "table")
        elif name == "tr":
            self._close({name}, "table")
        elif name in _ROWS:
            self._close(_ROWS | {"tr"}, "table")
        elif name in {"option", "optgroup"} and self._open and self._open[-1][0] == "option":
            self._close_from(len(self._open) - 1)

    def _end(self, name: str) -> None:
        barrier = "table" if name in _TABLE_PARTS else "scope" if name in _SPECIAL else "special"
        if not self._close({name}, barrier) and name in _FORMATTING:
            for number in range(len(self._unclosed) - 1, -1, -1):
                if self._unclosed[number][0] == name:
                    del self._unclosed[number]
                    break

    def _close(self, names: set[str] | frozenset[str], barrier: str) -> bool:
        """The innermost of these, unless the barrier is inside it."""
        place = max(map(self._last, names))
        if place < 0 or place < self._last(barrier):
            return False
        self._close_from(place)
        return True

    def _close_from(self, place: int) -> None:
        while len(self._open) > place:
            name, tag = self._open.pop()
            self._places[name].pop()
            for barrier, names in _BARRIERS.items():
                if name in names:
                    self._places[barrier].pop()
            if (
                name in _FORMATTING
                and len(self._open) > place
                and self._unclosed.count((name, tag)) < _SAME_AGAIN
            ):
                self._unclosed.append((name, tag))

    def _last(self, name: str) -> int:
        places = self._places.get(name)
        return places[-1] if places else -1

    def _in_drawing(self) -> bool:
        return self._last("drawing") > self._last("page")
