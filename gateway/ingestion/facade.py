"""The one door. Every lane – uploads, features, connectors, crawls, snapshots – enters through `request_ingestion`.

It runs inside the caller's transaction: document, job and outbox rows appear with the caller's commit or not at all.
It hashes and compares; it neither parses nor embeds. Only this module writes the idempotency columns of `document`.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.connections import repository as connections
from gateway.connections.repository import ConnectionState
from gateway.corpus import blob_repository, chunk_repository, lexicon
from gateway.corpus.blobs import BlobStore, default_blob_store
from gateway.corpus.descriptions import Descriptions
from gateway.corpus.embedders import embedding_model
from gateway.corpus.masking import placeholder_key
from gateway.corpus.secrets import contains_secret, without_secrets
from gateway.db import COMMONS, emit_on_commit, new_id, on_commit, tenant_of
from gateway.errors import ContentInvalid, NotAllowed, NotFound, TooLarge
from gateway.ingestion import ledger_repository, repository
from gateway.ingestion.hashing import byte_hash, content_hash, fingerprint
from gateway.ingestion.schemas import (
    LIVE_STATUSES,
    BlobContent,
    BytesContent,
    Content,
    IngestionHandle,
    IngestionRequest,
    IngestionStatus,
    Lane,
    ObjectsContent,
    TextContent,
)
from gateway.metrics import INGESTIONS
from gateway.settings import get_settings
from gateway.tenancy.schemas import Policy, Quotas

WRITTEN_BY_HAND = {"entry", "knowledge_piece"}
DEFAULT_MIME = {"text": "text/plain", "objects": "application/x-catchment-objects"}

ObjectKey = tuple[UUID | None, str, str, UUID | None]
MayReplace = Callable[[Row[Any]], bool]


@dataclass
class Offer:
    """A request with its content resolved to bytes and hashes."""

    request: IngestionRequest
    document_id: UUID
    form: str
    mime_type: str | None
    data: bytes | None
    sha256: bytes
    size: int
    content_hash: bytes
    fingerprint: bytes = b""

    @cached_property
    def source(self) -> repository.ObjectKey:
        return (self.request.connection_id, self.request.source_kind, self.request.source_id)

    @cached_property
    def key(self) -> ObjectKey:
        """The logical object. What is personal and came through no connection is its user's own."""
        own = self.request.connection_id is None and self.request.scope == "personal"
        return (*self.source, self.request.user_id if own else None)

    def existing(self, found: Sequence[Row[Any]]) -> Row[Any] | None:
        """Which of the source's rows this is about: the user's own or the shared one, or the other if its scope changes."""
        if self.request.connection_id is not None:
            return found[0] if found else None
        mine, personal = self.request.user_id, self.request.scope == "personal"
        ranked = [
            *(row for row in found if personal and row.scope == "personal" and row.user_id == mine),
            *(row for row in found if row.scope != "personal" and (not personal or row.user_id == mine)),
            *(row for row in found if not personal and row.scope == "personal" and row.user_id == mine),
        ]
        return ranked[0] if ranked else None

    def row(self) -> dict[str, Any]:
        described = self.request.model_dump(
            mode="json", by_alias=False, exclude={"content", "lane", "mime_type", "neutralize"}
        )
        return {
            **described,
            "id": self.document_id,
            "mime_type": self.mime_type,
            "neutralize": self.request.neutralize,
            "content_hash": self.content_hash,
            "fingerprint": self.fingerprint,
            "blob_sha256": self.sha256,
            "content_form": self.form,
            "size": self.size,
        }


def _trusted(_row: Row[Any]) -> bool:
    return True


async def request_ingestion(
    session: AsyncSession,
    request: IngestionRequest,
    *,
    blobs: BlobStore | None = None,
    may_replace: MayReplace = _trusted,
) -> IngestionHandle:
    """Asks for one object to be searchable. See `request_ingestions`."""
    return (await request_ingestions(session, [request], blobs=blobs, may_replace=may_replace))[0]


