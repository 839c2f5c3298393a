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

from gateway.embedded.instance import find_instance
from gateway.errors import StoreUnavailable

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


@dataclass(frozen=True)
class Api:
    """The few calls the commands make."""

    url: str
    client: "SyncCatchmentClient"

    def call(self, method: str, path: str, **options: Any) -> Any:
        try:
            return self.client.request(method, path, **options)
        except httpx.TransportError:
            raise StoreUnavailable(f"Catchment does not answer at {self.url}: is it running?") from None

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


@contextmanager
def connected(url: str | None, api_key: str | None, data_dir: Path | None) -> Generator[Api]:
    """Options win over CATCHMENT_URL and CATCHMENT_API_KEY, these over instance.json."""
    url = url or os.environ.get("CATCHMENT_URL")
    api_key = api_key or os.environ.get("CATCHMENT_API_KEY")
    if url is None or api_key is None:
        instance = find_instance(data_dir)
        url, api_key = url or instance.url, api_key or instance.api_key or ""
    from gateway.client import SyncCatchmentClient  # noqa: PLC0415 - knows every noun's schemas

    with SyncCatchmentClient(url, api_key) as client:
        yield Api(url, client)


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
    width = max(len(name) for name in row)
    for name, value in row.items():
        typer.echo(f"{name:<{width}}  {_cell(value)}")


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
