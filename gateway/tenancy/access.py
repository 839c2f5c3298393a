"""Who is asking, and what they may do.

A credential is a key (`Authorization: Bearer ck_…`) or the console's session cookie; only hashes of either are kept.
Every request under /v1 and /mcp is looked up afresh, by one statement: a member who leaves, a key that is revoked
or expires, is out with the next request. A route says what it needs with `needs(role, scope)`; both must hold.
"""

import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, cast
from uuid import UUID

from fastapi import Depends, Request
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.db import Database, answered_within
from gateway.errors import CatchmentError, CsrfRefused, NotAllowed, NotAuthenticated
from gateway.http import problem_response
from gateway.tenancy import repository, schemas
from gateway.tenancy.principal import ROLE_SCOPES, Principal, token_hash
from gateway.wire import API_PREFIX

SESSION_COOKIE = "catchment_session"
PROTECTED = (API_PREFIX, "/mcp")
# Who posts here holds no key of ours: a vendor's notification proves itself.
VENDORS_DOORS = frozenset(f"{API_PREFIX}/webhooks/{authority}" for authority in ("msft", "google", "clickup"))
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


# -- what routes declare


@dataclass(frozen=True)
class Needs:
    """A route's demand, as a dependency that yields the principal; tests look for it on every route."""

    role: schemas.Role
    scope: schemas.Scope

    def __call__(self, request: Request) -> Principal:
        principal = current_principal(request)
        if not principal.may(self.role, self.scope):
            raise NotAllowed(f"This needs the role {self.role} and a key with the scope {self.scope}.")
        return principal


def needs(role: schemas.Role = "member", scope: schemas.Scope = "read") -> Any:
    """Goes into the annotation of a route's principal, beside its type."""
    return Depends(Needs(role, scope))


def current_principal(request: Request) -> Principal:
    return cast("Principal", request.state.principal)


Reader = Annotated[Principal, needs()]
Writer = Annotated[Principal, needs(scope="write")]
Admin = Annotated[Principal, needs("admin", "admin")]
Operator = Annotated[Principal, needs(scope="operator")]


# -- authentication

_Route = tuple[UUID, UUID]  # mandate, and the key or session in it
_LookUp = Callable[[AsyncSession, bytes], Awaitable[_Route | None]]
# Where a credential leads, by its hash, never changes; whether it still leads there is asked each time.
_routes: OrderedDict[bytes, _Route] = OrderedDict()
_MOST_ROUTES = 10_000
# Far above what it takes; with it every request ends, in a 503, when the database hangs.
ANSWER_SECONDS = 10.0
_ONLY_SERVICES_ACT = "Only a service key with the scope act_as may act for a user."


async def authenticate(db: Database, headers: Mapping[str, str], cookies: Mapping[str, str]) -> Principal:
    """The principal behind the credential, or 401. A header is believed over a cookie."""
    authorization = headers.get("authorization")
    if authorization is not None:
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise NotAuthenticated("Send the key as `Authorization: Bearer <key>`.")
        return await _by_key(db, key.strip(), headers.get("x-act-as-user"))
    cookie = cookies.get(SESSION_COOKIE)
    if cookie is None:
        raise NotAuthenticated
    principal = await session_principal(db, cookie)
    if "x-act-as-user" in headers:
        raise NotAllowed(_ONLY_SERVICES_ACT)
    return principal


async def _by_key(db: Database, key: str, act_as: str | None) -> Principal:
    refusal = NotAuthenticated("This key is unknown, expired or revoked.")
    route = await _route(db, token_hash(key), repository.key_route)
    if route is None:
        raise refusal
    mandate_id, key_id = route
    wanted = _user_id(act_as)
    async with db.tenant_connection(mandate_id) as connection:
        found = await repository.usable_key(connection, key_id, wanted)
    if found is None or (found.user_id is not None and found.role is None):
        raise refusal
    scopes = cast("frozenset[schemas.Scope]", frozenset(found.scopes))
    of_service = "admin" if "admin" in scopes else "member"
    role = cast("schemas.Role", of_service if found.user_id is None else found.role)
    principal = Principal(mandate_id, found.user_id, role, scopes, "key", found.id, service=found.service)
    if act_as is None:
        return principal
    if found.service is None or "act_as" not in scopes:
        raise NotAllowed(_ONLY_SERVICES_ACT)
    if wanted is None or found.acted_role is None:
        raise NotAllowed("X-Act-As-User must be the id of a current member of the key's own mandate.")
    return _acting(principal, wanted, cast("schemas.Role", found.acted_role))


async def _route(db: Database, credential: bytes, look_up: _LookUp) -> _Route | None:
    if (known := _routes.get(credential)) is None:
        async with db.routing_session() as session:
            known = await look_up(session, credential)
        if known is None:
            return None
        _routes[credential] = known
        if len(_routes) > _MOST_ROUTES:
            _routes.popitem(last=False)
    return known


def _acting(service: Principal, user_id: UUID, role: schemas.Role) -> Principal:
    """The user, but never with more rights than the service itself was given."""
    lower = role if service.outranks(role) else service.role
    return replace(service, user_id=user_id, role=lower, scopes=service.scopes - {"act_as", "operator"})


def _user_id(text: str | None) -> UUID | None:
    """None also for what is no id: it is refused once we know that whoever sends it has a key at all."""
    try:
        return UUID(text) if text else None
    except ValueError:
        return None


async def session_principal(db: Database, cookie: str) -> Principal:
    refusal = NotAuthenticated("The session has ended; sign in again.")
    route = await _route(db, token_hash(cookie), repository.session_route)
    if route is None:
        raise refusal
    mandate_id, session_id = route
    async with db.tenant_connection(mandate_id) as connection:
        found = await repository.usable_session(connection, session_id)
    if found is None:
        raise refusal
    role = cast("schemas.Role", found.role)
    return Principal(
        mandate_id, found.user_id, role, ROLE_SCOPES[role], "session", found.id, csrf_token=found.csrf_token
    )


def check_csrf(principal: Principal, sent: str | None) -> None:
    """A cookie travels with any site's request; the token only with ours."""
    if principal.via == "session" and not secrets.compare_digest(
        (sent or "").encode(), (principal.csrf_token or "").encode()
    ):
        raise CsrfRefused("Send the session's token in X-CSRF-Token, or reload the page and try again.")


def _is_protected(scope: Scope) -> bool:
    if scope["type"] != "http":
        return False
    path = scope["path"]
    under = any(path == prefix or path.startswith(f"{prefix}/") for prefix in PROTECTED)
    return under and not (path in VENDORS_DOORS and scope["method"] == "POST")


class Authentication:
    """Stands before the router, so that a path that does not exist answers 401 like one that does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _is_protected(scope):
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        try:
            principal = await answered_within(
                ANSWER_SECONDS,
                authenticate(connection.app.state.db, connection.headers, connection.cookies),
            )
            if scope["method"] not in SAFE_METHODS:
                check_csrf(principal, connection.headers.get("x-csrf-token"))
        except CatchmentError as error:
            await problem_response(error, scope)(scope, receive, send)
            return
        scope.setdefault("state", {})["principal"] = principal
        await self._app(scope, receive, send)
