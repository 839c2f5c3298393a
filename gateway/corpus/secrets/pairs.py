"""Rows that the label begins. A list of pairs looks like a table: the label stands before its value, and below it stand the
names of other fields. Or the columns are things that each have their own value.
"""

import re
from collections.abc import Iterable, Iterator

from gateway.corpus.field_names import describes, names_a_column, names_a_field
from gateway.corpus.masking import PLACEHOLDER, Span
from gateway.corpus.secrets.labels import Grade, Label
from gateway.corpus.secrets.values import Strength, is_made_up, is_one_word, names_a_secret, strength

_WIDEST = 2000  # characters of a row
_DECORATION = " \t\r\"'*_`"
_RULE = frozenset("|:-+= \t")
_MOST_CELLS = 40
_ROW_START = re.compile(r"(?:\A|\n)[\s|*_\"'`]{0,8}(?:[^|\n:]{1,120}: )?[*_\"'`]{0,4}\Z")
_NEXT = re.compile(r"[*_\"'`]{0,4}[ ]?[|\t]")
_NAMED = re.compile(r"([^|:\n]{1,120}): ")
_DIGITS = re.compile(r"\d{4,8}")
_WIDTHS = (2, 4)  # a name and its value, or two of each


def is_pair(text: str, start: int, end: int, delimiter: str, label: Label) -> bool:
    """Whether in this row the label stands beside its value, rather than above a column of them."""
    row = _cells(text, start, end, delimiter)
    at = next((number for number, cell in enumerate(row) if cell.start <= label.start < cell.end), -1)
    if len(row) not in _WIDTHS or at % 2:
        return False
    beside = text[row[at + 1].start : row[at + 1].end]
    if names_a_column(beside):
        return False
    around = [
        text[cells[at].start : cells[at].end]
        for cells in _rows_around(text, start, end, delimiter)
        if len(cells) == len(row)
    ]
    if any(map(names_a_field, around)):
        return True
    return (PLACEHOLDER.fullmatch(beside) is not None or _is_strong(beside)) and not any(
        map(_is_strong, around)
    )


def paired(text: str, start: int, end: int, delimiter: str, label: Label) -> Iterator[Span]:
    """A word is enough for a password, if no other field of the list has the same one."""
    row = _cells(text, start, end, delimiter)
    at = next(number for number, cell in enumerate(row) if cell.start <= label.start < cell.end)
    value = text[row[at + 1].start : row[at + 1].end]
    others = [
        text[cells[at + 1].start : cells[at + 1].end]
        for cells in _rows_around(text, start, end, delimiter)
        if len(cells) > at + 1 and names_a_field(text[cells[at].start : cells[at].end])
    ]
    if delimiter in ",;" and (label.grade is not Grade.HARD or label.start != start):
        return  # in prose and code these stand between anything
    plain = (
        label.grade is Grade.HARD
        and delimiter not in ",;"
        and others
        and value not in others
        and len(value) >= 4
        and strength(value, quoted=False) is Strength.PLAIN
        and is_one_word(value)
        and not names_a_secret(value)
    )
    if plain or _is_strong(value):
        yield Span(row[at + 1].start, row[at + 1].end, label.kind)


def find_in_rows(text: str, labels: Iterable[Label]) -> Iterator[Span]:
    """`Password | VPN: … | Mail: …`: the cells after the next one, which the label itself announces."""
    for label in labels:
        row = label.kind == "pin" or label.grade is Grade.HARD
        if (
            row
            and _NEXT.match(text, label.end)
            and _ROW_START.search(text, max(0, label.start - 140), label.start)
        ):
            end = text.find("\n", label.end, label.end + _WIDEST)
            end = min(len(text), label.end + _WIDEST) if end < 0 else end
            delimiter = "|" if text.find("|", label.end, end) >= 0 else "\t"
            for cell in _cells(text, label.end, end, delimiter)[1:_MOST_CELLS]:
                named = _NAMED.match(text, cell.start, cell.end)
                start = named.end() if named else cell.start
                word = text[start : cell.end]
                found = (
                    _DIGITS.fullmatch(word) and named
                    if label.kind == "pin"
                    else _is_strong(word) and is_made_up(word)
                )
                if found and not (named and describes(named[1])):
                    yield Span(start, cell.end, label.kind)


def _is_strong(value: str) -> bool:
    return (
        strength(value, quoted=False) >= Strength.STRONG and is_one_word(value) and not names_a_secret(value)
    )


def _rows_around(text: str, start: int, end: int, delimiter: str) -> Iterator[list[Span]]:
    """The next row above and the next one below, over the rule of a head."""
    for _ in range(2):
        if start == 0:
            break
        above = text.rfind("\n", max(0, start - _WIDEST), start - 1) + 1
        if above == 0 and start > _WIDEST:
            break
        line, start = text[above : start - 1], above
        if not _RULE.issuperset(line):
            yield _cells(text, above, above + len(line), delimiter)
            break
    for _ in range(2):
        start, end = end + 1, text.find("\n", end + 1, end + _WIDEST)
        end = len(text) if end < 0 else end
        if not start < end <= start + _WIDEST:
            break
        if not _RULE.issuperset(text[start:end]):
            yield _cells(text, start, end, delimiter)
            break


def _cells(text: str, start: int, end: int, delimiter: str) -> list[Span]:
    """Those that say something."""
    found: list[Span] = []
    while start <= end:
        following = text.find(delimiter, start, end)
        following = end if following < 0 else following
        inner = text[start:following]
        left = start + len(inner) - len(inner.lstrip(_DECORATION))
        right = start + len(inner.rstrip(_DECORATION))
        if left < right:
            found.append(Span(left, right, ""))
        start = following + 1
    return found
