"""The ledger of what a vendor listed. Every statement takes a set, so a page costs the round trips of one item.

Items are locked after their data source and before documents: connection, data source, job, item, document.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import tenant_of

_RECORD = """
jsonb_to_recordset(CAST(:rows AS jsonb)) AS r(
    external_id text, source_kind text, name text, container_id text, parent_id text, path text, uri text,
    mime_type text, size bigint, version text, modified_at timestamptz, metadata jsonb, handle jsonb, state text,
    reason text, urgent boolean, with_parent boolean, with_listing boolean,
    generation integer)
"""
_LISTED = (
    "source_kind, name, container_id, parent_id, path, uri, mime_type, size, version, modified_at, metadata, handle, "
    "state, reason, urgent, with_parent, with_listing, generation"
)
# Its document is to be erased: it is gone upstream, or is one that must not be indexed any more. What a quota or the
# mandate's policy keeps out stays as it was.
DOOMED = (
    "document_id IS NOT NULL AND (state = 'deleted' OR "
    "(state = 'skipped' AND coalesce(reason, '') NOT IN ('quota', 'policy')))"
)


def _json(rows: object) -> str:
    return orjson.dumps(rows).decode()


def _count(result: Any) -> int:
    return int(result.rowcount)


async def lock_known(
    session: AsyncSession, data_source_id: UUID, external_ids: Sequence[str]
) -> dict[str, Row[Any]]:
    """Items by id, each with the state of its document: `document_status` is None when there is none (any more)."""
    rows = await session.execute(
        text(
            """
            SELECT i.*, i.metadata AS described, d.status AS document_status, d.neutralize AS document_masked
            FROM remote_item i LEFT JOIN document d ON d.mandate_id = :mandate_id AND d.id = i.document_id
            WHERE i.mandate_id = :mandate_id AND i.data_source_id = :data_source_id AND i.external_id = ANY(:ids)
            ORDER BY i.external_id FOR UPDATE OF i
            """
        ),
        {"mandate_id": tenant_of(session), "data_source_id": data_source_id, "ids": list(external_ids)},
    )
    return {row.external_id: row for row in rows}


async def documents_of(
    session: AsyncSession, data_source_id: UUID, external_ids: Sequence[str]
) -> dict[str, UUID]:
    """The documents that items became, for what hangs on them."""
    rows = await session.execute(
        text(
            """
            SELECT external_id, document_id FROM remote_item
            WHERE mandate_id = :mandate_id AND data_source_id = :data_source_id AND external_id = ANY(:ids)
              AND document_id IS NOT NULL
            """
        ),
        {"mandate_id": tenant_of(session), "data_source_id": data_source_id, "ids": list(external_ids)},
    )
    return {row.external_id: row.document_id for row in rows}


async def upsert_items(
    session: AsyncSession, data_source_id: UUID, connection_id: UUID | None, rows: Sequence[Mapping[str, Any]]
) -> None:
    """What the vendor says of its items now; what became of them (document, fetched version) stays."""
    if not rows:
        return
    assignments = ", ".join(f"{name} = excluded.{name}" for name in _LISTED.split(", "))
    await session.execute(
        text(
            f"""
            INSERT INTO remote_item (mandate_id, data_source_id, connection_id, external_id, {_LISTED})
            SELECT :mandate_id, :data_source_id, CAST(:connection_id AS uuid), external_id, {_LISTED} FROM {_RECORD}
            ORDER BY external_id
            ON CONFLICT (mandate_id, data_source_id, external_id) DO UPDATE SET {assignments}, seen_at = now()
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "data_source_id": data_source_id,
            "connection_id": connection_id,
            "rows": _json(rows),
        },
    )


