"""Tables as lines that can be read alone: every cell with the name of its column.

A row in the middle of a long table ends up in a chunk without the table's head; `Country: Peru | Area: 1285216` still says
what it means there. The head itself is kept as a line. A list of pairs – `User | anna`, `Server | db1` – has no head: its first row
is the first pair. Readers hand over cells that span columns once, with empty cells behind them, and cells that span rows
again in every row.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from gateway.corpus.field_names import names_a_column, names_a_field

SEPARATED = " | "
_LONGEST_NAME = 120
_DEEPEST_HEAD = 5  # more rows that call themselves the head are a list
_ROWS_ABOVE = 10  # titles and notes above the head
_PAIRS_SEEN = 50  # rows that are enough to tell
# How a value looks: where a column holds three of these, it holds values of different fields.
_LONGEST_LOOK = 60
_LOOKS = (
    re.compile(r"[\d\s.,'’%+()/€$£-]+(?:[^\W\d]{1,3})?"),  # a number, a date, a telephone
    re.compile(r"\S+@\S+|[a-z]+://\S+|[\w\-]+(?:\.[\w\-]+)+"),  # an address
)
_ADDRESS, _WORDS = 1, 2
# What names a column without a word in it: a year, a business year; a month, a day.
_PERIOD = re.compile(
    r"(?P<year>(?:1[89]|2[01])\d\d)(?:/\d\d)?|\d{4}-\d\d(?:-\d\d)?|\d{1,2}[./](?:\d{1,2}[./](?:\d\d)?\d\d|\d{4})"
)
_YEARS_APART = 10


def lines_of(
    rows: Sequence[Sequence[str]], head: range | None = None, *, rows_named: bool = False
) -> list[str]:
    """One line per row; '' for rows that hold nothing, so that lines and rows stay in step.

    `head` is which rows name the columns, where the document says so, `rows_named` that it says each row is named by its
    first cell; else it is told by how the first rows look.
    """
    rows = [[flat(cell) for cell in row] for row in rows]
    said = head and len(head) <= _DEEPEST_HEAD and head.stop < len(rows)
    names = _names_of([rows[number] for number in head]) if head and said else []
    if sum(map(bool, names)) < 2:
        found = None if rows_named else head_of(rows)
        head, names = (None, []) if found is None else (range(found, found + 1), rows[found])
    if head is None:
        return [_joined(row) for row in rows]
    return [*map(_joined, rows[: head.stop]), *(_named(names, row) for row in rows[head.stop :])]


def head_of(rows: Sequence[Sequence[str]]) -> int | None:
    """The row that names the columns: the first with more than one cell, if all its cells are words, or periods, and differ."""
    for number, row in enumerate(rows[:_ROWS_ABOVE]):
        named = [cell for cell in row if cell]
        if len(named) < 2:
            continue
        if number + 1 == len(rows) or len(set(named)) < len(named):
            return None
        periods = _periods(row, rows[number + 1])
        words = (cell for column, cell in enumerate(row) if cell and column not in periods)
        if not all(
            len(cell) <= _LONGEST_NAME and _is_name(cell, beside_periods=bool(periods)) for cell in words
        ):
            return None
        return number if periods or not _are_pairs(rows[number : number + _PAIRS_SEEN]) else None
    return None


def _is_name(cell: str, *, beside_periods: bool) -> bool:
    """Beside years also a mere sign: the change from one to the other in %."""
    return any(map(str.isalpha, cell)) or (beside_periods and not any(map(str.isdigit, cell)))


def _periods(row: Sequence[str], below: Sequence[str]) -> list[int]:
    """Columns named by their year or day: two at least, beside each other, years that are near each other. Not if the row
    below says such too – it would have been born and hired in them – nor where words stand under days.
    """
    found = {column: period for column, cell in enumerate(row) if (period := _PERIOD.fullmatch(cell))}
    columns = list(found)
    years = [int(period["year"]) for period in found.values() if period["year"]]
    values = [below[column] for column in columns if column < len(below)]
    if len(columns) < 2 or columns[-1] - columns[0] >= len(columns) or all(map(_PERIOD.fullmatch, values)):
        return []
    if any(abs(one - other) > _YEARS_APART for one, other in pairwise(years)):
        return []
    told = len(years) == len(columns) or all(not value or _looks(value) == 0 for value in values)
    return columns if told else []


def _are_pairs(rows: Sequence[Sequence[str]]) -> bool:
    """Names of fields beside their values, in one or two columns each: `User | anna`, below it `Password | …`."""
    columns = max(len(_filled(row)) for row in rows)
    first = rows[0][:columns]
    if columns % 2 or columns > 4 or not all(first) or any(map(names_a_column, first[1::2])):
        return False
    names = [cell for row in rows for cell in row[:columns:2] if cell]
    if all(name.endswith(":") for name in names):
        return True
    known = [names_a_field(name) for name in names]
    values = [_looks(cell) for row in rows for cell in row[1:columns:2] if cell]
    # Under a word that is no name there may be numbers of many things, some of them called like fields.
    needed = 1.0 if not any(values[len(first[1::2]) :]) else 0.5
    if any(known[len(first[::2]) :]) and sum(known) >= needed * len(known):
        return True
    return columns == 2 and (values[0] == _ADDRESS or len(set(values)) > _WORDS)


def _filled(row: Sequence[str]) -> Sequence[str]:
    """Without the empty cells at its end."""
    end = len(row)
    while end and not row[end - 1]:
        end -= 1
    return row[:end]


def _looks(cell: str) -> int:
    if len(cell) > _LONGEST_LOOK:
        return _WORDS
    return next((number for number, look in enumerate(_LOOKS) if look.fullmatch(cell)), _WORDS)


def _names_of(head: Sequence[Sequence[str]]) -> list[str]:
    """Each column by all that stands above it: `Score` over `first` and `second` is `Score first`, `Score second`."""
    names: list[list[str]] = [[] for _ in range(max(map(len, head)))]
    for number, row in enumerate(head):
        if row and row[0] and not any(row[1:]) and len(names) > 1:
            continue  # a title over the whole table
        above = ""
        for column, cell in enumerate(row):
            above = cell or ("" if number == len(head) - 1 else above)
            if above and above not in names[column]:
                names[column].append(above)
    return [" ".join(words)[:_LONGEST_NAME] for words in names]


def goes_on(head: Sequence[str], below: Sequence[str]) -> bool:
    """Whether a head with cells over several columns has a second row: words under those, nothing new under the others."""
    for column, name in enumerate(head):
        under = below[column] if column < len(below) else ""
        alone = bool(name) and (column + 1 == len(head) or bool(head[column + 1]))
        if under not in {"", name} if alone else not any(map(str.isalpha, under)):
            return False
    return True


def flat(cell: str) -> str:
    words = " ".join(cell.split())
    return cell if words == cell else words  # of a large table not every cell twice


def _joined(row: Sequence[str]) -> str:
    return SEPARATED.join(cell for cell in row if cell)


def _named(names: Sequence[str], row: Sequence[str]) -> str:
    named = [
        f"{names[column]}: {cell}" if column < len(names) and names[column] else cell
        for column, cell in enumerate(row)
        if cell
    ]
    return SEPARATED.join(named)