async def request_ingestions(
    session: AsyncSession,
    requests: Sequence[IngestionRequest],
    *,
    blobs: BlobStore | None = None,
    may_replace: MayReplace = _trusted,
) -> list[IngestionHandle]:
    """A batch, decided in a handful of statements whatever its size. Handles come back in the order of the requests.

    `may_replace` judges documents that are already there; who comes over HTTP is not trusted with everybody's.
    """
    store = blobs or default_blob_store()
    found = await repository.find_policy(session)
    if found is None:
        raise NotFound(f"There is no mandate {tenant_of(session)}.")
    policy = Policy.model_validate(found)
    # Not on the loop: a batch has many words.
    requests = await asyncio.to_thread(_described, requests, policy, session.info["mandate_id"])
    await _require_parents(session, requests)
    states = await connections.share_lock(session, {r.connection_id for r in requests if r.connection_id})
    fingerprints = {neutralize: _fingerprint(policy, neutralize) for neutralize in (False, True)}
    handles: dict[int, IngestionHandle] = {}
    offers: dict[ObjectKey, tuple[int, Offer]] = {}
    for index, request in enumerate(requests):
        offer = await _offer(session, request, policy, fingerprints, store)
        reason = _refusal(offer, policy, states)
        if reason:
            handles[index] = _skip(session, offer, reason)
        elif offer.key in offers:
            named = without_secrets(request.source_id)
            raise ContentInvalid(f"The batch names {request.source_kind} {named!r} twice.")
        else:
            offers[offer.key] = (index, offer)
    existing = await _existing(session, [offer for _, offer in offers.values()])
    over = await _over_quota(session, [offer for _, offer in offers.values()], existing, policy.quotas)
    welcome = [offer for _, offer in offers.values() if offer.key not in over]
    decided = await _decide(session, welcome, existing, store, states, may_replace)
    for index, offer in offers.values():
        handles[index] = _skip(session, offer, "quota") if offer.key in over else decided[offer.key]
    on_commit(session, lambda: _count(handles.values()))
    return [handles[index] for index in range(len(requests))]


async def _require_parents(session: AsyncSession, requests: Sequence[IngestionRequest]) -> None:
    """What was announced as part of a document does not come after its erasure. Of what a connection lists, the sync knows."""
    wanted = {r.parent_document_id for r in requests if r.parent_document_id and r.connection_id is None}
    gone = wanted - await repository.known_documents(session, sorted(wanted)) if wanted else set[UUID]()
    if gone:
        raise NotFound(
            f"There is no document {min(gone)} to be the parent; hand it in first, or leave it out."
        )


def _count(handles: Iterable[IngestionHandle]) -> None:
    for handle in handles:
        INGESTIONS.labels(handle.outcome).inc()


def _described(
    requests: Sequence[IngestionRequest], policy: Policy, mandate_id: UUID
) -> list[IngestionRequest]:
    """What stands about a document is masked like what stands in it."""
    secret = get_settings().secret_key
    key = placeholder_key(secret.get_secret_value() if secret else "", mandate_id)
    described: list[IngestionRequest] = []
    for request in requests:
        mandatory = request.source_kind in policy.neutralisation.mandatory_source_kinds
        words = Descriptions(
            key,
            personal_data=request.neutralize or mandatory,
            allowed=policy.neutralisation.allow_personal_data,
        )
        changed = words.masked(
            {
                "title": request.title,
                "uri": request.uri,
                "type": request.type,
                "tags": request.tags,
                "metadata": request.metadata,
            }
        )
        described.append(request.model_copy(update=changed) if changed else request)
    return described


def _check_scope(session: AsyncSession, request: IngestionRequest) -> None:
    if request.scope == "personal" and request.user_id is None:
        raise ContentInvalid("Scope personal needs a userId.")
    if request.scope == "global" and tenant_of(session) != COMMONS:
        raise ContentInvalid("Scope global is handed in in a session of the commons.")


