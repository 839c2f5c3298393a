"""A stretch of text in ever finer pieces: paragraphs, lines, sentences, words, characters.

Chunks are made of the coarsest pieces that fit. Each finder here is a function of the stretch alone, and skips white
space at the edges of pieces; more than `_GAP` of it between two pieces keeps them apart, so that no chunk is mostly blank.
"""

import re
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from workers.pipeline import tokens
from workers.pipeline.cuts import LARGEST, Pieces, group
from workers.pipeline.extracted import CHARACTER, LINE, PARAGRAPH, PART, SENTENCE, STOP, WORD, Unit

_GAP = 200  # characters of white space
_LONGEST_GRAPHEME = 256  # no letter needs more marks than that
_INDENT = 64  # more than this in front of a line is not indentation
_SURELY_LARGE = 5 * LARGEST  # characters; such a paragraph is measured by its lines, not as a whole
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])\s*")
_WORD = re.compile(r"\S+")
_STOPS = frozenset(".!?:;…。！？")
_KEEPS_TO_PREVIOUS = frozenset("\u200d\ufe0e\ufe0f" + "".join(map(chr, range(0x1F3FB, 0x1F400))))
_FLAGS = range(0x1F1E6, 0x1F200)


def spans(text: str, pieces: Pieces, *, rank: Callable[[int], int]) -> Iterator[tuple[int, int, int]]:
    """(start, end, tokens) of the chunks these pieces make; what is too large goes on in finer pieces."""
    for first, last, size in group(pieces, rank):
        start, end = pieces.starts[first], pieces.ends[last - 1]
        if size <= LARGEST:
            yield start, end, size
        else:
            yield from _finer(text, start, end, 0)


def paragraphs(text: str, units: Sequence[Unit]) -> Pieces:
    """The paragraphs of units that may share a chunk."""
    pieces = Pieces()
    for unit in units:
        level, position = unit.level, unit.text_start
        while position < unit.text_end:
            found = _BLANK_LINES.search(text, position, unit.text_end)
            end = found.start() if found else unit.text_end
            if _add(pieces, text, position, end, level, _paragraph_size):
                level = PARAGRAPH
            position = found.end() if found else unit.text_end
    return pieces


def rank_of(text: str, pieces: Pieces) -> Callable[[int], int]:
    """The rank of the boundary before a piece: a hash of how the piece begins, up to a line's end."""

    def rank(index: int) -> int:
        start = pieces.starts[index]
        end = min(pieces.ends[index], start + 200)
        newline = text.find("\n", start, end)
        return _crc(text[start : newline if newline >= 0 else end].strip())

    return rank


def _finer(text: str, start: int, end: int, step: int) -> Iterator[tuple[int, int, int]]:
    find = _STEPS[step]
    pieces = find(text, start, end)
    for first, last, size in group(pieces, rank_of(text, pieces)):
        low, high = pieces.starts[first], pieces.ends[last - 1]
        if find is _characters:
            yield low, high, tokens.exact(text[low:high])
        elif size <= LARGEST:
            yield low, high, size
        else:
            yield from _finer(text, low, high, step + 1)


def _paragraph_size(paragraph: str) -> int:
    return len(paragraph) if len(paragraph) > _SURELY_LARGE else tokens.measure(paragraph)


def _add(pieces: Pieces, text: str, start: int, end: int, level: int, size: Callable[[str], int]) -> bool:
    """Add what is not blank of [start, end); false if nothing is."""
    piece = text[start:end]
    kept = piece.rstrip()
    if not kept:
        return False
    blank = skip = 0
    if kept[0].isspace():
        blank = len(kept) - len(kept.lstrip())
        newline = kept.rfind("\n", 0, blank)  # indentation stays with its line, blank lines do not
        skip = newline + 1 if blank - newline <= _INDENT else blank
    if pieces.ends and start + blank - pieces.ends[-1] > _GAP:
        level = PART
    pieces.add(start + skip, start + len(kept), size(kept), level)
    return True


def _lines(text: str, start: int, end: int) -> Pieces:
    pieces = Pieces()
    level, position = LINE, start
    while position < end:
        newline = text.find("\n", position, end)
        stop = newline if newline >= 0 else end
        if _add(pieces, text, position, stop, level, tokens.measure):
            level = STOP if text[pieces.ends[-1] - 1] in _STOPS else LINE
        else:
            level = PARAGRAPH
        position = stop + 1
    return pieces


def _sentences(text: str, start: int, end: int) -> Pieces:
    pieces = Pieces()
    position = start
    for found in _SENTENCE_END.finditer(text, start, end):
        _add(pieces, text, position, found.end(), SENTENCE, tokens.measure)
        position = found.end()
    _add(pieces, text, position, end, SENTENCE, tokens.measure)
    return pieces


def _split_words(text: str, start: int, end: int) -> Pieces:
    pieces = Pieces()
    for found in _WORD.finditer(text, start, end):
        _add(pieces, text, found.start(), found.end(), WORD, lambda word: tokens.measure(word) - 1)
    return pieces


def _characters(text: str, start: int, end: int) -> Pieces:
    """Runs of about sixteen characters, bounded where a hash of the last four says so; never inside a grapheme."""
    codes = np.frombuffer(text[start:end].encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    mixed = codes.copy()
    for distance, factor in ((1, 0x9E3779B1), (2, 0x85EBCA77), (3, 0xC2B2AE3D)):
        mixed[distance:] += codes[:-distance] * np.uint64(factor)
    mixed = (mixed * np.uint64(0x27D4EB2F) >> np.uint64(7)) & np.uint64(15)
    pieces = Pieces()
    position = 0
    for candidate in [*(np.flatnonzero(mixed == 0) + 1).tolist(), len(codes)]:
        for boundary in [*range(position + 64, candidate, 64), candidate]:
            if boundary - position < 4 and boundary < len(codes):
                continue
            forced = boundary == len(codes) or boundary - position >= _LONGEST_GRAPHEME
            if forced or _separable(text, start + boundary):
                _add(pieces, text, start + position, start + boundary, CHARACTER, _weight)
                position = boundary
    return pieces


def _weight(run: str) -> int:
    return sum(map(tokens.character_weight, run))


def _separable(text: str, position: int) -> bool:
    before, after = text[position - 1], text[position]
    if after in _KEEPS_TO_PREVIOUS or before == "\u200d" or unicodedata.category(after).startswith("M"):
        return False
    return not (ord(before) in _FLAGS and ord(after) in _FLAGS)


def _crc(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


_STEPS = (_lines, _sentences, _split_words, _characters)
