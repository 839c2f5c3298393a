"""Who may look at what was asked, how citations are recorded, and how long all of it is kept."""

import hashlib
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import COMMONS, Database
from gateway.errors import InvalidRequest, NotAllowed
from gateway.ingestion import repository as ingestion
from gateway.insights import repository, spend_repository
from gateway.insights.schemas import CitationsIn, CitationsOut, SpendOut, SpendPage, SpendTotal, StatsOut
from gateway.logs import emit
from gateway.tenancy.hold_repository import under_hold
from gateway.tenancy.principal import Principal
from gateway.tenancy.schemas import Policy

USUAL_DAYS = 30
EXPIRE_BATCH = 5_000  # rows per transaction, so that nobody waits long for a lock


@dataclass(frozen=True)
class Period:
    since: datetime
    until: datetime


def period(since: datetime | None, until: datetime | None) -> Period:
    """As asked; by default the last thirty days."""
    end = until or datetime.now(UTC)
    try:
        start = since or end - timedelta(days=USUAL_DAYS)
    except OverflowError:  # the first month of the calendar has none before it
        raise InvalidRequest("`to` lies before all time.") from None
    if start >= end:
        raise InvalidRequest("`from` must lie before `to`.")
    return Period(start, end)


def asker(principal: Principal) -> UUID | None:
    """Whose questions may be read: an admin reads everybody's (None), others only their own."""
    if principal.is_admin:
        return None
    if principal.user_id is None:
        raise NotAllowed("A service reads what was asked only with the role and scope admin.")
    return principal.user_id


async def record_citations(db: Database, wanted: CitationsIn, principal: Principal) -> CitationsOut:
    async with db.tenant_session(principal.mandate_id) as session:
        found = await repository.citable(session, wanted.chunk_ids, principal.user_id)
        recorded = await repository.add_citations(
            session,
            wanted.turn_id,
            [(row.chunk_id, row.document_id) for row in found],
            user_id=principal.user_id,
            agent_deployment_id=wanted.agent_deployment_id,
        )
    known = {row.chunk_id for row in found}
    unknown = [chunk for chunk in dict.fromkeys(wanted.chunk_ids) if chunk not in known]
    if unknown and principal.mandate_id != COMMONS:
        shared, new = await cite_commons(db, principal.mandate_id, wanted.turn_id, unknown)
        unknown = [chunk for chunk in unknown if chunk not in shared]
        recorded += new
    return CitationsOut(turn_id=wanted.turn_id, recorded=recorded, unknown=unknown)


async def cite_commons(
    db: Database, mandate_id: UUID, turn_id: str, chunk_ids: Collection[UUID]
) -> tuple[set[UUID], int]:
    """Counts a turn's citations of what is everybody's, where it lies; which chunks are there, and how many counts are new."""
    async with db.tenant_session(COMMONS) as session:
        found = await repository.citable(session, chunk_ids, None)
        new = await repository.add_citations(
            session,
            turn_in_commons(mandate_id, turn_id),
            [(row.chunk_id, row.document_id) for row in found],
            user_id=None,
            agent_deployment_id=None,
        )
    return {row.chunk_id for row in found}, new


def turn_in_commons(mandate_id: UUID, turn_id: str) -> str:
    """Whose turn it was is nobody's business there; that it was the same one counts it once."""
    return hashlib.sha256(f"{mandate_id} {turn_id}".encode()).hexdigest()


async def spend(session: AsyncSession, wanted: Period) -> SpendPage:
    rows = await repository.spend_by_day(session, since=wanted.since.date(), until=wanted.until.date())
    items = [SpendOut.model_validate(row) for row in rows]
    month = await spend_repository.month(session)
    budget = Policy.model_validate(await ingestion.mandate_policy(session)).budget
    return SpendPage(
        items=items,
        total=SpendTotal(
            tokens=sum(item.tokens for item in items),
            cost=float(sum(row.cost for row in rows)),
        ),
        month=SpendTotal(tokens=month.tokens, cost=float(month.cost)),
        monthly_tokens_budget=budget.monthly_tokens,
        monthly_cost_budget=budget.monthly_cost,
    )


async def stats(session: AsyncSession, viewer: UUID | None = None) -> StatsOut:
    """Numbers about the whole mandate, or of documents those that the viewer may see; they name none."""
    held = await repository.holdings(session, viewer)
    by_status, by_kind = Counter[str](), Counter[str]()
    for row in held:
        by_status[row.status] += row.documents
        by_kind[row.source_kind] += row.documents
    used = await repository.usage(session, datetime.now(UTC) - timedelta(days=USUAL_DAYS))
    return StatsOut(
        documents=by_status.total(),
        chunks=sum(row.chunks for row in held),
        bytes=sum(row.bytes for row in held),
        documents_by_status=dict(sorted(by_status.items())),
        documents_by_source_kind=dict(sorted(by_kind.items())),
        period_days=USUAL_DAYS,
        queries=used.queries,
        unanswered_queries=used.unanswered_queries,
        citations=used.citations,
    )


async def apply_retention(db: Database, mandate_id: UUID) -> dict[str, int]:
    """Deletes what is older than the mandate's `logRetentionDays`; under legal hold nothing goes."""
    async with db.tenant_session(mandate_id) as session:
        policy = Policy.model_validate(await ingestion.mandate_policy(session))
    counts: dict[str, int] = {"query_log": 0, "citation": 0, "answer": 0, "timeline": 0}
    before = datetime.now(UTC) - timedelta(days=policy.log_retention_days)
    for table in counts:
        gone = EXPIRE_BATCH
        while gone == EXPIRE_BATCH:
            async with db.tenant_session(mandate_id) as session:
                if await under_hold(session):
                    return counts
                gone = await repository.expire(session, table, before, EXPIRE_BATCH)
            counts[table] += gone
    if any(counts.values()):
        emit(
            "insights.retention.done",
            mandateId=str(mandate_id),
            queries=counts["query_log"],
            citations=counts["citation"],
            answers=counts["answer"],
            timeline=counts["timeline"],
        )
    return counts
