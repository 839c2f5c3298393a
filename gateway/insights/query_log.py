"""The query log's way to the database: a bounded queue that a search drops a note into and forgets.

`note()` takes no time and cannot fail. One task writes in batches; while the database is away the notes wait, and when
there is no more room new ones are dropped and counted (`catchment_query_log_dropped_total`). A lost note is a lost
statistic, never a lost search.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, TypeGuard, cast
from uuid import UUID

from pydantic.alias_generators import to_camel
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus.relevance import Question, least_similarity
from gateway.corpus.search import SearchQuery, SearchResult, Viewer
from gateway.corpus.secrets import without_secrets
from gateway.db import COMMONS, Database, enter_tenant, new_id
from gateway.errors import StoreUnavailable
from gateway.insights import repository
from gateway.insights.schemas import Origin
from gateway.logs import emit
from gateway.metrics import QUERY_LOG_DROPPED

CAPACITY = 5_000  # notes of at most 8 KB each
BATCH = 500
LINGER_SECONDS = (
    0.25  # a batch gathers this long, so that a busy minute is a few hundred transactions, not thousands
)
PAUSE_SECONDS = 1.0  # between tries while the database is away
FAREWELL_SECONDS = 3.0  # how long a stopping gateway tries to write what is left


@dataclass(frozen=True)
class Asked:
    """One search, as it is remembered.

    It was answered when a hit is about the question. Where the similarities did not say so, `undecided` holds the best
    texts, for the writer to compare words at leisure; they are not kept.
    """

    mandate_id: UUID
    q: str
    result_count: int
    took_ms: int
    origin: Origin = "sdk"
    user_id: UUID | None = None
    agent_deployment_id: str | None = None
    filters: dict[str, Any] = field(default_factory=dict[str, Any])
    top_score: float | None = None
    document_ids: Sequence[UUID] = ()
    answered: bool = False
    undecided: Sequence[tuple[str, str]] = ()  # (text, language)
    id: UUID = field(default_factory=new_id)
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


UNDECIDED_TEXTS, UNDECIDED_CHARACTERS = 3, 2_000


def asked(
    viewer: Viewer,
    query: SearchQuery,
    result: SearchResult,
    *,
    model: str,
    agent_deployment_id: str | None = None,
) -> Asked:
    """The note a search leaves."""
    similar = any((hit.cosine or 0.0) >= least_similarity(model) for hit in result.hits)
    by_words = sorted(result.hits, key=lambda hit: -(hit.bm25 or 0.0))[:UNDECIDED_TEXTS]
    filters = {to_camel(name): value for name, value in vars(query.filters()).items() if value is not None}
    return Asked(
        mandate_id=viewer.mandate_id,
        q=query.q,
        result_count=len(result.hits),
        took_ms=result.took_ms,
        origin=query.origin,
        user_id=viewer.user_id,
        agent_deployment_id=agent_deployment_id,
        filters=filters,
        top_score=result.hits[0].score if result.hits else None,
        document_ids=[source.document_id for hit in result.hits for source in hit.sources],
        answered=similar,
        undecided=()
        if similar
        else [(hit.findable[:UNDECIDED_CHARACTERS], hit.language) for hit in by_words if hit.bm25],
        id=result.query_id,
    )


async def weighed(note: Asked) -> Asked:
    """The same note, decided: for whoever wants to know at once whether the question was answered."""
    if note.answered or not note.undecided:
        return note
    return replace(note, answered=await asyncio.to_thread(_answered, note), undecided=())


class QueryLog:
    """Use as a context manager around the life of the process."""

    def __init__(
        self,
        db: Database,
        *,
        capacity: int = CAPACITY,
        linger: float = LINGER_SECONDS,
        pause: float = PAUSE_SECONDS,
    ) -> None:
        self._db, self._capacity, self._linger, self._pause = db, capacity, linger, pause
        self._waiting: deque[Asked] = deque()
        self._arrived = asyncio.Event()
        self._written = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self.dropped = 0

    def note(self, asked: Asked) -> None:
        if len(self._waiting) >= self._capacity:
            self._drop()
            return
        self._waiting.append(asked)
        self._arrived.set()

    async def drained(self) -> None:
        """Returns when everything noted so far is written or dropped."""
        async with self._written:
            await self._written.wait_for(lambda: not self._waiting)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None  # noqa: S101 - entered before it is left
        try:
            await asyncio.wait_for(self.drained(), FAREWELL_SECONDS)
        except TimeoutError:
            emit("insights.querylog.dropped", queries=len(self._waiting))
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await self._arrived.wait()
            await asyncio.sleep(self._linger)
            self._arrived.clear()
            while self._waiting:
                await self._write_some()
            async with self._written:
                self._written.notify_all()

    async def _write_some(self) -> None:
        """Writes the oldest note's mandate's share of the next batch; what is written leaves the queue."""
        batch = [self._waiting[place] for place in range(min(BATCH, len(self._waiting)))]
        mandate_id = batch[0].mandate_id
        ours = [asked for asked in batch if asked.mandate_id == mandate_id]
        try:
            await self._write_or_drop(mandate_id, ours)
        except (StoreUnavailable, DBAPIError) as error:
            emit("house.store.unavailable", component="querylog", error=type(error).__name__)
            await asyncio.sleep(self._pause)
            return
        written = {asked.id for asked in ours}
        self._waiting = deque(asked for asked in self._waiting if asked.id not in written)

    async def _write_or_drop(self, mandate_id: UUID, batch: Sequence[Asked]) -> None:
        """One note the database refuses (its mandate is gone, say) costs that one."""
        try:
            await self._write(mandate_id, batch)
        except (DataError, IntegrityError):
            if len(batch) == 1:
                self._drop()
                return
            for asked in batch:
                await self._write_or_drop(mandate_id, [asked])

    async def _write(self, mandate_id: UUID, batch: Sequence[Asked]) -> None:
        documents = {document for asked in batch for document in asked.document_ids}
        # Both read words at length; and what is asked may hold a password, which belongs in no log.
        answered = await asyncio.to_thread(lambda: [_answered(asked) for asked in batch])
        words = await asyncio.to_thread(lambda: [_without_secrets(asked) for asked in batch])
        async with self._db.tenant_session(mandate_id) as session:
            own = await repository.keep_documents(session, documents)
            shared = await _in_commons(session, mandate_id, documents - own)
            rows = [
                _row(asked, q, filters, own | shared, found)
                for asked, (q, filters), found in zip(batch, words, answered, strict=True)
            ]
            await repository.add_queries(session, rows)
            pairs = [
                (asked.id, document)
                for asked in batch
                for document in dict.fromkeys(asked.document_ids)
                if document in own
            ]
            if pairs:
                await repository.add_query_hits(session, pairs)

    def _drop(self) -> None:
        self.dropped += 1
        QUERY_LOG_DROPPED.inc()


async def _in_commons(session: AsyncSession, mandate_id: UUID, documents: set[UUID]) -> set[UUID]:
    """Those of the documents that the commons hold; they are not this mandate's to erase."""
    if not documents:
        return set()
    await enter_tenant(session, COMMONS)
    found = await repository.keep_documents(session, documents)
    await enter_tenant(session, mandate_id)
    return found


