"""What every request goes through on its way in and out, and what every handler may ask for.

A request gets an id, is logged with the path's template (never its query string), and whatever goes wrong leaves as
RFC 9457 problem+json, or as a page where a person looks at pages. An unexpected error is logged by type and place, not by message: messages carry contents.
"""

import errno
import os
import re
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, cast

import structlog
from fastapi import Depends, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from obstore.exceptions import BaseError as ObjectStoreError
from psycopg.errors import DeadlockDetected, SerializationFailure
from sqlalchemy.exc import DataError, IntegrityError, OperationalError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.db import Database, is_of_another_schema, new_id
from gateway.errors import (
    CatchmentError,
    Conflict,
    FieldsInvalid,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    StoreUnavailable,
    TooLarge,
    UnsupportedContent,
    fields_invalid,
)
from gateway.logs import emit, place_of
from gateway.wire import API_PREFIX

RETRY_AFTER_SECONDS = 2
_REQUEST_ID = re.compile(r"^[A-Za-z0-9._-]{1,64}$")
# Asked every few seconds by machines; a line each would bury the rest.
_PROBES = ("/healthz", "/readyz", "/metrics")
_VISITED = f"{API_PREFIX}/oauth/"  # of the API, and yet seen by people

SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
}


def _database(request: Request) -> Database:
    return cast("Database", request.app.state.db)


Db = Annotated[Database, Depends(_database)]
Limit = Annotated[int, Query(ge=1, le=200, description="items per page")]
Cursor = Annotated[str | None, Query(max_length=500, description="`nextCursor` of the page before")]


def base_url(request: Request) -> str:
    """How browsers reach us: as configured, else as this request did."""
    return request.app.state.settings.public_url or str(request.base_url)


def problem_response(error: CatchmentError, scope: Scope) -> Response:
    if _is_for_a_person(scope):
        return scope["app"].state.problem_page(Request(scope), error)
    headers = patience(error)
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    request_id = scope.get("state", {}).get("request_id", "")
    return JSONResponse(
        error.problem(scope["path"], request_id),
        status_code=error.status,
        headers=headers,
        media_type="application/problem+json",
    )


def patience(error: CatchmentError) -> dict[str, str]:
    return {"Retry-After": str(RETRY_AFTER_SECONDS)} if error.retryable else {}


def _is_for_a_person(scope: Scope) -> bool:
    """Somebody's browser at an address of the console, also at one that is none, or on its way back from a vendor."""
    path: str = scope["path"]
    if f"{path}/".startswith((f"{API_PREFIX}/", "/mcp/", *_PROBES)) and not path.startswith(_VISITED):
        return False
    return any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])


class RequestContext:
    """The outermost layer: request id, log line, security headers, and the 500 nobody foresaw."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        began, answer = time.monotonic(), _Answer(send, request_id)
        with structlog.contextvars.bound_contextvars(requestId=request_id):
            try:
                await self._app(scope, receive, answer)
            except Exception as error:  # the one edge where the unforeseen becomes an answer
                emit("http.failed", method=scope["method"], path=_template(scope), error=place_of(error))
                if answer.status:
                    raise
                await problem_response(_unforeseen(error), scope)(scope, receive, answer)
            finally:
                if not (scope["path"] in _PROBES and answer.status == 200):
                    emit(
                        "http.request",
                        method=scope["method"],
                        path=_template(scope),
                        status=answer.status,
                        durationMs=round((time.monotonic() - began) * 1000),
                    )


def _unforeseen(error: Exception) -> CatchmentError:
    if is_of_another_schema(error):
        return StoreUnavailable("The database's schema is not the one this version needs: catchment migrate.")
    return CatchmentError()


class _Answer:
    """`send` that remembers the status and adds our headers."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send, self._request_id = send, request_id
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self._request_id
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
        await self._send(message)


class BodyLimit:
    """Refuses a body at the first byte too many, before anybody parses it into memory or onto the disk."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app, self._limit = app, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        if declared.isdigit() and int(declared) > self._limit:
            await problem_response(self._refusal(), scope)(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._limit:
                raise HTTPException(TooLarge.status)  # the one error that body parsers let through
            return message

        await self._app(scope, counted, send)

    def _refusal(self) -> TooLarge:
        return TooLarge(f"A request may have {self._limit:,} bytes.")


def _request_id(scope: Scope) -> str:
    """The caller's own id when it is harmless, so that a request can be followed across services."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _REQUEST_ID.match(given := value.decode("latin-1")):
            return given
    return new_id().hex


