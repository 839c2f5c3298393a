"""Which looks a text needs, from its words alone. Every look goes by something that must stand there – a vendor's prefix, a
label, the `://` of an address – and none of these reaches over a blank. So a word tells once what it can be part of; that
is remembered, and a text is asked by its distinct words instead of once for each of a hundred needles.
"""

import re
from collections.abc import Iterator
from enum import IntFlag
from functools import reduce
from itertools import chain
from operator import or_

from gateway.corpus.masking import lowered
from gateway.corpus.secrets.labels import ANCHORS, PINS
from gateway.corpus.secrets.shapes import may_hold_shape
from gateway.corpus.secrets.structures import COOKIE, KEY_BLOCKS, STRUCTURES

_REMEMBERED = 100_000  # words, about 10 MB
_AT_ONCE = 1 << 18  # characters
_BLANK = re.compile(r"\s")
_LONG_WORD = 100  # longer ones will not come again


class Look(IntFlag):
    SHAPES = 1
    LABELS = 2
    STRUCTURES = 4


def _within_words(anchors: tuple[str, ...]) -> tuple[str, ...]:
    """Of an anchor of several words the longest: where it does not stand, the whole cannot."""
    return tuple(dict.fromkeys(max(anchor.split(), key=len) for anchor in anchors))


_LABELS = _within_words(ANCHORS)
_STRUCTURES = _within_words((*(anchor for structure in STRUCTURES for anchor in structure.anchors), COOKIE))
_KEY_BLOCKS = _within_words(KEY_BLOCKS)


class _Words(dict[str, int]):
    """Word → the looks it calls for."""

    def __missing__(self, word: str) -> int:
        low = lowered(word)
        looks = 0
        if may_hold_shape(word):
            looks |= Look.SHAPES
        if any(anchor in low for anchor in _LABELS) or any(name in word for name in PINS):
            looks |= Look.LABELS
        if any(anchor in low for anchor in _STRUCTURES) or any(sign in word for sign in _KEY_BLOCKS):
            looks |= Look.STRUCTURES
        if len(word) <= _LONG_WORD:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[word] = looks
        return looks


_words = _Words()


def glance(text: str) -> Look:
    return Look(reduce(or_, map(_words.__getitem__, chain.from_iterable(map(set, _some_words(text)))), 0))


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
