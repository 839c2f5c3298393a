"""Plans and recall where they matter: two large mandates and fifty small ones, as the runtime role.

`CATCHMENT_ACCEPTANCE=full` has 100,000 chunks in each large mandate and 200 in each small one.
"""

import os
import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
import pytest
from psycopg import AsyncClientCursor
from pydantic import SecretStr
from sqlalchemy import text

from gateway.corpus import search_repository as repository
from gateway.corpus.embedders.protocol import Vectors
from gateway.corpus.loading import ReadyDocument, load_documents
from gateway.corpus.search import Member, SearchQuery, search
from gateway.corpus.search_repository import Filters, Space, View
from gateway.corpus.settlement_repository import index_name, tidy
from gateway.corpus.synthetic import KINDS, SyntheticText
from gateway.db import Database, raw_connection
from gateway.settings import Settings
from tests.fixtures.stores import DatabaseUrls
from tests.fixtures.tenants import make_mandate
from workers.settle import Settler

FULL = os.environ.get("CATCHMENT_ACCEPTANCE") == "full"
LARGE, SMALL, SMALL_MANDATES = (100_000, 200, 50) if FULL else (10_000, 40, 50)
QUERIES = 100 if FULL else 30
BATCH = 10_000
pytestmark = pytest.mark.timeout(3600 if FULL else 300)
# Seen by a reader of the plan as a whole table read.
SCANS = re.compile(r"Seq Scan on (chunk|document|text_vector|posting|segment)\b")


@dataclass(frozen=True)
class World:
    db: Database
    synthetic: SyntheticText
    large: tuple[UUID, UUID]
    small: list[UUID]


async def fill(db: Database, synthetic: SyntheticText, mandate_id: UUID, chunks: int) -> None:
    for start in range(0, chunks, BATCH):
        texts, vectors = synthetic.passages(min(BATCH, chunks - start))
        documents = [
            ReadyDocument(
                texts=texts[at : at + 10],
                source_id=f"{start + at}",
                # every tenth document and every hundredth
                described={"tags": [tag for n, tag in ((100, "tenth"), (1000, "hundredth")) if at % n == 0]},
            )
            for at in range(0, len(texts), 10)
        ]
        async with db.tenant_session(mandate_id) as session:
            await load_documents(session, synthetic.model, documents, vectors)


@pytest.fixture(scope="module")
async def world(db: Database, database_urls: DatabaseUrls) -> World:
    synthetic = SyntheticText(seed=1, passage_words=150 if FULL else 40)
    mandates = [(await make_mandate(db)).id for _ in range(2 + SMALL_MANDATES)]
    for mandate_id in mandates[:2]:
        await fill(db, synthetic, mandate_id, LARGE)
    for mandate_id in mandates[2:]:
        await fill(db, synthetic, mandate_id, SMALL)
    settings = Settings(owner_database_url=SecretStr(database_urls.owner_url))
    await Settler(db, settings).settle(synthetic.model)
    async with await psycopg.AsyncConnection.connect(database_urls.owner_url, autocommit=True) as owner:
        await tidy(owner)
    return World(db, synthetic, (mandates[0], mandates[1]), mandates[2:])


def space_of(synthetic: SyntheticText, vector: Any) -> Space:
    return Space(synthetic.model, synthetic.dimensions, str(vector.tolist()))


async def literal_plan(world: World, mandate_id: UUID, statement: str, parameters: dict[str, Any]) -> str:
    """The plan of a statement that is sent with its values as literals."""
    async with world.db.tenant_session(mandate_id) as session:
        connection = await raw_connection(session)
        await repository.begin(connection)
        cursor = AsyncClientCursor(connection)
        await cursor.execute(f"EXPLAIN {statement}".encode(), parameters)
        return "\n".join(row[0] for row in await cursor.fetchall())


async def prepared_plan(world: World, mandate_id: UUID, statement: str, parameters: dict[str, Any]) -> str:
    """The plan for any value of a statement that is prepared."""
    names: list[str] = []

    def place(match: re.Match[str]) -> str:
        if match[1] not in names:
            names.append(match[1])
        return f"${names.index(match[1]) + 1}"

    numbered = re.sub(r"%\((\w+)\)s", place, statement)
    async with world.db.tenant_session(mandate_id) as session:
        connection = await raw_connection(session)
        await repository.begin(connection)
        await connection.execute(f"PREPARE looked_at AS {numbered}".encode())
        values = ", ".join(["%s"] * len(names))
        cursor = AsyncClientCursor(connection)
        await cursor.execute(
            f"EXPLAIN (ANALYZE, TIMING OFF) EXECUTE looked_at({values})".encode(),
            [parameters[n] for n in names],
        )
        plan = "\n".join(row[0] for row in await cursor.fetchall())
        await connection.execute("DEALLOCATE looked_at")
        return plan


# -- plans


async def test_the_dense_leg_uses_its_indexes(world: World) -> None:
    vector = (await world.synthetic.embed([world.synthetic.query("mixed")]))[0]
    parameters = repository.nearest_parameters(world.large[0], space_of(world.synthetic, vector), 50)
    plan = await literal_plan(world, world.large[0], repository.NEAREST[True], parameters)
    assert f"Index Scan using {index_name(world.synthetic.model)}" in plan
    assert "vector_tail" in plan
    assert not SCANS.search(plan), plan


