"""SQL of the settler: who has how many vectors, which of them are in the HNSW index, and the index itself.

Rows are counted and marked as the runtime role, one mandate at a time. The index is built by the table's owner, who is
under row-level security like everybody and sees no row; building an index does not read through it.
"""

import hashlib
from typing import Any, NamedTuple

from psycopg import AsyncConnection, sql
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import tenant_of

Owner = AsyncConnection[Any]

MOST_DIMENSIONS = 4000  # pgvector's limit for an HNSW index over half vectors
LEAST_MEMORY, MOST_MEMORY = 64 * 1024, 2 * 1024 * 1024  # kB that a build may take


class Count(NamedTuple):
    model: str
    settled: int
    unsettled: int


async def count_vectors(session: AsyncSession) -> list[Count]:
    """Per model, from the two partial indexes; no row is read."""
    rows = await session.execute(
        text(
            """
            SELECT model, sum(settled)::bigint AS settled, sum(unsettled)::bigint AS unsettled FROM (
                SELECT model, count(*) AS settled, 0 AS unsettled FROM text_vector
                WHERE mandate_id = :mandate_id AND settled GROUP BY model
                UNION ALL
                SELECT model, 0, count(*) FROM text_vector
                WHERE mandate_id = :mandate_id AND NOT settled GROUP BY model) counted
            GROUP BY model
            """
        ),
        {"mandate_id": tenant_of(session)},
    )
    return [Count(row.model, row.settled, row.unsettled) for row in rows]


async def dimensions(session: AsyncSession, model: str) -> int | None:
    return await session.scalar(
        text(
            "SELECT vector_dims(embedding) FROM text_vector WHERE mandate_id = :mandate_id AND model = :model LIMIT 1"
        ),
        {"mandate_id": tenant_of(session), "model": model},
    )


async def mark(session: AsyncSession, model: str, *, settled: bool, limit: int) -> int:
    """Moves up to that many vectors in or out; rows somebody else holds wait for the next time."""
    rows = await session.scalars(
        text(
            f"""
            UPDATE text_vector SET settled = :settled
            -- An array, not a join: just after a first load there are no statistics, and a join reads the mandate once a row.
            WHERE mandate_id = :mandate_id AND model = :model AND text_hash = ANY(ARRAY(
                SELECT text_hash FROM text_vector
                WHERE mandate_id = :mandate_id AND model = :model AND {"NOT settled" if settled else "settled"}
                ORDER BY text_hash LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED))
            RETURNING 1
            """
        ),
        {"mandate_id": tenant_of(session), "model": model, "settled": settled, "limit": limit},
    )
    return len(rows.all())


# -- as the owner


def index_name(model: str) -> str:
    return f"vector_hnsw_{hashlib.sha256(model.encode()).hexdigest()[:16]}"


async def try_lock(owner: Owner, model: str) -> bool:
    """For as long as the connection lives: one settler per model in the whole house."""
    row = await (
        await owner.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (index_name(model),))
    ).fetchone()
    return bool(row and row[0])


async def has_index(owner: Owner, model: str) -> bool:
    """Whether a finished index serves this model; what an interrupted build left behind does not count."""
    row = await (
        await owner.execute(
            "SELECT true FROM pg_index WHERE indexrelid = to_regclass(%s) AND indisvalid",
            (index_name(model),),
        )
    ).fetchone()
    return row is not None


async def drop_index(owner: Owner, model: str) -> None:
    await owner.execute(
        sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(index_name(model)))
    )


async def build_index(owner: Owner, model: str, width: int, rows: int) -> None:
    """Without blocking readers or writers. A graph that does not fit into memory while it is built takes many times as long."""
    needed = rows * (2 * width + 1200) // 1024  # kB; a vector, its neighbours and their bookkeeping
    await owner.execute(
        sql.SQL("SET maintenance_work_mem = {}").format(
            sql.Literal(f"{min(max(needed, LEAST_MEMORY), MOST_MEMORY)}kB")
        )
    )
    await owner.execute(
        sql.SQL(
            "CREATE INDEX CONCURRENTLY {} ON text_vector USING hnsw ((embedding::halfvec({})) halfvec_cosine_ops) "
            # A denser search while building: a third slower to build, and every later search is quicker and finds more.
            "WITH (m = 16, ef_construction = 128) WHERE model = {} AND settled"
        ).format(sql.Identifier(index_name(model)), sql.Literal(width), sql.Literal(model))
    )
    await owner.execute("ANALYZE text_vector")


async def tidy(owner: Owner) -> None:
    """What autovacuum does by and by: fresh statistics and visibility for the tables search reads."""
    for table in ("text_vector", "chunk", "document", "posting", "segment"):
        await owner.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(table)))
