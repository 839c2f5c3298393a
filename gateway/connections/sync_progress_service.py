"""What can be said about a running sync: found, indexed, skipped, failed, how fast, how long still."""

from collections import defaultdict
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.connections import sync_item_repository as items
from gateway.connections import sync_repository as repository
from gateway.connections.sync_schemas import ProgressOut, SurfaceProgress
from gateway.connections.waiting import waits_for

_LIVE = {"pending", "extracted", "embedding"}


def channel(mandate_id: UUID, connection_id: UUID) -> str:
    """Rings when there is news about a connection; the news itself is in the database."""
    return f"catchment:progress:{mandate_id}:{connection_id}"


async def progress_of(session: AsyncSession, connection_id: UUID) -> ProgressOut:
    sources = await repository.sources_of(session, connection_id)
    counts: dict[UUID, dict[tuple[str, str], int]] = defaultdict(dict)
    for row in await items.count_states(session, connection_id):
        if row.state is not None:
            counts[row.id][row.state, row.document_status] = row.n
    now = datetime.now(UTC)
    surfaces = [_surface(source, counts[source.id], now) for source in sources]
    return ProgressOut(
        connection_id=connection_id,
        done=bool(surfaces) and all(one.done for one in surfaces),
        surfaces=surfaces,
    )


def _surface(source: Row[Any], counts: dict[tuple[str, str], int], now: datetime) -> SurfaceProgress:
    alive = {key: n for key, n in counts.items() if key[0] != "deleted"}
    indexing = sum(n for (state, status), n in alive.items() if state == "handed" and status in _LIVE)
    waiting = sum(n for (state, _), n in alive.items() if state == "pending")
    run = _newest(source.run)
    rate = _rate(run, now)
    listing = source.phase != "delta"
    left = waiting + indexing
    waits = waits_for(source, account=source.account, auto_start=source.auto_start)
    return SurfaceProgress(
        surface=source.surface,
        phase=source.phase,
        found=sum(alive.values()),
        indexed=sum(n for (state, status), n in alive.items() if state == "handed" and status == "indexed"),
        waiting=waiting,
        indexing=indexing,
        skipped=sum(
            n
            for (state, status), n in alive.items()
            if state == "skipped" or (state == "handed" and status == "skipped")
        ),
        failed=sum(
            n
            for (state, status), n in alive.items()
            if state == "failed" or (state == "handed" and status == "failed")
        ),
        held=sum(n for (state, _), n in alive.items() if state == "held"),
        items_per_second=rate,
        # While the listing runs nobody knows how much there is.
        seconds_left=None if listing or rate is None or not rate else round(left / rate),
        last_sync_at=source.last_sync_at,
        last_error=source.last_error,
        waits_for=waits if source.connection_state == "active" else None,
        waits_until=source.waits_until if waits == "vendor" else None,
        done=(not listing and left == 0 and not source.at_work) or waits == "consent",
    )


def _newest(run: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
    return max(run.values(), key=lambda one: one["startedAt"], default=None)


def _rate(run: dict[str, Any] | None, now: datetime) -> float | None:
    if run is None or not run["processed"]:
        return None
    ends = datetime.fromisoformat(run["doneAt"]) if "doneAt" in run else now
    seconds = (ends - datetime.fromisoformat(run["startedAt"])).total_seconds()
    return round(run["processed"] / max(seconds, 0.1), 2)
