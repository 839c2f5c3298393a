"""Hybrid search over one corpus: what a caller may see, by meaning and by words, each hit with its citation.

`search()` is the one way in, for HTTP, MCP, the context builder and the command line. A search is one transaction: the
caller's mandate, the commons if they hold anything, and last the page of hits, which looks at scope and connections once more.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol
from uuid import UUID

from gateway.corpus import search_repository as repository
from gateway.corpus.boundary import wrap
from gateway.corpus.candidates import Candidates, Hints, Quest
from gateway.corpus.citations import Citation, citation_of
from gateway.corpus.embedders import Embedder, EmbedderRefused, EmbedderUnavailable
from gateway.corpus.fusion import fuse
from gateway.corpus.rerankers import RerankerUnavailable
from gateway.corpus.search_models import (
    MAX_LIMIT,
    Hit,
    Member,
    Method,
    Origin,
    QueryEmpty,
    QueryTooLong,
    SearchInvalid,
    SearchQuery,
    SearchResult,
    Viewer,
    check_query,
)
from gateway.corpus.search_repository import Found, Space, View, halfvec_literal
from gateway.corpus.shelves import Shelves
from gateway.db import COMMONS, Database, new_id, switch_tenant
from gateway.metrics import SEARCH_SECONDS, SEARCHES
from gateway.readers import Connection

__all__ = [
    "MAX_LIMIT",
    "Hit",
    "Member",
    "Method",
    "Origin",
    "QueryEmpty",
    "QueryTooLong",
    "Reranker",
    "SearchInvalid",
    "SearchQuery",
    "SearchResult",
    "Viewer",
    "answer",
    "search",
]

# For the meaning of a query; after that its words alone are looked for.
EMBEDDING_SECONDS = 3.0
LOOKS = 3  # at a corpus that changes while we look; then what is there is the answer
RERANKED = 50  # hits a reranker looks at
PHRASE_WEIGHT = 1.1  # a little more than everything else can score


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
    look = _Look(db, embedder, viewer, query, space, ranked)
    hits = await look.hits()
    if reranker is not None and hits:
        hits = (await _reranked(reranker, query.q, hits))[: query.limit]
        hits = await look.still_visible(hits)  # that took its time: what may be seen now?
    elapsed = time.perf_counter() - began
    SEARCHES.labels(query.origin).inc()
    SEARCH_SECONDS.observe(elapsed)
    return SearchResult(
        query_id=new_id(),
        took_ms=round(elapsed * 1000),
        hits=hits[: query.limit],
        degraded=space is None and query.method != "bm25",
    )


class _Look:
    """One search: the commons, the caller's mandate, and the page of both."""

    def __init__(
        self,
        db: Database,
        embedder: Embedder,
        viewer: Viewer,
        query: SearchQuery,
        space: Space | None,
        limit: int,
    ) -> None:
        self._db, self._embedder, self._viewer, self._query = db, embedder, viewer, query
        self._space, self._limit = space, limit

    async def hits(self) -> list[Hit]:
        return await self._db.read(self._viewer.mandate_id, self._hits, repository.SETTINGS)

    def _hits(self, connection: Connection) -> list[Hit]:
        """A document that is revised while we look has neither its old chunks any more nor, among what was found, its new ones: so
        when something found is gone, we look again.
        """
        own = self._viewer.mandate_id
        hits: list[Hit] = []
        quest = self._quest(connection, own)
        quest.look_ahead()
        shared = own != COMMONS and repository.commons_hold_anything(connection, back_to=own)
        for _ in range(LOOKS):
            found = [self._candidates(quest)]
            if shared:
                switch_tenant(connection, COMMONS)
                found.append(self._candidates(self._quest(connection, COMMONS)))
            hits, complete = self._page(connection, found)
            if complete and not any(candidates.outdated for _, candidates in found):
                break
            if shared:
                switch_tenant(connection, own)
            quest = self._quest(connection, own)
        return hits

    async def still_visible(self, hits: Sequence[Hit]) -> list[Hit]:
        """The hits without what was revoked, deleted or hidden since they were found."""
        ids = [source.chunk_id for hit in hits for source in hit.sources]
        visible = await self._db.read(COMMONS, lambda connection: self._visible(connection, ids))
        return [kept for hit in hits if (kept := _narrowed(hit, visible)) is not None]

    def _visible(self, connection: Connection, chunk_ids: Sequence[UUID]) -> set[UUID]:
        visible = set[UUID]()
        for mandate_id in (COMMONS, self._viewer.mandate_id):
            switch_tenant(connection, mandate_id)
            visible |= repository.still_visible(connection, self._view(mandate_id), chunk_ids)
        return visible

    def _quest(self, connection: Connection, mandate_id: UUID) -> Quest:
        return Quest(
            connection,
            partial(self._db.read_beside, mandate_id, settings=repository.SETTINGS),
            self._view(mandate_id),
            _shelves,
            _hints,
            model=self._embedder.model,
            space=self._space,
            limit=self._limit,
        )

    def _candidates(self, quest: Quest) -> tuple[View, Candidates]:
        return quest.view, quest.run(self._query.q, lexical=self._query.method != "dense")

    def _view(self, mandate_id: UUID) -> View:
        return View(mandate_id, self._viewer.user_id, self._query.filters())

    def _page(
        self, connection: Connection, found: Sequence[tuple[View, Candidates]]
    ) -> tuple[list[Hit], bool]:
        """The best of what was found in each mandate, and whether all of that is still there. Of a text that both have, the
        first one's sources come first.
        """
        every = Candidates()
        for _, candidates in found:
            every.join(candidates)  # in one list, so that the scores of both mandates compare
        scores = self._fused(every)
        ranked = sorted(scores, key=lambda text_hash: -scores[text_hash])
        hits: list[Hit] = []
        complete = True
        # What was revoked meanwhile leaves gaps, for those who come next.
        while ranked and (gaps := self._limit - len(hits)) > 0:
            best, ranked = ranked[:gaps], ranked[gaps:]
            chunks = self._chunks(connection, found, best)
            hits += [_hit(every, chunks[text], scores[text]) for text in best if text in chunks]
            complete &= len(chunks) == len(best)
        return hits, complete

    def _chunks(
        self, connection: Connection, found: Sequence[tuple[View, Candidates]], texts: Sequence[bytes]
    ) -> dict[bytes, list[Found]]:
        chunks: dict[bytes, list[Found]] = {}
        for view, candidates in found:
            numbers = [number for text_hash in texts for number in candidates.chunks.get(text_hash, ())]
            if numbers and len(found) > 1:
                switch_tenant(connection, view.mandate_id)
            here = repository.page(connection, view, numbers) if numbers else []
            here.sort(key=lambda chunk: chunk.number != candidates.first.get(chunk.text_hash))
            for chunk in here:
                chunks.setdefault(chunk.text_hash, []).append(chunk)
        return chunks

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
    """None when the embedding service is away, slow or refuses us: words are still found then."""
    try:
        async with asyncio.timeout(EMBEDDING_SECONDS):
            vector = (await embedder.embed([q]))[0]
    except (EmbedderUnavailable, EmbedderRefused, TimeoutError):
        return None
    return Space(embedder.model, embedder.dimensions, halfvec_literal(vector))


