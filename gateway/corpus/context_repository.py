"""What a context holds whatever is asked: the snapshots of who asks, for whom and where."""

from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus.repository import VISIBLE
from gateway.db import tenant_of

SNAPSHOT_KINDS = ("profile_snapshot", "mandate_snapshot", "feature_snapshot")


async def snapshots(
    session: AsyncSession, viewer: UUID | None, feature_instance_id: UUID | None
) -> list[Row[Any]]:
    """Chunks of the viewer's own profile, the mandate and this feature instance, with what a citation needs."""
    rows = await session.execute(
        text(
            f"""
            SELECT c.id AS chunk_id, c.text, c.text_hash, c.locator, c.heading_path, d.id AS document_id, d.source_kind,
                   d.title, d.uri, d.connection_id, d.indexed_revision, d.indexed_version, d.verified_at
            FROM document d JOIN chunk c ON c.mandate_id = d.mandate_id AND c.document_id = d.id
            WHERE d.mandate_id = :mandate_id AND d.connection_id IS NULL AND d.source_kind = ANY(:kinds)
              AND (d.source_kind <> 'profile_snapshot' OR d.user_id = CAST(:viewer AS uuid))
              AND (d.source_kind <> 'feature_snapshot' OR d.feature_instance_id = CAST(:instance AS uuid))
              AND {VISIBLE}
            ORDER BY array_position(CAST(:kinds AS text[]), d.source_kind), d.source_id, c.ordinal LIMIT 100
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "viewer": viewer,
            "instance": feature_instance_id,
            "kinds": list(SNAPSHOT_KINDS),
        },
    )
    return list(rows)


async def kept_text(session: AsyncSession, document_id: UUID) -> str | None:
    """The neutralised text; None before a document is indexed. Ask first whether the reader may see the document."""
    return await session.scalar(
        text("SELECT text FROM document_text WHERE mandate_id = :mandate_id AND document_id = :id"),
        {"mandate_id": tenant_of(session), "id": document_id},
    )
