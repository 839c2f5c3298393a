"""The façade's SQL. Every statement takes a batch, so a thousand items cost the round trips of one."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus.repository import VISIBLE
from gateway.db import tenant_of

DESCRIPTION = (
    "title, uri, mime_type, language, type, tags, metadata, feature_code, scope, user_id, feature_instance_id, "
    "data_source_id, parent_document_id"
)
_RECORD = """
jsonb_to_recordset(CAST(:rows AS jsonb)) AS r(
    id uuid, connection_id uuid, source_kind text, source_id text, title text, uri text, mime_type text, language text,
    type text, tags text[], metadata jsonb, feature_code text, scope text, user_id uuid, feature_instance_id uuid,
    data_source_id uuid, parent_document_id uuid, neutralize boolean, content_version text, content_hash text,
    fingerprint text, blob_sha256 text, content_form text, size bigint)
"""


def _json(rows: Sequence[dict[str, Any]]) -> str:
    return orjson.dumps(rows, default=_hex).decode()


def _hex(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(type(value).__name__)


async def mandate_policy(session: AsyncSession) -> dict[str, Any]:
    return await find_policy(session) or {}


async def find_policy(session: AsyncSession) -> dict[str, Any] | None:
    """None: there is no such mandate."""
    return await session.scalar(text("SELECT policy FROM mandate"))


ObjectKey = tuple[UUID | None, str, str]  # connection, sourceKind, sourceId


async def lock_documents(
    session: AsyncSession, keys: Sequence[ObjectKey], user_ids: Sequence[UUID | None]
) -> list[Row[Any]]:
    """Existing documents under these keys, each key as that user sees it: what others keep for themselves is left out.

    Locked in id order, so that two batches never deadlock.
    """
    rows = await session.execute(
        text(
            """
            SELECT d.* FROM document d JOIN (SELECT DISTINCT * FROM unnest(
                CAST(:connections AS uuid[]), CAST(:kinds AS text[]), CAST(:ids AS text[]), CAST(:users AS uuid[]))
                AS k(connection_id, kind, source_id, user_id)) k
              ON d.mandate_id = :mandate_id AND d.connection_id IS NOT DISTINCT FROM k.connection_id
             AND d.source_id = ANY(:ids) -- else a table without statistics is read from end to end
             AND d.source_kind = k.kind AND d.source_id = k.source_id
             AND (d.connection_id IS NOT NULL OR d.scope <> 'personal' OR d.user_id = k.user_id)
            ORDER BY d.id FOR UPDATE OF d
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "connections": [key[0] for key in keys],
            "kinds": [key[1] for key in keys],
            "ids": [key[2] for key in keys],
            "users": list(user_ids),
        },
    )
    return list(rows)


async def known_documents(session: AsyncSession, document_ids: Sequence[UUID]) -> set[UUID]:
    """Which of them are there."""
    rows = await session.scalars(
        text("SELECT id FROM document WHERE mandate_id = :mandate_id AND id = ANY(:ids)"),
        {"mandate_id": tenant_of(session), "ids": list(document_ids)},
    )
    return set(rows)


async def documents_of_source(
    session: AsyncSession, key: ObjectKey, user_id: UUID | None = None
) -> list[UUID]:
    """Whoever's they are; with a user, without what others keep for themselves under that name."""
    rows = await session.scalars(
        text(
            "SELECT id FROM document WHERE mandate_id = :mandate_id AND connection_id IS NOT DISTINCT FROM :connection "
            "AND source_kind = :kind AND source_id = :source_id "
            "AND (CAST(:user_id AS uuid) IS NULL OR scope <> 'personal' OR user_id = :user_id) ORDER BY id"
        ),
        {
            "mandate_id": tenant_of(session),
            "connection": key[0],
            "kind": key[1],
            "source_id": key[2],
            "user_id": user_id,
        },
    )
    return list(rows)


async def insert_documents(session: AsyncSession, rows: Sequence[dict[str, Any]]) -> set[UUID]:
    """New documents; the ids really inserted come back – somebody else may have been faster."""
    inserted = await session.scalars(
        text(
            f"""
            INSERT INTO document (mandate_id, id, connection_id, source_kind, source_id, {DESCRIPTION}, neutralize,
                content_version, content_hash, fingerprint, blob_sha256, content_form, size, status, verified_at)
            SELECT :mandate_id, id, connection_id, source_kind, source_id, {DESCRIPTION}, neutralize,
                content_version, decode(content_hash, 'hex'), decode(fingerprint, 'hex'), decode(blob_sha256, 'hex'),
                content_form, size, 'pending', now()
            FROM {_RECORD}
            ORDER BY connection_id, source_kind, source_id
            ON CONFLICT (mandate_id, connection_id, source_kind, source_id,
                (CASE WHEN connection_id IS NULL AND scope = 'personal' THEN user_id END)) DO NOTHING
            RETURNING id
            """
        ),
        {"mandate_id": tenant_of(session), "rows": _json(rows)},
    )
    return set(inserted)