async def test_a_small_mandates_vectors_are_found_by_its_key(world: World) -> None:
    vector = (await world.synthetic.embed(["x"]))[0]
    parameters = repository.nearest_parameters(world.small[0], space_of(world.synthetic, vector), 50)
    plan = await literal_plan(world, world.small[0], repository.NEAREST[False], parameters)
    assert "vector_tail" in plan
    assert not SCANS.search(plan), plan


async def test_the_lexical_leg_uses_its_indexes(world: World) -> None:
    parameters = {"mandate_id": world.large[0], "terms": ["one", "two"]}
    plan = await prepared_plan(world, world.large[0], repository._POSTINGS, parameters)
    assert "posting_pkey" in plan
    assert not SCANS.search(plan.replace("Seq Scan on segment", "")), plan  # a handful of rows


async def test_candidates_are_looked_up_by_key(world: World) -> None:
    view = View(world.large[0], None, Filters(tags=("tenth",)))
    parameters = {**view.parameters, "hashes": "{}", "numbers": "{}", "model": "m", "query": None}
    plan = await prepared_plan(world, world.large[0], view.sql.resolve.decode(), parameters)
    for index in ("chunk_number_lookup", "chunk_text_hash", "document_pkey", "text_vector_pkey"):
        assert index in plan
    assert not SCANS.search(plan), plan


async def test_the_state_of_a_mandate_costs_a_few_hops(world: World) -> None:
    model = world.synthetic.model
    parameters = {"mandate_id": world.large[0], "model": model, "index": index_name(model)}
    plan = await prepared_plan(world, world.large[0], repository._STATE, parameters)
    assert plan.count("Scan using chunk_language") == 2, plan
    assert "vector_settled" in plan
    assert not SCANS.search(plan.replace("Seq Scan on segment", "")), plan  # a handful of rows


# -- recall


class Fixed:
    """An embedder that has its answer ready."""

    max_batch, dense_share = 1, 0.3

    def __init__(self, synthetic: SyntheticText, vector: Any) -> None:
        self.model, self.dimensions = synthetic.model, synthetic.dimensions
        self.price_per_million_tokens = synthetic.price_per_million_tokens
        self._vector = vector

    async def embed(self, texts: Any) -> Vectors:
        return self._vector[None, :]

    def count_tokens(self, texts: Any) -> int:
        return 0

    async def aclose(self) -> None: ...


EXACT = """
SELECT v.text_hash FROM text_vector v WHERE v.mandate_id = :mandate_id AND v.model = :model
  AND (CAST(:tag AS text) IS NULL OR EXISTS (
    SELECT FROM chunk c JOIN document d ON d.mandate_id = c.mandate_id AND d.id = c.document_id
    WHERE c.mandate_id = v.mandate_id AND c.text_hash = v.text_hash AND :tag = ANY(d.tags)))
ORDER BY v.embedding <=> CAST(:query AS halfvec) LIMIT 10
"""


async def recall(world: World, mandate_id: UUID, queries: int, tag: str | None = None) -> float:
    """Mean recall@10 of the dense leg against an exact search."""
    shares: list[float] = []
    for number in range(queries):
        vector = (await world.synthetic.embed([world.synthetic.query(KINDS[number % len(KINDS)])]))[0]
        values = {
            "mandate_id": mandate_id,
            "model": world.synthetic.model,
            "tag": tag,
            "query": str(vector.tolist()),
        }
        async with world.db.tenant_session(mandate_id) as session:
            exact = {text_hash.hex() for text_hash in await session.scalars(text(EXACT), values)}
        query = SearchQuery(q="x", limit=10, method="dense", tags=[tag] if tag else None)
        hits = (await search(world.db, Fixed(world.synthetic, vector), Member(mandate_id), query)).hits
        assert len(hits) == len(exact)
        shares.append(len(exact & {hit.citation.content_hash for hit in hits}) / len(exact))
    return float(np.mean(shares))


async def test_recall_in_large_mandates(world: World) -> None:
    found = [await recall(world, mandate_id, QUERIES) for mandate_id in world.large]
    print(f"recall@10 of {LARGE} chunks beside as many of another mandate: {found}")
    assert min(found) >= 0.95


async def test_recall_in_small_mandates(world: World) -> None:
    found = [await recall(world, mandate_id, 2) for mandate_id in world.small]
    print(f"recall@10 of {len(found)} mandates with {SMALL} chunks: {np.mean(found):.3f}")
    assert min(found) >= 0.95


@pytest.mark.parametrize("tag", ["tenth", "hundredth"])
async def test_recall_through_a_filter(world: World, tag: str) -> None:
    found = await recall(world, world.large[0], QUERIES // 3, tag)
    print(f"recall@10 of the {tag} part of {LARGE} chunks: {found:.3f}")
    assert found >= 0.95


async def test_the_effort_of_an_index_scan_grows_as_the_share_of_the_index_shrinks(world: World) -> None:
    async with world.db.tenant_session(world.large[0]) as session:
        connection = await raw_connection(session)
        state = await repository.read_state(connection, world.large[0], world.synthetic.model)
    assert state.share == pytest.approx(0.5, abs=0.02)
    assert state.languages == ["en"]
    async with world.db.tenant_session(world.small[0]) as session:
        connection = await raw_connection(session)
        state = await repository.read_state(connection, world.small[0], world.synthetic.model)
    assert state.share is None


async def test_small_mandates_stay_out_of_the_index(world: World) -> None:
    for mandate_id, expected in ((world.large[0], LARGE), (world.large[1], LARGE), (world.small[0], 0)):
        async with world.db.tenant_session(mandate_id) as session:
            settled = await session.scalar(text("SELECT count(*) FROM text_vector WHERE settled"))
        assert settled == expected
