"""`catchment secrets rotate`: the key that seals tokens is changed while everything runs."""

import asyncio
from pathlib import Path

import typer
from pydantic import SecretStr

from gateway.commands.api import DataDir
from gateway.commands.serve import database_url, log_beside_the_answer
from gateway.embedded.instance import chosen_data_dir
from gateway.settings import Settings, get_settings

secrets = typer.Typer(help="What is sealed in the database.", no_args_is_help=True)


@secrets.command(
    "rotate",
    epilog="Example: CATCHMENT_SECRET_KEY=new… CATCHMENT_PREVIOUS_SECRET_KEYS=old… catchment secrets rotate",
)
def rotate(data_dir: DataDir = None) -> None:
    """Seal every token again, with the current key.

    First start every process with the new key, the old one among the previous; then rotate; then leave the old one out.
    Without CATCHMENT_SECRET_KEY the current key is the one in the data folder's secrets/secret_key.
    """
    from gateway.connections.vault import Vault  # noqa: PLC0415 - only where something is opened
    from gateway.connections.vault_service import rotate as run  # noqa: PLC0415
    from gateway.db import Database  # noqa: PLC0415

    settings = _with_kept_key(get_settings(), data_dir)
    vault = Vault.of(settings)
    url = database_url(settings, data_dir)
    log_beside_the_answer(settings)

    async def work() -> int:
        db = Database(url, pool_size=2)
        try:
            return await run(db, vault, lambda done: typer.echo(f"{done} sealed again …", err=True))
        finally:
            await db.dispose()

    typer.echo(f"{asyncio.run(work())} values are sealed with the current key now.")


def _with_kept_key(settings: Settings, data_dir: Path | None) -> Settings:
    """`catchment up` makes a key of its own where none is set, and its processes use that one."""
    kept = chosen_data_dir(data_dir) / "secrets" / "secret_key"
    if settings.secret_key is not None or not kept.exists():
        return settings
    return settings.model_copy(update={"secret_key": SecretStr(kept.read_text(encoding="utf-8"))})
