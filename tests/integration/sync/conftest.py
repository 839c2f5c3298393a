"""A connected brook, and the engine that follows it."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from gateway.connections import repository as connections
from gateway.connections.sync_service import approve_held, enqueue_sync
from gateway.corpus import vector_repository
from gateway.corpus.child import ChildPool
from gateway.db import Database, new_id
from gateway.ingestion import facade
from tests.conformance.brook import Brook, BrookPlaces
from tests.fixtures.corpus import Tenant, make_tenant, rows_of
from tests.fixtures.worker import Bench


@dataclass
class Bank:
    """One connection to one brook, in a mandate of its own."""

    bench: Bench
    tenant: Tenant
    connection_id: UUID
    source_id: UUID
    world: Brook
    places: BrookPlaces
    time: list[datetime] = field(default_factory=lambda: [datetime.now(UTC)])

    @property
    def db(self) -> Database:
        return self.bench.db

    async def ask(self, mode: str = "delta", reason: str = "test") -> UUID | None:
        async with self.db.tenant_session(self.tenant.mandate_id) as session:
            return await enqueue_sync(session, self.source_id, mode=mode, reason=reason)

    async def drain(self) -> None:
        """Runs what may run now, in every lane, until nothing is left."""
        while True:
            await self.bench.drain(self.tenant)
            left = await self.rows(
                "SELECT 1 FROM job WHERE finished_at IS NULL AND run_after <= now() AND lease_until IS NULL"
            )
            if not left:
                return

    async def sync(self, mode: str = "delta") -> None:
        """One round and all that follows from it."""
        await self.ask(mode)
        await self.drain()

    async def wait_over(self) -> None:
        """The vendor's patience is back and every schedule is due: as if hours had gone by."""
        self.time[0] += timedelta(days=2)
        await rows_of(
            self.db,
            self.tenant,
            "UPDATE job SET run_after = now(), reason = NULL WHERE finished_at IS NULL RETURNING 1",
        )

    async def settle(self, *, rounds: int) -> None:
        """Time goes by, a person says yes to what was held, and the house is tidied."""
        for _ in range(rounds):
            await self.rows(
                "UPDATE job SET deaths = 0, lease_until = NULL WHERE finished_at IS NULL RETURNING 1"
            )
            await self.wait_over()
            await self.sync()
        async with self.db.tenant_session(self.tenant.mandate_id) as session:
            await approve_held(session, self.connection_id)
        await self.drain()
        async with self.db.tenant_session(self.tenant.mandate_id) as session:
            # As the maintenance does: a crash may leave a vector whose document became another.
            await vector_repository.collect(session, None)

    async def corpus(self) -> dict[str, str]:
        """What can be found: text by external id."""
        rows = await self.rows(
            "SELECT d.source_id, t.text FROM document d JOIN document_text t ON t.document_id = d.id "
            "WHERE d.connection_id = :connection AND d.source_kind <> 'connection_summary'",
            connection=self.connection_id,
        )
        return {row.source_id: row.text for row in rows}

    async def rows(self, sql: str, **values: Any) -> list[Any]:
        return await rows_of(self.db, self.tenant, sql, **values)

    async def item(self, external_id: str) -> Any:
        [row] = await self.rows("SELECT * FROM remote_item WHERE external_id = :id", id=external_id)
        return row

    async def source(self) -> Any:
        [row] = await self.rows("SELECT * FROM data_source WHERE id = :id", id=self.source_id)
        return row

    async def set_policy(self, **policy: Any) -> None:
        await self.rows(
            "UPDATE connection SET policy = CAST(:policy AS jsonb) RETURNING 1",
            policy=json.dumps(policy),
        )


async def open_bank(bench: Bench, places: BrookPlaces, world: Brook, tenant: Tenant | None = None) -> Bank:
    tenant = tenant or await make_tenant(bench.db)
    connection_id, source_id = new_id(), new_id()
    async with bench.db.tenant_session(tenant.mandate_id) as session:
        await connections.add(session, connection_id, "msft", tenant.user_id)
        await session.execute(
            text("UPDATE connection SET surfaces = '{sharepoint}' WHERE id = :id"), {"id": connection_id}
        )
        await session.execute(
            text(
                "INSERT INTO data_source (mandate_id, id, connection_id, user_id, surface, adapter_kind, scope) "
                "VALUES (:mandate, :id, :connection, :user, 'sharepoint', 'brook', 'personal')"
            ),
            {
                "mandate": tenant.mandate_id,
                "id": source_id,
                "connection": connection_id,
                "user": tenant.user_id,
            },
        )
    places.worlds[connection_id] = world
    bank = Bank(bench, tenant, connection_id, source_id, world, places)
    bench.runner.places = places
    bench.runner.clock = lambda: bank.time[0]
    return bank


@pytest.fixture
async def bank(db: Database, pool: ChildPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bank:
    bench = Bench(db, pool, tmp_path, retry_base_seconds=0.01)
    monkeypatch.setattr(facade, "get_settings", lambda: bench.settings)
    return await open_bank(bench, BrookPlaces(), Brook())