async def renew_documents(session: AsyncSession, rows: Sequence[dict[str, Any]]) -> None:
    """Accepts new content for existing documents: a new revision, pending again; what is indexed stays served, and so its
    original stays known.
    """
    assignments = ", ".join(f"{name} = r.{name}" for name in DESCRIPTION.split(", "))
    await session.execute(
        text(
            f"""
            WITH former AS (
                INSERT INTO former_original (mandate_id, document_id, revision, sha256, content_hash, mime_type, size)
                SELECT d.mandate_id, d.id, d.revision, d.blob_sha256, d.content_hash, d.mime_type, d.size
                FROM {_RECORD} JOIN document d ON d.mandate_id = :mandate_id AND d.id = r.id
                WHERE d.content_hash <> decode(r.content_hash, 'hex')
            )
            UPDATE document d SET {assignments}, neutralize = r.neutralize, content_version = r.content_version,
                content_hash = decode(r.content_hash, 'hex'), fingerprint = decode(r.fingerprint, 'hex'),
                blob_sha256 = decode(r.blob_sha256, 'hex'), content_form = r.content_form, size = r.size,
                revision = d.revision + 1, status = 'pending', reason = NULL, verified_at = now(), updated_at = now()
            FROM {_RECORD} WHERE d.mandate_id = :mandate_id AND d.id = r.id
            """
        ),
        {"mandate_id": tenant_of(session), "rows": _json(rows)},
    )


async def connections_behind(session: AsyncSession, document_ids: Collection[UUID]) -> list[UUID]:
    rows = await session.scalars(
        text(
            "SELECT DISTINCT connection_id FROM document "
            "WHERE mandate_id = :mandate_id AND id = ANY(:ids) AND connection_id IS NOT NULL"
        ),
        {"mandate_id": tenant_of(session), "ids": list(document_ids)},
    )
    return list(rows)


# Whether personal data is masked in `document` from now on, and which fingerprint it has then.
_MASKED = "(neutralize OR source_kind = ANY(CAST(:mandatory AS text[])))"
_FINGERPRINT = f"CASE WHEN {_MASKED} THEN CAST(:masked AS bytea) ELSE :plain END"


async def renew_revisions(
    session: AsyncSession,
    document_ids: Collection[UUID],
    *,
    plain: bytes,
    masked: bytes,
    mandatory: Collection[str],
) -> None:
    """A new revision of the same bytes."""
    await session.execute(
        text(
            "UPDATE document SET revision = revision + 1, status = 'pending', reason = NULL, updated_at = now(), "
            f"neutralize = {_MASKED}, fingerprint = {_FINGERPRINT} "
            "WHERE mandate_id = :mandate_id AND id = ANY(:ids)"
        ),
        {
            "mandate_id": tenant_of(session),
            "ids": list(document_ids),
            "plain": plain,
            "masked": masked,
            "mandatory": list(mandatory),
        },
    )


async def outdated_documents(
    session: AsyncSession, *, plain: bytes, masked: bytes, mandatory: Collection[str], limit: int
) -> list[UUID]:
    """What is indexed, but not as it would be indexed now."""
    rows = await session.scalars(
        text(
            "SELECT id FROM document WHERE mandate_id = :mandate_id AND status = 'indexed' "
            f"AND fingerprint IS DISTINCT FROM {_FINGERPRINT} ORDER BY id LIMIT :limit"
        ),
        {
            "mandate_id": tenant_of(session),
            "plain": plain,
            "masked": masked,
            "mandatory": list(mandatory),
            "limit": limit,
        },
    )
    return list(rows)


async def describe_documents(session: AsyncSession, rows: Sequence[dict[str, Any]]) -> set[UUID]:
    """Applies description and version of a duplicate: one row update, no revision, no vectors. Returns what changed."""
    # What a caller does not state (no title, no type) does not erase what is known.
    stated = {
        "title": "coalesce(nullif(r.title, ''), d.title)",
        "mime_type": "coalesce(r.mime_type, d.mime_type)",
        "language": "coalesce(r.language, d.language)",
    }
    names = (*DESCRIPTION.split(", "), "content_version")
    values = [stated.get(name, f"r.{name}") for name in names]
    assignments = ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
    differs = f"({', '.join('d.' + name for name in names)}) IS DISTINCT FROM ({', '.join(values)})"
    changed = await session.execute(
        text(
            f"""
            WITH before AS (
                SELECT d.id, {differs} AS changed
                FROM document d JOIN {_RECORD} ON d.mandate_id = :mandate_id AND d.id = ANY(:ids) AND d.id = r.id)
            UPDATE document d SET {assignments}, verified_at = now(),
                indexed_version = CASE WHEN d.status = 'indexed' THEN r.content_version ELSE d.indexed_version END,
                updated_at = CASE WHEN b.changed THEN now() ELSE d.updated_at END
            FROM {_RECORD} JOIN before b ON b.id = r.id
            WHERE d.mandate_id = :mandate_id AND d.id = ANY(:ids) AND d.id = r.id
            RETURNING d.id, b.changed
            """
        ),
        {"mandate_id": tenant_of(session), "rows": _json(rows), "ids": [row["id"] for row in rows]},
    )
    return {row.id for row in changed if row.changed}