async def keep_children(
    session: AsyncSession, data_source_id: UUID, parents: Sequence[str], generation: int
) -> None:
    """What is only found by reading its parent is there as long as the parent is listed."""
    await session.execute(
        text(
            """
            UPDATE remote_item SET generation = :generation
            WHERE mandate_id = :mandate_id AND data_source_id = :data_source_id AND parent_id = ANY(:parents)
              AND with_parent AND generation < :generation
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "data_source_id": data_source_id,
            "parents": list(parents),
            "generation": generation,
        },
    )


async def children_of(
    session: AsyncSession, data_source_id: UUID, parents: Sequence[str], *, with_parent: bool
) -> list[tuple[str, str]]:
    """Parent and child of what has not ended and was found by reading parents, or else by a listing."""
    rows = await session.execute(
        text(
            """
            SELECT parent_id, external_id FROM remote_item
            WHERE mandate_id = :mandate_id AND data_source_id = :data_source_id AND parent_id = ANY(:parents)
              AND with_parent = :with_parent AND state <> 'deleted'
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "data_source_id": data_source_id,
            "parents": list(parents),
            "with_parent": with_parent,
        },
    )
    return [(row.parent_id, row.external_id) for row in rows]


async def settle_items(
    session: AsyncSession, data_source_id: UUID, rows: Sequence[Mapping[str, Any]]
) -> None:
    """What became of items: `externalId state reason documentId fetchedVersion`; a missing document keeps the old one."""
    if not rows:
        return
    await session.execute(
        text(
            """
            UPDATE remote_item i SET state = r.state, reason = r.reason,
                document_id = coalesce(r.document_id, i.document_id),
                fetched_version = coalesce(r.fetched_version, i.fetched_version),
                urgent = i.urgent AND r.state = 'pending'
            FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r(external_id text, state text, reason text,
                document_id uuid, fetched_version text)
            WHERE i.mandate_id = :mandate_id AND i.data_source_id = :data_source_id AND i.external_id = r.external_id
            """
        ),
        {"mandate_id": tenant_of(session), "data_source_id": data_source_id, "rows": _json(rows)},
    )


async def mark_failed(
    session: AsyncSession, data_source_id: UUID, generation: int, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Items that could not be listed (`external_id reason`): they are there, so no listing may end them. What they are
    is open until one names them again, hence no source kind.
    """
    await session.execute(
        text(
            """
            UPDATE remote_item i SET generation = :generation, seen_at = now(), urgent = false, source_kind = '',
                state = 'failed', reason = r.reason
            FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r(external_id text, reason text)
            WHERE i.mandate_id = :mandate_id AND i.data_source_id = :data_source_id AND i.external_id = r.external_id
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "data_source_id": data_source_id,
            "generation": generation,
            "rows": _json(rows),
        },
    )


# -- the end of items


async def entomb(
    session: AsyncSession,
    data_source_id: UUID,
    tombstones: Sequence[Mapping[str, Any]],
    containers: Sequence[str],
    *,
    state: str,
) -> int:
    """Items the vendor says are gone (`external_id container_id reason`), all of the containers that are gone, and what
    hangs on them. A tombstone that names a container counts only while the item lies there.
    """
    done = await session.execute(
        text(
            """
            WITH RECURSIVE gone AS (
                SELECT i.external_id, r.reason FROM remote_item i
                JOIN jsonb_to_recordset(CAST(:rows AS jsonb)) AS r(external_id text, container_id text, reason text)
                  ON i.external_id = r.external_id AND (r.container_id IS NULL OR i.container_id = r.container_id)
                WHERE i.mandate_id = :mandate_id AND i.data_source_id = :data_source_id
                UNION
                SELECT i.external_id, 'container_gone' FROM remote_item i
                WHERE i.mandate_id = :mandate_id AND i.data_source_id = :data_source_id
                  AND i.container_id = ANY(CAST(:containers AS text[]))
                UNION
                SELECT i.external_id, 'parent_gone' FROM remote_item i JOIN gone g ON i.parent_id = g.external_id
                WHERE i.mandate_id = :mandate_id AND i.data_source_id = :data_source_id)
            UPDATE remote_item i SET state = :state, urgent = false, seen_at = now(),
                reason = (SELECT min(g.reason) FROM gone g WHERE g.external_id = i.external_id)
            WHERE i.mandate_id = :mandate_id AND i.data_source_id = :data_source_id AND i.state <> 'deleted'
              AND i.external_id IN (SELECT external_id FROM gone)
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "data_source_id": data_source_id,
            "rows": _json(tombstones),
            "containers": list(containers),
            "state": state,
        },
    )
    return _count(done)


async def lock_doomed(
    session: AsyncSession, data_source_id: UUID, *, older_than_seconds: float, limit: int
) -> list[Row[Any]]:
    """Items whose documents are to be erased, those first that wait longest."""
    rows = await session.execute(
        text(
            f"""
            SELECT external_id, document_id FROM remote_item
            WHERE mandate_id = :mandate_id AND data_source_id = :data_source_id AND {DOOMED}
              AND seen_at <= now() - make_interval(secs => :age)
            ORDER BY seen_at, external_id LIMIT :limit FOR UPDATE
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "data_source_id": data_source_id,
            "age": older_than_seconds,
            "limit": limit,
        },
    )
    return list(rows)


