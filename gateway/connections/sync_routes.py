"""Syncs over HTTP: what a first one would bring, asking for one, watching it, and why something is not here."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Literal, cast
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from redis.asyncio import Redis
from redis.exceptions import RedisError
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.connections import repository as connections
from gateway.connections import service, sync_service
from gateway.connections import sync_item_repository as items
from gateway.connections import sync_repository as repository
from gateway.connections.places import Places, VendorPlaces
from gateway.connections.sync_estimate_service import estimate_surface, total
from gateway.connections.sync_progress_service import channel, progress_of
from gateway.connections.sync_schemas import (
    ApprovedOut,
    EstimateOut,
    FailureOut,
    HeldList,
    HeldOut,
    ItemOut,
    ProgressOut,
    QueuedSync,
    SyncIn,
    SyncOut,
)
from gateway.connections.sync_why_service import item_out
from gateway.db import Database
from gateway.errors import Conflict, NotFound
from gateway.http import Cursor, Db, Limit
from gateway.tenancy.access import Principal, Reader, Writer
from gateway.wire import Page, decode_cursor, decode_text_cursor, encode_cursor, encode_text_cursor

router = APIRouter(prefix="/connections/{connection_id}", tags=["connections"])

WATCH_SECONDS = 600.0  # a browser comes back by itself
LOOK_SECONDS = 1.0  # without a ring from Redis


def places_of(request: Request) -> Places:
    state = request.app.state
    if not hasattr(state, "places"):
        state.places = VendorPlaces(state.db, state.settings, state.redis)
    return cast("Places", state.places)


@router.get("/estimate")
async def estimate(request: Request, db: Db, connection_id: UUID, principal: Reader) -> EstimateOut:
    """What a first sync would bring: items, bytes, and a guess at tokens and time."""
    async with db.tenant_session(principal.mandate_id) as session:
        row = await service.visible(session, connection_id, principal)
        if row.state != "active":
            raise Conflict("The connection has no grant to ask the vendor with; give consent first.")
        await service.ensure_sources(session, row)
        sources = await repository.sources_of(session, connection_id)
        per_byte = await repository.tokens_per_byte(session)
    places = places_of(request)
    asked = [estimate_surface(places, principal.mandate_id, source, per_byte) for source in sources]
    return total(await asyncio.gather(*asked))


@router.post("/sync", status_code=202)
async def sync(db: Db, connection_id: UUID, principal: Writer, wanted: SyncIn | None = None) -> SyncOut:
    """Looks for changes now. Asking twice makes one sync; `mode: bootstrap` lists everything anew, which is also how the
    estimate of a connection with `autoStart: false` is accepted.
    """
    asked = wanted or SyncIn()
    async with db.tenant_session(principal.mandate_id) as session:
        row = await service.visible(session, connection_id, principal)
        if row.state != "active" or row.paused:
            raise Conflict("The connection is paused or has no grant; resume it or give consent first.")
        await service.ensure_sources(session, row)
        sources = await repository.sources_of(session, connection_id)
        unknown = set(asked.surfaces or ()) - {source.surface for source in sources}
        if unknown:
            raise NotFound(f"The connection has no surface {', '.join(sorted(unknown))}.")
        wanted_ones = [
            source for source in sources if asked.surfaces is None or source.surface in asked.surfaces
        ]
        job_ids = await sync_service.ask_for(session, wanted_ones, asked.mode)
    return SyncOut(
        jobs=[
            QueuedSync(surface=source.surface, job_id=job_id)
            for source, job_id in zip(wanted_ones, job_ids, strict=True)
        ]
    )


ItemState = Literal["pending", "handed", "skipped", "failed", "deleted", "held", "folder"]


@router.get("/items")
async def list_items(
    db: Db,
    connection_id: UUID,
    principal: Reader,
    *,
    external_id: Annotated[str | None, Query(alias="externalId", max_length=2000)] = None,
    name: Annotated[str | None, Query(max_length=500, description="part of a name or path")] = None,
    state: ItemState | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[ItemOut]:
    """What the vendor listed and what became of it: why a file is, or is not, here."""
    after = decode_text_cursor(cursor) if cursor else None
    async with db.tenant_session(principal.mandate_id) as session:
        await service.visible(session, connection_id, principal)
        rows = await items.find_items(
            session,
            connection_id,
            external_id=external_id,
            name=name,
            state=state,
            limit=limit + 1,
            after=after,
        )
    following = (
        encode_text_cursor(rows[limit - 1].seen_at, rows[limit - 1].external_id)
        if len(rows) > limit
        else None
    )
    return Page(items=[item_out(row) for row in rows[:limit]], next_cursor=following)


@router.get("/failures")
async def list_failures(
    db: Db, connection_id: UUID, principal: Reader, limit: Limit = 50, cursor: Cursor = None
) -> Page[FailureOut]:
    async with db.tenant_session(principal.mandate_id) as session:
        await service.visible(session, connection_id, principal)
        rows = await repository.list_failures(
            session, connection_id, limit=limit + 1, after=decode_cursor(cursor) if cursor else None
        )
    shown = rows[:limit]
    following = encode_cursor(shown[-1].first_at, shown[-1].id) if len(rows) > limit else None
    return Page(items=[_failure_out(row) for row in shown], next_cursor=following)


@router.post("/failures/{failure_id}/retry", status_code=202)
async def retry_failure(db: Db, connection_id: UUID, failure_id: UUID, principal: Writer) -> FailureOut:
    """Tries it again now instead of when its time comes."""
    async with db.tenant_session(principal.mandate_id) as session:
        await service.visible(session, connection_id, principal)
        row = await sync_service.retry_failure(session, connection_id, failure_id)
        if row is None:
            raise NotFound(f"There is no failure {failure_id} here.")
    return _failure_out(row)


def _failure_out(row: Any) -> FailureOut:
    return FailureOut.model_validate({name: getattr(row, name) for name in FailureOut.model_fields})


@router.get("/held")
async def list_held(db: Db, connection_id: UUID, principal: Reader) -> HeldList:
    """Deletions that wait for somebody's word, with a few of the names."""
    found: list[HeldOut] = []
    async with db.tenant_session(principal.mandate_id) as session:
        await service.visible(session, connection_id, principal)
        examples = await items.find_items(
            session, connection_id, external_id=None, name=None, state="held", limit=20, after=None
        )
        for source in await repository.sources_of(session, connection_id):
            if source.held is not None:
                names = [row.name for row in examples if row.data_source_id == source.id]
                since = datetime.fromisoformat(source.held["since"])
                said = {name: source.held[name] for name in ("count", "known", "percent")}
                found.append(HeldOut(surface=source.surface, examples=names, since=since, **said))
    return HeldList(items=found)


