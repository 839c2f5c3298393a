"""Context for agents, and answers, as they appear over HTTP."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from gateway.corpus.citations import Citation
from gateway.insights.schemas import Origin, Reference
from gateway.wire import Wire

Layer = Literal["user", "mandate", "feature", "featureInstance", "personal", "corpus", "global"]


class ContextIn(Wire):
    query: str
    token_budget: int = Field(default=2000, ge=50, le=100_000)
    feature_instance_id: UUID | None = None
    origin: Origin = "sdk"
    agent_deployment_id: Reference | None = None


class PassageOut(Wire):
    """One citable piece of the context; `number` is how an answer refers to it."""

    number: int
    layer: Layer
    chunk_id: UUID
    document_id: UUID
    score: float
    title: str
    tokens: int
    citation: Citation


class ContextOut(Wire):
    """`text` goes into a prompt as it is: every passage is named, and wrapped as untrusted."""

    query_id: UUID
    text: str
    tokens: int
    token_budget: int
    passages: list[PassageOut]
    left_out: int = Field(description="passages to the point for which the budget had no room")
    degraded: bool = Field(description="the embedding service was away: found by words alone")


class AnswerIn(Wire):
    question: str
    conversation_id: UUID | None = None
    feature_instance_id: UUID | None = None
    origin: Origin = "sdk"
    agent_deployment_id: Reference | None = None


class CitationFrame(Wire):
    """SSE `citation`: what went into the prompt under this number."""

    number: int
    score: float
    citation: Citation


class TokenFrame(Wire):
    """SSE `token`: the next piece of the answer."""

    text: str


class DoneFrame(Wire):
    """SSE `done`: how it ended. `mode` is `extracts` when no model spoke; `complete` is false after a broken stream."""

    turn_id: UUID
    conversation_id: UUID
    mode: Literal["model", "extracts"]
    model: str | None
    complete: bool
    reason: str | None = None
    kept: bool = Field(
        description="the turn can be read again; false when something it drew on was erased meanwhile"
    )


class TurnOut(Wire):
    turn_id: UUID
    conversation_id: UUID
    question: str
    text: str
    mode: Literal["model", "extracts"]
    model: str | None
    complete: bool
    created_at: datetime
    chunk_ids: list[UUID]
