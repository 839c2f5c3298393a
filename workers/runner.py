"""Answers a bell: claims a slice of one mandate's jobs, runs it under a renewed lease, and accounts for every outcome.

Transient trouble puts a job back with a growing, jittered delay; permanent trouble ends it; a job that kills its process
is set aside after a few deaths that were certainly its own. A stop hands the jobs back without counting the try.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import UUID

from psycopg.errors import DeadlockDetected, LockNotAvailable, SerializationFailure
from sqlalchemy import Row
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.connections.places import Places
from gateway.corpus import chunk_repository as chunks
from gateway.corpus.blobs import BlobStore
from gateway.corpus.child import ChildPool
from gateway.corpus.embedders import Embedder, EmbedderUnavailable
from gateway.crashpoints import crash_point
from gateway.db import Database, emit_on_commit, new_id
from gateway.errors import CatchmentError, StoreUnavailable
from gateway.ingestion import ledger_repository as ledger
from gateway.ingestion import repository as ingestion
from gateway.logs import emit, place_of
from gateway.settings import Settings
from workers.erase import EraseSlice
from workers.gate import Gate
from workers.grace import GraceSlice
from workers.ingest import IngestSlice
from workers.pipeline.store import VectorsMissing
from workers.snapshots import SnapshotSlice
from workers.sync.fetching import Load
from workers.sync.listing import Walk
from workers.sync.progress import Bulletin
from workers.sync.slices import SurfaceSlice

# Orphans run by themselves; after this long the next mandate gets its turn.
ORPHAN_SECONDS = 1.0
MAX_RETRY_SECONDS = 300.0


class SliceHandler(Protocol):
    async def run(self, jobs: Sequence[Row[Any]]) -> None: ...
    async def renew(self, claims: Sequence[tuple[UUID, int]]) -> None: ...


class Runner:
    def __init__(
        self,
        db: Database,
        settings: Settings,
        embedder: Embedder,
        pool: ChildPool,
        blobs: BlobStore,
        ring: Callable[[str, UUID], Awaitable[None]],
        *,
        places: Places | None = None,
        bulletin: Bulletin | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.db, self.settings, self.embedder, self.pool, self.blobs = db, settings, embedder, pool, blobs
        self._ring = ring
        self.places, self.bulletin, self.clock = places, bulletin or Bulletin(None), clock
        self._gate = Gate()

    async def answer(self, lane: str, mandate_id: UUID) -> None:
        """One slice, then the orphans, then – if work is left – another ring at the back of the queue."""
        async with self._gate.together():
            jobs = await self._claim(lane, mandate_id)
            if len(jobs) >= self.settings.slice_size:
                await self._ring(lane, mandate_id)  # another slot may start on the next slice already
            if jobs:
                await self._run(mandate_id, jobs)
        if await self._run_orphans(lane, mandate_id):
            await self._ring(lane, mandate_id)

    async def _claim(self, lane: str, mandate_id: UUID) -> list[Row[Any]]:
        async with self.db.tenant_session(mandate_id) as session:
            jobs = await ledger.claim(
                session, lane, limit=self.settings.slice_size, lease_seconds=self.settings.lease_seconds
            )
        if jobs:
            crash_point("job.after_claim")
        return jobs

    async def _run_orphans(self, lane: str, mandate_id: UUID) -> bool:
        """Whether there is more to do, of whatever sort."""
        until = time.monotonic() + ORPHAN_SECONDS
        while time.monotonic() < until:
            async with self._gate.alone():
                async with self.db.tenant_session(mandate_id) as session:
                    jobs = await ledger.claim_orphans(
                        session, lane, lease_seconds=self.settings.lease_seconds
                    )
                    if not jobs:
                        return await ledger.work_left(session, lane)
                crash_point("job.after_claim")
                poison = [job for job in jobs if job.deaths >= self.settings.max_deaths]
                for job in poison:
                    await self._set_aside(mandate_id, job)
                await self._run(mandate_id, [job for job in jobs if job not in poison])
        return True

    async def _run(self, mandate_id: UUID, jobs: Sequence[Row[Any]]) -> None:
        kinds = [
            [job for job in jobs if job.kind == kind] for kind in dict.fromkeys(job.kind for job in jobs)
        ]
        if len(kinds) == 1:
            await self._run_kind(mandate_id, kinds[0])
        elif kinds:
            # Side by side, each under its own lease: a long listing must not let the documents beside it go stale.
            async with asyncio.TaskGroup() as group:
                for of_kind in kinds:
                    group.create_task(self._run_kind(mandate_id, of_kind))

    async def _run_kind(self, mandate_id: UUID, of_kind: Sequence[Row[Any]]) -> None:
        try:
            handler = self._handler(of_kind[0].kind, mandate_id)
            async with self._leased(handler, of_kind):
                await handler.run(of_kind)
        except asyncio.CancelledError:
            await asyncio.shield(self._hand_back(mandate_id, of_kind))
            raise
        except StoreUnavailable as error:
            # Nothing can be written; the leases run out and the jobs are taken up again.
            emit("house.store.unavailable", component="worker", error=error.detail)
        except Exception as error:  # noqa: BLE001 - the one place where a job's trouble is classified
            await self._retry(mandate_id, of_kind, error)

    def _handler(self, kind: str, mandate_id: UUID) -> SliceHandler:
        handlers: dict[str, Callable[[], SliceHandler]] = {
            "ingest": lambda: IngestSlice(
                self.db,
                self.settings,
                self.embedder,
                self.pool,
                self.blobs,
                mandate_id,
                lambda job, error: self._retry(mandate_id, [job], error),
            ),
            "erase": lambda: EraseSlice(self.db, self.settings, self.blobs, mandate_id),
            "grace": lambda: GraceSlice(self.db, mandate_id, self.settings.lease_seconds),
            "snapshots": lambda: SnapshotSlice(self.db, self.blobs, mandate_id, self.settings.lease_seconds),
            "sync": lambda: SurfaceSlice(Walk, *self._desk(mandate_id), clock=self.clock),
            "fetch": lambda: SurfaceSlice(Load, *self._desk(mandate_id), clock=self.clock),
        }
        return handlers[kind]()

    def _desk(self, mandate_id: UUID) -> tuple[Database, Settings, BlobStore, Places, Bulletin, UUID]:
        assert self.places is not None, "a runner of sync jobs is told how to reach the vendors"  # noqa: S101
        return self.db, self.settings, self.blobs, self.places, self.bulletin, mandate_id

    @asynccontextmanager
    async def _leased(self, handler: SliceHandler, jobs: Sequence[Row[Any]]) -> AsyncGenerator[None]:
        claims = [(job.id, job.fence) for job in jobs]

        async def renew() -> None:
            while True:
                await asyncio.sleep(self.settings.lease_seconds / 3)
                try:
                    await handler.renew(claims)
                except (DBAPIError, StoreUnavailable) as error:
                    # The fence, not the lease, protects the data; the next beat tries again.
                    emit("house.store.unavailable", component="lease", error=type(error).__name__)

        beat = asyncio.create_task(renew())
        try:
            yield
        finally:
            beat.cancel()

    async def _retry(self, mandate_id: UUID, jobs: Sequence[Row[Any]], error: Exception) -> None:
        """Puts what is left of a failed slice back, each job by its own count of tries."""
        name, delay_hint = _classify(error)
        for job in jobs:
            delay = delay_hint or self._backoff(job.attempts)
            async with self.db.tenant_session(mandate_id) as session:
                if not await self._holds(session, job):
                    continue
                ids = {"mandateId": str(mandate_id), "documentId": str(job.document_id), "jobId": str(job.id)}
                if job.attempts >= self.settings.max_attempts:
                    ended = {"id": job.id, "status": "failed", "reason": "attempts", "error": name}
                    await ledger.finish(session, [ended])
                    await self._note(session, job, "failed", "attempts")
                    emit_on_commit(
                        session,
                        "ingestion.failed",
                        **ids,
                        reason="attempts",
                        error=name,
                        where=place_of(error),
                    )
                else:
                    await ledger.put_back(session, job.id, delay_seconds=delay, reason=name)
                    emit_on_commit(
                        session,
                        "ingestion.retry",
                        **ids,
                        reason=name,
                        attempts=job.attempts,
                        delayMs=round(delay * 1000),
                        where=place_of(error),
                    )

    def _backoff(self, attempts: int) -> float:
        """Doubles from try to try; full jitter, so that a thousand failed jobs do not come back at one instant."""
        ceiling = min(MAX_RETRY_SECONDS, self.settings.retry_base_seconds * 2 ** (attempts - 1))
        return random.uniform(ceiling / 2, ceiling)  # noqa: S311 - jitter

    async def _set_aside(self, mandate_id: UUID, job: Row[Any]) -> None:
        async with self.db.tenant_session(mandate_id) as session:
            if not await self._holds(session, job):
                return
            detail = f"The worker died {job.deaths} times while it ran this job alone."
            await ledger.finish(
                session, [{"id": job.id, "status": "failed", "reason": "poison", "error": detail}]
            )
            await self._note(session, job, "failed", "poison")
            emit_on_commit(
                session, "ledger.poison", mandateId=str(mandate_id), jobId=str(job.id), deaths=job.deaths
            )

    async def _hand_back(self, mandate_id: UUID, jobs: Sequence[Row[Any]]) -> None:
        async with self.db.tenant_session(mandate_id) as session:
            held = await ledger.hold(session, [(job.id, job.fence) for job in jobs])
            for job_id in held:
                await ledger.put_back(session, job_id, delay_seconds=0, reason=None, refund=True)

    async def _holds(self, session: AsyncSession, job: Row[Any]) -> bool:
        """The fence, with the document locked first: the one lock order of the house."""
        if job.document_id is not None:
            await chunks.lock_documents(session, [job.document_id])
        return bool(await ledger.hold(session, [(job.id, job.fence)]))

    async def _note(self, session: AsyncSession, job: Row[Any], status: str, reason: str) -> None:
        if job.document_id is not None:
            moment = {"id": new_id(), "document_id": job.document_id, "job_id": job.id, "status": status}
            await ingestion.add_timeline(session, [moment | {"reason": reason}])


def _classify(error: Exception) -> tuple[str, float | None]:
    """A name for the log and the job row – never the message, which may quote content – and a delay where one is known."""
    if isinstance(error, EmbedderUnavailable):
        return error.code, error.retry_after
    if isinstance(error, CatchmentError):
        return error.code, None
    if isinstance(error, VectorsMissing):
        return "vectors.missing", 0.05
    original = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(original, DeadlockDetected | SerializationFailure | LockNotAvailable):
        return "database.contention", 0.05
    return type(original).__name__, None
