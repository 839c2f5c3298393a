"""Everything that is stored about a user, page by page, each row as JSON."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import tenant_of

# What speaks of a user: the row without its tenant, and what orders it. Secrets – hashes of keys, tokens of connections –
# are not named and so never leave.
_ABOUT = {
    "account": (
        "SELECT u.id::text AS key, to_jsonb(u) - 'mandate_id' || jsonb_build_object('role', m.role) AS row FROM \"user\" u "
        "LEFT JOIN membership m ON m.mandate_id = u.mandate_id AND m.user_id = u.id "
        "WHERE u.mandate_id = :mandate_id AND u.id = :user_id"
    ),
    "keys": (
        "SELECT id::text AS key, jsonb_build_object('id', id, 'name', name, 'hint', hint, 'scopes', scopes, "
        "'created_at', created_at, 'expires_at', expires_at, 'revoked_at', revoked_at) AS row FROM api_key "
        "WHERE mandate_id = :mandate_id AND user_id = :user_id"
    ),
    "features": (
        "SELECT f.id::text AS key, to_jsonb(f) - 'mandate_id' AS row FROM feature_member n "
        "JOIN feature_instance f ON f.mandate_id = n.mandate_id AND f.id = n.feature_instance_id "
        "WHERE n.mandate_id = :mandate_id AND n.user_id = :user_id"
    ),
    "connections": (
        "SELECT id::text AS key, jsonb_build_object('id', id, 'authority', authority, 'state', state, "
        "'surfaces', surfaces, 'policy', policy, 'account', account, 'created_at', created_at, "
        "'updated_at', updated_at) AS row FROM connection "
        "WHERE mandate_id = :mandate_id AND user_id = :user_id"
    ),
    "sources": (
        "SELECT id::text AS key, jsonb_build_object('id', id, 'connection_id', connection_id, 'surface', surface, "
        "'external_root', external_root, 'scope', scope, 'last_sync_at', last_sync_at, 'created_at', created_at) AS row "
        "FROM data_source WHERE mandate_id = :mandate_id AND user_id = :user_id"
    ),
    "items": (
        "SELECT i.data_source_id || ' ' || i.external_id AS key, to_jsonb(i) - 'mandate_id' - 'handle' AS row "
        "FROM remote_item i JOIN data_source s ON s.mandate_id = i.mandate_id AND s.id = i.data_source_id "
        "WHERE i.mandate_id = :mandate_id AND s.user_id = :user_id"
    ),
    "uploads": (
        "SELECT encode(sha256, 'hex') AS key, jsonb_build_object('sha256', encode(sha256, 'hex'), "
        "'created_at', created_at) AS row FROM blob_upload "
        "WHERE mandate_id = :mandate_id AND principal = 'user:' || CAST(CAST(:user_id AS uuid) AS text)"
    ),
    "documents": (
        "SELECT id::text AS key, to_jsonb(d) - 'mandate_id' - 'fingerprint' AS row FROM document d "
        "WHERE mandate_id = :mandate_id AND user_id = :user_id"
    ),
    "queries": (
        "SELECT id::text AS key, to_jsonb(asked) - 'mandate_id' AS row FROM query_log asked "
        "WHERE mandate_id = :mandate_id AND user_id = :user_id"
    ),
    "answers": (
        "SELECT id::text AS key, to_jsonb(a) - 'mandate_id' AS row FROM answer a "
        "WHERE mandate_id = :mandate_id AND user_id = :user_id"
    ),
    "citations": (
        "SELECT turn_id || ' ' || chunk_id AS key, to_jsonb(c) - 'mandate_id' AS row FROM citation c "
        "WHERE mandate_id = :mandate_id AND user_id = :user_id"
    ),
    "receipts": (
        "SELECT id::text AS key, to_jsonb(r) - 'mandate_id' AS row FROM receipt r "
        "WHERE mandate_id = :mandate_id AND subject = 'user' AND subject_id = CAST(CAST(:user_id AS uuid) AS text)"
    ),
}
ABOUT: tuple[str, ...] = tuple(_ABOUT)


async def rows_about(
    session: AsyncSession, about: str, user_id: UUID, *, after: str, limit: int
) -> list[tuple[str, dict[str, Any]]]:
    """The next rows of one sort, `(key, row)`; the last key is where the next page begins."""
    rows = await session.execute(
        text(
            f'SELECT key, row FROM ({_ABOUT[about]}) t WHERE key COLLATE "C" > :after ORDER BY key COLLATE "C" LIMIT :limit'
        ),
        {"mandate_id": tenant_of(session), "user_id": user_id, "after": after, "limit": limit},
    )
    return [(row.key, row.row) for row in rows]


async def documents_of(session: AsyncSession, user_id: UUID, *, after: UUID, limit: int) -> list[Row[Any]]:
    rows = await session.execute(
        text(
            "SELECT id, blob_sha256, reason FROM document WHERE mandate_id = :mandate_id AND user_id = :user_id "
            "AND id > :after ORDER BY id LIMIT :limit"
        ),
        {"mandate_id": tenant_of(session), "user_id": user_id, "after": after, "limit": limit},
    )
    return list(rows)


async def kept_text(session: AsyncSession, document_id: UUID) -> str | None:
    return await session.scalar(
        text("SELECT text FROM document_text WHERE mandate_id = :mandate_id AND document_id = :id"),
        {"mandate_id": tenant_of(session), "id": document_id},
    )


async def chunks_after(
    session: AsyncSession, document_ids: Sequence[UUID], *, after: tuple[UUID, int], limit: int
) -> list[Row[Any]]:
    """Chunks of these documents in their order, from behind `(document, ordinal)`."""
    rows = await session.execute(
        text(
            "SELECT document_id, ordinal, jsonb_build_object('id', id, 'document_id', document_id, 'ordinal', ordinal, "
            "'text', text, 'locator', locator, 'heading_path', heading_path, 'language', language, 'model', model) AS row "
            "FROM chunk WHERE mandate_id = :mandate_id AND document_id = ANY(:ids) "
            "AND (document_id, ordinal) > (:document_id, :ordinal) ORDER BY document_id, ordinal LIMIT :limit"
        ),
        {
            "mandate_id": tenant_of(session),
            "ids": list(document_ids),
            "document_id": after[0],
            "ordinal": after[1],
            "limit": limit,
        },
    )
    return list(rows)


async def timelines_of(session: AsyncSession, document_ids: Sequence[UUID]) -> list[dict[str, Any]]:
    rows = await session.scalars(
        text(
            "SELECT to_jsonb(t) - 'mandate_id' FROM timeline t "
            "WHERE mandate_id = :mandate_id AND document_id = ANY(:ids) ORDER BY document_id, at, id"
        ),
        {"mandate_id": tenant_of(session), "ids": list(document_ids)},
    )
    return list(rows)
