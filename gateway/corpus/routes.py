"""The corpus browser, uploads and erasure over HTTP."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, File, Form, Query, Request, Response, UploadFile
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import ValidationError
from starlette.datastructures import FormData
from starlette.datastructures import UploadFile as FormFile

from gateway.corpus import blob_repository, erasure, repository, service
from gateway.corpus import erasure_repository as receipts
from gateway.corpus.blobs import BlobStore, spool
from gateway.corpus.originals import require_former, require_original, saved_as, served_as
from gateway.corpus.repository import DocumentFilter
from gateway.corpus.schemas import (
    BlobOut,
    ChunkOut,
    DocumentOut,
    DocumentPatch,
    ErasureIn,
    MomentOut,
    ReceiptOut,
    ReindexOut,
    WhyOut,
)
from gateway.corpus.sniffing import sniff
from gateway.db import COMMONS, Database
from gateway.errors import CursorInvalid, NotFound, fields_invalid
from gateway.http import Cursor, Limit
from gateway.ingestion.facade import reindex, reindex_outdated
from gateway.ingestion.routes import accept
from gateway.ingestion.schemas import (
    BlobContent,
    IngestionHandle,
    IngestionRequest,
    Scope,
    SourceKind,
    Status,
)
from gateway.tenancy.access import Admin, Principal, Reader, Writer
from gateway.wire import Page, decode_cursor, encode_cursor

router = APIRouter(tags=["corpus"])

LONGEST_NAME = 500  # characters of a file's name that serve as its title
REINDEXED_AT_ONCE = 500  # documents per call
RECEIPT_SECONDS = 5  # an erasure done by then is answered with its receipt


# The body is read as it comes, so the framework cannot see what it is.
_BINARY = {"type": "string", "format": "binary"}
_BYTES = {
    "required": True,
    "content": {
        "application/octet-stream": {"schema": _BINARY},
        "multipart/form-data": {
            "schema": {"type": "object", "required": ["file"], "properties": {"file": _BINARY}}
        },
    },
}


async def _pieces(upload: FormFile) -> AsyncIterator[bytes]:
    while piece := await upload.read(1024 * 1024):
        yield piece


async def _keep(
    request: Request, principal: Principal, pieces: AsyncIterator[bytes], name: str | None
) -> BlobOut:
    """Streams an upload to disk within the limit, looks at what it is, and keeps it for this principal."""
    db: Database = request.app.state.db
    blobs: BlobStore = request.app.state.blobs
    with (
        tempfile.TemporaryFile() as target
    ):  # without a name: nothing is left of it, however this process ends
        digest, size = await spool(pieces, target, request.app.state.settings.upload_limit_bytes)
        target.seek(0)
        data = await asyncio.to_thread(target.read)
    mime_type = await sniff(data, name)
    async with db.tenant_session(principal.mandate_id) as session:
        await blobs.add(session, [(digest, data)])
        await blob_repository.note_upload(session, digest, principal.name)
    return BlobOut(blob=f"sha256:{digest.hex()}", size=size, mime_type=mime_type)


def _check_form(form: FormData, once: Sequence[str], often: Sequence[str] = ()) -> None:
    """A field nobody knows, or a second file, would be left out without a word."""
    wrong: list[tuple[str, str, str]] = []
    for name in form:
        if name not in (*once, *often):
            known = ", ".join((*once, *often))
            wrong.append((name, f"There is no such field here; known are {known}", "extra_forbidden"))
        elif name in once and len(form.getlist(name)) > 1:
            wrong.append((name, "It may be there once", "too_long"))
    if wrong:
        raise fields_invalid({"loc": ("body", name), "msg": said, "type": kind} for name, said, kind in wrong)


@router.post("/blobs", status_code=201, openapi_extra={"requestBody": _BYTES})
async def upload_blob(request: Request, principal: Writer) -> BlobOut:
    """Keeps the request body, or the `file` of a form, as a blob that a later ingestion of yours may refer to."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        return await _keep(request, principal, request.stream(), None)
    async with request.form() as form:
        file = form.get("file")
        if not isinstance(file, FormFile):
            raise fields_invalid([{"loc": ("body", "file"), "msg": "Field required", "type": "missing"}])
        _check_form(form, ("file",))
        return await _keep(request, principal, _pieces(file), file.filename)


