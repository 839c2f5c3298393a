"""Finding and deleting what an erasure covers, batch by batch."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import tenant_of

# Which documents a subject covers. Children go with their parents.
_COVERS = {
    "document": "id = CAST(:subject_id AS uuid) OR parent_document_id = CAST(:subject_id AS uuid)",
    "user": "user_id = CAST(:subject_id AS uuid)",
    "source": "data_source_id = CAST(:subject_id AS uuid)",
    "connection": "connection_id = CAST(:subject_id AS uuid)",
    "mandate": "mandate_id = CAST(:subject_id AS uuid)",
}


async def lock_batch(session: AsyncSession, subject: str, subject_id: str, limit: int) -> list[Row[Any]]:
    rows = await session.execute(
        text(
            f"SELECT id, blob_sha256 FROM document WHERE mandate_id = :mandate_id AND ({_COVERS[subject]}) "
            "ORDER BY id LIMIT :limit FOR UPDATE"
        ),
        {"mandate_id": tenant_of(session), "subject_id": subject_id, "limit": limit},
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


async def open_receipt(
    session: AsyncSession, receipt_id: UUID, subject: str, subject_id: str, reason: str
) -> None:
    await session.execute(
        text(
            "INSERT INTO receipt (mandate_id, id, subject, subject_id, status, reason) "
            "VALUES (:mandate_id, :id, :subject, :subject_id, 'running', :reason)"
        ),
        {
            "mandate_id": tenant_of(session),
            "id": receipt_id,
            "subject": subject,
            "subject_id": subject_id,
            "reason": reason,
        },
    )


async def running_receipt(session: AsyncSession, subject: str, subject_id: str) -> UUID | None:
    return await session.scalar(
        text(
            "SELECT id FROM receipt WHERE subject = :subject AND subject_id = :subject_id AND status = 'running'"
        ),
        {"subject": subject, "subject_id": subject_id},
    )


async def find_receipt(session: AsyncSession, receipt_id: UUID) -> Row[Any] | None:
    return (
        await session.execute(text("SELECT * FROM receipt WHERE id = :id"), {"id": receipt_id})
    ).one_or_none()


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


async def connections_of(session: AsyncSession, subject: str, subject_id: str) -> list[UUID]:
    """Connections whose fence an erasure of a user or of the whole mandate must close first."""
    owner = {"user": "user_id = CAST(:subject_id AS uuid)", "mandate": "true"}[subject]
    rows = await session.scalars(
        text(f"SELECT id FROM connection WHERE state <> 'revoked' AND {owner} ORDER BY id"),
        {"subject_id": subject_id},
    )
    return list(rows)
