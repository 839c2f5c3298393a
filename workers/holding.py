"""What a legal hold keeps from being done waits for its end, which wakes it; and looks again now and then by itself."""

from typing import Any
from uuid import UUID

from sqlalchemy import Row

from gateway.db import Database
from gateway.ingestion import ledger_repository as ledger
from gateway.tenancy.hold_repository import under_hold

LOOK_AGAIN = 24 * 3600.0  # seconds


async def wait_for_hold(db: Database, mandate_id: UUID, job: Row[Any]) -> None:
    async with db.tenant_session(mandate_id) as session:
        # Lifted meanwhile, nobody comes to wake it any more.
        delay = LOOK_AGAIN if await under_hold(session) else 0.0
        if await ledger.hold(session, [(job.id, job.fence)]):
            await ledger.put_back(session, job.id, delay_seconds=delay, reason="legal hold", refund=True)
