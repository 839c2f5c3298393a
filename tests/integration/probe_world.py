"""Rows in every tenant table, made from the catalogue alone: a table that is added tomorrow is filled without being told.

Texts are canaries, ids are real, references hold. What the catalogue cannot say stands in `VALUES`.
"""

import os
from datetime import datetime, timezone
from typing import Any
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import raw_connection, tenant_of
from gateway.schema import TENANT_FREE_TABLES

ROWS = 2

# What only the code knows: values a CHECK without a list allows, states that let statements find the row.
VALUES: dict[str, Any] = {
    "job.kind": "ingest",
    "job.revision": 1,
    "job.lease_until": None,
    "text_vector.embedding": "[1, 0]",
    "text_vector.model": "canary-model-of-b",
    "chunk.model": "canary-model-of-b",
    "vector_claim.model": "canary-model-of-b",
    "membership.role": "owner",
    "session_route.kind": "session",
}

COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, NULL), a.attnotnull,
       (SELECT pg_get_constraintdef(k.oid) FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'c'
        AND k.conkey = ARRAY[a.attnum] AND pg_get_constraintdef(k.oid) LIKE '%%ANY (ARRAY[%%' LIMIT 1)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND a.attgenerated = ''
ORDER BY c.relname, a.attnum
"""
REFERENCES = """
SELECT c.relname, a.attname, f.relname, b.attname
FROM pg_constraint k
JOIN pg_class c ON c.oid = k.conrelid
JOIN pg_class f ON f.oid = k.confrelid
CROSS JOIN LATERAL unnest(k.conkey, k.confkey) AS pair(own, theirs)
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = pair.own
JOIN pg_attribute b ON b.attrelid = f.oid AND b.attnum = pair.theirs
WHERE k.contype = 'f' AND k.connamespace = 'public'::regnamespace AND a.attname <> 'mandate_id'
"""


async def tenant_tables(session: AsyncSession) -> list[str]:
    connection = await raw_connection(session)
    rows = await (await connection.execute(COLUMNS)).fetchall()
    return sorted({row[0] for row in rows} - set(TENANT_FREE_TABLES))


async def fill_every_table(session: AsyncSession) -> None:
    """Adds rows to every tenant table of the session's mandate, those others refer to first."""
    connection = await raw_connection(session)
    columns = await (await connection.execute(COLUMNS)).fetchall()
    references = {
        (table, column): (target, theirs)
        for table, column, target, theirs in await (await connection.execute(REFERENCES)).fetchall()
    }
    made: dict[str, list[dict[str, Any]]] = {"mandate": [{"mandate_id": tenant_of(session)}]}
    waiting = [table for table in await tenant_tables(session) if table != "mandate"]
    while waiting:
        ready = [
            table
            for table in waiting
            if {target for (own, _), (target, _) in references.items() if own == table} <= {*made, table}
        ]
        assert ready, f"tables that refer to each other in a circle: {waiting}"
        for table in ready:
            own = [row[1:] for row in columns if row[0] == table]
            made[table] = [_row(tenant_of(session), table, own, references, made, n) for n in range(ROWS)]
            names = ", ".join(f'"{name}"' for name in made[table][0])
            places = ", ".join(["%s"] * len(made[table][0]))
            for row in made[table]:
                await connection.execute(
                    f'INSERT INTO "{table}" ({names}) VALUES ({places})'.encode(), list(row.values())
                )
            waiting.remove(table)
    for key in made["api_key"]:
        await session.execute(
            text("INSERT INTO key_route VALUES (:hash, :mandate, :key)"),
            {"hash": os.urandom(32), "mandate": tenant_of(session), "key": key["id"]},
        )
    for watch, connection in zip(made["watch"], made["connection"], strict=True):
        await session.execute(
            text("INSERT INTO webhook_route VALUES ('msft', :vendor, :mandate, :watch)"),
            {"vendor": watch["vendor_id"], "mandate": tenant_of(session), "watch": watch["id"]},
        )
        await session.execute(
            text(
                "INSERT INTO oauth_state VALUES (:state, 'msft', :mandate, :connection, :user, :browser, :flow, "
                "now() + interval '5 minutes')"
            ),
            {
                "mandate": tenant_of(session),
                "connection": connection["id"],
                "user": connection["user_id"],
                **{name: os.urandom(32) for name in ("state", "browser", "flow")},
            },
        )
    for kind, subject in {"session": made["session"][0]["id"], "login": made["user"][0]["id"]}.items():
        await session.execute(
            text(
                "INSERT INTO session_route VALUES (:hash, :kind, :mandate, :subject, now() + interval '1 hour')"
            ),
            {"hash": os.urandom(32), "kind": kind, "mandate": tenant_of(session), "subject": subject},
        )


def _row(
    mandate_id: UUID,
    table: str,
    columns: list[Any],
    references: dict[tuple[str, str], tuple[str, str]],
    made: dict[str, list[dict[str, Any]]],
    number: int,
) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, kind, needed, check in columns:
        target = references.get((table, name)) or _by_name(name, made)
        if name == "mandate_id":
            row[name] = mandate_id
        elif f"{table}.{name}" in VALUES:
            row[name] = VALUES[f"{table}.{name}"]
        elif target is not None and target[0] != table:
            row[name] = made[target[0]][number % len(made[target[0]])].get(target[1])
        elif check:
            row[name] = check.partition("ARRAY['")[2].partition("'")[0]
        else:
            row[name] = _value(kind, needed=needed)
    if table == "api_key":  # belongs to a user or to a service
        row["service"] = None
    return row


def _by_name(column: str, made: dict[str, list[dict[str, Any]]]) -> tuple[str, str] | None:
    """`document_id` means a document even where no foreign key says so; an owner of segments is a connection."""
    table = {"owner_id": "connection", "blob_sha256": "blob"}.get(column, column.removesuffix("_id"))
    if table == "blob" and table in made:
        return table, "sha256"
    return (table, "id") if column.endswith("_id") and table in made and "id" in made[table][0] else None


def _value(kind: str, *, needed: bool) -> Any:
    if kind.startswith("timestamp"):
        return datetime.now(timezone.utc) if needed else None
    makers: dict[str, Any] = {
        "uuid": uuid4,
        "text": lambda: f"canary-{uuid4().hex}",
        "bytea": lambda: os.urandom(32),
        "boolean": lambda: False,
        "jsonb": lambda: Jsonb({}),
        "text[]": lambda: [f"canary-{uuid4().hex}"],
        "date": lambda: datetime.now(timezone.utc).date(),
    }
    return makers[kind]() if kind in makers else 1
