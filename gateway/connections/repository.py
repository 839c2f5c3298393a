"""Rows of `connection`, and the lock that makes revocation final."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import tenant_of


@dataclass(frozen=True)
class ConnectionState:
    authority: str
    user_id: UUID
    state: str
    generation: int


async def share_lock(session: AsyncSession, ids: Collection[UUID]) -> dict[UUID, ConnectionState]:
    """Locks the rows FOR SHARE: until this transaction ends, nobody can revoke them. Unknown ids are left out."""
    if not ids:
        return {}
    rows = await session.execute(
        text(
            "SELECT id, authority, user_id, state, generation FROM connection WHERE id = ANY(:ids) ORDER BY id FOR SHARE"
        ),
        {"ids": list(ids)},
    )
    return {row.id: ConnectionState(row.authority, row.user_id, row.state, row.generation) for row in rows}


async def add(
    session: AsyncSession, connection_id: UUID, authority: str, user_id: UUID, state: str = "active"
) -> None:
    await session.execute(
        text(
            "INSERT INTO connection (mandate_id, id, authority, user_id, state) "
            "VALUES (:mandate_id, :id, :authority, :user_id, :state)"
        ),
        {
            "mandate_id": tenant_of(session),
            "id": connection_id,
            "authority": authority,
            "user_id": user_id,
            "state": state,
        },
    )


async def revoke(session: AsyncSession, connection_id: UUID) -> ConnectionState | None:
    """The fence: waits for writers that hold the row, then no later writer passes. None if there is no such row."""
    row = (
        await session.execute(
            text("SELECT authority, user_id, state, generation FROM connection WHERE id = :id FOR UPDATE"),
            {"id": connection_id},
        )
    ).one_or_none()
    if row is None:
        return None
    await session.execute(
        text(
            "UPDATE connection SET state = 'revoked', generation = generation + 1, updated_at = now() "
            "WHERE id = :id AND state <> 'revoked'"
        ),
        {"id": connection_id},
    )
    return ConnectionState(row.authority, row.user_id, row.state, row.generation)
