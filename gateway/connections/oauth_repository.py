"""What a browser must bring back from the vendor: kept as hashes, used up by one statement."""

from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import tenant_of


async def add_state(
    session: AsyncSession,
    *,
    state_hash: bytes,
    authority: str,
    connection_id: UUID,
    user_id: UUID,
    browser_hash: bytes,
    sealed_flow: bytes,
    seconds: float,
) -> None:
    await session.execute(
        text(
            "INSERT INTO oauth_state (state_hash, authority, mandate_id, connection_id, user_id, browser_hash, "
            "sealed_flow, expires_at) VALUES (:state_hash, :authority, :mandate_id, :connection_id, :user_id, "
            ":browser_hash, :sealed_flow, now() + make_interval(secs => :seconds))"
        ),
        {
            "mandate_id": tenant_of(session),
            "state_hash": state_hash,
            "authority": authority,
            "connection_id": connection_id,
            "user_id": user_id,
            "browser_hash": browser_hash,
            "sealed_flow": sealed_flow,
            "seconds": seconds,
        },
    )


async def take_state(
    session: AsyncSession, *, state_hash: bytes, authority: str, user_id: UUID, browser_hash: bytes
) -> Row[Any] | None:
    """Once, in time, at this vendor's own address, by the same user in the same browser – or not at all.

    Somebody else who knows the state does not use it up.
    """
    rows = await session.execute(
        text(
            "DELETE FROM oauth_state WHERE state_hash = :state_hash AND mandate_id = :mandate_id "
            "AND authority = :authority AND user_id = :user_id AND browser_hash = :browser_hash "
            "AND expires_at > now() RETURNING connection_id, sealed_flow"
        ),
        {
            "mandate_id": tenant_of(session),
            "state_hash": state_hash,
            "authority": authority,
            "user_id": user_id,
            "browser_hash": browser_hash,
        },
    )
    return rows.one_or_none()


async def forget_expired(session: AsyncSession) -> None:
    await session.execute(
        text("DELETE FROM oauth_state WHERE mandate_id = :mandate_id AND expires_at < now()"),
        {"mandate_id": tenant_of(session)},
    )
