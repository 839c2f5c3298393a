"""The control API of every sandbox, under `/_control`: the hand that changes the world while somebody syncs it."""

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from connectors.sandbox.faults import ANSWERED, BENT, Fault
from connectors.sandbox.world import Fields, NoSuchObject, Refused, World

Handler = Callable[[Request], Awaitable[Response]]


def control_routes(world: World) -> list[Route]:
    control = Control(world)

    def route(path: str, **handlers: Callable[[Request], Awaitable[Fields]]) -> list[Route]:
        return [
            Route(f"/_control{path}", _answering(handler), methods=[verb], name="control")
            for verb, handler in handlers.items()
        ]

    return [
        *route("/reset", POST=control.reset),
        *route("/state", GET=control.state),
        *route("/objects", POST=control.create),
        # Ids may hold slashes; the longer path is asked first.
        *route("/objects/{id:path}/restore", POST=control.restore),
        *route("/objects/{id:path}", PATCH=control.edit, DELETE=control.delete),
        *route("/faults", GET=control.faults, POST=control.inject, DELETE=control.clear_faults),
        *route("/requests", GET=control.requests, DELETE=control.forget_requests),
        *route("/revoke", POST=control.revoke),
        *route("/clock", POST=control.clock),
        *route("/push", POST=control.deliver),
    ]


class Control:
    def __init__(self, world: World) -> None:
        self._world = world

    async def reset(self, request: Request) -> Fields:
        self._world.faults.clear()
        self._world.clock.reset()
        self._world.reset((await _fields(request)).get("seed", "empty"))
        self._world.requests.clear()
        return {"ok": True}

    async def state(self, request: Request) -> Fields:
        return self._world.state(request.query_params.get("user"))

    async def create(self, request: Request) -> Fields:
        """One, or with `many` as many as there are in the list."""
        fields = await _fields(request)
        if "many" in fields:
            return {"objects": [dict(self._world.create(each)) for each in fields["many"]]}
        return self._world.create(fields)

    async def edit(self, request: Request) -> Fields:
        return self._world.edit(request.path_params["id"], await _fields(request))

    async def delete(self, request: Request) -> Fields:
        fields = await _fields(request) or dict(request.query_params)
        return self._world.delete(request.path_params["id"], fields)

    async def restore(self, request: Request) -> Fields:
        return self._world.restore(request.path_params["id"])

    async def inject(self, request: Request) -> Fields:
        fault = Fault.of(await _fields(request))
        known = {*ANSWERED, *BENT, *self._world.bad_days}
        if fault.kind not in known:
            raise Refused(f"no fault {fault.kind}; known are {', '.join(sorted(known))}")
        self._world.faults.add(fault)
        return {"faults": self._world.faults.described()}

    async def faults(self, _request: Request) -> Fields:
        return {"faults": self._world.faults.described()}

    async def clear_faults(self, _request: Request) -> Fields:
        self._world.faults.clear()
        return {"faults": []}

    async def requests(self, request: Request) -> Fields:
        return self._world.requests.described(request.query_params)

    async def forget_requests(self, _request: Request) -> Fields:
        self._world.requests.clear()
        return {"total": 0}

    async def revoke(self, request: Request) -> Fields:
        return self._world.revoke(await _fields(request))

    async def clock(self, request: Request) -> Fields:
        self._world.clock.advance(float((await _fields(request)).get("advance", 0)))
        return {"now": self._world.clock.now().isoformat()}

    async def deliver(self, request: Request) -> Fields:
        return await self._world.deliver(await _fields(request))


async def _fields(request: Request) -> dict[str, Any]:
    body = await request.body()
    fields = json.loads(body) if body else {}
    if not isinstance(fields, dict):
        raise Refused("not a JSON object")
    return cast("dict[str, Any]", fields)


def _answering(handler: Callable[[Request], Awaitable[Fields]]) -> Handler:
    async def endpoint(request: Request) -> Response:
        try:
            return JSONResponse(dict(await handler(request)))
        except NoSuchObject as missing:
            return JSONResponse({"error": f"no such object: {missing}"}, status_code=404)
        except (Refused, KeyError, TypeError, ValueError, re.error) as refused:
            return JSONResponse({"error": f"{type(refused).__name__}: {refused}"}, status_code=400)

    return endpoint
