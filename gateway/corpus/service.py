"""What readers and editors of the corpus may do. Reads are scoped by the repository; writes are judged here."""

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.connections import repository as connections
from gateway.connections.sync_why_service import explain
from gateway.corpus import lexicon, repository
from gateway.corpus.context_repository import SNAPSHOT_KINDS
from gateway.corpus.descriptions import Descriptions
from gateway.corpus.masking import placeholder_key
from gateway.corpus.schemas import ChunkOut, DocumentOut, DocumentPatch, MomentOut, ReceiptOut, WhyOut
from gateway.db import COMMONS, Database, tenant_of
from gateway.errors import ContentInvalid, NotAllowed, NotFound
from gateway.ingestion import repository as ingestion
from gateway.ingestion.schemas import IngestionRequest
from gateway.settings import get_settings
from gateway.tenancy import repository as tenancy
from gateway.tenancy.principal import Principal
from gateway.tenancy.schemas import Policy

_WHY = {
    "indexed": "It is indexed and searchable.",
    "pending": "It is queued and waits for a worker.",
    "extracted": "It was parsed and is about to be embedded.",
    "embedding": "It is being embedded.",
    "cancelled": "Its ingestion was cancelled; send it again to index it.",
}
REASON_SENTENCES = {
    "budget": "The mandate's embedding budget is used up; raise it in the policy and it goes on by itself.",
    "unsupported": "Its format is not supported.",
    "no_text": "It holds no text.",
    "needs_ocr": "It is a picture or a scan; install an OCR engine on the worker to read it.",
    "archive": "Archives are not supported; unpack it and hand in what is inside.",
    "media": "Films and recordings are not supported.",
    "executable": "Programs are not supported.",
    "encrypted": "It is encrypted; upload it without a password.",
    "damaged": "It is damaged and cannot be read; upload a sound copy.",
    "empty": "It is empty.",
    "too_large": "It is too large to parse within the limits.",
    "too_slow": "Parsing it took longer than allowed.",
    "crashed": "The parser crashed on it.",
    "output_limit": "It unpacks to more text than allowed.",
    "holds_secret": "It holds a secret, which a note must not; take it out and send it again.",
    "infected": "The scanner refused it as infected; its original is not handed out.",
    "poison": "It killed the worker several times and was set aside; retry it with reindex.",
    "attempts": "It failed on every try; see the error and retry it with reindex.",
    "embedder_refused": "The embedding service refused its text.",
}


def home_of(scope: str, principal: Principal) -> UUID:
    """Where something of this scope is kept: what is for everybody belongs to the commons."""
    return COMMONS if scope == "global" else principal.mandate_id


def in_commons(principal: Principal) -> Principal:
    """The same caller among what is everybody's: operators look after it, everybody else reads it."""
    if "operator" in principal.scopes:
        return replace(principal, mandate_id=COMMONS, role="admin", scopes=principal.scopes | {"admin"})
    return replace(principal, mandate_id=COMMONS, role="member", scopes=principal.scopes & {"read"})


async def caller_at(
    db: Database, document_id: UUID, principal: Principal, *, writing: bool = False
) -> Principal:
    """The caller in the mandate that holds the document: their own or, for what is everybody's, the commons."""
    for who in (principal, in_commons(principal)):
        async with db.tenant_session(who.mandate_id) as session:
            found = await repository.find_document(session, document_id, who.user_id)
        if found is not None and writing and who.mandate_id != principal.mandate_id and not who.is_admin:
            raise NotAllowed("What is for everybody is changed by operators.")
        if found is not None:
            return who
    raise NotFound(f"There is no document {document_id} here.")


async def readable(session: AsyncSession, document_id: UUID, principal: Principal) -> Row[Any]:
    row = await repository.find_document(session, document_id, principal.user_id)
    if row is None:
        raise NotFound(f"There is no document {document_id} here.")
    return row


async def editable(session: AsyncSession, document_id: UUID, principal: Principal) -> Row[Any]:
    """Its own user may change it, and an admin what belongs to everybody."""
    row = await readable(session, document_id, principal)
    if not principal.is_admin and row.user_id != principal.user_id:
        raise NotAllowed("Only its owner or an admin may change this document.")
    return row


def may_replace(row: Row[Any], principal: Principal) -> bool:
    """Whose content it may hand in anew. What is shared and kept by a service stays the service's, whoever it acts for."""
    if principal.is_admin or row.user_id == principal.user_id:
        return True
    return principal.service is not None and row.scope != "personal"


def document_out(row: Row[Any]) -> DocumentOut:
    fields = {name: getattr(row, name) for name in DocumentOut.model_fields if name != "content_hash"}
    return DocumentOut(**fields, content_hash=row.content_hash.hex())


def chunk_out(row: Row[Any]) -> ChunkOut:
    fields = {name: getattr(row, name) for name in ChunkOut.model_fields if name != "content_hash"}
    return ChunkOut(**fields, content_hash=row.text_hash.hex())


def moment_out(row: Row[Any]) -> MomentOut:
    return MomentOut(**{name: getattr(row, name) for name in MomentOut.model_fields})


def receipt_out(row: Row[Any]) -> ReceiptOut:
    return ReceiptOut(**{name: getattr(row, name) for name in ReceiptOut.model_fields})


