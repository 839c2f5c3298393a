"""How much more may enter: the connection's own limit and the mandate's quotas, whichever ends first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.connections import sync_item_repository as items
from gateway.connections.places import policy_of
from gateway.ingestion import repository as ingestion
from gateway.tenancy.schemas import Policy

UNLIMITED = 1 << 50


@dataclass(frozen=True)
class Room:
    documents: int
    size: int  # bytes
    limits: tuple[int, int]

    @property
    def places(self) -> int:
        return self.documents if self.size > 0 else 0

    def lowest(self, known: Sequence[int]) -> list[int]:
        return [min(now, before) for now, before in zip((self.documents, self.size), known, strict=True)]

    def has_grown(self, known: Sequence[int]) -> bool:
        """By a tenth of a limit at least: a listing for every mail somebody deletes would be too many."""
        now = (self.documents, self.size)
        return self.places > 0 and any(
            more - before >= max(1, limit // 10)
            for more, before, limit in zip(now, known, self.limits, strict=True)
        )


async def room_for(session: AsyncSession, source: Row[Any]) -> Room:
    policy = await policy_of(session, source)
    quotas = Policy.model_validate(await ingestion.mandate_policy(session)).quotas
    documents = size = UNLIMITED
    if policy.max_items is not None:
        documents = policy.max_items - await items.count_documents(session, source.connection_id)
    if quotas.documents is not None or quotas.bytes is not None:
        held, held_bytes = await ingestion.usage(session)
        if quotas.documents is not None:
            documents = min(documents, quotas.documents - held)
        if quotas.bytes is not None:
            size = quotas.bytes - held_bytes
    limits = (policy.max_items or UNLIMITED, quotas.bytes or UNLIMITED)
    return Room(documents=max(0, documents), size=max(0, size), limits=limits)