@router.post("/files", status_code=202, responses={200: {"model": IngestionHandle}})
async def upload_file(
    request: Request,
    response: Response,
    principal: Writer,
    *,
    file: Annotated[UploadFile, File()],
    source_id: Annotated[str | None, Form(alias="sourceId")] = None,
    title: Annotated[str | None, Form()] = None,
    scope: Annotated[Scope, Form()] = "personal",
    tags: Annotated[list[str] | None, Form()] = None,
    neutralize: Annotated[bool, Form()] = False,
) -> IngestionHandle:
    """Uploads one file and asks for it to be searchable. Without `sourceId` its content names it."""
    _check_form(await request.form(), ("file", "sourceId", "title", "scope", "neutralize"), ("tags",))
    handle = await hand_in(
        request,
        principal,
        file,
        source_id=source_id,
        title=title,
        scope=scope,
        tags=[tag for entry in tags or [] for tag in entry.split(",") if tag],
        neutralize=neutralize,
    )
    response.status_code = 202 if handle.outcome == "queued" else 200
    return handle


async def hand_in(
    request: Request,
    principal: Principal,
    file: FormFile,
    *,
    scope: Scope,
    neutralize: bool,
    source_id: str | None = None,
    title: str | None = None,
    tags: Sequence[str] = (),
) -> IngestionHandle:
    """A file of a form, whoever sent the form: a program, or a person with the console's."""
    kept = await _keep(request, principal, _pieces(file), file.filename)
    try:
        wanted = IngestionRequest(
            source_kind="upload",
            source_id=source_id or kept.blob.removeprefix("sha256:"),
            content=BlobContent(blob=kept.blob),
            title=title or _as_title(file.filename),
            mime_type=kept.mime_type,
            scope=scope,
            tags=list(tags),
            neutralize=neutralize,
        )
    except ValidationError as error:
        raise fields_invalid(error.errors()) from error
    return await accept(request, principal, wanted)


def _as_title(file_name: str | None) -> str:
    """What a browser or a script called the file, as far as it can be shown."""
    return "".join(letter for letter in file_name or "" if letter.isprintable())[:LONGEST_NAME]


