"""Data sources, the one live job of each, and the ledger of failures."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import tenant_of

_LIVE = "status IN ('pending', 'extracted', 'embedding')"
# Of a data source `s`: whether a sync is planned, whether one is due or at work, and until when the vendor wants to be left alone.
_SYNCS = f"""
FROM job j WHERE j.mandate_id = s.mandate_id AND j.dedupe_key = 'sync:' || s.id::text AND j.{_LIVE}
"""
ERRANDS = f"""
EXISTS (SELECT {_SYNCS}) AS asked_for,
EXISTS (SELECT {_SYNCS} AND (j.lease_until IS NOT NULL OR j.run_after <= now())) AS at_work,
(SELECT max(j.run_after) FROM job j WHERE j.mandate_id = s.mandate_id
    AND j.dedupe_key IN ('sync:' || s.id::text, 'fetch:' || s.id::text) AND j.{_LIVE}
    AND j.reason = 'throttled' AND j.lease_until IS NULL AND j.run_after > now()) AS waits_until
"""
_OF_CONNECTION = """
    s.*, c.authority, c.state AS connection_state, c.generation AS connection_generation, c.paused,
    c.policy AS connection_policy, c.user_id AS connection_user, c.account, c.auto_start
"""
_SOURCES = """
FROM data_source s LEFT JOIN connection c ON c.mandate_id = :mandate_id AND c.id = s.connection_id
WHERE s.mandate_id = :mandate_id
"""
_WITH_CONNECTION = f"SELECT {_OF_CONNECTION} {_SOURCES}"


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


async def find_source(session: AsyncSession, data_source_id: UUID) -> Row[Any] | None:
    """A data source with what counts of its connection."""
    return (
        await session.execute(
            text(f"{_WITH_CONNECTION} AND s.id = :data_source_id"),
            {"mandate_id": tenant_of(session), "data_source_id": data_source_id},
        )
    ).one_or_none()


async def lock_source(session: AsyncSession, data_source_id: UUID) -> Row[Any] | None:
    """The same, locked: pages and fetched batches of one source are committed one after the other."""
    return (
        await session.execute(
            text(f"{_WITH_CONNECTION} AND s.id = :data_source_id FOR UPDATE OF s"),
            {"mandate_id": tenant_of(session), "data_source_id": data_source_id},
        )
    ).one_or_none()


async def sources_of(session: AsyncSession, connection_id: UUID) -> list[Row[Any]]:
    """The surfaces of a connection, with what is under way for each."""
    rows = await session.execute(
        text(
            f"SELECT {_OF_CONNECTION}, {ERRANDS} {_SOURCES} "
            "AND s.connection_id = :connection_id ORDER BY s.surface, s.id"
        ),
        {"mandate_id": tenant_of(session), "connection_id": connection_id},
    )
    return list(rows)


async def note_listing(session: AsyncSession, data_source_id: UUID, **told: Any) -> None:
    """Adds to what is known of the last listing: `room` that was left, `policy` it was made under."""
    await session.execute(
        text(
            "UPDATE data_source SET listing = listing || CAST(:told AS jsonb) "
            "WHERE mandate_id = :mandate_id AND id = :data_source_id"
        ),
        {"mandate_id": tenant_of(session), "data_source_id": data_source_id, "told": _json(told)},
    )


async def save_progress(
    session: AsyncSession,
    data_source_id: UUID,
    *,
    cursor: str | None,
    phase: str,
    generation: int,
    listing: Mapping[str, Any],
    synced: bool,
) -> None:
    """Where a listing stands. `synced`: a round ended here. What the listing says is in trouble is told as the last error."""
    await session.execute(
        text(
            """
            UPDATE data_source SET cursor = :cursor, phase = :phase, listing_generation = :generation,
                listing = CAST(:listing AS jsonb), last_error = CAST(:listing AS jsonb) ->> 'trouble',
                last_sync_at = CASE WHEN :synced THEN now() ELSE last_sync_at END
            WHERE mandate_id = :mandate_id AND id = :data_source_id
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "data_source_id": data_source_id,
            "cursor": cursor,
            "phase": phase,
            "generation": generation,
            "listing": _json(listing),
            "synced": synced,
        },
    )


async def save_run(session: AsyncSession, data_source_id: UUID, run: Mapping[str, Any]) -> None:
    await session.execute(
        text(
            "UPDATE data_source SET run = CAST(:run AS jsonb) WHERE mandate_id = :mandate_id AND id = :data_source_id"
        ),
        {"mandate_id": tenant_of(session), "data_source_id": data_source_id, "run": _json(run)},
    )


