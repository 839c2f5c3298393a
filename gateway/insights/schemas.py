"""What is asked, cited and spent, as it appears over HTTP."""

from datetime import date, datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints

from gateway.wire import Wire


def no_nul(value: str) -> str:
    if "\x00" in value:
        raise ValueError("must not contain NUL characters")
    return value


Origin = Literal["sdk", "dashboard", "cli", "mcp"]
Reference = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(no_nul)]


class QueryOut(Wire):
    """One question, in whatever case and spacing it was asked."""

    query: str
    count: int
    zero_results: int = Field(description="how often it found nothing at all")
    unanswered: int = Field(description="how often it found nothing to the point")
    mean_results: float
    median_ms: int
    last_at: datetime


class CitedOut(Wire):
    """`citations` is 0 for a document that was there and not cited; unknown it never is."""

    document_id: UUID
    title: str
    source_kind: str
    created_at: datetime
    citations: int
    last_cited_at: datetime | None


class SpendOut(Wire):
    day: date
    model: str
    texts: int
    tokens: int
    cost: float = Field(description="US dollars")


class SpendTotal(Wire):
    tokens: int
    cost: float


class SpendPage(Wire):
    items: list[SpendOut]
    next_cursor: str | None = None
    total: SpendTotal
    month: SpendTotal = Field(description="the calendar month so far, which the budget is held against")
    monthly_tokens_budget: int | None
    monthly_cost_budget: float | None


class StatsOut(Wire):
    documents: int
    chunks: int
    bytes: int
    documents_by_status: dict[str, int]
    documents_by_source_kind: dict[str, int]
    period_days: int = Field(description="what the three below count over")
    queries: int
    unanswered_queries: int
    citations: int


class CitationsIn(Wire):
    """What one turn of an agent was given and used."""

    turn_id: Reference
    chunk_ids: list[UUID] = Field(min_length=1, max_length=1000)
    agent_deployment_id: Reference | None = None


class CitationsOut(Wire):
    turn_id: str
    recorded: int = Field(description="how many are new; the same turn and chunk count once")
    unknown: list[UUID] = Field(description="chunks that are not there, or not for the caller to see")
