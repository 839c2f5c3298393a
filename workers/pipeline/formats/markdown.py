"""Markdown: the source is the kept text, but for pictures written out in letters; each block is a unit with its heading path and line.

Two views of one text. What a block is under comes from a real parser, which knows that `# x` in a listing is no heading.
Where blocks end and how strong their boundaries are comes from the lines around them alone: by the parser's word, one
deleted fence would turn the rest of the document inside out, and every later chunk would be cut and embedded anew.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from markdown_it import MarkdownIt

from workers.pipeline.extract import Source
from workers.pipeline.extracted import (
    LINE,
    PARAGRAPH,
    Extracted,
    OffsetMap,
    SourceLines,
    Unit,
    newline_offsets,
)
from workers.pipeline.formats import text as plain

_HEADING_CHARACTERS = 200
_PICTURE = re.compile(r"(data:image/[\w.+-]+;base64,)[A-Za-z0-9+/=]{64,}")  # exports end with all of theirs
_HASHES = re.compile(r" {0,3}(#{1,6})(?:\s|$)")


def read(source: Source) -> Extracted:
    text = plain.decode(source)
    pictures = [(found.end(1), found.end(), "…") for found in _PICTURE.finditer(text)]
    extracted = Extracted(text, units(text, source))
    return extracted.replace_spans(pictures) if pictures else extracted


def units(text: str, source: Source) -> list[Unit]:
    del source
    newlines = newline_offsets(text)
    headings = _headings(text)
    heading_lines = [line for line, _ in headings]
    found: list[Unit] = []
    after_heading = False
    for start, end, first_line, last_line in _blocks(text, newlines):
        rank = _rank(text[start:end])
        level = rank or (LINE if after_heading else PARAGRAPH)  # a heading does not part from what it heads
        after_heading = bool(rank) and last_line - first_line <= 1
        heading = bisect_right(heading_lines, first_line) - 1
        path = headings[heading][1] if heading >= 0 else ""
        region = SourceLines(newlines, OffsetMap.plain(end - start, start))
        found.append(Unit("block", start, end, {"kind": "text"}, path, level, region=region))
    return found


def _blocks(text: str, newlines: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    """Runs of lines that are not blank: start, end, first and last line (from 0)."""
    start = begun = -1
    position = 0
    for line, newline in enumerate([*newlines, len(text)]):
        blank = not text[position:newline].strip()
        if not blank and start < 0:
            start, begun = position, line
        elif blank and start >= 0:
            yield start, position, begun, line - 1
            start = -1
        position = newline + 1
    if start >= 0:
        yield start, len(text), begun, len(newlines)


def _rank(block: str) -> int:
    """1 to 6 if the block begins with what looks like a heading, 0 if not. The top two ranks weigh the same: the first
    is mostly a title, and comments in listings look like it.
    """
    if found := _HASHES.match(block):
        return max(2, len(found.group(1)))
    first, _, rest = block.partition("\n")
    underline = rest.partition("\n")[0].strip()
    return 2 if underline and set(underline) in ({"="}, {"-"}) and first.strip(" -=|") else 0


def _headings(text: str) -> list[tuple[int, str]]:
    """(line, path of headings) for each heading the parser finds."""
    skipped = _front_matter_lines(text)
    tokens = _parser().parse(text.split("\n", skipped)[-1] if skipped else text)
    found: list[tuple[int, str]] = []
    open_headings: list[tuple[int, str]] = []
    for token, content in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map is not None:
            rank = int(token.tag[1:])
            title = " ".join(content.content.split())[:_HEADING_CHARACTERS]
            open_headings = [*((other, name) for other, name in open_headings if other < rank), (rank, title)]
            path = " > ".join(name for _, name in open_headings if name)
            found.append((token.map[0] + skipped, path))
    return found


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": 200}).enable("table")
    # Blocks are all we want; reading the inline marks is most of the time, and more than linear on hostile input.
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _front_matter_lines(text: str) -> int:
    """How many lines of metadata stand between two rules at the very top."""
    if not text.startswith("---\n"):
        return 0
    end = text.find("\n---\n", 3)
    return text.count("\n", 0, end) + 2 if end >= 0 else 0