async def describe(session: AsyncSession, row: Row[Any], patch: DocumentPatch, principal: Principal) -> None:
    fields = {
        name: value for name, value in patch.model_dump(exclude_unset=True).items() if value is not None
    }
    scope = fields.get("scope", row.scope)
    if "global" in {scope, row.scope} and scope != row.scope:
        raise NotAllowed(
            "What is for everybody is handed in as such, by an operator; a document does not move there."
        )
    if scope == "featureInstance":
        instance = fields.get("feature_instance_id", row.feature_instance_id)
        if instance is None:
            raise ContentInvalid("Scope featureInstance needs a featureInstanceId.")
        await _require_feature_member(session, instance, principal)
    if scope == "personal" and row.user_id is None:
        raise NotAllowed("A document without a user cannot become personal.")
    if scope == "personal" and row.user_id != principal.user_id:
        raise NotAllowed("Only its owner may make a document personal.")
    fields |= await _masked(session, row, fields)
    if fields:
        await repository.update_description(session, row.id, fields)
    if "title" in fields:
        await lexicon.rename(session, [row.id])
    if fields.keys() & {"scope", "feature_instance_id"}:
        await ingestion.let_attachments_follow(session, [row.id])


async def _masked(session: AsyncSession, row: Row[Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Those of the fields that lose something, as they are kept: what stands about a document is masked like its text."""
    policy = Policy.model_validate(await ingestion.mandate_policy(session))
    secret = get_settings().secret_key
    words = Descriptions(
        placeholder_key(secret.get_secret_value() if secret else "", tenant_of(session)),
        personal_data=row.neutralize,
        allowed=policy.neutralisation.allow_personal_data,
    )
    return await asyncio.to_thread(words.masked, fields)


async def authorise(
    session: AsyncSession, request: IngestionRequest, principal: Principal
) -> IngestionRequest:
    """What a caller over HTTP may hand in, with what it leaves out filled in."""
    if request.scope == "global":
        if "operator" not in principal.scopes:
            raise NotAllowed("Only an operator writes to the commons.")
        # Nobody's in particular: whose hand it came from is not for every mandate to read.
        return request.model_copy(
            update={
                "user_id": None,
                "connection_id": None,
                "data_source_id": None,
                "feature_instance_id": None,
            }
        )
    if request.scope == "featureInstance":
        await _require_feature_member(session, request.feature_instance_id, principal)
    if request.user_id is not None and request.user_id != principal.user_id and not principal.is_admin:
        raise NotAllowed(
            "Only an admin, or an act_as key with X-Act-As-User, may hand in content for another user."
        )
    await _require_company(session, request, principal)
    if request.connection_id is not None and not principal.is_admin:
        states = await connections.share_lock(session, [request.connection_id])
        held = states.get(request.connection_id)
        # One that is gone is the façade's to refuse: it was skipped, and says why.
        if held is not None and held.state != "revoked" and held.user_id != principal.user_id:
            raise NotFound(f"You have no connection {request.connection_id}.")
    if request.user_id is None and principal.user_id is not None:
        return request.model_copy(update={"user_id": principal.user_id})
    return request


async def _require_company(session: AsyncSession, request: IngestionRequest, principal: Principal) -> None:
    """Whom it is for and what it hangs on are there; what stands first in everybody's context is not a member's to say."""
    own_profile = request.source_kind == "profile_snapshot" and request.scope == "personal"
    trusted = principal.is_admin or principal.service is not None
    if request.source_kind in SNAPSHOT_KINDS and not own_profile and not trusted:
        raise NotAllowed("Snapshots that others are shown are handed in by admins and services.")
    owner = request.user_id
    if owner is not None and owner != principal.user_id and await tenancy.user(session, owner) is None:
        raise NotFound(f"There is no user {owner}.")
    if request.parent_document_id is not None:
        await readable(session, request.parent_document_id, principal)


async def _require_feature_member(session: AsyncSession, instance: UUID | None, principal: Principal) -> None:
    if principal.is_admin:
        if instance is None or await tenancy.feature_instance(session, instance) is None:
            raise NotFound(f"There is no feature instance {instance}.")
        return
    if (
        instance is None
        or principal.user_id is None
        or not await repository.is_feature_member(session, instance, principal.user_id)
    ):
        raise NotAllowed("Only members of the feature instance may write to it.")


async def _never_known(session: AsyncSession) -> str:
    """Of what is refused at the door, and of mail too old for a connection to list, there is no row to answer from."""
    policy = Policy.model_validate(await ingestion.mandate_policy(session))
    window = min(policy.mail.window_days, policy.quotas.days or policy.mail.window_days)
    return (
        "Nothing with this id is known: it was never handed in or listed, was refused as it came (by a quota, the policy or its "
        "size; the answer to the request said so), or you may not see it. "
        f"Mail older than a connection looks back is not listed; where it says nothing else, that is {window} days."
    )


async def why(session: AsyncSession, external_id: str, principal: Principal) -> WhyOut:
    row = await repository.find_by_source_id(session, external_id, principal.user_id)
    items = await explain(session, external_id, principal)
    if row is None and items:
        return WhyOut(external_id=external_id, found=True, answer=items[0].why, items=items)
    if row is None:
        return WhyOut(external_id=external_id, found=False, answer=await _never_known(session))
    answer = _WHY.get(row.status, "")
    if row.reason:
        answer = f"{answer} {REASON_SENTENCES.get(row.reason, f'Reason: {row.reason}.')}".strip()
    moments = [moment_out(moment) for moment in await repository.document_timeline(session, row.id)]
    return WhyOut(
        external_id=external_id,
        found=True,
        answer=answer,
        document=document_out(row),
        timeline=moments,
        items=items,
    )
