"""How far a first sync or a delta is: counted in the data source, told in the log every 50 items, rung in Redis.

A bootstrap and the deltas beside it are counted apart; a count ends when everything that was found has been handed over.
"""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from redis.asyncio import Redis
from redis.exceptions import RedisError
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.connections import sync_item_repository as items
from gateway.connections import sync_repository as repository
from gateway.connections.sync_progress_service import channel
from gateway.db import emit_on_commit
from gateway.logs import emit

EVERY = 50


@dataclass
class Tally:
    """What happened to items in one transaction. `processed` are those about which nothing is left to do here."""

    processed: int = 0
    indexed: int = 0
    skipped_dup: int = 0
    skipped_policy: int = 0
    failed: int = 0
    deleted: int = 0
    held: int = 0
    attachments_indexed: int = 0

    def add(self, other: "Tally") -> None:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


_KEYS = {
    "processed": "processed",
    "indexed": "indexed",
    "skipped_dup": "skippedDup",
    "skipped_policy": "skippedPolicy",
    "failed": "failed",
    "deleted": "deleted",
    "held": "held",
    "attachments_indexed": "attachmentsIndexed",
}
assert set(_KEYS) == {field.name for field in fields(Tally)}  # noqa: S101 - a counter nobody would see


async def count(
    session: AsyncSession,
    source: Row[Any],
    run: dict[str, Any],
    mode: str,
    tally: Tally,
    now: datetime,
    *,
    listed: bool = False,
) -> dict[str, Any]:
    """Adds to the run of this mode and ends the runs that are over. Returns what is now stored."""
    ours = {"connectionId": str(source.connection_id), "part": source.surface}
    current: dict[str, Any] | None = run.get(mode)
    if current is None or "doneAt" in current:
        current = dict.fromkeys(_KEYS.values(), 0) | {"startedAt": now.isoformat(), "listed": False}
        _announce(session, mode, "started", ours)
    before = current["processed"]
    current |= {key: current.get(key, 0) + getattr(tally, name) for name, key in _KEYS.items()}
    current["listed"] = current["listed"] or listed
    if before // EVERY < current["processed"] // EVERY:
        told = {key: current[key] for key in ("processed", "skippedDup", "failed")}
        _announce(session, mode, "progress", ours | told | {"durationMs": _duration(current, now)})
    run = run | {mode: current}
    if any(part["listed"] and "doneAt" not in part for part in run.values()):
        pending = await items.count_pending(session, source.id)
        for name, urgent in (("bootstrap", False), ("delta", True)):
            part = run.get(name)
            if part and part["listed"] and "doneAt" not in part and not pending.get(urgent):
                run[name] = part | {"doneAt": now.isoformat(), "seconds": _duration(part, now) / 1000}
                told = {key: part[key] for key in _KEYS.values() if key != "processed"}
                _announce(session, name, "done", ours | told | {"durationMs": _duration(part, now)})
    await repository.save_run(session, source.id, run)
    return run


def _duration(run: dict[str, Any], now: datetime) -> int:
    return max(0, round((now - datetime.fromisoformat(run["startedAt"])).total_seconds() * 1000))


def _announce(session: AsyncSession, mode: str, what: str, told: dict[str, Any]) -> None:
    if mode == "bootstrap":
        if what == "started":
            emit_on_commit(session, "ingestion.connection.bootstrap.started", **told)
        elif what == "progress":
            emit_on_commit(session, "ingestion.connection.bootstrap.progress", **told)
        else:
            emit_on_commit(session, "ingestion.connection.bootstrap.done", **told)
    elif what == "started":
        emit_on_commit(session, "ingestion.connection.delta.started", **told)
    elif what == "progress":
        emit_on_commit(session, "ingestion.connection.delta.progress", **told)
    else:
        emit_on_commit(session, "ingestion.connection.delta.done", **told)


class Bulletin:
    """Tells who watches that there is news; what it is they read from the database."""

    def __init__(self, redis: Redis | None) -> None:
        self._redis = redis

    async def ring(self, mandate_id: UUID, connection_id: UUID) -> None:
        if self._redis is None:
            return
        try:
            await self._redis.publish(channel(mandate_id, connection_id), b"1")
        except (RedisError, OSError) as error:
            # Nobody waits for it: watchers look by themselves as well.
            emit("house.store.unavailable", component="progress", error=type(error).__name__)
