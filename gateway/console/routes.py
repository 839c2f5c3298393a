"""Signing in and out, the language, and the home page: what there is, what is going on, what needs somebody."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, cast

from fastapi import APIRouter, FastAPI, Form, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from sqlalchemy import Row

from gateway.connections.schemas import ConnectionOut, SourceOut
from gateway.console import (
    activity_routes,
    connections_routes,
    insights_routes,
    knowledge_routes,
    repository,
    search_routes,
    settings_routes,
)
from gateway.console.visits import (
    LANGUAGE_COOKIE,
    Member,
    PageRoute,
    Visit,
    problem_page,
    render,
    visitor,
    words_for,
)
from gateway.console.words import FACTS, LANGUAGES, Words, trouble
from gateway.corpus.entries_repository import MANAGED, WRITTEN
from gateway.errors import CsrfRefused, NotAuthenticated
from gateway.http import Db, base_url
from gateway.insights import service as insights
from gateway.settings import Settings
from gateway.tenancy import service
from gateway.tenancy.access import SESSION_COOKIE, check_csrf

router = APIRouter(include_in_schema=False, route_class=PageRoute)
for _pages in (
    connections_routes,
    knowledge_routes,
    search_routes,
    insights_routes,
    activity_routes,
    settings_routes,
):
    router.include_router(_pages.router)


def furnish(app: FastAPI) -> None:
    """What pages need beside their routes: files, and a page for what is refused before it gets to a route."""
    app.state.problem_page = problem_page
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")


@router.get("/")
async def home(visit: Member) -> HTMLResponse:
    connections = await connections_routes.living(visit)
    async with visit.db.tenant_session(visit.principal.mandate_id) as session:
        stats = await insights.stats(session, visit.person.id)
        counted = [connection.id for connection in connections]
        troubles = await repository.troubles(session, visit.person.id, counted)
    syncing = [
        {"surface": source.surface, "items": source.items, "indexed": source.indexed, "id": connection.id}
        | {"waits_until": source.waits_until, "authority": connection.authority}
        | {"account": connection.account_email or connection.account_name or ""}
        for connection in connections
        for source in connection.sources
        if connection.status == "active" and not connection.paused and _is_moving(source)
    ]
    return visit.page(
        "home.html",
        stats=stats,
        connections=connections,
        syncing=syncing,
        attention=_of_connections(visit, connections) + _attention(visit, troubles),
        shown_as=MANAGED,
        written=WRITTEN,
    )


def _is_moving(source: SourceOut) -> bool:
    """What waits for a person, or cannot be read, is no sync that one could watch; what the vendor holds up goes on by itself."""
    if source.waits_for == "vendor":
        return True
    return source.phase != "delta" and source.waits_for is None and source.last_error is None


def _of_connections(visit: Visit, connections: list[ConnectionOut]) -> list[dict[str, str]]:
    words = visit.words
    found: list[dict[str, str]] = []
    for connection in connections:
        here, name = f"/connections/{connection.id}", _called(words, connection)
        if connection.status == "needs_reauth":
            text = f"{name} {words('needs to be connected again; its content is hidden until then.')}"
            found.append({"text": text, "action": words("Connect again"), "address": f"{here}/consent"})
        if connection.status == "active":
            found += _of_surfaces(visit, connection, here, name)
        if any(source.held for source in connection.sources):
            text = f"{name}: {words('deletions wait for your word.')}"
            found.append({"text": text, "action": words("Review"), "address": here})
        if failures := sum(source.failures for source in connection.sources):
            text = (
                f"{name}: {_counted(words, failures, 'item could not be read.', 'items could not be read.')}"
            )
            found.append({"text": text, "action": words("See the failures"), "address": f"{here}#failures"})
    return found


def _of_surfaces(visit: Visit, connection: ConnectionOut, here: str, name: str) -> list[dict[str, str]]:
    """Surfaces of a working connection that bring nothing before somebody acts. Consent is its user's alone to give."""
    words = visit.words
    found: list[dict[str, str]] = []
    if connection.not_granted and connection.user_id == visit.person.id:
        parts = ", ".join(words(part) for part in connection.not_granted)
        text = f"{name}: {parts} – {words('you have not allowed this yet')}."
        found.append({"text": text, "action": words("Connect again"), "address": f"{here}/consent"})
    if any(source.waits_for == "acceptance" for source in connection.sources):
        text = f"{name}: {words('the estimate waits for your answer; nothing is read before.')}"
        found.append({"text": text, "action": words("See the estimate"), "address": here})
    stopped: dict[str, list[str]] = {}
    for source in connection.sources:
        if source.last_error and source.last_error not in FACTS and source.waits_for is None:
            stopped.setdefault(source.last_error, []).append(words(source.surface))
    for error, parts in stopped.items():
        text = f"{name}: {', '.join(parts)} – {trouble(words, error)}."
        found.append({"text": text, "action": words("Look at it"), "address": here})
    return found