async def forget_documents(session: AsyncSession, document_ids: Sequence[UUID]) -> None:
    """Call before the documents go. What hung on one of them without being named goes with it."""
    await session.execute(
        text(
            """
            UPDATE remote_item SET document_id = NULL, fetched_version = NULL,
                reason = CASE WHEN state IN ('deleted', 'skipped') THEN reason ELSE 'parent_gone' END,
                state = CASE WHEN state = 'skipped' THEN state ELSE 'deleted' END
            WHERE mandate_id = :mandate_id AND document_id = ANY(:ids)
            """
        ),
        {"mandate_id": tenant_of(session), "ids": list(document_ids)},
    )


async def leave_out_containers(session: AsyncSession, data_source_id: UUID, containers: Sequence[str]) -> int:
    """What lies in containers that policy no longer wants."""
    done = await session.execute(
        text(
            """
            UPDATE remote_item SET state = 'skipped', reason = 'filtered', urgent = false, seen_at = now()
            WHERE mandate_id = :mandate_id AND data_source_id = :data_source_id
              AND container_id = ANY(CAST(:containers AS text[])) AND state NOT IN ('deleted', 'folder', 'skipped')
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "data_source_id": data_source_id,
            "containers": list(containers),
        },
    )
    return _count(done)


async def have_stale_paths(session: AsyncSession, data_source_id: UUID, folders: Sequence[str]) -> bool:
    """Whether something in these folders is still known by the path it had before they were renamed or moved."""
    found = await session.scalar(
        text(
            """
            SELECT EXISTS (SELECT FROM remote_item f JOIN remote_item i ON i.mandate_id = f.mandate_id
                AND i.data_source_id = f.data_source_id AND i.parent_id = f.external_id
              WHERE f.mandate_id = :mandate_id AND f.data_source_id = :data_source_id AND f.external_id = ANY(:ids)
                AND i.state <> 'deleted' AND i.path <> ltrim(f.path || '/' || f.name, '/'))
            """
        ),
        {"mandate_id": tenant_of(session), "data_source_id": data_source_id, "ids": list(folders)},
    )
    return bool(found)


async def release_held(session: AsyncSession, data_source_id: UUID) -> int:
    """A person said yes: what was held ends now."""
    done = await session.execute(
        text(
            "UPDATE remote_item SET state = 'deleted', seen_at = now() "
            "WHERE mandate_id = :mandate_id AND data_source_id = :data_source_id AND state = 'held'"
        ),
        {"mandate_id": tenant_of(session), "data_source_id": data_source_id},
    )
    return _count(done)


# -- fetching


async def pending_items(session: AsyncSession, data_source_id: UUID, limit: int) -> list[Row[Any]]:
    """What is to be downloaded next: what a delta found first, then newest first."""
    rows = await session.execute(
        text(
            """
            SELECT *, metadata AS described FROM remote_item
            WHERE mandate_id = :mandate_id AND data_source_id = :data_source_id AND state = 'pending'
            ORDER BY urgent DESC, modified_at DESC NULLS LAST, external_id LIMIT :limit
            """
        ),
        {"mandate_id": tenant_of(session), "data_source_id": data_source_id, "limit": limit},
    )
    return list(rows)


async def count_pending(session: AsyncSession, data_source_id: UUID) -> dict[bool, int]:
    """Waiting downloads, by whether a delta found them."""
    rows = await session.execute(
        text(
            "SELECT urgent, count(*) AS n FROM remote_item WHERE mandate_id = :mandate_id "
            "AND data_source_id = :data_source_id AND state = 'pending' GROUP BY urgent"
        ),
        {"mandate_id": tenant_of(session), "data_source_id": data_source_id},
    )
    return {row.urgent: row.n for row in rows}


async def count_documents(session: AsyncSession, connection_id: UUID) -> int:
    """Documents of a connection, for its own quota."""
    found = await session.scalar(
        text(
            "SELECT count(*) FROM document WHERE mandate_id = :mandate_id AND connection_id = :connection_id"
        ),
        {"mandate_id": tenant_of(session), "connection_id": connection_id},
    )
    return int(found or 0)


async def skip_for_quota(session: AsyncSession, data_source_id: UUID) -> int:
    """Nothing more may enter: what waits and is not in the corpus yet is kept out."""
    done = await session.execute(
        text(
            "UPDATE remote_item SET state = 'skipped', reason = 'quota' WHERE mandate_id = :mandate_id "
            "AND data_source_id = :data_source_id AND state = 'pending' AND document_id IS NULL"
        ),
        {"mandate_id": tenant_of(session), "data_source_id": data_source_id},
    )
    return _count(done)


async def release_quota(session: AsyncSession, data_source_id: UUID, limit: int) -> int:
    """There is room again: newest first, as far as it goes. What only a listing can bring waits for one."""
    done = await session.execute(
        text(
            """
            UPDATE remote_item SET state = 'pending', reason = NULL
            WHERE mandate_id = :mandate_id AND data_source_id = :data_source_id AND external_id IN (
                SELECT external_id FROM remote_item
                WHERE mandate_id = :mandate_id AND data_source_id = :data_source_id
                  AND state = 'skipped' AND reason = 'quota' AND NOT with_listing
                ORDER BY modified_at DESC NULLS LAST, external_id LIMIT :limit)
            """
        ),
        {"mandate_id": tenant_of(session), "data_source_id": data_source_id, "limit": limit},
    )
    return _count(done)


async def quota_awaits_listing(session: AsyncSession, data_source_id: UUID) -> bool:
    """Whether something was kept out whose content came with the listing, and will only come with another one."""
    found = await session.scalar(
        text(
            "SELECT EXISTS (SELECT FROM remote_item WHERE mandate_id = :mandate_id "
            "AND data_source_id = :data_source_id AND state = 'skipped' AND reason = 'quota' AND with_listing)"
        ),
        {"mandate_id": tenant_of(session), "data_source_id": data_source_id},
    )
    return bool(found)


# -- what people ask


async def count_states(session: AsyncSession, connection_id: UUID) -> list[Row[Any]]:
    """Items of a connection by surface and state; those handed over also by what became of their documents."""
    rows = await session.execute(
        text(
            """
            WITH source AS MATERIALIZED (
                SELECT id, surface FROM data_source WHERE mandate_id = :mandate_id AND connection_id = :connection_id),
            state AS (
                SELECT s.id, i.state, i.n FROM source s CROSS JOIN LATERAL (
                    SELECT state, count(*) AS n FROM remote_item
                    WHERE mandate_id = :mandate_id AND data_source_id = s.id AND state <> 'folder' GROUP BY state) i),
            -- Most of what was handed over is indexed, so only the rest is looked up, each by its document: OFFSET 0 keeps
            -- the planner from any other way, because it may not yet know how many items there are.
            rest AS MATERIALIZED (
                SELECT s.id, d.status, count(*) AS n FROM source s
                JOIN document d ON d.mandate_id = :mandate_id AND d.data_source_id = s.id
                    AND d.status IN ('pending', 'extracted', 'embedding', 'failed', 'skipped', 'cancelled')
                CROSS JOIN LATERAL (
                    SELECT i.data_source_id, i.state FROM remote_item i
                    WHERE i.mandate_id = :mandate_id AND i.document_id = d.id OFFSET 0) i
                WHERE i.data_source_id = s.id AND i.state = 'handed'
                GROUP BY s.id, d.status
                UNION ALL
                SELECT s.id, '', count(*) FROM source s
                JOIN remote_item i ON i.mandate_id = :mandate_id AND i.data_source_id = s.id
                    AND i.state = 'handed' AND i.document_id IS NULL GROUP BY s.id),
            counted AS (
                SELECT id, 'handed' AS state, status, n FROM rest
                UNION ALL
                SELECT id, state, 'indexed', n - coalesce((SELECT sum(n)::bigint FROM rest WHERE rest.id = state.id), 0)
                FROM state WHERE state = 'handed'
                UNION ALL
                SELECT id, state, '', n FROM state WHERE state <> 'handed')
            SELECT s.id, s.surface, c.state, coalesce(c.status, '') AS document_status, coalesce(c.n, 0) AS n
            FROM source s LEFT JOIN counted c ON c.id = s.id ORDER BY s.surface, s.id
            """
        ),
        {"mandate_id": tenant_of(session), "connection_id": connection_id},
    )
    return list(rows)


_STORY = """
SELECT i.*, i.metadata AS described, s.surface, d.status AS document_status, d.reason AS document_reason,
    d.indexed_at, f.id AS failure_id, f.reason AS failure_reason, f.detail AS failure_detail, f.attempts, f.retry_at,
    c.authority, c.state AS connection_state, c.paused, j.reason AS waits_for, j.run_after
FROM remote_item i
JOIN data_source s ON s.mandate_id = :mandate_id AND s.id = i.data_source_id
LEFT JOIN connection c ON c.mandate_id = :mandate_id AND c.id = i.connection_id
LEFT JOIN document d ON d.mandate_id = :mandate_id AND d.id = i.document_id
LEFT JOIN item_failure f ON f.mandate_id = :mandate_id AND f.data_source_id = i.data_source_id
    AND f.external_id = i.external_id
LEFT JOIN job j ON j.mandate_id = :mandate_id AND j.dedupe_key = 'fetch:' || i.data_source_id::text
    AND j.status IN ('pending', 'extracted', 'embedding')
WHERE i.mandate_id = :mandate_id
"""
# What a vendor's address bar shows is the end of some of our ids: a task's id is `task/<it>`.
_ID_IS = """(i.external_id = CAST(:external_id AS text)
    OR right(i.external_id, length(:external_id) + 1) = '/' || CAST(:external_id AS text))"""


async def find_items(
    session: AsyncSession,
    connection_id: UUID,
    *,
    external_id: str | None,
    name: str | None,
    state: str | None,
    limit: int,
    after: tuple[datetime, str] | None,
) -> list[Row[Any]]:
    """Items with all that is known of them, last seen first. `name` matches a part of name or path; `skipped` is what progress
    counts as that: also what was read and holds nothing for us.
    """
    rows = await session.execute(
        text(
            f"""
            {_STORY} AND i.connection_id = :connection_id AND s.connection_id = :connection_id
              AND (CAST(:external_id AS text) IS NULL OR {_ID_IS})
              AND (CAST(:state AS text) IS NULL OR i.state = :state
                   OR (:state = 'skipped' AND i.state = 'handed' AND d.status = 'skipped'))
              AND (CAST(:name AS text) IS NULL OR strpos(lower(i.path || '/' || i.name), lower(:name)) > 0)
              AND (CAST(:at AS timestamptz) IS NULL OR (i.seen_at, i.external_id) < (:at, CAST(:after_id AS text)))
            ORDER BY i.seen_at DESC, i.external_id DESC LIMIT :limit
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "connection_id": connection_id,
            "external_id": external_id,
            "name": name,
            "state": state,
            "limit": limit,
            "at": after and after[0],
            "after_id": after and after[1],
        },
    )
    return list(rows)


async def explain_items(
    session: AsyncSession, external_id: str, viewer: UUID | None, limit: int
) -> list[Row[Any]]:
    """The same for an id or name anywhere in the mandate; `viewer` sees their own connections, None sees all."""
    rows = await session.execute(
        text(
            f"""
            {_STORY} AND ({_ID_IS} OR i.name = :external_id)
              AND (CAST(:viewer AS uuid) IS NULL OR c.user_id = :viewer)
            ORDER BY i.seen_at DESC LIMIT :limit
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "external_id": external_id,
            "viewer": viewer,
            "limit": limit,
        },
    )
    return list(rows)
