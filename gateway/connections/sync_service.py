"""Asking for a sync, and what can be said about one. Everybody who wants one – schedule, person, webhook, consent – asks
here, and all of them get the one live job of the data source.
"""

from collections.abc import Sequence
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.connections import repository as connections
from gateway.connections import sync_item_repository as items
from gateway.connections import sync_repository as repository
from gateway.connections.waiting import is_granted, waits_for
from gateway.db import emit_on_commit, new_id
from gateway.errors import Conflict, LegalHold
from gateway.ingestion import ledger_repository as ledger
from gateway.ingestion import repository as ingestion
from gateway.ingestion.facade import reindex
from gateway.tenancy.schemas import Policy

Mode = Literal["bootstrap", "delta"]
# A job that waits because the vendor said so is not brought forward by anybody's wish.
HELD_BACK = {"throttled", "unavailable"}
REVIVED_SECONDS = 600.0  # whatever went wrong should not go wrong again at once


class NotAccepted(Conflict):
    """The first sync waits for somebody who accepts its estimate."""

    code = "connection.not_accepted"


async def enqueue_sync(
    session: AsyncSession,
    data_source_id: UUID,
    mode: Mode = "delta",
    *,
    reason: str = "manual",
    delay_seconds: float = 0,
) -> UUID | None:
    """The live sync job of a source, in the caller's transaction: a waiting one is brought forward, a running one will run
    once more, else there is a new one. `bootstrap` lists everything anew. None if the connection cannot be synced now.
    """
    source = await repository.find_source(session, data_source_id)
    if source is None or not await _may_run(session, source):
        return None
    wanted: Mode = "delta" if source.phase == "delta" and mode == "delta" else "bootstrap"
    lane = "delta" if wanted == "delta" else "backfill"
    payload = {"dataSourceId": str(data_source_id), "mode": mode, "reason": reason}
    job_id = await _one_job(session, source, "sync", lane, payload, delay_seconds)
    names = {"connectionId": str(source.connection_id), "authority": source.authority, "part": source.surface}
    if wanted == "bootstrap":
        emit_on_commit(session, "ingestion.connection.bootstrap.queued", **names, reason=reason)
    else:
        emit_on_commit(session, "ingestion.connection.delta.queued", **names, reason=reason)
    return job_id


async def ask_for(session: AsyncSession, sources: Sequence[Row[Any]], mode: Mode) -> list[UUID | None]:
    """A person or program wants these sources (rows of `sources_of`) synced. Whoever wanted to see an estimate first accepts
    it by asking for a listing: looking for changes begins nothing.
    """
    waiting = {
        source.id: waits_for(source, account=source.account, auto_start=source.auto_start)
        for source in sources
    }
    ready = [source for source in sources if mode == "bootstrap" or waiting[source.id] != "acceptance"]
    if not any(waiting[source.id] != "consent" for source in ready) and "acceptance" in waiting.values():
        raise NotAccepted('Look at the estimate; a sync with {"mode": "bootstrap"} accepts it.')
    return [
        await enqueue_sync(session, source.id, mode, reason="asked") if source in ready else None
        for source in sources
    ]


async def hasten_sync(session: AsyncSession, data_source_id: UUID, *, reason: str) -> None:
    """A delta as soon as may be. Of a thousand who ask at once most find it asked for, and neither wait nor write."""
    if not await repository.will_look_again(session, data_source_id, HELD_BACK):
        await enqueue_sync(session, data_source_id, reason=reason)


async def request_fetch(
    session: AsyncSession, source: Row[Any], *, urgent: bool, delay_seconds: float = 0
) -> UUID | None:
    """The live download job of a source; `urgent` when a delta found something."""
    payload = {"dataSourceId": str(source.id)}
    return await _one_job(session, source, "fetch", "delta" if urgent else "backfill", payload, delay_seconds)


async def _may_run(session: AsyncSession, source: Row[Any]) -> bool:
    """Also takes the connection's lock, first of all: nobody revokes it between the look and the job."""
    if source.connection_id is None:
        return False
    states = await connections.share_lock(session, [source.connection_id])
    state = states.get(source.connection_id)
    if state is None or state.state != "active" or source.paused:
        return False
    # What was never allowed is not asked for; what is not allowed any more is for the vendor to refuse.
    return source.phase != "new" or is_granted(source.account, source.surface)


async def _one_job(
    session: AsyncSession, source: Row[Any], kind: str, lane: str, payload: dict[str, Any], delay: float
) -> UUID:
    key = f"{kind}:{source.id}"
    job_id = new_id()
    added = await repository.add_job(
        session,
        job_id,
        kind=kind,
        lane=lane,
        connection_id=source.connection_id,
        generation=source.connection_generation,
        dedupe_key=key,
        payload=payload,
        delay_seconds=delay,
    )
    if not added:
        job = await repository.lock_live_job(session, key)
        if job is None:  # it ended a moment ago
            return await _one_job(session, source, kind, lane, payload, delay)
        midway = kind == "sync" and await _is_midway(session, source.id)
        job_id, lane = job.id, await _join(session, job, lane, payload, delay, midway=midway)
    if delay <= 0:
        await ingestion.ring_on_commit(session, [{"id": new_id(), "topic": "bell", "lane": lane}])
    return job_id


