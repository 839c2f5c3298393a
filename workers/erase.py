"""Runs `erase` jobs: a begun erasure is carried to its end, however often the worker dies on the way."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from gateway.corpus.blobs import BlobStore
from gateway.corpus.erasure import finish_erasure
from gateway.db import Database
from gateway.ingestion import ledger_repository as ledger


class EraseSlice:
    def __init__(self, db: Database, blobs: BlobStore, mandate_id: UUID, lease_seconds: float) -> None:
        self.db, self.blobs, self.mandate_id, self.lease_seconds = db, blobs, mandate_id, lease_seconds

    async def run(self, jobs: Sequence[Row[Any]]) -> None:
        for job in jobs:
            # Every batch is idempotent and locks the receipt, so two workers at once only take turns.
            await finish_erasure(self.db, self.blobs, self.mandate_id, UUID(job.payload["receiptId"]))
            async with self.db.tenant_session(self.mandate_id) as session:
                if await ledger.hold(session, [(job.id, job.fence)]):
                    await ledger.finish(session, [{"id": job.id, "status": "indexed", "reason": "erased"}])

    async def renew(self, claims: Sequence[tuple[UUID, int]]) -> None:
        async with self.db.tenant_session(self.mandate_id) as session:
            await ledger.renew(session, claims, lease_seconds=self.lease_seconds)
