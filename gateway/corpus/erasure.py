"""Erasure: everything that came with a document, user, source, connection or mandate goes, and a receipt counts it.

It runs batch by batch; each batch and its counts commit together, so a crash resumes where it stopped and the receipt
still equals what was there. A connection is fenced first: from that commit on nothing can be written for it. Documents
whose time is over (`retentionDays` of the policy) go the same way, counted by an event instead of a receipt.
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gateway.connections import purge_repository
from gateway.connections import repository as connections
from gateway.corpus import blob_repository, chunk_repository, lexicon, vector_repository
from gateway.corpus import erasure_repository as repository
from gateway.corpus.blobs import BlobStore
from gateway.crashpoints import crash_point
from gateway.db import Database, emit_on_commit, new_id
from gateway.errors import LegalHold, NotFound
from gateway.ingestion import repository as ingestion
from gateway.insights import repository as insights
from gateway.logs import emit
from gateway.tenancy.hold_repository import under_hold
from gateway.tenancy.schemas import Policy

Subject = Literal["document", "user", "source", "connection", "mandate"]
BATCH = 200
REVIVED_SECONDS = 600  # after its job was set aside
_ENDS_CONNECTIONS = {"user", "connection", "mandate"}


async def begin_erasure(
    session: AsyncSession, subject: Subject, subject_id: str, reason: str, *, patient: bool = False
) -> UUID:
    """Closes the fences and opens the receipt, in the caller's transaction. The rest may run now or in a worker.

    A second request while one is running joins it. An unknown connection erases nothing. A legal hold refuses; `patient`:
    the erasure waits for its end.
    """
    policy = Policy.model_validate(await ingestion.mandate_policy(session))
    if policy.legal_hold and not patient:
        raise LegalHold("The mandate is under legal hold; lift it in the policy before erasing anything.")
    if subject == "connection":
        if not subject_id or await connections.revoke(session, UUID(subject_id)) is None:
            raise NotFound(f"There is no connection {subject_id!r}; nothing was erased.")
    elif subject in {"user", "mandate"}:
        for connection_id in await repository.connections_of(session, subject, subject_id):
            await connections.revoke(session, connection_id)
    running = await repository.running_receipt(session, subject, subject_id)
    if running is not None:
        return running
    receipt_id = new_id()
    # First of all: what was taken in meanwhile is found among the documents.
    counts = await _withdraw(session, subject, subject_id)
    await repository.open_receipt(session, receipt_id, subject, subject_id, reason, counts)
    return receipt_id


async def enqueue_erasure(session: AsyncSession, receipt_id: UUID) -> None:
    """Hands a begun erasure to the workers; who joined one that runs finds it handed over already."""
    key = f"erase:{receipt_id}"
    if not await ingestion.has_live_job(session, key):
        job = {"id": new_id(), "kind": "erase", "lane": "interactive", "dedupe_key": key}
        await ingestion.insert_jobs(session, [job | {"payload": {"receiptId": str(receipt_id)}}])
    await ingestion.ring_on_commit(session, [{"id": new_id(), "topic": "bell", "lane": "interactive"}])


async def revive_erasures(session: AsyncSession) -> int:
    """What was promised is tried again until it is done, whatever became of its job."""
    forsaken = await repository.forsaken_receipts(session, REVIVED_SECONDS)
    for receipt_id in forsaken:
        await enqueue_erasure(session, receipt_id)
    return len(forsaken)


async def take_back(session: AsyncSession, document_ids: Sequence[UUID], reason: str) -> None:
    """Erasures of these for that reason that have not begun: the reason has gone."""
    if not document_ids:
        return
    for receipt_id in await repository.drop_receipts(session, document_ids, reason):
        await ingestion.drop_live_job(session, f"erase:{receipt_id}")


async def finish_erasure(
    db: Database, blobs: BlobStore, mandate_id: UUID, receipt_id: UUID
) -> dict[str, int]:
    """Runs a begun erasure to its end; safe to call again after a crash. A legal hold that comes in between stops it between
    two batches.
    """
    began = time.monotonic()
    while True:
        async with db.tenant_session(mandate_id) as session:
            held = await under_hold(session)
            receipt = await repository.lock_receipt(session, receipt_id)
            if receipt is None:
                raise NotFound(f"There is no receipt {receipt_id}.")
            counts: dict[str, int] = dict(receipt.counts)
            if receipt.status == "done":
                return counts
            if held:
                raise LegalHold(
                    "The mandate is under legal hold since this erasure began; it goes on when the hold is lifted in the policy. "
                    f"GET /v1/receipts/{receipt_id} says how far it is."
                )
            batch = await repository.lock_batch(session, receipt.subject, receipt.subject_id, BATCH)
            if batch:
                erased = await _erase(session, blobs, batch)
                if receipt.subject in _ENDS_CONNECTIONS:
                    del erased["remote_item"]  # they go with their connection, and are counted then
                _add(counts, erased)
            else:
                _add(counts, await _forget(session, blobs, receipt.subject, receipt.subject_id))
            await repository.update_receipt(session, receipt_id, counts, done=not batch)
            if not batch:
                _announce(session, receipt, counts, round((time.monotonic() - began) * 1000))
                return counts
        crash_point("erase.between_batches")


async def erase_families(session: AsyncSession, blobs: BlobStore, batch: Sequence[Any]) -> dict[str, int]:
    """Erases what `lock_families` found, in the caller's transaction: it ended at its source, and an event each says so."""
    if not batch:
        return {}
    counts = await _erase(session, blobs, batch)
    for row in batch:
        emit_on_commit(
            session,
            "ingestion.deleted",
            mandateId=str(session.info["mandate_id"]),
            documentId=str(row.id),
            chunks=row.chunk_count,
        )
    return counts


