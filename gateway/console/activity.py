"""The structured log, as far as it concerns one mandate.

The log is shared by every tenant of the machine: a line is shown only if it names the visitor's mandate, or a connection of it.
"""

import asyncio
import json
import os
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

TAIL_BYTES = 4 * 1024 * 1024  # how far back a page looks
_LOOK_AGAIN_SECONDS = 0.5


@dataclass(frozen=True)
class LogFilter:
    mandate_id: str
    connection_ids: set[str] = field(default_factory=set[str])
    event: str = ""
    connection: str = ""
    document: str = ""

    def shows(self, line: dict[str, Any]) -> bool:
        mandate, connection = line.get("mandateId"), line.get("connectionId")
        ours = mandate == self.mandate_id or (mandate is None and connection in self.connection_ids)
        return (
            ours
            and (not self.event or fnmatchcase(str(line.get("event")), f"{self.event}*"))
            and (not self.connection or connection == self.connection)
            and (not self.document or line.get("documentId") == self.document)
        )


def last_lines(path: Path, wanted: LogFilter, most: int) -> tuple[list[dict[str, Any]], int]:
    """The newest lines that match, newest first, and where the file ended."""
    if not path.exists():
        return [], 0
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - TAIL_BYTES))
        data = file.read(min(end, TAIL_BYTES))
    if end > TAIL_BYTES:
        data = data.partition(b"\n")[2]
    whole = data[: data.rfind(b"\n") + 1]
    kept = deque((line for line in _parsed(whole) if wanted.shows(line)), maxlen=most)
    return list(reversed(kept)), end - (len(data) - len(whole))


def _parsed(data: bytes) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for raw in data.splitlines():
        try:
            line = json.loads(raw)
        except ValueError:
            continue  # half a line of a process that was killed
        if isinstance(line, dict):
            lines.append(line)
    return lines


async def following(path: Path, wanted: LogFilter, position: int) -> AsyncIterator[dict[str, Any]]:
    """New lines as they are written. A log that was put aside begins anew."""
    while True:
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        size = await asyncio.to_thread(_size, path)
        if size < position:
            position = 0
        if size == position:
            continue
        data = await asyncio.to_thread(_read, path, position, size)
        whole = data[: data.rfind(b"\n") + 1]
        position += len(whole)
        for line in _parsed(whole):
            if wanted.shows(line):
                yield line


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _read(path: Path, start: int, end: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(end - start)
