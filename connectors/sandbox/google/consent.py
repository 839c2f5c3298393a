"""Google's side of OAuth: a consent page that works without scripts, codes, tokens that can be taken back."""

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from connectors.sandbox.clock import Clock
from connectors.sandbox.google.registration import CLIENT_ID, CLIENT_SECRET
from connectors.sandbox.tokens import encoded, mint, read

CODE_SECONDS, ACCESS_SECONDS = 600, 3599
ALWAYS = {"openid", "email", "profile"}
LONG_NAMES = {
    "email": "https://www.googleapis.com/auth/userinfo.email",
    "profile": "https://www.googleapis.com/auth/userinfo.profile",
}


class OAuthError(Exception):
    def __init__(self, status: int, error: str, description: str) -> None:
        super().__init__(error)
        self.status, self.error, self.description = status, error, description


class Grants:
    """Who allowed what. The tokens carry it themselves; here is only what ended."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._used: set[str] = set()
        self._ended: list[tuple[str | None, float, bool]] = []  # whose, until when, refresh tokens only
        self._ended_grants: set[str] = set()
        self._consented: set[str] = set()
        self.refreshes = 0

    def _now(self) -> float:
        return self._clock.stamp().timestamp()

    def code(self, *, user: str, query: Mapping[str, str], scopes: list[str]) -> str:
        at = self._now()
        first = user not in self._consented
        self._consented.add(user)
        return mint(
            {
                "type": "code",
                "user": user,
                "scopes": scopes,
                "at": at,
                "exp": at + CODE_SECONDS,
                "redirect": query.get("redirect_uri"),
                "challenge": query.get("code_challenge"),
                "method": query.get("code_challenge_method", "plain"),
                "offline": query.get("access_type") == "offline"
                and (first or query.get("prompt") == "consent"),
            }
        )

    def redeem(self, form: Mapping[str, str]) -> dict[str, Any]:
        code = form.get("code", "")
        claims = self._read(code, "code")
        if claims is None or code in self._used or claims["exp"] < self._clock.now().timestamp():
            raise OAuthError(400, "invalid_grant", "Malformed auth code.")
        self._used.add(code)
        if form.get("redirect_uri") != claims["redirect"]:
            raise OAuthError(400, "redirect_uri_mismatch", "Bad Request")
        if claims["challenge"] is not None and not _verified(claims, form.get("code_verifier", "")):
            raise OAuthError(400, "invalid_grant", "Invalid code verifier.")
        return self._tokens(claims, refresh=claims["offline"])

    def refresh(self, token: str) -> dict[str, Any]:
        claims = self._read(token, "refresh")
        if claims is None or self._over(claims, access=False):
            raise OAuthError(400, "invalid_grant", "Token has been expired or revoked.")
        self.refreshes += 1
        return self._tokens(claims, refresh=False)

    def _tokens(self, claims: dict[str, Any], *, refresh: bool) -> dict[str, Any]:
        at = self._now()
        grant = {"user": claims["user"], "scopes": claims["scopes"], "at": claims["at"]}
        found: dict[str, Any] = {
            "access_token": "ya29."
            + mint({**grant, "type": "access", "exp": at + ACCESS_SECONDS, "iat": at}),
            "expires_in": ACCESS_SECONDS,
            "scope": " ".join(claims["scopes"]),
            "token_type": "Bearer",
        }
        if "openid" in claims["scopes"]:
            found["id_token"] = mint(
                {"iss": "https://accounts.google.com", "aud": CLIENT_ID, "sub": subject(claims["user"])}
                | {"email": claims["user"], "iat": int(at), "exp": int(at) + ACCESS_SECONDS}
            )
        if refresh:
            found["refresh_token"] = "1//" + mint({**grant, "type": "refresh"})
        return found

    def bearer(self, header: str) -> dict[str, Any] | None:
        """The claims of a live access token."""
        claims = self._read(header.removeprefix("Bearer "), "access")
        if claims is None or claims["exp"] < self._clock.now().timestamp() or self._over(claims, access=True):
            return None
        return claims

    def take_back(self, token: str) -> bool:
        claims = self._read(token, "access") or self._read(token, "refresh")
        if claims is None or self._over(claims, access=False):
            return False
        self._ended_grants.add(_grant(claims))
        self._consented.discard(claims["user"])
        return True

    def end(self, user: str | None, *, refresh_only: bool) -> None:
        self._ended.append((user, self._now(), refresh_only))
        self._consented = {each for each in self._consented if user not in (None, each)}

    def _over(self, claims: dict[str, Any], *, access: bool) -> bool:
        return _grant(claims) in self._ended_grants or any(
            user in (None, claims["user"]) and claims["at"] <= until and not (access and refresh_only)
            for user, until, refresh_only in self._ended
        )

    def _read(self, token: str, kind: str) -> dict[str, Any] | None:
        prefix = {"access": "ya29.", "refresh": "1//", "code": ""}[kind]
        claims = read(token.removeprefix(prefix)) if token.startswith(prefix) else None
        return claims if claims is not None and claims.get("type") == kind else None


def _grant(claims: Mapping[str, Any]) -> str:
    return f"{claims['user']}:{claims['at']}"


def _verified(claims: Mapping[str, Any], verifier: str) -> bool:
    digest = hashlib.sha256(verifier.encode()).digest()
    shown = encoded(digest) if claims["method"] == "S256" else verifier
    return hmac.compare_digest(shown, claims["challenge"])


def subject(user: str) -> str:
    return str(int(hashlib.sha256(user.encode()).hexdigest()[:16], 16)).rjust(21, "1")


# -- pages and endpoints

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Sandbox Google – consent</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:3rem auto;padding:0 1rem}}
button{{font:inherit;padding:.4rem 1.2rem}}</style>
<h1>Sandbox Google</h1><p><strong>{client}</strong> asks to read:</p>
<form method="post" action="{action}"><input type="hidden" name="listed" value="1">
<p><label>Account <select name="user">{users}</select></label></p><ul style="list-style:none;padding:0">{scopes}</ul>
<p><button name="decision" value="accept">Allow</button> <button name="decision" value="decline">Decline</button></p>
</form></html>"""


