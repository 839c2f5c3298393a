"""`catchment connections list|sync|revoke`: connected accounts on a terminal."""

import sys
import time
from typing import Annotated, Any
from uuid import UUID

import typer

from gateway.commands.api import Api, ApiKey, AsJson, DataDir, Url, connected, show_one, show_rows
from gateway.commands.erase import wait_for_receipt
from gateway.errors import Conflict

connections = typer.Typer(help="Connected accounts and their syncs.", no_args_is_help=True)

COLUMNS = ("id", "authority", "account", "status", "surfaces", "items", "indexed", "failures", "lastSync")
LOOK_SECONDS = 0.5


@connections.command("list", epilog="Example: catchment connections list --json")
def list_connections(
    url: Url = None, api_key: ApiKey = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """List your connections or, as an admin, all of the mandate."""
    with connected(url, api_key, data_dir) as api:
        found = list(api.pages("/connections"))
    show_rows(found if as_json else [_line(one) for one in found], COLUMNS, as_json=as_json)


def _line(found: dict[str, Any]) -> dict[str, Any]:
    sources = found["sources"]
    synced = [source["lastSyncAt"] for source in sources if source["lastSyncAt"]]
    return {
        **found,
        "account": found["accountEmail"] or found["accountName"],
        "status": f"{found['status']}, paused" if found["paused"] else found["status"],
        "lastSync": max(synced)[:19] if synced else None,
        **{name: sum(source[name] for source in sources) for name in ("items", "indexed", "failures")},
    }


@connections.command("sync", epilog="Example: catchment connections sync 0199… --wait")
def sync(
    connection_id: UUID,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="stay until everything found is searchable")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="list everything anew instead of what changed")
    ] = False,
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Look for changes now."""
    path = f"/connections/{connection_id}"
    with connected(url, api_key, data_dir) as api:
        before = _moments(api.call("GET", f"{path}/progress"))
        queued = api.call("POST", f"{path}/sync", json={"mode": "bootstrap"} if full else {})
        if not wait:
            show_rows(queued["jobs"], ("surface", "jobId"), as_json=as_json)
            return
        ended = _wait(api, path, before, quiet=as_json)
    columns = ("surface", "found", "indexed", "skipped", "failed", "held", "lastSyncAt")
    show_rows(ended["surfaces"], columns, as_json=as_json)


def _moments(progress: dict[str, Any]) -> dict[str, str | None]:
    """Of what can move at all: a surface its user never allowed is not waited for."""
    surfaces = [one for one in progress["surfaces"] if one["waitsFor"] != "consent"]
    return {one["surface"]: one["lastSyncAt"] for one in surfaces}


def _wait(api: Api, path: str, before: dict[str, str | None], *, quiet: bool) -> dict[str, Any]:
    """A bar on a terminal, plain lines elsewhere."""
    from rich.progress import Progress  # noqa: PLC0415 - only where something is drawn

    shown = ""
    with Progress(disable=quiet or not sys.stdout.isatty(), transient=True) as bar:
        task = bar.add_task("syncing", total=None)
        while True:
            now = api.call("GET", f"{path}/progress")
            found, indexed = (sum(one[name] for one in now["surfaces"]) for name in ("found", "indexed"))
            settled = found - sum(one["waiting"] + one["indexing"] for one in now["surfaces"])
            bar.update(task, total=found or None, completed=settled)
            line = f"{found} found, {indexed} indexed"
            if not quiet and not sys.stdout.isatty() and line != shown:
                typer.echo(line)
            shown = line
            moments = _moments(now)
            if now["done"] and all(moments[name] != before.get(name) for name in moments):
                return now
            state = api.call("GET", path)
            if state["status"] != "active" or state["paused"]:
                raise Conflict(f"The connection is {_line(state)['status']}; the sync did not end.")
            time.sleep(LOOK_SECONDS)


@connections.command("revoke", epilog="Example: catchment connections revoke 0199…")
def revoke(
    connection_id: UUID,
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Disconnect: from now on nothing of it is served. Prints the receipt of what was erased."""
    with connected(url, api_key, data_dir) as api:
        answer = api.call("DELETE", f"/connections/{connection_id}")
        answer = wait_for_receipt(api, answer.get("receiptId") or answer["id"])
    if as_json:
        show_one(answer, as_json=True)
        return
    typer.echo(f"{connection_id} is revoked; receipt {answer['id']}.")
    for store, count in sorted(answer["counts"].items()):
        if count:
            typer.echo(f"  {count:>8} {store}")