def _answered(asked: Asked) -> bool:
    question = Question(asked.q)
    return asked.answered or any(question.shares_words(text, language) for text, language in asked.undecided)


def _without_secrets(asked: Asked) -> tuple[str, dict[str, Any]]:
    """The question and what it was narrowed to, which people write as freely (`tags=…`)."""
    filters = {
        name: without_secrets(value)
        if isinstance(value, str)
        else [without_secrets(one) for one in value]
        if _are_words(value)
        else value
        for name, value in asked.filters.items()
    }
    return without_secrets(asked.q), filters


def _are_words(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list | tuple) and all(
        isinstance(one, str) for one in cast("list[object]", value)
    )


def _row(asked: Asked, q: str, filters: dict[str, Any], there: set[UUID], answered: bool) -> dict[str, Any]:
    # What was found may have been erased since: then its question's words are not kept either.
    erased = any(document not in there for document in asked.document_ids)
    return {
        "id": asked.id,
        "at": asked.at,
        "origin": asked.origin,
        "agent_deployment_id": _plain(asked.agent_deployment_id),
        "user_id": asked.user_id,
        "q": None if erased else _plain(q),
        "filters": {} if erased else filters,
        "result_count": asked.result_count,
        "answered": answered,
        "top_score": asked.top_score,
        "took_ms": asked.took_ms,
    }


def _plain(text: str | None) -> str | None:
    """Without what Postgres cannot hold: NUL characters and half surrogate pairs."""
    return text and text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
