"""Two large mandates and fifty small ones, in one index: what plans and recall are looked at in.

`CATCHMENT_ACCEPTANCE=full` has 100,000 chunks in each large mandate and 200 in each small one.
"""

import os
import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
from psycopg import ClientCursor
from pydantic import SecretStr
from sqlalchemy import text

from gateway.corpus import search_repository as repository
from gateway.corpus.embedders.protocol import Vectors
from gateway.corpus.loading import ReadyDocument, load_documents
from gateway.corpus.search import Member, SearchQuery, search
from gateway.corpus.search_repository import Filters, Space, View
from gateway.corpus.settlement_repository import tidy
from gateway.corpus.synthetic import KINDS, SyntheticText
from gateway.db import Database
from gateway.readers import Connection
from gateway.settings import Settings
from tests.fixtures.stores import DatabaseUrls
from tests.fixtures.tenants import make_mandate
from workers.settle import Settler

FULL = os.environ.get("CATCHMENT_ACCEPTANCE") == "full"
LARGE, SMALL, SMALL_MANDATES = (100_000, 200, 50) if FULL else (7_000, 40, 50)
QUERIES = 100 if FULL else 30
BATCH = 10_000
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


async def build_world(db: Database, database_urls: DatabaseUrls) -> World:
    synthetic = SyntheticText(seed=1) if FULL else SyntheticText(seed=1, dimensions=64, passage_words=40)
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


async def nearest_plan(world: World, mandate_id: UUID, vector: Any, *, indexed: bool) -> str:
    space = space_of(world.synthetic, vector)
    view = View(mandate_id, None, Filters())
    statement = repository.nearest_statement(
        mandate_id, space.model, space.dimensions, 50, view.sql.sources, indexed=indexed
    )
    parameters = {**view.parameters, "query": space.query}
    return await prepared_plan(world, mandate_id, statement.decode(), parameters)


async def prepared_plan(world: World, mandate_id: UUID, statement: str, parameters: dict[str, Any]) -> str:
    """The plan for any value of a statement that is prepared."""
    names: list[str] = []

    def place(match: re.Match[str]) -> str:
        if match[1] not in names:
            names.append(match[1])
        return f"${names.index(match[1]) + 1}"

    numbered = re.sub(r"%\((\w+)\)s", place, statement)

    def explained(connection: Connection) -> str:
        connection.execute(f"PREPARE looked_at AS {numbered}".encode())
        values = ", ".join(["%s"] * len(names))
        rows = ClientCursor(connection).execute(
            f"EXPLAIN (ANALYZE, TIMING OFF) EXECUTE looked_at({values})".encode(),
            [parameters[n] for n in names],
        )
        plan = "\n".join(row[0] for row in rows)
        connection.execute("DEALLOCATE looked_at")
        return plan

    return await world.db.read(mandate_id, explained, repository.SETTINGS)


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
