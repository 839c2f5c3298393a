"""The first rooms of the console: signing in by one-time link, and a home that says who and where you are.

Pages are plain HTML with our own small stylesheet: no script, no third party, nothing the strict policy would block.
"""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, cast

from fastapi import APIRouter, FastAPI, Form, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from fastapi.templating import Jinja2Templates

from gateway.db import Database
from gateway.errors import CsrfRefused, NotAuthenticated
from gateway.http import Db, base_url
from gateway.ingestion import repository as ledger
from gateway.settings import Settings
from gateway.tenancy import repository, service
from gateway.tenancy.access import SESSION_COOKIE, Principal, check_csrf, session_principal

router = APIRouter(include_in_schema=False)

_HERE = Path(__file__).parent
_pages = Jinja2Templates(_HERE / "templates")  # escapes everything it is given


def mount_static(app: FastAPI) -> None:
    app.mount("/static", StaticFiles(directory=_HERE / "static"), name="static")


def _page(request: Request, name: str, status: int = 200, **values: Any) -> HTMLResponse:
    return _pages.TemplateResponse(request, name, values, status_code=status)


async def _visitor(request: Request, db: Database) -> Principal | None:
    cookie = request.cookies.get(SESSION_COOKIE)
    if cookie is None:
        return None
    try:
        return await session_principal(db, cookie)
    except NotAuthenticated:
        return None


@router.get("/")
async def home(request: Request, db: Db) -> HTMLResponse:
    visitor = await _visitor(request, db)
    if visitor is None or visitor.user_id is None:
        return _page(request, "sign_in.html", status=401)
    async with db.tenant_session(visitor.mandate_id) as session:
        mandate = await service.get_mandate(session)
        person = await service.get_user(session, visitor.user_id)
        members = await repository.count_members(session)
        documents, _ = await ledger.usage(session)
    counts = {"members": members, "documents": documents}
    return _page(request, "home.html", visitor=visitor, mandate=mandate, person=person, counts=counts)


@router.get("/login")
async def login(request: Request, db: Db, token: Annotated[str, Query(max_length=200)] = "") -> Response:
    """Opens the console with a one-time link; the link is used up by this."""
    settings = cast("Settings", request.app.state.settings)
    life = timedelta(hours=settings.session_hours)
    try:
        cookie = await service.sign_in(db, token, life)
    except NotAuthenticated as error:
        return _page(request, "sign_in.html", status=401, problem=error.detail)
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
    visitor = await _visitor(request, db)
    if visitor is not None:
        try:
            check_csrf(visitor, csrf_token)
        except CsrfRefused:
            return _page(request, "stale_form.html", status=403)
        await service.sign_out(db, visitor)
    answer = RedirectResponse("/", status_code=303)
    answer.delete_cookie(SESSION_COOKIE)
    return answer
