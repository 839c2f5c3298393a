"""ClickUp's side of OAuth: a page to choose a user, a code, a token without an end."""

from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from connectors.sandbox.clickup.registration import CLIENT_ID, CLIENT_SECRET
from connectors.sandbox.clickup.seed import USERS
from connectors.sandbox.clock import Clock
from connectors.sandbox.tokens import mint, read

if TYPE_CHECKING:
    from connectors.sandbox.clickup.world import ClickUpWorld

CODE_SECONDS = 600


class Grants:
    """Who allowed what. Tokens carry it themselves; here is only what ended."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._used: set[str] = set()
        self._ended: list[tuple[str | None, float]] = []

    def _now(self) -> float:
        return self._clock.stamp().timestamp()

    def code(self, user: str) -> str:
        now = self._now()
        return mint({"type": "code", "user": user, "at": now, "exp": now + CODE_SECONDS})

    def redeem(self, code: str) -> str | None:
        claims = self._read(code, "code")
        if claims is None or code in self._used or claims["exp"] < self._clock.now().timestamp():
            return None
        self._used.add(code)
        return mint({"type": "access", "user": claims["user"], "at": self._now()})

    def user_of(self, header: str) -> str | None:
        token = header.removeprefix("Bearer ")
        claims = self._read(token, "access")
        if claims is None:
            return None
        over = any(user in (None, claims["user"]) and claims["at"] <= at for user, at in self._ended)
        return None if over else str(claims["user"])

    def end(self, user: str | None) -> None:
        self._ended.append((user, self._now()))

    @staticmethod
    def _read(token: str, kind: str) -> dict[str, Any] | None:
        claims = read(token)
        return claims if claims and claims.get("type") == kind else None


def routes(world: "ClickUpWorld") -> list[Route]:
    async def ask(request: Request) -> Response:
        """The page a person sees; works without scripts."""
        query = request.query_params
        if query.get("client_id") != CLIENT_ID or not query.get("redirect_uri"):
            return HTMLResponse("<h1>OAUTH_010</h1><p>Client not found.</p>", status_code=400)
        kept = escape(urlencode({"redirect_uri": query["redirect_uri"], "state": query.get("state", "")}))
        users = "".join(
            f'<label><input type="radio" name="user" value="{user}"{" checked" if number == 0 else ""}> {escape(name)} ({user})</label><br>'
            for number, (user, (_, name)) in enumerate(USERS.items())
        )
        return HTMLResponse(
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>ClickUp sandbox: connect</title>'
            "<h1>Connect a workspace</h1><p>Catchment asks to read the workspace <strong>Water works</strong>.</p>"
            f'<form method="post" action="/consent?{kept}"><fieldset><legend>Sign in as</legend>{users}</fieldset>'
            '<button name="decision" value="accept">Connect workspace</button> '
            '<button name="decision" value="decline">Cancel</button></form></html>'
        )

    async def decide(request: Request) -> Response:
        form = await request.form()
        target, state = request.query_params["redirect_uri"], request.query_params.get("state", "")
        if form.get("decision") == "accept":
            said = {"code": world.grants.code(str(form.get("user"))), "state": state}
        else:
            said = {"error": "access_denied", "state": state}
        return RedirectResponse(f"{target}{'&' if '?' in target else '?'}{urlencode(said)}", status_code=302)

    async def token(request: Request) -> Response:
        kind = request.headers.get("content-type", "")
        sent = (
            await request.json()
            if "json" in kind
            else dict(await request.form()) or dict(request.query_params)
        )
        if (sent.get("client_id"), sent.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET):
            return JSONResponse({"err": "Client not found", "ECODE": "OAUTH_010"}, status_code=401)
        made = world.grants.redeem(str(sent.get("code", "")))
        if made is None:
            return JSONResponse({"err": "Code already used", "ECODE": "OAUTH_014"}, status_code=400)
        return JSONResponse({"access_token": made, "token_type": "Bearer"})

    return [
        Route("/consent", ask, methods=["GET"]),
        Route("/consent", decide, methods=["POST"]),
        Route("/api/v2/oauth/token", token, methods=["POST"]),
    ]