async def let_attachments_follow(session: AsyncSession, document_ids: Collection[UUID]) -> None:
    """Whoever may see a document may see what is inside it, and nobody else."""
    await session.execute(
        text(
            """
            WITH RECURSIVE family AS (
                SELECT id, scope, user_id, feature_instance_id FROM document
                WHERE mandate_id = :mandate_id AND id = ANY(:ids)
                UNION
                SELECT d.id, f.scope, f.user_id, f.feature_instance_id FROM document d
                JOIN family f ON d.parent_document_id = f.id WHERE d.mandate_id = :mandate_id)
            UPDATE document d SET scope = f.scope, user_id = f.user_id, feature_instance_id = f.feature_instance_id,
                updated_at = now()
            FROM family f WHERE d.mandate_id = :mandate_id AND d.id = f.id AND (d.scope, d.user_id, d.feature_instance_id)
                IS DISTINCT FROM (f.scope, f.user_id, f.feature_instance_id)
            """
        ),
        {"mandate_id": tenant_of(session), "ids": list(document_ids)},
    )


async def latest_jobs(session: AsyncSession, document_ids: Collection[UUID]) -> dict[UUID, Row[Any]]:
    rows = await session.execute(
        text(
            """
            SELECT DISTINCT ON (document_id) document_id, id, status FROM job
            WHERE mandate_id = :mandate_id AND document_id = ANY(:ids) AND kind = 'ingest'
            ORDER BY document_id, created_at DESC, id DESC
            """
        ),
        {"mandate_id": tenant_of(session), "ids": list(document_ids)},
    )
    return {row.document_id: row for row in rows}


async def supersede_jobs(session: AsyncSession, document_ids: Collection[UUID]) -> list[Row[Any]]:
    """Older work on these documents ends here; a worker that still runs it can no longer write."""
    rows = await session.execute(
        text(
            """
            UPDATE job SET status = 'superseded', finished_at = now(), lease_until = NULL
            WHERE mandate_id = :mandate_id AND document_id = ANY(:ids) AND kind = 'ingest'
              AND status IN ('pending', 'extracted', 'embedding')
            RETURNING id, document_id
            """
        ),
        {"mandate_id": tenant_of(session), "ids": list(document_ids)},
    )
    return list(rows)


async def insert_jobs(session: AsyncSession, rows: Sequence[dict[str, Any]]) -> None:
    await session.execute(
        text(
            """
            INSERT INTO job (mandate_id, id, kind, lane, status, document_id, revision, connection_id,
                connection_generation, dedupe_key, payload)
            SELECT :mandate_id, id, kind, lane, 'pending', document_id, revision, connection_id, connection_generation,
                dedupe_key, coalesce(payload, '{}')
            FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r(id uuid, kind text, lane text, document_id uuid,
                revision integer, connection_id uuid, connection_generation integer, dedupe_key text, payload jsonb)
            """
        ),
        {"mandate_id": tenant_of(session), "rows": _json(rows)},
    )


async def has_live_job(session: AsyncSession, dedupe_key: str) -> bool:
    found = await session.scalar(
        text(
            "SELECT true FROM job WHERE mandate_id = :mandate_id AND dedupe_key = :dedupe_key "
            "AND status IN ('pending', 'extracted', 'embedding')"
        ),
        {"mandate_id": tenant_of(session), "dedupe_key": dedupe_key},
    )
    return bool(found)


async def drop_live_job(session: AsyncSession, dedupe_key: str) -> None:
    await session.execute(
        text(
            "DELETE FROM job WHERE mandate_id = :mandate_id AND dedupe_key = :dedupe_key "
            "AND status IN ('pending', 'extracted', 'embedding')"
        ),
        {"mandate_id": tenant_of(session), "dedupe_key": dedupe_key},
    )


