"""Store: one transaction replaces the chunks of a whole batch of documents. Readers see the old version or the new one.

Chunks are compared by content hash: what is unchanged keeps its id and its vector and only moves; what is new gets
a row, a place in a lexical segment and a reference to its vector; what is gone leaves nothing behind.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus import chunk_repository as chunks
from gateway.corpus import lexicon
from gateway.corpus import vector_repository as vectors
from gateway.corpus.chunk_repository import ChunkRow
from gateway.crashpoints import crash_point
from gateway.db import new_id
from gateway.ingestion import ledger_repository as ledger
from gateway.ingestion import repository as ingestion
from workers.pipeline.chunk import Chunk


@dataclass(frozen=True)
class ReadyDocument:
    """A parsed document whose texts all have vectors."""

    job_id: UUID
    document_id: UUID
    revision: int
    owner_id: UUID | None
    title: str
    text: str
    language: str
    mime_type: str | None
    chunks: Sequence[Chunk]
    terms: Sequence[dict[str, int]]

    def title_of(self, chunk: Chunk) -> str:
        """A document is found by its title too, through its first chunk: a rename then concerns one, however long it is."""
        return self.title if chunk.ordinal == 0 else ""


class VectorsMissing(Exception):
    """A vector was collected between embedding and storing; the job embeds again."""


@dataclass
class Difference:
    kept: list[tuple[Row[Any], Chunk]] = field(default_factory=list[tuple[Row[Any], Chunk]])
    added: list[Chunk] = field(default_factory=list[Chunk])
    removed: list[Row[Any]] = field(default_factory=list[Row[Any]])


def difference(existing: Sequence[Any], incoming: Sequence[Chunk]) -> Difference:
    """Pairs old and new by hash, the n-th occurrence with the n-th, so that a repeated paragraph keeps its ids too."""
    unmatched: dict[bytes, list[Any]] = defaultdict(list)
    for row in reversed(existing):
        unmatched[row.text_hash].append(row)
    found = Difference()
    for chunk in incoming:
        rows = unmatched.get(chunk.text_hash)
        if rows:
            found.kept.append((rows.pop(), chunk))
        else:
            found.added.append(chunk)
    found.removed = [row for rows in unmatched.values() for row in rows]
    return found


async def store_documents(session: AsyncSession, model: str, documents: Sequence[ReadyDocument]) -> None:
    """The moment of indexing, inside the caller's transaction, which already holds the documents and jobs."""
    changes = await replace_chunks(session, model, documents)
    await chunks.publish(
        session,
        [
            {
                "id": document.document_id,
                "chunk_count": len(document.chunks),
                "language": document.language,
                "mime_type": document.mime_type,
            }
            for document in documents
        ],
    )
    await ledger.finish(session, [{"id": document.job_id, "status": "indexed"} for document in documents])
    await ingestion.add_timeline(
        session,
        [
            {
                "id": new_id(),
                "document_id": document.document_id,
                "job_id": document.job_id,
                "status": "indexed",
                "detail": {
                    "chunks": len(document.chunks),
                    "added": len(change.added),
                    "removed": len(change.removed),
                },
            }
            for document, change in changes
        ],
    )


async def replace_chunks(
    session: AsyncSession, model: str, documents: Sequence[ReadyDocument]
) -> list[tuple[ReadyDocument, Difference]]:
    """Makes the corpus say what these documents say now, and nothing they no longer say."""
    wanted = sorted({chunk.text_hash for document in documents for chunk in document.chunks})
    if await vectors.pin(session, model, wanted) < len(wanted):
        raise VectorsMissing
    existing = await chunks.existing_chunks(session, [document.document_id for document in documents])
    changes = [
        (document, difference(existing.get(document.document_id, []), document.chunks))
        for document in documents
    ]
    kept = [pair for _, change in changes for pair in change.kept]
    gone = [row for _, change in changes for row in change.removed]
    # A chunk under a new heading or title is found by other words; its text and vector are the same.
    reworded = {
        row.id
        for document, change in changes
        for row, chunk in change.kept
        if (row.heading_path, row.title, row.language)
        != (chunk.heading_path, document.title_of(chunk), chunk.language)
    }
    if gone or reworded:
        await lexicon.take_out(session, [*(row.id for row in gone), *reworded])
    if gone:
        await chunks.delete_chunks(session, [row.id for row in gone])
    await _add(session, model, changes, reworded)
    await _move(session, model, changes)
    crash_point("store.inside")
    await chunks.keep_texts(session, [(document.document_id, document.text) for document in documents])
    outdated = {row.text_hash for row in gone} - set(wanted)
    outdated |= {row.text_hash for row, _ in kept if row.model != model}
    if outdated:
        await vectors.collect(session, sorted(outdated))
    return changes


async def _add(
    session: AsyncSession,
    model: str,
    changes: Sequence[tuple[ReadyDocument, Difference]],
    reworded: set[UUID],
) -> None:
    """Rows for new chunks; lexical segments for new and reworded ones, one per owner."""
    numbers = iter(await chunks.next_numbers(session, sum(len(change.added) for _, change in changes)))
    rows: list[ChunkRow] = []
    segments: dict[UUID | None, list[tuple[int, dict[str, int]]]] = defaultdict(list)
    for document, change in changes:
        terms = {
            chunk.ordinal: lexicon.titled(counted, document.title_of(chunk), chunk.language)
            for chunk, counted in zip(document.chunks, document.terms, strict=True)
        }
        for chunk in change.added:
            number = next(numbers)
            rows.append(
                ChunkRow(
                    id=new_id(),
                    number=number,
                    document_id=document.document_id,
                    ordinal=chunk.ordinal,
                    text=chunk.text,
                    text_hash=chunk.text_hash,
                    locator=chunk.locator,
                    heading_path=chunk.heading_path,
                    title=document.title_of(chunk),
                    token_count=chunk.token_count,
                    language=chunk.language,
                    model=model,
                )
            )
            segments[document.owner_id].append((number, terms[chunk.ordinal]))
        for row, chunk in change.kept:
            if row.id in reworded:
                segments[document.owner_id].append((row.number, terms[chunk.ordinal]))
    if rows:
        await chunks.insert_chunks(session, rows)
    for owner_id, entries in segments.items():
        await lexicon.put_in(session, owner_id, entries)


async def _move(
    session: AsyncSession, model: str, changes: Sequence[tuple[ReadyDocument, Difference]]
) -> None:
    moves = [
        {
            "id": row.id,
            "ordinal": chunk.ordinal,
            "locator": chunk.locator,
            "heading_path": chunk.heading_path,
            "title": document.title_of(chunk),
            "language": chunk.language,
            "model": model,
            "token_count": chunk.token_count,
        }
        for document, change in changes
        for row, chunk in change.kept
    ]
    if moves:
        await chunks.move_chunks(session, moves)
