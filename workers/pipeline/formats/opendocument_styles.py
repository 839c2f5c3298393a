"""What styles of an OpenDocument file say of its text: which of it is hidden, and how lists and headings are numbered.

The numbers themselves are not stored: a level of a list says how it counts, from where, and what stands around the number.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from workers.pipeline.formats.numerals import LARGEST_ROMAN, in_letters, in_roman

NS = "urn:oasis:names:tc:opendocument:xmlns:"
TEXT, STYLE = f"{{{NS}text:1.0}}", f"{{{NS}style:1.0}}"
BULLET = "-"
_KEPT_IN = f"{{{NS}office:1.0}}styles", f"{{{NS}office:1.0}}automatic-styles"
_STYLE_NAME, _SECTION = f"{TEXT}style-name", f"{TEXT}section"
_MAY_HIDE = {_SECTION, f"{TEXT}hidden-text", f"{TEXT}hidden-paragraph"}
_MOST_ANCESTORS = 20
_DEEPEST = 10
_LONGEST = 100  # characters around a number


@dataclass(frozen=True, slots=True)
class _Level:
    form: str
    before: str
    behind: str
    start: int
    shown: int  # levels, counted from the innermost

    def written(self, number: int) -> str:
        if self.form in {"a", "A"} and number > 0:
            letters = in_letters(number)
        elif self.form in {"i", "I"} and 0 < number <= LARGEST_ROMAN:
            letters = in_roman(number)
        else:
            return str(number)
        return letters.upper() if self.form.isupper() else letters


class Styles:
    """`roots` are those of the content and of the file of styles."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self._levels: dict[str, dict[int, _Level | None]] = {}
        self._outline: dict[int, _Level | None] = {}
        self._counts: dict[str, dict[int, int]] = {}
        said: dict[str, bool] = {}
        parents: dict[str, str] = {}
        for kept in (kept for root in roots for kept in root.iterchildren(*_KEPT_IN)):
            for style in kept.iter(f"{STYLE}style"):
                name = str(style.get(f"{STYLE}name"))
                parents[name] = str(style.get(f"{STYLE}parent-style-name", ""))
                for properties in style.iterchildren(f"{STYLE}text-properties"):
                    if display := properties.get(f"{TEXT}display"):
                        said[name] = display == "none"
            for style in kept.iter(f"{TEXT}list-style"):
                self._levels[str(style.get(f"{STYLE}name"))] = _levels(style)
            for style in kept.iter(f"{TEXT}outline-style"):
                self._outline = _levels(style)
        self._hidden = {name for name in parents if _inherited(name, said, parents)}

    def hides(self, element: Any) -> bool:
        """Whether this paragraph, stretch of text or section does not show."""
        if self._hidden and element.get(_STYLE_NAME) in self._hidden:
            return True
        return element.tag in _MAY_HIDE and _is_off(element)

    def begin(self, items: Any, style: str) -> None:
        """A list of the outermost level."""
        goes_on = items.get(f"{TEXT}continue-numbering") == "true" or items.get(f"{TEXT}continue-list")
        if not goes_on:
            self._counts.pop(style, None)

    def mark(self, style: str, depth: int, start: str | None = None) -> str:
        """In front of the next item; '' where a level shows none."""
        levels = self._levels.get(style, {})
        if levels.get(depth) is None:
            return BULLET
        return _counted(levels, self._counts.setdefault(style, {}), depth, start)

    def heading(self, element: Any, rank: int) -> str:
        if self._outline.get(rank - 1) is None or element.get(f"{TEXT}is-list-header") == "true":
            return ""
        return _counted(
            self._outline, self._counts.setdefault("", {}), rank - 1, element.get(f"{TEXT}start-value")
        )


def _is_off(element: Any) -> bool:
    is_hidden, display = element.get(f"{TEXT}is-hidden"), element.get(f"{TEXT}display")
    if element.tag == _SECTION:
        return display == "none" or (display == "condition" and is_hidden == "true")
    return is_hidden != "false"


def _levels(style: Any) -> dict[int, _Level | None]:
    """By depth, from 0; None is a bullet, or nothing in front of a heading."""
    found: dict[int, _Level | None] = {}
    for level in style:
        number = str(level.get(f"{TEXT}level"))[:3]
        if not isinstance(level.tag, str) or not number.isdecimal():
            continue
        form = str(level.get(f"{STYLE}num-format", ""))
        start, shown = (
            str(level.get(f"{TEXT}{name}", "1"))[:6] for name in ("start-value", "display-levels")
        )
        bullet = level.tag.endswith("bullet") or level.tag.endswith("image")
        unmarked = level.tag.endswith("outline-level-style") and not form
        before, behind = (
            str(level.get(f"{STYLE}num-{name}", ""))[:_LONGEST] for name in ("prefix", "suffix")
        )
        if bullet or unmarked:
            found[int(number) - 1] = None
        else:
            first, levels = (int(words) if words.isdecimal() else 1 for words in (start, shown))
            found[int(number) - 1] = _Level(form, before, behind, first, levels)
    return found


def _counted(levels: dict[int, _Level | None], counts: dict[int, int], depth: int, start: str | None) -> str:
    level = levels.get(depth)
    if level is None:
        return ""
    if start and start[:6].isdecimal():
        counts[depth] = int(start[:6])
    else:
        counts[depth] = counts[depth] + 1 if depth in counts else level.start
    for deeper in [each for each in counts if each > depth]:
        del counts[deeper]
    if not level.form:
        return ""
    shown = range(max(0, depth + 1 - level.shown), depth + 1)
    parts = (
        other.written(counts.get(each, other.start))
        for each in shown
        if (other := levels.get(each)) and other.form
    )
    return " ".join(f"{level.before}{'.'.join(parts)}{level.behind}".split())


def _inherited(name: str, said: dict[str, bool], parents: dict[str, str]) -> bool:
    for _ in range(_MOST_ANCESTORS):
        if name in said or not name:
            break
        name = parents.get(name, "")
    return said.get(name, False)