async def save_held(session: AsyncSession, data_source_id: UUID, held: Mapping[str, Any] | None) -> None:
    await session.execute(
        text(
            "UPDATE data_source SET held = CAST(:held AS jsonb) "
            "WHERE mandate_id = :mandate_id AND id = :data_source_id"
        ),
        {
            "mandate_id": tenant_of(session),
            "data_source_id": data_source_id,
            "held": None if held is None else _json(held),
        },
    )


async def note_error(session: AsyncSession, data_source_id: UUID, error: str) -> None:
    await session.execute(
        text(
            "UPDATE data_source SET last_error = :error WHERE mandate_id = :mandate_id AND id = :data_source_id"
        ),
        {"mandate_id": tenant_of(session), "data_source_id": data_source_id, "error": error},
    )


# -- the one live job of a source


async def lock_live_job(session: AsyncSession, dedupe_key: str) -> Row[Any] | None:
    return (
        await session.execute(
            text(
                f"SELECT * FROM job WHERE mandate_id = :mandate_id AND dedupe_key = :dedupe_key AND {_LIVE} FOR UPDATE"
            ),
            {"mandate_id": tenant_of(session), "dedupe_key": dedupe_key},
        )
    ).one_or_none()


async def will_look_again(session: AsyncSession, data_source_id: UUID, held_back: Collection[str]) -> bool:
    """Whether the live sync of a source begins a round after this moment anyway: it is due or must wait, and nobody has
    begun; or it was told already to run once more. Read without a lock: whoever takes or ends it now does so later.
    """
    found = await session.scalar(
        text(
            f"""
            SELECT EXISTS (
                SELECT FROM job j JOIN data_source s ON s.mandate_id = j.mandate_id AND s.id = :id
                WHERE j.mandate_id = :mandate_id AND j.dedupe_key = 'sync:' || :key AND j.{_LIVE}
                AND (j.payload -> 'again' ->> 'delay' = '0'
                    OR (j.lease_until IS NULL AND s.listing ->> 'open' IS DISTINCT FROM 'true'
                        AND (j.run_after <= now() OR j.reason = ANY(:held_back))))
            )
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "id": data_source_id,
            "key": str(data_source_id),
            "held_back": list(held_back),
        },
    )
    return bool(found)


async def add_job(
    session: AsyncSession,
    job_id: UUID,
    *,
    kind: str,
    lane: str,
    connection_id: UUID | None,
    generation: int | None,
    dedupe_key: str,
    payload: Mapping[str, Any],
    delay_seconds: float,
) -> bool:
    """False if there is a live one already: somebody else was faster."""
    added = await session.scalar(
        text(
            f"""
            INSERT INTO job (mandate_id, id, kind, lane, status, connection_id, connection_generation, dedupe_key, payload,
                run_after)
            VALUES (:mandate_id, :id, :kind, :lane, 'pending', CAST(:connection_id AS uuid), :generation, :dedupe_key,
                CAST(:payload AS jsonb), now() + make_interval(secs => :delay))
            ON CONFLICT (mandate_id, dedupe_key) WHERE {_LIVE} DO NOTHING RETURNING id
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "id": job_id,
            "kind": kind,
            "lane": lane,
            "connection_id": connection_id,
            "generation": generation,
            "dedupe_key": dedupe_key,
            "payload": _json(payload),
            "delay": delay_seconds,
        },
    )
    return added is not None


