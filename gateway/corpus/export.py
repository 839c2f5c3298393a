"""Everything stored about a user as one zip archive, written while it is read.

One JSON Lines file per sort of thing, the kept text and the originals of every document, and what was uploaded and never
used. Files are called by ids and hashes, so that no title leads out of a folder or falls on another. No more than a page of rows or a
piece of a file is in memory at a time, and no transaction stays open while the reader is slow. What is erased meanwhile
is left out.
"""

import asyncio
import time
import zipfile
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast
from uuid import UUID

import orjson

from gateway.corpus import blob_repository
from gateway.corpus import export_repository as repository
from gateway.corpus.blobs import BlobStore
from gateway.db import Database
from gateway.errors import NotFound
from gateway.logs import emit

PAGE = 200
DOCUMENTS_AT_ONCE = 50
_FIRST = UUID(int=0)
_WORTH_A_THREAD = 64 * 1024


async def export_user(
    db: Database, blobs: BlobStore, mandate_id: UUID, user_id: UUID
) -> AsyncIterator[bytes]:
    """The archive, piece by piece; NotFound, before the first piece, if nothing speaks of this user."""
    async with db.tenant_session(mandate_id) as session:
        for (
            about
        ) in repository.ABOUT:  # who left has no account, and may still have asked or uploaded something
            if await repository.rows_about(session, about, user_id, after="", limit=1):
                break
        else:
            raise NotFound(f"Nothing is stored about a user {user_id}; see whether the id is right.")
    return _pieces(db, blobs, mandate_id, user_id)


async def _pieces(db: Database, blobs: BlobStore, mandate_id: UUID, user_id: UUID) -> AsyncIterator[bytes]:
    began, documents = time.monotonic(), 0
    archive = _Archive()
    async for name, content, compressed in _files(db, blobs, mandate_id, user_id):
        documents += name.startswith("texts/")
        async for piece in archive.file(name, content, compressed=compressed):
            yield piece
    yield archive.end()
    emit(
        "ingestion.exported",
        mandateId=str(mandate_id),
        userId=str(user_id),
        documents=documents,
        durationMs=round((time.monotonic() - began) * 1000),
    )


async def _files(
    db: Database, blobs: BlobStore, mandate_id: UUID, user_id: UUID
) -> AsyncIterator[tuple[str, AsyncIterator[bytes], bool]]:
    """Name, content, and whether it is worth packing."""
    for about in repository.ABOUT:
        yield f"{about}.jsonl", _rows(db, mandate_id, about, user_id), True
    yield "chunks.jsonl", _chunks(db, mandate_id, user_id), True
    yield "timeline.jsonl", _timelines(db, mandate_id, user_id), True
    async for batch in _documents(db, mandate_id, user_id):
        for row in batch:
            yield f"texts/{row.id}.txt", _text(db, mandate_id, row.id), True
        for name, digest in await _originals(db, mandate_id, batch):
            yield name, blobs.pieces(db, mandate_id, digest), False
    async for digest in _uploads(db, mandate_id, user_id):
        yield f"uploads/{digest.hex()}", blobs.pieces(db, mandate_id, digest), False


async def _rows(db: Database, mandate_id: UUID, about: str, user_id: UUID) -> AsyncIterator[bytes]:
    after = ""
    while True:
        async with db.tenant_session(mandate_id) as session:
            page = await repository.rows_about(session, about, user_id, after=after, limit=PAGE)
        if not page:
            return
        after = page[-1][0]
        yield _lines([row for _, row in page])


async def _documents(db: Database, mandate_id: UUID, user_id: UUID) -> AsyncIterator[Sequence[Any]]:
    after = _FIRST
    while True:
        async with db.tenant_session(mandate_id) as session:
            batch = await repository.documents_of(session, user_id, after=after, limit=DOCUMENTS_AT_ONCE)
        if not batch:
            return
        after = batch[-1].id
        yield batch


async def _originals(db: Database, mandate_id: UUID, batch: Sequence[Any]) -> list[tuple[str, bytes]]:
    """File names and hashes: of each document what it was made of, and what a legal hold or a reader keeps of before."""
    async with db.tenant_session(mandate_id) as session:
        former = await blob_repository.former_originals(session, [row.id for row in batch])
    newest = [(f"originals/{row.id}", row.blob_sha256) for row in batch if row.reason != "infected"]
    return newest + [(f"originals/{row.document_id}.revision-{row.revision}", row.sha256) for row in former]


async def _uploads(db: Database, mandate_id: UUID, user_id: UUID) -> AsyncIterator[bytes]:
    after = b""
    while True:
        async with db.tenant_session(mandate_id) as session:
            page = await repository.unused_uploads(session, user_id, after=after, limit=PAGE)
        if not page:
            return
        for digest in page:
            yield digest
        after = page[-1]


async def _chunks(db: Database, mandate_id: UUID, user_id: UUID) -> AsyncIterator[bytes]:
    async for batch in _documents(db, mandate_id, user_id):
        after = (_FIRST, -1)
        while True:
            async with db.tenant_session(mandate_id) as session:
                ids = [row.id for row in batch]
                page = await repository.chunks_after(session, ids, after=after, limit=PAGE)
            if not page:
                break
            after = (page[-1].document_id, page[-1].ordinal)
            yield _lines([row.row for row in page])


async def _timelines(db: Database, mandate_id: UUID, user_id: UUID) -> AsyncIterator[bytes]:
    async for batch in _documents(db, mandate_id, user_id):
        async with db.tenant_session(mandate_id) as session:
            yield _lines(await repository.timelines_of(session, [row.id for row in batch]))


async def _text(db: Database, mandate_id: UUID, document_id: UUID) -> AsyncIterator[bytes]:
    async with db.tenant_session(mandate_id) as session:
        kept = await repository.kept_text(session, document_id)
    if kept is not None:
        yield kept.encode("utf-8", "replace")


def _lines(rows: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)


class _Archive:
    """A zip archive into nowhere: what was written since the last look is handed on, and forgotten."""

    def __init__(self) -> None:
        self._written = bytearray()
        self._zip = zipfile.ZipFile(cast("Any", self), "w", zipfile.ZIP_DEFLATED, compresslevel=1)

    async def file(
        self, name: str, content: AsyncIterator[bytes], *, compressed: bool = True
    ) -> AsyncIterator[bytes]:
        """One file of the archive; none if there is no content."""
        entry = None
        async for piece in content:
            if entry is None:
                described = zipfile.ZipInfo(name, time.gmtime()[:6])
                described.compress_type = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
                entry = self._zip.open(described, "w", force_zip64=True)
            if len(piece) < _WORTH_A_THREAD:
                entry.write(piece)
            else:
                await asyncio.to_thread(entry.write, piece)
            if self._written:
                yield self._taken()
        if entry is not None:
            entry.close()
            yield self._taken()

    def end(self) -> bytes:
        self._zip.close()
        return self._taken()

    def _taken(self) -> bytes:
        taken = bytes(self._written)
        self._written.clear()
        return taken

    # What `zipfile` needs of a file it cannot seek in.

    def write(self, data: bytes) -> int:
        self._written += data
        return len(data)

    def flush(self) -> None:
        """Nothing waits anywhere."""
