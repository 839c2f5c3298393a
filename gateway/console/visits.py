"""Who is looking at a page, in which language, and what they are shown when something is refused.

A page route asks for a `Visit` with `visiting(role)`, a form route with `submitting(role)`, which also checks the form's
token. What goes wrong on the way becomes a page of its own, never JSON.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast
from urllib.parse import quote

from fastapi import Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from fastapi.templating import Jinja2Templates
from pydantic import ValidationError

from gateway.console import charts, passages
from gateway.console.words import FACTS, LANGUAGES, Words, chosen_language, trouble
from gateway.corpus.highlights import place
from gateway.db import Database
from gateway.errors import CatchmentError, CsrfRefused, NotAllowed, NotAuthenticated, fields_invalid
from gateway.http import patience
from gateway.tenancy import service
from gateway.tenancy.access import SESSION_COOKIE, Principal, check_csrf, session_principal
from gateway.tenancy.models import Mandate, User
from gateway.tenancy.schemas import Role

LANGUAGE_COOKIE = "catchment_language"

templates = Jinja2Templates(Path(__file__).parent / "templates")  # escapes everything it is given
templates.env.trim_blocks = templates.env.lstrip_blocks = True
_environment = cast("Any", templates.env)
_environment.globals |= {
    "bars": charts.bars,
    "place": place,
    "languages": LANGUAGES,
    "trouble": trouble,
    "facts": FACTS,
}
_environment.filters |= {
    "number": passages.grouped,
    "size": passages.readable_size,
    "seconds": passages.duration,
}


@dataclass(frozen=True)
class Visit:
    request: Request
    db: Database
    principal: Principal
    person: User
    mandate: Mandate
    words: Words

    @property
    def user_id(self) -> Any:
        return self.person.id

    @property
    def mandate_name(self) -> str:
        return self.mandate.name

    def page(self, template: str, **values: Any) -> HTMLResponse:
        return render(self.request, template, 200, self.words, visit=self, **values)

    def refused_page(self, template: str, **values: Any) -> HTMLResponse:
        """A page again, with what was wrong about the form that was sent."""
        return render(self.request, template, 422, self.words, visit=self, **values)


def render(request: Request, template: str, status: int, words: Words, **values: Any) -> HTMLResponse:
    known = {"_": words, "language": words.language, "path": request.url.path, "visit": None}
    return templates.TemplateResponse(request, template, known | values, status_code=status)


def words_for(request: Request, person: User | None = None) -> Words:
    return Words(
        chosen_language(
            request.cookies.get(LANGUAGE_COOKIE),
            person.locale if person else None,
            request.headers.get("accept-language", ""),
        )
    )


async def visitor(request: Request) -> Principal | None:
    """The signed-in principal, if there is one."""
    cookie = request.cookies.get(SESSION_COOKIE)
    if cookie is None:
        return None
    try:
        return await session_principal(cast("Database", request.app.state.db), cookie)
    except NotAuthenticated:
        return None


@dataclass(frozen=True)
class Visiting:
    """A page's demand; tests look for it on every console route."""

    role: Role
    form: bool = False

    async def __call__(self, request: Request) -> Visit:
        principal = await visitor(request)
        if principal is None or principal.user_id is None:
            raise NotAuthenticated("The session has ended; sign in again.")
        if self.form:
            sent = (await request.form()).get("csrf_token")
            check_csrf(principal, sent if isinstance(sent, str) else None)
        if not principal.outranks(self.role):
            raise NotAllowed("This page is for admins of the mandate.")
        db = cast("Database", request.app.state.db)
        async with db.tenant_session(principal.mandate_id) as session:
            person = await service.get_user(session, principal.user_id)
            mandate = await service.get_mandate(session)
        # Handlers of the API that a page calls find the caller where the middleware would have put it.
        request.state.principal = principal
        return Visit(request, db, principal, person, mandate, words_for(request, person))


Member = Annotated[Visit, Depends(Visiting("member"))]
AdminVisit = Annotated[Visit, Depends(Visiting("admin"))]
MemberForm = Annotated[Visit, Depends(Visiting("member", form=True))]
AdminForm = Annotated[Visit, Depends(Visiting("admin", form=True))]


class PageRoute(APIRoute):
    """Refusals as pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def shown(request: Request) -> Response:
            try:
                return await handler(request)
            except CsrfRefused:
                return render(request, "stale_form.html", 403, words_for(request))
            except (RequestValidationError, ValidationError) as error:
                return problem_page(request, fields_invalid(error.errors()))
            except CatchmentError as error:
                return problem_page(request, error)

        return shown


def problem_page(request: Request, error: CatchmentError) -> HTMLResponse:
    """A refusal where nobody knows yet who is looking: in the language of the browser."""
    words = words_for(request)
    if isinstance(error, NotAuthenticated):
        return render(request, "sign_in.html", error.status, words, problem=error.detail)
    page = render(request, "problem.html", error.status, words, error=error)
    page.headers.update(patience(error))
    return page


def back_to(path: str, **parameters: str) -> RedirectResponse:
    """After a form: a page that can be reloaded."""
    query = "&".join(f"{name}={quote(value)}" for name, value in parameters.items())
    return RedirectResponse(f"{path}?{query}" if query else path, status_code=303)
