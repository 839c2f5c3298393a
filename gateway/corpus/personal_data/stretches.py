"""Where numbers stand that could mean a person. Ordinary text has few such places, so everything else is skipped."""

import re
from functools import lru_cache
from typing import NamedTuple

from gateway.corpus.masking import lowered, positions
from gateway.corpus.needles import Needles

GAP = r"[ \u00a0\u202f./()\-–]"
# Six digits and more, however they are grouped. Beginning with a class and not with a look behind makes it fast.
_STRETCH = re.compile(rf"\d(?<!\d\d)(?:{GAP}{{0,3}}\d){{5,}}")
# In a table with a head both cells are named: `Field: Date of birth | Value: …`.
CELL_NAME = r"(?:(?<=\|[ ])[^\n|:]{1,40}:[ ])?"
LABEL_REACH = 64  # how far before a number its label may begin


class Stretch(NamedTuple):
    start: int
    end: int
    digits: int


def digit_stretches(text: str) -> list[Stretch]:
    return [
        Stretch(match.start(), match.end(), sum(map(str.isdigit, match[0])))
        for match in _STRETCH.finditer(text)
    ]


_registered: list[str] = []


def needles(*words: str) -> tuple[str, ...]:
    """What stands in or beside what is looked for. All are known before the first text is seen."""
    _registered.extend(words)
    return words


@lru_cache(maxsize=1)
def _known() -> Needles:
    return Needles(_registered)


class Seen:
    """A text, and which needles may stand in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.low = lowered(text)
        self._standing = _known().standing(_known().look(text))

    def mentions(self, words: tuple[str, ...]) -> bool:
        return not self._standing.isdisjoint(words) and any(word in self.low for word in words)

    def at(self, words: tuple[str, ...]) -> list[int]:
        """Where they begin, in small letters or capital ones."""
        return positions(self.low, self._standing.intersection(words)) if self._among(words) else []

    def at_exactly(self, words: tuple[str, ...]) -> list[int]:
        return positions(self.text, self._standing.intersection(words)) if self._among(words) else []

    def _among(self, words: tuple[str, ...]) -> bool:
        return not self._standing.isdisjoint(words)
