"""`catchment secrets rotate`: the key that seals tokens is changed while everything runs."""

import asyncio
from pathlib import Path

import typer

from gateway.commands.api import DataDir
from gateway.embedded.instance import Instance, NoInstance, chosen_data_dir
from gateway.errors import ConfigurationError
from gateway.settings import Settings, get_settings

secrets = typer.Typer(help="What is sealed in the database.", no_args_is_help=True)


@secrets.command(
    "rotate",
    epilog="Example: CATCHMENT_SECRET_KEY=new… CATCHMENT_PREVIOUS_SECRET_KEYS=old… catchment secrets rotate",
)
def rotate(data_dir: DataDir = None) -> None:
    """Seal every token again, with the current key.

    First start every process with the new key, the old one among the previous; then rotate; then leave the old one out.
    """
    from gateway.connections.vault import Vault  # noqa: PLC0415 - only where something is opened
    from gateway.connections.vault_service import rotate as run  # noqa: PLC0415
    from gateway.db import Database  # noqa: PLC0415

    settings = get_settings()
    vault = Vault.of(settings)
    url = _runtime_url(settings, data_dir)

    async def work() -> int:
        db = Database(url, pool_size=2)
        try:
            return await run(db, vault, lambda done: typer.echo(f"{done} sealed again …", err=True))
        finally:
            await db.dispose()

    typer.echo(f"{asyncio.run(work())} values are sealed with the current key now.")


def _runtime_url(settings: Settings, data_dir: Path | None) -> str:
    """As configured, else that of the embedded database, which must be running."""
    from gateway.embedded.postgres import EmbeddedPostgres  # noqa: PLC0415

    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    folder = chosen_data_dir(data_dir)
    try:
        Instance.read(folder)
    except NoInstance as error:
        raise ConfigurationError(f"Set CATCHMENT_DATABASE_URL. {error}") from None
    return EmbeddedPostgres(folder).runtime_url
