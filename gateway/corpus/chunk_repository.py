"""Chunks, kept text and the packed lexical segments, written in whole batches."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import raw_connection, tenant_of


@dataclass(frozen=True)
class ChunkRow:
    id: UUID
    number: int
    document_id: UUID
    ordinal: int
    text: str
    text_hash: bytes
    locator: dict[str, Any]
    heading_path: str
    title: str
    token_count: int
    language: str
    model: str


async def lock_documents(session: AsyncSession, document_ids: Sequence[UUID]) -> dict[UUID, Row[Any]]:
    rows = await session.execute(
        text(
            "SELECT id, revision, status, title, content_version, content_hash, source_kind, connection_id, data_source_id "
            "FROM document WHERE mandate_id = :mandate_id AND id = ANY(:ids) ORDER BY id FOR UPDATE"
        ),
        {"mandate_id": tenant_of(session), "ids": list(document_ids)},
    )
    return {row.id: row for row in rows}


async def load_for_parsing(session: AsyncSession, document_ids: Sequence[UUID]) -> dict[UUID, Row[Any]]:
    """Documents with their original bytes, where those lie in the row."""
    rows = await session.execute(
        text(
            """
            SELECT d.id, d.revision, d.mime_type, d.language, d.title, d.uri, d.source_kind, d.source_id, d.content_form,
                   d.neutralize, d.blob_sha256, d.size, d.connection_id, d.data_source_id, d.scope, d.user_id,
                   d.feature_instance_id, d.feature_code, d.tags, d.metadata, d.created_at, b.data
            FROM document d JOIN blob b ON b.mandate_id = d.mandate_id AND b.sha256 = d.blob_sha256
            WHERE d.mandate_id = :mandate_id AND d.id = ANY(:ids)
            """
        ),
        {"mandate_id": tenant_of(session), "ids": list(document_ids)},
    )
    return {row.id: row for row in rows}


async def attachments_of(session: AsyncSession, document_id: UUID, prefix: str) -> dict[str, UUID]:
    """Source id → document of what was found inside this document before."""
    rows = await session.execute(
        text(
            "SELECT source_id, id FROM document WHERE mandate_id = :mandate_id AND parent_document_id = :id "
            "AND starts_with(source_id, :prefix)"
        ),
        {"mandate_id": tenant_of(session), "id": document_id, "prefix": prefix},
    )
    return {row.source_id: row.id for row in rows}


async def existing_chunks(session: AsyncSession, document_ids: Sequence[UUID]) -> dict[UUID, list[Row[Any]]]:
    rows = await session.execute(
        text(
            "SELECT id, number, document_id, ordinal, text_hash, heading_path, title, language, model "
            "FROM chunk WHERE mandate_id = :mandate_id AND document_id = ANY(:ids) ORDER BY document_id, ordinal"
        ),
        {"mandate_id": tenant_of(session), "ids": list(document_ids)},
    )
    grouped: dict[UUID, list[Row[Any]]] = {}
    for row in rows:
        grouped.setdefault(row.document_id, []).append(row)
    return grouped


async def chunk_words(session: AsyncSession, chunk_ids: Sequence[UUID]) -> list[Row[Any]]:
    """What the lexical index holds of these chunks, so that it can be taken out again."""
    rows = await session.execute(
        text(
            "SELECT number, text, heading_path, title, language FROM chunk "
            "WHERE mandate_id = :mandate_id AND id = ANY(:ids)"
        ),
        {"mandate_id": tenant_of(session), "ids": list(chunk_ids)},
    )
    return list(rows)


async def delete_chunks(session: AsyncSession, chunk_ids: Sequence[UUID]) -> None:
    await session.execute(
        text("DELETE FROM chunk WHERE mandate_id = :mandate_id AND id = ANY(:ids)"),
        {"mandate_id": tenant_of(session), "ids": list(chunk_ids)},
    )


async def next_numbers(session: AsyncSession, count: int) -> list[int]:
    numbers = await session.scalar(
        text("SELECT array_agg(nextval('chunk_number')) FROM generate_series(1, :count)"), {"count": count}
    )
    return numbers or []


_COLUMNS = "id, number, document_id, ordinal, text, text_hash, locator, heading_path, title, token_count, language, model"
_TYPES = ("uuid", "int8", "uuid", "int4", "text", "bytea", "jsonb", "text", "text", "int4", "text", "text")


async def insert_chunks(session: AsyncSession, chunks: Sequence[ChunkRow]) -> None:
    connection = await raw_connection(session)
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(_COLUMNS.split(", "), _TYPES, strict=True))
    async with connection.cursor() as cursor:
        await cursor.execute(
            f"CREATE TEMP TABLE IF NOT EXISTS incoming_chunk ({columns}) ON COMMIT DELETE ROWS"
        )
        async with cursor.copy(f"COPY incoming_chunk ({_COLUMNS}) FROM STDIN (FORMAT BINARY)") as copy:
            await copy.write(_packed_chunks(chunks))
        await cursor.execute(
            f"INSERT INTO chunk (mandate_id, {_COLUMNS}) SELECT %s, {_COLUMNS} FROM incoming_chunk",
            (tenant_of(session),),
        )


# COPY BINARY by hand, for tables with thousands of rows at a time: a header, per row the number of its fields and each
# field with its length before it, and an end.
_BEGIN, _END = b"PGCOPY\n\xff\r\n\x00" + bytes(8), b"\xff\xff"
_LENGTH = struct.Struct(">i")
_CHUNK_HEAD = struct.Struct(
    ">hi16siqi16siii"
)  # field count; id, number, document_id, ordinal; length of the text
_JSONB = b"\x01"  # the version of its binary form


def _packed_chunks(chunks: Sequence[ChunkRow]) -> bytes:
    pack, head = _LENGTH.pack, _CHUNK_HEAD.pack
    pieces = [_BEGIN]
    for chunk in chunks:
        text, locator, heading = (
            chunk.text.encode(),
            _JSONB + orjson.dumps(chunk.locator),
            chunk.heading_path.encode(),
        )
        title, language, model = chunk.title.encode(), chunk.language.encode(), chunk.model.encode()
        pieces += (
            head(
                len(_TYPES), 16, chunk.id.bytes, 8, chunk.number, 16, chunk.document_id.bytes, 4, chunk.ordinal,
                len(text),
            ),
            text,
            pack(len(chunk.text_hash)), chunk.text_hash, pack(len(locator)), locator, pack(len(heading)), heading,
            pack(len(title)), title, pack(4), pack(chunk.token_count), pack(len(language)), language, pack(len(model)), model,
        )  # fmt: skip
    pieces.append(_END)
    return b"".join(pieces)


async def move_chunks(session: AsyncSession, rows: Sequence[dict[str, Any]]) -> None:
    """Kept chunks take their new place (`id ordinal locator heading_path title language model token_count`). Only rows that
    differ are written; vectors are never touched.
    """
    await session.execute(
        text(
            """
            UPDATE chunk c SET ordinal = r.ordinal, locator = r.locator, heading_path = r.heading_path, title = r.title,
                language = r.language, model = r.model, token_count = r.token_count
            FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r(id uuid, ordinal integer, locator jsonb, heading_path text,
                title text, language text, model text, token_count integer)
            WHERE c.mandate_id = :mandate_id AND c.id = ANY(:ids) AND c.id = r.id
              AND (c.ordinal, c.locator, c.heading_path, c.title, c.language, c.model) IS DISTINCT FROM
                  (r.ordinal, r.locator, r.heading_path, r.title, r.language, r.model)
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "rows": orjson.dumps(rows).decode(),
            "ids": [row["id"] for row in rows],
        },
    )


