"""`catchment gateway`, `worker` and `migrate`: one process each, for those who run the stores themselves."""

import gc
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.commands.api import DataDir
from gateway.embedded.instance import Instance, NoInstance, chosen_data_dir
from gateway.embedded.preflight import open_port
from gateway.errors import ConfigurationError
from gateway.settings import Settings, get_settings, opened

if TYPE_CHECKING:
    from gateway.embedded.postgres import EmbeddedPostgres

GATEWAY_EXAMPLES = "Example: CATCHMENT_DATABASE_URL=postgresql://… CATCHMENT_REDIS_URL=redis://… catchment gateway --port 8440"
WORKER_EXAMPLES = "Example: CATCHMENT_WORKER_SLOTS=4 catchment worker"
MIGRATE_EXAMPLES = "Example: CATCHMENT_OWNER_DATABASE_URL=postgresql://… catchment migrate"


def gateway(
    host: Annotated[str | None, typer.Option(help="address to listen on; default CATCHMENT_HOST")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="port to listen on; default CATCHMENT_PORT")
    ] = None,
    fd: Annotated[
        int | None,
        typer.Option(min=0, max=1_048_576, help="a socket that listens already, inherited from a supervisor"),
    ] = None,
) -> None:
    """Run the gateway alone: HTTP API and console."""
    gc.disable()  # loading makes a million objects and no garbage; looking for some takes a sixth of the time
    import logging  # noqa: PLC0415

    from gateway.app import create_app  # noqa: PLC0415
    from gateway.embedded.gate import wait_until_open  # noqa: PLC0415
    from gateway.logs import configure_logs, emit  # noqa: PLC0415
    from gateway.server import server_of  # noqa: PLC0415

    settings = get_settings()
    configure_logs(log_format=settings.log_format, level=settings.log_level, data_dir=settings.data_dir)
    app = create_app(settings)
    gc.freeze()
    gc.enable()
    wait_until_open()
    emit("house.starting", component="gateway")
    # Requests and failures are logged by us, with their ids; what remains is the server talking to itself.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    server = server_of(app)
    listener = (
        open_port(host or settings.host, settings.port if port is None else port)
        if fd is None
        else socket.socket(fileno=fd)
    )
    with suppress(SystemExit):  # how it ends when the application refused to start
        server.run(sockets=[listener])
    if not server.started:
        raise getattr(app.state, "refusal", None) or ConfigurationError("The gateway could not start.")


def worker() -> None:
    """Run a worker alone; start as many as you need."""
    get_settings()  # a setting that is not valid is one sentence here
    os.execv(sys.executable, [sys.executable, "-m", "workers"])  # noqa: S606 - our own program


def migrate(
    down_to: Annotated[
        str | None, typer.Option(help="take migrations back to this revision; what they hold is lost")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Bring the database schema up to date."""
    from gateway.migration import migrate as run  # noqa: PLC0415

    settings = get_settings()
    url = owner_database_url(settings, data_dir)
    log_beside_the_answer(settings)
    revision = run(url, down_to, down=True) if down_to else run(url)
    typer.echo(f"The schema is at {revision}.")


def log_beside_the_answer(settings: Settings) -> None:
    """For commands that do what the services do: stdout is for what was asked, the log goes to stderr."""
    from gateway.logs import configure_logs  # noqa: PLC0415 - structlog brings rich along

    configure_logs(
        log_format=settings.log_format,
        level=settings.log_level,
        show=lambda line: typer.echo(line, err=True),
    )


def database_url(settings: Settings, data_dir: Path | None) -> str:
    """The runtime role's, as configured, else that of the embedded database, which must be running."""
    return opened(settings.database_url) or _embedded(data_dir, "CATCHMENT_DATABASE_URL").runtime_url


def owner_database_url(settings: Settings, data_dir: Path | None) -> str:
    return (
        opened(settings.owner_database_url) or _embedded(data_dir, "CATCHMENT_OWNER_DATABASE_URL").owner_url
    )


def _embedded(data_dir: Path | None, otherwise: str) -> "EmbeddedPostgres":
    from gateway.embedded.postgres import EmbeddedPostgres  # noqa: PLC0415

    folder = chosen_data_dir(data_dir)
    try:
        Instance.read(folder)
    except NoInstance as error:
        raise ConfigurationError(f"Set {otherwise}. {error}") from None
    return EmbeddedPostgres(folder)
