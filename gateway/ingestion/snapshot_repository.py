"""The facts that snapshots are made of, as our own tables have them, and the snapshots that are there."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import tenant_of

# A snapshot of ours bears its subject's id in its own and is the subject's or nobody's; what features hand in is theirs.
_OURS = """
d.mandate_id = :mandate_id AND d.connection_id IS NULL AND d.source_kind = :source_kind
AND (d.user_id IS NULL OR (d.source_kind = 'profile_snapshot' AND d.source_id = 'catchment:' || d.user_id))
"""
_SUBJECTS = {
    "profile_snapshot": "SELECT user_id FROM membership WHERE mandate_id = :mandate_id",
    "mandate_snapshot": "SELECT mandate_id FROM mandate WHERE mandate_id = :mandate_id",
    "feature_snapshot": "SELECT id FROM feature_instance WHERE mandate_id = :mandate_id",
}


async def lock_mandate(session: AsyncSession) -> Row[Any] | None:
    """Name and policy. Who makes snapshots holds this to the end of the transaction: they are made one after another, so
    that the last to write is the last who looked.
    """
    return (
        await session.execute(
            text("SELECT name, policy FROM mandate WHERE mandate_id = :mandate_id FOR NO KEY UPDATE"),
            {"mandate_id": tenant_of(session)},
        )
    ).one_or_none()


async def members(session: AsyncSession, user_ids: Sequence[UUID]) -> list[Row[Any]]:
    """Those of them who are members, with the labels of what they may use."""
    rows = await session.execute(
        text(
            """
            SELECT u.id, u.display_name, u.locale, u.timezone, m.role,
                ARRAY(SELECT i.label FROM feature_member f
                      JOIN feature_instance i ON i.mandate_id = f.mandate_id AND i.id = f.feature_instance_id
                      WHERE f.mandate_id = :mandate_id AND f.user_id = u.id
                      ORDER BY i.label COLLATE "C", i.id) AS features
            FROM membership m JOIN "user" u ON u.mandate_id = m.mandate_id AND u.id = m.user_id
            WHERE m.mandate_id = :mandate_id AND m.user_id = ANY(:user_ids)
            """
        ),
        {"mandate_id": tenant_of(session), "user_ids": list(user_ids)},
    )
    return list(rows)


async def members_per_role(session: AsyncSession) -> dict[str, int]:
    rows = await session.execute(
        text("SELECT role, count(*) AS n FROM membership WHERE mandate_id = :mandate_id GROUP BY role"),
        {"mandate_id": tenant_of(session)},
    )
    return {row.role: row.n for row in rows}


async def instances(session: AsyncSession, instance_ids: Sequence[UUID]) -> list[Row[Any]]:
    rows = await session.execute(
        text(
            "SELECT id, label, feature_code FROM feature_instance "
            "WHERE mandate_id = :mandate_id AND id = ANY(:instance_ids)"
        ),
        {"mandate_id": tenant_of(session), "instance_ids": list(instance_ids)},
    )
    return list(rows)


async def instance_labels(session: AsyncSession) -> list[str]:
    rows = await session.scalars(
        text(
            'SELECT label FROM feature_instance WHERE mandate_id = :mandate_id ORDER BY label COLLATE "C", id'
        ),
        {"mandate_id": tenant_of(session)},
    )
    return list(rows)


async def snapshots(session: AsyncSession, source_kind: str, source_ids: Sequence[str]) -> list[Row[Any]]:
    """Those of ours that are there."""
    rows = await session.execute(
        text(
            f"SELECT d.id, d.source_id, d.metadata, d.content_version, d.status FROM document d "
            f"WHERE {_OURS} AND d.source_id = ANY(:source_ids)"
        ),
        {"mandate_id": tenant_of(session), "source_kind": source_kind, "source_ids": list(source_ids)},
    )
    return list(rows)


async def subjects_after(session: AsyncSession, source_kind: str, subject: str, limit: int) -> list[str]:
    """The next ids, in order, of those a snapshot is about or should be: who is there, and who has one."""
    rows = await session.scalars(
        text(
            f"""
            SELECT s.id FROM (
                SELECT CAST(t.id AS text) COLLATE "C" AS id FROM ({_SUBJECTS[source_kind]}) AS t(id)
                UNION
                SELECT substr(d.source_id, 11) COLLATE "C" FROM document d
                WHERE {_OURS} AND d.source_id ~ '^catchment:[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}$') s
            WHERE s.id > :subject ORDER BY s.id LIMIT :limit
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "source_kind": source_kind,
            "subject": subject,
            "limit": limit,
        },
    )
    return list(rows)


async def round_waits(session: AsyncSession) -> bool:
    """Whether a look at all snapshots is queued that nobody began. It is locked, so it begins after our commit."""
    found = await session.scalar(
        text(
            "SELECT id FROM job WHERE mandate_id = :mandate_id AND lane = 'backfill' AND status = 'pending' "
            "AND lease_until IS NULL AND kind = 'snapshots' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
        ),
        {"mandate_id": tenant_of(session)},
    )
    return found is not None
