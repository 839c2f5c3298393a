"""Rows of `connection` and the registry of its surfaces, and the lock that makes revocation final."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.connections.sync_repository import ERRANDS
from gateway.db import tenant_of
from gateway.tenancy.principal import Principal


@dataclass(frozen=True)
class ConnectionState:
    authority: str
    user_id: UUID | None  # None once everything it brought is gone
    state: str
    generation: int


async def share_lock(session: AsyncSession, ids: Collection[UUID]) -> dict[UUID, ConnectionState]:
    """Locks the rows FOR SHARE: until this transaction ends, nobody can revoke them. Unknown ids are left out."""
    if not ids:
        return {}
    rows = await session.execute(
        text(
            "SELECT id, authority, user_id, state, generation FROM connection WHERE id = ANY(:ids) ORDER BY id FOR SHARE"
        ),
        {"ids": list(ids)},
    )
    return {row.id: ConnectionState(row.authority, row.user_id, row.state, row.generation) for row in rows}


async def add(
    session: AsyncSession,
    connection_id: UUID,
    authority: str,
    user_id: UUID,
    state: str = "active",
    *,
    surfaces: Sequence[str] = (),
    policy: Mapping[str, Any] | None = None,
    auto_start: bool = True,
) -> None:
    await session.execute(
        text(
            "INSERT INTO connection (mandate_id, id, authority, user_id, state, surfaces, policy, auto_start) "
            "VALUES (:mandate_id, :id, :authority, :user_id, :state, :surfaces, CAST(:policy AS jsonb), :auto_start)"
        ),
        {
            "mandate_id": tenant_of(session),
            "id": connection_id,
            "authority": authority,
            "user_id": user_id,
            "state": state,
            "surfaces": list(surfaces),
            "policy": orjson.dumps(dict(policy or {})).decode(),
            "auto_start": auto_start,
        },
    )


async def revoke(session: AsyncSession, connection_id: UUID) -> ConnectionState | None:
    """The fence: waits for writers that hold the row, then no later writer passes. None if there is no such row."""
    row = await lock(session, connection_id)
    if row is None:
        return None
    await session.execute(
        text(
            "UPDATE connection SET state = 'revoked', generation = generation + 1, revoked_at = now(), updated_at = now() "
            "WHERE id = :id AND state <> 'revoked'"
        ),
        {"id": connection_id},
    )
    return ConnectionState(row.authority, row.user_id, row.state, row.generation)


# -- reading


async def find(session: AsyncSession, connection_id: UUID) -> Row[Any] | None:
    rows = await session.execute(text("SELECT * FROM connection WHERE id = :id"), {"id": connection_id})
    return rows.one_or_none()


async def lock(session: AsyncSession, connection_id: UUID) -> Row[Any] | None:
    """FOR UPDATE: waits for everybody who is writing for it."""
    rows = await session.execute(
        text("SELECT * FROM connection WHERE id = :id FOR UPDATE"), {"id": connection_id}
    )
    return rows.one_or_none()


async def list_connections(
    session: AsyncSession, *, whose: Principal | None, limit: int, after: tuple[datetime, UUID] | None
) -> list[Row[Any]]:
    """Newest first; of one user or service, or of everybody. What is purged is nobody's any more."""
    rows = await session.execute(
        text(
            """
            SELECT * FROM connection
            WHERE mandate_id = :mandate_id AND (CAST(:user_id AS uuid) IS NULL OR user_id = :user_id)
              AND (CAST(:service AS text) IS NULL OR account->>'registeredBy' = :service)
              AND (CAST(:at AS timestamptz) IS NULL OR (created_at, id) < (:at, CAST(:id AS uuid)))
            ORDER BY created_at DESC, id DESC LIMIT :limit
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "user_id": whose and whose.user_id,
            "service": whose.name if whose is not None and whose.user_id is None else None,
            "limit": limit,
            "at": after and after[0],
            "id": after and after[1],
        },
    )
    return list(rows)


async def left_behind(session: AsyncSession) -> list[Row[Any]]:
    """Fenced, still holding something, and no erasure at work: a legal hold kept it then."""
    rows = await session.execute(
        text(
            "SELECT * FROM connection c WHERE mandate_id = :mandate_id AND state = 'revoked' AND purged_at IS NULL "
            "AND NOT EXISTS (SELECT FROM receipt r WHERE r.mandate_id = c.mandate_id AND r.status = 'running' "
            "AND (r.subject IN ('user', 'mandate') OR (r.subject = 'connection' AND r.subject_id = c.id::text)))"
        ),
        {"mandate_id": tenant_of(session)},
    )
    return list(rows)


async def sources_of(session: AsyncSession, ids: Collection[UUID]) -> list[Row[Any]]:
    """The surfaces of connections, with how many items and documents each has."""
    rows = await session.execute(
        text(
            f"""
            SELECT s.*, {ERRANDS}, (SELECT count(*) FROM remote_item i WHERE i.mandate_id = s.mandate_id
                         AND i.data_source_id = s.id AND i.state NOT IN ('deleted', 'folder')) AS items,
                   (SELECT count(*) FROM item_failure f WHERE f.mandate_id = s.mandate_id
                         AND f.data_source_id = s.id)
                   + (SELECT count(*) FROM document d WHERE d.mandate_id = s.mandate_id
                         AND d.data_source_id = s.id AND d.status = 'failed') AS failures,
                   (SELECT count(*) FROM document d WHERE d.mandate_id = s.mandate_id
                         AND d.data_source_id = s.id AND d.status = 'indexed') AS indexed
            FROM data_source s WHERE s.mandate_id = :mandate_id AND s.connection_id = ANY(:ids)
            ORDER BY s.connection_id, s.created_at, s.surface
            """
        ),
        {"mandate_id": tenant_of(session), "ids": list(ids)},
    )
    return list(rows)


async def last_receipts(session: AsyncSession, ids: Collection[UUID]) -> dict[UUID, UUID]:
    """The receipts of connections that were erased. Those without one are left out."""
    rows = await session.execute(
        text(
            "SELECT DISTINCT ON (subject_id) subject_id, id FROM receipt WHERE mandate_id = :mandate_id "
            "AND subject = 'connection' AND subject_id = ANY(:ids) ORDER BY subject_id, id DESC"
        ),
        {"mandate_id": tenant_of(session), "ids": [str(connection_id) for connection_id in ids]},
    )
    return {UUID(row.subject_id): row.id for row in rows}


# -- changing


async def establish(
    session: AsyncSession,
    connection_id: UUID,
    sealed: bytes,
    expires_at: datetime | None,
    account: Mapping[str, Any],
) -> None:
    """Consent was given, for the first time or again."""
    await session.execute(
        text(
            "UPDATE connection SET state = 'active', sealed_tokens = :sealed, token_expires_at = :expires_at, "
            "account = CAST(:account AS jsonb), reason = NULL, reauth_since = NULL, "
            "established_at = coalesce(established_at, now()), updated_at = now() "
            "WHERE id = :id AND state <> 'revoked'"
        ),
        {
            "id": connection_id,
            "sealed": sealed,
            "expires_at": expires_at,
            "account": orjson.dumps(dict(account)).decode(),
        },
    )


async def swap_tokens(
    session: AsyncSession, connection_id: UUID, old: bytes, sealed: bytes, expires_at: datetime | None
) -> bool:
    """Compare and set: only while the connection is active and nobody else has stored others."""
    done = await session.execute(
        text(
            "UPDATE connection SET sealed_tokens = :sealed, token_expires_at = :expires_at, updated_at = now() "
            "WHERE id = :id AND sealed_tokens = :old AND state = 'active'"
        ),
        {"id": connection_id, "old": old, "sealed": sealed, "expires_at": expires_at},
    )
    return bool(done.rowcount)  # pyright: ignore[reportAttributeAccessIssue]


async def need_reauth(session: AsyncSession, connection_id: UUID, reason: str) -> Row[Any] | None:
    """From this commit on no search serves it. None if it was not active."""
    rows = await session.execute(
        text(
            "UPDATE connection SET state = 'needs_reauth', reauth_since = now(), reason = :reason, updated_at = now() "
            "WHERE id = :id AND state = 'active' RETURNING authority, generation"
        ),
        {"id": connection_id, "reason": reason},
    )
    return rows.one_or_none()


async def set_paused(session: AsyncSession, connection_id: UUID, *, paused: bool) -> None:
    await session.execute(
        text("UPDATE connection SET paused = :paused, updated_at = now() WHERE id = :id"),
        {"id": connection_id, "paused": paused},
    )


async def change(
    session: AsyncSession, connection_id: UUID, surfaces: Sequence[str], policy: Mapping[str, Any]
) -> None:
    await session.execute(
        text(
            "UPDATE connection SET surfaces = :surfaces, policy = CAST(:policy AS jsonb), updated_at = now() "
            "WHERE id = :id"
        ),
        {"id": connection_id, "surfaces": list(surfaces), "policy": orjson.dumps(dict(policy)).decode()},
    )


async def set_scope(session: AsyncSession, connection_id: UUID, scope: str) -> None:
    """What it brought and will bring is the user's own, or everybody's."""
    parameters = {"mandate_id": tenant_of(session), "id": connection_id, "scope": scope}
    for table in ("data_source", "document"):
        await session.execute(
            text(
                f"UPDATE {table} SET scope = :scope "
                "WHERE mandate_id = :mandate_id AND connection_id = :id AND scope <> :scope"
            ),
            parameters,
        )


# -- surfaces


async def add_sources(session: AsyncSession, rows: Sequence[Mapping[str, Any]]) -> list[Row[Any]]:
    """Registry rows `{id connection_id user_id surface adapter_kind external_root feature_code scope}`; those that were
    there stay. All of the connection come back.
    """
    await session.execute(
        text(
            """
            INSERT INTO data_source (mandate_id, id, connection_id, user_id, surface, adapter_kind, external_root,
                feature_code, scope)
            SELECT :mandate_id, id, connection_id, user_id, surface, adapter_kind, external_root, feature_code, scope
            FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r(id uuid, connection_id uuid, user_id uuid, surface text,
                adapter_kind text, external_root text, feature_code text, scope text)
            ON CONFLICT (mandate_id, connection_id, surface, external_root) DO NOTHING
            """
        ),
        {"mandate_id": tenant_of(session), "rows": orjson.dumps(list(map(dict, rows))).decode()},
    )
    found = await session.execute(
        text(
            "SELECT id, surface, phase FROM data_source WHERE mandate_id = :mandate_id "
            "AND connection_id = ANY(CAST(:ids AS uuid[])) ORDER BY surface"
        ),
        {"mandate_id": tenant_of(session), "ids": sorted({str(row["connection_id"]) for row in rows})},
    )
    return list(found)


# -- the days of grace


async def schedule_grace(
    session: AsyncSession, job_id: UUID, connection_id: UUID, generation: int, days: int
) -> None:
    """A job that looks, after these days or when they change, whether consent was given again."""
    await session.execute(
        text(
            """
            INSERT INTO job (mandate_id, id, kind, lane, status, reason, connection_id, connection_generation,
                dedupe_key, payload, run_after)
            VALUES (:mandate_id, :job_id, 'grace', 'interactive', 'pending', 'grace', :id, :generation,
                :dedupe_key, '{}', now() + make_interval(days => :days))
            ON CONFLICT DO NOTHING
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "job_id": job_id,
            "id": connection_id,
            "generation": generation,
            "dedupe_key": f"grace:{connection_id}",
            "days": days,
        },
    )


async def cancel_grace(session: AsyncSession, connection_id: UUID) -> None:
    await session.execute(
        text("DELETE FROM job WHERE mandate_id = :mandate_id AND kind = 'grace' AND connection_id = :id"),
        {"mandate_id": tenant_of(session), "id": connection_id},
    )


# -- refresh


async def lock_tokens(session: AsyncSession, connection_id: UUID) -> None:
    """One at a time, across processes, until this transaction ends. Not the row's own lock: a vendor that takes its time
    must not hold up everybody who writes for the connection.
    """
    await session.execute(
        text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"),
        {"name": f"tokens:{tenant_of(session)}:{connection_id}"},
    )
