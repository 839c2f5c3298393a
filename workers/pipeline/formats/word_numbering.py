"""The numbers Word would show in front of paragraphs: it stores none of them, only how each level of a list counts.

A level has a format and a text around it (`§ %1`, `(%2)`, `%1.%2.%3`), from the list itself or from a style. Lists of one
kind go on counting together, until one says that it starts anew.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from workers.pipeline.formats.numerals import LARGEST_ROMAN, in_roman

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
BULLET = "-"
_DEEPEST = 8
_LONGEST = 100  # characters around a number
_COUNTED = re.compile(r"%([1-9])")


class Mark(NamedTuple):
    depth: int
    text: str  # empty: none, not even a bullet


class ListStyle(NamedTuple):
    """What a style says of its paragraphs."""

    number: str  # of the list
    said_by: str  # the style itself, or the one it is based on
    level: str


NO_MARK = Mark(0, "")
_NO_LIST = ListStyle("", "", "")


@dataclass(frozen=True, slots=True)
class _Level:
    start: int
    form: str
    text: str
    style: str  # whose paragraphs are of this level
    is_legal: bool  # all numbers as digits
    restarts_after: int  # the deepest level, counted from one, after which this one begins again


@dataclass(slots=True)
class _List:
    kind: str  # lists of one kind count together
    levels: dict[int, _Level]
    anew: dict[int, int] = field(default_factory=dict[int, int])  # level → with which number this list begins


class Numbering:
    def __init__(self, roots: Iterable[Any], by_style: Mapping[str, ListStyle]) -> None:
        self._by_style = by_style
        self._lists: dict[str, _List] = {}
        self._counts: dict[str, dict[int, int]] = {}
        self._begun: set[tuple[str, int]] = set()
        for root in roots:
            self._learn(root)

    def mark(self, properties: Any, style: str) -> Mark:
        """Of a paragraph with these properties; every one must be asked for, since it counts."""
        own = None if properties is None else properties.find(f"{W}numPr")
        number, said_by, level = self._by_style.get(style, _NO_LIST)
        if own is not None:
            number = value_of(own.find(f"{W}numId")) or number
            level = value_of(own.find(f"{W}ilvl")) or level
        elif not number:
            return self._by_name(style)
        if number in {"", "0"}:
            return NO_MARK
        known = self._lists.get(number)
        if known is None:
            return Mark(_depth(level), BULLET)
        if own is None:
            linked = {each.style: str(depth) for depth, each in known.levels.items()}
            level = linked.get(style, linked.get(said_by, level))
        depth = _depth(level)
        indent = max(depth, _depth_of_name(style)) if own is None else depth
        return Mark(indent, self._text(number, known, depth))

    def _learn(self, root: Any) -> None:
        kinds = {str(kind.get(f"{W}abstractNumId")): kind for kind in root.iterchildren(f"{W}abstractNum")}
        of_number = {
            str(number.get(f"{W}numId")): value_of(number.find(f"{W}abstractNumId"))
            for number in root.iterchildren(f"{W}num")
        }
        levels = {key: _levels(kind) for key, kind in kinds.items()}
        for key, kind in kinds.items():
            style = value_of(kind.find(f"{W}numStyleLink"))
            if style and not levels[key]:  # it is what a style says, which says it of another
                other = self._by_style.get(style, _NO_LIST)
                levels[key] = levels.get(of_number.get(other.number, ""), {})
        for number in root.iterchildren(f"{W}num"):
            key = str(number.get(f"{W}numId"))
            known = _List(of_number[key], dict(levels.get(of_number[key], {})))
            for change in number.iterchildren(f"{W}lvlOverride"):
                depth = _depth(str(change.get(f"{W}ilvl")))
                for level in change.iterchildren(f"{W}lvl"):
                    known.levels[depth] = _level(level, depth)
                if (start := value_of(change.find(f"{W}startOverride"))).isdecimal():
                    known.anew[depth] = int(start[:6])
            self._lists[key] = known

    def _by_name(self, style: str) -> Mark:
        """Word's own list styles, where nothing says what they look like."""
        if not style.startswith("List") or style == "ListParagraph":  # which only indents
            return NO_MARK
        depth = _depth_of_name(style)
        level = _Level(1, "decimal", f"%{depth + 1}.", style, is_legal=False, restarts_after=depth)
        named = _List("", {depth: level})
        return Mark(depth, self._text("", named, depth) if "Number" in style else BULLET)

    def _text(self, number: str, known: _List, depth: int) -> str:
        level = known.levels.get(depth)
        if level is None or level.form == "bullet":
            return BULLET
        counts = self._counted(number, known, depth)

        def shown(found: re.Match[str]) -> str:
            of = known.levels.get(int(found[1]) - 1, level)
            return _written(counts.get(int(found[1]) - 1, of.start), "decimal" if level.is_legal else of.form)

        return " ".join(_COUNTED.sub(shown, level.text).split())

    def _counted(self, number: str, known: _List, depth: int) -> dict[int, int]:
        counts = self._counts.setdefault(known.kind, {})
        starts = {each: known.anew.get(each, level.start) for each, level in known.levels.items()}
        if depth in known.anew and (number, depth) not in self._begun:
            counts[depth] = starts[depth]
        else:
            counts[depth] = counts[depth] + 1 if depth in counts else starts[depth]
        self._begun.add((number, depth))
        for higher in range(depth):
            counts.setdefault(higher, starts.get(higher, 1))
        for deeper in [each for each in counts if each > depth]:
            if deeper not in known.levels or depth < known.levels[deeper].restarts_after:
                del counts[deeper]
        return counts


def value_of(element: Any) -> str:
    return "" if element is None else str(element.get(f"{W}val", ""))


def _levels(kind: Any) -> dict[int, _Level]:
    levels = ((_depth(str(level.get(f"{W}ilvl"))), level) for level in kind.iterchildren(f"{W}lvl"))
    return {depth: _level(level, depth) for depth, level in levels}


def _level(level: Any, depth: int) -> _Level:
    start, restart = (value_of(level.find(f"{W}{name}")) for name in ("start", "lvlRestart"))
    text, legal = level.find(f"{W}lvlText"), level.find(f"{W}isLgl")
    return _Level(
        int(start[:6]) if start.isdecimal() else 0 if start else 1,
        value_of(level.find(f"{W}numFmt")) or "decimal",
        f"%{depth + 1}." if text is None else value_of(text)[:_LONGEST],
        value_of(level.find(f"{W}pStyle")),
        legal is not None and value_of(legal) not in {"0", "false", "off"},
        int(restart[:1]) if restart.isdecimal() else depth,
    )


def _depth(level: str) -> int:
    return min(int(level[:2]), _DEEPEST) if level.isdecimal() else 0


def _depth_of_name(style: str) -> int:
    return int(style[-1]) - 1 if style.startswith("List") and style[-1] in "2345" else 0


def _written(number: int, form: str) -> str:
    match form:
        case "upperRoman" | "lowerRoman" if 0 < number <= LARGEST_ROMAN:
            written = in_roman(number)
        case "upperLetter" | "lowerLetter" if 0 < number <= 26 * _LONGEST:
            written = chr(ord("a") + (number - 1) % 26) * ((number + 25) // 26)
        case "decimalZero":
            written = f"{number:02}"
        case "none":
            written = ""
        case _:
            written = str(number)
    return written.upper() if form.startswith("upper") else written
