"""Entries: the part of the corpus that people write and look after by hand.

An entry is a document of kind `entry` like any other: it enters through the façade, so an edit re-embeds only the chunks
that changed, and its id and its citations stay.
"""

from typing import Any
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus import search_repository, service
from gateway.corpus.blobs import BlobStore
from gateway.corpus.entries_repository import WRITTEN, find_entry, find_written
from gateway.corpus.entries_schemas import EntryAnswer, EntryIn, EntryOut, EntryPatch, EntryRow
from gateway.corpus.lexical.terms import query_terms
from gateway.corpus.phrases import holding_all
from gateway.corpus.schemas import DocumentPatch
from gateway.corpus.shelves import Shelves
from gateway.db import Database, new_id
from gateway.errors import ContentInvalid, NotFound, fields_invalid
from gateway.ingestion.facade import request_ingestion
from gateway.ingestion.schemas import IngestionHandle, IngestionRequest, TextContent
from gateway.readers import Connection
from gateway.tenancy.principal import Principal

_REVISED = (
    "uri", "mime_type", "feature_code", "user_id", "feature_instance_id", "data_source_id", "parent_document_id",
    "title", "type", "tags", "scope", "metadata",
)  # fmt: skip


_shelves = Shelves(
    200_000
)  # directories of the lexical segments, read once per version; a search has its own


async def readable(session: AsyncSession, entry_id: UUID, principal: Principal) -> Row[Any]:
    row = await find_entry(session, entry_id, principal.user_id)
    if row is None:
        raise NotFound(f"There is no entry {entry_id} here.")
    return row


async def write(
    session: AsyncSession, wanted: EntryIn, principal: Principal, blobs: BlobStore
) -> IngestionHandle:
    request = _request(
        source_kind="entry",
        source_id=str(new_id()),
        mime_type="text/plain",
        content=TextContent(text=wanted.content),
        **wanted.model_dump(exclude={"content"}),
    )
    return await _hand_in(session, await service.authorise(session, request, principal), principal, blobs)


async def revise(
    session: AsyncSession, entry_id: UUID, patch: EntryPatch, principal: Principal, blobs: BlobStore
) -> IngestionHandle | None:
    """The handle of the new revision, or None when only the description changed."""
    await readable(session, entry_id, principal)
    row = await service.editable(session, entry_id, principal)
    given = {name: value for name, value in patch.model_dump(exclude_unset=True).items() if value is not None}
    content: str | None = given.pop("content", None)
    if content is None:
        await service.describe(session, row, DocumentPatch(**given), principal)
        return None
    if row.source_kind not in WRITTEN:
        raise ContentInvalid(
            "Its content comes from a file or a source; change it there, or upload it again."
        )
    described: dict[str, Any] = {name: getattr(row, name) for name in _REVISED} | given
    request = _request(
        source_kind=row.source_kind,
        source_id=row.source_id,
        neutralize=row.neutralize,
        content=TextContent(text=content),
        **described,
    )
    allowed = await service.authorise(session, request, principal)
    # Whoever revises it, it stays whose it is.
    return await _hand_in(session, allowed.model_copy(update={"user_id": row.user_id}), principal, blobs)


async def _hand_in(
    session: AsyncSession, request: IngestionRequest, principal: Principal, blobs: BlobStore
) -> IngestionHandle:
    return await request_ingestion(
        session,
        request,
        blobs=blobs,
        may_replace=lambda row: service.may_replace(row, principal),
    )


def _request(**fields: Any) -> IngestionRequest:
    """What the façade would not take is the caller's to hear, field by field."""
    try:
        return IngestionRequest(**fields)
    except ValidationError as error:
        raise fields_invalid(error.errors()) from None


async def entry_out(session: AsyncSession, row: Row[Any], principal: Principal, blobs: BlobStore) -> EntryOut:
    return EntryOut(
        **_fields(row), metadata=row.metadata, content=await _content(session, row, principal, blobs)
    )


async def entry_answer(
    session: AsyncSession,
    entry_id: UUID,
    handle: IngestionHandle | None,
    principal: Principal,
    blobs: BlobStore,
) -> EntryAnswer:
    """To who was allowed to write it; an admin may do so in a feature instance without being a member."""
    row = await find_written(session, entry_id)
    if row is None:
        raise NotFound(f"There is no entry {entry_id} here.")
    shown = await entry_out(session, row, principal, blobs)
    return EntryAnswer(
        **shown.model_dump(),
        document_id=entry_id,
        job_id=handle.job_id if handle else None,
        outcome=handle.outcome if handle else "duplicate",
    )


async def chunks_with(db: Database, mandate_id: UUID, q: str) -> list[int]:
    """Numbers of the chunks that hold every word of `q`, in the stems of every language the mandate holds."""

    def holding(connection: Connection) -> list[int]:
        state = search_repository.read_state(connection, mandate_id, "")
        groups = query_terms(q, state.languages)
        terms = sorted({term for group in groups for term in group})
        return holding_all(_shelves.read(connection, mandate_id, terms), groups).tolist()

    return await db.read(mandate_id, holding)


def entry_row(row: Row[Any]) -> EntryRow:
    return EntryRow(**_fields(row))


def _fields(row: Row[Any]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in EntryRow.model_fields}


async def _content(
    session: AsyncSession, row: Row[Any], principal: Principal, blobs: BlobStore
) -> str | None:
    """An editor needs the very text; a reader gets what was kept of it, which may be masked (promise 10)."""
    editor = principal.is_admin or (row.user_id is not None and row.user_id == principal.user_id)
    if editor and row.content_form == "text":
        data = await blobs.read(session, row.blob_sha256)
        return data.decode("utf-8", "replace")
    return row.kept_text
