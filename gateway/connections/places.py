"""Where a surface works: endpoints from the settings, tokens from the vault, one guarded way out, shared rate windows."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import UUID

from redis.asyncio import Redis
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from connectors import registry
from connectors.kit.contract import Surface
from connectors.kit.http import VendorHttp
from connectors.kit.policy import SyncPolicy
from gateway.connections.rate_window import DEFAULT, LIMITS, SharedRateWindow
from gateway.connections.schemas import effective_policy
from gateway.connections.tokens import VaultTokens
from gateway.connections.vault import Vault
from gateway.connections.vendors import endpoints_of
from gateway.db import Database
from gateway.ingestion import repository as ingestion
from gateway.metrics import VENDOR_REQUESTS
from gateway.settings import Settings
from gateway.tenancy.schemas import Policy


class Places(Protocol):
    """Opens the surface of a data source (a row of `find_source`)."""

    def surface(self, mandate_id: UUID, source: Row[Any]) -> AbstractAsyncContextManager[Surface]: ...

    async def aclose(self) -> None: ...


async def policy_of(session: AsyncSession, source: Row[Any]) -> SyncPolicy:
    """What applies to a data source now."""
    mandate = Policy.model_validate(await ingestion.mandate_policy(session))
    return effective_policy(source.connection_policy or {}, mandate)


def _count(authority: str, status: int) -> None:
    VENDOR_REQUESTS.labels(authority, str(status)).inc()


class VendorPlaces:
    """The real ones. One per process: connections to a vendor are shared by all who talk to it."""

    def __init__(
        self,
        db: Database,
        settings: Settings,
        redis: Redis,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._db, self._settings, self._redis, self._clock = db, settings, redis, clock
        self._vault: Vault | None = None
        self._ways: dict[str, VendorHttp] = {}
        self._windows: dict[UUID, SharedRateWindow] = {}

    @asynccontextmanager
    async def surface(self, mandate_id: UUID, source: Row[Any]) -> AsyncGenerator[Surface]:
        async with self._db.tenant_session(mandate_id) as session:
            policy = await policy_of(session, source)
        if self._vault is None:
            self._vault = Vault.of(self._settings)
        authority: str = source.authority
        endpoints = endpoints_of(self._settings, authority)
        workplace = registry.Workplace(
            endpoints=endpoints,
            tokens=VaultTokens(
                self._db, self._vault, self._settings, mandate_id, source.connection_id, clock=self._clock
            ),
            http=self._way(authority, endpoints),
            rate=self._window(authority, source.connection_id),
            policy=policy,
            external_root=source.external_root,
            account_id=(source.account or {}).get("id", ""),
            clock=self._clock,
        )
        yield registry.surface(authority, source.surface, workplace)

    def _way(self, authority: str, endpoints: Mapping[str, str]) -> VendorHttp:
        if authority not in self._ways:
            self._ways[authority] = registry.open_http({authority: endpoints}, on_response=_count)
        return self._ways[authority]

    def _window(self, authority: str, connection_id: UUID) -> SharedRateWindow:
        if connection_id not in self._windows:
            limits = LIMITS.get(authority, DEFAULT)
            self._windows[connection_id] = SharedRateWindow(self._redis, connection_id, limits)
        return self._windows[connection_id]

    async def aclose(self) -> None:
        for way in self._ways.values():
            await way.aclose()
        self._ways.clear()
