"""The end of a connection, told to the vendor: subscriptions are ended and the grant is taken back, while we still can.

Best effort, before the tokens are wiped: a vendor that does not answer keeps nothing of ours waiting.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from connectors import registry
from connectors.kit.contract import AuthRevoked, ConnectorError, Tokens, Watch
from connectors.kit.http import way_out
from connectors.kit.policy import SyncPolicy
from gateway.connections import repository, webhook_repository
from gateway.connections.tokens import Kept, open_tokens
from gateway.connections.vault import Vault
from gateway.connections.vendors import client_of, endpoints_of
from gateway.connections.webhook_service import open_watch
from gateway.corpus import erasure_repository
from gateway.db import Database
from gateway.logs import emit
from gateway.settings import Settings

SECONDS = 15  # for everything a vendor is told


class LastTokens:
    """What was in the row when the fence fell. They are not renewed any more."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    async def token(self) -> str:
        return self._tokens.access_token

    async def renew(self, stale: str) -> str:  # noqa: ARG002 - the contract's shape
        raise AuthRevoked("the connection is revoked")


class OpenWindow:
    """A handful of last requests waits for nobody."""

    async def enter(self, cost: float = 1.0) -> None: ...

    async def leave(self) -> None: ...

    async def turn(self, place: str, seconds: float) -> None: ...

    async def close_for(self, seconds: float) -> None: ...


async def covered(db: Database, mandate_id: UUID, receipt_id: UUID) -> list[UUID]:
    """The connections an erasure ends."""
    async with db.tenant_session(mandate_id) as session:
        receipt = await erasure_repository.find_receipt(session, receipt_id)
        if receipt is None or receipt.status == "done":
            return []
        if receipt.subject == "connection":
            return [UUID(receipt.subject_id)]
        if receipt.subject in {"user", "mandate"}:
            return await erasure_repository.connections_of(
                session, receipt.subject, receipt.subject_id, revoked=True
            )
    return []


async def tell_vendor(db: Database, settings: Settings, mandate_id: UUID, connection_id: UUID) -> None:
    async with db.tenant_session(mandate_id) as session:
        # A refresh that is under way ends first, so that the newest tokens are the ones taken back.
        await repository.lock_tokens(session, connection_id)
        row = await repository.find(session, connection_id)
        watches = await webhook_repository.watches_of(session, connection_id) if row else []
    if row is None or row.sealed_tokens is None or row.state != "revoked":
        return
    try:
        vault = Vault.of(settings)
        kept = open_tokens(vault, mandate_id, connection_id, row.sealed_tokens)
        async with asyncio.timeout(SECONDS):
            outcome = await _tell(settings, vault, row, kept, watches)
    except Exception as error:  # noqa: BLE001 - whatever a vendor's library runs into, the purge goes on
        outcome = f"failed: {type(error).__name__}"
    emit(
        "ingestion.connection.vendor.told",
        connectionId=str(connection_id),
        authority=row.authority,
        outcome=outcome,
    )


async def _tell(
    settings: Settings, vault: Vault, row: Row[Any], kept: Kept, watches: Sequence[Row[Any]]
) -> str:
    authority, client = registry.authority(row.authority), client_of(settings, row.authority)
    tokens = kept.tokens
    if watches and tokens.refresh_token and not kept.is_fresh(datetime.now(UTC)):
        tokens = await authority.refresh(client, tokens)
    if watches:
        await _unwatch(settings, vault, row, tokens, watches)
    return "revoked" if await authority.revoke(client, tokens) else "no endpoint"


async def _unwatch(
    settings: Settings, vault: Vault, row: Row[Any], tokens: Tokens, watches: Sequence[Row[Any]]
) -> None:
    endpoints = endpoints_of(settings, row.authority)
    by_surface: dict[str, list[Watch]] = {}
    for watch in watches:
        by_surface.setdefault(watch.surface, []).append(open_watch(vault, row.mandate_id, watch))
    async with way_out(endpoints.values()) as http:
        workplace = registry.Workplace(
            endpoints=endpoints,
            tokens=LastTokens(tokens),
            http=http,
            rate=OpenWindow(),
            policy=SyncPolicy(),
            account_id=row.account.get("id", ""),
        )
        for part, known in by_surface.items():
            try:
                await registry.surface(row.authority, part, replace(workplace)).unwatch(known)
            except ConnectorError:
                continue  # it runs out by itself; the grant is still to be taken back
