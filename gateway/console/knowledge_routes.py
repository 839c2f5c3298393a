"""What is in the corpus: the browser, one document with its passages and where they stand, entries and uploads."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, File, Form, Query, Response, UploadFile
from fastapi.responses import HTMLResponse
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.console import passages, repository
from gateway.console.visits import Member, MemberForm, PageRoute, back_to
from gateway.corpus import entries, entries_repository, entries_routes, routes, service
from gateway.corpus import repository as corpus
from gateway.corpus.entries_repository import WRITTEN, EntryFilter
from gateway.corpus.entries_schemas import EmbeddingStatus, EntryIn, EntryPatch
from gateway.corpus.originals import why_withheld
from gateway.errors import NotFound
from gateway.ingestion.schemas import LIVE_STATUSES, SOURCE_KINDS, Scope
from gateway.wire import decode_cursor, encode_cursor

router = APIRouter(route_class=PageRoute)

PER_PAGE = 50
CHUNKS_SHOWN = 100


def _day(value: date | None, *, end: bool = False) -> datetime | None:
    if value is None:
        return None
    return datetime.combine(value + timedelta(days=1) if end else value, time.min, UTC)


def _optional(value: str | None) -> str | None:
    """A form sends empty fields along; they mean nothing."""
    return value or None


@router.get("/knowledge")
async def browse(
    visit: Member,
    *,
    q: Annotated[str, Query(max_length=1000)] = "",
    kind: Annotated[str, Query(max_length=100)] = "",
    status: Annotated[EmbeddingStatus | str, Query(max_length=20)] = "",
    since: Annotated[str, Query(alias="from", max_length=10)] = "",
    until: Annotated[str, Query(alias="to", max_length=10)] = "",
    connection: UUID | None = None,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
    kept_out: Annotated[int, Query(alias="keptOut", ge=0)] = 0,
    reason: Annotated[str, Query(max_length=100)] = "",
) -> HTMLResponse:
    mandate_id, viewer = visit.principal.mandate_id, visit.person.id
    numbers = await entries.chunks_with(visit.db, mandate_id, q) if q.strip() else ()
    wanted = EntryFilter(
        _optional(q.strip()),
        numbers,
        _optional(kind),
        _optional(status),
        _day(_parsed_day(since)),
        _day(_parsed_day(until), end=True),
        SOURCE_KINDS,
        connection,
    )
    async with visit.db.tenant_session(mandate_id) as session:
        rows, totals = await entries_repository.browse_entries(
            session, viewer, wanted, limit=PER_PAGE + 1, after=decode_cursor(cursor) if cursor else None
        )
    shown = rows[:PER_PAGE]
    following = encode_cursor(shown[-1].created_at, shown[-1].id) if len(rows) > PER_PAGE else None
    filters = {"q": q, "kind": kind, "status": status, "from": since, "to": until}
    if connection:
        filters["connection"] = str(connection)
    return visit.page(
        "knowledge.html",
        rows=shown,
        totals=totals,
        filters=filters,
        following=following,
        kinds=SOURCE_KINDS,
        kept_out=kept_out,
        reason=reason,
        waiting=not cursor and any(row.embedding_status == "pending" for row in shown),
    )


def _parsed_day(value: str) -> date | None:
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


@router.get("/knowledge/new")
async def new_entry(visit: Member) -> HTMLResponse:
    return visit.page("entry.html", entry=None)


@router.post("/knowledge/new")
async def write_entry(
    visit: MemberForm,
    *,
    title: Annotated[str, Form()] = "",
    content: Annotated[str, Form()] = "",
    type: Annotated[str, Form()] = "note",  # noqa: A002 - the form's word
    tags: Annotated[str, Form()] = "",
    scope: Annotated[Scope, Form()] = "personal",
) -> Response:
    wanted = EntryIn.model_validate(
        {"title": title, "content": content, "type": type or "note", "tags": _tags(tags), "scope": scope}
    )
    kept = await entries_routes.write_entry(visit.request, visit.db, wanted, visit.principal)
    return back_to(f"/knowledge/{kept.id}")


def _tags(value: str) -> list[str]:
    return [tag.strip() for tag in value.split(",") if tag.strip()]


@router.post("/knowledge/upload")
async def upload(
    visit: MemberForm,
    *,
    file: Annotated[list[UploadFile], File()],
    scope: Annotated[Scope, Form()] = "personal",
    neutralize: Annotated[bool, Form()] = False,
) -> Response:
    """One file leads to its page, several to the list; what the policy or a quota kept out is said there."""
    handles = [
        await routes.hand_in(visit.request, visit.principal, one, scope=scope, neutralize=neutralize)
        for one in file
    ]
    kept_out = [handle.reason or "" for handle in handles if handle.document_id is None]
    if kept_out:
        return back_to("/knowledge", keptOut=str(len(kept_out)), reason=kept_out[0])
    return back_to(f"/knowledge/{handles[0].document_id}" if len(handles) == 1 else "/knowledge")


@router.get("/knowledge/{document_id}")
async def document(
    visit: Member,
    document_id: UUID,
    chunk: UUID | None = None,
    after: Annotated[int, Query(ge=-1)] = -1,
) -> HTMLResponse:
    principal = await service.caller_at(visit.db, document_id, visit.principal)
    async with visit.db.tenant_session(principal.mandate_id) as session:
        row = await service.readable(session, document_id, principal)
        chunks = await corpus.list_chunks(session, document_id, limit=CHUNKS_SHOWN + 1, after=after)
        cited = await _cited(session, row, chunk) if chunk else None
        withheld = await why_withheld(session, row, principal)
        drawn = await why_withheld(session, row, principal, served=True) is None
        values: dict[str, Any] = {
            "timeline": await corpus.document_timeline(session, document_id),
            "children": await repository.children(session, document_id, visit.person.id),
            "citations": await repository.citations_since(
                session, document_id, datetime.now(UTC) - timedelta(days=30)
            ),
        }
    may_edit = principal.is_admin or row.user_id == visit.person.id
    return visit.page(
        "document.html",
        document=row,
        chunks=chunks[:CHUNKS_SHOWN],
        more=chunks[CHUNKS_SHOWN - 1].ordinal if len(chunks) > CHUNKS_SHOWN else None,
        cited=cited,
        may_edit=may_edit,
        withheld=withheld,
        drawn=drawn,
        sentence=service.REASON_SENTENCES.get(row.reason or ""),
        waiting=row.status in LIVE_STATUSES,
        written=row.source_kind in WRITTEN,
        **values,
    )


async def _cited(session: AsyncSession, document: Row[Any], chunk_id: UUID) -> dict[str, Any]:
    """The cited region as its kind of document shows it best."""
    found = await repository.find_chunk(session, document.id, chunk_id)
    if found is None:
        raise NotFound("That passage is no longer in the document: it has changed since it was cited.")
    locator: dict[str, Any] = found.locator
    start, end = int(locator.get("charStart", 0)), int(locator.get("charEnd", 0))
    offset = max(0, start - passages.CONTEXT_CHARACTERS)
    piece = await repository.text_piece(
        session, document.id, offset, end - offset + passages.CONTEXT_CHARACTERS
    )
    text, whole = piece or (found.text, len(found.text))
    shown: dict[str, Any] = {"chunk": found, "locator": locator, "lines": None}
    shown["excerpt"] = passages.around(text, offset if piece else start, start, end, whole)
    if isinstance(locator.get("lineStart"), int) and isinstance(locator.get("lineEnd"), int):
        before = shown["excerpt"].before.split("\n")[-passages.CONTEXT_LINES :]
        after = shown["excerpt"].after.split("\n")[: passages.CONTEXT_LINES]
        first = int(locator["lineStart"]) - len(before) + 1
        around = "\n".join(before) + shown["excerpt"].cited + "\n".join(after)
        cited = range(int(locator["lineStart"]), int(locator["lineEnd"]) + 1)
        shown["lines"] = passages.numbered_lines(around, max(first, 1), cited)
    return shown


@router.get("/knowledge/{document_id}/edit")
async def edit_entry(visit: Member, document_id: UUID) -> HTMLResponse:
    entry = await entries_routes.get_entry(visit.request, visit.db, document_id, visit.principal)
    return visit.page("entry.html", entry=entry)


@router.post("/knowledge/{document_id}/edit")
async def revise_entry(
    visit: MemberForm,
    document_id: UUID,
    *,
    title: Annotated[str, Form()] = "",
    content: Annotated[str, Form()] = "",
    type: Annotated[str, Form()] = "note",  # noqa: A002 - the form's word
    tags: Annotated[str, Form()] = "",
    scope: Annotated[Scope, Form()] = "personal",
) -> Response:
    patch = EntryPatch.model_validate(
        {"title": title, "content": content, "type": type or "note", "tags": _tags(tags), "scope": scope}
    )
    await entries_routes.revise_entry(
        visit.request, Response(), visit.db, document_id, patch, visit.principal
    )
    return back_to(f"/knowledge/{document_id}")


@router.post("/knowledge/{document_id}/reindex")
async def reindex(visit: MemberForm, document_id: UUID) -> Response:
    await routes.reindex_document(visit.request, document_id, visit.principal)
    return back_to(f"/knowledge/{document_id}")


@router.post("/knowledge/{document_id}/delete")
async def delete(visit: MemberForm, document_id: UUID) -> Response:
    receipt = await routes.delete_document(visit.request, document_id, visit.principal)
    return back_to(f"/receipts/{receipt.id}")


@router.get("/receipts/{receipt_id}")
async def receipt(visit: Member, receipt_id: UUID) -> HTMLResponse:
    found = await routes.get_receipt(visit.request, receipt_id, visit.principal)
    return visit.page("receipt.html", receipt=found)
