"""The ledger's SQL: claim, renew, fence, finish. A claim always names its mandate.

Lock order everywhere: connection, document, job, segment, vector. The façade takes them in this order too.

Statements over a slice name their ids twice, in the join and as `= ANY(:ids)`: without the second a plan made before the
table has statistics reads the whole mandate.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import tenant_of

_LIVE = "status IN ('pending', 'extracted', 'embedding')"


async def claim(session: AsyncSession, lane: str, *, limit: int, lease_seconds: float) -> list[Row[Any]]:
    """Takes jobs nobody holds. Jobs of a dead worker are not among them: see `claim_orphans`."""
    rows = await session.execute(
        text(
            f"""
            WITH due AS (
                SELECT id FROM job
                WHERE mandate_id = :mandate_id AND lane = :lane AND {_LIVE} AND run_after <= now() AND lease_until IS NULL
                ORDER BY run_after, id LIMIT :limit FOR UPDATE SKIP LOCKED)
            UPDATE job SET lease_until = clock_timestamp() + make_interval(secs => :lease), fence = fence + 1,
                attempts = attempts + 1, solo = (SELECT count(*) = 1 FROM due)
            WHERE mandate_id = :mandate_id AND id IN (SELECT id FROM due)
            RETURNING *
            """
        ),
        {"mandate_id": tenant_of(session), "lane": lane, "limit": limit, "lease": lease_seconds},
    )
    return sorted(rows, key=lambda row: (row.run_after, row.id))


async def claim_orphans(session: AsyncSession, lane: str, *, lease_seconds: float) -> list[Row[Any]]:
    """Takes jobs whose holder died: few at first, then fewer, then one alone, so that a job that kills its process is
    found without running every innocent one by itself. Only a death alone is certainly a job's own (`deaths`).
    """
    rows = await session.execute(
        text(
            f"""
            WITH oldest AS (
                SELECT crashes FROM job
                WHERE mandate_id = :mandate_id AND lane = :lane AND {_LIVE} AND lease_until < clock_timestamp()
                ORDER BY lease_until, id LIMIT 1),
            due AS (
                SELECT id FROM job
                WHERE mandate_id = :mandate_id AND lane = :lane AND {_LIVE} AND lease_until < clock_timestamp()
                  AND crashes = (SELECT crashes FROM oldest)
                ORDER BY lease_until, id
                LIMIT (SELECT CASE crashes WHEN 0 THEN 8 WHEN 1 THEN 2 ELSE 1 END FROM oldest)
                FOR UPDATE SKIP LOCKED)
            UPDATE job SET lease_until = clock_timestamp() + make_interval(secs => :lease), fence = fence + 1,
                attempts = attempts + 1, crashes = crashes + 1, deaths = deaths + solo::int,
                solo = (SELECT count(*) = 1 FROM due)
            WHERE mandate_id = :mandate_id AND id IN (SELECT id FROM due)
            RETURNING *
            """
        ),
        {"mandate_id": tenant_of(session), "lane": lane, "lease": lease_seconds},
    )
    return list(rows)


async def work_left(session: AsyncSession, lane: str) -> bool:
    found = await session.scalar(
        text(
            f"""
            SELECT EXISTS (SELECT FROM job WHERE mandate_id = :mandate_id AND lane = :lane AND {_LIVE}
                AND run_after <= now() AND (lease_until IS NULL OR lease_until < now()))
            """
        ),
        {"mandate_id": tenant_of(session), "lane": lane},
    )
    return bool(found)


async def renew(session: AsyncSession, claims: Sequence[tuple[UUID, int]], *, lease_seconds: float) -> None:
    await session.execute(
        text(
            f"""
            UPDATE job j SET lease_until = clock_timestamp() + make_interval(secs => :lease)
            FROM unnest(CAST(:ids AS uuid[]), CAST(:fences AS integer[])) AS c(id, fence)
            WHERE j.mandate_id = :mandate_id AND j.id = ANY(:ids) AND j.id = c.id AND j.fence = c.fence AND {_LIVE}
            """
        ),
        _claims(session, claims) | {"lease": lease_seconds},
    )


async def hold(session: AsyncSession, claims: Sequence[tuple[UUID, int]]) -> set[UUID]:
    """The fence: locks the jobs that are still ours until this transaction ends. What is missing was taken, overtaken or
    cancelled, and must not be written.
    """
    rows = await session.scalars(
        text(
            f"""
            SELECT j.id FROM job j
            JOIN unnest(CAST(:ids AS uuid[]), CAST(:fences AS integer[])) AS c(id, fence)
              ON j.mandate_id = :mandate_id AND j.id = ANY(:ids) AND j.id = c.id AND j.fence = c.fence
            WHERE {_LIVE} ORDER BY j.id FOR UPDATE OF j
            """
        ),
        _claims(session, claims),
    )
    return set(rows)


async def live(session: AsyncSession, job_ids: Sequence[UUID]) -> set[UUID]:
    rows = await session.scalars(
        text(f"SELECT id FROM job WHERE mandate_id = :mandate_id AND id = ANY(:ids) AND {_LIVE}"),
        {"mandate_id": tenant_of(session), "ids": list(job_ids)},
    )
    return set(rows)


async def advance(
    session: AsyncSession, job_ids: Sequence[UUID], documents: Sequence[tuple[UUID, int]], status: str
) -> None:
    """Moves jobs and their documents, in the revision they are about, to `extracted` or `embedding`."""
    parameters = {"mandate_id": tenant_of(session), "status": status}
    await session.execute(
        text("UPDATE job SET status = :status WHERE mandate_id = :mandate_id AND id = ANY(:ids)"),
        parameters | {"ids": list(job_ids)},
    )
    await session.execute(
        text(
            """
            UPDATE document d SET status = :status, updated_at = now()
            FROM unnest(CAST(:ids AS uuid[]), CAST(:revisions AS integer[])) AS r(id, revision)
            WHERE d.mandate_id = :mandate_id AND d.id = ANY(:ids) AND d.id = r.id AND d.revision = r.revision
            """
        ),
        parameters | {"ids": [one[0] for one in documents], "revisions": [one[1] for one in documents]},
    )


async def finish(session: AsyncSession, rows: Sequence[dict[str, Any]]) -> None:
    """Ends jobs (`id status reason error`) and, for those about a document's newest revision, the document with them."""
    await session.execute(
        text(
            """
            WITH ended AS (
                UPDATE job j SET status = r.status, reason = r.reason, error = r.error, finished_at = now(), lease_until = NULL
                FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r(id uuid, status text, reason text, error text)
                WHERE j.mandate_id = :mandate_id AND j.id = ANY(:ids) AND j.id = r.id
                RETURNING j.document_id, j.revision, r.status, r.reason)
            UPDATE document d SET status = e.status, reason = e.reason, updated_at = now()
            FROM ended e WHERE d.mandate_id = :mandate_id AND d.id = e.document_id AND d.revision = e.revision
              AND e.status IN ('failed', 'skipped', 'cancelled')
              AND d.id = ANY(ARRAY(SELECT document_id FROM job WHERE mandate_id = :mandate_id AND id = ANY(:ids)))
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "rows": orjson.dumps(rows).decode(),
            "ids": [row["id"] for row in rows],
        },
    )


async def put_back(
    session: AsyncSession, job_id: UUID, *, delay_seconds: float, reason: str | None, refund: bool = False
) -> None:
    """Releases a job for a later try. `refund`: the try does not count (a stop, a budget wait)."""
    await session.execute(
        text(
            """
            WITH released AS (
                UPDATE job SET status = 'pending', lease_until = NULL, reason = CAST(:reason AS text),
                    run_after = now() + make_interval(secs => :delay), attempts = attempts - :refund
                WHERE mandate_id = :mandate_id AND id = :id RETURNING document_id, revision)
            UPDATE document d SET status = 'pending', reason = CAST(:reason AS text) FROM released r
            WHERE d.mandate_id = :mandate_id AND d.id = r.document_id AND d.revision = r.revision
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "id": job_id,
            "delay": delay_seconds,
            "reason": reason,
            "refund": int(refund),
        },
    )


