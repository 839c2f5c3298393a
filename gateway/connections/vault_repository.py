"""Every sealed value there is, for the change of the key it is sealed with."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import tenant_of

# Table → its sealed column and what names a row; the key id stands behind the version byte of an envelope.
SEALED = {
    "connection": ("sealed_tokens", "id"),
    "watch": ("sealed_secret", "id"),
    "oauth_state": ("sealed_flow", "state_hash"),
}


async def sealed_with_others(session: AsyncSession, table: str, key_id: bytes, limit: int) -> list[Row[Any]]:
    """Rows of this mandate that another key sealed."""
    column, name = SEALED[table]
    rows = await session.execute(
        text(
            f"SELECT {name} AS name, {column} AS sealed FROM {table} WHERE mandate_id = :mandate_id "
            f"AND {column} IS NOT NULL AND substring({column} FROM 2 FOR 8) <> :key_id ORDER BY {name} LIMIT :limit"
        ),
        {"mandate_id": tenant_of(session), "key_id": key_id, "limit": limit},
    )
    return list(rows)


async def swap_sealed(
    session: AsyncSession, table: str, rows: Sequence[tuple[UUID | bytes, bytes, bytes]]
) -> None:
    """Compare and set (`name, old, new`): who stored something newer meanwhile sealed it with the current key already."""
    column, key = SEALED[table]
    kind = "bytea[]" if key == "state_hash" else "uuid[]"
    await session.execute(
        text(
            f"UPDATE {table} t SET {column} = r.new "
            f"FROM unnest(CAST(:names AS {kind}), CAST(:old AS bytea[]), CAST(:new AS bytea[])) AS r(name, old, new) "
            f"WHERE t.mandate_id = :mandate_id AND t.{key} = r.name AND t.{column} = r.old"
        ),
        {
            "mandate_id": tenant_of(session),
            "names": [row[0] for row in rows],
            "old": [row[1] for row in rows],
            "new": [row[2] for row in rows],
        },
    )
