"""Kept text to chunks: structure first, a token budget second, cuts that edits do not move (`cuts.py`).

A chunk's text is exactly `text[charStart:charEnd]` of the kept text; every character that is not white space is in
exactly one chunk. Its hash covers its text alone: nothing positional, no heading, no title, so that a moved paragraph or
a renamed document costs no embedding. Chunks do not overlap; who wants context reads the neighbours.
"""

import hashlib
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from workers.pipeline.code_chunks import definitions
from workers.pipeline.extracted import PART, Extracted, Unit
from workers.pipeline.granularity import paragraphs, rank_of, spans


@dataclass(frozen=True, slots=True)
class Chunk:
    ordinal: int
    text: str
    text_hash: bytes
    locator: dict[str, Any]
    heading_path: str
    token_count: int
    language: str


def text_hash(text: str) -> bytes:
    """What a text is embedded under."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return hashlib.sha256(text.encode()).digest()


def chunk(extracted: Extracted, *, language: str) -> Iterator[Chunk]:
    ordinal = 0
    for units in _together(extracted.units):
        for start, end, size, fields, heading_path in _cut(extracted.text, units):
            locator = {**fields, "charStart": start, "charEnd": end}
            text = extracted.text[start:end]
            yield Chunk(ordinal, text, text_hash(text), locator, heading_path, size, language)
            ordinal += 1


def _together(units: Sequence[Unit]) -> Iterator[Sequence[Unit]]:
    """Units that may share a chunk. Pages and objects never do."""
    first = 0
    for index in range(1, len(units) + 1):
        if index == len(units) or units[index].level == PART:
            yield units[first:index]
            first = index


def _cut(text: str, units: Sequence[Unit]) -> Iterator[tuple[int, int, int, dict[str, Any], str]]:
    """Start, end, tokens, locator fields and heading path of each chunk."""
    if units and units[0].code_language is not None:
        for unit in units:
            yield from _cut_code(text, unit)
        return
    pieces = paragraphs(text, units)
    starts = [unit.text_start for unit in units]
    for start, end, size in spans(text, pieces, rank=rank_of(text, pieces)):
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
        fields = _located(units[first], start, end)
        if last > first:
            until = _located(units[last], start, end)
            fields.update({key: until[key] for key in ("lineEnd",) if key in until})
            for name in ("cssPath", "section"):  # where it goes on, as its own is where it begins
                if until.get(name, fields.get(name)) != fields.get(name):
                    fields[f"{name}End"] = until[name]
        yield start, end, size, fields, units[first].heading_path


def _cut_code(text: str, unit: Unit) -> Iterator[tuple[int, int, int, dict[str, Any], str]]:
    for definition in definitions(text[unit.text_start : unit.text_end], str(unit.code_language)):
        low, high = unit.text_start + definition.start, unit.text_start + definition.end
        part = Unit(unit.kind, low, high, unit.locator)
        pieces = paragraphs(text, [part])
        for start, end, size in spans(text, pieces, rank=rank_of(text, pieces)):
            fields = _located(unit, start, end)
            fields.update(symbol=definition.symbol, astPath=definition.ast_path)
            yield start, end, size, fields, definition.heading_path


def _located(unit: Unit, start: int, end: int) -> dict[str, Any]:
    if unit.region is None:
        return dict(unit.locator)
    low = max(start, unit.text_start) - unit.text_start
    high = min(end, unit.text_end) - unit.text_start
    return {**unit.locator, **unit.region.locate(low, high)}
