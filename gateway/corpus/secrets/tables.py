"""A column of secrets: the label stands in the header row, the values below it."""

import re
from collections.abc import Iterable, Iterator

from gateway.corpus.masking import Span
from gateway.corpus.secrets.labels import Grade, Label
from gateway.corpus.secrets.pairs import is_pair, paired
from gateway.corpus.secrets.values import Strength, is_one_word, names_a_secret, strength

_ROWS = 20_000
_WIDEST = 2000  # characters of a header row
_DELIMITERS = ("|", "\t", ";", ",")
_RULE = re.compile(r"[\s|:+\-=]*")
_DECORATION = " \t\r\"'*_`|"


def find_in_columns(text: str, labels: Iterable[Label]) -> Iterator[Span]:
    header = reached = -1
    for label in labels:
        line_start = text.rfind("\n", max(0, label.start - _WIDEST), label.start) + 1
        line_end = text.find("\n", label.end, label.end + _WIDEST)
        line_end = len(text) if line_end < 0 and len(text) - label.end < _WIDEST else line_end
        if label.kind == "pin" or line_end < 0 or label.start - line_start > _WIDEST:
            continue
        if label.start < reached and line_start != header:
            continue  # a row of the table before
        delimiter = _delimiter(text[line_start:line_end])
        if delimiter is None:
            continue
        column = text.count(delimiter, line_start, label.start)
        if _cell(text, line_start, line_end, delimiter, column) != (label.start, label.end):
            continue
        if is_pair(text, line_start, line_end, delimiter, label):
            yield from paired(text, line_start, line_end, delimiter, label)
            continue
        rows = list(_rows(text, line_end + 1, delimiter, text.count(delimiter, line_start, line_end)))
        header, reached = line_start, rows[-1][1] if rows else line_end
        yield from _values(text, rows, delimiter, column, label)


def _delimiter(line: str) -> str | None:
    found = next((sign for sign in _DELIMITERS if sign in line), None)
    # A comma at the end is a list in code.
    return None if found is None or (found in ",;" and line.rstrip().endswith(found)) else found


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return end if end >= 0 else len(text)


def _rows(text: str, start: int, delimiter: str, count: int) -> Iterator[tuple[int, int]]:
    """The lines below with as many cells; a table of commas must keep their number exactly."""
    for _ in range(_ROWS):
        end = _line_end(text, start)
        if start >= len(text) or text.count(delimiter, start, end) != count:
            return
        if not _RULE.fullmatch(text, start, end):
            yield start, end
        start = end + 1


def _cell(text: str, start: int, end: int, delimiter: str, column: int) -> tuple[int, int] | None:
    for _ in range(column):
        start = text.find(delimiter, start, end) + 1
        if start == 0:
            return None
    following = text.find(delimiter, start, end)
    end = following if following >= 0 else end
    while start < end and text[start] in _DECORATION:
        start += 1
    while end > start and text[end - 1] in _DECORATION:
        end -= 1
    return start, end


def _values(
    text: str, rows: Iterable[tuple[int, int]], delimiter: str, column: int, label: Label
) -> Iterator[Span]:
    # Bars without spaces are an alternation in a pattern, not a table.
    sure = label.grade is Grade.HARD and (delimiter == "\t" or text[label.end : label.end + 1].isspace())
    for start, end in rows:
        cell = _cell(text, start, end, delimiter, column)
        if cell is None:
            return
        word = text[cell[0] : cell[1]]
        found = strength(word, quoted=False)
        plain = (
            sure
            and found is Strength.PLAIN
            and len(word) >= 4
            and " " not in word
            and not names_a_secret(word)
        )
        if plain or (found >= Strength.STRONG and is_one_word(word) and not names_a_secret(word)):
            yield Span(*cell, label.kind)
