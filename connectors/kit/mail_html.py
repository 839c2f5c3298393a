"""HTML of a mail to plain text: what a reader sees, without pictures and what is hidden on purpose.

Mail that is quoted in markup comes out as plain mail quotes it, with `>` and separators, so that one place decides about both.
"""

import re
from collections import Counter
from html import unescape

from selectolax.lexbor import LexborHTMLParser, LexborNode

QUOTED = "blockquote[type=cite], blockquote.gmail_quote, div.gmail_quote blockquote, blockquote.protonmail_quote, div.yahoo_quoted blockquote"
# From here on it is somebody else's mail, however it is marked up.
TURNING_POINTS = "#appendonsend, hr#stopSpelling, #divRplyFwdMsg, #mail-editor-reference-message-container, div.yahoo_quoted"
SEPARATOR = "-----Original Message-----"
SIGNATURES = "div.gmail_signature, div.moz-signature, pre.moz-signature, div.protonmail_signature_block"
UNREAD = "script, style, head, title, meta, link, img, svg, picture, video, audio, object, iframe, map, template, noscript"
HIDDEN = re.compile(r"display ?: ?none|visibility ?: ?hidden|mso-hide ?: ?all|max-height ?: ?0")
# Newsletters put no size around everything, against gaps, and a size around every piece of text. A share of nothing is nothing.
SIZE = re.compile(
    r"font-size ?: ?(?:(?P<none>0(?:\.0*)?(?:[a-z]*|%)(?![\w.%]))|(?:\d*\.)?\d+(?:px|pt|pc|in|cm|mm|q|rem)|(?:xx?-)?(?:small|large)|medium)"
)
BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "center",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "main",
        "nav",
        "ol",
        "pre",
        "section",
        "table",
        "tbody",
        "tfoot",
        "thead",
        "tr",
        "ul",
        "li",
    ]
)
DEEPEST = 300  # mails that went back and forth for years nest that far; further down nothing is new


# Elements that end by themselves, and may stand in a mail in any number.
ENDLESS = frozenset(
    [
        "br",
        "hr",
        "img",
        "input",
        "meta",
        "link",
        "col",
        "wbr",
        "area",
        "p",
        "li",
        "td",
        "th",
        "tr",
        "option",
        "dd",
        "dt",
    ]
)
MOST_OPEN = 2000


def html_to_text(html: str) -> str:
    if _is_pit(html):
        return unescape(re.sub(r"<[^<>]*>", "\n", html))
    tree = LexborHTMLParser(html)
    root = tree.body or tree.root
    if root is None:
        return ""
    _take_out(tree)
    writer = _Writer()
    _walk(root, writer)
    return writer.text()


def _is_pit(html: str) -> bool:
    """Parsing takes the square of how many elements stay open: nobody's mail has thousands, a trap has."""
    still_open: Counter[str] = Counter()
    for closing, name in re.findall(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)", html):
        still_open[name.lower()] += -1 if closing else 1
    return any(count > MOST_OPEN for name, count in still_open.items() if name not in ENDLESS)


def _take_out(tree: LexborHTMLParser) -> None:
    for node in tree.css(UNREAD):
        node.decompose()
    for node in tree.css("[style]"):
        style = " ".join((node.attributes.get("style") or "").lower().split())
        if HIDDEN.search(style):
            node.decompose()
        elif sizes := list(SIZE.finditer(style)):
            node.attrs["data-size"] = "" if sizes[-1]["none"] else "1"  # the last one counts
    for node in tree.css(SIGNATURES):
        node.insert_before("\n-- \n")
    for node in tree.css(QUOTED):
        node.attrs["data-quoted"] = "1"
    turning = tree.css_first(TURNING_POINTS)
    if turning is not None:
        turning.attrs["data-turns"] = "1"


class _Writer:
    def __init__(self) -> None:
        self._lines: list[str] = []
        self._line: list[str] = []
        self.quotes = 0
        self.verbatim = 0
        self.sizes: list[str] = []  # of the elements around, as far as they say one

    def say(self, text: str) -> None:
        if self.sizes and not self.sizes[-1]:
            return
        if self.verbatim:
            first, *rest = text.split("\n")
            self._line.append(first)
            for line in rest:
                self.turn()
                self._line.append(line)
        else:
            self._line.append(re.sub(r"[ \t\r\n\f]+", " ", text))

    def turn(self) -> None:
        """Ends the line, if there is one."""
        line = "".join(self._line)
        self._line = []
        if line.strip():
            clean = line.rstrip() if self.verbatim else " ".join(line.split(" ")).strip()
            self._lines.append("> " * min(self.quotes, 3) + clean)

    def part(self) -> None:
        """Ends the paragraph."""
        self.turn()
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def pending(self) -> bool:
        return any(piece.strip() for piece in self._line)

    def line(self, text: str) -> None:
        self.turn()
        self._lines.append(text)

    def text(self) -> str:
        self.turn()
        return "\n".join(self._lines)


def _walk(root: LexborNode, writer: _Writer) -> None:
    """In document order, without recursion: how deep a mail nests is its sender's choice."""
    node: LexborNode | None = root
    depth = 0
    while node is not None:
        _enter(node, writer)
        child = node.child if depth < DEEPEST else None
        if child is not None:
            node, depth = child, depth + 1
            continue
        while node is not None:
            _leave(node, writer)
            if node is root or depth == 0:
                return
            if node.next is not None:
                node = node.next
                break
            node, depth = node.parent, depth - 1


def _enter(node: LexborNode, writer: _Writer) -> None:
    tag = node.tag or ""
    if tag.startswith("-"):
        if tag == "-text":
            writer.say(node.text_content or "")
        return
    _space_before(tag, writer)
    attributes = node.attributes
    if "data-size" in attributes:
        writer.sizes.append(attributes["data-size"] or "")
    if "data-turns" in attributes:
        writer.line(SEPARATOR)
    if "data-quoted" in attributes:
        writer.quotes += 1
    if tag == "pre":
        writer.verbatim += 1
    elif tag == "li":
        writer.say("- ")
    elif tag in {"td", "th"} and node.prev is not None:
        writer.say(" | " if _has_words_before(node) else " ")


def _space_before(tag: str, writer: _Writer) -> None:
    if tag == "br":
        _break(writer)
    elif tag == "p":
        writer.part()
    elif tag in BLOCKS:
        writer.turn()


def _leave(node: LexborNode, writer: _Writer) -> None:
    tag = node.tag or ""
    if tag.startswith("-"):
        return
    if tag == "p":
        writer.part()
    elif tag in BLOCKS:
        writer.turn()
    if tag == "pre":
        writer.verbatim -= 1
    attributes = node.attributes
    if "data-quoted" in attributes:
        writer.quotes -= 1
    if "data-size" in attributes:
        writer.sizes.pop()


def _break(writer: _Writer) -> None:
    """One is a new line, two in a row a new paragraph."""
    if writer.pending():
        writer.turn()
    else:
        writer.part()


def _has_words_before(cell: LexborNode) -> bool:
    before = cell.prev
    while before is not None:
        if before.tag in {"td", "th"}:
            return bool((before.text() or "").strip())
        before = before.prev
    return False
