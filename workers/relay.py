"""Brings what is committed to the bell: the outbox at once, everything else that is due at every sweep.

The outbox wakes the relay by a Postgres notification; the sweep is the safety net that needs neither Redis nor the
notification to have worked: jobs without a bell, jobs of dead workers, events nobody consumed yet.
"""

import asyncio
from collections import defaultdict
from contextlib import suppress
from uuid import UUID

import psycopg
from arq.connections import ArqRedis
from redis.exceptions import RedisError
from sqlalchemy.exc import DBAPIError

from gateway.crashpoints import crash_point
from gateway.db import Database, driver_url
from gateway.errors import StoreUnavailable
from gateway.ingestion import bell
from gateway.ingestion import ledger_repository as ledger
from gateway.ingestion.consumer import KnowledgeIngestionConsumer
from gateway.logs import emit

OUTBOX_BATCH = 1000


class Relay:
    def __init__(self, db: Database, database_url: str, redis: ArqRedis, sweep_seconds: float) -> None:
        self._db, self._url, self._redis, self._sweep_seconds = (
            db,
            driver_url(database_url),
            redis,
            sweep_seconds,
        )
        self._consumer = KnowledgeIngestionConsumer(db)
        self._wake = asyncio.Event()
        self.listening = asyncio.Event()  # a commit wakes us from here on; tests wait for it

    async def run(self) -> None:
        listener = asyncio.create_task(self._listen())
        try:
            while True:
                try:
                    await self.sweep()
                except (StoreUnavailable, DBAPIError, RedisError) as error:
                    emit("house.store.unavailable", component="relay", error=type(error).__name__)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), self._sweep_seconds)
                if self._wake.is_set():
                    self._wake.clear()
                    try:
                        await self.relay_outbox()
                    except (StoreUnavailable, DBAPIError, RedisError) as error:
                        emit("house.store.unavailable", component="relay", error=type(error).__name__)
        finally:
            listener.cancel()

    async def sweep(self) -> None:
        await self.relay_outbox()
        async with self._db.sweeper_session() as session:
            due = await ledger.due_bells(session)
        for row in due:
            if row.orphans:
                emit("ledger.rescued", lane=row.lane, mandateId=str(row.mandate_id), jobs=row.orphans)
            await bell.ring(self._redis, row.lane, row.mandate_id)
        async with self._db.routing_session() as session:
            await ledger.beat(session, "sweeper")

    async def relay_outbox(self) -> None:
        """Rings for every outbox row, hands events to the consumer, then forgets the rows. A crash in between rings
        twice, which is harmless; it never rings less than once.
        """
        while True:
            async with self._db.sweeper_session() as session:
                rows = await ledger.outbox_heads(session, OUTBOX_BATCH)
            bells: dict[UUID, list[tuple[UUID, str]]] = defaultdict(list)
            events: dict[UUID, list[UUID]] = defaultdict(list)
            for row in rows:
                if row.topic == "bell":
                    bells[row.mandate_id].append((row.id, row.lane))
                else:
                    events[row.mandate_id].append(row.id)
            for mandate_id, rung in bells.items():
                for lane in sorted({lane for _, lane in rung}):
                    await bell.ring(self._redis, lane, mandate_id)
                crash_point("relay.after_ring")
                async with self._db.tenant_session(mandate_id) as session:
                    await ledger.delete_outbox(session, [row_id for row_id, _ in rung])
            for mandate_id, ids in events.items():
                await self._consume(mandate_id, ids)
            if len(rows) < OUTBOX_BATCH:
                return

    async def _consume(self, mandate_id: UUID, ids: list[UUID]) -> None:
        """What one mandate's events run into does not keep the others' waiting; they stay for the next sweep."""
        try:
            await self._consumer.consume(mandate_id, ids)
        except (StoreUnavailable, DBAPIError) as error:
            emit("house.store.unavailable", component="events", error=type(error).__name__)

    async def _listen(self) -> None:
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as connection:
                    await connection.execute("LISTEN catchment_outbox")
                    self.listening.set()
                    async for _ in connection.notifies():
                        self._wake.set()
            except psycopg.OperationalError as error:
                # Until it is back the sweep does the listening.
                emit("house.store.unavailable", component="listener", error=type(error).__name__)
                await asyncio.sleep(self._sweep_seconds)
