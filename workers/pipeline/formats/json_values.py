"""JSON by the standard library: a line per value with the names that lead to it; any part knows its JSON Pointer.

A file of one document per line loses nothing to a line that is none, and what is no JSON at all, a settings file with
comments say, is kept as the text it is.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import Source
from workers.pipeline.extracted import Extracted
from workers.pipeline.formats import text as plain
from workers.pipeline.formats.draft import Draft, Places

_DEEPEST = 200
_MOST_CHARACTERS = 50_000_000  # a long name is said again with every value under it


class _Value(NamedTuple):
    steps: tuple[str, ...]  # of the pointer
    names: tuple[str, ...]  # without the numbers of lists
    text: str


def read(source: Source) -> Extracted:
    text = plain.decode(source)
    warnings: list[str] = []
    try:
        content = _document(text, warnings)
    except json.JSONDecodeError as error:
        warning = f"kept as plain text: it is not JSON in line {error.lineno}"
        return Extracted(text, plain.units(text, source), warnings=[warning])
    draft = _written(content)
    draft.warnings += warnings
    return draft.finish()


def parsed(text: str) -> Any:
    """Numbers as they are written: as Python counts them 19.90 lost its nought and a long one its last digits."""
    try:
        return json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    except RecursionError as error:
        raise TaskFailed("damaged", "nested too deeply") from error


def _written(content: Any) -> Draft:
    lines: list[str] = []
    places: list[tuple[str, ...]] = []
    length = 0
    item: tuple[str, ...] | None = None
    for value in _values(content):
        length += sum(map(len, value.names)) + len(value.text)
        if length > _MOST_CHARACTERS:
            raise TaskFailed("too_large", "its names are said too often")
        if item is not None and _item(value) != item:
            lines.append("")  # each item of a list is a paragraph
            places.append(value.steps)
        item = _item(value)
        name = ".".join(value.names)
        words = plain.clean(value.text).strip()
        for line in (f"{name}: {words}" if name else words).split("\n"):
            lines.append(line)
            places.append(value.steps)
    draft = Draft({"kind": "text"})
    draft.block("\n".join(lines), region=Places.of_lines(lines, places, common_pointer))
    return draft


def common_pointer(first: tuple[str, ...], last: tuple[str, ...]) -> dict[str, Any]:
    """The pointer to the smallest value that holds both."""
    shared = 0
    while shared < min(len(first), len(last)) and first[shared] == last[shared]:
        shared += 1
    steps = first[:shared]
    return {"pointer": "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in steps)}


def _document(text: str, warnings: list[str]) -> Any:
    """The one in it, or a list of one per line."""
    try:
        return parsed(text)
    except json.JSONDecodeError:
        records = _records(text, warnings)
        if records is None:
            raise
        return records


def _records(text: str, warnings: list[str]) -> list[Any] | None:
    """One per line, a line that is none as its words; None if most lines are none."""
    records: list[Any] = []
    broken: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                records.append(parsed(line))
            except json.JSONDecodeError:
                records.append(line)
                broken.append(number)
    if not broken:
        return records
    # A line of one document over many may be a word or a number, but hardly a whole object.
    if 2 * sum(isinstance(record, dict | list) for record in records) <= len(records):
        return None
    warnings.append(
        f"{len(broken)} lines are not JSON and were kept as they are, the first is line {broken[0]}"
    )
    return records


def _values(content: Any) -> Iterator[_Value]:
    """Values in their order. What waits is held as iterators: a list of a million numbers waits as one."""
    stack: list[Iterator[tuple[Any, tuple[str, ...], tuple[str, ...]]]] = [iter([(content, (), ())])]
    while stack:
        if (found := next(stack[-1], None)) is None:
            stack.pop()
            continue
        value, steps, names = found
        if len(steps) > _DEEPEST:
            raise TaskFailed("damaged", "nested too deeply")
        if isinstance(value, dict):
            stack.append(_members(cast("dict[str, Any]", value), steps, names))
        elif isinstance(value, list):
            stack.append(_items(cast("list[Any]", value), steps, names))
        elif value is not None and value != "":
            yield _Value(steps, names, value if isinstance(value, str) else json.dumps(value))


def _members(
    value: dict[str, Any], steps: tuple[str, ...], names: tuple[str, ...]
) -> Iterator[tuple[Any, tuple[str, ...], tuple[str, ...]]]:
    for key, child in value.items():
        yield child, (*steps, key), (*names, key)


def _items(
    value: list[Any], steps: tuple[str, ...], names: tuple[str, ...]
) -> Iterator[tuple[Any, tuple[str, ...], tuple[str, ...]]]:
    for number, child in enumerate(value):
        yield child, (*steps, str(number)), names


def _item(value: _Value) -> tuple[str, ...]:
    """The innermost list item a value lies in."""
    for end in range(len(value.steps), 0, -1):
        if value.steps[end - 1].isdigit():
            return value.steps[:end]
    return ()