async def resume_waiting(session: AsyncSession, reason: str) -> list[str]:
    """Jobs that wait for this reason may run now; the lanes to ring come back."""
    lanes = await session.scalars(
        text(
            f"""
            WITH woken AS (
                UPDATE job SET run_after = now(), reason = NULL
                WHERE mandate_id = :mandate_id AND {_LIVE} AND reason = :reason RETURNING lane)
            SELECT DISTINCT lane FROM woken
            """
        ),
        {"mandate_id": tenant_of(session), "reason": reason},
    )
    return list(lanes)


async def due_bells(session: AsyncSession) -> list[Row[Any]]:
    """As the sweeper, across mandates: which doors have work nobody holds, and how much of it a dead worker left."""
    rows = await session.execute(
        text(
            f"""
            SELECT lane, mandate_id, count(*) FILTER (WHERE lease_until IS NOT NULL) AS orphans
            FROM job WHERE {_LIVE} AND run_after <= now() AND (lease_until IS NULL OR lease_until < now())
            GROUP BY lane, mandate_id
            """
        )
    )
    return list(rows)


async def outbox_heads(session: AsyncSession, limit: int) -> list[Row[Any]]:
    """As the sweeper: what waits in the outbox, oldest first – ids, topics and lanes, never payloads."""
    rows = await session.execute(
        text("SELECT mandate_id, id, topic, lane FROM outbox ORDER BY id LIMIT :limit"), {"limit": limit}
    )
    return list(rows)


async def delete_outbox(session: AsyncSession, ids: Sequence[UUID]) -> None:
    await session.execute(
        text("DELETE FROM outbox WHERE mandate_id = :mandate_id AND id = ANY(:ids)"),
        {"mandate_id": tenant_of(session), "ids": list(ids)},
    )


async def take_events(session: AsyncSession, ids: Sequence[UUID]) -> list[Row[Any]]:
    """Locks and returns events of this mandate; another relay's are skipped."""
    rows = await session.execute(
        text(
            "SELECT id, payload, created_at FROM outbox WHERE mandate_id = :mandate_id AND id = ANY(:ids) "
            "AND topic = 'event' ORDER BY id FOR UPDATE SKIP LOCKED"
        ),
        {"mandate_id": tenant_of(session), "ids": list(ids)},
    )
    return list(rows)


async def beat(session: AsyncSession, name: str) -> None:
    await session.execute(
        text(
            "INSERT INTO heartbeat (name, beat_at) VALUES (:name, now()) "
            "ON CONFLICT (name) DO UPDATE SET beat_at = now()"
        ),
        {"name": name},
    )


def _claims(session: AsyncSession, claims: Sequence[tuple[UUID, int]]) -> dict[str, Any]:
    return {
        "mandate_id": tenant_of(session),
        "ids": [claim[0] for claim in claims],
        "fences": [claim[1] for claim in claims],
    }