async def _offer(
    session: AsyncSession,
    request: IngestionRequest,
    policy: Policy,
    fingerprints: dict[bool, bytes],
    store: BlobStore,
) -> Offer:
    _check_scope(session, request)
    if request.source_kind in policy.neutralisation.mandatory_source_kinds and not request.neutralize:
        request = request.model_copy(update={"neutralize": True})
    content, mime_type = request.content, request.mime_type
    if request.source_kind in WRITTEN_BY_HAND:
        await _refuse_secrets(_written(content))
    form, data, parts, size = "bytes", None, None, 0
    if isinstance(content, TextContent):
        form, data = "text", content.text.encode("utf-8", "surrogatepass")
    elif isinstance(content, BytesContent):
        data = content.data()
    elif isinstance(content, ObjectsContent):
        form = "objects"
        data = orjson.dumps(
            [item.model_dump(by_alias=True) | {"text": _unicode(item.text)} for item in content.objects]
        )
        parts = [(item.mime_type, item.text.encode("utf-8", "surrogatepass")) for item in content.objects]
    mime_type = mime_type or DEFAULT_MIME.get(form)
    if isinstance(content, BlobContent):
        sha256 = content.sha256()
        known = await blob_repository.blob_size(session, sha256)
        if known is None:
            raise NotFound(f"No blob {content.blob} was uploaded; POST it to /v1/blobs first.")
        if request.source_kind in WRITTEN_BY_HAND:
            await _refuse_secrets((await store.read(session, sha256)).decode("utf-8", "replace"))
        size = known
        digest = content_hash([(mime_type or "", sha256)])
    else:
        assert data is not None  # noqa: S101 - every other form carries its bytes
        limit = get_settings().upload_limit_bytes
        if len(data) > limit:
            raise TooLarge(f"The content has {len(data)} bytes; the limit is {limit}.")
        sha256, size = byte_hash(data), len(data)
        digest = content_hash(parts if parts is not None else [(mime_type or "", sha256)])
    return Offer(
        request,
        new_id(),
        form,
        mime_type,
        data,
        sha256,
        size,
        digest,
        fingerprints[request.neutralize],
    )


def _unicode(text: str) -> str:
    """Half a surrogate pair cannot be written as JSON; what it stood for is lost already."""
    return text.encode("utf-8", "replace").decode()


def _written(content: Content) -> str:
    if isinstance(content, TextContent):
        return content.text
    if isinstance(content, ObjectsContent):
        return "\n\n".join(item.text for item in content.objects)
    return content.data().decode("utf-8", "replace") if isinstance(content, BytesContent) else ""


async def _refuse_secrets(text: str) -> None:
    """Who writes a note can take the secret out; a file that came from elsewhere is masked instead."""
    kinds = await asyncio.to_thread(contains_secret, text)
    if kinds:
        raise ContentInvalid(
            f"The text holds a secret ({', '.join(kinds)}); take it out and send it again.", kinds=kinds
        )


def _fingerprint(policy: Policy, neutralize: bool) -> bytes:
    return fingerprint(
        model=embedding_model(get_settings().embedder),
        neutralize=neutralize,
        policy=policy.neutralisation.allow_personal_data if neutralize else None,
        extraction=policy.extraction,
    )


def _refusal(offer: Offer, policy: Policy, states: dict[UUID, ConnectionState]) -> str | None:
    """Why this may not enter, or None."""
    request, limit = offer.request, policy.quotas.document_bytes
    if request.connection_id is not None:
        connection = states.get(request.connection_id)
        if connection is None or connection.state == "revoked":
            return "revoked"
    if request.source_kind in policy.refused_source_kinds:
        return "policy"
    if limit is not None and offer.size > limit:
        return "too_large"
    return None