async def _is_midway(session: AsyncSession, data_source_id: UUID) -> bool:
    """A round that stepped aside has seen some containers already, and goes on behind them."""
    source = await repository.find_source(session, data_source_id)
    return source is not None and bool(source.listing.get("open"))


async def _join(
    session: AsyncSession, job: Row[Any], lane: str, payload: dict[str, Any], delay: float, *, midway: bool
) -> str:
    merged = job.payload | payload
    if "bootstrap" in {job.payload.get("mode"), payload.get("mode")}:
        merged["mode"] = "bootstrap"
    if job.lease_until is not None:
        # Whatever it has seen already, it looks again.
        again = _again(job.payload.get("again"), payload.get("mode"), delay)
        merged |= {"again": again, "mode": job.payload.get("mode")}
        await repository.change_job(session, job.id, lane=job.lane, payload=merged, delay_seconds=None)
        return str(job.lane)
    if midway and merged.get("mode") != "bootstrap":
        merged["again"] = _again(job.payload.get("again"), "delta", delay)
    held_back = job.reason in HELD_BACK
    # A download that waits in the backfill moves up when a delta needs it; a sync keeps the lane of its mode.
    new_lane = "delta" if "delta" in {lane, job.lane} and merged.get("mode") != "bootstrap" else lane
    await repository.change_job(
        session, job.id, lane=new_lane, payload=merged, delay_seconds=None if held_back else delay
    )
    return new_lane


def _again(asked: dict[str, Any] | None, mode: str | None, delay: float) -> dict[str, Any]:
    """Who wants everything listed anew is not outvoted by who asks for the changes, and the most impatient one counts."""
    if asked is None:
        return {"mode": mode, "delay": delay}
    wanted = "bootstrap" if "bootstrap" in {asked.get("mode"), mode} else mode
    return {"mode": wanted, "delay": min(asked.get("delay") or 0, delay)}


async def enqueue_next(
    session: AsyncSession,
    source: Row[Any],
    job: Row[Any],
    *,
    status: str,
    reason: str,
    interval: float,
    error: str | None = None,
    mode: Mode = "delta",
    lane: str | None = None,
) -> None:
    """Ends a source's job and writes the next one down, in one transaction. Whoever asked meanwhile is served at once."""
    key = f"{job.kind}:{source.id}"
    live = await repository.lock_live_job(session, key)
    again: dict[str, Any] | None = live.payload.get("again") if live is not None else None
    await ledger.finish(session, [{"id": job.id, "status": status, "reason": reason, "error": error}])
    if again is not None:
        interval = min(interval, again.get("delay") or 0)
        mode = "bootstrap" if "bootstrap" in {mode, again.get("mode")} else "delta"
    payload = {"dataSourceId": str(source.id), "reason": "again" if again else "schedule"}
    if job.kind == "sync":
        payload["mode"] = mode
    lane = lane or ("delta" if mode == "delta" else "backfill")
    await _one_job(session, source, job.kind, lane, payload, interval)


async def revive_schedules(session: AsyncSession) -> int:
    """Sources whose job was set aside – it killed its process, or was deleted – are synced again some day."""
    found = await repository.unscheduled_sources(session)
    for data_source_id in found:
        await enqueue_sync(session, data_source_id, reason="revived", delay_seconds=REVIVED_SECONDS)
    return len(found)


async def approve_held(session: AsyncSession, connection_id: UUID, surface: str | None = None) -> int:
    """A person says that the loss is real. The documents go with the sync that follows at once."""
    policy = Policy.model_validate(await ingestion.mandate_policy(session))
    if policy.legal_hold:
        raise LegalHold("The mandate is under legal hold; lift it in the policy before deleting anything.")
    approved = 0
    await connections.share_lock(session, [connection_id])
    for source in await repository.sources_of(session, connection_id):
        if surface is None or source.surface == surface:
            await repository.lock_source(session, source.id)
            approved += await items.release_held(session, source.id)
            await repository.clear_ended_failures(session, source.id)
            await repository.save_held(session, source.id, None)
            await enqueue_sync(session, source.id, reason="deletions approved")
    return approved


async def retry_failure(session: AsyncSession, connection_id: UUID, failure_id: UUID) -> Row[Any] | None:
    """A failed download is downloaded now; what could not even be listed needs a listing; what was fetched is read again."""
    await connections.share_lock(session, [connection_id])
    failure = await repository.hasten_failure(session, connection_id, failure_id)
    if failure is None:
        unread = await repository.find_failure(session, connection_id, failure_id)
        if unread is not None:
            await reindex(session, unread.id)
        return unread
    source = await repository.find_source(session, failure.data_source_id)
    if source is not None and failure.source_kind == "":
        await enqueue_sync(session, source.id, "bootstrap", reason="retry")
    elif source is not None and await _may_run(session, source):
        await request_fetch(session, source, urgent=True)
    return failure