@router.post("/held/approve")
async def approve_held(
    db: Db, connection_id: UUID, principal: Writer, surface: str | None = None
) -> ApprovedOut:
    """The loss is real: what was held is deleted now."""
    async with db.tenant_session(principal.mandate_id) as session:
        await service.visible(session, connection_id, principal)
        known = {source.surface for source in await repository.sources_of(session, connection_id)}
        if surface is not None and surface not in known:
            raise NotFound(f"The connection has no surface {surface}.")
        return ApprovedOut(approved=await sync_service.approve_held(session, connection_id, surface))


@router.get("/progress", response_model=ProgressOut, responses={200: {"content": {"text/event-stream": {}}}})
async def progress(request: Request, db: Db, connection_id: UUID, principal: Reader) -> Response:
    """How far each surface is. As an event stream (`Accept: text/event-stream`): `progress` whenever something changed,
    and one `done` at the end.
    """
    async with db.tenant_session(principal.mandate_id) as session:
        await service.visible(session, connection_id, principal)
        now = await progress_of(session, connection_id)
    if "text/event-stream" not in request.headers.get("accept", ""):
        return JSONResponse(now.model_dump(mode="json", by_alias=True))
    redis = cast("Redis", request.app.state.redis)
    return StreamingResponse(
        _watch(db, redis, principal, connection_id),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


async def _watch(
    db: Database, redis: Redis, principal: Principal, connection_id: UUID
) -> AsyncGenerator[str]:
    until = time.monotonic() + WATCH_SECONDS
    last = ""
    async with redis.pubsub(ignore_subscribe_messages=True) as news:
        with suppress(RedisError, OSError):
            await news.subscribe(channel(principal.mandate_id, connection_id))
        while time.monotonic() < until:
            async with db.tenant_session(principal.mandate_id) as session:
                now = await progress_of(session, connection_id)
                ended = now.done or not (now.surfaces or await _is_active(session, connection_id))
            shown = now.model_dump_json(by_alias=True)
            if shown != last:
                last = shown
                yield f"event: progress\ndata: {shown}\n\n"
            else:
                yield ": still here\n\n"  # who has gone away is noticed by writing
            if ended:
                yield f"event: done\ndata: {shown}\n\n"
                return
            await _news(news)


async def _is_active(session: AsyncSession, connection_id: UUID) -> bool:
    """Between consent and the first listing there is nothing to show yet, which is not the end."""
    row = await connections.find(session, connection_id)
    return row is not None and row.state == "active"


async def _news(news: Any) -> None:
    """Until there is news, or it is time to look anyway."""
    try:
        await news.get_message(timeout=LOOK_SECONDS)
    except (RedisError, OSError, RuntimeError):
        await asyncio.sleep(LOOK_SECONDS)  # Redis is away; looking by the clock will do
