"""Search over HTTP, and the pictures its citations open on."""

from typing import Annotated, Any, NamedTuple
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus import blob_repository, search_repository, service
from gateway.corpus.citations import cited_boxes
from gateway.corpus.originals import require_original
from gateway.corpus.pictures import PageUndrawable, draw_page
from gateway.corpus.search import search
from gateway.corpus.search_schemas import SearchOut, SearchParameters, search_out
from gateway.db import COMMONS
from gateway.errors import Conflict, NotFound
from gateway.http import Db
from gateway.insights.query_log import asked, weighed
from gateway.tenancy.access import Principal, Reader

router = APIRouter(tags=["search"])

PDF = "application/pdf"


class CitationOutdated(Conflict):
    """The source has changed since it was cited."""

    code = "citation.outdated"


@router.get("/search")
async def search_corpus(
    request: Request, db: Db, principal: Reader, wanted: Annotated[SearchParameters, Query()]
) -> SearchOut:
    """What you may see that answers the query, best first, each hit with its citations."""
    state, query = request.app.state, wanted.query()
    result = await search(db, state.embedder, principal, query, reranker=state.reranker)
    note = await weighed(
        asked(
            principal,
            query,
            result,
            model=state.embedder.model,
            agent_deployment_id=wanted.agent_deployment_id,
        )
    )
    state.query_log.note(note)
    return search_out(result, answered=note.answered)


@router.get("/documents/{document_id}/pages/{page}.png", response_class=Response)
async def page_picture(
    request: Request, db: Db, document_id: UUID, page: int, principal: Reader, chunk: UUID | None = None
) -> Response:
    """The page of a PDF as it is, with the region of the cited chunk marked."""
    mime_type, boxes, data = await _read(request, db, document_id, page, principal, chunk)
    if (mime_type or "").partition(";")[0] != PDF:
        raise PageUndrawable("Only PDF documents have pages that can be drawn.")
    png = await draw_page(request.app.state.picture_pool, data, page, boxes)
    return Response(
        png, media_type="image/png", headers={"Content-Security-Policy": "sandbox; default-src 'none'"}
    )


async def _read(
    request: Request, db: Db, document_id: UUID, page: int, principal: Principal, chunk: UUID | None
) -> tuple[str | None, list[list[float]], bytes]:
    for mandate_id in dict.fromkeys((principal.mandate_id, COMMONS)):
        async with db.tenant_session(mandate_id) as session:
            try:
                row = await service.readable(session, document_id, principal)
            except NotFound:
                continue
            await require_original(session, row, principal, served=True)
            served = await _served(session, row)
            boxes: list[list[float]] = []
            if chunk is not None:
                locator = await search_repository.find_locator(session, document_id, chunk)
                if locator is None:
                    raise NotFound(f"The document has no chunk {chunk}.")
                boxes = cited_boxes(locator, page)
            return served.mime_type, boxes, await request.app.state.blobs.read(session, served.sha256)
    raise NotFound(f"There is no document {document_id} here.")


class _Original(NamedTuple):
    mime_type: str | None
    sha256: bytes


async def _served(session: AsyncSession, row: Row[Any]) -> _Original:
    """The original of the revision that searches cite, also when a newer one is still being read, or could not be."""
    if row.indexed_hash is None or row.indexed_hash == row.content_hash:
        return _Original(row.mime_type, row.blob_sha256)
    former = await blob_repository.former_original(session, row.id, content_hash=row.indexed_hash)
    if former is None:
        raise CitationOutdated("It has changed since it was cited; search again.")
    return _Original(former.mime_type, former.sha256)
