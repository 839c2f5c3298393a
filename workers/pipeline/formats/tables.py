"""Tables as lines that can be read alone: every cell with the name of its column.

A row in the middle of a long table ends up in a chunk without the table's head; `Country: Peru | Area: 1285216` still says
what it means there. The head itself is kept as a line. Readers hand over cells that span columns once, with empty cells
behind them, and cells that span rows again in every row.
"""

from collections.abc import Sequence

SEPARATED = " | "
_LONGEST_NAME = 120
_DEEPEST_HEAD = 5  # more rows that call themselves the head are a list
_ROWS_ABOVE = 10  # titles and notes above the head


def lines_of(rows: Sequence[Sequence[str]], head: range | None = None) -> list[str]:
    """One line per row; '' for rows that hold nothing, so that lines and rows stay in step.

    `head` is which rows name the columns, where the document says so; else it is told by how the first rows look.
    """
    rows = [[flat(cell) for cell in row] for row in rows]
    said = head and len(head) <= _DEEPEST_HEAD and head.stop < len(rows)
    names = _names_of([rows[number] for number in head]) if head and said else []
    if sum(map(bool, names)) < 2:
        found = head_of(rows)
        head, names = (None, []) if found is None else (range(found, found + 1), rows[found])
    if head is None:
        return [_joined(row) for row in rows]
    return [*map(_joined, rows[: head.stop]), *(_named(names, row) for row in rows[head.stop :])]


def head_of(rows: Sequence[Sequence[str]]) -> int | None:
    """The row that names the columns: the first with more than one cell, if all its cells are words and differ."""
    for number, row in enumerate(rows[:_ROWS_ABOVE]):
        named = [cell for cell in row if cell]
        if len(named) < 2:
            continue
        words = all(len(cell) <= _LONGEST_NAME and any(map(str.isalpha, cell)) for cell in named)
        return number if words and len(set(named)) == len(named) and number + 1 < len(rows) else None
    return None


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
