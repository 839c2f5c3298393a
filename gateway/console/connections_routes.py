"""Accounts: connect one, see what it would bring, watch it fill up, fix what failed, disconnect with a receipt."""

from collections.abc import Iterable
from typing import Annotated, Any
from uuid import UUID

import orjson
from fastapi import APIRouter, Form, Query, Response
from fastapi.responses import HTMLResponse

from connectors.registry import SURFACES
from gateway.connections import routes as connections
from gateway.connections import sync_routes
from gateway.connections.schemas import ConnectionIn, ConnectionOut, ConnectionPatch, SourceOut
from gateway.connections.sync_progress_service import progress_of
from gateway.connections.sync_schemas import SurfaceProgress, SyncIn
from gateway.connections.sync_why_service import SENTENCES
from gateway.connections.vendors import is_configured
from gateway.console import rules
from gateway.console.visits import Member, MemberForm, PageRoute, Visit, back_to
from gateway.errors import FieldsInvalid

router = APIRouter(route_class=PageRoute)

ROWS = 100
ENDED = 20  # of what was disconnected, the newest


async def living(visit: Visit) -> list[ConnectionOut]:
    """The visitor's connections; an admin's are all of the mandate."""
    return [row for row in await _known(visit) if row.status != "revoked"]


async def _known(visit: Visit) -> list[ConnectionOut]:
    page = await connections.list_connections(visit.request, visit.db, visit.principal, limit=ROWS)
    return page.items


@router.get("/connections")
async def list_connections(visit: Member) -> HTMLResponse:
    return visit.page("connections.html", **await _offered(visit))


async def _offered(visit: Visit) -> dict[str, Any]:
    settings = visit.request.app.state.settings
    offered = {name: list(parts) for name, parts in SURFACES.items() if is_configured(settings, name)}
    known = await _known(visit)
    ended = [row for row in known if row.status == "revoked"]
    return {
        "connections": [row for row in known if row.status != "revoked"],
        "ended": ended[:ENDED],
        "authorities": offered,
    }


@router.post("/connections")
async def connect(
    visit: MemberForm,
    authority: Annotated[str, Form()],
    surfaces: Annotated[list[str] | None, Form()] = None,
    estimate: Annotated[bool, Form()] = False,
) -> Response:
    if not surfaces:  # a program that names none means all of them; a person who unticked every box does not
        again = {"unchosen": authority, "estimate": estimate}
        return visit.refused_page("connections.html", **await _offered(visit), **again)
    wanted = ConnectionIn(authority=authority, surfaces=surfaces, auto_start=not estimate)
    made = await connections.connect(visit.request, visit.db, wanted, visit.principal)
    return back_to(f"/connections/{made.id}/consent")


@router.get("/connections/{connection_id}/consent")
async def consent(visit: Member, connection_id: UUID) -> HTMLResponse:
    """A page between the form and the vendor: the strict policy lets no form lead to another site."""
    found = await connections.get_connection(visit.request, visit.db, connection_id, visit.principal)
    address = f"/v1/oauth/{found.authority}/start?connection={found.id}"
    return visit.page("consent.html", connection=found, address=address)


@router.get("/connections/{connection_id}")
async def connection_page(
    visit: Member,
    connection_id: UUID,
    *,
    item: Annotated[str, Query(max_length=500)] = "",
    skipped: bool = False,
    problem: Annotated[str, Query(max_length=20)] = "",
    connected: bool = False,
    saved: Annotated[str, Query(max_length=20)] = "",
) -> HTMLResponse:
    found = await connections.get_connection(visit.request, visit.db, connection_id, visit.principal)
    return visit.page(
        "connection.html",
        problem=visit.words(problem) if problem else "",
        connected=connected,
        saved=saved,
        **await _shown(visit, found, item, skipped=skipped),
    )


async def _shown(
    visit: Visit, found: ConnectionOut, item: str = "", *, skipped: bool = False
) -> dict[str, Any]:
    values: dict[str, Any] = {
        "estimate": None,
        "progress": None,
        "held": [],
        "failures": [],
        "items": [],
        "sentences": SENTENCES,
        "refreshable": False,
    }
    if found.status != "revoked":
        values |= await _looked_up(visit, found, item.strip(), skipped=skipped)
    return values | rules.shown(visit, found) | {"connection": found, "item": item, "skipped": skipped}


async def _looked_up(visit: Visit, found: ConnectionOut, item: str, *, skipped: bool) -> dict[str, Any]:
    values: dict[str, Any] = {}
    async with visit.db.tenant_session(visit.principal.mandate_id) as session:
        values["progress"] = progress = await progress_of(session, found.id)
    # All from one look: right after the consent the surfaces appear while this page is being made.
    values["refreshable"] = any(part.waits_for in {None, "vendor"} for part in progress.surfaces)
    unaccepted = _unaccepted(progress.surfaces)
    values["held"] = (await sync_routes.list_held(visit.db, found.id, visit.principal)).items
    values["failures"] = (
        await sync_routes.list_failures(visit.db, found.id, visit.principal, limit=ROWS)
    ).items
    if item:
        values["items"] = await _items(visit, found.id, item)
    elif skipped:
        listed = await sync_routes.list_items(
            visit.db, found.id, visit.principal, state="skipped", limit=ROWS
        )
        values["items"] = listed.items
    if unaccepted:
        told = await sync_routes.estimate(visit.request, visit.db, found.id, visit.principal)
        values["estimate"] = [part for part in told.surfaces if part.surface in unaccepted]
    return values


