"""From a vendor's notification to the watch it is about, and what was seen already."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import tenant_of


async def find_route(session: AsyncSession, authority: str, vendor_id: str) -> tuple[UUID, UUID] | None:
    """Mandate and watch: what we wrote when we subscribed, never what the sender says."""
    row = (
        await session.execute(
            text(
                "SELECT mandate_id, watch_id FROM webhook_route WHERE authority = :authority AND vendor_id = :vendor_id"
            ),
            {"authority": authority, "vendor_id": vendor_id},
        )
    ).one_or_none()
    return (row.mandate_id, row.watch_id) if row else None


async def find_watch(session: AsyncSession, watch_id: UUID) -> Row[Any] | None:
    """With what decides whether a notification still means anything."""
    rows = await session.execute(
        text(
            """
            SELECT w.id, w.sealed_secret, w.data_source_id, s.surface, s.connection_id, c.authority, c.state
            FROM watch w
            JOIN data_source s ON s.mandate_id = w.mandate_id AND s.id = w.data_source_id
            JOIN connection c ON c.mandate_id = s.mandate_id AND c.id = s.connection_id
            WHERE w.mandate_id = :mandate_id AND w.id = :id
            """
        ),
        {"mandate_id": tenant_of(session), "id": watch_id},
    )
    return rows.one_or_none()


async def watches_of(session: AsyncSession, connection_id: UUID) -> list[Row[Any]]:
    rows = await session.execute(
        text(
            """
            SELECT w.*, s.surface FROM watch w
            JOIN data_source s ON s.mandate_id = w.mandate_id AND s.id = w.data_source_id
            WHERE w.mandate_id = :mandate_id AND s.connection_id = :id ORDER BY w.id
            """
        ),
        {"mandate_id": tenant_of(session), "id": connection_id},
    )
    return list(rows)


async def watches_of_source(session: AsyncSession, data_source_id: UUID) -> list[Row[Any]]:
    rows = await session.execute(
        text("SELECT * FROM watch WHERE mandate_id = :mandate_id AND data_source_id = :id ORDER BY id"),
        {"mandate_id": tenant_of(session), "id": data_source_id},
    )
    return list(rows)


async def save_watch(
    session: AsyncSession,
    watch_id: UUID,
    *,
    authority: str,
    data_source_id: UUID,
    vendor_id: str,
    resource: str,
    sealed_secret: bytes,
    details: Mapping[str, str],
    expires_at: datetime,
) -> None:
    """A subscription and the route that leads to it; made anew or renewed under the id it has."""
    parameters: dict[str, Any] = {
        "mandate_id": tenant_of(session),
        "id": watch_id,
        "authority": authority,
        "data_source_id": data_source_id,
        "vendor_id": vendor_id,
        "resource": resource,
        "sealed_secret": sealed_secret,
        "details": orjson.dumps(dict(details)).decode(),
        "expires_at": expires_at,
    }
    await session.execute(
        text(
            """
            INSERT INTO watch (mandate_id, id, data_source_id, vendor_id, resource, sealed_secret, details, expires_at)
            VALUES (:mandate_id, :id, :data_source_id, :vendor_id, :resource, :sealed_secret, CAST(:details AS jsonb),
                :expires_at)
            ON CONFLICT (mandate_id, id) DO UPDATE SET resource = excluded.resource, details = excluded.details,
                sealed_secret = excluded.sealed_secret, expires_at = excluded.expires_at
            """
        ),
        parameters,
    )
    # Whose subscription it is was settled when it was made; nobody takes over another mandate's.
    await session.execute(
        text(
            "INSERT INTO webhook_route (authority, vendor_id, mandate_id, watch_id) "
            "VALUES (:authority, :vendor_id, :mandate_id, :id) ON CONFLICT (authority, vendor_id) DO NOTHING"
        ),
        parameters,
    )


async def note_delivery(
    session: AsyncSession, authority: str, delivery_id: str, data_source_id: UUID
) -> bool:
    """False: it was here before."""
    done = await session.execute(
        text(
            "INSERT INTO webhook_delivery (mandate_id, authority, delivery_id, data_source_id) "
            "VALUES (:mandate_id, :authority, :delivery_id, :data_source_id) ON CONFLICT DO NOTHING"
        ),
        {
            "mandate_id": tenant_of(session),
            "authority": authority,
            "delivery_id": delivery_id,
            "data_source_id": data_source_id,
        },
    )
    return bool(done.rowcount)  # pyright: ignore[reportAttributeAccessIssue]


async def drop_watch(session: AsyncSession, watch_id: UUID) -> None:
    """A subscription that is no more, and the route to it."""
    parameters = {"mandate_id": tenant_of(session), "id": watch_id}
    for statement in (
        "DELETE FROM webhook_route WHERE mandate_id = :mandate_id AND watch_id = :id",
        "DELETE FROM watch WHERE mandate_id = :mandate_id AND id = :id",
    ):
        await session.execute(text(statement), parameters)


async def expire_watch(session: AsyncSession, watch_id: UUID) -> None:
    """It must be renewed: the next sync finds it out of date."""
    await session.execute(
        text("UPDATE watch SET expires_at = now() WHERE mandate_id = :mandate_id AND id = :id"),
        {"mandate_id": tenant_of(session), "id": watch_id},
    )


async def forget_deliveries(session: AsyncSession, older_than_seconds: float) -> int:
    """Vendors repeat for hours, not for days."""
    done = await session.execute(
        text(
            "DELETE FROM webhook_delivery WHERE mandate_id = :mandate_id "
            "AND seen_at < now() - make_interval(secs => :seconds)"
        ),
        {"mandate_id": tenant_of(session), "seconds": older_than_seconds},
    )
    return int(done.rowcount)  # pyright: ignore[reportAttributeAccessIssue]
