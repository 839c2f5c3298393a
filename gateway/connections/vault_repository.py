"""Every sealed value there is, for the change of the key it is sealed with."""

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
    session: AsyncSession, table: str, name: UUID | bytes, old: bytes, sealed: bytes
) -> bool:
    """Compare and set: who stored something newer meanwhile has sealed it with the current key already."""
    column, key = SEALED[table]
    done = await session.execute(
        text(
            f"UPDATE {table} SET {column} = :sealed "
            f"WHERE mandate_id = :mandate_id AND {key} = :name AND {column} = :old"
        ),
        {"mandate_id": tenant_of(session), "name": name, "old": old, "sealed": sealed},
    )
    return bool(done.rowcount)  # pyright: ignore[reportAttributeAccessIssue]
