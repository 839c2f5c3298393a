"""Runs `grace` jobs: a connection whose user did not give consent again within the days of grace is purged."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from gateway.connections import repository, service
from gateway.db import Database
from gateway.errors import LegalHold
from gateway.ingestion import ledger_repository as ledger
from gateway.ingestion import repository as ingestion
from gateway.tenancy.schemas import Policy
from workers.holding import wait_for_hold


class GraceSlice:
    def __init__(self, db: Database, mandate_id: UUID, lease_seconds: float) -> None:
        self.db, self.mandate_id, self.lease_seconds = db, mandate_id, lease_seconds

    async def run(self, jobs: Sequence[Row[Any]]) -> None:
        for job in jobs:
            try:
                await self._look(job)
            except LegalHold:
                await wait_for_hold(self.db, self.mandate_id, job)

    async def _look(self, job: Row[Any]) -> None:
        async with self.db.tenant_session(self.mandate_id) as session:
            row = await repository.lock(session, job.connection_id)
            if not await ledger.hold(session, [(job.id, job.fence)]):
                return
            if row is None or row.state != "needs_reauth":
                await ledger.finish(session, [{"id": job.id, "status": "skipped", "reason": "re-authorised"}])
                return
            policy = Policy.model_validate(await ingestion.mandate_policy(session))
            left = row.reauth_since + timedelta(days=policy.grace_days) - datetime.now(UTC)
            if left > timedelta(0):  # the policy became more patient meanwhile
                await ledger.put_back(
                    session, job.id, delay_seconds=left.total_seconds(), reason="grace", refund=True
                )
                return
            await service.revoke(session, row, "grace over")
            await ledger.finish(session, [{"id": job.id, "status": "indexed", "reason": "grace over"}])

    async def renew(self, claims: Sequence[tuple[UUID, int]]) -> None:
        async with self.db.tenant_session(self.mandate_id) as session:
            await ledger.renew(session, claims, lease_seconds=self.lease_seconds)
