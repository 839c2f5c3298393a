"""The identity platform v2.0: discovery, a consent page one can click through, codes and tokens.

Codes and tokens need no memory (see `connectors.sandbox.tokens`); remembered is only what must not work any more.
"""

import base64
import hashlib
import hmac
import json
import uuid
from collections.abc import Mapping
from html import escape
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from connectors.sandbox import tokens
from connectors.sandbox.msft.directory import User
from connectors.sandbox.msft.graph import Json
from connectors.sandbox.msft.registration import CLIENT_ID, CLIENT_SECRET, TENANT_ID
from connectors.sandbox.msft.world import MicrosoftWorld
from connectors.sandbox.world import NoSuchObject

CODE_SECONDS = 600
ACCESS_SECONDS = 3599
REFRESH_SECONDS = 90 * 24 * 3600
TENANTS = {"common", "organizations", "consumers", TENANT_ID, "demo.example"}
# What a client may name that is no permission of Graph.
PROTOCOL_SCOPES = {"openid", "profile", "email", "offline_access"}


class SignInError(Exception):
    def __init__(self, error: str, number: int, text: str, *, status: int = 400, suberror: str = "") -> None:
        self.error, self.number, self.text, self.status, self.suberror = error, number, text, status, suberror
        super().__init__(error)


