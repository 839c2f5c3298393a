"""Vectors and who is making them. A text is embedded once per mandate and model, whoever asks and however often."""

from collections.abc import Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import raw_connection, tenant_of

# Thousands of hashes travel as one run of bytes: as an array parameter each would be dumped and parsed on its own.
_HASHES = (
    "ARRAY(SELECT substr(CAST(:hashes AS bytea), i, 32) "
    "FROM generate_series(1, octet_length(CAST(:hashes AS bytea)), 32) AS i)"
)


_SIZE = 32


def _apart(joined: bytes | None) -> set[bytes]:
    """And they come back the same way."""
    return {joined[at : at + _SIZE] for at in range(0, len(joined), _SIZE)} if joined else set()


async def known(session: AsyncSession, model: str, hashes: Sequence[bytes]) -> set[bytes]:
    found = await session.scalar(
        text(
            "SELECT string_agg(text_hash, '') FROM text_vector "
            f"WHERE mandate_id = :mandate_id AND model = :model AND text_hash = ANY({_HASHES})"
        ),
        {"mandate_id": tenant_of(session), "model": model, "hashes": b"".join(hashes)},
    )
    return _apart(found)


async def claim(
    session: AsyncSession, model: str, hashes: Sequence[bytes], claimant: UUID, *, seconds: float
) -> set[bytes]:
    """Claims texts that have no vector and that nobody else is embedding; the claims won come back."""
    won = await session.scalar(
        text(
            f"""
            WITH won AS (
            INSERT INTO vector_claim AS c (mandate_id, model, text_hash, claimant, claimed_until)
            SELECT :mandate_id, :model, h, :claimant, clock_timestamp() + make_interval(secs => :seconds)
            FROM unnest({_HASHES}) AS h ORDER BY h
            ON CONFLICT (mandate_id, model, text_hash) DO UPDATE
                SET claimant = excluded.claimant, claimed_until = excluded.claimed_until
                WHERE c.claimed_until < clock_timestamp() OR c.claimant = excluded.claimant
            RETURNING text_hash)
            SELECT string_agg(text_hash, '') FROM won
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "model": model,
            "hashes": b"".join(hashes),
            "claimant": claimant,
            "seconds": seconds,
        },
    )
    return _apart(won)


async def renew_claims(session: AsyncSession, claimant: UUID, *, seconds: float) -> None:
    await session.execute(
        text(
            "UPDATE vector_claim SET claimed_until = clock_timestamp() + make_interval(secs => :seconds) "
            "WHERE mandate_id = :mandate_id AND claimant = :claimant"
        ),
        {"mandate_id": tenant_of(session), "claimant": claimant, "seconds": seconds},
    )


async def release_claims(session: AsyncSession, claimant: UUID) -> None:
    await session.execute(
        text("DELETE FROM vector_claim WHERE mandate_id = :mandate_id AND claimant = :claimant"),
        {"mandate_id": tenant_of(session), "claimant": claimant},
    )


async def insert(
    session: AsyncSession, model: str, hashes: Sequence[bytes], vectors: NDArray[np.float32]
) -> None:
    """COPY into a temporary table – COPY into a table under row-level security is refused – then one INSERT."""
    connection = await raw_connection(session)
    async with connection.cursor() as cursor:
        await cursor.execute(
            "CREATE TEMP TABLE IF NOT EXISTS incoming_vector (text_hash bytea, embedding halfvec) ON COMMIT DELETE ROWS"
        )
        async with cursor.copy("COPY incoming_vector FROM STDIN (FORMAT BINARY)") as copy:
            await copy.write(_packed(hashes, vectors))
        await cursor.execute(
            "INSERT INTO text_vector (mandate_id, model, text_hash, embedding) "
            "SELECT %s, %s, text_hash, embedding FROM incoming_vector ORDER BY text_hash ON CONFLICT DO NOTHING",
            (tenant_of(session), model),
        )


def _packed(hashes: Sequence[bytes], vectors: NDArray[np.float32]) -> bytes:
    """COPY BINARY rows, packed for the whole batch at once: field count, hash, halfvec (dimension, zero, float16s)."""
    count, width = vectors.shape
    row = np.dtype(
        [
            ("fields", ">i2"), ("hash_size", ">i4"), ("hash", "S32"),
            ("vector_size", ">i4"), ("dimension", ">i2"), ("zero", ">i2"), ("values", ">f2", (width,)),
        ]
    )  # fmt: skip
    rows = np.zeros(count, row)
    rows["fields"], rows["hash_size"], rows["vector_size"] = 2, 32, 4 + 2 * width
    rows["dimension"] = width
    rows["values"] = vectors.astype(np.float16)
    # numpy strips trailing NULs from "S" fields when read back, but writes all 32 bytes
    rows["hash"] = np.array(list(hashes), "S32")
    header = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
    return header + rows.tobytes() + b"\xff\xff"


async def pin(session: AsyncSession, model: str, hashes: Sequence[bytes]) -> int:
    """Locks the vectors a document is about to refer to, so that a collector leaves them; says how many exist."""
    found = await session.scalar(
        text(
            "SELECT count(*) FROM (SELECT FROM text_vector "
            f"WHERE mandate_id = :mandate_id AND model = :model AND text_hash = ANY({_HASHES}) "
            "ORDER BY text_hash FOR KEY SHARE) AS pinned"
        ),
        {"mandate_id": tenant_of(session), "model": model, "hashes": b"".join(hashes)},
    )
    return int(found or 0)


async def collect(session: AsyncSession, hashes: Sequence[bytes] | None, *, limit: int = 10_000) -> int:
    """Deletes vectors no chunk refers to and nobody is about to use. None: look through all of the mandate's.

    Two statements on purpose: the first locks, the second looks again with a fresh snapshot. One statement would not
    notice a chunk committed while it waited for the lock.
    """
    # Two texts rather than "IS NULL OR": a generic plan of the latter reads every vector of the mandate.
    among = "" if hashes is None else f"AND v.text_hash = ANY({_HASHES})"
    locked = await session.execute(
        text(
            f"""
            SELECT model, text_hash FROM text_vector v
            WHERE v.mandate_id = :mandate_id {among}
              AND NOT EXISTS (SELECT FROM chunk c WHERE c.mandate_id = v.mandate_id AND c.text_hash = v.text_hash
                              AND c.model = v.model)
              AND NOT EXISTS (SELECT FROM vector_claim k WHERE k.mandate_id = v.mandate_id AND k.model = v.model
                              AND k.text_hash = v.text_hash AND k.claimed_until >= clock_timestamp())
            ORDER BY text_hash LIMIT :limit FOR UPDATE
            """
        ),
        {"mandate_id": tenant_of(session), "limit": limit}
        | ({} if hashes is None else {"hashes": b"".join(hashes)}),
    )
    pairs = [(row.model, row.text_hash) for row in locked]
    if not pairs:
        return 0
    deleted = await session.execute(
        text(
            """
            DELETE FROM text_vector v USING unnest(CAST(:models AS text[]), CAST(:hashes AS bytea[])) AS g(model, text_hash)
            WHERE v.mandate_id = :mandate_id AND v.model = g.model AND v.text_hash = g.text_hash
              AND v.text_hash = ANY(:hashes) -- else a table without statistics is read once for every hash
              AND NOT EXISTS (SELECT FROM chunk c WHERE c.mandate_id = v.mandate_id AND c.text_hash = v.text_hash
                              AND c.model = v.model)
              AND NOT EXISTS (SELECT FROM vector_claim k WHERE k.mandate_id = v.mandate_id AND k.model = v.model
                              AND k.text_hash = v.text_hash AND k.claimed_until >= clock_timestamp())
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "models": [pair[0] for pair in pairs],
            "hashes": [pair[1] for pair in pairs],
        },
    )
    return int(deleted.rowcount)  # pyright: ignore[reportAttributeAccessIssue]
