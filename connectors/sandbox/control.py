"""The control API of every sandbox, under `/_control`: the hand that changes the world while somebody syncs it."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from connectors.sandbox.faults import Fault
from connectors.sandbox.world import Fields, NoSuchObject, Refused, World

Handler = Callable[[Request], Awaitable[Response]]


def control_routes(world: World) -> list[Route]:  # noqa: C901 - one small handler per verb
    async def reset(request: Request) -> Fields:
        world.faults.clear()
        world.reset((await _fields(request)).get("seed", "empty"))
        world.requests.clear()
        return {"ok": True}

    async def state(request: Request) -> Fields:
        return world.state(request.query_params.get("user"))

    async def create(request: Request) -> Fields:
        return world.create(await _fields(request))

    async def edit(request: Request) -> Fields:
        return world.edit(request.path_params["id"], await _fields(request))

    async def delete(request: Request) -> Fields:
        return world.delete(request.path_params["id"], await _fields(request) or dict(request.query_params))

    async def restore(request: Request) -> Fields:
        return world.restore(request.path_params["id"])

    async def inject(request: Request) -> Fields:
        world.faults.add(Fault.of(await _fields(request)))
        return {"faults": world.faults.described()}

    async def faults(_request: Request) -> Fields:
        return {"faults": world.faults.described()}

    async def clear_faults(_request: Request) -> Fields:
        world.faults.clear()
        return {"faults": []}

    async def requests(request: Request) -> Fields:
        return world.requests.described(request.query_params)

    async def forget_requests(_request: Request) -> Fields:
        world.requests.clear()
        return {"total": 0}

    async def revoke(request: Request) -> Fields:
        return world.revoke(await _fields(request))

    async def clock(request: Request) -> Fields:
        world.clock.advance(float((await _fields(request)).get("advance", 0)))
        return {"now": world.clock.now().isoformat()}

    async def deliver(request: Request) -> Fields:
        return await world.deliver(await _fields(request))

    def route(path: str, **handlers: Callable[[Request], Awaitable[Fields]]) -> list[Route]:
        return [
            Route(f"/_control{path}", _answering(handler), methods=[verb], name="control")
            for verb, handler in handlers.items()
        ]

    return [
        *route("/reset", POST=reset),
        *route("/state", GET=state),
        *route("/objects", POST=create),
        # Ids may hold slashes; the longer path is asked first.
        *route("/objects/{id:path}/restore", POST=restore),
        *route("/objects/{id:path}", PATCH=edit, DELETE=delete),
        *route("/faults", GET=faults, POST=inject, DELETE=clear_faults),
        *route("/requests", GET=requests, DELETE=forget_requests),
        *route("/revoke", POST=revoke),
        *route("/clock", POST=clock),
        *route("/push", POST=deliver),
    ]


async def _fields(request: Request) -> dict[str, Any]:
    body = await request.body()
    return json.loads(body) if body else {}


def _answering(handler: Callable[[Request], Awaitable[Fields]]) -> Handler:
    async def endpoint(request: Request) -> Response:
        try:
            return JSONResponse(dict(await handler(request)))
        except NoSuchObject as missing:
            return JSONResponse({"error": f"no such object: {missing}"}, status_code=404)
        except (Refused, KeyError, TypeError, ValueError) as refused:
            return JSONResponse({"error": f"{type(refused).__name__}: {refused}"}, status_code=400)

    return endpoint
