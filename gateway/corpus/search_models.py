"""What can be asked of search, and what comes back."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

from gateway.corpus.citations import Citation
from gateway.corpus.lexical.terms import query_terms
from gateway.corpus.search_repository import Filters
from gateway.errors import InvalidRequest

MAX_QUERY_CHARACTERS = 1000
MAX_LIMIT = 100

Origin = Literal["sdk", "dashboard", "cli", "mcp"]
Method = Literal["convex", "rrf", "dense", "bm25"]  # the last two are single legs, for measuring


class QueryEmpty(InvalidRequest):
    """The query holds nothing to look for."""

    code = "search.query_empty"


class QueryTooLong(InvalidRequest):
    """The query is too long."""

    code = "search.query_too_long"


class SearchInvalid(InvalidRequest):
    """The search cannot be run as asked."""

    code = "search.invalid"


class Viewer(Protocol):
    """Who is asking; a `Principal` is one. A viewer without a user sees what is shared with the whole mandate."""

    @property
    def mandate_id(self) -> UUID: ...
    @property
    def user_id(self) -> UUID | None: ...


@dataclass(frozen=True)
class Member:
    """A viewer without a request: the context builder, tests, the command line."""

    mandate_id: UUID
    user_id: UUID | None = None


@dataclass(frozen=True, kw_only=True)
class SearchQuery:
    """Values of one filter are alternatives; every filter given must hold.

    `since` and `until` bound the moment a document entered the corpus.
    """

    q: str
    limit: int = 10
    types: Sequence[str] | None = None
    source_kinds: Sequence[str] | None = None
    connection_id: UUID | None = None
    source_id: str | None = None
    feature_instance_id: UUID | None = None
    tags: Sequence[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    origin: Origin = "sdk"
    method: Method = "convex"

    def filters(self) -> Filters:
        return Filters(
            types=_listed(self.types),
            source_kinds=_listed(self.source_kinds),
            connection_id=self.connection_id,
            source_id=self.source_id,
            feature_instance_id=self.feature_instance_id,
            tags=_listed(self.tags),
            since=self.since,
            until=self.until,
        )


@dataclass(frozen=True, kw_only=True)
class Hit:
    """One text. `citation` is its first source; `sources` are all that the caller may see, that one included."""

    chunk_id: UUID
    document_id: UUID
    score: float
    text: str
    prompt_text: str
    title: str
    citation: Citation
    sources: list[Citation]
    heading_path: str
    token_count: int
    language: str
    scope: str
    cosine: float | None  # comparable across searches with one embedder, unlike `score`
    bm25: float | None

    @property
    def findable(self) -> str:
        """What stands over the text with the text: a note called "SSO reset" need not say so again."""
        titles = dict.fromkeys(source.title for source in self.sources)
        return "\n".join(filter(None, (*titles, self.heading_path, self.text)))


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    query_id: UUID
    took_ms: int
    hits: list[Hit]
    degraded: bool  # the embedding service was away: found by words alone


def check_query(query: SearchQuery) -> None:
    if len(query.q) > MAX_QUERY_CHARACTERS:
        raise QueryTooLong(
            f"A query has at most {MAX_QUERY_CHARACTERS} characters; this one has {len(query.q)}."
        )
    if not query_terms(query.q, ()):
        raise QueryEmpty("Say what to look for: the query holds no letter and no digit.")
    if not 1 <= query.limit <= MAX_LIMIT:
        raise SearchInvalid(f"`limit` lies between 1 and {MAX_LIMIT}, not at {query.limit}.")
    if query.since and query.until and query.since > query.until:
        raise SearchInvalid("`from` lies after `to`: nothing can match.")
    words = (query.source_id or "", *(query.types or ()), *(query.source_kinds or ()), *(query.tags or ()))
    if any("\0" in word or not _encodable(word) for word in words):
        raise SearchInvalid("A filter holds a character that no text can hold.")


def _listed(values: Sequence[str] | None) -> tuple[str, ...] | None:
    return tuple(sorted(set(values))) if values else None


def _encodable(word: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in word)
