"""`catchment logs`: the structured log of every process of an instance, filtered."""

import json
import os
import time
from collections import deque
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from gateway.commands.api import AsJson, DataDir
from gateway.embedded.instance import NoInstance, chosen_data_dir

EXAMPLES = "Example: catchment logs --follow --event 'ingestion.*'"
MOST_LINES = 1_000_000  # they are held in memory
_LOOK_AGAIN_SECONDS = 0.2


def logs(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="go on as new lines come")] = False,
    event: Annotated[str | None, typer.Option(help="only this event; * stands for anything")] = None,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, max=MOST_LINES, help="how many of the last lines")
    ] = 50,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show what the instance logged last."""
    path = chosen_data_dir(data_dir) / "logs" / "catchment.jsonl"
    if not path.exists():
        raise NoInstance(f"There is no log at {path}: start Catchment, or say where it is with --data-dir.")
    last: int | None = lines
    while True:
        with path.open(encoding="utf-8") as file:
            for line in deque(_matching(file, event), maxlen=last):
                _show(line, as_json=as_json)
            while follow and _is_current(path, file):
                time.sleep(_LOOK_AGAIN_SECONDS)
                for line in _matching(file, event):
                    _show(line, as_json=as_json)
        if not follow or not path.exists():
            return
        last = None  # the log was put aside; its successor is followed from the first line on


def _matching(file: TextIO, event: str | None) -> Iterator[dict[str, Any]]:
    """Whole lines only: a line that is still being written is left for the next look."""
    while True:
        place = file.tell()
        text = file.readline()
        if not text.endswith("\n"):
            file.seek(place)
            return
        try:
            line = json.loads(text)
        except ValueError:
            continue  # half a line of a process that was killed
        if event is None or fnmatchcase(str(line.get("event")), event):
            yield line


def _is_current(path: Path, file: TextIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _show(line: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(line, ensure_ascii=False))
        return
    rest = " ".join(f"{key}={value}" for key, value in line.items() if key not in {"time", "level", "event"})
    typer.echo(f"{line.get('time', '')[:19]} {line.get('level', ''):<7} {line.get('event', '')}  {rest}")
