"""What every Google API does before it answers: token, scope, ordered trouble, partial answers."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from connectors.sandbox.google.answers import GoogleError, Json, chosen, not_found
from connectors.sandbox.world import NoSuchObject

if TYPE_CHECKING:
    from connectors.sandbox.google.world import GoogleWorld

SCOPES = "https://www.googleapis.com/auth/"


@dataclass(frozen=True, kw_only=True)
class Call:
    user: str
    path: Mapping[str, str]
    query: QueryParams
    body: Json
    headers: Mapping[str, str]
    where: str

    def number(self, name: str, default: int, most: int) -> int:
        try:
            return max(1, min(int(self.query.get(name) or default), most))
        except ValueError as error:
            raise GoogleError(400, "invalid", f"Invalid value for {name}", location=name) from error


Handler = Callable[[Call], Json | Response]


class Door:
    """Makes routes of handlers. `anyOf` are the scopes of which one is needed."""

    def __init__(self, world: "GoogleWorld", any_of: tuple[str, ...], defaults: Mapping[str, str]) -> None:
        self._world, self._any_of, self._defaults = world, any_of, defaults

    def route(
        self, path: str, handler: Handler, *, method: str = "GET", media: Handler | None = None
    ) -> Route:
        async def endpoint(request: Request) -> Response:
            wanted = media if media is not None and request.query_params.get("alt") == "media" else handler
            if wanted is not handler:
                request.scope["endpoint"] = wanted  # its name is what the request log counts by
            try:
                return self._answer(wanted, self._call(request, await request.body()))
            except GoogleError as error:
                return error.answer()
            except NoSuchObject as missing:
                return not_found(f"Requested entity was not found: {missing}").answer()

        endpoint.__name__ = handler.__name__
        return Route(path, endpoint, methods=[method])

    def _call(self, request: Request, body: bytes) -> Call:
        claims = self._world.grants.bearer(request.headers.get("authorization", ""))
        if claims is None:
            raise GoogleError(401, "authError", "Invalid Credentials", location="Authorization")
        if not {f"{SCOPES}{scope}" for scope in self._any_of} & set(claims["scopes"]):
            raise GoogleError(
                403, "insufficientPermissions", "Request had insufficient authentication scopes."
            )
        return Call(
            user=claims["user"],
            path=request.path_params,
            query=request.query_params,
            body=json.loads(body) if body else {},
            headers=request.headers,
            where=f"{request.url.path}?{request.url.query}",
        )

    def _answer(self, handler: Handler, call: Call) -> Response:
        self._trouble(call)
        found = handler(call)
        if isinstance(found, Response):
            return found
        fields = call.query.get("fields") or self._defaults.get(handler.__name__)
        return JSONResponse(chosen(found, fields) if fields else found)

    def _trouble(self, call: Call) -> None:
        if fault := self._world.faults.take("refuse", path=call.where):
            options: Mapping[str, Any] = fault.options
            raise GoogleError(
                int(options.get("status", 403)),
                str(options.get("reason", "forbidden")),
                str(options.get("message", "Refused")),
                domain=str(options.get("domain", "global")),
                detail=options.get("detail"),
            )