async def misnamed_documents(session: AsyncSession, limit: int) -> list[UUID]:
    """Documents that are not found by their title; reads all there are, so not for every day."""
    rows = await session.scalars(
        text(
            """
            SELECT d.id FROM document d
            JOIN chunk c ON c.mandate_id = d.mandate_id AND c.document_id = d.id AND c.ordinal = 0
            WHERE d.mandate_id = :mandate_id AND c.title <> d.title LIMIT :limit
            """
        ),
        {"mandate_id": tenant_of(session), "limit": limit},
    )
    return list(rows)


async def misnamed(session: AsyncSession, document_ids: Sequence[UUID]) -> list[Row[Any]]:
    """First chunks that are still found by a title their document no longer has."""
    rows = await session.execute(
        text(
            """
            SELECT c.id, c.number, c.text, c.heading_path, c.language, d.title,
                   coalesce(d.connection_id, d.data_source_id) AS owner_id
            FROM document d JOIN chunk c ON c.mandate_id = d.mandate_id AND c.document_id = d.id AND c.ordinal = 0
            WHERE d.mandate_id = :mandate_id AND d.id = ANY(:ids) AND c.title <> d.title ORDER BY c.number
            """
        ),
        {"mandate_id": tenant_of(session), "ids": list(document_ids)},
    )
    return list(rows)


async def name_chunks(session: AsyncSession, titles: Mapping[UUID, str]) -> None:
    await session.execute(
        text(
            "UPDATE chunk c SET title = r.title FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r(id uuid, title text) "
            "WHERE c.mandate_id = :mandate_id AND c.id = ANY(:ids) AND c.id = r.id"
        ),
        {
            "mandate_id": tenant_of(session),
            "rows": orjson.dumps([{"id": id_, "title": title} for id_, title in titles.items()]).decode(),
            "ids": list(titles),
        },
    )


