"""The entries browser over HTTP: write, read, revise, delete, and list under filters with totals."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from gateway.corpus import entries, erasure, service
from gateway.corpus import entries_repository as repository
from gateway.corpus import erasure_repository as receipts
from gateway.corpus.entries_repository import EntryFilter
from gateway.corpus.entries_schemas import (
    EmbeddingStatus,
    EntryAnswer,
    EntryIn,
    EntryOut,
    EntryPage,
    EntryPatch,
    EntryTotals,
)
from gateway.corpus.schemas import ReceiptOut
from gateway.errors import ContentInvalid, NotFound, of_form
from gateway.http import Cursor, Db, Limit
from gateway.tenancy.access import Reader, Writer
from gateway.wire import EndMoment, Moment, decode_cursor, encode_cursor

router = APIRouter(tags=["entries"])

NO_NUL = of_form(r"^[^\x00]*$", "without NUL characters")


@router.post("/entries", status_code=202, responses={200: {"model": EntryAnswer}})
async def write_entry(request: Request, db: Db, wanted: EntryIn, principal: Writer) -> EntryAnswer:
    """A manual entry. It is kept with this answer and searchable shortly after."""
    if wanted.scope == "global":
        principal = service.in_commons(principal)
    async with db.tenant_session(principal.mandate_id) as session:
        handle = await entries.write(session, wanted, principal, request.app.state.blobs)
        if handle.document_id is None:
            raise ContentInvalid(
                f"The mandate's policy keeps this entry out: {handle.reason}.", reason=handle.reason
            )
        return await entries.entry_answer(
            session, handle.document_id, handle, principal, request.app.state.blobs
        )


@router.get("/entries")
async def list_entries(
    db: Db,
    principal: Reader,
    *,
    q: Annotated[
        str | None,
        Query(max_length=1000, pattern=NO_NUL, description="part of the title, or words of the text"),
    ] = None,
    source_type: Annotated[str | None, Query(alias="sourceType", max_length=100, pattern=NO_NUL)] = None,
    embedding_status: Annotated[EmbeddingStatus | None, Query(alias="embeddingStatus")] = None,
    since: Annotated[Moment | None, Query(alias="from")] = None,
    until: Annotated[EndMoment | None, Query(alias="to")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> EntryPage:
    """Newest first. The totals count everything under the same filter."""
    numbers = await entries.chunks_with(db, principal.mandate_id, q) if q else ()
    async with db.tenant_session(principal.mandate_id) as session:
        wanted = EntryFilter(q, numbers, source_type, embedding_status, since, until)
        rows, totals = await repository.browse_entries(
            session,
            principal.user_id,
            wanted,
            limit=limit + 1,
            after=decode_cursor(cursor) if cursor else None,
        )
    shown = [entries.entry_row(row) for row in rows[:limit]]
    following = encode_cursor(shown[-1].created_at, shown[-1].id) if len(rows) > limit else None
    return EntryPage(items=shown, next_cursor=following, totals=EntryTotals.model_validate(totals))


@router.get("/entries/{entry_id}")
async def get_entry(request: Request, db: Db, entry_id: UUID, principal: Reader) -> EntryOut:
    principal = await service.caller_at(db, entry_id, principal)
    async with db.tenant_session(principal.mandate_id) as session:
        row = await entries.readable(session, entry_id, principal)
        return await entries.entry_out(session, row, principal, request.app.state.blobs)


@router.patch("/entries/{entry_id}", responses={202: {"model": EntryAnswer}})
async def revise_entry(
    request: Request, response: Response, db: Db, entry_id: UUID, patch: EntryPatch, principal: Writer
) -> EntryAnswer:
    """202 when new content was queued; 200 when nothing but the description changed."""
    principal = await service.caller_at(db, entry_id, principal, writing=True)
    async with db.tenant_session(principal.mandate_id) as session:
        handle = await entries.revise(session, entry_id, patch, principal, request.app.state.blobs)
        if handle is not None and handle.document_id is None:
            raise ContentInvalid(
                f"The mandate's policy keeps this text out: {handle.reason}.", reason=handle.reason
            )
        shown = await entries.entry_answer(session, entry_id, handle, principal, request.app.state.blobs)
    response.status_code = 202 if shown.outcome == "queued" else 200
    return shown


@router.delete("/entries/{entry_id}")
async def delete_entry(request: Request, db: Db, entry_id: UUID, principal: Writer) -> ReceiptOut:
    """Gone with everything it left behind; the receipt counts each store."""
    principal = await service.caller_at(db, entry_id, principal, writing=True)
    async with db.tenant_session(principal.mandate_id) as session:
        await entries.readable(session, entry_id, principal)
        await service.editable(session, entry_id, principal)
        receipt_id = await erasure.begin_erasure(session, "document", str(entry_id), "deleted")
        await erasure.enqueue_erasure(session, receipt_id)  # should this process die before it is done
    await erasure.finish_erasure(db, request.app.state.blobs, principal.mandate_id, receipt_id)
    async with db.tenant_session(principal.mandate_id) as session:
        receipt = await receipts.find_receipt(session, receipt_id)
    if receipt is None:
        raise NotFound(f"There is no receipt {receipt_id}.")
    return service.receipt_out(receipt)
