"""Consent of one ClickUp user: no scopes, no refresh, no expiry. A token lives until the user ends it at ClickUp."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from connectors.kit.contract import (
    Account,
    AuthRevoked,
    Client,
    Consent,
    ConsentRefused,
    Tokens,
    VendorUnavailable,
)
from connectors.kit.http import VendorHttp, way_out

ENDPOINTS: Mapping[str, str] = {
    "auth": "https://app.clickup.com/api",
    "api": "https://api.clickup.com/api",
}
# Attachments are served from here.
DOWNLOAD_HOSTS: Sequence[str] = ("*.clickup-attachments.com", "*.clickup.com")


class ClickUp:
    name = "clickup"
    surfaces: Sequence[str] = ("clickup",)
    has_refresh = False

    def begin(self, client: Client, *, redirect_uri: str, state: str, surfaces: Sequence[str]) -> Consent:
        del surfaces  # the user chooses workspaces on ClickUp's own page
        query = urlencode({"client_id": client.client_id, "redirect_uri": redirect_uri, "state": state})
        return Consent(url=f"{client.endpoints['auth']}?{query}", flow={"state": state})

    def granted_surfaces(self, scopes: Sequence[str]) -> Sequence[str]:
        del scopes  # a token reads all that its user may see in the workspaces they chose
        return self.surfaces

    async def finish(
        self, client: Client, *, flow: Mapping[str, Any], answer: Mapping[str, str]
    ) -> tuple[Tokens, Account]:
        if "error" in answer:
            raise ConsentRefused(answer["error"])
        if answer.get("state") != flow["state"] or not answer.get("code"):
            raise ConsentRefused("invalid_state", "the answer does not belong to this consent")
        async with way_out(client.endpoints.values()) as http:
            redeemed = await http.request(
                "POST",
                f"{client.endpoints['api']}/v2/oauth/token",
                json={
                    "client_id": client.client_id,
                    "client_secret": client.client_secret,
                    "code": answer["code"],
                },
                authority=self.name,
            )
            if redeemed.status == 429 or redeemed.status >= 500:
                raise VendorUnavailable(f"redeeming a code was answered {redeemed.status}")
            body = redeemed.json()
            if redeemed.status != 200 or not isinstance(body, dict) or not body.get("access_token"):
                raise ConsentRefused(str((body or {}).get("ECODE") or "invalid_grant"))
            tokens = Tokens(access_token=str(body["access_token"]))
            return tokens, await account(client, http, tokens)

    async def account(self, client: Client, tokens: Tokens) -> Account:
        async with way_out(client.endpoints.values()) as http:
            return await account(client, http, tokens)

    async def refresh(self, client: Client, tokens: Tokens) -> Tokens:
        del client, tokens
        raise AuthRevoked("ClickUp's tokens cannot be renewed")

    async def revoke(self, client: Client, tokens: Tokens) -> bool:
        """There is no way to end a token by API; the user removes the app in ClickUp's settings."""
        del client, tokens
        return False


async def account(client: Client, http: VendorHttp, tokens: Tokens) -> Account:
    answer = await http.request(
        "GET",
        f"{client.endpoints['api']}/v2/user",
        headers={"Authorization": credential(tokens.access_token)},
        authority="clickup",
    )
    if answer.status != 200:
        raise ConsentRefused("no_account", f"asking whose account it is was answered {answer.status}")
    user = answer.json()["user"]
    return Account(
        id=str(user["id"]), name=str(user.get("username") or ""), email=str(user.get("email") or "")
    )


def credential(token: str) -> str:
    """Personal tokens (`pk_…`) go as they are, tokens of an application behind `Bearer`."""
    return token if token.startswith("pk_") else f"Bearer {token}"


AUTHORITY = ClickUp()
