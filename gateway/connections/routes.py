"""Connections over HTTP: connect, look, change, pause, disconnect."""

import asyncio
import time
from datetime import UTC, datetime
from typing import cast
from uuid import UUID

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from connectors import registry
from gateway.connections import repository, service
from gateway.connections.oauth_service import prove
from gateway.connections.schemas import ConnectionIn, ConnectionOut, ConnectionPatch, RevocationOut
from gateway.connections.tokens import Kept, seal_tokens
from gateway.connections.vault import Vault
from gateway.connections.vendors import require_authority, require_client
from gateway.corpus import erasure_repository as receipts
from gateway.corpus.schemas import ReceiptOut
from gateway.corpus.service import receipt_out
from gateway.db import Database
from gateway.errors import NotAllowed, NotFound
from gateway.http import Cursor, Db, Limit, base_url
from gateway.settings import Settings
from gateway.tenancy.access import Principal, Reader, Writer
from gateway.wire import Page, decode_cursor, encode_cursor

router = APIRouter(tags=["connections"])

RECEIPT_SECONDS = 5  # an erasure done by then is answered with its receipt


@router.post("/connections", status_code=201)
async def connect(request: Request, db: Db, wanted: ConnectionIn, principal: Writer) -> ConnectionOut:
    """Makes a connection. Open `authorizeUrl` in the user's browser; with a `credential` it is active at once."""
    require_authority(wanted.authority)
    settings = cast("Settings", request.app.state.settings)
    if wanted.credential is not None:
        return await _connect_with_credential(request, db, wanted, principal)
    require_client(settings, wanted.authority)
    async with db.tenant_session(principal.mandate_id) as session:
        row = await service.create(session, wanted, principal)
        [made] = await service.shown(session, [row], base_url(request))
    return made


async def _connect_with_credential(
    request: Request, db: Database, wanted: ConnectionIn, principal: Principal
) -> ConnectionOut:
    if not (principal.is_admin or principal.service) or wanted.credential is None:
        raise NotAllowed(
            "A credential is handed in by an admin or a service; others give consent in a browser."
        )
    settings = cast("Settings", request.app.state.settings)
    tokens, account = await prove(settings, wanted.authority, wanted.credential)
    vault = cast("Vault", request.app.state.vault)
    async with db.tenant_session(principal.mandate_id) as session:
        row = await service.create(session, wanted, principal)
        sealed = seal_tokens(vault, principal.mandate_id, row.id, Kept(tokens, datetime.now(UTC)))
        registered_by = principal.name if principal.user_id is None else None
        await service.establish(
            session,
            row.id,
            account,
            sealed,
            tokens.expires_at,
            granted=registry.authority(wanted.authority).granted_surfaces(tokens.scopes),
            registered_by=registered_by,
        )
        made = await service.visible(session, row.id, principal)
        [shown] = await service.shown(session, [made], base_url(request))
    return shown


@router.get("/connections")
async def list_connections(
    request: Request, db: Db, principal: Reader, limit: Limit = 50, cursor: Cursor = None
) -> Page[ConnectionOut]:
    """One's own, for a service those it registered; for admins all of the mandate."""
    whose = None if principal.is_admin else principal
    async with db.tenant_session(principal.mandate_id) as session:
        rows = await repository.list_connections(
            session, whose=whose, limit=limit + 1, after=decode_cursor(cursor) if cursor else None
        )
        items = await service.shown(session, rows[:limit], base_url(request))
    following = encode_cursor(items[-1].created_at, items[-1].id) if len(rows) > limit else None
    return Page(items=items, next_cursor=following)


@router.get("/connections/{connection_id}")
async def get_connection(request: Request, db: Db, connection_id: UUID, principal: Reader) -> ConnectionOut:
    async with db.tenant_session(principal.mandate_id) as session:
        row = await service.visible(session, connection_id, principal)
        [shown] = await service.shown(session, [row], base_url(request))
    return shown


@router.patch("/connections/{connection_id}")
async def change_connection(
    request: Request, db: Db, connection_id: UUID, patch: ConnectionPatch, principal: Writer
) -> ConnectionOut:
    """Policy and surfaces. What a removed surface brought is erased; a new one may need consent again."""
    async with db.tenant_session(principal.mandate_id) as session:
        row = await service.change(session, connection_id, patch, principal)
        [shown] = await service.shown(session, [row], base_url(request))
    return shown


@router.post("/connections/{connection_id}/pause")
async def pause(request: Request, db: Db, connection_id: UUID, principal: Writer) -> ConnectionOut:
    return await _pause(request, db, connection_id, principal, paused=True)


@router.post("/connections/{connection_id}/resume")
async def resume(request: Request, db: Db, connection_id: UUID, principal: Writer) -> ConnectionOut:
    return await _pause(request, db, connection_id, principal, paused=False)


async def _pause(
    request: Request, db: Database, connection_id: UUID, principal: Principal, *, paused: bool
) -> ConnectionOut:
    async with db.tenant_session(principal.mandate_id) as session:
        row = await service.pause(session, connection_id, principal, paused=paused)
        [shown] = await service.shown(session, [row], base_url(request))
    return shown


@router.delete(
    "/connections/{connection_id}",
    responses={200: {"model": ReceiptOut}, 202: {"model": RevocationOut}},
)
async def revoke(db: Db, connection_id: UUID, principal: Writer) -> Response:
    """From this answer on nothing of it is served. 200 with the receipt if all is erased within 5 s, else 202."""
    async with db.tenant_session(principal.mandate_id) as session:
        row = await service.visible(session, connection_id, principal)
        receipt_id = await service.revoke(session, row, "revoked")
    until = time.monotonic() + RECEIPT_SECONDS
    receipt = await _receipt(db, principal.mandate_id, receipt_id)
    while receipt.status != "done" and not receipt.held and time.monotonic() < until:
        await asyncio.sleep(0.1)
        receipt = await _receipt(db, principal.mandate_id, receipt_id)
    if receipt.status == "done":
        return JSONResponse(receipt.model_dump(mode="json", by_alias=True))
    running = RevocationOut(receipt_id=receipt_id, status=receipt.status)
    return JSONResponse(running.model_dump(mode="json", by_alias=True), status_code=202)


async def _receipt(db: Database, mandate_id: UUID, receipt_id: UUID) -> ReceiptOut:
    async with db.tenant_session(mandate_id) as session:
        row = await receipts.find_receipt(session, receipt_id)
    if row is None:
        raise NotFound(f"There is no receipt {receipt_id}.")
    return receipt_out(row)
