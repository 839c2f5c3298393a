"""What has to exist in a Postgres before our migrations can run: roles, a database, the vector extension.

Everything here is done as the superuser and can be repeated; it is all the superuser is ever used for.
"""

from collections.abc import Mapping

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

OWNER = "catchment_owner"
RUNTIME = "catchment_runtime"
SWEEPER = "catchment_sweeper"
READONLY = "catchment_readonly"
LOGIN_ROLES = (OWNER, RUNTIME, READONLY)

_HARMLESS = "NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB NOREPLICATION"


def ensure_roles(superuser_url: str, passwords: Mapping[str, str]) -> None:
    """The four roles, with these passwords for those that log in."""
    with _connect(superuser_url, "postgres") as connection, connection.transaction():
        found = {name for (name,) in connection.execute("SELECT rolname FROM pg_roles").fetchall()}
        for role in (*LOGIN_ROLES, SWEEPER):
            if role not in found:
                connection.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(role)))
        for role in LOGIN_ROLES:
            # Only the verifier travels, so that no log can ever show a password.
            verifier = connection.pgconn.encrypt_password(
                passwords[role].encode(), role.encode(), b"scram-sha-256"
            ).decode()
            connection.execute(
                sql.SQL("ALTER ROLE {} LOGIN {} PASSWORD {}").format(
                    sql.Identifier(role), sql.SQL(_HARMLESS), sql.Literal(verifier)
                )
            )
        connection.execute(
            sql.SQL("ALTER ROLE {} NOLOGIN {}").format(sql.Identifier(SWEEPER), sql.SQL(_HARMLESS))
        )
        # The runtime role becomes the sweeper by SET ROLE, for that statement only; it never inherits its sight.
        connection.execute(
            sql.SQL("GRANT {} TO {} WITH INHERIT FALSE, SET TRUE").format(
                sql.Identifier(SWEEPER), sql.Identifier(RUNTIME)
            )
        )


def bootstrap_database(superuser_url: str, database: str) -> None:
    """An empty database of the owner with the vector extension, or the existing one made so."""
    with _connect(superuser_url, "postgres") as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone():
            connection.execute(
                sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(database), sql.Identifier(OWNER))
            )
        _grant(connection, database)
    with _connect(superuser_url, database) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute("ALTER EXTENSION vector UPDATE")  # a newer wheel may bring a newer one


def clone_database(superuser_url: str, template: str, name: str) -> None:
    """A copy of a database nobody is connected to, in a few hundredths of a second."""
    with _connect(superuser_url, "postgres") as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(OWNER), sql.Identifier(template)
            )
        )
        _grant(connection, name)  # a template's grants are not copied


def drop_database(superuser_url: str, name: str) -> None:
    with _connect(superuser_url, "postgres") as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _grant(connection: psycopg.Connection[tuple[object, ...]], database: str) -> None:
    names = {"database": database, "runtime": RUNTIME, "readonly": READONLY}
    identifiers = {key: sql.Identifier(name) for key, name in names.items()}
    for statement in (
        "REVOKE ALL ON DATABASE {database} FROM PUBLIC",
        # TEMPORARY because rows are copied into a temporary table on their way past row-level security.
        "GRANT CONNECT, TEMPORARY ON DATABASE {database} TO {runtime}",
        "GRANT CONNECT ON DATABASE {database} TO {readonly}",
    ):
        connection.execute(sql.SQL(statement).format(**identifiers))


def _connect(url: str, database: str) -> psycopg.Connection[tuple[object, ...]]:
    # All of this is repeated at the next start if a crash undoes it, so no start has to wait for the disk.
    conninfo = make_conninfo(url, dbname=database, options="-c synchronous_commit=off")
    return psycopg.connect(conninfo, autocommit=True)
