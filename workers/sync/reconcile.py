"""What a finished listing did not name, and the end of documents.

Nothing is deleted by a half-finished listing: absence counts only when every page of one listing generation is committed,
no container failed, and the loss is small. A larger one is held until a person says yes, or the items are seen again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from connectors.kit.contract import Item
from connectors.kit.policy import SyncPolicy
from gateway.connections import sync_absence_repository as absence
from gateway.connections import sync_item_repository as items
from gateway.connections import sync_repository as repository
from gateway.corpus import erasure, erasure_repository
from gateway.corpus.blobs import BlobStore
from gateway.db import Database, emit_on_commit
from gateway.ingestion import repository as ingestion
from gateway.tenancy.schemas import Policy
from workers.sync.fence import fenced
from workers.sync.handover import item_of

BATCH = 200
FEW = 2  # so many documents may end without a question however small the account, unless they are all it has
# A move shows as an end here and a beginning there, in any order: ends are carried out when a round is over, or when the
# round takes longer than this.
PATIENCE_SECONDS = 900.0


# `Surface.left_out` of the surface that was listed.
LeftOut = Callable[[Item], str | None]


@dataclass(frozen=True)
class Verdict:
    deleted: int = 0
    held: int = 0


async def close_listing(
    session: AsyncSession,
    source: Row[Any],
    listing: dict[str, Any],
    left_out: LeftOut,
    policy: SyncPolicy,
    now: datetime,
) -> Verdict:
    """Call in the transaction of a listing's last page."""
    ours = {"connectionId": str(source.connection_id), "part": source.surface}
    generation = source.listing_generation
    if listing.get("failed"):
        emit_on_commit(
            session,
            "ingestion.connection.deletions.held",
            **ours,
            reason="incomplete",
            containers=len(listing["failed"]),
        )
        return Verdict()
    containers = None if listing.get("full") else list(listing.get("complete", ()))
    await _leave_out(session, source, generation, containers, left_out)
    known, absent = await absence.count_absent(session, source.id, generation, containers)
    hold = is_large(absent, known, policy)
    marked = await absence.mark_absent(
        session, source.id, generation, containers, state="held" if hold else "deleted"
    )
    await repository.clear_ended_failures(session, source.id)
    if hold:
        await hold_loss(session, source, absent, known, now, reason="loss_limit")
        return Verdict(marked - absent, absent)
    return Verdict(marked, 0)


def is_large(lost: int, known: int, policy: SyncPolicy) -> bool:
    """Whether a person has to be asked before so many of so many documents end."""
    few = lost <= FEW and lost < known and policy.loss_limit_percent > 0
    return bool(known) and 100 * lost / known > policy.loss_limit_percent and not few


async def hold_loss(
    session: AsyncSession, source: Row[Any], lost: int, known: int, now: datetime, *, reason: str
) -> None:
    """Says what waits for a person."""
    percent = round(100 * lost / known, 1)
    await repository.save_held(
        session,
        source.id,
        {"count": lost, "known": known, "percent": percent, "since": now.isoformat()},
    )
    emit_on_commit(
        session,
        "ingestion.connection.deletions.held",
        connectionId=str(source.connection_id),
        part=source.surface,
        reason=reason,
        held=lost,
        known=known,
        percent=percent,
    )


async def recount_held(session: AsyncSession, data_source_id: UUID) -> None:
    """At the end of a round: some of what was held may have been seen again, ended for certain, or got company."""
    source = await repository.find_source(session, data_source_id)
    if source is None or source.held is None:
        return
    count = await absence.count_held(session, data_source_id)
    if count == 0:
        await repository.save_held(session, data_source_id, None)
    elif count != source.held["count"]:
        known = max(count, source.held["known"])
        told = {"count": count, "known": known, "percent": round(100 * count / known, 1)}
        await repository.save_held(session, data_source_id, source.held | told)


async def _leave_out(
    session: AsyncSession,
    source: Row[Any],
    generation: int,
    containers: list[str] | None,
    left_out: LeftOut,
) -> None:
    """A window that became shorter, a tier that was lowered, a library that is no longer wanted: what a listing does not name
    for such a reason is no loss, and nobody has to be asked.
    """
    after = ""
    while True:
        rows = await absence.absent_items(
            session, source.id, generation, containers, after=after, limit=BATCH
        )
        reasons = [(row.external_id, left_out(item_of(row))) for row in rows]
        told = [{"external_id": one, "reason": reason} for one, reason in reasons if reason is not None]
        if told:
            await absence.leave_out(session, source.id, generation, told)
        if len(rows) < BATCH:
            return
        after = rows[-1].external_id


async def bury(
    db: Database, blobs: BlobStore, mandate_id: UUID, job: Row[Any], *, older_than_seconds: float = 0
) -> int:
    """Erases the documents of ended items, batch by batch; what is left after a crash is found by the next run."""
    buried = 0
    while True:
        async with fenced(db, mandate_id, job) as (session, source):
            policy = Policy.model_validate(await ingestion.mandate_policy(session))
            if policy.legal_hold:
                return buried  # they wait until it is lifted
            doomed = await items.lock_doomed(
                session, source.id, older_than_seconds=older_than_seconds, limit=BATCH
            )
            if not doomed:
                return buried
            families = await erasure_repository.lock_families(session, [row.document_id for row in doomed])
            documents = {row.document_id for row in doomed} | {row.id for row in families}
            await items.forget_documents(session, sorted(documents))
            await erasure.erase_families(session, blobs, families)
            buried += len(doomed)
