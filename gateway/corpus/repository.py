"""The corpus browser's SQL. Who may see a document is decided here, in one predicate, for every reader."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import tenant_of

# Personal: its user. Feature instance: its members. Mandate: everybody in it. Never through a revoked connection.
VISIBLE = """
(d.scope IN ('mandate', 'global')
 OR (d.scope = 'personal' AND d.user_id = CAST(:viewer AS uuid))
 OR (d.scope = 'featureInstance' AND EXISTS (
        SELECT FROM feature_member f WHERE f.mandate_id = d.mandate_id
         AND f.feature_instance_id = d.feature_instance_id AND f.user_id = CAST(:viewer AS uuid))))
AND (d.connection_id IS NULL OR EXISTS (
        SELECT FROM connection c WHERE c.mandate_id = d.mandate_id AND c.id = d.connection_id AND c.state = 'active'))
"""


@dataclass(frozen=True)
class DocumentFilter:
    source_kind: str | None = None
    status: str | None = None
    connection_id: UUID | None = None
    type: str | None = None
    tag: str | None = None
    title: str | None = None
    source_id: str | None = None


async def find_document(session: AsyncSession, document_id: UUID, viewer: UUID | None) -> Row[Any] | None:
    return (
        await session.execute(
            text(f"SELECT d.* FROM document d WHERE d.mandate_id = :mandate_id AND d.id = :id AND {VISIBLE}"),
            {"mandate_id": tenant_of(session), "id": document_id, "viewer": viewer},
        )
    ).one_or_none()


async def list_documents(
    session: AsyncSession,
    viewer: UUID | None,
    wanted: DocumentFilter,
    *,
    limit: int,
    after: tuple[datetime, UUID] | None,
) -> list[Row[Any]]:
    rows = await session.execute(
        text(
            f"""
            SELECT d.* FROM document d
            WHERE d.mandate_id = :mandate_id AND {VISIBLE}
              AND (CAST(:source_kind AS text) IS NULL OR d.source_kind = :source_kind)
              AND (CAST(:status AS text) IS NULL OR d.status = :status)
              AND (CAST(:connection_id AS uuid) IS NULL OR d.connection_id = :connection_id)
              AND (CAST(:type AS text) IS NULL OR d.type = :type)
              AND (CAST(:tag AS text) IS NULL OR :tag = ANY(d.tags))
              AND (CAST(:source_id AS text) IS NULL OR d.source_id = :source_id)
              AND (CAST(:title AS text) IS NULL OR strpos(lower(d.title), lower(:title)) > 0)
              AND (CAST(:at AS timestamptz) IS NULL OR (d.created_at, d.id) < (:at, CAST(:id AS uuid)))
            ORDER BY d.created_at DESC, d.id DESC LIMIT :limit
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "viewer": viewer,
            **vars(wanted),
            "limit": limit,
            "at": after and after[0],
            "id": after and after[1],
        },
    )
    return list(rows)


async def find_by_source_id(session: AsyncSession, source_id: str, viewer: UUID | None) -> Row[Any] | None:
    """By the source's own id; else the newest file whose path ends like that, or that ends the path asked for."""
    whole = "d.source_id = :source_id"
    part = (
        "d.source_kind IN ('upload', 'repo_file') AND (right(d.source_id, length(:source_id) + 1) = '/' || :source_id "
        "OR right(:source_id, length(d.source_id) + 1) = '/' || d.source_id)"
    )
    for condition in (whole, part):
        found = await session.execute(
            text(
                f"SELECT d.* FROM document d WHERE d.mandate_id = :mandate_id AND ({condition}) AND {VISIBLE} "
                "ORDER BY d.updated_at DESC LIMIT 1"
            ),
            {"mandate_id": tenant_of(session), "source_id": source_id, "viewer": viewer},
        )
        if (row := found.one_or_none()) is not None:
            return row
    return None


async def update_description(session: AsyncSession, document_id: UUID, fields: dict[str, Any]) -> None:
    assignments = ", ".join(
        f"{name} = CAST(:{name} AS jsonb)" if name == "metadata" else f"{name} = :{name}" for name in fields
    )
    values = {n: orjson.dumps(v).decode() if n == "metadata" else v for n, v in fields.items()}
    await session.execute(
        text(
            f"UPDATE document SET {assignments}, updated_at = now() WHERE mandate_id = :mandate_id AND id = :id"
        ),
        {"mandate_id": tenant_of(session), "id": document_id, **values},
    )


async def list_chunks(session: AsyncSession, document_id: UUID, *, limit: int, after: int) -> list[Row[Any]]:
    rows = await session.execute(
        text(
            "SELECT id, ordinal, text, text_hash, locator, heading_path, token_count, language, model FROM chunk "
            "WHERE mandate_id = :mandate_id AND document_id = :id AND ordinal > :after ORDER BY ordinal LIMIT :limit"
        ),
        {"mandate_id": tenant_of(session), "id": document_id, "after": after, "limit": limit},
    )
    return list(rows)


async def document_timeline(
    session: AsyncSession,
    document_id: UUID,
    *,
    limit: int = 1_000,
    after: tuple[datetime, UUID] | None = None,
) -> Sequence[Row[Any]]:
    """Oldest first."""
    rows = await session.execute(
        text(
            "SELECT id, at, status, reason, job_id, detail FROM timeline "
            "WHERE mandate_id = :mandate_id AND document_id = :document_id "
            "AND (CAST(:at AS timestamptz) IS NULL OR (at, id) > (:at, CAST(:id AS uuid))) ORDER BY at, id LIMIT :limit"
        ),
        {
            "mandate_id": tenant_of(session),
            "document_id": document_id,
            "limit": limit,
            "at": after and after[0],
            "id": after and after[1],
        },
    )
    return rows.all()


async def is_masked(session: AsyncSession, document_id: UUID) -> bool:
    """Whether something was taken out of the kept text; see `masking.PLACEHOLDER`."""
    found = await session.scalar(
        text(
            "SELECT text ~ :placeholder FROM document_text WHERE mandate_id = :mandate_id AND document_id = :id"
        ),
        {
            "mandate_id": tenant_of(session),
            "id": document_id,
            "placeholder": r"\[(secret:)?[a-z][a-z_]{1,23}:[0-9a-f]{8}\]",
        },
    )
    return bool(found)


async def is_feature_member(session: AsyncSession, feature_instance_id: UUID, user_id: UUID) -> bool:
    found = await session.scalar(
        text("SELECT true FROM feature_member WHERE feature_instance_id = :instance AND user_id = :user"),
        {"instance": feature_instance_id, "user": user_id},
    )
    return bool(found)
