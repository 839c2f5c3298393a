"""What is asked and found, what is cited and what is not, and what it costs."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

from gateway.http import Cursor, Db, Limit
from gateway.insights import repository, service
from gateway.insights.schemas import (
    CitationsIn,
    CitationsOut,
    CitedOut,
    Origin,
    QueryOut,
    SpendPage,
    StatsOut,
)
from gateway.tenancy.access import Principal, Reader, Writer
from gateway.wire import (
    EndMoment,
    Moment,
    Page,
    decode_cursor,
    decode_ranked_cursor,
    encode_cursor,
    encode_ranked_cursor,
)

router = APIRouter(tags=["insights"])

From = Annotated[Moment | None, Query(alias="from", description="default: thirty days before `to`")]
To = Annotated[EndMoment | None, Query(alias="to", description="default: now")]


async def _queries(
    db: Db,
    principal: Principal,
    wanted: service.Period,
    origin: Origin | None,
    *,
    gaps: bool,
    limit: int,
    cursor: str | None,
) -> Page[QueryOut]:
    after = decode_ranked_cursor(cursor) if cursor else None
    async with db.tenant_session(principal.mandate_id) as session:
        rows = await repository.top_queries(
            session,
            since=wanted.since,
            until=wanted.until,
            asker=service.asker(principal),
            origin=origin,
            gaps=gaps,
            limit=limit + 1,
            after=after,
        )
    page = [QueryOut.model_validate(row) for row in rows[:limit]]
    following = None
    if len(rows) > limit:
        following = encode_ranked_cursor(page[-1].count, page[-1].last_at, rows[limit - 1].id)
    return Page(items=page, next_cursor=following)


@router.get("/insights/queries")
async def top_queries(
    db: Db,
    principal: Reader,
    since: From = None,
    until: To = None,
    origin: Origin | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[QueryOut]:
    """The most frequent questions. Admins see everybody's, others their own."""
    wanted = service.period(since, until)
    return await _queries(db, principal, wanted, origin, gaps=False, limit=limit, cursor=cursor)


@router.get("/insights/gaps")
async def gaps(
    db: Db,
    principal: Reader,
    since: From = None,
    until: To = None,
    origin: Origin | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[QueryOut]:
    """Questions that found nothing, or nothing to the point, when they were last asked: what the corpus lacks."""
    wanted = service.period(since, until)
    return await _queries(db, principal, wanted, origin, gaps=True, limit=limit, cursor=cursor)


@router.get("/insights/citations")
async def citations(
    db: Db,
    principal: Reader,
    *,
    show: Annotated[Literal["most", "never"], Query(description="most cited, or never cited")] = "most",
    since: From = None,
    until: To = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[CitedOut]:
    """Documents by how often agents cited them in the period, or those that nobody cited."""
    wanted = service.period(since, until)
    between: dict[str, Any] = {"since": wanted.since, "until": wanted.until, "limit": limit + 1}
    async with db.tenant_session(principal.mandate_id) as session:
        if show == "most":
            rank = decode_ranked_cursor(cursor) if cursor else None
            rows = await repository.most_cited(session, principal.user_id, after=rank, **between)
        else:
            after = decode_cursor(cursor) if cursor else None
            rows = await repository.never_cited(session, principal.user_id, after=after, **between)
    page = [CitedOut.model_validate(row) for row in rows[:limit]]
    return Page(items=page, next_cursor=_following(page[-1]) if len(rows) > limit else None)


def _following(last: CitedOut) -> str:
    if last.last_cited_at is None:
        return encode_cursor(last.created_at, last.document_id)
    return encode_ranked_cursor(last.citations, last.last_cited_at, last.document_id)


@router.get("/insights/spend")
async def spend(db: Db, principal: Reader, since: From = None, until: To = None) -> SpendPage:
    """What embedding cost, by day and model, and how much of the month's budget is gone."""
    async with db.tenant_session(principal.mandate_id) as session:
        return await service.spend(session, service.period(since, until))


@router.get("/stats")
async def stats(db: Db, principal: Reader) -> StatsOut:
    async with db.tenant_session(principal.mandate_id) as session:
        return await service.stats(session)


@router.post("/citations")
async def record_citations(db: Db, wanted: CitationsIn, principal: Writer) -> CitationsOut:
    """An agent says which chunks a turn was given: of those it may see. Twice counts once."""
    return await service.record_citations(db, wanted, principal)
