"""Tables of a page: rows of cells as a reader of the page sees them, and which tables are only there to put things in place."""

from collections.abc import Callable

from selectolax.lexbor import LexborNode

from workers.pipeline.formats.tables import lines_of
from workers.pipeline.formats.web_replaced import REPLACED, instead_of_words
from workers.pipeline.formats.web_styles import readable
from workers.pipeline.formats.web_tags import BLOCKS

_ITEM = "\x1d"
_LONGEST_SPAN = 100


def is_data(table: LexborNode, *, inside: bool) -> bool:
    """Rows of cells rather than a layout: nothing inside that is itself made of blocks; lists only in cells of a grid.
    A table `inside` a layout is more likely one itself.
    """
    if table.css_first("h1, h2, h3, pre") is not None or len(table.css("table")) > 1:
        return False
    if inside:
        return _is_grid(table) and (_is_named(table) or table.css_first("p ~ p") is None)
    return table.css_first("ul") is None or _is_grid(table)


class Table:
    """`sight_of` says of a tag, its element and how what is around it can be seen how what is inside can be, or None."""

    def __init__(
        self, table: LexborNode, sight: int, sight_of: Callable[[str, LexborNode, int], int | None]
    ) -> None:
        self._table, self._sight, self._sight_of = table, sight, sight_of
        self._sections: dict[int, int | None] = {table.mem_id: sight}
        self._below: dict[int, tuple[int, str]] = {}  # column → rows it still reaches, and its text

    def lines(self) -> list[str]:
        rows: list[list[str]] = []
        heads = 0
        named: list[bool] = []
        for row in self._table.css("tr"):
            if (around := self._row_sight(row)) is None:
                continue
            heads += heads == len(rows) and _is_head(row)
            named.append(_names_itself(row))
            rows.append(self._cells(row, around))
        # A first row that is named like those below it is one of them.
        rows_named = any(named[heads : heads + 1]) and 2 * sum(named) > len(rows) - heads
        caption = self._table.css_first("caption")
        title = self._words(caption, self._sight) if caption is not None else ""
        return [title, *lines_of(rows, range(heads), rows_named=rows_named)]

    def _cells(self, row: LexborNode, around: int) -> list[str]:
        cells: list[str] = []
        for cell in row.css("td, th"):
            self._pass_down(cells)
            words = self._words(cell, around)
            self._below[len(cells)] = ((_span(cell, "rowspan") or _LONGEST_SPAN) - 1, words)
            cells.append(words)
            cells += [""] * (_span(cell, "colspan") - 1)
        self._pass_down(cells)
        return cells

    def _pass_down(self, cells: list[str]) -> None:
        while (reach := self._below.get(len(cells), (0, "")))[0] > 0:
            self._below[len(cells)] = (reach[0] - 1, reach[1])
            cells.append(reach[1])

    def _row_sight(self, row: LexborNode) -> int | None:
        section = row.parent
        if section is None:
            return None
        if section.mem_id not in self._sections:
            self._sections[section.mem_id] = self._sight_of(section.tag or "", section, self._sight)
        around = self._sections[section.mem_id]
        return None if around is None else self._sight_of("tr", row, around)

    def _words(self, node: LexborNode, around: int) -> str:
        pieces: list[str] = []
        stack: list[tuple[LexborNode, int | None]] = [(node, around)]
        while stack:
            element, outside = stack.pop()
            if outside is None:
                pieces.append(" ")  # the end of a block
                continue
            tag = element.tag or ""
            if tag == "-text":
                if not outside or readable(outside):
                    pieces.append(element.text_content or "")
                continue
            sight = self._sight_of(tag, element, outside) if tag[:1].isalpha() else None
            if sight is None:
                continue
            if element is not node:
                pieces.append(_in_front(tag, element, sight))
                if tag in BLOCKS:
                    stack.append((element, None))
            children: list[tuple[LexborNode, int]] = []
            child = element.child
            while child is not None:
                children.append((child, sight))
                child = child.next
            stack.extend(reversed(children))
        words = "".join(pieces)
        if _ITEM not in words:
            return " ".join(words.split())
        items = (" ".join(item.split()) for item in words.split(_ITEM))
        return "; ".join(filter(None, items))


def _is_grid(table: LexborNode) -> bool:
    """A layout puts a menu beside a text; rows that are alike, or named columns, are data."""
    if _is_named(table):
        return True
    widths = {len(row.css("td")) for row in table.css("tr")}
    return len(table.css("tr")) > 1 and len(widths) == 1 and widths != {1}


def _is_named(table: LexborNode) -> bool:
    return table.css_first("th") is not None


def _in_front(tag: str, element: LexborNode, sight: int) -> str:
    if tag in REPLACED:
        return instead_of_words(element, sight)
    if tag == "li" and _follows_item(element):
        return _ITEM
    return " " if tag in BLOCKS or tag == "br" else ""


def _follows_item(item: LexborNode) -> bool:
    before = item.prev
    if before is not None and before.tag == "-text":
        before = before.prev
    return before is not None and before.tag == "li"


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
    """0 is to the end of the table."""
    value = cell.attributes.get(name) or "1"
    return min(int(value[:4]), _LONGEST_SPAN) if value.isdecimal() else 1