async def ring_on_commit(session: AsyncSession, rows: Sequence[dict[str, Any]]) -> None:
    """Outbox rows (`id topic lane payload`) and a notification, both delivered with the caller's commit or not at all."""
    await session.execute(
        text(
            """
            INSERT INTO outbox (mandate_id, id, topic, lane, payload)
            SELECT :mandate_id, id, topic, lane, coalesce(payload, '{}')
            FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r(id uuid, topic text, lane text, payload jsonb)
            """
        ),
        {"mandate_id": tenant_of(session), "rows": _json(rows)},
    )
    await session.execute(text("NOTIFY catchment_outbox"))


async def add_timeline(session: AsyncSession, rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        return
    await session.execute(
        text(
            """
            INSERT INTO timeline (mandate_id, id, document_id, job_id, status, reason, detail, at)
            SELECT :mandate_id, id, document_id, job_id, status, reason, coalesce(detail, '{}'), clock_timestamp()
            FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r(id uuid, document_id uuid, job_id uuid, status text,
                reason text, detail jsonb)
            """
        ),
        {"mandate_id": tenant_of(session), "rows": _json(rows)},
    )


async def usage(session: AsyncSession) -> tuple[int, int]:
    """Documents and bytes the mandate holds, for its quotas."""
    row = (await session.execute(text("SELECT count(*), coalesce(sum(size), 0) FROM document"))).one()
    return int(row[0]), int(row[1])


async def find_job(session: AsyncSession, job_id: UUID) -> Row[Any] | None:
    return (await session.execute(text("SELECT * FROM job WHERE id = :id"), {"id": job_id})).one_or_none()


async def list_jobs(
    session: AsyncSession,
    viewer: UUID | None,
    *,
    everybodys: bool,
    status: str | None,
    limit: int,
    after: tuple[datetime, UUID] | None,
) -> list[Row[Any]]:
    """Newest first: everybody's, or those of documents that the viewer may see."""
    seen = (
        "true"
        if everybodys
        else f"EXISTS (SELECT FROM document d WHERE d.mandate_id = j.mandate_id AND d.id = j.document_id AND {VISIBLE})"
    )
    rows = await session.execute(
        text(
            f"""
            SELECT j.* FROM job j
            WHERE (CAST(:status AS text) IS NULL OR j.status = :status) AND {seen}
              AND (CAST(:at AS timestamptz) IS NULL OR (j.created_at, j.id) < (:at, CAST(:id AS uuid)))
            ORDER BY j.created_at DESC, j.id DESC LIMIT :limit
            """
        ),
        {
            "status": status,
            "viewer": viewer,
            "limit": limit,
            "at": after and after[0],
            "id": after and after[1],
        },
    )
    return list(rows)


async def cancel_job(session: AsyncSession, job_id: UUID) -> Row[Any] | None:
    """Ends a live job; a worker that runs it can no longer write."""
    return (
        await session.execute(
            text(
                """
                UPDATE job SET status = 'cancelled', finished_at = now(), lease_until = NULL
                WHERE id = :id AND status IN ('pending', 'extracted', 'embedding')
                RETURNING id, document_id, revision
                """
            ),
            {"id": job_id},
        )
    ).one_or_none()


async def settle_cancelled_document(session: AsyncSession, document_id: UUID, revision: int) -> None:
    """A cancelled revision leaves what was indexed before it, or a cancelled document when there was nothing."""
    await session.execute(
        text(
            """
            UPDATE document SET status = 'cancelled', updated_at = now()
            WHERE id = :id AND revision = :revision AND status IN ('pending', 'extracted', 'embedding')
            """
        ),
        {"id": document_id, "revision": revision},
    )


async def count_jobs(session: AsyncSession) -> tuple[dict[tuple[str, str], int], dict[str, float]]:
    """For the metrics, across mandates, as the sweeper: live jobs by lane and status, age of the oldest due by lane."""
    rows = await session.execute(
        text(
            """
            SELECT lane, status, count(*) AS n,
                   max(extract(epoch FROM now() - run_after)) FILTER (WHERE run_after <= now()) AS oldest
            FROM job WHERE status IN ('pending', 'extracted', 'embedding') GROUP BY lane, status
            """
        )
    )
    jobs: dict[tuple[str, str], int] = {}
    oldest: dict[str, float] = {}
    for row in rows:
        jobs[row.lane, row.status] = row.n
        if row.oldest is not None:
            oldest[row.lane] = max(oldest.get(row.lane, 0.0), float(row.oldest))
    return jobs, oldest


async def live_jobs(session: AsyncSession) -> int:
    count = await session.scalar(
        text("SELECT count(*) FROM job WHERE status IN ('pending', 'extracted', 'embedding')")
    )
    return count or 0


async def indexed_chunks(session: AsyncSession) -> int:
    return await session.scalar(text("SELECT coalesce(sum(chunk_count), 0) FROM document")) or 0
