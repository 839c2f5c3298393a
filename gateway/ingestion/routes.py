"""`requestIngestion` and `getIngestionStatus` over HTTP, and the door for domain events."""

import asyncio
from base64 import b64encode
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus import blob_repository
from gateway.corpus.blobs import BlobStore
from gateway.corpus.service import authorise, editable, home_of, in_commons, may_replace, readable
from gateway.crashpoints import crash_point
from gateway.db import COMMONS, Database
from gateway.errors import NotFound
from gateway.ingestion import facade, repository
from gateway.ingestion.events import check_event, record_event
from gateway.ingestion.schemas import (
    BlobContent,
    BytesContent,
    IngestionHandle,
    IngestionRequest,
    IngestionStatus,
    Status,
)
from gateway.tenancy.access import Admin, Principal, Reader, Writer
from gateway.wire import JsonObject, Page, Wire, decode_cursor, encode_cursor

router = APIRouter(tags=["ingestion"])

_CODES = {"queued": 202, "duplicate": 200, "skipped": 200}


async def accept(request: Request, principal: Principal, wanted: IngestionRequest) -> IngestionHandle:
    """One request in one transaction; when this returns, it is committed."""
    db: Database = request.app.state.db
    blobs: BlobStore = request.app.state.blobs
    home = home_of(wanted.scope, principal)
    if isinstance(wanted.content, BlobContent):
        async with db.tenant_session(principal.mandate_id) as session:
            if not await blob_repository.was_uploaded_by(session, wanted.content.sha256(), principal.name):
                raise NotFound(f"You uploaded no blob {wanted.content.blob}; POST it to /v1/blobs first.")
            if (
                home != principal.mandate_id
            ):  # bytes belong to a mandate; what is for everybody brings them along
                data = await blobs.read(session, wanted.content.sha256())
                carried = BytesContent(base64=b64encode(data).decode())
                wanted = wanted.model_copy(update={"content": carried})
    replacing = principal if home == principal.mandate_id else in_commons(principal)
    async with db.tenant_session(home) as session:
        handle = await facade.request_ingestion(
            session,
            await authorise(session, wanted, principal),
            blobs=blobs,
            may_replace=lambda row: may_replace(row, replacing),
        )
        if isinstance(wanted.content, BlobContent) and handle.document_id is not None:
            await blob_repository.use_uploads(session, wanted.content.sha256(), principal.name)
        crash_point("request.before_commit")
    crash_point("request.after_commit")
    return handle


@router.post("/ingestions", status_code=202, responses={200: {"model": IngestionHandle}})
async def request_ingestion(
    request: Request,
    response: Response,
    wanted: IngestionRequest,
    principal: Writer,
) -> IngestionHandle:
    """Asks for content to be searchable. 202: queued; 200: already indexed, in flight, or skipped with a reason."""
    handle = await accept(request, principal, wanted)
    response.status_code = _CODES[handle.outcome]
    return handle


@router.get("/ingestions/{job_id}")
async def get_ingestion_status(request: Request, job_id: UUID, principal: Reader) -> IngestionStatus:
    db: Database = request.app.state.db
    who = principal
    if "operator" in principal.scopes:
        async with db.tenant_session(COMMONS) as session:
            if await repository.find_job(session, job_id) is not None:
                who = in_commons(principal)
    async with db.tenant_session(who.mandate_id) as session:
        return await _visible_job(session, job_id, who)


async def _visible_job(session: AsyncSession, job_id: UUID, principal: Principal) -> IngestionStatus:
    """Who may see a document may see its jobs; the mandate's admins see all of them, which say nothing of the content."""
    status = await facade.get_ingestion_status(session, job_id)
    if not principal.is_admin:
        if status.document_id is None:
            raise NotFound(f"There is no job {job_id}.")
        await readable(session, status.document_id, principal)
    return status


@router.post("/ingestions/{job_id}/cancel")
async def cancel_ingestion(request: Request, job_id: UUID, principal: Writer) -> IngestionStatus:
    """Withdraws a job that has not ended. What was indexed before stays as it is."""
    async with request.app.state.db.tenant_session(principal.mandate_id) as session:
        status = await _visible_job(session, job_id, principal)
        if not principal.is_admin and status.document_id is not None:
            await editable(session, status.document_id, principal)
        return await facade.cancel_ingestion(session, job_id)


@router.get("/ingestions")
async def list_ingestions(
    request: Request,
    principal: Reader,
    status: Status | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: str | None = None,
) -> Page[IngestionStatus]:
    after = decode_cursor(cursor) if cursor else None
    async with request.app.state.db.tenant_session(principal.mandate_id) as session:
        rows = await repository.list_jobs(
            session,
            principal.user_id,
            everybodys=principal.is_admin,
            status=status,
            limit=limit + 1,
            after=after,
        )
    shown = rows[:limit]
    following = encode_cursor(shown[-1].created_at, shown[-1].id) if len(rows) > limit else None
    return Page(items=[facade.status_of(row) for row in shown], next_cursor=following)


class EventIn(Wire):
    type: str
    payload: JsonObject = Field(default_factory=dict)


class EventOut(Wire):
    accepted: bool = True


@router.post("/events", status_code=202)
async def receive_event(request: Request, event: EventIn, principal: Admin) -> EventOut:
    """A domain event for the one consumer. It is kept with this answer and handled shortly after."""
    await asyncio.to_thread(check_event, event.type, event.payload)  # a file may be in it
    async with request.app.state.db.tenant_session(principal.mandate_id) as session:
        await record_event(session, event.type, event.payload)
    return EventOut()
