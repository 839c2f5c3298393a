"""Puts ready passages into the corpus without parsing or embedding, for benchmarks and tests of search.

They enter through the façade like everything else; then, in the same transaction, what the pipeline would have done is
written by the functions the pipeline uses.
"""

import asyncio
import base64
import hashlib
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from obstore.store import MemoryStore
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus import chunk_repository, lexicon, vector_repository
from gateway.corpus.blobs import BlobStore
from gateway.corpus.chunk_repository import ChunkRow
from gateway.corpus.lexical.language import FALLBACK
from gateway.db import new_id
from gateway.ingestion import ledger_repository as ledger
from gateway.ingestion.facade import request_ingestions
from gateway.ingestion.schemas import BytesContent, IngestionHandle, IngestionRequest

BATCH = 500  # documents per request to the façade


@dataclass(frozen=True, kw_only=True)
class ReadyDocument:
    """One document, already cut: each text is a chunk. `described` are fields of an ingestion request."""

    texts: Sequence[str]
    source_id: str
    language: str = FALLBACK
    heading_path: str = ""
    original: bytes = b""
    locators: Sequence[dict[str, Any]] = ()
    described: dict[str, Any] | None = None

    def request(self) -> IngestionRequest:
        content = BytesContent(base64=base64.b64encode(self.original or self.source_id.encode()).decode())
        fields: dict[str, Any] = {"source_kind": "paste", "scope": "mandate", **(self.described or {})}
        return IngestionRequest(
            source_id=self.source_id, content=content, language=self.language, lane="backfill", **fields
        )


@dataclass(frozen=True)
class Loaded:
    document_ids: list[UUID]
    chunk_ids: list[UUID]


def passage_hash(text: str) -> bytes:
    """What the pipeline files a text's vector under."""
    return hashlib.sha256(unicodedata.normalize("NFC", text).encode()).digest()


async def load_documents(
    session: AsyncSession,
    model: str,
    documents: Sequence[ReadyDocument],
    vectors: NDArray[np.float32],
    *,
    blobs: BlobStore | None = None,
) -> Loaded:
    """One row of `vectors` per text, in order; ids come back in order. One lexical segment per owner."""
    requests = [document.request() for document in documents]
    handles: list[IngestionHandle] = []
    for start in range(0, len(requests), BATCH):
        part = requests[start : start + BATCH]
        handles += await request_ingestions(session, part, blobs=blobs or BlobStore(MemoryStore()))
    ids = [handle.document_id for handle in handles if handle.document_id]
    if len(ids) != len(documents):
        raise ValueError("the façade refused a document")
    count = sum(len(document.texts) for document in documents)
    numbers = await chunk_repository.next_numbers(session, count)
    rows = list(_chunks(documents, ids, numbers, model))
    await vector_repository.insert(session, model, [row.text_hash for row in rows], vectors)
    await chunk_repository.insert_chunks(session, rows)
    await _put_in(session, requests, documents, rows)
    await chunk_repository.publish(
        session,
        [
            {"id": document_id, "chunk_count": len(document.texts), "language": document.language}
            for document_id, document in zip(ids, documents, strict=True)
        ],
    )
    await ledger.finish(session, [{"id": handle.job_id, "status": "indexed"} for handle in handles])
    return Loaded(ids, [row.id for row in rows])


def _chunks(
    documents: Sequence[ReadyDocument], ids: Sequence[UUID], numbers: Sequence[int], model: str
) -> Iterator[ChunkRow]:
    number = iter(numbers)
    for document, document_id in zip(documents, ids, strict=True):
        title = str((document.described or {}).get("title", ""))
        for ordinal, text in enumerate(document.texts):
            located = document.locators[ordinal] if document.locators else {"kind": "text"}
            yield ChunkRow(
                id=new_id(),
                number=next(number),
                document_id=document_id,
                ordinal=ordinal,
                text=text,
                text_hash=passage_hash(text),
                locator={**located, "charStart": 0, "charEnd": len(text)},
                heading_path=document.heading_path,
                title="" if ordinal else title,
                token_count=len(text) // 4 + 1,
                language=document.language,
                model=model,
            )


async def _put_in(
    session: AsyncSession,
    requests: Sequence[IngestionRequest],
    documents: Sequence[ReadyDocument],
    rows: Sequence[ChunkRow],
) -> None:
    terms = await asyncio.to_thread(
        lambda: [
            lexicon.chunk_terms(row.text, row.heading_path, row.language, title=row.title) for row in rows
        ]
    )
    entries = iter(zip((row.number for row in rows), terms, strict=True))
    segments: dict[UUID | None, list[tuple[int, dict[str, int]]]] = {}
    for request, document in zip(requests, documents, strict=True):
        owned = segments.setdefault(request.connection_id or request.data_source_id, [])
        owned.extend(next(entries) for _ in document.texts)
    for owner_id, owned in segments.items():
        await lexicon.put_in(session, owner_id, owned)
