"""Tables as lines that can be read alone: every cell with the name of its column.

A row in the middle of a long table ends up in a chunk without the table's head; `Country: Peru | Area: 1285216` still says
what it means there. The head itself is kept as a line. Readers hand over cells that span columns once, with empty cells
behind them, and cells that span rows again in every row.
"""

from collections.abc import Sequence

SEPARATED = " | "
_LONGEST_NAME = 120
_ROWS_ABOVE = 10  # titles and notes above the head


def lines_of(rows: Sequence[Sequence[str]]) -> list[str]:
    """One line per row; '' for rows that hold nothing, so that lines and rows stay in step."""
    rows = [[flat(cell) for cell in row] for row in rows]
    head = head_of(rows)
    if head is None:
        return [_joined(row) for row in rows]
    names = rows[head]
    return [*map(_joined, rows[: head + 1]), *(_named(names, row) for row in rows[head + 1 :])]


def head_of(rows: Sequence[Sequence[str]]) -> int | None:
    """The row that names the columns: the first with more than one cell, if all its cells are words and differ."""
    for number, row in enumerate(rows[:_ROWS_ABOVE]):
        named = [cell for cell in row if cell]
        if len(named) < 2:
            continue
        words = all(len(cell) <= _LONGEST_NAME and any(map(str.isalpha, cell)) for cell in named)
        return number if words and len(set(named)) == len(named) and number + 1 < len(rows) else None
    return None


def flat(cell: str) -> str:
    return " ".join(cell.split())


def _joined(row: Sequence[str]) -> str:
    return SEPARATED.join(cell for cell in row if cell)


def _named(names: Sequence[str], row: Sequence[str]) -> str:
    named = [
        f"{names[column]}: {cell}" if column < len(names) and names[column] else cell
        for column, cell in enumerate(row)
        if cell
    ]
    return SEPARATED.join(named)
