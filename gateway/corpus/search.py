"""Hybrid search over one corpus: what a caller may see, by meaning and by words, each hit with its citation.

`search()` is the one way in, for HTTP, MCP, the context builder and the command line. A search is one transaction: the
commons first, then the caller's mandate, and last the page of hits, which looks at scope and connections once more.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus import search_repository as repository
from gateway.corpus.boundary import wrap
from gateway.corpus.candidates import Candidates, Hints, Quest
from gateway.corpus.citations import Citation, citation_of
from gateway.corpus.embedders import Embedder, EmbedderUnavailable
from gateway.corpus.fusion import fuse
from gateway.corpus.lexical.terms import query_terms
from gateway.corpus.rerankers import RerankerUnavailable
from gateway.corpus.search_repository import Connection, Filters, Found, Space, View
from gateway.corpus.shelves import Shelves
from gateway.db import COMMONS, Database, enter_tenant, new_id, raw_connection
from gateway.errors import InvalidRequest
from gateway.metrics import SEARCH_SECONDS, SEARCHES

MAX_QUERY_CHARACTERS = 1000
MAX_LIMIT = 100
RERANKED = 50  # hits a reranker looks at
PHRASE_WEIGHT = 1.1  # a little more than everything else can score

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


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    query_id: UUID
    took_ms: int
    hits: list[Hit]
    degraded: bool  # the embedding service was away: found by words alone


class Reranker(Protocol):
    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """How well each text answers the query, from 0 to 1."""
        ...


# Per process: what searches may reuse. Neither holds text.
_shelves = Shelves()
_hints = Hints()


async def search(
    db: Database,
    embedder: Embedder,
    viewer: Viewer,
    query: SearchQuery,
    *,
    reranker: Reranker | None = None,
) -> SearchResult:
    """Raises `QueryEmpty`, `QueryTooLong` or `SearchInvalid` for what cannot be asked; no match is an empty list."""
    check_query(query)
    return await answer(db, embedder, viewer, query, reranker=reranker)


async def answer(
    db: Database,
    embedder: Embedder,
    viewer: Viewer,
    query: SearchQuery,
    *,
    reranker: Reranker | None = None,
) -> SearchResult:
    """`search` without the limits of the front door; labelled collections have longer questions."""
    began = time.perf_counter()
    space = None if query.method == "bm25" else await _space(embedder, query.q)
    ranked = query.limit if reranker is None else max(query.limit, RERANKED)
    looked = _Look(embedder, viewer, query, space, ranked)
    async with db.tenant_session(COMMONS) as session:
        hits = await looked.hits(session)
    if reranker is not None and hits:
        hits = await _reranked(reranker, query.q, hits)
    elapsed = time.perf_counter() - began
    SEARCHES.labels(query.origin).inc()
    SEARCH_SECONDS.observe(elapsed)
    return SearchResult(
        query_id=new_id(),
        took_ms=round(elapsed * 1000),
        hits=hits[: query.limit],
        degraded=space is None and query.method != "bm25",
    )


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


class _Look:
    """One search: the commons, the caller's mandate, and the page of both."""

    def __init__(
        self, embedder: Embedder, viewer: Viewer, query: SearchQuery, space: Space | None, limit: int
    ) -> None:
        self._embedder, self._viewer, self._query = embedder, viewer, query
        self._space, self._limit = space, limit

    async def hits(self, session: AsyncSession) -> list[Hit]:
        """`session` is one of the commons.

        One connection serves both mandates: searches that held one while waiting for a second could wait for each other.
        """
        connection = await raw_connection(session)
        commons_holds_something = await repository.begin(connection)
        own, shared = self._viewer.mandate_id, None
        if own != COMMONS:
            if commons_holds_something:
                shared = await self._candidates(connection, COMMONS)
            await enter_tenant(session, own)
        found = await self._candidates(connection, own)
        if shared is not None:
            found.join(shared)  # in one list, so that the scores of both mandates compare
        scores = self._fused(found)
        best = sorted(scores, key=lambda text_hash: -scores[text_hash])[: self._limit]
        return [_hit(found, text_hash, scores[text_hash]) for text_hash in best]

    async def _candidates(self, connection: Connection, mandate_id: UUID) -> Candidates:
        quest = Quest(
            connection, self._view(mandate_id), _shelves, _hints, space=self._space, limit=self._limit
        )
        return await quest.run(self._query.q, self._embedder.model, lexical=self._query.method != "dense")

    def _view(self, mandate_id: UUID) -> View:
        return View(mandate_id, self._viewer.user_id, self._query.filters())

    def _fused(self, found: Candidates) -> dict[bytes, float]:
        method = self._query.method
        if method == "dense":
            return found.cosines
        if method == "bm25":
            return {text_hash: score for text_hash, score in found.bm25.items() if score > 0}
        # The embedder knows how much its ranking is worth; reciprocal ranks are a plain vote.
        share = self._embedder.dense_share if method == "convex" else None
        fused = fuse(list(found.cosines.items()), list(found.bm25.items()), method=method, weight=share)
        # What quotes the query as it stands ranks higher, by as much of the query as it quotes; whole, above all else.
        bonus = {text_hash: PHRASE_WEIGHT * share for text_hash, share in found.phrases.items()}
        most = 1 + max(bonus.values(), default=0.0)
        return {text_hash: (score + bonus.get(text_hash, 0.0)) / most for text_hash, score in fused}


async def _space(embedder: Embedder, q: str) -> Space | None:
    """None when the embedding service is away: words are still found then."""
    try:
        vector = (await embedder.embed([q]))[0]
    except EmbedderUnavailable:
        return None
    literal = "[" + ",".join(f"{value:.5g}" for value in vector.tolist()) + "]"
    return Space(embedder.model, embedder.dimensions, literal)


def _hit(found: Candidates, text_hash: bytes, score: float) -> Hit:
    sources = [citation_of(chunk) for chunk in found.chunks[text_hash]]
    citation, first = sources[0], found.chunks[text_hash][0]
    return Hit(
        chunk_id=citation.chunk_id,
        document_id=citation.document_id,
        score=score,
        text=first.text,
        prompt_text=wrap(first.text, origin_of(first)),
        title=first.title,
        citation=citation,
        sources=sources,
        heading_path=first.heading_path,
        token_count=first.token_count,
        language=first.language,
        scope=first.scope,
        cosine=found.cosines.get(text_hash),
        bm25=found.bm25.get(text_hash),
    )


def origin_of(chunk: Found) -> dict[str, str | None]:
    """What the boundary says about a passage."""
    return {
        "source": chunk.source_kind,
        "title": chunk.title,
        "section": chunk.heading_path,
        "uri": chunk.uri,
        "chunk": chunk.chunk_id,
        "sha256": chunk.text_hash.hex(),
    }


async def _reranked(reranker: Reranker, q: str, hits: list[Hit]) -> list[Hit]:
    try:
        scores = await reranker.scores(q, [hit.text for hit in hits])
    except RerankerUnavailable:
        return hits
    ranked = sorted(zip(scores, hits, strict=True), key=lambda pair: -pair[0])
    return [replace(hit, score=float(score)) for score, hit in ranked]


def _listed(values: Sequence[str] | None) -> tuple[str, ...] | None:
    return tuple(sorted(set(values))) if values else None


def _encodable(word: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in word)
