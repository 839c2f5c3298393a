"""The end of a connection: everything that hangs on it is deleted and counted, store by store."""

from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import tenant_of

_SOURCES = "SELECT id FROM data_source WHERE mandate_id = :mandate_id AND connection_id = :id"
# Store → what of it goes, in this order: what refers to others before what is referred to.
_STORES = {
    "job": "DELETE FROM job WHERE mandate_id = :mandate_id AND connection_id = :id",
    "event": (
        "DELETE FROM outbox WHERE mandate_id = :mandate_id AND topic = 'event' "
        "AND payload->'payload'->>'connectionId' = CAST(CAST(:id AS uuid) AS text)"
    ),
    "oauth_state": "DELETE FROM oauth_state WHERE mandate_id = :mandate_id AND connection_id = :id",
    "webhook_route": (
        "DELETE FROM webhook_route r USING watch w WHERE w.mandate_id = :mandate_id "
        f"AND w.data_source_id IN ({_SOURCES}) AND r.mandate_id = w.mandate_id AND r.watch_id = w.id"
    ),
    "webhook_delivery": (
        f"DELETE FROM webhook_delivery WHERE mandate_id = :mandate_id AND data_source_id IN ({_SOURCES})"
    ),
    "watch": f"DELETE FROM watch WHERE mandate_id = :mandate_id AND data_source_id IN ({_SOURCES})",
    "item_failure": (
        f"DELETE FROM item_failure WHERE mandate_id = :mandate_id AND data_source_id IN ({_SOURCES})"
    ),
    "remote_item": f"DELETE FROM remote_item WHERE mandate_id = :mandate_id AND data_source_id IN ({_SOURCES})",
    "data_source": "DELETE FROM data_source WHERE mandate_id = :mandate_id AND connection_id = :id",
    "token": (
        "UPDATE connection SET sealed_tokens = NULL, token_expires_at = NULL "
        "WHERE mandate_id = :mandate_id AND id = :id AND sealed_tokens IS NOT NULL"
    ),
}


async def purge(session: AsyncSession, connection_id: UUID) -> dict[str, int]:
    """A connection that was revoked and whose documents are gone. What stays: id, authority, state and times."""
    parameters = {"mandate_id": tenant_of(session), "id": connection_id}
    # Before its jobs: the one lock order of the house.
    await session.execute(
        text("SELECT FROM connection WHERE mandate_id = :mandate_id AND id = :id FOR UPDATE"), parameters
    )
    counts = {store: await _count(session, statement, parameters) for store, statement in _STORES.items()}
    await session.execute(
        text(
            "UPDATE connection SET user_id = NULL, surfaces = '{}', policy = '{}', account = '{}', reason = NULL, "
            "auto_start = true, paused = false, purged_at = now(), updated_at = now() "
            "WHERE mandate_id = :mandate_id AND id = :id AND state = 'revoked'"
        ),
        parameters,
    )
    return counts


async def drop_source(session: AsyncSession, data_source_id: UUID) -> None:
    """A surface that is no longer wanted; its documents are erased by the caller."""
    parameters = {"mandate_id": tenant_of(session), "id": data_source_id}
    for statement in (
        # Jobs first: who holds one is waited for, and nobody writes without.
        "DELETE FROM job WHERE mandate_id = :mandate_id AND payload->>'dataSourceId' = CAST(CAST(:id AS uuid) AS text)",
        (
            "DELETE FROM webhook_route r USING watch w WHERE w.mandate_id = :mandate_id AND w.data_source_id = :id "
            "AND r.mandate_id = w.mandate_id AND r.watch_id = w.id"
        ),
        "DELETE FROM webhook_delivery WHERE mandate_id = :mandate_id AND data_source_id = :id",
        "DELETE FROM data_source WHERE mandate_id = :mandate_id AND id = :id",
    ):
        await session.execute(text(statement), parameters)


async def _count(session: AsyncSession, statement: str, parameters: dict[str, Any]) -> int:
    done = await session.execute(text(statement), parameters)
    return int(done.rowcount)  # pyright: ignore[reportAttributeAccessIssue]
