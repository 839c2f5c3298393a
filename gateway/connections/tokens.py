"""Access tokens of a connection, renewed once per expiry however many processes ask.

Who finds a token expired takes the connection's token lock and looks again: mostly somebody else has renewed it
meanwhile. Only who still finds the old one asks the vendor, and stores the answer in the same transaction, if the old one is
still there. A grant the vendor no longer knows makes the connection wait for its user (`needs_reauth`).
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID
from weakref import WeakValueDictionary

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from connectors import registry
from connectors.kit.contract import AuthRevoked, ConnectorError, Tokens, VendorUnavailable
from gateway.connections import repository, service
from gateway.connections.vault import Vault, tokens_place
from gateway.connections.vendors import client_of
from gateway.crashpoints import crash_point
from gateway.db import Database
from gateway.settings import Settings

EARLY = timedelta(minutes=5)  # before its end a token is renewed, so that no request runs into it …
EARLY_SHARE = 5  # … but never before four fifths of its life are over
VENDOR_SECONDS = 30  # a vendor that takes longer has not answered

# Within a process one task at a time asks the database; the others wait here and hold no connection of the pool.
_turns: WeakValueDictionary[tuple[UUID, UUID], asyncio.Lock] = WeakValueDictionary()


@dataclass(frozen=True)
class Kept:
    """Tokens as they are sealed in the row, and when they were obtained."""

    tokens: Tokens
    obtained_at: datetime | None = None

    def is_fresh(self, now: datetime) -> bool:
        ends = self.tokens.expires_at
        if ends is None:
            return True
        life = ends - self.obtained_at if self.obtained_at else EARLY * EARLY_SHARE
        return now < ends - min(EARLY, life / EARLY_SHARE)

    def packed(self) -> dict[str, Any]:
        tokens = self.tokens
        return {
            "accessToken": tokens.access_token,
            "refreshToken": tokens.refresh_token,
            "expiresAt": tokens.expires_at.isoformat() if tokens.expires_at else None,
            "scopes": list(tokens.scopes),
            "obtainedAt": self.obtained_at.isoformat() if self.obtained_at else None,
        }

    @classmethod
    def unpacked(cls, packed: dict[str, Any]) -> "Kept":
        def moment(name: str) -> datetime | None:
            return datetime.fromisoformat(packed[name]) if packed.get(name) else None

        tokens = Tokens(
            access_token=packed["accessToken"],
            refresh_token=packed.get("refreshToken"),
            expires_at=moment("expiresAt"),
            scopes=tuple(packed.get("scopes", ())),
        )
        return cls(tokens, moment("obtainedAt"))


def seal_tokens(vault: Vault, mandate_id: UUID, connection_id: UUID, kept: Kept) -> bytes:
    return vault.seal_json(kept.packed(), tokens_place(mandate_id, connection_id))


def open_tokens(vault: Vault, mandate_id: UUID, connection_id: UUID, sealed: bytes) -> Kept:
    return Kept.unpacked(vault.open_json(sealed, tokens_place(mandate_id, connection_id)))


class VaultTokens:
    """The `TokenSource` of one connection."""

    def __init__(
        self,
        db: Database,
        vault: Vault,
        settings: Settings,
        mandate_id: UUID,
        connection_id: UUID,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._db, self._vault, self._settings, self._clock = db, vault, settings, clock
        self._mandate_id, self._connection_id = mandate_id, connection_id
        self._kept: Kept | None = None

    async def token(self) -> str:
        if self._kept is None or not self._kept.is_fresh(self._clock()):
            self._kept = await self._current(None)
        return self._kept.tokens.access_token

    async def renew(self, stale: str) -> str:
        self._kept = await self._current(stale)
        return self._kept.tokens.access_token

    async def _current(self, stale: str | None) -> Kept:
        """The stored tokens if they will do, else new ones. `stale` is an access token the vendor refused."""

        def will_do(kept: Kept) -> bool:
            return kept.tokens.access_token != stale and kept.is_fresh(self._clock())

        turn = _turns.setdefault((self._mandate_id, self._connection_id), asyncio.Lock())
        async with turn:
            async with self._db.tenant_session(self._mandate_id) as session:
                row, kept = await self._read(session)
            if will_do(kept):
                return kept
            async with self._db.tenant_session(self._mandate_id) as session:
                await repository.lock_tokens(session, self._connection_id)
                row, kept = await self._read(session)
                if will_do(kept):
                    return kept
                renewed = await self._refresh(session, row, kept)
            if renewed is None:
                raise AuthRevoked("the grant is dead; its user must give consent again")
            return renewed

    async def _read(self, session: AsyncSession) -> tuple[Row[Any], Kept]:
        row = await repository.find(session, self._connection_id)
        if row is None or row.state != "active" or row.sealed_tokens is None:
            raise AuthRevoked("the connection is not active")
        return row, open_tokens(self._vault, self._mandate_id, self._connection_id, row.sealed_tokens)

    async def _refresh(self, session: AsyncSession, row: Row[Any], kept: Kept) -> Kept | None:
        """Asks the vendor, under the token lock. None: the grant is dead, and the row says so now."""
        authority, client = registry.authority(row.authority), client_of(self._settings, row.authority)
        if not authority.has_refresh or kept.tokens.refresh_token is None:
            return await self._refused(session, row)
        try:
            async with asyncio.timeout(VENDOR_SECONDS):
                tokens = await authority.refresh(client, kept.tokens)
        except AuthRevoked:
            return await self._refused(session, row)
        except TimeoutError:
            raise VendorUnavailable("the vendor did not answer a token request in time") from None
        crash_point("token.after_rotation")
        renewed = Kept(tokens, self._clock())
        sealed = seal_tokens(self._vault, self._mandate_id, self._connection_id, renewed)
        if await repository.swap_tokens(
            session, self._connection_id, row.sealed_tokens, sealed, tokens.expires_at
        ):
            return renewed
        # Revoked while the vendor answered, or consent was given anew: what we hold was never stored.
        newer = await repository.find(session, self._connection_id)
        if newer is not None and newer.state == "active" and newer.sealed_tokens is not None:
            return open_tokens(self._vault, self._mandate_id, self._connection_id, newer.sealed_tokens)
        with suppress(ConnectorError, TimeoutError):
            async with asyncio.timeout(VENDOR_SECONDS):
                await authority.revoke(client, tokens)
        return None

    async def _refused(self, session: AsyncSession, row: Row[Any]) -> Kept | None:
        """Looks once more before it declares the grant dead: consent may have been given a moment ago."""
        newer = await repository.find(session, self._connection_id)
        if newer is not None and newer.state == "active" and newer.sealed_tokens != row.sealed_tokens:
            return open_tokens(self._vault, self._mandate_id, self._connection_id, newer.sealed_tokens)
        await service.need_reauth(session, self._connection_id, "invalid_grant")
        return None
