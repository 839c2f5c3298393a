"""`catchment ingest PATH…` and `catchment why ID`: content in, and an answer when it did not come out."""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.commands.api import Api, ApiKey, AsJson, DataDir, Url, connected, show_one
from gateway.errors import CatchmentError, InvalidRequest

INGEST_EXAMPLES = "Example: catchment ingest ./handbook report.pdf --scope mandate --tag handbook"
WHY_EXAMPLES = "Example: catchment why handbook/intro.md"
REINDEX_EXAMPLES = "Example: catchment reindex"

# What a folder holds besides knowledge.
SKIPPED_FOLDERS = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".catchment"}
UPLOADS_AT_ONCE = 4
ENDED = {"indexed", "failed", "skipped", "superseded", "cancelled"}


@dataclass
class Item:
    path: Path
    source_id: str
    outcome: str = ""
    status: str = ""
    reason: str = ""
    job_id: str | None = None

    @property
    def ending(self) -> str:
        return "duplicate" if self.outcome == "duplicate" else self.status

    @property
    def shown(self) -> str:
        """A name in another encoding than a terminal's has a question mark where it cannot be read."""
        return str(self.path).encode(errors="replace").decode()

    @property
    def is_noteworthy(self) -> bool:
        """To be named even where a bar shows the rest."""
        return self.status in {"failed", "skipped"}


def ingest(
    paths: Annotated[list[Path], typer.Argument(help="files and folders; folders are walked")],
    scope: Annotated[str, typer.Option(help="personal or mandate")] = "personal",
    tag: Annotated[list[str] | None, typer.Option(help="tag for every file; may be repeated")] = None,
    neutralize: Annotated[bool, typer.Option("--neutralize", help="mask personal data")] = False,
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Upload files and folders and wait until they are searchable; exit code 1 if any failed.

    A file is known by its path below the folder that was named, so a second run only brings what changed.
    """
    items = list(walk(paths))
    fields = {"scope": scope, "tags": ",".join(tag or []), "neutralize": str(neutralize).lower()}
    with connected(url, api_key, data_dir) as api, _progress(len(items), quiet=as_json) as advance:
        with ThreadPoolExecutor(UPLOADS_AT_ONCE) as uploads:
            for item in uploads.map(lambda item: _upload(api, item, fields), items):
                advance("uploaded", item)
        _wait(api, items, advance)
    _report(items, as_json=as_json)
    if any(item.status == "failed" for item in items):
        raise typer.Exit(1)


def why(
    external_id: Annotated[str, typer.Argument(help="the source's own id: a path, a message id, a URL")],
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Say why something is, or is not, in the corpus."""
    with connected(url, api_key, data_dir) as api:
        found = api.call("GET", "/why", params={"externalId": external_id})
    if as_json:
        show_one(found, as_json=True)
        return
    typer.echo(found["answer"])
    for moment in found["timeline"]:
        typer.echo(f"  {moment['at'][:19]}  {moment['status']:<10} {moment['reason'] or ''}")


def reindex(
    url: Url = None, api_key: ApiKey = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Read anew what was indexed for another embedding model, by an earlier version or under another policy.

    Queues it behind everything else and returns; until its turn comes each document is found as it was. Needs an admin's key.
    """
    queued, more = 0, True
    with connected(url, api_key, data_dir) as api:
        while more:
            answer = api.call("POST", "/documents/reindex")
            queued, more = queued + answer["queued"], answer["more"]
    if as_json:
        show_one({"queued": queued}, as_json=True)
    elif queued:
        typer.echo(f"{queued} {'document is' if queued == 1 else 'documents are'} queued to be read anew.")
    else:
        typer.echo("Everything is indexed as it would be indexed now.")


def walk(paths: list[Path]) -> Iterator[Item]:
    for path in paths:
        if path.is_file():
            yield Item(path, path.name)
        elif path.is_dir():
            root = path.absolute() if path.name != ".." else path.resolve()
            above = root.parent if path.name else root
            for folder, folders, files in os.walk(path):
                folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
                for name in sorted(files):
                    found = Path(folder) / name
                    if found.is_file():
                        yield Item(found, str((root / found.relative_to(path)).relative_to(above)))
        else:
            raise InvalidRequest(f"There is no file or folder {path}.")


def _upload(api: Api, item: Item, fields: dict[str, str]) -> Item:
    try:
        item.source_id.encode()
        with item.path.open("rb") as content:
            handle = api.call(
                "POST",
                "/files",
                files={"file": (item.path.name, content)},
                data={"sourceId": item.source_id, "title": item.source_id, **fields},
            )
    except UnicodeEncodeError:
        return _refused(item, "name is not UTF-8")
    except CatchmentError as error:
        return _refused(item, error.detail)
    except OSError as error:
        return _refused(item, str(error.strerror))
    item.outcome, item.status = handle["outcome"], handle["status"]
    item.reason, item.job_id = handle["reason"] or "", handle["jobId"]
    return item


def _refused(item: Item, reason: str) -> Item:
    item.outcome, item.status, item.reason = "refused", "failed", reason
    return item


def _wait(api: Api, items: list[Item], advance: Callable[[str, Item], None]) -> None:
    waiting = [item for item in items if item.job_id and item.status not in ENDED]
    for item in items:
        if item not in waiting:
            advance("done", item)
    while waiting:
        for item in list(waiting):
            status = api.call("GET", f"/ingestions/{item.job_id}")
            if status["status"] in ENDED:
                item.status, item.reason = status["status"], status["reason"] or ""
                waiting.remove(item)
                advance("done", item)
        if waiting:
            time.sleep(0.2)


class _progress:  # noqa: N801 - used as a with-statement word
    """A bar on a terminal, a plain line per finished file elsewhere; with --json neither."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        self._total, self._quiet = total, quiet
        self._progress: Any = None
        self._bars: dict[str, Any] = {}

    def __enter__(self) -> Callable[[str, Item], None]:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console  # noqa: PLC0415 - only where something is drawn
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn  # noqa: PLC0415

            self._progress = Progress(
                "{task.description:<9}",
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._progress.start()
            for name in ("uploaded", "done"):
                self._bars[name] = self._progress.add_task(name, total=self._total)
        return self._advance

    def _advance(self, name: str, item: Item) -> None:
        if self._progress is not None:
            self._progress.advance(self._bars[name])
        if name == "done" and not self._quiet and (self._progress is None or item.is_noteworthy):
            line = f"{item.ending}: {item.shown}  {item.reason}".rstrip()
            typer.echo(line, err=item.status == "failed")

    def __exit__(self, *_exception: object) -> None:
        if self._progress is not None:
            self._progress.stop()


def _report(items: list[Item], *, as_json: bool) -> None:
    counts = Counter(item.ending for item in items)
    if as_json:
        listed = [
            {"path": i.shown, "outcome": i.outcome, "status": i.status, "reason": i.reason} for i in items
        ]
        show_one({"counts": dict(counts), "files": listed}, as_json=True)
        return
    summary = ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "nothing found"
    typer.echo(summary)
