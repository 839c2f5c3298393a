"""`catchment ingest PATH…` and `catchment why ID`: content in, and an answer when it did not come out."""

import sys
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.commands.api import Api, ApiKey, AsJson, DataDir, Url, connected, show_one
from gateway.commands.folders import Item, given, walk
from gateway.errors import CatchmentError, NotAuthenticated, StoreUnavailable

INGEST_EXAMPLES = "Example: catchment ingest ./handbook report.pdf --scope mandate --tag handbook"
WHY_EXAMPLES = "Example: catchment why handbook/intro.md"
REINDEX_EXAMPLES = "Example: catchment reindex"

UPLOADS_AT_ONCE = 4
PAUSES = (0.5, 2.0, 5.0)  # seconds, before a gateway or store that does not answer is asked again
ENDED = {"indexed", "failed", "skipped", "superseded", "cancelled"}


def ingest(
    paths: Annotated[
        list[Path],
        typer.Argument(help="files and folders; folders are walked", parser=given, metavar="PATHS"),
    ],
    scope: Annotated[str, typer.Option(help="personal or mandate")] = "personal",
    tag: Annotated[list[str] | None, typer.Option(help="tag for every file; may be repeated")] = None,
    neutralize: Annotated[bool, typer.Option("--neutralize", help="mask personal data")] = False,
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Upload files and folders and wait until they are searchable; exit code 1 if any failed.

    A file is known by its path below the folder that was named, so a second run only brings what changed. In folders, version
    control, caches and installed packages are left out, and links that lead out of the folder are not followed.
    """
    items = list(walk(paths))
    fields = {"scope": scope, "tags": ",".join(tag or []), "neutralize": str(neutralize).lower()}
    try:
        with connected(url, api_key, data_dir) as api, _progress(len(items), quiet=as_json) as advance:
            _bring(api, items, fields, advance)
    except KeyboardInterrupt:
        typer.echo("Stopped. What was uploaded is indexed all the same; run it again for the rest.", err=True)
        raise
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


def _bring(api: Api, items: list[Item], fields: dict[str, str], advance: Callable[[str, Item], None]) -> None:
    """Uploads all and waits for their ends, of which as many as are known by then are told while others are uploaded."""
    waiting: deque[Item] = deque()
    with ThreadPoolExecutor(UPLOADS_AT_ONCE) as uploads:
        for item in uploads.map(lambda item: _upload(api, item, fields), items):
            advance("uploaded", item)
            if _has_ended(item):
                advance("done", item)
            else:
                waiting.append(item)
                _look(api, waiting, advance, at_most=1)
    while waiting:
        _look(api, waiting, advance, at_most=len(waiting))
        if waiting:
            time.sleep(0.2)


def _upload(api: Api, item: Item, fields: dict[str, str]) -> Item:
    if _has_ended(item):
        return item
    data = {"sourceId": item.source_id, "title": item.source_id, **fields}

    def send() -> Any:
        with item.path.open("rb") as content:
            return api.call("POST", "/files", files={"file": (item.path.name, content)}, data=data)

    try:
        item.source_id.encode()
        handle = _patiently(send)
    except UnicodeEncodeError:
        return item.left_out("failed", "name is not UTF-8")
    except (StoreUnavailable, NotAuthenticated):
        raise  # nor would the next file be taken
    except CatchmentError as error:
        return item.left_out("failed", error.detail)
    except OSError as error:
        return item.left_out("failed", str(error.strerror))
    item.outcome, item.status = handle["outcome"], handle["status"]
    item.reason, item.job_id = handle["reason"] or "", handle["jobId"]
    return item


def _patiently(ask: Callable[[], Any]) -> Any:
    """A gateway that is started again breaks off what it was answering. Asked again it does nothing twice."""
    for pause in PAUSES:
        try:
            return ask()
        except StoreUnavailable:
            time.sleep(pause)
    return ask()


def _has_ended(item: Item) -> bool:
    return item.status in ENDED or (bool(item.status) and item.job_id is None)


def _look(api: Api, waiting: deque[Item], advance: Callable[[str, Item], None], *, at_most: int) -> None:
    """Asks after those that wait the longest; who goes on waiting does so behind the others."""
    for _ in range(min(at_most, len(waiting))):
        item = waiting.popleft()
        status = _patiently(partial(api.call, "GET", f"/ingestions/{item.job_id}"))
        if status["status"] in ENDED:
            item.status, item.reason = status["status"], status["reason"] or ""
            advance("done", item)
        else:
            waiting.append(item)


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
