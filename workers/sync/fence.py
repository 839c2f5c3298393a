"""Every write of a sync holds, in this order, the connection (is it still allowed?), the data source (is this still its
cursor?) and the job (is it still ours?). Who has lost any of them writes nothing.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.connections import repository as connections
from gateway.connections import sync_repository as repository
from gateway.db import Database
from gateway.ingestion import ledger_repository as ledger


class Lost(Exception):
    """The job may not write any more. `reason` says why; `taken` that somebody else has it."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)

    @property
    def taken(self) -> bool:
        return self.reason == "taken"


def source_of(job: Row[Any]) -> UUID:
    return UUID(job.payload["dataSourceId"])


@asynccontextmanager
async def fenced(
    db: Database, mandate_id: UUID, job: Row[Any]
) -> AsyncGenerator[tuple[AsyncSession, Row[Any]]]:
    """A transaction that may write for the job's data source; the locked source comes with it."""
    async with db.tenant_session(mandate_id) as session:
        states = await connections.share_lock(session, [job.connection_id])
        connection = states.get(job.connection_id)
        if connection is None or connection.generation != job.connection_generation:
            raise Lost("revoked")
        if connection.state != "active":
            raise Lost(connection.state)
        source = await repository.lock_source(session, source_of(job))
        if source is None:
            raise Lost("removed")
        if source.paused:
            raise Lost("paused")
        if not await ledger.hold(session, [(job.id, job.fence)]):
            raise Lost("taken")
        yield session, source
