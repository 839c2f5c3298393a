"""A vendor in the test's own memory: consent with PKCE, rotating refresh tokens, revocation. It speaks the contract of an
`Authority`, so that everything on our side of it is real.
"""

import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from connectors.kit.contract import (
    Account,
    AuthRevoked,
    Client,
    Consent,
    ConsentRefused,
    Delivery,
    Estimate,
    Notice,
    Tokens,
    Watch,
)

CLIENT_SECRET = "canary-client-secret-4711"


def _challenge(verifier: str) -> str:
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


@dataclass
class Vendor:
    """Tokens are `canary-…`, so that a leak can be found by looking for the word."""

    name: str = "msft"
    surfaces: Sequence[str] = ("sharepoint", "outlook", "teams")
    has_refresh: bool = True
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    grants: dict[str, str] = field(default_factory=dict)  # living refresh token → account
    accounts: dict[str, str] = field(default_factory=dict)  # access token → account
    refreshes: int = 0
    taken_back: list[str] = field(default_factory=list)
    unwatched: list[str] = field(default_factory=list)
    unticked: set[str] = field(default_factory=set)  # on the consent page
    life: timedelta = timedelta(hours=1)
    answers: dict[str, Any] = field(default_factory=dict)  # trouble to raise, by call

    # -- the browser's side

    def consent(self, url: str, account: str = "ada", *, decline: bool = False) -> dict[str, str]:
        """What a person clicks; the query the vendor sends the browser back with."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        if decline:
            return {"error": "access_denied", "state": asked["state"]}
        code = f"canary-code-{secrets.token_hex(8)}"
        self.codes[code] = asked | {"account": account}
        return {"code": code, "state": asked["state"]}

    # -- the contract

    def begin(self, client: Client, *, redirect_uri: str, state: str, surfaces: Sequence[str]) -> Consent:
        verifier = f"canary-verifier-{secrets.token_urlsafe(32)}"
        query = {
            "client_id": client.client_id,
            "redirect_uri": redirect_uri,
            "state": state,
            "scope": " ".join(surfaces),
            "code_challenge": _challenge(verifier),
        }
        flow = {"verifier": verifier, "redirect_uri": redirect_uri}
        return Consent(url=f"https://vendor.example/authorize?{urlencode(query)}", flow=flow)

    def granted_surfaces(self, scopes: Sequence[str]) -> Sequence[str]:
        return [part for part in self.surfaces if part not in self.unticked]

    async def finish(
        self, client: Client, *, flow: Mapping[str, Any], answer: Mapping[str, str]
    ) -> tuple[Tokens, Account]:
        if "error" in answer:
            raise ConsentRefused(answer["error"])
        code = self.codes.pop(answer.get("code", ""), None)
        if code is None or client.client_secret != CLIENT_SECRET:
            raise ConsentRefused("invalid_grant")
        if code["redirect_uri"] != flow["redirect_uri"]:
            raise ConsentRefused("invalid_grant", "redirect")
        if code["code_challenge"] != _challenge(flow["verifier"]):
            raise ConsentRefused("invalid_grant", "verifier")
        tokens = self.issue(code["account"])
        return tokens, self._account(code["account"])

    def issue(self, account: str) -> Tokens:
        number = secrets.token_hex(8)
        self.grants[f"canary-refresh-{number}"] = account
        self.accounts[f"canary-access-{number}"] = account
        return Tokens(
            access_token=f"canary-access-{number}",
            refresh_token=f"canary-refresh-{number}",
            expires_at=datetime.now(UTC) + self.life,
            scopes=("read",),
        )

    async def account(self, client: Client, tokens: Tokens) -> Account:
        if tokens.access_token not in self.accounts:
            raise AuthRevoked("unknown token")
        return self._account(self.accounts[tokens.access_token])

    def _account(self, name: str) -> Account:
        return Account(id=f"id-of-{name}", name=name.title(), email=f"{name}@vendor.example")

    async def refresh(self, client: Client, tokens: Tokens) -> Tokens:
        self.refreshes += 1
        if trouble := self.answers.get("refresh"):
            raise trouble
        account = self.grants.pop(tokens.refresh_token or "", None)  # each one counts once
        if account is None:
            raise AuthRevoked("invalid_grant")
        return self.issue(account)

    async def revoke(self, client: Client, tokens: Tokens) -> bool:
        if trouble := self.answers.get("revoke"):
            raise trouble
        self.taken_back.append(tokens.refresh_token or tokens.access_token)
        self.grants.pop(tokens.refresh_token or "", None)
        return True

    async def estimate(self) -> Estimate:
        return Estimate(items=3, size=300, exact=True)

    async def unwatch(self, known: Sequence[Watch]) -> None:
        if trouble := self.answers.get("unwatch"):
            raise trouble
        self.unwatched += [watch.vendor_id for watch in known]

    # -- push: the body is `id|secret|delivery|kind` per line

    def handshake(self, delivery: Delivery) -> str | None:
        return delivery.query.get("validationToken")

    def notices(self, delivery: Delivery) -> Sequence[Notice]:
        found: list[Notice] = []
        for line in delivery.body.decode().splitlines():
            route, proof, delivery_id, kind = line.split("|")
            found.append(Notice(route=route, proof=proof, delivery_id=delivery_id or None, kind=kind))  # type: ignore[arg-type]
        return found

    def verify(self, notice: Notice, secret: str, delivery: Delivery) -> bool:
        return secrets.compare_digest(notice.proof, secret)