async def insert_segment(
    session: AsyncSession,
    segment_id: UUID,
    owner_id: UUID | None,
    directory: bytes,
    numbers: Sequence[int],
    rows: Sequence[tuple[str, bytes]],
) -> None:
    await session.execute(
        text(
            "INSERT INTO segment (mandate_id, id, owner_id, directory, chunks, first_number, last_number) "
            "VALUES (:mandate_id, :id, :owner_id, :directory, :chunks, :first, :last)"
        ),
        {
            "mandate_id": tenant_of(session),
            "id": segment_id,
            "owner_id": owner_id,
            "directory": directory,
            "chunks": len(numbers),
            "first": min(numbers),
            "last": max(numbers),
        },
    )
    connection = await raw_connection(session)
    async with connection.cursor() as cursor:
        await cursor.execute(
            "CREATE TEMP TABLE IF NOT EXISTS incoming_posting (term text, data bytea) ON COMMIT DELETE ROWS"
        )
        await cursor.execute("TRUNCATE incoming_posting")  # one transaction may bring several segments
        async with cursor.copy("COPY incoming_posting FROM STDIN (FORMAT BINARY)") as copy:
            await copy.write(_packed_postings(rows))
        await cursor.execute(
            "INSERT INTO posting (mandate_id, term, segment_id, data) "
            "SELECT %s, term, %s, data FROM incoming_posting ORDER BY term",
            (tenant_of(session), segment_id),
        )


def _packed_postings(rows: Sequence[tuple[str, bytes]]) -> bytes:
    pack = _LENGTH.pack
    pieces = [_BEGIN]
    for term, data in rows:
        name = term.encode()
        pieces += (b"\x00\x02", pack(len(name)), name, pack(len(data)), data)
    pieces.append(_END)
    return b"".join(pieces)


async def lock_segments_around(session: AsyncSession, numbers: Sequence[int]) -> list[Row[Any]]:
    """The segments that may hold these chunks, locked in id order."""
    rows = await session.execute(
        text(
            """
            SELECT id, owner_id, directory, chunks FROM segment s
            WHERE mandate_id = :mandate_id AND EXISTS (
                SELECT FROM unnest(CAST(:numbers AS bigint[])) AS n WHERE n BETWEEN s.first_number AND s.last_number)
            ORDER BY id FOR UPDATE
            """
        ),
        {"mandate_id": tenant_of(session), "numbers": list(numbers)},
    )
    return list(rows)


async def segment_postings(
    session: AsyncSession, segment_id: UUID, terms: Sequence[str]
) -> list[tuple[str, bytes]]:
    rows = await session.execute(
        text(
            "SELECT term, data FROM posting WHERE mandate_id = :mandate_id AND segment_id = :id AND term = ANY(:terms)"
        ),
        {"mandate_id": tenant_of(session), "id": segment_id, "terms": list(terms)},
    )
    return [(row.term, row.data) for row in rows]


async def rewrite_segment(
    session: AsyncSession,
    segment_id: UUID,
    directory: bytes,
    chunks: int,
    rows: Sequence[tuple[str, bytes | None]],
) -> None:
    """Replaces a segment's directory and the posting rows given; None deletes a row. An empty segment goes altogether."""
    parameters: dict[str, Any] = {"mandate_id": tenant_of(session), "id": segment_id}
    if chunks == 0:
        await session.execute(
            text("DELETE FROM posting WHERE mandate_id = :mandate_id AND segment_id = :id"), parameters
        )
        await session.execute(
            text("DELETE FROM segment WHERE mandate_id = :mandate_id AND id = :id"), parameters
        )
        return
    await session.execute(
        text(
            "UPDATE segment SET directory = :directory, chunks = :chunks, version = version + 1 "
            "WHERE mandate_id = :mandate_id AND id = :id"
        ),
        parameters | {"directory": directory, "chunks": chunks},
    )
    kept = [(term, data) for term, data in rows if data is not None]
    await session.execute(
        text(
            "DELETE FROM posting WHERE mandate_id = :mandate_id AND segment_id = :id AND term = ANY(:terms)"
        ),
        parameters | {"terms": [term for term, data in rows if data is None]},
    )
    await session.execute(
        text(
            """
            UPDATE posting p SET data = r.data
            FROM unnest(CAST(:terms AS text[]), CAST(:data AS bytea[])) AS r(term, data)
            WHERE p.mandate_id = :mandate_id AND p.segment_id = :id AND p.term = r.term
              AND p.term = ANY(:terms) -- else a table without statistics is read once for every term
            """
        ),
        parameters | {"terms": [term for term, _ in kept], "data": [data for _, data in kept]},
    )


