"""Files inside a document become documents of their own: they enter by the one door, in the transaction that stores the
document they came in, and leave when a new revision no longer holds them.
"""

import base64
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus import chunk_repository as chunks
from gateway.corpus.blobs import BlobStore
from gateway.corpus.erasure import begin_erasure, enqueue_erasure, take_back
from gateway.ingestion.facade import request_ingestions
from gateway.ingestion.schemas import IngestionRequest
from gateway.tenancy.schemas import Policy
from workers.pipeline.extracted import Attachment

REMOVED = "attachment_removed"
DEEPEST = 3  # a message in a message in a message; what it holds is named, not opened
_DEPTH = "attachmentDepth"
_KINDS = {"outlook_message": "outlook_attachment", "gmail_message": "gmail_attachment"}
_LONGEST_PARENT = 1_800
_LONGEST_TITLE = 500


def may_hold(document: Row[Any]) -> bool:
    """Whether what is inside this document may still become documents."""
    return depth_of(document) < DEEPEST


def depth_of(document: Row[Any]) -> int:
    depth: Any = (document.metadata or {}).get(_DEPTH)
    return depth if isinstance(depth, int) and depth > 0 else 0


async def hand_over(
    session: AsyncSession,
    blobs: BlobStore,
    policy: Policy,
    document: Row[Any],
    lane: str,
    attachments: Sequence[Attachment],
) -> None:
    """Asks for every attachment; erases those of an earlier revision that are no longer there.

    One whose kind has had its time since the document came in stays away: reading the document again does not bring it back.
    """
    prefix = _prefix(document.source_id)
    requests = [_request(document, lane, prefix, index, item) for index, item in enumerate(attachments)]
    requests = [request for request in requests if not _outlived(document, request, policy)]
    if requests:
        await request_ingestions(session, requests, blobs=blobs)
    before = await chunks.attachments_of(session, document.id, prefix)
    there = {request.source_id for request in requests}
    await take_back(session, [before[source_id] for source_id in sorted(before.keys() & there)], REMOVED)
    for source_id in sorted(before.keys() - there):
        # Nobody says it again: under legal hold it waits for its end.
        receipt_id = await begin_erasure(session, "document", str(before[source_id]), REMOVED, patient=True)
        await enqueue_erasure(session, receipt_id)


def _outlived(document: Row[Any], request: IngestionRequest, policy: Policy) -> bool:
    days = policy.retention_days.get(request.source_kind)
    if days is None or policy.legal_hold:
        return False
    return document.created_at < datetime.now(UTC) - timedelta(days=days)


def _request(
    document: Row[Any], lane: str, prefix: str, index: int, attachment: Attachment
) -> IngestionRequest:
    name = attachment.name if attachment.title is None else attachment.title
    name = "".join(letter for letter in name if letter.isprintable()).strip() or "attachment"
    digest = hashlib.sha256(attachment.name.encode("utf-8", "replace")).hexdigest()[:16]
    return IngestionRequest.model_validate(
        {
            "source_kind": _KINDS.get(document.source_kind, document.source_kind),
            "source_id": f"{prefix}{index}-{digest}",
            "content": {"base64": base64.b64encode(attachment.data).decode("ascii")},
            "title": name[:_LONGEST_TITLE],
            "uri": document.uri,
            "tags": document.tags,
            "metadata": {_DEPTH: depth_of(document) + 1},
            "feature_code": document.feature_code,
            "scope": document.scope,
            "user_id": document.user_id,
            "feature_instance_id": document.feature_instance_id,
            "connection_id": document.connection_id,
            "data_source_id": document.data_source_id,
            "parent_document_id": document.id,
            "neutralize": document.neutralize,
            "lane": lane,
        }
    )


def _prefix(source_id: str) -> str:
    if len(source_id) > _LONGEST_PARENT:
        source_id = f"sha256:{hashlib.sha256(source_id.encode('utf-8', 'replace')).hexdigest()}"
    return f"{source_id}#attachment/"
