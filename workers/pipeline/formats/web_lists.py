"""Numbers of a page's lists, as a reader of the page sees them."""

import re

from selectolax.lexbor import LexborNode

from workers.pipeline.formats.numerals import LARGEST_ROMAN, in_letters, in_roman

_NUMBER = re.compile(r"\s*([+-]?\d{1,6})(?!\d)")


class Numbering:
    """Of one list: its kind, and the number of its item before."""

    def __init__(self, items: LexborNode) -> None:
        attributes = items.attributes
        self._numbered = items.tag == "ol"
        self._kind = attributes.get("type") or "1"
        self._step = -1 if "reversed" in attributes else 1
        first = _number(attributes.get("start"))
        if first is None:
            first = _count(items) if self._step < 0 else 1
        self._last = first - self._step

    def mark(self, item: LexborNode) -> str:
        if not self._numbered:
            return "- "
        said = _number(item.attributes.get("value"))
        self._last = self._last + self._step if said is None else said
        return f"{_written(self._last, item.attributes.get('type') or self._kind)}. "


def _number(value: str | None) -> int | None:
    found = _NUMBER.match(value) if value else None
    return int(found.group(1)) if found else None


def _count(items: LexborNode) -> int:
    count, child = 0, items.child
    while child is not None:
        count += child.tag == "li"
        child = child.next
    return count


def _written(number: int, kind: str) -> str:
    if kind in {"a", "A"} and number > 0:
        letters = in_letters(number)
    elif kind in {"i", "I"} and 0 < number <= LARGEST_ROMAN:
        letters = in_roman(number)
    else:
        return str(number)
    return letters.upper() if kind.isupper() else letters