class Identity:
    def __init__(self, world: MicrosoftWorld) -> None:
        self._world = world

    # -- discovery

    async def discovery(self, request: Request) -> Response:
        tenant = request.path_params["tenant"]
        if tenant not in TENANTS:
            error = SignInError("invalid_tenant", 90002, f"Tenant '{tenant}' not found.")
            return self._refused(error)
        here = f"{self._world.url}/{tenant}"
        # As at the vendor the token endpoint is https, which MSAL insists on; its http_client is told to come without.
        secure = here.replace("http://", "https://", 1)
        issuer = "{tenantid}" if tenant == "common" else TENANT_ID
        return JSONResponse(
            {
                "token_endpoint": f"{secure}/oauth2/v2.0/token",
                "token_endpoint_auth_methods_supported": [
                    "client_secret_post",
                    "private_key_jwt",
                    "client_secret_basic",
                ],
                "jwks_uri": f"{secure}/discovery/v2.0/keys",
                "response_modes_supported": ["query", "fragment", "form_post"],
                "subject_types_supported": ["pairwise"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "response_types_supported": ["code", "id_token", "code id_token", "id_token token"],
                "scopes_supported": ["openid", "profile", "email", "offline_access"],
                "issuer": f"{secure.removesuffix(tenant)}{issuer}/v2.0",
                "request_uri_parameter_supported": False,
                "userinfo_endpoint": f"{self._world.url}/oidc/userinfo",
                "authorization_endpoint": f"{here}/oauth2/v2.0/authorize",
                "device_authorization_endpoint": f"{secure}/oauth2/v2.0/devicecode",
                "http_logout_supported": True,
                "frontchannel_logout_supported": True,
                "end_session_endpoint": f"{here}/oauth2/v2.0/logout",
                "claims_supported": [
                    "sub",
                    "iss",
                    "aud",
                    "exp",
                    "iat",
                    "nonce",
                    "preferred_username",
                    "name",
                    "tid",
                ],
                "tenant_region_scope": None,
                "cloud_instance_name": "sandbox.example",
                "msgraph_host": self._world.url.removeprefix("http://"),
            },
            headers={"Cache-Control": "max-age=86400, private"},
        )

    async def instance(self, request: Request) -> Response:
        endpoint = request.query_params.get("authorization_endpoint", "")
        tenant = endpoint.split("/")[3] if endpoint.count("/") > 3 else "common"
        secure = self._world.url.replace("http://", "https://", 1)
        return JSONResponse(
            {
                "tenant_discovery_endpoint": f"{secure}/{tenant}/v2.0/.well-known/openid-configuration",
                "metadata": [],
            }
        )

    async def keys(self, _request: Request) -> Response:
        return JSONResponse({"keys": []})

    # -- authorize

    async def authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        try:
            self._check_client(request.path_params["tenant"], asked)
        except SignInError as error:
            return HTMLResponse(
                _page("Sign in failed", f"<p>AADSTS{error.number}: {escape(error.text)}</p>"), 400
            )
        if fault := self._world.faults.take("authorize_error", path=request.url.path):
            return self._back(asked, {"error": fault.options.get("error", "server_error")})
        if asked.get("response_type") != "code":
            return self._back(asked, {"error": "unsupported_response_type"})
        if not asked.get("scope"):
            return self._back(asked, {"error": "invalid_request", "error_description": "AADSTS900144: scope"})
        if asked.get("prompt") == "none":
            return self._back(asked, {"error": "interaction_required", "error_description": "AADSTS50058"})
        if request.method == "GET":
            return HTMLResponse(self._consent_page(request, asked))
        form = dict(parse_qsl((await request.body()).decode()))
        return self._decided(asked, form)

    def _check_client(self, tenant: str, asked: Mapping[str, str]) -> None:
        if tenant not in TENANTS:
            raise SignInError("invalid_request", 90002, f"Tenant '{tenant}' not found.")
        if asked.get("client_id") != CLIENT_ID:
            raise SignInError(
                "unauthorized_client", 700016, "The application was not found in the directory."
            )
        registered = self._world.redirect_uris
        redirect = asked.get("redirect_uri", "")
        if not redirect or (registered and redirect not in registered):
            raise SignInError(
                "invalid_request", 50011, "The redirect URI does not match those of the application."
            )

    def _consent_page(self, request: Request, asked: Mapping[str, str]) -> str:
        hint = asked.get("login_hint", "").lower()
        people = "".join(
            f'<p><label><input type="radio" name="user" value="{user.id}"'
            f"{' checked' if (user.email == hint or (not hint and not place)) else ''}> "
            f"{escape(user.name)} ({escape(user.email)})</label></p>"
            for place, user in enumerate(self._world.people.all())
        )
        scopes = "".join(f"<li>{escape(scope)}</li>" for scope in asked["scope"].split())
        action = escape(f"{request.url.path}?{request.url.query}")
        return _page(
            "Permissions requested",
            f"<p>Catchment asks for access to your account at this sandbox.</p><ul>{scopes}</ul>"
            f'<form method="post" action="{action}"><fieldset><legend>Sign in as</legend>{people}</fieldset>'
            '<p><button name="decision" value="accept">Accept</button> '
            '<button name="decision" value="decline">Decline</button></p></form>',
        )

    def _decided(self, asked: Mapping[str, str], form: Mapping[str, str]) -> Response:
        if form.get("decision") != "accept":
            text = "AADSTS65004: User declined to consent to access the app."
            return self._back(asked, {"error": "access_denied", "error_description": text})
        try:
            user = self._world.people.find(form.get("user", ""))
        except NoSuchObject:
            return HTMLResponse(_page("Sign in failed", "<p>AADSTS50034: no such user.</p>"), 400)
        challenge = asked.get("code_challenge")
        code = tokens.mint(
            {
                "kind": "code",
                "user": user.id,
                "scope": asked["scope"],
                "redirect": asked["redirect_uri"],
                "challenge": challenge,
                "method": asked.get("code_challenge_method", "plain") if challenge else None,
                "nonce": asked.get("nonce"),
                "issued": self._world.clock.stamp().timestamp(),
            }
        )
        return self._back(asked, {"code": code, "session_state": self._world.ids.guid("session")})

    def _back(self, asked: Mapping[str, str], answer: dict[str, str]) -> Response:
        """To the client, in the mode it asked for."""
        if "state" in asked:
            answer["state"] = asked["state"]
        redirect, mode = asked["redirect_uri"], asked.get("response_mode", "query")
        if mode == "form_post":
            fields = "".join(
                f'<input type="hidden" name="{name}" value="{escape(value)}">'
                for name, value in answer.items()
            )
            form = f'<form method="post" action="{escape(redirect)}">{fields}<button>Continue</button></form>'
            return HTMLResponse(_page("Back to the application", form))
        mark = "#" if mode == "fragment" else "&" if "?" in redirect else "?"
        return RedirectResponse(f"{redirect}{mark}{urlencode(answer)}", status_code=302)

    # -- token

    async def token(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode(), keep_blank_values=True))
        try:
            self._check_secret(request, form)
            self._ordered_failure(form)
            return JSONResponse(self._answer(form), headers={"Cache-Control": "no-store"})
        except SignInError as error:
            return self._refused(error)

    def _answer(self, form: Mapping[str, str]) -> Json:
        grant = form.get("grant_type")
        if grant == "authorization_code":
            return self._redeemed(form)
        if grant == "refresh_token":
            return self._refreshed(form)
        if grant == "client_credentials":
            raise SignInError(
                "unauthorized_client", 700016, "The application has no application permissions."
            )
        raise SignInError("unsupported_grant_type", 70003, "The grant type is not supported.")

    def _check_secret(self, request: Request, form: dict[str, str]) -> None:
        if request.path_params["tenant"] not in TENANTS:
            raise SignInError("invalid_request", 90002, "Tenant not found.")
        kind, _, value = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            name, _, secret = base64.b64decode(value).decode().partition(":")
            form.setdefault("client_id", unquote(name))
            form.setdefault("client_secret", unquote(secret))
        if form.get("client_id") != CLIENT_ID:
            raise SignInError(
                "unauthorized_client", 700016, "The application was not found in the directory."
            )
        if not hmac.compare_digest(form.get("client_secret", ""), CLIENT_SECRET):
            raise SignInError("invalid_client", 7000215, "Invalid client secret provided.", status=401)

    def _ordered_failure(self, form: Mapping[str, str]) -> None:
        if fault := self._world.faults.take("token_error", path=form.get("grant_type", "")):
            options = fault.options
            raise SignInError(
                options.get("error", "invalid_grant"),
                int(options.get("code", 700082)),
                "The grant has expired due to inactivity.",
                status=int(options.get("status", 400)),
                suberror=options.get("suberror", ""),
            )

    def _redeemed(self, form: Mapping[str, str]) -> Json:
        code = tokens.read(form.get("code", "..")) or {}
        if code.get("kind") != "code":
            raise SignInError(
                "invalid_grant", 70000, "The provided authorization code is malformed or invalid."
            )
        if form["code"] in self._world.used_codes:
            raise SignInError("invalid_grant", 54005, "The authorization code was already redeemed.")
        if self._world.clock.now().timestamp() > code["issued"] + CODE_SECONDS:
            raise SignInError("invalid_grant", 70008, "The provided authorization code is expired.")
        if form.get("redirect_uri") != code["redirect"]:
            raise SignInError("invalid_grant", 50011, "The redirect URI does not match that of the request.")
        if code["challenge"] and not _verified(
            form.get("code_verifier", ""), code["challenge"], code["method"]
        ):
            raise SignInError("invalid_grant", 501481, "The code_verifier does not match the code_challenge.")
        self._world.used_codes.add(form["code"])
        return self._granted(code["user"], code["scope"].split(), form, nonce=code["nonce"])

    def _refreshed(self, form: Mapping[str, str]) -> Json:
        old = tokens.read(form.get("refresh_token", "..")) or {}
        if old.get("kind") != "refresh":
            raise SignInError("invalid_grant", 70000, "The refresh token is malformed.", suberror="bad_token")
        if self._world.grant_ended(old, refresh=True):
            raise SignInError("invalid_grant", 50173, "The grant was revoked; a fresh sign-in is needed.")
        if self._world.clock.now().timestamp() > old["issued"] + REFRESH_SECONDS:
            raise SignInError("invalid_grant", 700082, "The refresh token has expired due to inactivity.")
        asked = form.get("scope", old["scope"]).split()
        if not {_short(scope) for scope in asked} <= {_short(scope) for scope in old["scope"].split()} | {
            ".default"
        }:
            raise SignInError("invalid_grant", 65001, "The user has not consented to use the application.")
        return self._granted(old["user"], old["scope"].split(), form)

    def _granted(
        self, user_id: str, scopes: list[str], form: Mapping[str, str], nonce: str | None = None
    ) -> Json:
        world = self._world
        user = world.people.find(user_id)
        now = world.clock.stamp().timestamp()
        names = list(dict.fromkeys(_short(scope) for scope in scopes))
        if fault := world.faults.take("narrow_scope", path=form.get("grant_type", "")):
            names = [name for name in names if name not in fault.options.get("without", [])]
        short = world.faults.take("short_token", path=form.get("grant_type", ""))
        life = int(short.options.get("seconds", 1)) if short else ACCESS_SECONDS
        graph = [name for name in names if name not in PROTOCOL_SCOPES]
        granted = " ".join(
            name if name in PROTOCOL_SCOPES else f"https://graph.microsoft.com/{name}" for name in names
        )
        access = tokens.mint(
            {
                "kind": "access",
                "aud": "https://graph.microsoft.com",
                "iss": f"https://sts.sandbox.example/{TENANT_ID}/",
                "appid": CLIENT_ID,
                "tid": TENANT_ID,
                "oid": user.id,
                "upn": user.email,
                "scp": " ".join(graph),
                "user": user.id,
                "issued": now,
                "exp": int(now) + life,
            }
        )
        body: Json = {
            "token_type": "Bearer",
            "scope": granted,
            "expires_in": life,
            "ext_expires_in": life,
            "access_token": access,
        }
        if "offline_access" in names:
            body["refresh_token"] = tokens.mint(
                {"kind": "refresh", "user": user.id, "scope": " ".join(names), "issued": now}
            )
        if "openid" in names:
            body["id_token"] = self._id_token(user, now, nonce)
        if form.get("client_info"):
            body["client_info"] = tokens.encoded(json.dumps({"uid": user.id, "utid": TENANT_ID}).encode())
        return body

    def _id_token(self, user: User, now: float, nonce: str | None) -> str:
        claims: dict[str, Any] = {
            "aud": CLIENT_ID,
            "iss": f"https://login.sandbox.example/{TENANT_ID}/v2.0",
            "iat": int(now),
            "nbf": int(now),
            "exp": int(now) + ACCESS_SECONDS,
            "name": user.name,
            "oid": user.id,
            "preferred_username": user.email,
            "email": user.email,
            "sub": hashlib.sha256(user.id.encode()).hexdigest()[:43],
            "tid": TENANT_ID,
            "ver": "2.0",
        }
        return tokens.mint({**claims, "nonce": nonce} if nonce else claims)

    def _refused(self, error: SignInError) -> Response:
        trace, correlation = str(uuid.uuid4()), str(uuid.uuid4())
        when = self._world.clock.now().strftime("%Y-%m-%d %H:%M:%SZ")
        body: Json = {
            "error": error.error,
            "error_description": (
                f"AADSTS{error.number}: {error.text}\r\nTrace ID: {trace}\r\nCorrelation ID: {correlation}\r\nTimestamp: {when}"
            ),
            "error_codes": [error.number],
            "timestamp": when,
            "trace_id": trace,
            "correlation_id": correlation,
            "error_uri": f"{self._world.url}/error?code={error.number}",
        }
        if error.suberror:
            body["suberror"] = error.suberror
        return JSONResponse(body, status_code=error.status)


def _short(scope: str) -> str:
    """Permissions of Graph are named with or without its address."""
    return scope.rpartition("/")[2]


def _verified(verifier: str, challenge: str, method: str) -> bool:
    if method == "S256":
        verifier = tokens.encoded(hashlib.sha256(verifier.encode()).digest())
    return hmac.compare_digest(verifier.encode(), challenge.encode())


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width"></head>'
        f"<body><main><h1>{title}</h1>{body}</main></body></html>"
    )
