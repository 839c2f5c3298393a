"""Runs `ingest` jobs of one mandate: a slice is parsed side by side, embedded together, stored in one transaction.

Every transaction that writes holds, in this order, the connection (is it still allowed?), the document (is this still its
newest revision?) and the job (is it still ours?). Who has lost any of them writes nothing.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
from sqlalchemy import Row
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.connections import repository as connections
from gateway.corpus import chunk_repository as chunks
from gateway.corpus import vector_repository as vectors
from gateway.corpus.blobs import BlobStore
from gateway.corpus.child import ChildFailed, ChildPool
from gateway.corpus.embedders import Embedder, EmbedderRefused
from gateway.corpus.masking import placeholder_key
from gateway.corpus.sniffing import UNKNOWN, checked_type, sniff
from gateway.crashpoints import crash_point
from gateway.db import Database, emit_on_commit, new_id, on_commit
from gateway.errors import StoreUnavailable
from gateway.ingestion import ledger_repository as ledger
from gateway.ingestion import repository as ingestion
from gateway.ingestion.facade import WRITTEN_BY_HAND
from gateway.logs import emit
from gateway.metrics import EXTRACTIONS
from gateway.settings import Settings
from gateway.tenancy.schemas import Policy
from workers import attachments
from workers.pipeline.embed import Budget, BudgetReached, EmbedStage
from workers.pipeline.parsing import ParsedDocument, parse_document
from workers.pipeline.scan import Scanner
from workers.pipeline.store import ReadyDocument, replace_chunks, store_documents

# Up to here parsed documents are gathered before they are embedded and stored together; it bounds memory too.
CHUNKS_PER_STORE = 2000

WARNINGS_KEPT = 10  # of what was left out of one file; they say how much, never what

# COPY goes past SQLAlchemy, so the driver's own errors count too.
REFUSED_BY_DATABASE = (DataError, IntegrityError, psycopg.DataError, psycopg.IntegrityError)

# The parser's word on a file that is no error of ours: the document is kept out, with the reason.
SKIPS = {"unsupported", "no_text", "needs_ocr", "archive", "media", "executable"}
# The source now says nothing: what it said before must not be found any more.
NOTHING_LEFT = {"empty", "no_text", "needs_ocr", "archive", "media", "executable"}


@dataclass(eq=False)
class Task:
    """One claimed job with its document and, once parsed, what came out. No two are the same."""

    job: Row[Any]
    document: Row[Any]
    began: float
    title: str = ""  # as it is when the document is stored; it may be renamed while it is parsed
    parsed: ParsedDocument | None = None
    embedded: int = 0

    @property
    def claim(self) -> tuple[UUID, int]:
        return (self.job.id, self.job.fence)


class IngestSlice:
    def __init__(
        self,
        db: Database,
        settings: Settings,
        embedder: Embedder,
        pool: ChildPool,
        blobs: BlobStore,
        mandate_id: UUID,
        retry: Callable[[Row[Any], Exception], Awaitable[None]],
    ) -> None:
        self.db, self.settings, self.embedder, self.pool, self.blobs = db, settings, embedder, pool, blobs
        self.mandate_id = mandate_id
        self._retry = retry
        secret = settings.secret_key.get_secret_value() if settings.secret_key else ""
        self._placeholder_key = placeholder_key(secret, mandate_id)
        self._scanner = Scanner(settings.scan_command, settings.scan_seconds)
        self.claimant = new_id()
        self._claiming = False
        self._lost: list[Task] = []

    async def run(self, jobs: Sequence[Row[Any]]) -> None:
        """Failures that concern one document end that document's job here; anything else is the runner's to classify."""
        async with self.db.tenant_session(self.mandate_id) as session:
            documents = await chunks.load_for_parsing(session, [job.document_id for job in jobs])
            policy = Policy.model_validate(await ingestion.mandate_policy(session))
        began = time.monotonic()
        tasks = [Task(job, documents[job.document_id], began) for job in jobs if job.document_id in documents]
        try:
            await self._run(tasks, policy)
        finally:
            # Claims outlive the vectors they were for until the document is stored; a failed try must not hold them.
            if self._claiming or self._lost:
                async with self.db.tenant_session(self.mandate_id) as session:
                    await vectors.release_claims(session, self.claimant)
                    if self._lost:
                        await self._collect(session, self._lost)

    async def _run(self, tasks: Sequence[Task], policy: Policy) -> None:
        group: list[Task] = []
        async for task in self._parse(tasks, policy):
            group.append(task)
            if sum(len(t.parsed.chunks) for t in group if t.parsed) >= CHUNKS_PER_STORE:
                await self._embed_and_store(group, policy)
                group = []
        if group:
            await self._embed_and_store(group, policy)

    async def renew(self, claims: Sequence[tuple[UUID, int]]) -> None:
        async with self.db.tenant_session(self.mandate_id) as session:
            await ledger.renew(session, claims, lease_seconds=self.settings.lease_seconds)
            await vectors.renew_claims(session, self.claimant, seconds=self._claim_seconds)

    @property
    def _claim_seconds(self) -> float:
        return 3 * self.settings.lease_seconds

    async def _parse(self, tasks: Sequence[Task], policy: Policy) -> AsyncIterator[Task]:
        """Parsed tasks as they come; a file that cannot be parsed costs that file."""
        gate = asyncio.Semaphore(self.settings.parser_children)

        async def one(task: Task) -> Task | None:
            async with gate:
                try:
                    task.parsed = await self._parse_one(task, policy)
                except ChildFailed as failure:
                    await self._give_up(task, failure.reason, failure.detail)
                    return None
                except StoreUnavailable:
                    raise
                except Exception as trouble:  # noqa: BLE001 - an original that cannot be had costs its document alone
                    await self._retry(task.job, trouble)
                    return None
                return task

        running = [asyncio.ensure_future(one(task)) for task in tasks]
        try:
            for finished in asyncio.as_completed(running):
                task = await finished
                if task is not None:
                    yield task
        finally:
            for future in running:
                future.cancel()

    async def _parse_one(self, task: Task, policy: Policy) -> ParsedDocument:
        document = task.document
        data: bytes | None = document.data
        if data is None:
            data = await self.blobs.read_object(self.mandate_id, document.blob_sha256)
        if not data:
            raise ChildFailed("empty", "the file has no bytes")
        await self._scanner.check(data)
        mime_type: str | None = document.mime_type
        if document.content_form == "bytes":
            if mime_type is None or mime_type == UNKNOWN:
                mime_type = await sniff(data, document.title or document.source_id)
            else:
                mime_type = await checked_type(data, mime_type)
        parsed = await parse_document(
            self.pool,
            data=data,
            mime_type=mime_type,
            file_name=document.title or document.source_id,
            content_form=document.content_form,
            language=document.language,
            policy={
                "placeholder_key": self._placeholder_key,
                "neutralize": document.neutralize,
                "allow_personal_data": policy.neutralisation.allow_personal_data,
                "extraction": policy.extraction,
            },
            uri=document.uri,
            with_attachments=attachments.may_hold(document),
        )
        EXTRACTIONS.inc()
        if parsed.secrets and document.content_form == "bytes" and document.source_kind in WRITTEN_BY_HAND:
            # What the door could read it has refused already; this was inside a file.
            raise ChildFailed("holds_secret", ", ".join(sorted(parsed.secrets)))
        return parsed

    async def _embed_and_store(self, group: list[Task], policy: Policy) -> None:
        group = await self._advance(group)
        if not group:
            return
        texts = {c.text_hash: c.text for task in group for c in _parsed(task).chunks}
        stage = EmbedStage(
            self.db,
            self.embedder,
            self.mandate_id,
            self.claimant,
            _budget(policy),
            self._claim_seconds,
        )
        self._claiming = True
        try:
            embedded = await stage.run(texts)
        except BudgetReached:
            await self._wait_for_budget(group)
            return
        except EmbedderRefused as refusal:
            # One text the service refuses must cost one document: find it by trying each alone.
            if len(group) == 1:
                await self._give_up(group[0], "embedder_refused", refusal.detail)
            else:
                for task in group:
                    await self._embed_and_store([task], policy)
            return
        for task in group:
            hashes = {chunk.text_hash for chunk in _parsed(task).chunks}
            task.embedded = len(hashes & embedded)
            embedded -= hashes
        try:
            await self._store(group, policy)
        except REFUSED_BY_DATABASE:
            # One document the database refuses must cost that one: store the others without it.
            for task in group:
                await self._store_alone(task, policy)

    async def _advance(self, group: list[Task]) -> list[Task]:
        async with self._holding(group) as (session, held):
            if not held:
                return []
            documents = [(task.document.id, task.job.revision) for task in held]
            await ledger.advance(session, [task.job.id for task in held], documents, "embedding")
            moments: list[dict[str, Any]] = []
            for task in held:
                count = len(_parsed(task).chunks)
                ids = self._ids(task)
                elapsed = round((time.monotonic() - task.began) * 1000)
                emit_on_commit(session, "ingestion.extracted", **ids, chunks=count, durationMs=elapsed)
                emit_on_commit(session, "ingestion.embedding", **ids, chunks=count)
                if secrets := _parsed(task).secrets:
                    ids = {name: ids[name] for name in ("mandateId", "documentId")}
                    emit_on_commit(session, "ingestion.secret.removed", **ids, kinds=sorted(secrets))
                detail: dict[str, Any] = {"chunks": count}
                if warnings := _parsed(task).warnings:
                    detail["warnings"] = warnings[:WARNINGS_KEPT]
                moments += [_moment(task, "extracted", detail=detail), _moment(task, "embedding")]
            await ingestion.add_timeline(session, moments)
        return held

    async def _store(self, group: list[Task], policy: Policy) -> None:
        async with self._holding(group) as (session, held):
            if held:
                await store_documents(session, self.embedder.model, [self._ready(task) for task in held])
                for task in held:
                    await self._hand_over(session, task, policy)
                    emit_on_commit(
                        session,
                        "ingestion.indexed",
                        **self._ids(task),
                        chunks=len(_parsed(task).chunks),
                        embedded=task.embedded,
                        durationMs=round((time.monotonic() - task.began) * 1000),
                    )
            await vectors.release_claims(session, self.claimant)
        self._claiming = False
        crash_point("store.after_commit")
        self._lost += [task for task in group if task not in held]

    async def _hand_over(self, session: AsyncSession, task: Task, policy: Policy) -> None:
        """What was inside the document, as documents of their own."""
        limit = self.settings.upload_limit_bytes
        inside = task.parsed.attachments if task.parsed else []
        if not inside and task.job.revision == 1:
            return  # no earlier revision can have held any
        await attachments.hand_over(
            session,
            self.blobs,
            policy,
            task.document,
            task.job.lane,
            [item for item in inside if len(item.data) <= limit],
        )

    async def _store_alone(self, task: Task, policy: Policy) -> None:
        try:
            await self._store([task], policy)
        except REFUSED_BY_DATABASE as error:
            detail = type(error.orig if isinstance(error, DBAPIError) else error).__name__
            await self._give_up(task, "rejected", f"The database refused the document: {detail}")

    @asynccontextmanager
    async def _holding(self, group: Sequence[Task]) -> AsyncGenerator[tuple[AsyncSession, list[Task]]]:
        """A transaction with the fences of these tasks taken; only tasks that may still write come back."""
        async with self.db.tenant_session(self.mandate_id) as session:
            wanted = {task.job.connection_id for task in group if task.job.connection_id}
            states = await connections.share_lock(session, wanted)
            newest = await chunks.lock_documents(session, [task.document.id for task in group])
            ours = await ledger.hold(session, [task.claim for task in group])
            held: list[Task] = []
            for task in group:
                state = states.get(task.job.connection_id)
                allowed = task.job.connection_id is None or (
                    state is not None
                    and state.state != "revoked"
                    and state.generation == task.job.connection_generation
                )
                document = newest.get(task.document.id)
                if allowed and task.job.id in ours and document and document.revision == task.job.revision:
                    task.title = document.title
                    held.append(task)
                else:
                    ids = {"mandateId": str(self.mandate_id), "jobId": str(task.job.id)}
                    on_commit(session, lambda ids=ids: emit("ledger.fence.lost", **ids))
            yield session, held

    async def _give_up(self, task: Task, reason: str, detail: str) -> None:
        """Ends one job for good: `skipped` where nothing is wrong on our side, `failed` otherwise."""
        status = "skipped" if reason in SKIPS else "failed"
        async with self._holding([task]) as (session, held):
            if not held:
                return
            if reason in NOTHING_LEFT:
                await replace_chunks(session, self.embedder.model, [self._ready(task)])
                policy = Policy.model_validate(await ingestion.mandate_policy(session))
                await self._hand_over(session, task, policy)
            await ledger.finish(
                session,
                [{"id": task.job.id, "status": status, "reason": reason, "error": detail}],
            )
            await ingestion.add_timeline(session, [_moment(task, status, reason=reason)])
            if status == "failed":
                emit_on_commit(
                    session,
                    "ingestion.failed",
                    **self._ids(task),
                    reason=reason,
                    error=detail,
                )
            else:
                emit_on_commit(
                    session,
                    "ingestion.skipped.policy",
                    mandateId=str(self.mandate_id),
                    documentId=str(task.document.id),
                    sourceKind=task.document.source_kind,
                    reason=reason,
                )

    async def _wait_for_budget(self, group: Sequence[Task]) -> None:
        async with self._holding(group) as (session, held):
            for task in held:
                # looked at again every hour; raising the budget wakes it at once
                await ledger.put_back(session, task.job.id, delay_seconds=3600, reason="budget", refund=True)
                emit_on_commit(
                    session,
                    "ingestion.budget.waiting",
                    mandateId=str(self.mandate_id),
                    jobId=str(task.job.id),
                    reason="budget",
                )
            await ingestion.add_timeline(
                session, [_moment(task, "pending", reason="budget") for task in held]
            )
            await vectors.release_claims(session, self.claimant)

    async def _collect(self, session: AsyncSession, lost: Sequence[Task]) -> None:
        """Vectors made for a revision that was overtaken serve nobody. A job that merely changed hands still needs them."""
        live = await ledger.live(session, [task.job.id for task in lost])
        ended = [task for task in lost if task.job.id not in live]
        hashes = sorted({chunk.text_hash for task in ended for chunk in _parsed(task).chunks})
        if hashes:
            await vectors.collect(session, hashes)

    def _ready(self, task: Task) -> ReadyDocument:
        parsed = task.parsed
        return ReadyDocument(
            job_id=task.job.id,
            document_id=task.document.id,
            revision=task.job.revision,
            owner_id=task.document.connection_id or task.document.data_source_id,
            title=task.title,
            text=parsed.text if parsed else "",
            language=parsed.language if parsed else (task.document.language or "en"),
            mime_type=parsed.mime_type if parsed else task.document.mime_type,
            chunks=parsed.chunks if parsed else (),
            terms=parsed.terms if parsed else (),
        )

    def _ids(self, task: Task) -> dict[str, str]:
        return {
            "mandateId": str(self.mandate_id),
            "documentId": str(task.document.id),
            "jobId": str(task.job.id),
        }


def _budget(policy: Policy) -> Budget:
    cost = policy.budget.monthly_cost
    return Budget(policy.budget.monthly_tokens, None if cost is None else Decimal(str(cost)))


def _parsed(task: Task) -> ParsedDocument:
    assert task.parsed is not None, "only parsed tasks get here"  # noqa: S101
    return task.parsed


def _moment(task: Task, status: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": new_id(),
        "document_id": task.document.id,
        "job_id": task.job.id,
        "status": status,
        **fields,
    }