async def drop_segments_of(session: AsyncSession, owner_id: UUID) -> int:
    """Whole segments of a purged connection or source."""
    parameters = {"mandate_id": tenant_of(session), "owner_id": owner_id}
    dropped = await session.execute(
        text(
            """
            DELETE FROM posting p USING segment s
            WHERE p.mandate_id = :mandate_id AND s.mandate_id = :mandate_id AND s.owner_id = :owner_id AND p.segment_id = s.id
            """
        ),
        parameters,
    )
    await session.execute(
        text("DELETE FROM segment WHERE mandate_id = :mandate_id AND owner_id = :owner_id"), parameters
    )
    return int(dropped.rowcount)  # pyright: ignore[reportAttributeAccessIssue]


async def publish(session: AsyncSession, rows: Sequence[dict[str, Any]]) -> None:
    """The moment of indexing: `id job_id chunk_count language mime_type` of documents whose new chunks are in place."""
    await session.execute(
        text(
            """
            UPDATE document d SET status = 'indexed', reason = NULL, indexed_revision = d.revision,
                indexed_version = d.content_version, indexed_hash = d.content_hash, indexed_at = now(), verified_at = now(),
                updated_at = now(), chunk_count = r.chunk_count, language = coalesce(r.language, d.language),
                mime_type = coalesce(r.mime_type, d.mime_type)
            FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r(id uuid, chunk_count integer, language text, mime_type text)
            WHERE d.mandate_id = :mandate_id AND d.id = ANY(:ids) AND d.id = r.id
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "rows": orjson.dumps(rows).decode(),
            "ids": [row["id"] for row in rows],
        },
    )


async def keep_texts(session: AsyncSession, texts: Sequence[tuple[UUID, str]]) -> None:
    # Binary, and so past SQLAlchemy: in the text form of an array every quote and backslash of a text is looked for.
    connection = await raw_connection(session)
    await connection.execute(
        """
        INSERT INTO document_text (mandate_id, document_id, text) SELECT %s, * FROM unnest(%b::uuid[], %b::text[])
        ON CONFLICT (mandate_id, document_id) DO UPDATE SET text = excluded.text
        """,
        (tenant_of(session), [item[0] for item in texts], [item[1] for item in texts]),
    )


async def lock_small_segments(
    session: AsyncSession, owner_id: UUID | None, *, fewer_than: int, limit: int
) -> list[Row[Any]]:
    rows = await session.execute(
        text(
            """
            SELECT id, directory, chunks FROM segment
            WHERE mandate_id = :mandate_id AND owner_id IS NOT DISTINCT FROM :owner_id AND chunks < :fewer
            ORDER BY id LIMIT :limit FOR UPDATE SKIP LOCKED
            """
        ),
        {"mandate_id": tenant_of(session), "owner_id": owner_id, "fewer": fewer_than, "limit": limit},
    )
    return list(rows)


async def crowded_owners(session: AsyncSession, *, fewer_than: int, at_least: int) -> list[UUID | None]:
    """Owners with many small segments, which a search would pay for."""
    rows = await session.scalars(
        text(
            "SELECT owner_id FROM segment WHERE mandate_id = :mandate_id AND chunks < :fewer "
            "GROUP BY owner_id HAVING count(*) >= :least"
        ),
        {"mandate_id": tenant_of(session), "fewer": fewer_than, "least": at_least},
    )
    return list(rows)


async def all_postings(
    session: AsyncSession, segment_ids: Sequence[UUID]
) -> dict[UUID, list[tuple[str, bytes]]]:
    rows = await session.execute(
        text(
            "SELECT segment_id, term, data FROM posting WHERE mandate_id = :mandate_id AND segment_id = ANY(:ids)"
        ),
        {"mandate_id": tenant_of(session), "ids": list(segment_ids)},
    )
    grouped: dict[UUID, list[tuple[str, bytes]]] = {}
    for row in rows:
        grouped.setdefault(row.segment_id, []).append((row.term, row.data))
    return grouped


async def drop_segments(session: AsyncSession, segment_ids: Sequence[UUID]) -> None:
    parameters = {"mandate_id": tenant_of(session), "ids": list(segment_ids)}
    await session.execute(
        text("DELETE FROM posting WHERE mandate_id = :mandate_id AND segment_id = ANY(:ids)"), parameters
    )
    await session.execute(
        text("DELETE FROM segment WHERE mandate_id = :mandate_id AND id = ANY(:ids)"), parameters
    )
