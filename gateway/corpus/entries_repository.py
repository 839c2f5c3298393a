"""The entries browser's SQL: documents that people write or curate, under one filter for rows and totals alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus.repository import VISIBLE
from gateway.db import tenant_of

# What the browser shows: hand-written entries, and what managed sources and uploads bring under the name of their kind.
MANAGED = {"web_page": "url_crawl", "upload": "file_upload", "mcp_resource": "mcp", "repo_file": "repo"}
WRITTEN = ("entry", "paste")
KINDS = (*WRITTEN, *MANAGED)
FEW_CHUNKS = 2_000

_SOURCE_TYPE = (
    "CASE d.source_kind "
    + " ".join(f"WHEN '{kind}' THEN '{name}'" for kind, name in MANAGED.items())
    + " ".join(f" WHEN '{kind}' THEN coalesce(d.type, 'note')" for kind in WRITTEN)
    + " ELSE d.source_kind END"
)
_KIND_OF = {name: kind for kind, name in MANAGED.items()}
_STATUSES = {
    "ready": ("indexed",),
    "pending": ("pending", "extracted", "embedding"),
    "error": ("failed", "skipped", "cancelled"),
}


def _literals(words: Sequence[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


_HAS = {name: f"d.status IN ({_literals(statuses)})" for name, statuses in _STATUSES.items()}
_EMBEDDING_STATUS = (
    f"CASE WHEN {_HAS['ready']} THEN 'ready' WHEN {_HAS['error']} THEN 'error' ELSE 'pending' END"
)
_SHOWN = f"""
d.*, {_SOURCE_TYPE} AS source_type, {_EMBEDDING_STATUS} AS embedding_status,
(SELECT count(*) FROM citation n WHERE n.mandate_id = d.mandate_id AND n.document_id = d.id
    AND n.cited_at >= now() - interval '30 days') AS cites30d
"""

# Only what is asked for is in a statement: a condition that holds for every row still costs something for each.
_OF_ONE = {
    # The numbers come out of a subselect, because the planner would look at each of thousands of constants.
    "q": """
        (d.id IN (SELECT c.document_id FROM chunk c WHERE c.mandate_id = :mandate_id
                  AND c.number = ANY(CAST((SELECT CAST(:numbers AS text)) AS bigint[])))
         OR strpos(lower(d.title), lower(:q)) > 0)
        """,
    "since": "d.created_at >= :since",
    "until": "d.created_at < :until",
}
_OF_ALIKE = {
    "source_type": f"""
        (d.source_kind = CAST(:kind AS text)
         OR (d.source_kind IN ({_literals(WRITTEN)}) AND coalesce(d.type, 'note') = :source_type))
        """,
    "embedding_status": "d.status = ANY(CAST(:statuses AS text[]))",
    "connection_id": "d.connection_id = :connection_id",
}
# Documents that agree in these are alike to `VISIBLE` and to the filters above. The index `document_tally` holds them.
_ALIKE = "mandate_id, status, source_kind, type, scope, user_id, connection_id, feature_instance_id"


@dataclass(frozen=True)
class EntryFilter:
    """`numbers` are the chunks that hold the words of `q`."""

    q: str | None = None
    numbers: Sequence[int] = ()
    source_type: str | None = None
    embedding_status: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    kinds: Sequence[str] = KINDS  # the console's browser shows what connections bring, too
    connection_id: UUID | None = None

    @property
    def kept(self) -> str:
        """Rare words cost a look at every title, so what they are in is kept for list and totals alike; of frequent words
        there is too much to keep, and the list finds its page soon. Without words each of the two has its index.
        """
        return "MATERIALIZED" if self.q and len(self.numbers) <= FEW_CHUNKS else "NOT MATERIALIZED"

    def conditions(self, clauses: dict[str, str]) -> list[str]:
        return [clause for name, clause in clauses.items() if getattr(self, name) is not None]

    def values(self) -> dict[str, Any]:
        kind = self.source_type if self.source_type not in KINDS else None
        return {
            **vars(self),
            # As text: the driver takes longer to write down a long list than the query takes.
            "numbers": "{" + orjson.dumps(list(self.numbers)).decode()[1:-1] + "}",
            "kinds": list(self.kinds),
            "kind": _KIND_OF.get(self.source_type or "", kind),
            "statuses": list(_STATUSES.get(self.embedding_status or "", ())),
        }


async def browse_entries(
    session: AsyncSession,
    viewer: UUID | None,
    wanted: EntryFilter,
    *,
    limit: int,
    after: tuple[datetime, UUID] | None,
) -> tuple[list[Row[Any]], Row[Any]]:
    """A page of entries, newest first, and the totals of everything under the same filter."""
    alike = " AND ".join(["d.source_kind = ANY(:kinds)", VISIBLE, *wanted.conditions(_OF_ALIKE)])
    counts = ", ".join(
        f"coalesce(sum(n) FILTER (WHERE {has}), 0)::bigint AS {name}" for name, has in _HAS.items()
    )
    values = {"mandate_id": tenant_of(session), "viewer": viewer, **wanted.values()}
    values |= {"limit": limit, "at": after and after[0], "after_id": after and after[1]}
    totals = (
        await session.execute(
            text(
                f"""
                WITH found AS {wanted.kept} (
                    SELECT {_ALIKE}, id, created_at FROM document d
                    WHERE {" AND ".join(["d.mandate_id = :mandate_id", *wanted.conditions(_OF_ONE)])})
                SELECT coalesce(sum(n), 0)::bigint AS total, {counts}, ARRAY(
                    SELECT d.id FROM found d WHERE {alike}
                    {"AND (d.created_at, d.id) < (:at, CAST(:after_id AS uuid))" if after else ""}
                    ORDER BY d.created_at DESC, d.id DESC LIMIT :limit) AS ids
                -- Counted by what they have in common, so that each sort of document is judged once.
                FROM (SELECT {_ALIKE}, count(*) AS n FROM found GROUP BY {_ALIKE}) d WHERE {alike}
                """
            ),
            values,
        )
    ).one()
    rows = await session.execute(
        text(
            f"SELECT {_SHOWN} FROM document d WHERE d.mandate_id = :mandate_id AND d.id = ANY(:ids) AND {VISIBLE} "
            "ORDER BY d.created_at DESC, d.id DESC"
        ),
        {"mandate_id": tenant_of(session), "viewer": viewer, "ids": totals.ids},
    )
    return list(rows), totals


_ONE = f"""
SELECT {_SHOWN}, t.text AS kept_text FROM document d
LEFT JOIN document_text t ON t.mandate_id = d.mandate_id AND t.document_id = d.id
WHERE d.mandate_id = :mandate_id AND d.id = :id AND d.source_kind = ANY(:kinds)
"""


async def find_entry(session: AsyncSession, entry_id: UUID, viewer: UUID | None) -> Row[Any] | None:
    values = {"mandate_id": tenant_of(session), "id": entry_id, "viewer": viewer, "kinds": list(KINDS)}
    return (await session.execute(text(f"{_ONE} AND {VISIBLE}"), values)).one_or_none()


async def find_written(session: AsyncSession, entry_id: UUID) -> Row[Any] | None:
    """For who has just been allowed to write it, whether they may look for it or not."""
    values = {"mandate_id": tenant_of(session), "id": entry_id, "kinds": list(KINDS)}
    return (await session.execute(text(_ONE), values)).one_or_none()
