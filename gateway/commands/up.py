"""`catchment up`: everything in one process tree, ready to be used by one person on one machine."""

import asyncio
import os
import sys
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from gateway.commands.api import given_folder
from gateway.embedded.instance import Instance, chosen_data_dir
from gateway.embedded.lock import data_dir_lock
from gateway.embedded.preflight import StartupRefused, check_disk, check_folder
from gateway.embedded.private_files import private_folder, write_private
from gateway.settings import Settings, opened

if TYPE_CHECKING:
    from gateway.embedded.sandboxes import Sandboxes

EXAMPLES = "Example: catchment up --demo --port 8440 --data-dir ./data"
_HELD_LINES = 1000


class Terminal:
    """One line with the way in, then the logs: what is said before that line waits for it."""

    def __init__(self) -> None:
        self._held: deque[str] | None = deque(maxlen=_HELD_LINES)
        self._lock = threading.Lock()

    def starting(self, folder: Path, screen: TextIO) -> None:
        """Until the way in is known nothing else is said, and a first start takes seconds: only where somebody watches."""
        if screen.isatty():
            print(f"Starting Catchment on {folder} …", file=screen, flush=True)

    def line(self, line: str) -> None:
        with self._lock:
            if self._held is None:
                print(line, flush=True)  # noqa: T201 - this is the terminal
            else:
                self._held.append(line)

    def child_line(self, name: str, line: str) -> None:
        """Our own services speak in structured lines; what a store prints says whose it is."""
        self.line(line if name in {"gateway", "worker"} else f"{name}: {line}")

    def ready(self, instance: Instance) -> None:
        with self._lock:
            held, self._held = self._held or (), None
            for line in (f"Catchment is ready: {instance.login_url}", *held):
                print(line, flush=True)  # noqa: T201


def up(
    demo: Annotated[
        bool, typer.Option("--demo", help="with a mandate, users, documents and vendors to play with")
    ] = False,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="port of the console and API; 0 for any free one")
    ] = None,
    host: Annotated[str | None, typer.Option(help="address to listen on; default this machine only")] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="where everything is kept; default ./.catchment", parser=given_folder, metavar="PATH"
        ),
    ] = None,
) -> None:
    """Start everything, print a login link, then the logs, until Ctrl-C."""
    from gateway.embedded.up import Plan, run_instance  # noqa: PLC0415
    from gateway.logs import configure_logs, emit  # noqa: PLC0415

    settings = Settings()
    folder = chosen_data_dir(data_dir)
    check_folder(folder)
    check_disk(folder)
    private_folder(folder / "logs")
    terminal = Terminal()
    terminal.starting(folder, sys.stderr)
    log_format = os.environ.get("CATCHMENT_LOG_FORMAT") or ("console" if sys.stdout.isatty() else "json")
    configure_logs(log_format=log_format, level=settings.log_level, data_dir=folder, show=terminal.line)
    sandboxes = _sandboxes(folder, settings) if demo else None
    plan = Plan(
        data_dir=folder,
        host=host or settings.host,
        port=settings.port if port is None else port,
        database_url=opened(settings.database_url),
        owner_database_url=opened(settings.owner_database_url),
        redis_url=opened(settings.redis_url),
        secret_key=opened(settings.secret_key),
        environment={"CATCHMENT_LOG_FORMAT": log_format, **(sandboxes.environment if sandboxes else {})},
        services=[sandboxes.service()] if sandboxes else [],
    )

    def prepare(owner_url: str, runtime_url: str, own_url: str) -> Mapping[str, object]:
        from gateway.migration import migrate  # noqa: PLC0415

        if plan.redis_url:
            _check_redis(plan.redis_url)
        migrate(owner_url)
        seeded = asyncio.run(_seed(runtime_url, folder, settings.public_url or own_url, demo=demo))
        return {**seeded, "sandbox": sandboxes.described if sandboxes else {}}

    asyncio.run(
        run_instance(plan, prepare=prepare, on_ready=terminal.ready, show=terminal.child_line, emit=emit)
    )


def _check_redis(url: str) -> None:
    """Somebody else's; ours is waited for when it is started."""
    from redis import Redis, RedisError  # noqa: PLC0415

    try:
        Redis.from_url(url, socket_connect_timeout=5, socket_timeout=5).ping()
    except (RedisError, ValueError) as error:
        raise StartupRefused(
            f"Redis does not answer ({type(error).__name__}): start it, or correct CATCHMENT_REDIS_URL."
        ) from None


async def _seed(runtime_url: str, data_dir: Path, base_url: str, *, demo: bool) -> Mapping[str, object]:
    """The local owner, the key that is kept from start to start, and a login link for this one."""
    from gateway.commands.demo import seed_demo  # noqa: PLC0415
    from gateway.db import Database  # noqa: PLC0415
    from gateway.tenancy import service  # noqa: PLC0415

    slug = "demo" if demo else "local"
    kept = private_folder(data_dir / "secrets") / f"api_key_{slug}"
    known = kept.read_text(encoding="utf-8") if kept.exists() else None
    db = Database(runtime_url, pool_size=1)
    try:
        await db.check_role()
        owner = await service.seed_local_owner(db, known, slug=slug)
        if demo:
            await seed_demo(db, owner.mandate_id, owner.user_id, data_dir)
        async with db.tenant_session(owner.mandate_id) as session:
            login_url, _ = await service.create_login_link(session, owner.user_id, base_url)
    finally:
        await db.dispose()
    if owner.key != known:
        write_private(kept, owner.key)
    return {"login_url": login_url, "api_key": owner.key}


def _sandboxes(data_dir: Path, settings: Settings) -> "Sandboxes | None":
    """For every vendor at which no application of the operator's own is set."""
    from connectors.sandbox.address import VENDORS  # noqa: PLC0415
    from gateway.embedded.sandboxes import Sandboxes  # noqa: PLC0415

    configured = [name for name in VENDORS if getattr(settings, f"{name}_client_id")]
    with data_dir_lock(data_dir):  # those of a running instance are not ours to replace
        sandboxes = Sandboxes.kept(data_dir, configured)
    return sandboxes if sandboxes.addresses else None
