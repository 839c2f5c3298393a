"""Brings the database schema up to date, or says in one sentence why it cannot."""

import time
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

import migrations
from gateway.db import sqlalchemy_url
from gateway.errors import ConfigurationError
from gateway.logs import emit

ROLES: tuple[str, ...] = ("catchment_runtime", "catchment_sweeper", "catchment_readonly")

ROLE_SQL = """
CREATE ROLE catchment_runtime LOGIN PASSWORD '…';
CREATE ROLE catchment_sweeper NOLOGIN;
CREATE ROLE catchment_readonly LOGIN PASSWORD '…';
GRANT catchment_sweeper TO catchment_runtime WITH INHERIT FALSE, SET TRUE;
CREATE EXTENSION IF NOT EXISTS vector;
""".strip()


def alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def head_revision() -> str:
    head = ScriptDirectory.from_config(alembic_config()).get_current_head()
    assert head is not None, "there is at least one migration"  # noqa: S101
    return head


def migrate(owner_url: str, target: str = "head", *, down: bool = False) -> str:
    """Runs what is missing (or, with `down`, takes back what is above `target`) and returns the revision reached."""
    began = time.monotonic()
    engine = create_engine(sqlalchemy_url(owner_url), poolclass=NullPool, connect_args={"connect_timeout": 5})
    config = alembic_config()
    try:
        with engine.connect() as connection:
            current = MigrationContext.configure(connection).get_current_revision()
            _refuse_newer(current)
            _refuse_missing_roles(
                set(ROLES) - set(connection.scalars(text("SELECT rolname FROM pg_roles")).all()),
                bool(connection.scalar(text("SELECT count(*) FROM pg_extension WHERE extname = 'vector'"))),
            )
            connection.rollback()
            config.attributes["connection"] = connection
            (command.downgrade if down else command.upgrade)(config, target)
            connection.commit()
            reached = MigrationContext.configure(connection).get_current_revision() or "base"
    except (DBAPIError, CommandError) as error:
        raise ConfigurationError(f"The database could not be migrated: {_first_line(error)}") from error
    finally:
        engine.dispose()
    if reached != current:
        emit("house.migrated", revision=reached, durationMs=round((time.monotonic() - began) * 1000))
    return reached


def _refuse_newer(current: str | None) -> None:
    known = {script.revision for script in ScriptDirectory.from_config(alembic_config()).walk_revisions()}
    if current is not None and current not in known:
        raise ConfigurationError(
            f"The database has schema {current}, which is newer than this Catchment ({head_revision()}): "
            "start the newer version, or point it at another data folder."
        )


def _refuse_missing_roles(missing: set[str], has_vector: bool) -> None:
    if missing or not has_vector:
        absent = ", ".join(sorted(missing) + ([] if has_vector else ["extension vector"]))
        raise ConfigurationError(
            f"The database lacks {absent}. Have an administrator run once, in this database:\n{ROLE_SQL}"
        )


def _first_line(error: DBAPIError | CommandError) -> str:
    """What the database itself says; around it SQLAlchemy would quote the statement."""
    said = error.orig if isinstance(error, DBAPIError) and error.orig else error
    return str(said).strip().splitlines()[0]
