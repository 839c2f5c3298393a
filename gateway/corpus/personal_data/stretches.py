"""Where numbers stand that could mean a person. Ordinary text has few such places, so everything else is skipped."""

import re
from collections.abc import Iterable
from typing import NamedTuple

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


def mentions(low: str, words: Iterable[str]) -> bool:
    """Whether a label can be in the text at all, so that it need not be looked for before every number."""
    return any(word in low for word in words)