async def change_job(
    session: AsyncSession,
    job_id: UUID,
    *,
    lane: str,
    payload: Mapping[str, Any],
    delay_seconds: float | None,
) -> None:
    """A live job gets another word on its way; with a delay it also runs no later than that."""
    await session.execute(
        text(
            """
            UPDATE job SET lane = :lane, payload = CAST(:payload AS jsonb), run_after =
                coalesce(least(run_after, now() + make_interval(secs => CAST(:delay AS double precision))), run_after)
            WHERE mandate_id = :mandate_id AND id = :id
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "id": job_id,
            "lane": lane,
            "payload": _json(payload),
            "delay": delay_seconds,
        },
    )


async def unscheduled_sources(session: AsyncSession) -> list[UUID]:
    """Sources of working connections that nobody would sync again: their job was set aside or given up."""
    rows = await session.scalars(
        text(
            f"""
            SELECT s.id FROM data_source s
            JOIN connection c ON c.mandate_id = :mandate_id AND c.id = s.connection_id
            WHERE s.mandate_id = :mandate_id AND c.state = 'active' AND NOT c.paused AND s.phase <> 'new'
              AND NOT EXISTS (SELECT FROM job j WHERE j.mandate_id = :mandate_id
                AND j.dedupe_key = 'sync:' || s.id::text AND j.{_LIVE})
            """
        ),
        {"mandate_id": tenant_of(session)},
    )
    return list(rows)


# -- failures


async def record_failures(
    session: AsyncSession, data_source_id: UUID, rows: Sequence[Mapping[str, Any]]
) -> None:
    """`id external_id name reason detail retry_seconds` (None: not by itself). Each further failure doubles the wait, up
    to a day; a new reason does not start again.
    """
    if not rows:
        return
    await session.execute(
        text(
            """
            INSERT INTO item_failure AS f (mandate_id, id, data_source_id, external_id, name, reason, detail, retry_at,
                first_at, last_at)
            SELECT :mandate_id, id, :data_source_id, external_id, name, reason, detail,
                r.now + make_interval(secs => retry_seconds), r.now, r.now
            FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r(id uuid, external_id text, name text, reason text,
                detail text, retry_seconds double precision, now timestamptz)
            ORDER BY external_id
            ON CONFLICT (mandate_id, data_source_id, external_id) DO UPDATE SET name = excluded.name,
                reason = excluded.reason, detail = excluded.detail, attempts = f.attempts + 1, last_at = excluded.last_at,
                retry_at = excluded.last_at
                    + least((excluded.retry_at - excluded.last_at) * power(2, least(f.attempts, 16)), interval '1 day')
            """
        ),
        {"mandate_id": tenant_of(session), "data_source_id": data_source_id, "rows": _json(rows)},
    )


async def clear_failures(session: AsyncSession, data_source_id: UUID, external_ids: Sequence[str]) -> None:
    if not external_ids:
        return
    await session.execute(
        text(
            "DELETE FROM item_failure WHERE mandate_id = :mandate_id AND data_source_id = :data_source_id "
            "AND external_id = ANY(:ids)"
        ),
        {"mandate_id": tenant_of(session), "data_source_id": data_source_id, "ids": list(external_ids)},
    )


async def clear_ended_failures(session: AsyncSession, data_source_id: UUID) -> None:
    """Of items that are gone."""
    await session.execute(
        text(
            """
            DELETE FROM item_failure f USING remote_item i
            WHERE f.mandate_id = :mandate_id AND f.data_source_id = :data_source_id AND i.mandate_id = :mandate_id
              AND i.data_source_id = f.data_source_id AND i.external_id = f.external_id AND i.state = 'deleted'
            """
        ),
        {"mandate_id": tenant_of(session), "data_source_id": data_source_id},
    )


async def revive_failures(session: AsyncSession, data_source_id: UUID, now: datetime) -> int:
    """Failed downloads whose time has come wait again."""
    done = await session.execute(
        text(
            """
            UPDATE remote_item i SET state = 'pending', reason = NULL FROM item_failure f
            WHERE i.mandate_id = :mandate_id AND i.data_source_id = :data_source_id AND f.mandate_id = :mandate_id
              AND f.data_source_id = i.data_source_id AND f.external_id = i.external_id
              AND i.state = 'failed' AND i.source_kind <> '' AND f.retry_at <= :now
            """
        ),
        {"mandate_id": tenant_of(session), "data_source_id": data_source_id, "now": now},
    )
    return int(done.rowcount)  # pyright: ignore[reportAttributeAccessIssue]


async def unlisted_failures_due(session: AsyncSession, data_source_id: UUID, now: datetime) -> bool:
    """Is there an item that never could be listed, and is to be tried again? Only a listing can bring it."""
    found = await session.scalar(
        text(
            """
            SELECT EXISTS (SELECT FROM item_failure f JOIN remote_item i ON i.mandate_id = :mandate_id
                AND i.data_source_id = f.data_source_id AND i.external_id = f.external_id
              WHERE f.mandate_id = :mandate_id AND f.data_source_id = :data_source_id AND f.retry_at <= :now
                AND i.state = 'failed' AND i.source_kind = '')
            """
        ),
        {"mandate_id": tenant_of(session), "data_source_id": data_source_id, "now": now},
    )
    return bool(found)


async def next_retry(session: AsyncSession, data_source_id: UUID) -> datetime | None:
    """When the first failed download is due again."""
    return await session.scalar(
        text(
            """
            SELECT min(f.retry_at) FROM item_failure f JOIN remote_item i ON i.mandate_id = :mandate_id
              AND i.data_source_id = f.data_source_id AND i.external_id = f.external_id
            WHERE f.mandate_id = :mandate_id AND f.data_source_id = :data_source_id
              AND i.state = 'failed' AND i.source_kind <> ''
            """
        ),
        {"mandate_id": tenant_of(session), "data_source_id": data_source_id},
    )


# What was never got hold of, and what was fetched and could not be read then: that is a document, and named by its id.
_FAILURES = """
SELECT f.id, f.external_id, f.name, f.reason, f.detail, f.attempts, f.retry_at, f.first_at, f.last_at, s.surface
FROM data_source s JOIN item_failure f ON f.mandate_id = :mandate_id AND f.data_source_id = s.id
WHERE s.mandate_id = :mandate_id AND s.connection_id = :connection_id
UNION ALL
SELECT d.id, d.source_id, d.title, coalesce(d.reason, 'failed'), coalesce(j.error, ''), coalesce(j.attempts, 0), NULL,
    d.created_at, coalesce(j.finished_at, d.updated_at), s.surface
FROM data_source s JOIN document d ON d.mandate_id = :mandate_id AND d.data_source_id = s.id AND d.status = 'failed'
LEFT JOIN LATERAL (SELECT error, attempts, finished_at FROM job WHERE mandate_id = :mandate_id AND document_id = d.id
    ORDER BY created_at DESC LIMIT 1) j ON true
WHERE s.mandate_id = :mandate_id AND s.connection_id = :connection_id
"""


async def list_failures(
    session: AsyncSession, connection_id: UUID, *, limit: int, after: tuple[datetime, UUID] | None
) -> list[Row[Any]]:
    rows = await session.execute(
        text(
            f"""
            SELECT * FROM ({_FAILURES}) f
            WHERE CAST(:at AS timestamptz) IS NULL OR (f.first_at, f.id) < (:at, CAST(:id AS uuid))
            ORDER BY f.first_at DESC, f.id DESC LIMIT :limit
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "connection_id": connection_id,
            "limit": limit,
            "at": after and after[0],
            "id": after and after[1],
        },
    )
    return list(rows)


