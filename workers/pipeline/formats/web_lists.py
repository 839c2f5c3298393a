"""Numbers of a page's lists, as a reader of the page sees them."""

import re

from selectolax.lexbor import LexborNode

_NUMBER = re.compile(r"\s*([+-]?\d{1,6})(?!\d)")
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
_LARGEST_ROMAN = 3999


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
        letters = _letters(number)
    elif kind in {"i", "I"} and 0 < number <= _LARGEST_ROMAN:
        letters = _roman(number)
    else:
        return str(number)
    return letters.upper() if kind.isupper() else letters


def _letters(number: int) -> str:
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return letters


def _roman(number: int) -> str:
    letters = ""
    for worth, sign in _ROMAN:
        count, number = divmod(number, worth)
        letters += sign * count
    return letters
