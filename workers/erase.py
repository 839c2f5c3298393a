"""Runs `erase` jobs: a begun erasure is carried to its end, however often the worker dies on the way."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from gateway.corpus.blobs import BlobStore
from gateway.corpus.erasure import finish_erasure
from gateway.db import Database
from gateway.errors import LegalHold
from gateway.ingestion import ledger_repository as ledger
from gateway.settings import Settings
from workers.farewell import covered, tell_vendor
from workers.holding import wait_for_hold


class EraseSlice:
    def __init__(self, db: Database, settings: Settings, blobs: BlobStore, mandate_id: UUID) -> None:
        self.db, self.settings, self.blobs, self.mandate_id = db, settings, blobs, mandate_id

    async def run(self, jobs: Sequence[Row[Any]]) -> None:
        for job in jobs:
            receipt_id = UUID(job.payload["receiptId"])
            for connection_id in await covered(self.db, self.mandate_id, receipt_id):
                await tell_vendor(self.db, self.settings, self.mandate_id, connection_id)
            try:
                # Every batch is idempotent and locks the receipt, so two workers at once only take turns.
                await finish_erasure(self.db, self.blobs, self.mandate_id, receipt_id)
            except LegalHold:
                await wait_for_hold(self.db, self.mandate_id, job)
                continue
            async with self.db.tenant_session(self.mandate_id) as session:
                if await ledger.hold(session, [(job.id, job.fence)]):
                    await ledger.finish(session, [{"id": job.id, "status": "indexed", "reason": "erased"}])

    async def renew(self, claims: Sequence[tuple[UUID, int]]) -> None:
        async with self.db.tenant_session(self.mandate_id) as session:
            await ledger.renew(session, claims, lease_seconds=self.settings.lease_seconds)