def _unaccepted(surfaces: Iterable[SourceOut | SurfaceProgress]) -> list[str]:
    """Those whose first sync waits for somebody who has seen what it would bring."""
    return [one.surface for one in surfaces if one.waits_for == "acceptance"]


async def _items(visit: Visit, connection_id: UUID, words: str) -> list[Any]:
    """By its id if it is one, else by part of its name or path."""
    exact = await sync_routes.list_items(
        visit.db, connection_id, visit.principal, external_id=words, limit=20
    )
    if exact.items:
        return exact.items
    named = await sync_routes.list_items(visit.db, connection_id, visit.principal, name=words, limit=20)
    return named.items


@router.post("/connections/{connection_id}/rules")
async def change_rules(visit: MemberForm, connection_id: UUID) -> Response:
    """What is refused comes back at its field, with everything as it was typed."""
    found = await connections.get_connection(visit.request, visit.db, connection_id, visit.principal)
    before = rules.written(found.policy)
    sent = rules.typed(found, await visit.request.form())
    patch, wrong = rules.read(sent, before)
    if patch and not wrong:
        try:
            wanted = ConnectionPatch(policy=patch)
            await connections.change_connection(
                visit.request, visit.db, connection_id, wanted, visit.principal
            )
        except FieldsInvalid as error:
            wrong = {str(one["field"]).partition(".")[0] for one in error.extra.get("errors", ())}
    if not wrong:
        return back_to(f"/connections/{connection_id}", saved="rules")
    again = {"rules": before | sent, "wrong": wrong}
    return visit.refused_page("connection.html", **(await _shown(visit, found) | again))


@router.post("/connections/{connection_id}/surfaces")
async def change_surfaces(
    visit: MemberForm, connection_id: UUID, surfaces: Annotated[list[str] | None, Form()] = None
) -> Response:
    """What the last consent does not cover leads to the vendor's page at once, if it is the visitor's to give."""
    found = await connections.get_connection(visit.request, visit.db, connection_id, visit.principal)
    if not surfaces:
        return visit.refused_page("connection.html", **(await _shown(visit, found)), unchosen=True)
    wanted = ConnectionPatch(surfaces=surfaces)
    changed = await connections.change_connection(
        visit.request, visit.db, connection_id, wanted, visit.principal
    )
    added = set(changed.surfaces) - set(found.surfaces)
    if added & set(changed.not_granted) and changed.user_id == visit.person.id and found.status == "active":
        return back_to(f"/connections/{connection_id}/consent")
    return back_to(f"/connections/{connection_id}", saved="surfaces")


@router.post("/connections/{connection_id}/start")
async def start(visit: MemberForm, connection_id: UUID) -> Response:
    found = await connections.get_connection(visit.request, visit.db, connection_id, visit.principal)
    wanted = SyncIn(mode="bootstrap", surfaces=_unaccepted(found.sources) or None)
    await sync_routes.sync(visit.db, connection_id, visit.principal, wanted)
    return back_to(f"/connections/{connection_id}")


@router.post("/connections/{connection_id}/sync")
async def refresh(visit: MemberForm, connection_id: UUID) -> Response:
    await sync_routes.sync(visit.db, connection_id, visit.principal)
    return back_to(f"/connections/{connection_id}")


@router.post("/connections/{connection_id}/pause")
async def pause(visit: MemberForm, connection_id: UUID) -> Response:
    await connections.pause(visit.request, visit.db, connection_id, visit.principal)
    return back_to(f"/connections/{connection_id}")


@router.post("/connections/{connection_id}/resume")
async def resume(visit: MemberForm, connection_id: UUID) -> Response:
    await connections.resume(visit.request, visit.db, connection_id, visit.principal)
    return back_to(f"/connections/{connection_id}")


@router.post("/connections/{connection_id}/approve")
async def approve(
    visit: MemberForm, connection_id: UUID, surface: Annotated[str | None, Query(max_length=50)] = None
) -> Response:
    await sync_routes.approve_held(visit.db, connection_id, visit.principal, surface)
    return back_to(f"/connections/{connection_id}", saved="approved")


@router.post("/connections/{connection_id}/failures/{failure_id}/retry")
async def retry(visit: MemberForm, connection_id: UUID, failure_id: UUID) -> Response:
    await sync_routes.retry_failure(visit.db, connection_id, failure_id, visit.principal)
    return back_to(f"/connections/{connection_id}")


@router.post("/connections/{connection_id}/revoke")
async def revoke(visit: MemberForm, connection_id: UUID) -> Response:
    answer = await connections.revoke(visit.db, connection_id, visit.principal)
    said = orjson.loads(answer.body)
    return back_to(f"/receipts/{said.get('receiptId') or said['id']}")
