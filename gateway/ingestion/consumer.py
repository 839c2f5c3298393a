"""The one `KnowledgeIngestionConsumer`: turns domain events into ingestion, erasure or nothing.

An event is handled and removed in one transaction; a crash leaves it for the next relay. An event that cannot be used –
no id, unknown object, bad request – is logged and dropped: it must not stand before the others.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy.exc import DataError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.connections import repository as connections
from gateway.connections import service as connection_service
from gateway.corpus import blob_repository, erasure_repository
from gateway.corpus.erasure import Subject, begin_erasure, enqueue_erasure
from gateway.db import Database, emit_on_commit, tenant_of
from gateway.errors import CatchmentError, EventInvalid, LegalHold
from gateway.ingestion import ledger_repository as ledger
from gateway.ingestion import repository
from gateway.ingestion import snapshot_service as snapshots
from gateway.ingestion.event_schemas import (
    ConnectionEstablished,
    ConnectionRevoked,
    FeatureConfigChanged,
    FileDeleted,
    MandateUpdated,
    MembershipChanged,
    ProfileUpdated,
)
from gateway.ingestion.facade import request_ingestion
from gateway.ingestion.schemas import BlobContent, IngestionRequest

Handler = Callable[[AsyncSession, dict[str, Any]], Awaitable[None]]


class KnowledgeIngestionConsumer:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._handlers: dict[str, Handler] = {
            "FileCommitted": self._file_committed,
            "FileDeleted": self._file_deleted,
            "ConnectionEstablished": self._connection_established,
            "ConnectionRevoked": self._connection_revoked,
            "ProfileUpdated": self._profile_updated,
            "MembershipChanged": self._membership_changed,
            "MandateUpdated": self._mandate_updated,
            "FeatureConfigChanged": self._feature_config_changed,
        }

    async def consume(self, mandate_id: UUID, event_ids: Sequence[UUID]) -> None:
        for event_id in event_ids:
            async with self._db.tenant_session(mandate_id) as session:
                for event in await ledger.take_events(session, [event_id]):
                    await self._handle(session, event.payload)
                    await ledger.delete_outbox(session, [event.id])

    async def _handle(self, session: AsyncSession, event: dict[str, Any]) -> None:
        handler = self._handlers.get(event["type"])
        try:
            if handler is None:
                raise EventInvalid("nothing subscribes to this event")
            async with session.begin_nested():
                await handler(session, event["payload"])
        except (CatchmentError, ValidationError, DataError, IntegrityError) as error:
            if isinstance(error, CatchmentError) and error.retryable:
                raise
            reason = error.detail if isinstance(error, CatchmentError) else "the payload is not understood"
            _ignored(session, event["type"], reason)

    async def _file_committed(self, session: AsyncSession, payload: dict[str, Any]) -> None:
        request = IngestionRequest.model_validate(payload)
        await request_ingestion(session, request)
        if isinstance(request.content, BlobContent):  # whose upload it was, an event does not say
            await blob_repository.use_uploads(session, request.content.sha256(), None)

    async def _file_deleted(self, session: AsyncSession, payload: dict[str, Any]) -> None:
        gone = FileDeleted.model_validate(payload)
        if gone.data_source_id is not None:
            await self._erase(session, "source", gone.data_source_id, "FileDeleted")
        if gone.source_id is None:
            return
        key = (gone.connection_id, gone.source_kind, gone.source_id)
        for document_id in await repository.documents_of_source(session, key, gone.user_id):
            await self._erase(session, "document", document_id, "FileDeleted")

    async def _erase(self, session: AsyncSession, subject: Subject, subject_id: UUID, reason: str) -> None:
        await enqueue_erasure(session, await begin_erasure(session, subject, str(subject_id), reason))

    async def _connection_established(self, session: AsyncSession, payload: dict[str, Any]) -> None:
        await connection_service.welcome(session, ConnectionEstablished.model_validate(payload).connection_id)

    async def _connection_revoked(self, session: AsyncSession, payload: dict[str, Any]) -> None:
        revoked = ConnectionRevoked.model_validate(payload)
        await self._end_connection(session, revoked.connection_id, revoked.reason or "revoked")

    async def _profile_updated(self, session: AsyncSession, payload: dict[str, Any]) -> None:
        updated = ProfileUpdated.model_validate(payload)
        if not await snapshots.refresh(session, "profile_snapshot", [updated.user_id], updated.preferences):
            raise EventInvalid("there is no such member")

    async def _membership_changed(self, session: AsyncSession, payload: dict[str, Any]) -> None:
        """Who leaves takes their connections along, and all that is theirs if that is said. Who is a member with which
        role is for our own tables to say.
        """
        changed = MembershipChanged.model_validate(payload)
        known = await snapshots.refresh(session, "profile_snapshot", [changed.user_id])
        await self._refresh_mandate(session)
        if changed.role is not None:
            if not known:
                raise EventInvalid("there is no such member")
            return
        if changed.erase:
            try:
                await self._erase(session, "user", changed.user_id, "MembershipChanged")
            except LegalHold as held:  # then they are let go without it, as below
                _ignored(session, "MembershipChanged", held.detail)
            else:
                return
        for connection_id in await erasure_repository.connections_of(session, "user", str(changed.user_id)):
            await self._end_connection(session, connection_id, "member left")

    async def _mandate_updated(self, session: AsyncSession, payload: dict[str, Any]) -> None:
        updated = MandateUpdated.model_validate(payload)
        if updated.erase:
            await self._erase(session, "mandate", tenant_of(session), "MandateUpdated")
            return
        await self._refresh_mandate(session)
        if updated.everything:
            await snapshots.enqueue_all(session)

    async def _feature_config_changed(self, session: AsyncSession, payload: dict[str, Any]) -> None:
        """`everything`: the labels stand in the snapshots of others too."""
        changed = FeatureConfigChanged.model_validate(payload)
        instance_id = changed.feature_instance_id
        known = await snapshots.refresh(session, "feature_snapshot", [instance_id], changed.words())
        if changed.everything:
            await self._refresh_mandate(session)
            await snapshots.enqueue_all(session)
        elif not known:
            raise EventInvalid("there is no such feature instance")

    async def _refresh_mandate(self, session: AsyncSession) -> None:
        await snapshots.refresh(session, "mandate_snapshot", [tenant_of(session)])

    async def _end_connection(self, session: AsyncSession, connection_id: UUID, reason: str) -> None:
        row = await connections.find(session, connection_id)
        if row is not None and row.purged_at is not None:
            return  # an event may come twice
        named = f"{reason}:{row.authority if row else ''}"
        try:
            receipt_id = await begin_erasure(session, "connection", str(connection_id), named)
        except LegalHold:
            # Nothing is erased while the hold lasts, but from here on nothing flows in and nothing is served.
            await connections.revoke(session, connection_id)
            return
        await enqueue_erasure(session, receipt_id)


def _ignored(session: AsyncSession, event_type: str, reason: str) -> None:
    emit_on_commit(
        session,
        "ingestion.event.ignored",
        mandateId=str(session.info["mandate_id"]),
        type=event_type,
        reason=reason,
    )
