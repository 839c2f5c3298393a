"""How commands reach a running instance, and how they show what it answers."""

import json
import os
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import httpx
import typer

from gateway.embedded.instance import NoInstance, find_instance
from gateway.errors import CatchmentError, InvalidRequest, NotAuthenticated, StoreUnavailable
from gateway.settings import is_web_address

if TYPE_CHECKING:
    from gateway.client import SyncCatchmentClient


def given_folder(text: str) -> Path | None:
    """What is set to nothing is not set, as with the environment: `--data-dir "$EMPTY"` must not fill the folder one is in."""
    return Path(text) if text else None


DataDir = Annotated[
    Path | None,
    typer.Option(
        help="data folder of the instance; default CATCHMENT_DATA_DIR or ./.catchment",
        parser=given_folder,
        metavar="PATH",
    ),
]
Url = Annotated[
    str | None, typer.Option(help="address of the instance; default CATCHMENT_URL or instance.json")
]
ApiKey = Annotated[
    str | None,
    typer.Option(help="key to use; default CATCHMENT_API_KEY or instance.json", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON")]


class _Answer(dict[str, Any]):
    """An object of an answer. What is missing in it is said of whoever answered, and is no traceback."""

    def __missing__(self, name: str) -> Any:
        raise _stranger()


@dataclass(frozen=True)
class Api:
    """The few calls the commands make."""

    url: str
    client: "SyncCatchmentClient"

    def call(self, method: str, path: str, **options: Any) -> Any:
        try:
            return _understood(self.client.request(method, path, **options))
        except httpx.TransportError:
            raise StoreUnavailable(f"Catchment does not answer at {self.url}: is it running?") from None
        except (json.JSONDecodeError, UnicodeDecodeError):
            raise _stranger() from None

    def download(self, path: str, target: Path) -> int:
        """Writes an answer to a file only its owner may read; its size."""
        try:
            return self.client.download(path, target)
        except httpx.TransportError:
            raise StoreUnavailable(f"Catchment does not answer at {self.url}: is it running?") from None

    def pages(self, path: str) -> Iterator[dict[str, Any]]:
        params: dict[str, Any] = {"limit": 200}
        while True:
            page = self.call("GET", path, params=params)
            yield from page["items"]
            if page["nextCursor"] is None:
                return
            params["cursor"] = page["nextCursor"]


def _stranger() -> CatchmentError:
    return CatchmentError(
        "What answers at this address is not Catchment, or a version that this one does not know."
    )


def _understood(body: Any) -> _Answer:
    """Every answer of ours is an object, or nothing."""
    if not isinstance(body, dict | None):
        raise _stranger()
    return _marked(body or {})


def _marked(value: Any) -> Any:
    if isinstance(value, dict):
        return _Answer({name: _marked(inner) for name, inner in value.items()})
    return [_marked(inner) for inner in value] if isinstance(value, list) else value


@contextmanager
def connected(url: str | None, api_key: str | None, data_dir: Path | None) -> Generator[Api]:
    """Options win over CATCHMENT_URL and CATCHMENT_API_KEY, these over instance.json."""
    url = url or os.environ.get("CATCHMENT_URL") or None
    api_key = api_key or os.environ.get("CATCHMENT_API_KEY") or None
    if url is not None and not is_web_address(url):
        raise InvalidRequest("The address of the instance must look like https://host or http://host:port.")
    if url is None or api_key is None:
        url, api_key = _by_instance(url, api_key, data_dir)
    from gateway.client import SyncCatchmentClient  # noqa: PLC0415 - knows every noun's schemas

    with SyncCatchmentClient(url, api_key) as client:
        yield Api(url, client)


def _by_instance(url: str | None, api_key: str | None, data_dir: Path | None) -> tuple[str, str]:
    """What was not said stands in instance.json. The key there is for the address there, and is sent nowhere else."""
    foreign = NotAuthenticated(
        f"The key for {url} is not known here: say --api-key or set CATCHMENT_API_KEY."
    )
    try:
        instance = find_instance(data_dir)
    except NoInstance:
        if url is None:
            raise
        raise foreign from None
    if api_key is None and url is not None and url.rstrip("/") != instance.url.rstrip("/"):
        raise foreign
    return url or instance.url, api_key or instance.api_key or ""


def show_rows(rows: Sequence[dict[str, Any]], columns: Sequence[str], *, as_json: bool) -> None:
    """A table for people, JSON for machines."""
    from rich.console import Console  # noqa: PLC0415 - only where something is drawn
    from rich.table import Column, Table  # noqa: PLC0415

    if as_json:
        typer.echo(json.dumps(list(rows), indent=2, ensure_ascii=False))
        return
    # An id that is cut off is no id: it folds on a narrow terminal, and a pipe has room for everything.
    table = Table(
        *(Column(name, overflow="fold") for name in columns), box=None, pad_edge=False, header_style="bold"
    )
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    Console(soft_wrap=True, width=None if sys.stdout.isatty() else 1000).print(table)


def show_one(row: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(row, indent=2, ensure_ascii=False))
        return
    width = max(map(len, row), default=0)
    for name, value in row.items():
        typer.echo(f"{name:<{width}}  {_cell(value)}")


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
