"""Rows of `blob` and `blob_upload`."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import raw_connection, tenant_of


async def lock_hashes(session: AsyncSession, digests: Sequence[bytes]) -> None:
    """Advisory locks until commit, in one order, so that writers and collectors of the same bytes take turns."""
    await session.execute(
        text(
            "SELECT pg_advisory_xact_lock(hashtextextended(CAST(:mandate_id AS text) || encode(d, 'hex'), 0)) "
            "FROM unnest(CAST(:digests AS bytea[])) AS d ORDER BY d"
        ),
        {"mandate_id": str(tenant_of(session)), "digests": list(digests)},
    )


async def known_hashes(session: AsyncSession, digests: Sequence[bytes]) -> set[bytes]:
    if not digests:
        return set()
    rows = await session.scalars(
        text("SELECT sha256 FROM blob WHERE sha256 = ANY(:digests)"), {"digests": list(digests)}
    )
    return set(rows)


async def insert_blobs(session: AsyncSession, rows: Sequence[tuple[bytes, int, bytes | None]]) -> None:
    # Binary, and so past SQLAlchemy: as text an array of bytes is twice as long, and written and read digit by digit.
    connection = await raw_connection(session)
    await connection.execute(
        """
        INSERT INTO blob (mandate_id, sha256, size, data)
        SELECT %s, * FROM unnest(%b::bytea[], %b::bigint[], %b::bytea[]) ORDER BY 2
        -- the update holds the row, so that a collector cannot take it away before this transaction refers to it
        ON CONFLICT (mandate_id, sha256) DO UPDATE SET created_at = now()
        """,
        (tenant_of(session), [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]),
    )


async def find_blob(session: AsyncSession, digest: bytes) -> Row[Any] | None:
    return (
        await session.execute(text("SELECT size, data FROM blob WHERE sha256 = :digest"), {"digest": digest})
    ).one_or_none()


async def blob_size(session: AsyncSession, digest: bytes) -> int | None:
    return await session.scalar(text("SELECT size FROM blob WHERE sha256 = :digest"), {"digest": digest})


async def note_upload(session: AsyncSession, digest: bytes, principal: str) -> None:
    await session.execute(
        text(
            "INSERT INTO blob_upload (mandate_id, sha256, principal) VALUES (:mandate_id, :digest, :principal) "
            "ON CONFLICT (mandate_id, sha256, principal) DO UPDATE SET created_at = now(), used = false"
        ),
        {"mandate_id": tenant_of(session), "digest": digest, "principal": principal},
    )


async def was_uploaded_by(session: AsyncSession, digest: bytes, principal: str) -> bool:
    found = await session.scalar(
        text("SELECT true FROM blob_upload WHERE sha256 = :digest AND principal = :principal"),
        {"digest": digest, "principal": principal},
    )
    return bool(found)


async def use_uploads(session: AsyncSession, digest: bytes, principal: str | None) -> None:
    """A document has these bytes now and is what keeps them; of one uploader, or of everybody."""
    await session.execute(
        text(
            "UPDATE blob_upload SET used = true WHERE mandate_id = :mandate_id AND sha256 = :digest "
            "AND (CAST(:principal AS text) IS NULL OR principal = :principal) AND NOT used"
        ),
        {"mandate_id": tenant_of(session), "digest": digest, "principal": principal},
    )


_UNUSED = """
AND NOT EXISTS (SELECT FROM document d WHERE d.mandate_id = b.mandate_id AND d.blob_sha256 = b.sha256)
AND NOT EXISTS (SELECT FROM former_original f WHERE f.mandate_id = b.mandate_id AND f.sha256 = b.sha256)
"""
_WAITS = """
AND NOT EXISTS (SELECT FROM blob_upload u WHERE u.mandate_id = b.mandate_id AND u.sha256 = b.sha256 AND NOT u.used)
"""


# Of a revision that was replaced, the job that read it still says what the scanner said.
_CLEAN = """
NOT EXISTS (SELECT FROM job j WHERE j.mandate_id = f.mandate_id AND j.document_id = f.document_id
    AND j.revision = f.revision AND j.reason = 'infected')