async def _over_quota(
    session: AsyncSession, offers: Sequence[Offer], existing: dict[ObjectKey, Row[Any]], quotas: Quotas
) -> set[ObjectKey]:
    """Those of a batch for which there is no room, in its order. A new version of what is there needs only what it grows."""
    if quotas.documents is None and quotas.bytes is None:
        return set()
    documents, size = await repository.usage(session)
    over: set[ObjectKey] = set()
    for offer in offers:
        row = existing.get(offer.key)
        new, grows = row is None, offer.size - (0 if row is None else row.size)
        too_many = quotas.documents is not None and new and documents >= quotas.documents
        too_large = quotas.bytes is not None and grows > 0 and size + grows > quotas.bytes
        if too_many or too_large:
            over.add(offer.key)
        else:
            documents, size = documents + new, size + grows
    return over


def _skip(session: AsyncSession, offer: Offer, reason: str) -> IngestionHandle:
    mandate = str(session.info["mandate_id"])
    if reason == "quota":
        emit_on_commit(session, "ingestion.quota.reached", mandateId=mandate, reason="documents or bytes")
    emit_on_commit(
        session,
        "ingestion.skipped.policy",
        mandateId=mandate,
        sourceKind=offer.request.source_kind,
        # A path says what is in a file, and no erasure reaches into a log. Who has the id can still look for it.
        sourceHash=byte_hash(offer.request.source_id.encode("utf-8", "replace")).hex()[:16],
        reason=reason,
    )
    return IngestionHandle(job_id=None, document_id=None, outcome="skipped", status="skipped", reason=reason)


async def _decide(
    session: AsyncSession,
    offers: list[Offer],
    existing: dict[ObjectKey, Row[Any]],
    store: BlobStore,
    states: dict[UUID, ConnectionState],
    may_replace: MayReplace,
) -> dict[ObjectKey, IngestionHandle]:
    fresh = [offer for offer in offers if offer.key not in existing]
    if fresh:
        await _keep_bytes(session, fresh, store)
        inserted = await repository.insert_documents(session, [offer.row() for offer in fresh])
        overtaken = [offer for offer in fresh if offer.document_id not in inserted]
        fresh = [offer for offer in fresh if offer.document_id in inserted]
        existing = existing | await _existing(session, overtaken)
    renewed: list[Offer] = []
    same: list[Offer] = []
    for offer in offers:
        row = existing.get(offer.key)
        if row is None:
            continue
        offer.document_id = row.id
        unchanged = (row.content_hash, row.fingerprint) == (offer.content_hash, offer.fingerprint)
        known = unchanged and row.status in {*LIVE_STATUSES, "indexed", "skipped"}
        if not known and not may_replace(row):
            raise NotAllowed(
                f"{offer.request.source_kind} {offer.request.source_id!r} is somebody else's here."
            )
        (same if known else renewed).append(offer)
    if renewed:
        await _keep_bytes(session, renewed, store)
        await repository.renew_documents(session, [offer.row() for offer in renewed])
        superseded = await repository.supersede_jobs(session, [offer.document_id for offer in renewed])
        for row in superseded:
            emit_on_commit(session, "ingestion.superseded", **_ids(session, row.document_id, row.id))
        await repository.add_timeline(
            session,
            [_moment(row.document_id, "superseded", job_id=row.id) for row in superseded],
        )
    revisions = {offer.key: 1 for offer in fresh} | {o.key: existing[o.key].revision + 1 for o in renewed}
    handles = await _queue(session, [*fresh, *renewed], revisions, states)
    return handles | await _duplicates(session, same, existing, may_replace)


async def _existing(session: AsyncSession, offers: list[Offer]) -> dict[ObjectKey, Row[Any]]:
    """The locked rows that these offers are about."""
    if not offers:
        return {}
    rows = await repository.lock_documents(
        session, [offer.source for offer in offers], [offer.request.user_id for offer in offers]
    )
    by_source: dict[repository.ObjectKey, list[Row[Any]]] = {}
    for row in rows:
        by_source.setdefault((row.connection_id, row.source_kind, row.source_id), []).append(row)
    found = {
        offer.key: row
        for offer in offers
        if (row := offer.existing(by_source.get(offer.source, ()))) is not None
    }
    if len({row.id for row in found.values()}) < len(found):
        raise ContentInvalid("The batch names one object twice, once as personal and once as shared.")
    return found