@router.get("/documents")
async def list_documents(
    request: Request,
    principal: Reader,
    *,
    source_kind: Annotated[SourceKind | None, Query(alias="sourceKind")] = None,
    status: Status | None = None,
    connection_id: Annotated[UUID | None, Query(alias="connectionId")] = None,
    type: str | None = None,  # noqa: A002 - the wire's word
    tag: str | None = None,
    title: str | None = None,
    source_id: Annotated[
        str | None, Query(alias="sourceId", description="the source's own id, or what you called it")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: str | None = None,
) -> Page[DocumentOut]:
    wanted = DocumentFilter(source_kind, status, connection_id, type, tag, title, source_id)
    after = decode_cursor(cursor) if cursor else None
    async with request.app.state.db.tenant_session(principal.mandate_id) as session:
        rows = await repository.list_documents(
            session, principal.user_id, wanted, limit=limit + 1, after=after
        )
    shown = rows[:limit]
    following = encode_cursor(shown[-1].created_at, shown[-1].id) if len(rows) > limit else None
    return Page(items=[service.document_out(row) for row in shown], next_cursor=following)


@router.get("/documents/{document_id}")
async def get_document(request: Request, document_id: UUID, principal: Reader) -> DocumentOut:
    principal = await service.caller_at(request.app.state.db, document_id, principal)
    async with request.app.state.db.tenant_session(principal.mandate_id) as session:
        return service.document_out(await service.readable(session, document_id, principal))


@router.patch("/documents/{document_id}")
async def patch_document(
    request: Request, document_id: UUID, patch: DocumentPatch, principal: Writer
) -> DocumentOut:
    """Changes what describes a document. Its id, chunks and vectors stay; nothing is parsed or embedded."""
    principal = await service.caller_at(request.app.state.db, document_id, principal, writing=True)
    async with request.app.state.db.tenant_session(principal.mandate_id) as session:
        row = await service.editable(session, document_id, principal)
        await service.describe(session, row, patch, principal)
        return service.document_out(await service.readable(session, document_id, principal))


@router.delete("/documents/{document_id}", responses={202: {"model": ReceiptOut}})
async def delete_document(request: Request, document_id: UUID, principal: Writer) -> ReceiptOut:
    """Deletes a document, its children and all they left behind; the receipt counts each store."""
    db: Database = request.app.state.db
    principal = await service.caller_at(db, document_id, principal, writing=True)
    async with db.tenant_session(principal.mandate_id) as session:
        await service.editable(session, document_id, principal)
        receipt_id = await erasure.begin_erasure(session, "document", str(document_id), "deleted")
        await erasure.enqueue_erasure(session, receipt_id)  # should this process die before it is done
    await erasure.finish_erasure(db, request.app.state.blobs, principal.mandate_id, receipt_id)
    return await _receipt(db, principal.mandate_id, receipt_id)


@router.get("/documents/{document_id}/chunks")
async def list_chunks(
    request: Request,
    document_id: UUID,
    principal: Reader,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    cursor: Cursor = None,
) -> Page[ChunkOut]:
    if cursor is not None and not cursor.isdecimal():
        raise CursorInvalid("The cursor is not one this service gave out; start without one.")
    principal = await service.caller_at(request.app.state.db, document_id, principal)
    async with request.app.state.db.tenant_session(principal.mandate_id) as session:
        await service.readable(session, document_id, principal)
        rows = await repository.list_chunks(
            session, document_id, limit=limit + 1, after=int(cursor) if cursor else -1
        )
    shown = rows[:limit]
    following = str(shown[-1].ordinal) if len(rows) > limit else None
    return Page(items=[service.chunk_out(row) for row in shown], next_cursor=following)


@router.get("/documents/{document_id}/timeline")
async def get_timeline(
    request: Request, document_id: UUID, principal: Reader, limit: Limit = 50, cursor: Cursor = None
) -> Page[MomentOut]:
    """Every change of state, oldest first."""
    after = decode_cursor(cursor) if cursor else None
    principal = await service.caller_at(request.app.state.db, document_id, principal)
    async with request.app.state.db.tenant_session(principal.mandate_id) as session:
        await service.readable(session, document_id, principal)
        rows = await repository.document_timeline(session, document_id, limit=limit + 1, after=after)
    shown = rows[:limit]
    following = encode_cursor(shown[-1].at, shown[-1].id) if len(rows) > limit else None
    return Page(items=[service.moment_out(row) for row in shown], next_cursor=following)


@router.get("/documents/{document_id}/original")
async def get_original(
    request: Request,
    document_id: UUID,
    principal: Reader,
    revision: Annotated[
        int | None, Query(ge=1, description="an earlier one; kept while it is served, and under legal hold")
    ] = None,
) -> Response:
    """The source bytes, served so that no browser runs or shows them by itself."""
    principal = await service.caller_at(request.app.state.db, document_id, principal)
    async with request.app.state.db.tenant_session(principal.mandate_id) as session:
        row = await service.readable(session, document_id, principal)
        digest, mime_type, size = row.blob_sha256, row.mime_type, row.size
        if revision is not None and revision != row.revision:
            former = await blob_repository.former_original(session, document_id, revision=revision)
            if former is None:
                raise NotFound(f"The original of revision {revision} is not here.")
            await require_former(session, row, former, principal)
            digest, mime_type, size = former.sha256, former.mime_type, former.size
        else:
            await require_original(session, row, principal)
            if await blob_repository.blob_size(session, digest) is None:
                raise NotFound("The original bytes are not here any more.")
    pieces = request.app.state.blobs.pieces(request.app.state.db, principal.mandate_id, digest)
    headers = {
        "Content-Length": str(size),
        "Content-Disposition": saved_as(row.title, mime_type, str(document_id)),
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    return StreamingResponse(pieces, media_type=served_as(mime_type), headers=headers)


@router.post("/documents/reindex", status_code=202)
async def reindex_outdated_documents(request: Request, principal: Admin) -> ReindexOut:
    """Runs the pipeline again for what was read for another embedding model, by an earlier version or under another policy:
    a number of documents per call, until there are no more. What is indexed is served meanwhile.
    """
    async with request.app.state.db.tenant_session(principal.mandate_id) as session:
        queued = await reindex_outdated(session, limit=REINDEXED_AT_ONCE)
    return ReindexOut(queued=queued, more=queued == REINDEXED_AT_ONCE)


@router.post("/documents/{document_id}/reindex", status_code=202)
async def reindex_document(request: Request, document_id: UUID, principal: Writer) -> IngestionHandle:
    """Runs the pipeline again on the kept original, whatever the hashes say. Unchanged texts are not embedded again."""
    principal = await service.caller_at(request.app.state.db, document_id, principal, writing=True)
    async with request.app.state.db.tenant_session(principal.mandate_id) as session:
        await service.editable(session, document_id, principal)
        return await reindex(session, document_id)


@router.get("/why")
async def why(
    request: Request, principal: Reader, external_id: Annotated[str, Query(alias="externalId", min_length=1)]
) -> WhyOut:
    """Why is this here, or not here? Answers from the ledger by the source's own id."""
    async with request.app.state.db.tenant_session(principal.mandate_id) as session:
        return await service.why(session, external_id, principal)


@router.post("/erasures", status_code=200, responses={202: {"model": ReceiptOut}})
async def erase(request: Request, wanted: ErasureIn, principal: Admin) -> Response:
    """Erases by user, document, source or the whole mandate. 200 with the receipt when done within 5 s, else 202."""
    subject: tuple[erasure.Subject, str]
    if wanted.user_id:
        subject = ("user", str(wanted.user_id))
    elif wanted.document_id:
        subject = ("document", str(wanted.document_id))
    elif wanted.source_id:
        subject = ("source", str(wanted.source_id))
    else:
        subject = ("mandate", str(principal.mandate_id))
    db: Database = request.app.state.db
    if wanted.document_id:
        with suppress(NotFound):  # what an admin cannot see can still be erased
            principal = await service.caller_at(db, wanted.document_id, principal, writing=True)
    async with db.tenant_session(principal.mandate_id) as session:
        receipt_id = await erasure.begin_erasure(session, *subject, "requested")
        await erasure.enqueue_erasure(session, receipt_id)
    until = time.monotonic() + RECEIPT_SECONDS
    receipt = await _receipt(db, principal.mandate_id, receipt_id)
    while receipt.status != "done" and not receipt.held and time.monotonic() < until:
        await asyncio.sleep(0.1)
        receipt = await _receipt(db, principal.mandate_id, receipt_id)
    body: dict[str, Any] = receipt.model_dump(mode="json", by_alias=True)
    return JSONResponse(body, status_code=200 if receipt.status == "done" else 202)


@router.get("/receipts/{receipt_id}")
async def get_receipt(request: Request, receipt_id: UUID, principal: Reader) -> ReceiptOut:
    if "operator" in principal.scopes:
        with suppress(NotFound):
            return await _receipt(request.app.state.db, COMMONS, receipt_id)
    return await _receipt(request.app.state.db, principal.mandate_id, receipt_id)


async def _receipt(db: Database, mandate_id: UUID, receipt_id: UUID) -> ReceiptOut:
    async with db.tenant_session(mandate_id) as session:
        row = await receipts.find_receipt(session, receipt_id)
    if row is None:
        raise NotFound(f"There is no receipt {receipt_id} in this mandate.")
    return service.receipt_out(row)
