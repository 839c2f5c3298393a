"""The console's own SQL: what no other room asks for. Whatever shows a document goes by the corpus' one predicate."""

from collections.abc import Collection, Sequence
from datetime import date, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus.repository import VISIBLE
from gateway.db import tenant_of


async def text_piece(
    session: AsyncSession, document_id: UUID, start: int, length: int
) -> tuple[str, int] | None:
    """Part of a document's kept text, and how long the whole is. Call it only for a document that may be read."""
    row = (
        await session.execute(
            text(
                "SELECT substr(text, :start, :length) AS piece, length(text) AS whole FROM document_text "
                "WHERE mandate_id = :mandate_id AND document_id = :id"
            ),
            {"mandate_id": tenant_of(session), "id": document_id, "start": start + 1, "length": length},
        )
    ).one_or_none()
    return (row.piece, row.whole) if row else None


async def find_chunk(session: AsyncSession, document_id: UUID, chunk_id: UUID) -> Row[Any] | None:
    rows = await session.execute(
        text(
            "SELECT id, ordinal, text, locator, heading_path FROM chunk "
            "WHERE mandate_id = :mandate_id AND document_id = :document_id AND id = :id"
        ),
        {"mandate_id": tenant_of(session), "document_id": document_id, "id": chunk_id},
    )
    return rows.one_or_none()


async def children(session: AsyncSession, document_id: UUID, viewer: UUID) -> Sequence[Row[Any]]:
    rows = await session.execute(
        text(
            f"""
            SELECT d.id, d.title, d.status FROM document d
            WHERE d.mandate_id = :mandate_id AND d.parent_document_id = :id AND {VISIBLE} ORDER BY d.created_at LIMIT 100
            """
        ),
        {"mandate_id": tenant_of(session), "id": document_id, "viewer": viewer},
    )
    return rows.all()


async def citations_since(session: AsyncSession, document_id: UUID, since: datetime) -> int:
    found = await session.execute(
        text(
            "SELECT count(*) FROM citation WHERE mandate_id = :mandate_id AND document_id = :id AND cited_at >= :since"
        ),
        {"mandate_id": tenant_of(session), "id": document_id, "since": since},
    )
    return found.scalar_one()


async def troubles(session: AsyncSession, viewer: UUID, counted: Collection[UUID]) -> Row[Any]:
    """What waits for somebody: documents that failed, and jobs that wait for a larger budget. Of the `counted` connections
    the failed ones are told already.
    """
    rows = await session.execute(
        text(
            f"""
            SELECT (SELECT count(*) FROM (SELECT FROM document d WHERE d.mandate_id = :mandate_id
                       AND d.status = 'failed' AND {VISIBLE}
                       AND (d.data_source_id IS NULL OR d.connection_id IS NULL
                            OR d.connection_id <> ALL(CAST(:counted AS uuid[]))) LIMIT 1000) few) AS failed,
                   (SELECT count(*) FROM job j WHERE j.mandate_id = :mandate_id AND j.reason = 'budget'
                       AND j.status IN ('pending', 'extracted', 'embedding')) AS waiting
            """
        ),
        {"mandate_id": tenant_of(session), "viewer": viewer, "counted": list(counted)},
    )
    return rows.one()


async def queries_by_day(
    session: AsyncSession, since: date, until: date, asker: UUID | None
) -> dict[date, float]:
    rows = await session.execute(
        text(
            """
            SELECT (at AT TIME ZONE 'UTC')::date AS day, count(*) AS queries FROM query_log
            WHERE mandate_id = :mandate_id AND at >= :since AND at < CAST(:until AS date) + 1
              AND (CAST(:asker AS uuid) IS NULL OR user_id = :asker)
            GROUP BY 1
            """
        ),
        {"mandate_id": tenant_of(session), "since": since, "until": until, "asker": asker},
    )
    return {row.day: float(row.queries) for row in rows}


async def connection_ids(session: AsyncSession) -> set[str]:
    rows = await session.execute(
        text("SELECT id FROM connection WHERE mandate_id = :mandate_id"), {"mandate_id": tenant_of(session)}
    )
    return {str(row.id) for row in rows}
