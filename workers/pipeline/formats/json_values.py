"""JSON by the standard library: a line per value with the names that lead to it; any part knows its JSON Pointer."""

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
    try:
        values = [value for content in _documents(text) for value in _values(content)]
    except RecursionError as error:
        raise TaskFailed("damaged", "nested too deeply") from error
    lines: list[str] = []
    places: list[tuple[str, ...]] = []
    length = 0
    for number, value in enumerate(values):
        length += sum(map(len, value.names)) + len(value.text)
        if length > _MOST_CHARACTERS:
            raise TaskFailed("too_large", "its names are said too often")
        if number and _item(value) != _item(values[number - 1]):
            lines.append("")  # each item of a list is a paragraph
            places.append(value.steps)
        name = ".".join(value.names)
        words = plain.clean(value.text).strip()
        for line in (f"{name}: {words}" if name else words).split("\n"):
            lines.append(line)
            places.append(value.steps)
    draft = Draft({"kind": "text"})
    draft.block("\n".join(lines), region=Places.of_lines(lines, places, common_pointer))
    return draft.finish()


def common_pointer(first: tuple[str, ...], last: tuple[str, ...]) -> dict[str, Any]:
    """The pointer to the smallest value that holds both."""
    shared = 0
    while shared < min(len(first), len(last)) and first[shared] == last[shared]:
        shared += 1
    steps = first[:shared]
    return {"pointer": "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in steps)}


def _documents(text: str) -> Iterator[Any]:
    """One document, or one per line."""
    try:
        yield json.loads(text)
    except ValueError as error:
        lines = [line for line in text.split("\n") if line.strip()]
        try:
            yield [json.loads(line) for line in lines]
        except ValueError:
            raise TaskFailed("damaged", "not JSON") from error


def _values(content: Any) -> Iterator[_Value]:
    stack: list[tuple[Any, tuple[str, ...], tuple[str, ...]]] = [(content, (), ())]
    while stack:
        value, steps, names = stack.pop()
        if len(steps) > _DEEPEST:
            raise TaskFailed("damaged", "nested too deeply")
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value).items()
            stack += reversed([(child, (*steps, key), (*names, key)) for key, child in members])
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            stack += reversed([(child, (*steps, str(n)), names) for n, child in enumerate(items)])
        elif value is not None and value != "":
            text = value if isinstance(value, str) else json.dumps(value)
            yield _Value(steps, names, text)


def _item(value: _Value) -> tuple[str, ...]:
    """The innermost list item a value lies in."""
    for end in range(len(value.steps), 0, -1):
        if value.steps[end - 1].isdigit():
            return value.steps[:end]
    return ()
