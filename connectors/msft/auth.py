"""Consent of one Microsoft user: what is asked for, how it is renewed. Nothing here needs an administrator but Teams messages."""

import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from urllib.parse import urlsplit

from connectors.kit.contract import (
    Account,
    AuthRevoked,
    Client,
    Consent,
    ConsentRefused,
    Throttled,
    Tokens,
    VendorUnavailable,
)
from connectors.kit.http import VendorHttp, way_out
from connectors.msft.graph import USER_AGENT, classify
from connectors.msft.sign_in import LoginPlace, application, in_thread

ENDPOINTS: Mapping[str, str] = {
    "login": "https://login.microsoftonline.com",
    "tenant": "common",
    "graph": "https://graph.microsoft.com/v1.0",
}
# Where Graph redirects a download to: SharePoint of every cloud, and personal OneDrive.
DOWNLOAD_HOSTS: Sequence[str] = (
    "*.sharepoint.com",
    "*.sharepoint.us",
    "*.sharepoint-mil.us",
    "*.sharepoint.cn",
    "*.1drv.com",
    "*.svc.ms",
    "*.microsoftpersonalcontent.com",
)
# Read, never write; only what the surface cannot do without.
SCOPES: Mapping[str, Sequence[str]] = {
    "sharepoint": ("Sites.Read.All",),
    "onedrive": ("Files.Read.All",),
    "outlook": ("Mail.Read",),
    "outlook_calendar": ("Calendars.Read",),
    "teams": ("Team.ReadBasic.All", "Channel.ReadBasic.All", "ChannelMessage.Read.All", "Chat.Read"),
}
RESERVED = frozenset({"openid", "profile", "offline_access", "email"})  # MSAL adds what it needs itself
# The user has to come back. Everything else – a wrong secret, an outage – is not the user's, and no reason to forget.
DEAD = frozenset({"invalid_grant", "interaction_required", "consent_required", "login_required"})


def scopes_for(endpoints: Mapping[str, str], surfaces: Sequence[str]) -> list[str]:
    """Bare names mean the public cloud's Graph; a national cloud wants its own resource in front."""
    names = sorted({scope for part in surfaces for scope in SCOPES[part]})
    graph = urlsplit(endpoints["graph"])
    if graph.scheme == "https" and graph.hostname != "graph.microsoft.com":
        return [f"https://{graph.netloc}/{name}" for name in names]
    return names


class Microsoft:
    name = "msft"
    surfaces: Sequence[str] = tuple(SCOPES)
    has_refresh = True

    def begin(self, client: Client, *, redirect_uri: str, state: str, surfaces: Sequence[str]) -> Consent:
        with warnings.catch_warnings():
            # MSAL would rather have a form post. The callback is a GET on our own origin, with a state of one use and
            # bound to the browser by a cookie that a post from another site would not bring along.
            warnings.filterwarnings("ignore", message="response_mode")
            flow = cast(
                "dict[str, Any]",
                application(client).initiate_auth_code_flow(
                    scopes_for(client.endpoints, surfaces),
                    redirect_uri=redirect_uri,
                    state=state,
                    response_mode="query",
                    prompt="select_account",
                ),
            )
        return Consent(url=LoginPlace(client).real(flow["auth_uri"]), flow=flow)

    def granted_surfaces(self, scopes: Sequence[str]) -> Sequence[str]:
        """Granted scopes come back bare or with their resource in front; an account may not know all that were asked for."""
        if not scopes:
            return self.surfaces
        granted = {scope.rpartition("/")[2].lower() for scope in scopes}
        return [part for part, needed in SCOPES.items() if {scope.lower() for scope in needed} <= granted]

    async def finish(
        self, client: Client, *, flow: Mapping[str, Any], answer: Mapping[str, str]
    ) -> tuple[Tokens, Account]:
        async with way_out(client.endpoints.values()) as http:
            try:
                result = await in_thread(
                    client, http, lambda app: app.acquire_token_by_auth_code_flow(dict(flow), dict(answer))
                )
            except ValueError as error:  # another state, another nonce, another audience
                raise ConsentRefused("invalid_state", "the answer does not belong to this consent") from error
            except RuntimeError as error:  # an id token that MSAL does not accept
                raise ConsentRefused("invalid_token", "the id token is not for us") from error
            if "access_token" not in result:
                raise ConsentRefused(str(result.get("error") or "invalid_request"))
            tokens = _tokens(result)
            return tokens, await self._account(client, http, result, tokens)

    async def refresh(self, client: Client, tokens: Tokens) -> Tokens:
        refresh_token = tokens.refresh_token
        if refresh_token is None:
            raise AuthRevoked("there is no refresh token")
        scopes = [scope for scope in tokens.scopes if scope not in RESERVED]
        async with way_out(client.endpoints.values()) as http:
            result = await in_thread(
                client, http, lambda app: app.acquire_token_by_refresh_token(refresh_token, scopes)
            )
        if "access_token" in result:
            # The old refresh token stays valid, but only the new one is counted on.
            return _tokens(result, refresh_token=refresh_token, scopes=tokens.scopes)
        error = str(result.get("error") or "")
        if error in DEAD:
            raise AuthRevoked(error)
        if error == "temporarily_unavailable":
            raise Throttled(30.0, error)
        raise VendorUnavailable(f"sign-in refuses the application: {error or 'no reason given'}")

    async def revoke(self, client: Client, tokens: Tokens) -> bool:  # noqa: ARG002 - the contract's shape
        """Microsoft has no endpoint for it: the user takes the app away at myapps, an administrator in Entra."""
        return False

    async def account(self, client: Client, tokens: Tokens) -> Account:
        async with way_out(client.endpoints.values()) as http:
            return await self._me(client, http, tokens)

    async def _account(
        self, client: Client, http: VendorHttp, result: Mapping[str, Any], tokens: Tokens
    ) -> Account:
        """The id token says it, and saves a scope; where it does not, Graph is asked."""
        claims: Mapping[str, Any] = result.get("id_token_claims") or {}
        if claims.get("oid"):
            email = claims.get("email") or claims.get("preferred_username") or ""
            return Account(id=str(claims["oid"]), name=str(claims.get("name") or ""), email=str(email))
        try:
            return await self._me(client, http, tokens)
        except AuthRevoked as error:
            raise ConsentRefused("no_account", str(error)) from error

    async def _me(self, client: Client, http: VendorHttp, tokens: Tokens) -> Account:
        answer = await http.request(
            "GET",
            f"{client.endpoints['graph'].rstrip('/')}/me",
            headers={"Authorization": f"Bearer {tokens.access_token}", "User-Agent": USER_AGENT},
            authority=self.name,
        )
        if answer.status in {401, 403}:
            raise AuthRevoked(f"asking whose account it is was answered {answer.status}")
        error = classify(answer)
        if error is not None:
            raise error
        me = answer.json()
        email = me.get("mail") or me.get("userPrincipalName") or ""
        return Account(id=str(me["id"]), name=str(me.get("displayName") or ""), email=str(email))


def _tokens(
    result: Mapping[str, Any], *, refresh_token: str | None = None, scopes: Sequence[str] = ()
) -> Tokens:
    granted = str(result.get("scope") or "").split()
    return Tokens(
        access_token=str(result["access_token"]),
        refresh_token=result.get("refresh_token") or refresh_token,
        expires_at=datetime.now(UTC) + timedelta(seconds=int(result.get("expires_in") or 3600)),
        scopes=tuple(granted or scopes),
    )


AUTHORITY = Microsoft()