def _template(scope: Scope) -> str:
    """The route's path as declared. A router's own routes do not know the prefix they were included under."""
    path = getattr(scope.get("route"), "path", None)
    if path is None:
        return "(unknown)"
    included = scope["path"].startswith(f"{API_PREFIX}/") and not path.startswith(f"{API_PREFIX}/")
    return f"{API_PREFIX}{path}" if included else path


def _catchment_error(request: Request, error: Exception) -> Response:
    return problem_response(cast("CatchmentError", error), request.scope)


def _validation_error(request: Request, error: Exception) -> Response:
    errors = cast("RequestValidationError", error).errors()
    no_object = any(one["loc"] == ("body",) and one["type"] != "missing" for one in errors)
    if no_object and not _sent_as_json(request):
        return problem_response(
            UnsupportedContent("Send the body as JSON, with Content-Type: application/json."), request.scope
        )
    return problem_response(fields_invalid(errors), request.scope)


def _sent_as_json(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


_BY_STATUS: dict[int, type[CatchmentError]] = {
    404: NotFound,
    405: MethodNotAllowed,
    413: TooLarge,
    415: UnsupportedContent,
}


def _http_error(request: Request, error: Exception) -> Response:
    """What the framework itself refuses: unknown paths, wrong methods, unreadable bodies."""
    raised = cast("HTTPException", error)
    kind = _BY_STATUS.get(raised.status_code, InvalidRequest if raised.status_code < 500 else CatchmentError)
    # Of a body that cannot be read only the framework knows what is wrong with it.
    response = problem_response(kind(raised.detail if kind is InvalidRequest else ""), request.scope)
    response.headers.update(raised.headers or {})
    if raised.status_code == MethodNotAllowed.status:
        response.headers["Allow"] = ", ".join(_allowed(request))
    return response


def _allowed(request: Request) -> list[str]:
    """All that the path takes; the framework names the methods of the first route alone."""
    return [
        method
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL
            for route in request.app.router.routes
        )
    ]


def _constraint_error(request: Request, _error: Exception) -> Response:
    """The tables keep the promises: two requests that collide, or a thing that others still refer to."""
    return problem_response(
        Conflict("Something else changed or still refers to this; look again."), request.scope
    )


# Of text with a NUL, of a number or a time out of range; the driver itself refuses some, without a state.
_UNSTORABLE = {None, "22021", "22P05", "22003", "22008"}


def _data_error(request: Request, error: Exception) -> Response:
    """Well-formed, but nothing the database can hold. What else it may refuse is a mistake of ours."""
    if getattr(cast("DataError", error).orig, "sqlstate", None) not in _UNSTORABLE:
        raise error
    return problem_response(
        FieldsInvalid("A value cannot be stored: it holds a NUL character or a number out of range."),
        request.scope,
    )


def _contention(request: Request, error: Exception) -> Response:
    """Two transactions waited for each other and the database chose this one: nothing of it was done."""
    original = cast("OperationalError", error).orig
    if not isinstance(original, DeadlockDetected | SerializationFailure):
        raise error
    return problem_response(
        StoreUnavailable("Another change stood in the way, and nothing of this one was done; send it again."),
        request.scope,
    )


def _object_store_error(request: Request, error: Exception) -> Response:
    """Full, away, or not letting us in: nothing the caller can mend, and by and by somebody will."""
    full = os.strerror(errno.ENOSPC) in str(error)
    emit("house.store.unavailable", component="blobs", error="disk full" if full else type(error).__name__)
    words = (
        "The disk of the originals is full: nothing can be taken in until somebody makes room on it."
        if full
        else "The store of the originals takes or gives nothing right now; try again shortly."
    )
    return problem_response(StoreUnavailable(words), request.scope)


Handler = Callable[[Request, Exception], Response | Awaitable[Response]]
EXCEPTION_HANDLERS: dict[int | type[Exception], Handler] = {
    CatchmentError: _catchment_error,
    RequestValidationError: _validation_error,
    HTTPException: _http_error,
    IntegrityError: _constraint_error,
    DataError: _data_error,
    ObjectStoreError: _object_store_error,
    OperationalError: _contention,
}
