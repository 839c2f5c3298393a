"""The legal hold. Who erases asks for it under a lock that whoever sets it waits for: once that is answered, nothing goes."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import tenant_of

_ERASING = "hashtextextended('erasing ' || CAST(:mandate_id AS text), 0)"


async def under_hold(session: AsyncSession) -> bool:
    """Whether there is one; until this transaction ends it stays so. Before every other lock: who sets it takes more."""
    values = {"mandate_id": tenant_of(session)}
    await session.execute(text(f"SELECT pg_advisory_xact_lock_shared({_ERASING})"), values)
    found = await session.scalar(
        text(
            "SELECT CAST(policy->>'legalHold' AS boolean) FROM mandate WHERE mandate_id = CAST(:mandate_id AS uuid)"
        ),
        values,
    )
    return bool(found)


async def wait_for_erasures(session: AsyncSession) -> None:
    """Batches that go on end first; the next ones wait until this transaction has."""
    await session.execute(
        text(f"SELECT pg_advisory_xact_lock({_ERASING})"), {"mandate_id": tenant_of(session)}
    )
