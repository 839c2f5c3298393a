"""The settler moves vectors into the index behind everybody's back, and no search ever notices but by its speed."""

import asyncio
import time

import numpy as np
import psycopg
import pytest
from pydantic import SecretStr
from sqlalchemy import text

from gateway.corpus import settlement_repository as repository
from gateway.corpus.loading import ReadyDocument, load_documents
from gateway.corpus.search import Member, SearchQuery, search
from gateway.corpus.synthetic import SyntheticText
from gateway.db import Database
from gateway.settings import Settings
from tests.fixtures.stores import DatabaseUrls
from tests.fixtures.tenants import TestMandate, make_mandate
from workers.settle import Settler

LEAST, PRICE = 100, 100


class House:
    """One model of its own per test, so that tests do not meet in an index."""

    def __init__(self, db: Database, urls: DatabaseUrls, width: int) -> None:
        self.db, self.urls = db, urls
        self.synthetic = SyntheticText(seed=1, dimensions=width, passage_words=12)
        self.model = self.synthetic.model
        self.settings = Settings(owner_database_url=SecretStr(urls.owner_url), maintenance_seconds=0.01)

    def settler(self) -> Settler:
        return Settler(self.db, self.settings, least=LEAST, price=PRICE)

    async def add(self, mandate: TestMandate, count: int) -> None:
        texts, vectors = self.synthetic.passages(count)
        document = ReadyDocument(texts=texts, source_id=texts[0])
        async with self.db.tenant_session(mandate.id) as session:
            await load_documents(session, self.model, [document], vectors)

    async def counts(self, mandate: TestMandate) -> tuple[int, int]:
        async with self.db.tenant_session(mandate.id) as session:
            found = [count for count in await repository.count_vectors(session) if count.model == self.model]
        return (found[0].settled, found[0].unsettled) if found else (0, 0)

    async def index_oid(self) -> int | None:
        async with await psycopg.AsyncConnection.connect(self.urls.owner_url) as owner:
            row = await (
                await owner.execute("SELECT to_regclass(%s)::oid", (repository.index_name(self.model),))
            ).fetchone()
        return row[0] if row else None

    async def answers(self, mandate: TestMandate) -> list[list[str]]:
        queries = [f"{self.synthetic.query('middling')}" for _ in range(5)]
        found = [
            await search(self.db, self.synthetic, Member(mandate.id), SearchQuery(q=q, method="dense"))
            for q in queries
        ]
        return [[hit.text for hit in result.hits] for result in found]


_widths = iter(range(40, 100))


@pytest.fixture
def house(db: Database, database_urls: DatabaseUrls) -> House:
    return House(db, database_urls, next(_widths))


async def same_answers(house: House, mandate: TestMandate, exact: list[list[str]]) -> None:
    house.synthetic._random = np.random.default_rng(99)
    found = await house.answers(mandate)
    shared = [len(set(one) & set(other)) for one, other in zip(found, exact, strict=True)]
    assert sum(shared) >= 0.95 * sum(map(len, exact))


async def exact_answers(house: House, mandate: TestMandate) -> list[list[str]]:
    house.synthetic._random = np.random.default_rng(99)
    return await house.answers(mandate)


async def test_a_large_mandate_is_built_in_bulk_and_a_small_one_never(house: House, db: Database) -> None:
    large, small = await make_mandate(db), await make_mandate(db)
    await house.add(large, 600)
    await house.add(small, 50)
    exact = await exact_answers(house, large)
    assert await house.index_oid() is None
    await house.settler().settle(house.model)
    assert await house.counts(large) == (600, 0)
    assert await house.counts(small) == (0, 50)
    assert await house.index_oid() is not None
    await same_answers(house, large, exact)
    assert len((await house.answers(small))[0]) == 10


async def test_a_few_more_go_in_live_and_many_more_rebuild(house: House, db: Database) -> None:
    mandate = await make_mandate(db)
    await house.add(mandate, 600)
    await house.settler().settle(house.model)
    first = await house.index_oid()
    await house.add(mandate, 60)
    exact = await exact_answers(house, mandate)
    await house.settler().settle(house.model)
    assert await house.counts(mandate) == (660, 0)
    assert await house.index_oid() == first
    await same_answers(house, mandate, exact)
    await house.add(mandate, 800)
    await house.settler().settle(house.model)
    assert await house.counts(mandate) == (1460, 0)
    assert await house.index_oid() != first


