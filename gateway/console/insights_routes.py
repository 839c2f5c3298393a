"""What is asked, what is missing, what is cited, and what it costs, over time."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from gateway.console import charts, repository
from gateway.console.visits import Member, PageRoute
from gateway.insights import repository as insights
from gateway.insights import service

router = APIRouter(route_class=PageRoute)

ROWS = 15


@router.get("/insights")
async def insights_page(visit: Member, days: Annotated[Literal[7, 30, 90], Query()] = 30) -> HTMLResponse:
    now = datetime.now(UTC)
    period = service.period(now - timedelta(days=days), now)
    since, until = period.since.date(), period.until.date()
    between: dict[str, Any] = {"since": period.since, "until": period.until, "limit": ROWS}
    asker, viewer = service.asker(visit.principal), visit.person.id
    async with visit.db.tenant_session(visit.principal.mandate_id) as session:
        asked = await repository.queries_by_day(session, since, until, asker)
        spend = await service.spend(session, period)
        tables = {
            "top": await insights.top_queries(session, asker=asker, origin=None, gaps=False, **between),
            "gaps": await insights.top_queries(session, asker=asker, origin=None, gaps=True, **between),
            "most_cited": await insights.most_cited(session, viewer, **between),
            "never_cited": await insights.never_cited(session, viewer, after=None, **between),
        }
    tokens: dict[Any, float] = {}
    for item in spend.items:
        tokens[item.day] = tokens.get(item.day, 0.0) + item.tokens
    return visit.page(
        "insights.html",
        days=days,
        asked=charts.by_day(asked, since, until),
        tokens=charts.by_day(tokens, since, until),
        spend=spend,
        **tables,
    )
