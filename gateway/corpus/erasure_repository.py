"""Finding and deleting what an erasure or the end of its time covers, batch by batch."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import tenant_of

# Which documents a subject covers. Children go with their parents, so a subject need not name them; but one whose parent
# went a moment ago is still found.
_COVERS = {
    "document": "id = CAST(:subject_id AS uuid) OR parent_document_id = CAST(:subject_id AS uuid)",
    "user": (
        "user_id = CAST(:subject_id AS uuid) OR connection_id IN (SELECT c.id FROM connection c "
        "WHERE c.mandate_id = :mandate_id AND c.user_id = CAST(:subject_id AS uuid))"
    ),
    "source": "data_source_id = CAST(:subject_id AS uuid)",
    "connection": "connection_id = CAST(:subject_id AS uuid)",
    "mandate": "mandate_id = CAST(:subject_id AS uuid)",
}


# Up to :limit documents, and every attachment of an attachment that hangs on one of them.
_FAMILIES = """
WITH RECURSIVE family AS (
    (SELECT id FROM document WHERE mandate_id = :mandate_id AND ({condition}) ORDER BY id LIMIT :limit)
    UNION
    SELECT d.id FROM document d JOIN family f ON d.parent_document_id = f.id WHERE d.mandate_id = :mandate_id
)
SELECT id, chunk_count, blob_sha256 || ARRAY(SELECT f.sha256 FROM former_original f
    WHERE f.mandate_id = d.mandate_id AND f.document_id = d.id) AS originals
