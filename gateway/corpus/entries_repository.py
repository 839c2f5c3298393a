"""The entries browser's SQL: documents that people write or curate, under one filter for rows and totals alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus.repository import VISIBLE
from gateway.db import tenant_of

# What the browser shows: hand-written entries, and what managed sources and uploads bring under the name of their kind.
MANAGED = {"web_page": "url_crawl", "upload": "file_upload", "mcp_resource": "mcp", "repo_file": "repo"}
WRITTEN = ("entry", "paste")
KINDS = (*WRITTEN, *MANAGED)

_SOURCE_TYPE = (
    "CASE d.source_kind "
    + " ".join(f"WHEN '{kind}' THEN '{name}'" for kind, name in MANAGED.items())
    + " ".join(f" WHEN '{kind}' THEN coalesce(d.type, 'note')" for kind in WRITTEN)
    + " ELSE d.source_kind END"
)
_EMBEDDING_STATUS = """
CASE WHEN d.status = 'indexed' THEN 'ready' WHEN d.status IN ('failed', 'skipped', 'cancelled') THEN 'error'
     ELSE 'pending' END
"""
_SHOWN = f"""
d.*, {_SOURCE_TYPE} AS source_type, {_EMBEDDING_STATUS} AS embedding_status,
(SELECT count(*) FROM citation n WHERE n.mandate_id = d.mandate_id AND n.document_id = d.id
    AND n.cited_at >= now() - interval '30 days') AS cites30d
"""
_FILTER = f"""
d.mandate_id = :mandate_id AND d.source_kind = ANY(:kinds) AND {VISIBLE}
AND (CAST(:q AS text) IS NULL OR strpos(lower(d.title), lower(:q)) > 0 OR d.id IN (
    SELECT c.document_id FROM chunk c WHERE c.mandate_id = :mandate_id AND c.number = ANY(CAST(:numbers AS bigint[]))))
AND (CAST(:source_type AS text) IS NULL OR {_SOURCE_TYPE} = :source_type)
AND (CAST(:embedding_status AS text) IS NULL OR {_EMBEDDING_STATUS} = :embedding_status)
AND (CAST(:connection_id AS uuid) IS NULL OR d.connection_id = :connection_id)
AND (CAST(:since AS timestamptz) IS NULL OR d.created_at >= :since)
AND (CAST(:until AS timestamptz) IS NULL OR d.created_at < :until)
"""


@dataclass(frozen=True)
class EntryFilter:
    """`numbers` are the chunks that hold the words of `q`."""

    q: str | None = None
    numbers: Sequence[int] = ()
    source_type: str | None = None
    embedding_status: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    kinds: Sequence[str] = KINDS  # the console's browser shows what connections bring, too
    connection_id: UUID | None = None

    def values(self) -> dict[str, Any]:
        return {**vars(self), "numbers": list(self.numbers), "kinds": list(self.kinds)}


async def list_entries(
    session: AsyncSession,
    viewer: UUID | None,
    wanted: EntryFilter,
    *,
    limit: int,
    after: tuple[datetime, UUID] | None,
) -> list[Row[Any]]:
    rows = await session.execute(
        text(
            f"""
            SELECT {_SHOWN} FROM document d
            WHERE {_FILTER} AND (CAST(:at AS timestamptz) IS NULL OR (d.created_at, d.id) < (:at, CAST(:id AS uuid)))
            ORDER BY d.created_at DESC, d.id DESC LIMIT :limit
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "viewer": viewer,
            **wanted.values(),
            "limit": limit,
            "at": after and after[0],
            "id": after and after[1],
        },
    )
    return list(rows)


async def count_entries(session: AsyncSession, viewer: UUID | None, wanted: EntryFilter) -> Row[Any]:
    rows = await session.execute(
        text(
            f"""
            SELECT count(*) AS total, count(*) FILTER (WHERE status = 'ready') AS ready,
                   count(*) FILTER (WHERE status = 'pending') AS pending,
                   count(*) FILTER (WHERE status = 'error') AS error
            FROM (SELECT {_EMBEDDING_STATUS} AS status FROM document d WHERE {_FILTER}) found
            """
        ),
        {"mandate_id": tenant_of(session), "viewer": viewer, **wanted.values()},
    )
    return rows.one()


async def find_entry(session: AsyncSession, entry_id: UUID, viewer: UUID | None) -> Row[Any] | None:
    rows = await session.execute(
        text(
            f"""
            SELECT {_SHOWN}, t.text AS kept_text FROM document d
            LEFT JOIN document_text t ON t.mandate_id = d.mandate_id AND t.document_id = d.id
            WHERE d.mandate_id = :mandate_id AND d.id = :id AND d.source_kind = ANY(:kinds) AND {VISIBLE}
            """
        ),
        {"mandate_id": tenant_of(session), "id": entry_id, "viewer": viewer, "kinds": list(KINDS)},
    )
    return rows.one_or_none()
