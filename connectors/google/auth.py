"""Consent of one Google user: read-only scopes, renewed without rotation, taken back at the vendor on disconnect."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from google.auth.exceptions import RefreshError, TransportError
from google.oauth2.credentials import Credentials
from google_auth_oauthlib.flow import Flow
from oauthlib.oauth2 import OAuth2Error

from connectors.google.crossing import RefreshHttp, SignInAdapter, in_thread, shown
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

ENDPOINTS: Mapping[str, str] = {
    "auth": "https://accounts.google.com/o/oauth2/v2/auth",
    "token": "https://oauth2.googleapis.com/token",
    "revoke": "https://oauth2.googleapis.com/revoke",
    "userinfo": "https://openidconnect.googleapis.com/v1/userinfo",
    "drive": "https://www.googleapis.com/drive/v3/",
    "gmail": "https://gmail.googleapis.com/",
    "calendar": "https://www.googleapis.com/calendar/v3/",
    # Gmail pushes through Pub/Sub: the operator's topic, and the token in the URL of its push subscription.
    "pubsub_topic": "",
    "pubsub_token": "",
}
# Downloads and exports may be redirected to here.
DOWNLOAD_HOSTS: Sequence[str] = ("*.googleusercontent.com", "*.googleapis.com")
_SCOPE = "https://www.googleapis.com/auth/"
IDENTITY = ("openid", f"{_SCOPE}userinfo.email", f"{_SCOPE}userinfo.profile")
# Read, never write; only what the surface cannot do without.
SCOPES: Mapping[str, Sequence[str]] = {
    "drive": (f"{_SCOPE}drive.readonly",),
    "gmail": (f"{_SCOPE}gmail.readonly",),
    "google_calendar": (f"{_SCOPE}calendar.events.readonly", f"{_SCOPE}calendar.calendarlist.readonly"),
}
# A refused refresh that only the user can mend. A wrong client secret is not the user's, and no reason to forget.
DEAD = frozenset({"invalid_grant", "admin_policy_enforced", "access_denied", "org_internal"})


class Google:
    name = "google"
    surfaces: Sequence[str] = tuple(SCOPES)
    has_refresh = True

    def begin(self, client: Client, *, redirect_uri: str, state: str, surfaces: Sequence[str]) -> Consent:
        scopes = [*IDENTITY, *sorted({scope for part in surfaces for scope in SCOPES[part]})]
        flow = _flow(client, scopes, redirect_uri=redirect_uri)
        # A refresh token comes only with offline access, and on a second consent only when it is asked for anew.
        url, _ = flow.authorization_url(
            state=state, access_type="offline", prompt="consent", include_granted_scopes="false"
        )
        real = client.endpoints["auth"] + url.removeprefix(shown(client.endpoints["auth"]))
        return Consent(
            url=real, flow={"verifier": flow.code_verifier, "redirect": redirect_uri, "state": state}
        )

    def granted_surfaces(self, scopes: Sequence[str]) -> Sequence[str]:
        """A user may tick fewer boxes than were shown."""
        if not scopes:
            return self.surfaces
        return [part for part, needed in SCOPES.items() if set(needed) <= set(scopes)]

    async def finish(
        self, client: Client, *, flow: Mapping[str, Any], answer: Mapping[str, str]
    ) -> tuple[Tokens, Account]:
        if "error" in answer:
            raise ConsentRefused(answer["error"])
        if answer.get("state") != flow["state"] or not answer.get("code"):
            raise ConsentRefused("invalid_state", "the answer does not belong to this consent")
        async with way_out(client.endpoints.values()) as http:
            result = await _redeemed(client, http, flow, answer["code"])
            tokens = _tokens(result)
            return tokens, await _account(client, http, tokens)

    async def account(self, client: Client, tokens: Tokens) -> Account:
        async with way_out(client.endpoints.values()) as http:
            return await _account(client, http, tokens)

    async def refresh(self, client: Client, tokens: Tokens) -> Tokens:
        if tokens.refresh_token is None:
            raise AuthRevoked("there is no refresh token")
        credentials = Credentials(
            token=None,
            refresh_token=tokens.refresh_token,
            token_uri=client.endpoints["token"],
            client_id=client.client_id,
            client_secret=client.client_secret,
        )
        loop = asyncio.get_running_loop()
        async with way_out(client.endpoints.values()) as http:
            try:
                await in_thread(lambda: credentials.refresh(cast("Any", RefreshHttp(http, loop))))
            except RefreshError as error:
                raise _unrenewed(error) from error
            except TransportError as error:
                raise VendorUnavailable("sign-in does not answer") from error
        expiry = credentials.expiry
        return Tokens(
            access_token=str(credentials.token),
            refresh_token=credentials.refresh_token or tokens.refresh_token,  # Google does not rotate
            expires_at=expiry.replace(tzinfo=UTC) if expiry else None,
            scopes=tuple(credentials.granted_scopes or tokens.scopes),
        )

    async def revoke(self, client: Client, tokens: Tokens) -> bool:
        """Ends the whole grant, access and refresh token alike. A token that is already dead counts as taken back."""
        async with way_out(client.endpoints.values()) as http:
            answer = await http.request(
                "POST",
                client.endpoints["revoke"],
                data={"token": tokens.refresh_token or tokens.access_token},
                authority=self.name,
            )
        if answer.status == 429 or answer.status >= 500:
            raise VendorUnavailable(f"taking back was answered {answer.status}")
        return answer.status in {200, 400}


def _flow(
    client: Client, scopes: Sequence[str] | None, *, redirect_uri: str, verifier: str | None = None
) -> Flow:
    settings = {
        "client_id": client.client_id,
        "client_secret": client.client_secret,
        "auth_uri": shown(client.endpoints["auth"]),
        "token_uri": shown(client.endpoints["token"]),
    }
    return Flow.from_client_config(
        {"web": settings},
        scopes=scopes,
        redirect_uri=redirect_uri,
        code_verifier=verifier,
        autogenerate_code_verifier=verifier is None,
    )


async def _redeemed(
    client: Client, http: VendorHttp, flow: Mapping[str, Any], code: str
) -> Mapping[str, Any]:
    # Without scopes oauthlib does not mind that the user granted fewer than were asked for.
    exchange = _flow(client, None, redirect_uri=flow["redirect"], verifier=flow["verifier"])
    loop, token_url = asyncio.get_running_loop(), client.endpoints["token"]
    session = exchange.oauth2session
    session.trust_env = False
    session.mount(
        "https://", SignInAdapter(http, loop, lambda url: token_url + url.removeprefix(shown(token_url)))
    )
    try:
        return cast("Mapping[str, Any]", await in_thread(lambda: exchange.fetch_token(code=code)))
    except OAuth2Error as error:
        raise ConsentRefused(str(error.error or "invalid_request")) from error
    except ValueError as error:
        raise VendorUnavailable("sign-in answered something that is not JSON") from error


def _tokens(result: Mapping[str, Any]) -> Tokens:
    scopes = result.get("scope") or ()
    return Tokens(
        access_token=str(result["access_token"]),
        refresh_token=result.get("refresh_token"),
        expires_at=datetime.now(UTC) + timedelta(seconds=int(result.get("expires_in") or 3600)),
        scopes=tuple(scopes.split() if isinstance(scopes, str) else scopes),
    )


async def _account(client: Client, http: VendorHttp, tokens: Tokens) -> Account:
    answer = await http.request(
        "GET",
        client.endpoints["userinfo"],
        headers={"Authorization": f"Bearer {tokens.access_token}"},
        authority="google",
    )
    if answer.status != 200:
        raise ConsentRefused("no_account", f"asking whose account it is was answered {answer.status}")
    me = answer.json()
    return Account(id=str(me["sub"]), name=str(me.get("name") or ""), email=str(me.get("email") or ""))


def _unrenewed(error: RefreshError) -> AuthRevoked | Throttled | VendorUnavailable:
    said = next((part for part in error.args if isinstance(part, Mapping)), {})
    word = str(said.get("error") or "")
    if word in DEAD:
        return AuthRevoked(word)
    if word in {"rate_limit_exceeded", "slow_down"}:
        return Throttled(30.0, word)
    return VendorUnavailable(f"sign-in refuses: {word or 'no reason given'}")


AUTHORITY = Google()
