"""How a sync or fetch job leaves its place: it waits, steps aside, ends, or reports trouble. Its schedule never dies."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

from psycopg.errors import DeadlockDetected, LockNotAvailable, SerializationFailure
from sqlalchemy import Row
from sqlalchemy.exc import DBAPIError

from connectors.kit.contract import ContainerForbidden, ItemFailed, ItemGone, VendorUnavailable
from gateway.connections import service as connections
from gateway.connections import sync_repository as repository
from gateway.connections.places import policy_of
from gateway.connections.sync_service import enqueue_next
from gateway.db import Database, emit_on_commit
from gateway.errors import CatchmentError, StoreUnavailable
from gateway.ingestion import ledger_repository as ledger
from gateway.logs import emit, place_of
from gateway.settings import Settings
from workers.sync.fence import Lost, fenced, source_of

LONGEST_WAIT = 86400.0
# Two transactions stood in each other's way; one of them only has to try again.
CONTENTION = (DeadlockDetected, SerializationFailure, LockNotAvailable)
MAX_RETRY_SECONDS = 900.0


async def side_by_side(run: Callable[[Row[Any]], Awaitable[None]], jobs: Sequence[Row[Any]]) -> None:
    """Every job to its end; what stopped one of them is raised afterwards."""
    ends = await asyncio.gather(*(run(job) for job in jobs), return_exceptions=True)
    for end in ends:
        if isinstance(end, BaseException):
            raise end


async def end_lost(db: Database, mandate_id: UUID, job: Row[Any], lost: Lost) -> None:
    """Revoked, paused or without a grant: the job ends, and comes back when the connection does."""
    async with db.tenant_session(mandate_id) as session:
        if lost.taken or not await ledger.hold(session, [(job.id, job.fence)]):
            emit_on_commit(session, "ledger.fence.lost", mandateId=str(mandate_id), jobId=str(job.id))
            return
        await ledger.finish(session, [{"id": job.id, "status": "cancelled", "reason": lost.reason}])


async def step_aside(db: Database, mandate_id: UUID, job: Row[Any]) -> None:
    """There is more to do, after the others had their turn."""
    await _put_back(db, mandate_id, job, 0.0, None)


async def wait(db: Database, mandate_id: UUID, job: Row[Any], seconds: float) -> None:
    """The vendor said when; the try does not count. A little later, so that not all come back at one instant."""
    delay = min(LONGEST_WAIT, max(0.0, seconds)) + random.uniform(0, min(1.0, seconds / 10))  # noqa: S311
    await _put_back(db, mandate_id, job, delay, "throttled")


async def _put_back(
    db: Database, mandate_id: UUID, job: Row[Any], delay: float, reason: str | None, *, refund: bool = True
) -> None:
    async with db.tenant_session(mandate_id) as session:
        if await ledger.hold(session, [(job.id, job.fence)]):
            await ledger.put_back(session, job.id, delay_seconds=delay, reason=reason, refund=refund)


async def give_up_grant(db: Database, mandate_id: UUID, job: Row[Any], reason: str) -> None:
    async with db.tenant_session(mandate_id) as session:
        await connections.need_reauth(session, job.connection_id, reason)
    await end_lost(db, mandate_id, job, Lost("needs_reauth"))


async def trouble(
    db: Database, mandate_id: UUID, job: Row[Any], error: Exception, settings: Settings, *, progressed: bool
) -> None:
    """Back with a growing delay; after many tries without a step forward the round is given up, and the next one is
    scheduled.
    """
    if isinstance(error, StoreUnavailable):
        raise error
    if isinstance(error, DBAPIError) and isinstance(error.orig, CONTENTION):
        await _put_back(db, mandate_id, job, 0.05, None)
        return
    if not progressed and job.attempts >= settings.max_attempts:
        await _give_up_round(db, mandate_id, job, error)
        return
    ceiling = min(MAX_RETRY_SECONDS, settings.retry_base_seconds * 2 ** max(0, job.attempts - 1))
    delay = random.uniform(ceiling / 2, ceiling)  # noqa: S311 - jitter
    name = name_of(error)
    async with db.tenant_session(mandate_id) as session:
        await repository.note_error(session, source_of(job), name)
    await _put_back(db, mandate_id, job, delay, "unavailable", refund=progressed)
    emit(
        "ingestion.retry",
        mandateId=str(mandate_id),
        documentId=None,
        jobId=str(job.id),
        reason=name,
        attempts=job.attempts,
        delayMs=round(delay * 1000),
        where=place_of(error),
    )


async def _give_up_round(db: Database, mandate_id: UUID, job: Row[Any], error: Exception) -> None:
    name = name_of(error)
    try:
        async with fenced(db, mandate_id, job) as (session, source):
            policy = await policy_of(session, source)
            await repository.note_error(session, source.id, name)
            await enqueue_next(
                session,
                source,
                job,
                status="failed",
                reason="attempts",
                error=name,
                interval=policy.interval_seconds,
            )
            told = {"connectionId": str(source.connection_id), "part": source.surface, "error": name}
            if source.phase == "delta":
                emit_on_commit(session, "ingestion.connection.delta.failed", **told, where=place_of(error))
            else:
                emit_on_commit(
                    session, "ingestion.connection.bootstrap.failed", **told, where=place_of(error)
                )
    except Lost as lost:
        await end_lost(db, mandate_id, job, lost)


def name_of(error: Exception) -> str:
    """For the log and the row: never the message, which may quote content."""
    if isinstance(error, CatchmentError):
        return error.code
    if isinstance(error, ContainerForbidden):
        return "forbidden"
    if isinstance(error, ItemFailed):
        return error.reason
    if isinstance(error, ItemGone):
        return "not_there"
    return error.word if isinstance(error, VendorUnavailable) else type(error).__name__