async def _keep_bytes(session: AsyncSession, offers: list[Offer], store: BlobStore) -> None:
    contents = {offer.sha256: offer.data for offer in offers if offer.data is not None}
    if contents:
        await store.add(session, sorted(contents.items()))


async def _queue(
    session: AsyncSession,
    offers: list[Offer],
    revisions: dict[ObjectKey, int],
    states: dict[UUID, ConnectionState],
) -> dict[ObjectKey, IngestionHandle]:
    if not offers:
        return {}
    jobs = {offer.key: new_id() for offer in offers}
    await repository.insert_jobs(
        session,
        [
            {
                "id": jobs[offer.key],
                "kind": "ingest",
                "lane": offer.request.lane,
                "document_id": offer.document_id,
                "revision": revisions[offer.key],
                "connection_id": offer.request.connection_id,
                "connection_generation": states[offer.request.connection_id].generation
                if offer.request.connection_id
                else None,
                "dedupe_key": f"ingest:{offer.document_id}",
            }
            for offer in offers
        ],
    )
    lanes = sorted({offer.request.lane for offer in offers})
    await repository.ring_on_commit(
        session, [{"id": new_id(), "topic": "bell", "lane": lane} for lane in lanes]
    )
    await repository.add_timeline(
        session, [_moment(offer.document_id, "pending", job_id=jobs[offer.key]) for offer in offers]
    )
    for offer in offers:
        emit_on_commit(
            session,
            "ingestion.queued",
            **_ids(session, offer.document_id, jobs[offer.key]),
            sourceKind=offer.request.source_kind,
            lane=offer.request.lane,
        )
    return {
        offer.key: IngestionHandle(
            job_id=jobs[offer.key], document_id=offer.document_id, outcome="queued", status="pending"
        )
        for offer in offers
    }


async def _duplicates(
    session: AsyncSession, offers: list[Offer], existing: dict[ObjectKey, Row[Any]], may_replace: MayReplace
) -> dict[ObjectKey, IngestionHandle]:
    """Same content: nothing is parsed or embedded, but what describes it is applied, if the caller may say it."""
    if not offers:
        return {}
    described = [offer.row() for offer in offers if may_replace(existing[offer.key])]
    changed = await repository.describe_documents(session, described) if described else set[UUID]()
    if changed:
        await repository.let_attachments_follow(session, changed)
        await lexicon.rename(session, list(changed))
    await repository.add_timeline(
        session, [_moment(document_id, "described") for document_id in sorted(changed)]
    )
    jobs = await repository.latest_jobs(session, [offer.document_id for offer in offers])
    handles: dict[ObjectKey, IngestionHandle] = {}
    for offer in offers:
        row, job = existing[offer.key], jobs.get(offer.document_id)
        job_id = job.id if job else None
        skipped = row.status == "skipped"
        handles[offer.key] = IngestionHandle(
            job_id=job_id,
            document_id=offer.document_id,
            outcome="skipped" if skipped else "duplicate",
            status=row.status,
            reason=row.reason if skipped else None,
        )
        emit_on_commit(
            session,
            "ingestion.skipped.duplicate",
            **_ids(session, offer.document_id, job_id),
            sourceKind=offer.request.source_kind,
        )
    return handles


def _ids(session: AsyncSession, document_id: UUID | None, job_id: UUID | None) -> dict[str, str | None]:
    return {
        "mandateId": str(session.info["mandate_id"]),
        "documentId": str(document_id) if document_id else None,
        "jobId": str(job_id) if job_id else None,
    }


def _moment(document_id: UUID, status: str, **fields: Any) -> dict[str, Any]:
    return {"id": new_id(), "document_id": document_id, "status": status, **fields}


async def get_ingestion_status(session: AsyncSession, job_id: UUID) -> IngestionStatus:
    row = await repository.find_job(session, job_id)
    if row is None:
        raise NotFound(f"There is no job {job_id}.")
    return status_of(row)


