"""What a finished listing did not name: absent because it ended, or because policy does not ask for it any more."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.connections.sync_item_repository import DOOMED
from gateway.db import tenant_of

_MISSING = "i.generation < :generation"
_LISTABLE = """
i.mandate_id = :mandate_id AND i.data_source_id = :data_source_id AND i.state NOT IN ('deleted', 'held')
AND (CAST(:containers AS text[]) IS NULL OR i.container_id = ANY(CAST(:containers AS text[])))
"""


async def count_absent(
    session: AsyncSession, data_source_id: UUID, generation: int, containers: Sequence[str] | None
) -> tuple[int, int]:
    """Documents the listing should have named, and those of them it did not. `containers`: None means all. What leaves
    because policy says so is neither.
    """
    row = (
        await session.execute(
            text(
                f"""
                SELECT count(*) AS known, count(*) FILTER (WHERE {_MISSING}) AS absent FROM remote_item i
                WHERE {_LISTABLE} AND i.document_id IS NOT NULL AND NOT ({DOOMED})
                """
            ),
            _absence(session, data_source_id, generation, containers),
        )
    ).one()
    return int(row.known), int(row.absent)


async def absent_items(
    session: AsyncSession,
    data_source_id: UUID,
    generation: int,
    containers: Sequence[str] | None,
    *,
    after: str,
    limit: int,
) -> list[Row[Any]]:
    """Items a listing did not name, by id."""
    rows = await session.execute(
        text(
            f"""
            SELECT i.*, i.metadata AS described FROM remote_item i
            WHERE {_LISTABLE} AND {_MISSING} AND i.state <> 'folder' AND i.external_id > :after
            ORDER BY i.external_id LIMIT :limit
            """
        ),
        _absence(session, data_source_id, generation, containers) | {"after": after, "limit": limit},
    )
    return list(rows)


async def leave_out(
    session: AsyncSession, data_source_id: UUID, generation: int, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Items (`external_id reason`) that are not named because policy does not ask for them."""
    await session.execute(
        text(
            """
            UPDATE remote_item i SET state = 'skipped', reason = r.reason, urgent = false, seen_at = now(),
                generation = :generation
            FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r(external_id text, reason text)
            WHERE i.mandate_id = :mandate_id AND i.data_source_id = :data_source_id AND i.external_id = r.external_id
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "data_source_id": data_source_id,
            "generation": generation,
            "rows": orjson.dumps(list(map(dict, rows))).decode(),
        },
    )


async def mark_absent(
    session: AsyncSession,
    data_source_id: UUID,
    generation: int,
    containers: Sequence[str] | None,
    *,
    state: str,
) -> int:
    """Ends or holds what was not named. Held are only those with a document; the rest costs nobody anything."""
    done = await session.execute(
        text(
            f"""
            UPDATE remote_item i SET reason = 'absent', urgent = false, seen_at = now(),
                state = CASE WHEN i.document_id IS NULL THEN 'deleted' ELSE :state END
            WHERE {_LISTABLE} AND {_MISSING}
            """
        ),
        _absence(session, data_source_id, generation, containers) | {"state": state},
    )
    return int(done.rowcount)  # pyright: ignore[reportAttributeAccessIssue]


_LIES_THERE = "i.container_id = ANY(CAST(:containers AS text[]))"


async def count_lost(
    session: AsyncSession, data_source_id: UUID, containers: Sequence[str]
) -> tuple[int, int]:
    """Documents of the source that have not ended, and those of them that lie in these containers."""
    row = (
        await session.execute(
            text(
                f"""
                SELECT count(*) AS known, count(*) FILTER (WHERE {_LIES_THERE}) AS lost FROM remote_item i
                WHERE i.mandate_id = :mandate_id AND i.data_source_id = :data_source_id
                  AND i.document_id IS NOT NULL AND NOT ({DOOMED})
                """
            ),
            {
                "mandate_id": tenant_of(session),
                "data_source_id": data_source_id,
                "containers": list(containers),
            },
        )
    ).one()
    return int(row.known), int(row.lost)


async def mark_lost(
    session: AsyncSession, data_source_id: UUID, containers: Sequence[str], *, state: str
) -> int:
    """Ends or holds all that lies in containers which may no longer be read; held are only those with a document."""
    done = await session.execute(
        text(
            f"""
            UPDATE remote_item i SET reason = 'container_gone', urgent = false, seen_at = now(),
                state = CASE WHEN i.document_id IS NULL THEN 'deleted' ELSE :state END
            WHERE i.mandate_id = :mandate_id AND i.data_source_id = :data_source_id AND i.state <> 'deleted'
              AND {_LIES_THERE}
            """
        ),
        {
            "mandate_id": tenant_of(session),
            "data_source_id": data_source_id,
            "containers": list(containers),
            "state": state,
        },
    )
    return int(done.rowcount)  # pyright: ignore[reportAttributeAccessIssue]


def _absence(
    session: AsyncSession, data_source_id: UUID, generation: int, containers: Sequence[str] | None
) -> dict[str, Any]:
    return {
        "mandate_id": tenant_of(session),
        "data_source_id": data_source_id,
        "generation": generation,
        "containers": None if containers is None else list(containers),
    }


async def count_held(session: AsyncSession, data_source_id: UUID) -> int:
    found = await session.scalar(
        text(
            "SELECT count(*) FROM remote_item WHERE mandate_id = :mandate_id "
            "AND data_source_id = :data_source_id AND state = 'held'"
        ),
        {"mandate_id": tenant_of(session), "data_source_id": data_source_id},
    )
    return int(found or 0)
