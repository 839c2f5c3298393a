"""Everything that is stored about a user, page by page, each row as JSON."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import tenant_of

# What is a user's: in their name or, in nobody's, brought by a connection of theirs. What somebody else hung on one of their
# documents is not theirs to take.
_THEIRS = (
    "(d.user_id = :user_id OR d.user_id IS NULL AND d.connection_id IN "
    "(SELECT n.id FROM connection n WHERE n.mandate_id = :mandate_id AND n.user_id = :user_id))"
)
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
    "failures": (
        "SELECT f.id::text AS key, to_jsonb(f) - 'mandate_id' AS row FROM item_failure f "
        "JOIN data_source s ON s.mandate_id = f.mandate_id AND s.id = f.data_source_id "
        "WHERE f.mandate_id = :mandate_id AND s.user_id = :user_id"
    ),
    "uploads": (
        "SELECT encode(sha256, 'hex') AS key, jsonb_build_object('sha256', encode(sha256, 'hex'), "
        "'created_at', created_at) AS row FROM blob_upload "
        "WHERE mandate_id = :mandate_id AND principal = 'user:' || CAST(CAST(:user_id AS uuid) AS text)"
    ),
    "documents": (
        "SELECT d.id::text AS key, to_jsonb(d) - 'mandate_id' - 'fingerprint' AS row FROM document d "
        f"WHERE d.mandate_id = :mandate_id AND {_THEIRS}"
    ),
    "revisions": (
        "SELECT f.document_id || ' ' || lpad(f.revision::text, 10, '0') AS key, to_jsonb(f) - 'mandate_id' AS row "
        "FROM former_original f JOIN document d ON d.mandate_id = f.mandate_id AND d.id = f.document_id "
        f"WHERE f.mandate_id = :mandate_id AND {_THEIRS}"
    ),
    "jobs": (
        "SELECT j.id::text AS key, jsonb_build_object('id', j.id, 'document_id', j.document_id, 'revision', j.revision, "
        "'kind', j.kind, 'lane', j.lane, 'status', j.status, 'reason', j.reason, 'error', j.error, "
        "'attempts', j.attempts, 'created_at', j.created_at, 'finished_at', j.finished_at) AS row "
        "FROM job j JOIN document d ON d.mandate_id = j.mandate_id AND d.id = j.document_id "
        f"WHERE j.mandate_id = :mandate_id AND {_THEIRS}"
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
            "SELECT d.id, d.blob_sha256, d.reason FROM document d "
            f"WHERE d.mandate_id = :mandate_id AND {_THEIRS} AND d.id > :after ORDER BY d.id LIMIT :limit"
        ),
        {"mandate_id": tenant_of(session), "user_id": user_id, "after": after, "limit": limit},
    )
    return list(rows)


async def unused_uploads(session: AsyncSession, user_id: UUID, *, after: bytes, limit: int) -> list[bytes]:
    """Hashes of what they uploaded and no document of theirs holds."""
    rows = await session.scalars(
        text(
            "SELECT u.sha256 FROM blob_upload u WHERE u.mandate_id = :mandate_id "
            "AND u.principal = 'user:' || CAST(CAST(:user_id AS uuid) AS text) AND u.sha256 > :after "
            "AND NOT EXISTS (SELECT FROM document d WHERE d.mandate_id = u.mandate_id AND d.blob_sha256 = u.sha256 "
            f"AND {_THEIRS}) ORDER BY u.sha256 LIMIT :limit"
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