def status_of(row: Any) -> IngestionStatus:
    names = (
        "document_id",
        "kind",
        "lane",
        "status",
        "reason",
        "error",
        "attempts",
        "created_at",
        "finished_at",
    )
    return IngestionStatus(job_id=row.id, **{name: getattr(row, name) for name in names})


async def cancel_ingestion(session: AsyncSession, job_id: UUID) -> IngestionStatus:
    """Withdraws a job that has not ended; what was indexed before stays."""
    row = await repository.cancel_job(session, job_id)
    if row is not None and row.document_id is not None:
        await repository.settle_cancelled_document(session, row.document_id, row.revision)
        await repository.add_timeline(session, [_moment(row.document_id, "cancelled", job_id=row.id)])
        emit_on_commit(session, "ingestion.cancelled", **_ids(session, row.document_id, row.id))
    return await get_ingestion_status(session, job_id)


async def reindex(session: AsyncSession, document_id: UUID) -> IngestionHandle:
    """Queues the kept original once more, whatever the hashes say. A run in flight is overtaken."""
    handles = await _read_anew(session, [document_id], "interactive")
    if not handles:
        raise NotFound(f"There is no document {document_id}.")
    return handles[0]


async def reindex_outdated(session: AsyncSession, *, limit: int) -> int:
    """The same for documents that were read by an earlier version, for another model or under another policy. Returns how
    many it queued: as many as the limit when there may be more.
    """
    policy = Policy.model_validate(await repository.mandate_policy(session))
    outdated = await repository.outdated_documents(session, limit=limit, **_expected(policy))
    return len(await _read_anew(session, outdated, "backfill"))


def _expected(policy: Policy) -> dict[str, Any]:
    """How documents would be read now, and whose personal data must be masked whatever was asked for."""
    return {
        "plain": _fingerprint(policy, False),
        "masked": _fingerprint(policy, True),
        "mandatory": policy.neutralisation.mandatory_source_kinds,
    }


async def _read_anew(
    session: AsyncSession, document_ids: Sequence[UUID], lane: Lane
) -> list[IngestionHandle]:
    found = await repository.connections_behind(session, document_ids)
    states = await connections.share_lock(session, found)
    documents = await chunk_repository.lock_documents(session, document_ids)
    if not documents:
        return []
    for row in await repository.supersede_jobs(session, documents):
        emit_on_commit(session, "ingestion.superseded", **_ids(session, row.document_id, row.id))
    policy = Policy.model_validate(await repository.mandate_policy(session))
    await repository.renew_revisions(session, documents, **_expected(policy))
    jobs = [
        _reading_job(document, states.get(document.connection_id), lane) for document in documents.values()
    ]
    await repository.insert_jobs(session, jobs)
    await repository.ring_on_commit(session, [{"id": new_id(), "topic": "bell", "lane": lane}])
    await repository.add_timeline(
        session, [_moment(job["document_id"], "pending", job_id=job["id"], reason="reindex") for job in jobs]
    )
    return [
        IngestionHandle(job_id=job["id"], document_id=job["document_id"], outcome="queued", status="pending")
        for job in jobs
    ]


def _reading_job(document: Row[Any], state: ConnectionState | None, lane: Lane) -> dict[str, Any]:
    return {
        "id": new_id(),
        "kind": "ingest",
        "lane": lane,
        "document_id": document.id,
        "revision": document.revision + 1,
        "connection_id": document.connection_id,
        "connection_generation": state.generation if state else None,
        "dedupe_key": f"ingest:{document.id}",
    }


async def resume_waiting(session: AsyncSession, reason: str) -> None:
    """Wakes jobs that wait for a person's decision, such as a larger budget."""
    lanes = await ledger_repository.resume_waiting(session, reason)
    if lanes:
        await repository.ring_on_commit(
            session, [{"id": new_id(), "topic": "bell", "lane": lane} for lane in lanes]
        )
