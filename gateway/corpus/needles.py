"""Which of many strings can stand in a text, told by its words. A word tells once what is in it; that is remembered, and a text is
asked by its distinct words instead of once for each of a hundred needles.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import chain
from operator import add, or_

from gateway.corpus.masking import lowered

_REMEMBERED = 100_000  # words, about 10 MB
_AT_ONCE = 1 << 18  # characters
_BLANK = re.compile(r"\s")
_LONG_WORD = 100  # longer ones will not come again


class Needles(dict[str, int]):
    """Word → a bit for each needle in it, and from there on what `more` says about the word.

    Case does not count. Of a needle of several words the longest one is looked for: where it does not stand, the whole cannot.
    """

    def __init__(self, needles: Iterable[str], more: Callable[[str], int] | None = None) -> None:
        super().__init__()
        self.needles = tuple(dict.fromkeys(needles))
        self.more = 1 << len(self.needles)
        self._more = more
        self._decoded: dict[int, frozenset[str]] = {}
        bits: dict[str, int] = defaultdict(int)
        for number, needle in enumerate(self.needles):
            bits[max(lowered(needle).split(), key=len)] |= 1 << number
        self._signs = tuple((word, bit) for word, bit in bits.items() if len(word) == 1)
        # By the first two characters: a word has few pairs of them, and hardly any begins a needle.
        self._starts: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for word, bit in bits.items():
            self._starts[word[:2]].append((word, bit))
        self._pairs = frozenset(self._starts)

    def __missing__(self, word: str) -> int:
        found = self._in(lowered(word))
        if self._more:
            found |= self._more(word) * self.more
        if len(word) <= _LONG_WORD:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[word] = found
        return found

    def look(self, text: str) -> int:
        return reduce(or_, map(self.__getitem__, chain.from_iterable(map(set, _some_words(text)))), 0)

    def standing(self, found: int) -> frozenset[str]:
        """The needles that may stand in the text of which `look` found this."""
        found &= self.more - 1
        if found not in self._decoded:
            if len(self._decoded) >= _REMEMBERED // 10:
                self._decoded.clear()
            self._decoded[found] = frozenset(
                needle for number, needle in enumerate(self.needles) if found & 1 << number
            )
        return self._decoded[found]

    def _in(self, low: str) -> int:
        found = 0
        for sign, bit in self._signs:
            if sign in low:
                found |= bit
        for pair in self._pairs.intersection(map(add, low, low[1:])):
            for needle, bit in self._starts[pair]:
                if needle in low:
                    found |= bit
        return found


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
