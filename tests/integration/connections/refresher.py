"""A process full of tasks that all need a token at the same instant; see test_tokens.py.

The vendor is a token endpoint on loopback whose refresh tokens count once. Every task has a clock of its own: it holds
token n and lives at a time when n has just expired.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
from pydantic import SecretStr

from connectors import registry
from connectors.kit.contract import AuthRevoked, Client, Tokens
from gateway.connections.tokens import VaultTokens
from gateway.connections.vault import Vault
from gateway.db import Database
from gateway.settings import Settings

BEGINNING = datetime(2030, 1, 1, tzinfo=UTC)
LIFE = timedelta(hours=1)


def expiry(number: int) -> datetime:
    return BEGINNING + LIFE * (number + 1)


def number_of(token: str) -> int:
    return int(token.rpartition("-")[2])


class Endpoint:
    """The vendor's refresh, over HTTP."""

    name = "msft"
    surfaces: Sequence[str] = ("outlook",)
    has_refresh = True

    def __init__(self, url: str) -> None:
        self._url = url

    async def refresh(self, client: Client, tokens: Tokens) -> Tokens:
        async with httpx.AsyncClient(verify=False, timeout=60) as http:
            answer = await http.post(self._url, content=tokens.refresh_token or "")
        if answer.status_code == 400:
            raise AuthRevoked("invalid_grant")
        number = number_of(answer.text)
        return Tokens(access_token=f"access-{number}", refresh_token=answer.text, expires_at=expiry(number))

    async def revoke(self, client: Client, tokens: Tokens) -> bool:
        return False


async def main(wanted: Mapping[str, Any]) -> None:
    endpoint = Endpoint(wanted["endpoint"])
    registry.authority = lambda name: endpoint  # type: ignore[assignment,return-value]
    registry.default_endpoints = lambda name: {}  # type: ignore[assignment]
    settings = Settings(secret_key=SecretStr(wanted["secretKey"]), msft_client_id="x")
    db = Database(wanted["databaseUrl"], pool_size=4)
    vault = Vault.of(settings)

    async def need(last: int) -> int:
        now = BEGINNING
        source = VaultTokens(
            db, vault, settings, UUID(wanted["mandateId"]), UUID(wanted["connectionId"]), clock=lambda: now
        )
        number = number_of(await source.token())
        while number < last:
            now = expiry(number)
            found = number_of(await source.token())
            assert found > number
            number = found
        return number

    ends = await asyncio.gather(
        *(need(wanted["expiries"]) for _ in range(wanted["tasks"])), return_exceptions=True
    )
    await db.dispose()
    sys.stdout.write(json.dumps([end if isinstance(end, int) else type(end).__name__ for end in ends]))


if __name__ == "__main__":
    asyncio.run(main(json.loads(os.environ["REFRESHER"])))