"""


async def former_original(
    session: AsyncSession,
    document_id: UUID,
    *,
    revision: int | None = None,
    content_hash: bytes | None = None,
) -> Row[Any] | None:
    """`sha256 mime_type size content_hash` of an earlier revision, by its number or by what it held; what the scanner
    refused is for nobody.
    """
    rows = await session.execute(
        text(
            "SELECT sha256, mime_type, size, content_hash FROM former_original f "
            "WHERE mandate_id = :mandate_id AND document_id = :id "
            f"AND (revision = :revision OR content_hash = :content_hash) AND {_CLEAN} ORDER BY revision DESC LIMIT 1"
        ),
        {
            "mandate_id": tenant_of(session),
            "id": document_id,
            "revision": revision,
            "content_hash": content_hash,
        },
    )
    return rows.one_or_none()


async def former_originals(session: AsyncSession, document_ids: Sequence[UUID]) -> list[Row[Any]]:
    """`document_id revision sha256` of what is still here of earlier revisions, without what the scanner refused."""
    rows = await session.execute(
        text(
            "SELECT document_id, revision, sha256 FROM former_original f WHERE mandate_id = :mandate_id "
            f"AND document_id = ANY(:ids) AND {_CLEAN} ORDER BY document_id, revision"
        ),
        {"mandate_id": tenant_of(session), "ids": list(document_ids)},
    )
    return list(rows)


async def release_former_originals(session: AsyncSession, limit: int) -> list[bytes]:
    """Lets go of what no revision that is served needs; returns the hashes. Not under legal hold."""
    rows = await session.scalars(
        text(
            """
            DELETE FROM former_original WHERE mandate_id = :mandate_id AND (document_id, revision) IN (
                SELECT f.document_id, f.revision FROM former_original f
                JOIN document d ON d.mandate_id = f.mandate_id AND d.id = f.document_id
                WHERE f.mandate_id = :mandate_id
                  AND (d.indexed_hash IS NULL OR d.indexed_hash = d.content_hash OR d.indexed_hash <> f.content_hash)
                LIMIT :limit FOR UPDATE OF f SKIP LOCKED)
            RETURNING sha256
            """
        ),
        {"mandate_id": tenant_of(session), "limit": limit},
    )
    return sorted(set(rows))


async def delete_unreferenced(
    session: AsyncSession, digests: Sequence[bytes] | None, *, older_than_seconds: float
) -> list[tuple[bytes, bool]]:
    """Deletes rows no document refers to; `(sha256, lies in the object store)` of each. Takes the hashes' locks first.

    With `digests` given (an erasure), uploads that wait to be used protect their bytes; otherwise only old ones go.
    """
    waits = _WAITS if digests is not None else ""
    candidates = await session.execute(
        text(
            f"""
            SELECT sha256 FROM blob b
            WHERE (CAST(:digests AS bytea[]) IS NULL OR sha256 = ANY(:digests))
              AND created_at <= now() - make_interval(secs => :age)
              {_UNUSED} {waits}
            LIMIT 1000
            """
        ),
        {"digests": None if digests is None else list(digests), "age": older_than_seconds},
    )
    found = [row.sha256 for row in candidates]
    if not found:
        return []
    await lock_hashes(session, found)
    rows = await session.execute(
        text(
            f"""
            DELETE FROM blob b WHERE mandate_id = :mandate_id AND sha256 = ANY(:digests)
              AND created_at <= now() - make_interval(secs => :age)
              {_UNUSED} {waits}
            RETURNING sha256, data IS NULL AS in_store
            """
        ),
        {"mandate_id": tenant_of(session), "digests": found, "age": older_than_seconds},
    )
    return [(row.sha256, row.in_store) for row in rows]
