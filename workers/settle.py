"""Moves vectors into the HNSW index, behind everybody's back.

New vectors are unsettled and searched exactly. Of a small mandate they stay so for ever: that is quicker than the
index, and the index is the better for it. A mandate counts as large when the index is quicker for it: an exact search
looks at its n vectors, an index scan at about N/n times as many as it returns, N being all vectors in the index, and at
a higher price each. So a mandate is large from `LEAST` vectors, or the root of `PRICE` times N, whichever is more.

A first load, or one that more than doubles the index, is built in bulk, several times quicker than row by row;
until it is done those vectors are searched without an index, slower and just as right. Everything else goes in live.
"""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from uuid import UUID

import psycopg
from psycopg import AsyncConnection
from sqlalchemy.exc import DBAPIError

from gateway.corpus import settlement_repository as repository
from gateway.corpus.settlement_repository import Count, Owner
from gateway.db import Database, driver_url
from gateway.errors import StoreUnavailable
from gateway.logs import emit
from gateway.settings import Settings
from gateway.tenancy import repository as tenancy

LEAST = 5_000
PRICE = 3_500  # a hundred hits, at 35 times what looking at one vector costs in an exact search; measured
LIVE_BATCH = 200  # a vector takes a millisecond or two, and a transaction should not take long
BULK_BATCH = 10_000

Census = Mapping[UUID, Count]


def large_mandates(census: Census, least: int = LEAST, price: int = PRICE) -> set[UUID]:
    """Who belongs in the index. Who is in it stays until it has shrunk well below: moving in and out costs, too."""
    sizes = {mandate_id: count.settled + count.unsettled for mandate_id, count in census.items()}
    everything = sum(size for size in sizes.values() if size >= least)
    threshold = max(least, math.sqrt(price * everything))
    return {
        mandate_id
        for mandate_id, size in sizes.items()
        if size >= threshold or (census[mandate_id].settled and size >= threshold / 2)
    }


class Settler:
    def __init__(self, db: Database, settings: Settings, *, least: int = LEAST, price: int = PRICE) -> None:
        self._db, self._least, self._price = db, least, price
        self._seconds = settings.maintenance_seconds
        self._owner_url = settings.owner_database_url

    async def run(self) -> None:
        """Without the owner's URL nothing is settled: every search is exact, right and slow."""
        while self._owner_url is not None:
            await asyncio.sleep(self._seconds)
            try:
                for model in await self._models():
                    await self.settle(model)
            except (StoreUnavailable, DBAPIError, psycopg.Error) as error:
                emit("house.store.unavailable", component="settler", error=type(error).__name__)

    async def settle(self, model: str) -> None:
        """Brings the model's index up to date, unless another worker is at it."""
        async with self._alone(model) as owner:
            if owner is None:
                return
            census = await self._census(model)
            large = large_mandates(census, self._least, self._price)
            for mandate_id in census.keys() - large:
                if census[mandate_id].settled:
                    await self._mark(mandate_id, model, settled=False, batch=BULK_BATCH)
            inside = sum(census[mandate_id].settled for mandate_id in large)
            waiting = sum(census[mandate_id].unsettled for mandate_id in large)
            indexed = await repository.has_index(owner, model)
            if large and (not indexed or waiting > inside):
                await self._build(owner, model, large)
            elif waiting:
                await self._add(model, large)

    async def _build(self, owner: Owner, model: str, large: set[UUID]) -> None:
        began = time.monotonic()
        async with self._db.tenant_session(next(iter(large))) as session:
            width = await repository.dimensions(session, model)
        if width is None or width > repository.MOST_DIMENSIONS:
            return
        await repository.drop_index(owner, model)
        for mandate_id in large:
            await self._mark(mandate_id, model, settled=True, batch=BULK_BATCH)
        rows = sum(count.settled for count in (await self._census(model)).values())
        await repository.build_index(owner, model, width, rows)
        self._emit(model, rows, began)

    async def _add(self, model: str, large: set[UUID]) -> None:
        began = time.monotonic()
        rows = [await self._mark(one, model, settled=True, batch=LIVE_BATCH) for one in large]
        self._emit(model, sum(rows), began)

    async def _mark(self, mandate_id: UUID, model: str, *, settled: bool, batch: int) -> int:
        total, moved = 0, batch
        while moved == batch:
            async with self._db.tenant_session(mandate_id) as session:
                moved = await repository.mark(session, model, settled=settled, limit=batch)
            total += moved
        return total

    async def _models(self) -> set[str]:
        found = set[str]()
        for mandate_id in await self._mandates():
            async with self._db.tenant_session(mandate_id) as session:
                found.update(count.model for count in await repository.count_vectors(session))
        return found

    async def _census(self, model: str) -> dict[UUID, Count]:
        census: dict[UUID, Count] = {}
        for mandate_id in await self._mandates():
            async with self._db.tenant_session(mandate_id) as session:
                for count in await repository.count_vectors(session):
                    if count.model == model:
                        census[mandate_id] = count
        return census

    async def _mandates(self) -> list[UUID]:
        async with self._db.routing_session() as session:
            return list(await tenancy.all_mandate_ids(session))

    @asynccontextmanager
    async def _alone(self, model: str) -> AsyncGenerator[Owner | None]:
        """The owner's connection, with the model's lock; None when another worker holds it."""
        if self._owner_url is None:
            yield None
            return
        address = driver_url(self._owner_url.get_secret_value())
        async with await AsyncConnection.connect(address, autocommit=True, connect_timeout=5) as owner:
            yield owner if await repository.try_lock(owner, model) else None

    def _emit(self, model: str, rows: int, began: float) -> None:
        emit("house.index.built", model=model, rows=rows, durationMs=round((time.monotonic() - began) * 1000))