async def find_failure(session: AsyncSession, connection_id: UUID, failure_id: UUID) -> Row[Any] | None:
    return (
        await session.execute(
            text(f"SELECT * FROM ({_FAILURES}) f WHERE f.id = :failure_id"),
            {"mandate_id": tenant_of(session), "connection_id": connection_id, "failure_id": failure_id},
        )
    ).one_or_none()


async def hasten_failure(session: AsyncSession, connection_id: UUID, failure_id: UUID) -> Row[Any] | None:
    """A person wants it tried again, now; the count of tries begins anew."""
    return (
        await session.execute(
            text(
                """
                UPDATE item_failure f SET retry_at = now(), attempts = 0 FROM data_source s, remote_item i
                WHERE f.mandate_id = :mandate_id AND f.id = :failure_id AND s.mandate_id = :mandate_id
                  AND s.id = f.data_source_id AND s.connection_id = :connection_id AND i.mandate_id = :mandate_id
                  AND i.data_source_id = f.data_source_id AND i.external_id = f.external_id
                RETURNING f.*, s.surface, i.source_kind
                """
            ),
            {
                "mandate_id": tenant_of(session),
                "connection_id": connection_id,
                "failure_id": failure_id,
            },
        )
    ).one_or_none()


async def tokens_per_byte(session: AsyncSession) -> float | None:
    """What the mandate's own documents came to, for an estimate; None while there are none."""
    return await session.scalar(
        text(
            """
            SELECT sum(c.tokens)::double precision / nullif(sum(d.size), 0) FROM (
                SELECT id, size FROM document WHERE mandate_id = :mandate_id AND status = 'indexed' AND size > 0
                ORDER BY created_at DESC LIMIT 200) d
            JOIN LATERAL (SELECT sum(token_count) AS tokens FROM chunk
                WHERE mandate_id = :mandate_id AND document_id = d.id) c ON true
            """
        ),
        {"mandate_id": tenant_of(session)},
    )
