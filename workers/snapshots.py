"""Runs `snapshots` jobs: looks at every snapshot of a mandate after a change that may concern them all."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from gateway.corpus.blobs import BlobStore
from gateway.db import Database
from gateway.ingestion import ledger_repository as ledger
from gateway.ingestion.snapshot_service import refresh_all


class SnapshotSlice:
    def __init__(self, db: Database, blobs: BlobStore, mandate_id: UUID, lease_seconds: float) -> None:
        self.db, self.blobs, self.mandate_id, self.lease_seconds = db, blobs, mandate_id, lease_seconds

    async def run(self, jobs: Sequence[Row[Any]]) -> None:
        """One look serves all that were claimed. It needs no fence: two at once take turns and find the same."""
        await refresh_all(self.db, self.blobs, self.mandate_id)
        async with self.db.tenant_session(self.mandate_id) as session:
            held = await ledger.hold(session, [(job.id, job.fence) for job in jobs])
            if held:
                await ledger.finish(
                    session, [{"id": job_id, "status": "indexed", "reason": "looked"} for job_id in held]
                )

    async def renew(self, claims: Sequence[tuple[UUID, int]]) -> None:
        async with self.db.tenant_session(self.mandate_id) as session:
            await ledger.renew(session, claims, lease_seconds=self.lease_seconds)
