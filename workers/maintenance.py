"""Housekeeping between jobs: what has outlived its time goes, small lexical segments are merged, vectors and bytes nobody
refers to are collected.
"""

import asyncio
import time
from uuid import UUID

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.connections import service as connections
from gateway.connections.sync_service import revive_schedules
from gateway.corpus import blob_repository, chunk_repository, lexicon, vector_repository
from gateway.corpus.blobs import BlobStore
from gateway.corpus.erasure import expire_documents, revive_erasures
from gateway.db import Database, emit_on_commit, tenant_of
from gateway.errors import StoreUnavailable
from gateway.insights.service import apply_retention
from gateway.logs import emit
from gateway.settings import Settings
from gateway.tenancy import repository as tenancy
from gateway.tenancy.hold_repository import under_hold

SMALL_SEGMENT = 2000  # chunks; a search reads every segment of a term, so many small ones cost it
CROWD = 8  # that many small segments of one owner are merged
UNUSED_UPLOAD_SECONDS = 24 * 3600
NAMED_AT_ONCE = 500
RELEASED_AT_ONCE = 1000
ORPHANS_SECONDS = 3600  # to find an object without a row, all of them must be listed


class Maintenance:
    def __init__(self, db: Database, settings: Settings) -> None:
        self._db, self._blobs = db, BlobStore.of(settings)
        self._seconds = settings.maintenance_seconds
        self._orphans_sought: dict[UUID, float] = {}
        self._titled = set[UUID]()  # mandates whose documents are all found by their titles

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            try:
                async with self._db.routing_session() as session:
                    mandates = await tenancy.all_mandate_ids(session)
                for mandate_id in mandates:
                    await self.tidy(mandate_id)
            except (StoreUnavailable, DBAPIError) as error:
                emit("house.store.unavailable", component="maintenance", error=type(error).__name__)

    async def tidy(self, mandate_id: UUID) -> None:
        await apply_retention(self._db, mandate_id)
        await expire_documents(self._db, self._blobs, mandate_id)
        async with self._db.tenant_session(mandate_id) as session:
            await connections.tidy(session)
            await revive_schedules(session)
            await revive_erasures(session)
        while mandate_id not in self._titled:
            await self._name_some(mandate_id)
        async with self._db.tenant_session(mandate_id) as session:
            owners = await chunk_repository.crowded_owners(session, fewer_than=SMALL_SEGMENT, at_least=CROWD)
        for owner_id in owners:
            async with self._db.tenant_session(mandate_id) as session:
                await lexicon.merge_small(session, owner_id, fewer_than=SMALL_SEGMENT)
        async with self._db.tenant_session(mandate_id) as session:
            collected = await vector_repository.collect(session, None)
            if collected:
                emit_on_commit(
                    session, "house.vectors.collected", mandateId=str(mandate_id), vectors=collected
                )
        async with self._db.tenant_session(mandate_id) as session:
            if not await under_hold(session):
                await self._collect_blobs(session)
        now = time.monotonic()
        if now - self._orphans_sought.get(mandate_id, -ORPHANS_SECONDS) >= ORPHANS_SECONDS:
            self._orphans_sought[mandate_id] = now
            async with self._db.tenant_session(mandate_id) as session:
                await self._blobs.collect_orphans(session)

    async def _collect_blobs(self, session: AsyncSession) -> None:
        """Originals of revisions that nobody needs any more, and uploads that nobody used for a day."""
        former = await blob_repository.release_former_originals(session, RELEASED_AT_ONCE)
        gone = await blob_repository.delete_unreferenced(session, former, older_than_seconds=0)
        gone += await blob_repository.delete_unreferenced(
            session, None, older_than_seconds=UNUSED_UPLOAD_SECONDS
        )
        await self._blobs.delete_objects(
            tenant_of(session), [digest for digest, in_store in gone if in_store]
        )

    async def _name_some(self, mandate_id: UUID) -> None:
        """Documents that an earlier version indexed have no title in the index yet; after that there are none."""
        async with self._db.tenant_session(mandate_id) as session:
            ids = await chunk_repository.misnamed_documents(session, NAMED_AT_ONCE)
            await chunk_repository.lock_documents(session, ids)  # nobody stores one of them meanwhile
            await lexicon.rename(session, ids)
        if len(ids) < NAMED_AT_ONCE:
            self._titled.add(mandate_id)
