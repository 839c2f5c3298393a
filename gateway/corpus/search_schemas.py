"""Search as it appears over HTTP."""

import unicodedata
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BeforeValidator, Field

from gateway.corpus.citations import Citation
from gateway.corpus.search import MAX_LIMIT, Hit, Origin, SearchQuery, SearchResult
from gateway.ingestion.schemas import SourceKind
from gateway.wire import EndMoment, Moment, Wire


def _separated(values: Any) -> Any:
    """`tags=a,b`, `tags=a, b` and `tags=a&tags=b` mean the same; a tag that itself holds a comma is found too."""
    given = [values] if isinstance(values, str) else values
    if not isinstance(given, list):
        return given
    spelled = [unicodedata.normalize("NFC", str(value)) for value in given]
    words = [word.strip() for value in spelled for word in (value, *value.split(","))]
    return [word for word in words if word] or None


def _kinds(values: Any) -> Any:
    """Of names that hold no comma. One that nobody knows is refused: it would find nothing without a word."""
    given = [values] if isinstance(values, str) else values
    if not isinstance(given, list):
        return given
    return [word.strip() for value in given for word in str(value).split(",") if word.strip()] or None


Words = Annotated[list[str] | None, BeforeValidator(_separated)]
Kinds = Annotated[list[SourceKind] | None, BeforeValidator(_kinds)]


class SearchParameters(Wire):
    q: str = Field(description="words, a question, a code, or a “quoted phrase”; 1,000 characters at most")
    limit: int = Field(default=10, ge=1, le=MAX_LIMIT)
    types: Words = Field(default=None, description="any of these; what has no type goes by its source kind")
    source_kinds: Kinds = Field(default=None, description="any of these")
    connection_id: UUID | None = None
    source_id: str | None = None
    feature_instance_id: UUID | None = None
    tags: Words = Field(default=None, description="any of these")
    since: Moment | None = Field(default=None, alias="from", description="entered the corpus at or after")
    until: EndMoment | None = Field(
        default=None, alias="to", description="entered the corpus at or before; a day is meant whole"
    )
    origin: Origin = "sdk"
    method: Literal["convex", "rrf"] = "convex"
    agent_deployment_id: str | None = Field(default=None, max_length=200)

    def query(self) -> SearchQuery:
        return SearchQuery(
            q=self.q,
            limit=self.limit,
            types=self.types,
            source_kinds=self.source_kinds,
            connection_id=self.connection_id,
            source_id=self.source_id,
            feature_instance_id=self.feature_instance_id,
            tags=self.tags,
            since=self.since,
            until=self.until,
            origin=self.origin,
            method=self.method,
        )


class HitOut(Wire):
    chunk_id: UUID
    document_id: UUID
    score: float = Field(description="from 0 to 1 within this answer; not comparable between answers")
    text: str = Field(description="for display only: what a document says is data")
    prompt_text: str = Field(description="the passage inside its boundary, fit to be given to a model")
    title: str
    citation: Citation
    sources: list[Citation] = Field(
        description="every source of this text that you may see, the first one included"
    )


class SearchOut(Wire):
    query_id: UUID
    took_ms: int
    hits: list[HitOut]
    answered: bool = Field(
        default=True,
        description="false: nothing here is about the question, the hits are merely the nearest there is",
    )
    degraded: bool = Field(default=False, description="the embedding service was away: found by words alone")


def search_out(result: SearchResult, *, answered: bool) -> SearchOut:
    return SearchOut.model_construct(
        query_id=result.query_id,
        took_ms=result.took_ms,
        hits=[hit_out(hit) for hit in result.hits],
        answered=answered,
        degraded=result.degraded,
    )


def hit_out(hit: Hit) -> HitOut:
    return HitOut.model_construct(**{name: getattr(hit, name) for name in HitOut.model_fields})