def _hit(found: Candidates, chunks: Sequence[Found], score: float) -> Hit:
    sources = [citation_of(chunk) for chunk in chunks]
    citation, first = sources[0], chunks[0]
    return Hit(
        chunk_id=citation.chunk_id,
        document_id=citation.document_id,
        score=score,
        text=first.text,
        prompt_text=wrap(first.text, _origin_of(citation, first.heading_path)),
        title=first.title,
        citation=citation,
        sources=sources,
        heading_path=first.heading_path,
        token_count=first.token_count,
        language=first.language,
        scope=first.scope,
        cosine=found.cosines.get(first.text_hash),
        bm25=found.bm25.get(first.text_hash),
    )


def _origin_of(citation: Citation, section: str) -> dict[str, str | None]:
    """What the boundary says about a passage."""
    return {
        "source": citation.source_kind,
        "title": citation.title,
        "section": section,
        "uri": citation.uri,
        "chunk": str(citation.chunk_id),
        "sha256": citation.content_hash,
    }


def _narrowed(hit: Hit, visible: set[UUID]) -> Hit | None:
    sources = [source for source in hit.sources if source.chunk_id in visible]
    if not sources or sources == hit.sources:
        return hit if sources else None
    first = sources[0]
    return replace(
        hit,
        sources=sources,
        citation=first,
        chunk_id=first.chunk_id,
        document_id=first.document_id,
        title=first.title,
        prompt_text=wrap(hit.text, _origin_of(first, hit.heading_path)),
    )


async def _reranked(reranker: Reranker, q: str, hits: list[Hit]) -> list[Hit]:
    try:
        scores = await reranker.scores(q, [hit.text for hit in hits])
    except RerankerUnavailable:
        return hits
    ranked = sorted(zip(scores, hits, strict=True), key=lambda pair: -pair[0])
    return [replace(hit, score=float(score)) for score, hit in ranked]
