"""Which looks a text needs, from its words alone. Every look goes by something that must stand there – a vendor's prefix, a
label, the `://` of an address – and none of these reaches over a blank. So a word tells once what it can be part of; that
is remembered, and a text is asked by its distinct words instead of once for each of a hundred needles.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache, reduce
from itertools import chain
from operator import or_

from gateway.corpus.masking import lowered
from gateway.corpus.secrets import key_blocks, structures
from gateway.corpus.secrets.labels import ANCHORS, PINS
from gateway.corpus.secrets.shapes import may_hold_shape

_REMEMBERED = 100_000  # words, about 10 MB
_AT_ONCE = 1 << 18  # characters
_BLANK = re.compile(r"\s")
_LONG_WORD = 100  # longer ones will not come again


SHAPES, PIN_NAMES, KEY_BLOCKS = 1, 2, 4
_FIRST = 8  # from here on one bit for each anchor of a label, a structure or a cookie
_NEEDLES = tuple(
    dict.fromkeys(
        (*ANCHORS, structures.COOKIE, *chain.from_iterable(form.anchors for form in structures.STRUCTURES))
    )
)
EVERYTHING = (_FIRST << len(_NEEDLES)) - 1


def _within_words(anchors: tuple[str, ...]) -> tuple[str, ...]:
    """Of an anchor of several words the longest: where it does not stand, the whole cannot."""
    return tuple(max(anchor.split(), key=len) for anchor in anchors)


def _called_for() -> dict[str, int]:
    """What must stand in a word, in lower case → the looks it calls for."""
    found: dict[str, int] = defaultdict(int)
    for number, word in enumerate(_within_words(_NEEDLES)):
        found[word] |= _FIRST << number
    return dict(found)


def _by_start() -> dict[str, list[tuple[str, int]]]:
    """The same by the first two characters: a word has few pairs of characters, and hardly any of them begins an anchor."""
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for anchor, looks in _called_for().items():
        found[anchor[:2]].append((anchor, looks))
    return dict(found)


_STARTS = _by_start()
_SIGNS = tuple((anchor, looks) for anchor, looks in _called_for().items() if len(anchor) == 1)
_KEY_BLOCKS = _within_words(key_blocks.ANCHORS)


def _anchors_in(low: str) -> int:
    looks = 0
    for sign, called in _SIGNS:
        if sign in low:
            looks |= called
    for at in range(len(low) - 1):
        for anchor, called in _STARTS.get(low[at : at + 2], ()):
            if low.startswith(anchor, at):
                looks |= called
    return looks


class _Words(dict[str, int]):
    """Word → the looks it calls for."""

    def __missing__(self, word: str) -> int:
        looks = _anchors_in(lowered(word))
        if may_hold_shape(word):
            looks |= SHAPES
        if any(name in word for name in PINS):
            looks |= PIN_NAMES
        if any(sign in word for sign in _KEY_BLOCKS):
            looks |= KEY_BLOCKS
        if len(word) <= _LONG_WORD:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[word] = looks
        return looks


_words = _Words()


def glance(text: str) -> int:
    return reduce(or_, map(_words.__getitem__, chain.from_iterable(map(set, _some_words(text)))), 0)


@lru_cache(maxsize=4096)
def standing(looks: int) -> frozenset[str]:
    """The anchors that may stand in the text."""
    return frozenset(anchor for number, anchor in enumerate(_NEEDLES) if looks & _FIRST << number)


def _some_words(text: str) -> Iterator[list[str]]:
    """The words, some thousand at a time: all of a large file at once take twelve times its size."""
    start = 0
    while len(text) - start > _AT_ONCE:
        end = _BLANK.search(text, start + _AT_ONCE)
        if end is None:
            break
        yield text[start : end.start()].split()
        start = end.end()
    yield text[start:].split()
