"""The live structured log of the mandate, for admins."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, StreamingResponse

from gateway.console import repository
from gateway.console.activity import LogFilter, following, last_lines
from gateway.console.visits import AdminVisit, PageRoute, Visit
from gateway.logs import CATALOGUE
from gateway.settings import Settings

router = APIRouter(route_class=PageRoute)

SHOWN = 200
Word = Annotated[str, Query(max_length=200)]


def _log(request: Request) -> Path:
    return cast("Settings", request.app.state.settings).data_dir / "logs" / "catchment.jsonl"


async def _filter(visit: Visit, event: str, connection: str, document: str) -> LogFilter:
    async with visit.db.tenant_session(visit.principal.mandate_id) as session:
        known = await repository.connection_ids(session)
    return LogFilter(str(visit.principal.mandate_id), known, event, connection, document)


@router.get("/activity")
async def activity(
    visit: AdminVisit, event: Word = "", connection: Word = "", document: Word = ""
) -> HTMLResponse:
    wanted = await _filter(visit, event, connection, document)
    lines, position = last_lines(_log(visit.request), wanted, SHOWN)
    families = sorted(
        {name.rpartition(".")[0] for name in CATALOGUE if name.startswith(("ingestion", "webhook"))}
    )
    filters = {"event": event, "connection": connection, "document": document}
    return visit.page("activity.html", lines=lines, position=position, filters=filters, families=families)


@router.get("/activity/stream")
async def stream(
    visit: AdminVisit,
    event: Word = "",
    connection: Word = "",
    document: Word = "",
    position: Annotated[int, Query(ge=0)] = 0,
) -> StreamingResponse:
    wanted = await _filter(visit, event, connection, document)

    async def frames() -> AsyncIterator[str]:
        yield ": listening\n\n"
        async for line in following(_log(visit.request), wanted, position):
            yield f"data: {json.dumps(_shown(line))}\n\n"

    return StreamingResponse(frames(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


def _shown(line: dict[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in line.items() if key not in {"time", "level", "event", "mandateId"}}
    return {"time": line.get("time"), "level": line.get("level"), "event": line.get("event"), "rest": rest}