async def test_a_new_text_is_found_before_it_is_settled(house: House, db: Database) -> None:
    mandate = await make_mandate(db)
    await house.add(mandate, 600)
    await house.settler().settle(house.model)
    await house.add(mandate, 1)
    async with db.tenant_session(mandate.id) as session:
        fresh = await session.scalar(
            text(
                "SELECT c.text FROM chunk c JOIN text_vector v ON v.text_hash = c.text_hash "
                "WHERE v.model = :model AND NOT v.settled"
            ),
            {"model": house.model},
        )
    result = await search(db, house.synthetic, Member(mandate.id), SearchQuery(q=fresh, method="dense"))
    assert result.hits[0].text == fresh


async def test_a_mandate_that_shrank_leaves_the_index(house: House, db: Database) -> None:
    mandate, other = await make_mandate(db), await make_mandate(db)
    await house.add(mandate, 150)
    await house.add(other, 700)
    await house.settler().settle(house.model)
    assert await house.counts(mandate) == (0, 150)  # beside 700 others an exact search is quicker
    await house.add(mandate, 450)
    await house.settler().settle(house.model)
    assert await house.counts(mandate) == (600, 0)
    async with db.tenant_session(mandate.id) as session:
        await session.execute(text("DELETE FROM text_vector WHERE text_hash > '\\x08'"))
    await house.settler().settle(house.model)
    settled, unsettled = await house.counts(mandate)
    assert settled == 0
    assert 0 < unsettled < 80


async def test_what_an_interrupted_build_left_behind_is_replaced(house: House, db: Database) -> None:
    mandate = await make_mandate(db)
    await house.add(mandate, 600)
    await house.settler().settle(house.model)
    with psycopg.connect(house.urls.superuser_url, autocommit=True) as admin:
        admin.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass(%s)",
            (repository.index_name(house.model),),
        )
    broken = await house.index_oid()
    exact = await exact_answers(house, mandate)
    assert all(len(texts) == 10 for texts in exact)
    await house.settler().settle(house.model)
    assert await house.index_oid() not in {broken, None}
    await same_answers(house, mandate, exact)


async def test_two_settlers_do_not_build_the_same_index(house: House, db: Database) -> None:
    mandate = await make_mandate(db)
    await house.add(mandate, 600)
    await asyncio.gather(*(house.settler().settle(house.model) for _ in range(4)))
    assert await house.counts(mandate) == (600, 0)
    oid = await house.index_oid()
    await house.settler().settle(house.model)
    assert await house.index_oid() == oid


async def test_the_loop_settles_every_model_and_survives_a_lost_database(
    house: House, db: Database, database_urls: DatabaseUrls
) -> None:
    mandate = await make_mandate(db)
    await house.add(mandate, 600)
    running = asyncio.create_task(house.settler().run())
    try:
        async with asyncio.timeout(60):
            while await house.counts(mandate) != (600, 0):  # noqa: ASYNC110
                await asyncio.sleep(0.05)  # another task commits; there is nothing else to wait on
    finally:
        running.cancel()
    away = Settings(owner_database_url=SecretStr("postgresql://x@127.0.0.1:1/x"), maintenance_seconds=0.01)
    lost = asyncio.create_task(Settler(db, away, least=LEAST, price=PRICE).run())
    await asyncio.sleep(0.3)  # several rounds against a database that is not there
    assert not lost.done()
    lost.cancel()


async def test_without_the_owner_nothing_is_settled(house: House, db: Database) -> None:
    mandate = await make_mandate(db)
    await house.add(mandate, 600)
    settler = Settler(db, Settings(owner_database_url=None), least=LEAST, price=PRICE)
    await settler.settle(house.model)
    await asyncio.wait_for(settler.run(), 5)
    assert await house.counts(mandate) == (0, 600)


async def test_marking_what_was_just_loaded_reads_the_mandate_once(house: House, db: Database) -> None:
    """Before anybody has counted the table; a join reads it once for every row there, nine seconds for these."""
    mandate = await make_mandate(db)
    await house.add(mandate, 3000)
    began = time.monotonic()
    async with db.tenant_session(mandate.id) as session:
        assert await repository.mark(session, house.model, settled=True, limit=3000) == 3000
    assert time.monotonic() - began < 3