class OAuthApi:
    def __init__(self, grants: Grants, users: Sequence[str]) -> None:
        self._grants, self._users = grants, users

    def routes(self) -> list[Route]:
        return [
            Route("/o/oauth2/v2/auth", self.consent_page, methods=["GET"]),
            Route("/o/oauth2/v2/auth", self.consent, methods=["POST"]),
            Route("/token", self.token, methods=["POST"]),
            Route("/revoke", self.revoke, methods=["POST"]),
            Route("/v1/userinfo", self.userinfo, methods=["GET", "POST"]),
        ]

    async def consent_page(self, request: Request) -> Response:
        query = dict(request.query_params)
        if problem := _unacceptable(query):
            return HTMLResponse(f"<h1>Error 400: {escape(problem)}</h1>", status_code=400)
        first = query.get("login_hint") or self._users[0]
        options = "".join(
            f'<option value="{escape(user)}"{" selected" if user == first else ""}>{escape(user)}</option>'
            for user in self._users
        )
        boxes = "".join(
            f'<li><label><input type="checkbox" name="scope" value="{escape(scope)}" checked> {escape(scope)}</label></li>'
            for scope in query["scope"].split()
            if scope not in ALWAYS
        )
        page = PAGE.format(
            client=escape(query["client_id"]),
            action=escape(f"{request.url.path}?{request.url.query}"),
            users=options,
            scopes=boxes,
        )
        return HTMLResponse(page)

    async def consent(self, request: Request) -> Response:
        query = dict(request.query_params)
        if problem := _unacceptable(query):
            return HTMLResponse(f"<h1>Error 400: {escape(problem)}</h1>", status_code=400)
        form = parse_qs((await request.body()).decode())
        state = {"state": query["state"]} if "state" in query else {}
        if form.get("decision", ["decline"])[0] != "accept":
            return _back(query, {"error": "access_denied", **state})
        user = form.get("user", [query.get("login_hint") or self._users[0]])[0]
        if user not in self._users:
            return HTMLResponse("<h1>Error 400: no such account</h1>", status_code=400)
        asked = query["scope"].split()
        ticked = set(form.get("scope", ())) if "listed" in form or "scope" in form else set(asked)
        granted = [LONG_NAMES.get(scope, scope) for scope in asked if scope in ticked | ALWAYS]
        code = self._grants.code(user=user, query=query, scopes=granted)
        return _back(query, {**state, "code": f"4/{code}", "scope": " ".join(granted)})

    async def token(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        try:
            _authenticate(request, form)
            found = self._granted(form)
        except OAuthError as error:
            body = {"error": error.error, "error_description": error.description}
            return JSONResponse(body, status_code=error.status)
        return JSONResponse(found, headers={"Cache-Control": "no-store"})

    def _granted(self, form: Mapping[str, str]) -> dict[str, Any]:
        if form.get("grant_type") == "authorization_code":
            return self._grants.redeem({**form, "code": form.get("code", "").removeprefix("4/")})
        if form.get("grant_type") == "refresh_token":
            return self._grants.refresh(form.get("refresh_token", ""))
        raise OAuthError(400, "unsupported_grant_type", "Invalid grant_type")

    async def revoke(self, request: Request) -> Response:
        form = parse_qs((await request.body()).decode())
        token = request.query_params.get("token") or form.get("token", [""])[0]
        if self._grants.take_back(token):
            return JSONResponse({})
        body = {"error": "invalid_token", "error_description": "Token expired or revoked"}
        return JSONResponse(body, status_code=400)

    async def userinfo(self, request: Request) -> Response:
        claims = self._grants.bearer(request.headers.get("authorization", ""))
        if claims is None:
            body = {"error": "invalid_request", "error_description": "Invalid Credentials"}
            return JSONResponse(body, status_code=401)
        user: str = claims["user"]
        name = user.partition("@")[0].title()
        return JSONResponse({"sub": subject(user), "email": user, "email_verified": True, "name": name})


def _unacceptable(query: Mapping[str, str]) -> str | None:
    if query.get("client_id") != CLIENT_ID:
        return "invalid_client"
    target = urlsplit(query.get("redirect_uri", ""))
    if target.scheme != "https" and target.hostname not in {"127.0.0.1", "localhost"}:
        return "redirect_uri_mismatch"
    if query.get("response_type") != "code" or not query.get("scope"):
        return "invalid_request"
    return None


def _back(query: Mapping[str, str], answer: Mapping[str, str]) -> Response:
    target = query["redirect_uri"]
    return RedirectResponse(f"{target}{'&' if '?' in target else '?'}{urlencode(answer)}", status_code=302)


def _authenticate(request: Request, form: Mapping[str, str]) -> None:
    """By Basic or in the body: Google takes both."""
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "basic":
        name, _, secret = base64.b64decode(value).decode().partition(":")
    else:
        name, secret = form.get("client_id", ""), form.get("client_secret", "")
    if (name, secret) != (CLIENT_ID, CLIENT_SECRET):
        raise OAuthError(401, "invalid_client", "The OAuth client was not found.")


def expiry(at: datetime) -> str:
    """An HTTP date, as push messages carry it."""
    return at.strftime("%a, %d %b %Y %H:%M:%S GMT")