FROM document d WHERE mandate_id = :mandate_id AND id IN (SELECT id FROM family)
ORDER BY id FOR UPDATE
"""


async def lock_batch(session: AsyncSession, subject: str, subject_id: str, limit: int) -> list[Row[Any]]:
    rows = await session.execute(
        text(_FAMILIES.format(condition=_COVERS[subject])),
        {"mandate_id": tenant_of(session), "subject_id": subject_id, "limit": limit},
    )
    return list(rows)


async def lock_outlived(
    session: AsyncSession, source_kind: str, before: datetime, limit: int
) -> list[Row[Any]]:
    """Documents of a kind that came in before then."""
    rows = await session.execute(
        text(_FAMILIES.format(condition="source_kind = :source_kind AND created_at < :before")),
        {
            "mandate_id": tenant_of(session),
            "source_kind": source_kind,
            "before": before,
            "limit": limit,
        },
    )
    return list(rows)


async def lock_families(session: AsyncSession, document_ids: Sequence[UUID]) -> list[Row[Any]]:
    """These documents and every attachment of an attachment that hangs on one of them."""
    rows = await session.execute(
        text(_FAMILIES.format(condition="id = ANY(:ids)")),
        {"mandate_id": tenant_of(session), "ids": list(document_ids), "limit": len(document_ids)},
    )
    return list(rows)


async def chunks_of(session: AsyncSession, document_ids: Sequence[UUID]) -> list[Row[Any]]:
    rows = await session.execute(
        text("SELECT id, text_hash FROM chunk WHERE mandate_id = :mandate_id AND document_id = ANY(:ids)"),
        {"mandate_id": tenant_of(session), "ids": list(document_ids)},
    )
    return list(rows)


async def delete_documents(session: AsyncSession, document_ids: Sequence[UUID]) -> dict[str, int]:
    """Rows of each store that go with these documents. Jobs go too, so no worker can write for them any more."""
    parameters = {"mandate_id": tenant_of(session), "ids": list(document_ids)}
    counts: dict[str, int] = {}
    # Lock order of the house: document (held by the caller), then job; the rest hangs on the document.
    for store in ("job", "timeline", "chunk", "document_text"):
        done = await session.execute(
            text(f"DELETE FROM {store} WHERE mandate_id = :mandate_id AND document_id = ANY(:ids)"),
            parameters,
        )
        counts[store] = done.rowcount  # pyright: ignore[reportAttributeAccessIssue]
    done = await session.execute(
        text("DELETE FROM document WHERE mandate_id = :mandate_id AND id = ANY(:ids)"), parameters
    )
    counts["document"] = done.rowcount  # pyright: ignore[reportAttributeAccessIssue]
    return counts


# What stays of an item that was erased: that there was something, so that it does not come back; not what it was.
_BLANK = (
    "name = '', path = '', uri = NULL, metadata = '{}', handle = '{}', document_id = NULL, reason = 'erased'"
)


async def blank_items(session: AsyncSession, document_ids: Sequence[UUID]) -> int:
    """In the ledger of what a vendor listed; how many there were."""
    done = await session.execute(
        text(
            f"UPDATE remote_item SET {_BLANK}, state = CASE WHEN state = 'deleted' THEN state ELSE 'skipped' END "
            "WHERE mandate_id = :mandate_id AND document_id = ANY(:ids)"
        ),
        {"mandate_id": tenant_of(session), "ids": list(document_ids)},
    )
    return int(done.rowcount)  # pyright: ignore[reportAttributeAccessIssue]


async def open_receipt(
    session: AsyncSession,
    receipt_id: UUID,
    subject: str,
    subject_id: str,
    reason: str,
    counts: dict[str, int],
) -> None:
    await session.execute(
        text(
            "INSERT INTO receipt (mandate_id, id, subject, subject_id, status, reason, counts) "
            "VALUES (:mandate_id, :id, :subject, :subject_id, 'running', :reason, CAST(:counts AS jsonb))"
        ),
        {
            "mandate_id": tenant_of(session),
            "id": receipt_id,
            "subject": subject,
            "subject_id": subject_id,
            "reason": reason,
            "counts": orjson.dumps(counts).decode(),
        },
    )


async def running_receipt(session: AsyncSession, subject: str, subject_id: str) -> UUID | None:
    """Who asks next waits for this transaction, so that two at the same moment have one receipt."""
    await session.execute(
        text(
            "SELECT pg_advisory_xact_lock(hashtextextended("
            "CAST(:mandate_id AS text) || 'receipt' || :subject || CAST(:subject_id AS text), 0))"
        ),
        {"mandate_id": tenant_of(session), "subject": subject, "subject_id": subject_id},
    )
    return await session.scalar(
        text(
            "SELECT id FROM receipt WHERE subject = :subject AND subject_id = :subject_id AND status = 'running'"
        ),
        {"subject": subject, "subject_id": subject_id},
    )


async def forsaken_receipts(session: AsyncSession, quiet_seconds: float) -> list[UUID]:
    """Erasures nobody is at work for, and nobody was of late: their job killed its process, or gave up."""
    rows = await session.scalars(
        text(
            "SELECT id FROM receipt r WHERE mandate_id = :mandate_id AND status = 'running' "
            "AND created_at < now() - make_interval(secs => :quiet) AND NOT EXISTS (SELECT FROM job j "
            "WHERE j.mandate_id = r.mandate_id AND j.dedupe_key = 'erase:' || r.id "
            "AND (j.finished_at IS NULL OR j.finished_at > now() - make_interval(secs => :quiet)))"
        ),
        {"mandate_id": tenant_of(session), "quiet": quiet_seconds},
    )
    return list(rows)


async def drop_receipts(session: AsyncSession, document_ids: Sequence[UUID], reason: str) -> list[UUID]:
    """Of erasures of these documents that wait; one that is at work is let be."""
    rows = await session.scalars(
        text(
            "DELETE FROM receipt WHERE mandate_id = :mandate_id AND id IN (SELECT id FROM receipt "
            "WHERE mandate_id = :mandate_id AND subject = 'document' AND subject_id = ANY(:ids) AND status = 'running' "
            "AND reason = :reason ORDER BY id FOR UPDATE SKIP LOCKED) RETURNING id"
        ),
        {"mandate_id": tenant_of(session), "ids": [str(one) for one in document_ids], "reason": reason},
    )
    return list(rows)


async def find_receipt(session: AsyncSession, receipt_id: UUID) -> Row[Any] | None:
    """`held`: a legal hold that came after it keeps it from going on."""
    rows = await session.execute(
        text(
            "SELECT r.*, r.status = 'running' AND coalesce(CAST(m.policy->>'legalHold' AS boolean), false) AS held "
            "FROM receipt r JOIN mandate m ON m.mandate_id = r.mandate_id WHERE r.id = :id"
        ),
        {"id": receipt_id},
    )
    return rows.one_or_none()


async def lock_receipt(session: AsyncSession, receipt_id: UUID) -> Row[Any] | None:
    return (
        await session.execute(text("SELECT * FROM receipt WHERE id = :id FOR UPDATE"), {"id": receipt_id})
    ).one_or_none()


async def update_receipt(
    session: AsyncSession, receipt_id: UUID, counts: dict[str, int], *, done: bool
) -> None:
    await session.execute(
        text(
            "UPDATE receipt SET counts = CAST(:counts AS jsonb), status = CASE WHEN :done THEN 'done' ELSE status END, "
            "finished_at = CASE WHEN :done THEN now() ELSE finished_at END WHERE id = :id"
        ),
        {"id": receipt_id, "counts": orjson.dumps(counts).decode(), "done": done},
    )


async def connections_of(
    session: AsyncSession, subject: str, subject_id: str, *, revoked: bool = False
) -> list[UUID]:
    """Connections whose fence an erasure of a user or of the whole mandate must close first; or those it has closed."""
    owner = {"user": "user_id = CAST(:subject_id AS uuid)", "mandate": "true"}[subject]
    state = "state = 'revoked' AND purged_at IS NULL" if revoked else "state <> 'revoked'"
    rows = await session.scalars(
        text(f"SELECT id FROM connection WHERE {state} AND {owner} ORDER BY id"),
        {"subject_id": subject_id},
    )
    return list(rows)


# -- what speaks of a subject without hanging on a document


async def withdraw_events(session: AsyncSession, user_id: UUID | None) -> int:
    """Content that waits in the outbox to be taken in, or to be said of somebody; of one user, or of everybody."""
    done = await session.execute(
        text(
            "DELETE FROM outbox WHERE mandate_id = :mandate_id AND topic = 'event' "
            "AND payload->>'type' IN ('FileCommitted', 'ProfileUpdated', 'FeatureConfigChanged') "
            "AND (CAST(:user_id AS text) IS NULL OR payload->'payload'->>'userId' = :user_id)"
        ),
        {"mandate_id": tenant_of(session), "user_id": str(user_id) if user_id else None},
    )
    return int(done.rowcount)  # pyright: ignore[reportAttributeAccessIssue]


async def withdraw_uploads(session: AsyncSession, user_id: UUID | None) -> list[bytes]:
    """Forgets who uploaded what; a hash for each of the notes."""
    rows = await session.scalars(
        text(
            "DELETE FROM blob_upload WHERE mandate_id = :mandate_id "
            "AND (CAST(:principal AS text) IS NULL OR principal = :principal) RETURNING sha256"
        ),
        {"mandate_id": tenant_of(session), "principal": f"user:{user_id}" if user_id else None},
    )
    return list(rows)


async def forget_items(session: AsyncSession, data_source_id: UUID) -> dict[str, int]:
    """What else was listed of a source, and what failed there. The source lives on: what was listed stays away."""
    counts = {"remote_item": 0, "item_failure": 0}
    of_source = "WHERE mandate_id = :mandate_id AND data_source_id = :source"
    for store, statement in (
        ("remote_item", f"DELETE FROM remote_item {of_source} AND state IN ('folder', 'deleted')"),
        (
            "remote_item",
            f"UPDATE remote_item SET {_BLANK}, state = 'skipped' {of_source} AND reason IS DISTINCT FROM 'erased'",
        ),
        ("item_failure", f"DELETE FROM item_failure {of_source}"),
    ):
        done = await session.execute(
            text(statement), {"mandate_id": tenant_of(session), "source": data_source_id}
        )
        counts[store] += done.rowcount  # pyright: ignore[reportAttributeAccessIssue]
    return counts


async def delete_departed_user(session: AsyncSession, user_id: UUID) -> int:
    """The account of somebody who is no member any more. A member keeps theirs until an admin removes them."""
    done = await session.execute(
        text(
            'DELETE FROM "user" u WHERE mandate_id = :mandate_id AND id = :user_id AND NOT EXISTS '
            "(SELECT FROM membership m WHERE m.mandate_id = u.mandate_id AND m.user_id = u.id)"
        ),
        {"mandate_id": tenant_of(session), "user_id": user_id},
    )
    return int(done.rowcount)  # pyright: ignore[reportAttributeAccessIssue]
