"""Runs migrations as the owner role, gently: a migration that cannot get its lock in time gives up and changes nothing."""

from alembic import context
from sqlalchemy import Connection, text

from gateway.crashpoints import crash_point
from gateway.schema import Base

# Two instances that start together migrate one after the other. Any constant of ours will do.
MIGRATION_LOCK = 4_711_003


def run() -> None:
    connection: Connection = context.config.attributes["connection"]
    context.configure(connection=connection, target_metadata=Base.metadata)
    with context.begin_transaction():
        connection.execute(text("SET LOCAL lock_timeout = '4s'"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
        context.run_migrations()
        crash_point("migrate.inside")


run()
