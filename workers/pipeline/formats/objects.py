"""Objects: parts that a source hands over one by one – comments, sections, cells – each with a locator of its own.

Every object stays its own unit, read by the reader of its type; its locator is kept and refined with offsets.
"""

import importlib
import json
from typing import Any, cast

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import Source, TextReader, base_type, format_of
from workers.pipeline.extracted import PART, SEPARATOR, Extracted, SourceLines, Unit
from workers.pipeline.formats import text as plain

_TEXTUAL = frozenset({"text", "markdown", "code"})


def read(source: Source) -> Extracted:
    pieces: list[str] = []
    units: list[Unit] = []
    length = 0
    for item in _items(bytes(source.data)):
        text = plain.clean(str(item.get("text") or ""))
        if not text.strip():
            continue
        if pieces:
            pieces.append(SEPARATOR)
            length += len(SEPARATOR)
        for unit in _units(text, item):
            unit.text_start += length
            unit.text_end += length
            units.append(unit)
        pieces.append(text)
        length += len(text)
    return Extracted("".join(pieces), units)


def _items(data: bytes) -> list[dict[str, Any]]:
    try:
        content: Any = json.loads(data)
    except ValueError as error:
        raise TaskFailed("damaged", "the objects are not JSON") from error
    if isinstance(content, dict):
        content = cast("dict[str, Any]", content).get("objects")
    if not isinstance(content, list):
        raise TaskFailed("damaged", "the objects are not a list")
    return [item for item in cast("list[Any]", content) if isinstance(item, dict)]


def _units(text: str, item: dict[str, Any]) -> list[Unit]:
    given: dict[str, Any] = item.get("locator") or {}
    mime_type = str(item.get("mimeType") or "text/plain")
    source = Source(b"", base_type(mime_type), given.get("path"))
    format_ = format_of(source.mime_type, source.file_name)
    if format_.name not in _TEXTUAL:
        raise TaskFailed("unsupported", f"an object of type {source.mime_type}"[:120])
    reader = cast("TextReader", importlib.import_module(format_.module))
    found = reader.units(text, source)
    found[0].level = PART  # never in one chunk with another object
    for unit in found:
        unit.locator = {**unit.locator, **given}
        if unit.locator["kind"] != "code":
            unit.region = None  # lines mean nothing in a comment or a cell
        elif isinstance(unit.region, SourceLines) and isinstance(given.get("lineStart"), int):
            unit.region.first_line = given["lineStart"]
    return found