async def _erase(session: AsyncSession, blobs: BlobStore, batch: Sequence[Any]) -> dict[str, int]:
    ids = [row.id for row in batch]
    chunks = await repository.chunks_of(session, ids)
    await lexicon.take_out(session, [chunk.id for chunk in chunks])
    counts = await insights.forget_documents(session, ids)
    counts["remote_item"] = await repository.blank_items(session, ids)
    counts |= await repository.delete_documents(session, ids)
    counts["vector"] = await vector_repository.collect(
        session, sorted({chunk.text_hash for chunk in chunks}), limit=len(chunks) * 4 + 1
    )
    digests = sorted({digest for row in batch for digest in row.originals})
    counts["blob"] = await _delete_blobs(session, blobs, digests)
    return counts


async def _delete_blobs(session: AsyncSession, blobs: BlobStore, digests: list[bytes]) -> int:
    gone = await blob_repository.delete_unreferenced(session, digests, older_than_seconds=0)
    await blobs.delete_objects(session.info["mandate_id"], [digest for digest, in_store in gone if in_store])
    return len(gone)


async def _withdraw(session: AsyncSession, subject: str, subject_id: str) -> dict[str, int]:
    """What is on its way in: it must not arrive after the rest has gone."""
    if subject not in {"user", "mandate"}:
        return {}
    return {"event": await repository.withdraw_events(session, _user(subject, subject_id))}


async def _forget(session: AsyncSession, blobs: BlobStore, subject: str, subject_id: str) -> dict[str, int]:
    """What speaks of the subject without hanging on one of its documents."""
    if subject == "document":
        return {}
    if subject == "connection":
        counts = await _forget_connection(session, UUID(subject_id))
    elif subject == "source":
        counts = await repository.forget_items(session, UUID(subject_id))
    else:
        counts = await _forget_people(session, blobs, subject, subject_id)
    # Left behind by processes that died before they could say for whom they worked.
    counts["vector"] = await vector_repository.collect(session, None)
    return counts


async def _forget_people(
    session: AsyncSession, blobs: BlobStore, subject: str, subject_id: str
) -> dict[str, int]:
    """Of a user, or of everybody in the mandate."""
    if subject == "user":
        counts = await insights.forget_user(session, UUID(subject_id))
        counts["account"] = await repository.delete_departed_user(session, UUID(subject_id))
    else:
        counts = await insights.forget_all(session)
    for connection_id in await repository.connections_of(session, subject, subject_id, revoked=True):
        _add(counts, await _forget_connection(session, connection_id))
    _add(counts, await _withdraw(session, subject, subject_id))
    uploads = await repository.withdraw_uploads(session, _user(subject, subject_id))
    _add(counts, {"upload": len(uploads), "blob": await _delete_blobs(session, blobs, sorted(set(uploads)))})
    counts["object"] = await blobs.collect_orphans(session)
    return counts


async def _forget_connection(session: AsyncSession, connection_id: UUID) -> dict[str, int]:
    await chunk_repository.drop_segments_of(session, connection_id)
    counts = await insights.forget_connection(session, connection_id)
    return counts | await purge_repository.purge(session, connection_id)


def _user(subject: str, subject_id: str) -> UUID | None:
    return UUID(subject_id) if subject == "user" else None


async def expire_documents(db: Database, blobs: BlobStore, mandate_id: UUID) -> int:
    """Erases documents that are older than the policy allows for their kind; under legal hold nothing goes."""
    async with db.tenant_session(mandate_id) as session:
        policy = Policy.model_validate(await ingestion.mandate_policy(session))
    gone = 0
    for source_kind, days in sorted(policy.retention_days.items()):
        counts: dict[str, int] = {}
        while True:
            async with db.tenant_session(mandate_id) as session:
                if await under_hold(session):
                    break
                before = datetime.now(UTC) - timedelta(days=days)
                batch = await repository.lock_outlived(session, source_kind, before, BATCH)
                if not batch:
                    break
                _add(counts, await _erase(session, blobs, batch))
        if counts:
            gone += counts["document"]
            emit(
                "ingestion.retention.done",
                mandateId=str(mandate_id),
                sourceKind=source_kind,
                documents=counts["document"],
                chunks=counts["chunk"],
            )
    return gone


def _add(counts: dict[str, int], more: dict[str, int]) -> None:
    for store, count in more.items():
        counts[store] = counts.get(store, 0) + count


def _announce(session: AsyncSession, receipt: Any, counts: dict[str, int], duration_ms: int) -> None:
    emit_on_commit(
        session,
        "ingestion.erased",
        mandateId=str(session.info["mandate_id"]),
        receiptId=str(receipt.id),
        subject=receipt.subject,
        documents=counts.get("document", 0),
        chunks=counts.get("chunk", 0),
        durationMs=duration_ms,
    )
    if receipt.subject == "connection":
        emit_on_commit(
            session,
            "ingestion.connection.purged",
            connectionId=receipt.subject_id,
            authority=receipt.reason.rpartition(":")[2] or "unknown",
            reason=receipt.reason.rpartition(":")[0],
            indexRows=counts.get("document", 0),
            chunks=counts.get("chunk", 0),
        )