def _called(words: Words, connection: ConnectionOut) -> str:
    """The account, too: somebody may have two of one vendor."""
    whose = connection.account_email or connection.account_name
    return f"{words(connection.authority)} · {whose}" if whose else words(connection.authority)


def _counted(words: Words, number: int, one: str, many: str) -> str:
    return f"{number} {words(one if number == 1 else many)}"


def _attention(visit: Visit, troubles: Row[Any]) -> list[dict[str, str]]:
    """What needs somebody, each with the one button that fixes it."""
    words = visit.words
    found: list[dict[str, str]] = []
    if troubles.failed:
        text = _counted(
            words, troubles.failed, "document could not be indexed.", "documents could not be indexed."
        )
        found.append({"text": text, "action": words("Look at them"), "address": "/knowledge?status=error"})
    if troubles.waiting and visit.principal.is_admin:
        text = _counted(
            words, troubles.waiting, "job waits for a larger budget.", "jobs wait for a larger budget."
        )
        found.append({"text": text, "action": words("Raise the budget"), "address": "/settings#policy"})
    return found


@router.get("/login")
async def login(request: Request, db: Db, token: Annotated[str, Query(max_length=200)] = "") -> Response:
    """Opens the console with a one-time link; the link is used up by this."""
    settings = cast("Settings", request.app.state.settings)
    life = timedelta(hours=settings.session_hours)
    try:
        cookie = await service.sign_in(db, token, life)
    except NotAuthenticated as error:
        return render(request, "sign_in.html", 401, words_for(request), problem=error.detail)
    # Replaces the address that holds the token, in the history too.
    answer = RedirectResponse("/", status_code=303)
    answer.set_cookie(
        SESSION_COOKIE,
        cookie,
        max_age=round(life.total_seconds()),
        httponly=True,
        samesite="lax",
        secure=base_url(request).startswith("https://"),
    )
    return answer


@router.post("/logout")
async def logout(request: Request, db: Db, csrf_token: Annotated[str, Form(max_length=200)] = "") -> Response:
    principal = await visitor(request)
    if principal is not None:
        try:
            check_csrf(principal, csrf_token)
        except CsrfRefused:
            return render(request, "stale_form.html", 403, words_for(request))
        await service.sign_out(db, principal)
    answer = RedirectResponse("/", status_code=303)
    answer.delete_cookie(SESSION_COOKIE)
    return answer


@router.get("/language/{language}")
async def choose_language(language: str, back: Annotated[str, Query(max_length=500)] = "/") -> Response:
    """A link rather than a form: it changes nothing but what this browser is shown."""
    # Only a path of ours: "//host" and "/\host" would lead away.
    target = back if back.startswith("/") and not back.startswith(("//", "/\\")) else "/"
    answer = RedirectResponse(target, status_code=303)
    if language in LANGUAGES:
        answer.set_cookie(LANGUAGE_COOKIE, language, max_age=365 * 24 * 3600, samesite="lax", httponly=True)
    return answer
