"""Documents, chunks and receipts as they appear over HTTP."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, StrictBool, StringConstraints, computed_field, model_validator

from gateway.connections.sync_schemas import ItemOut
from gateway.ingestion.schemas import Scope, ShortText
from gateway.wire import Metadata, TagName, Wire


class DocumentOut(Wire):
    id: UUID
    source_kind: str
    source_id: str
    title: str
    uri: str | None
    mime_type: str | None
    language: str | None
    type: str | None
    tags: list[str]
    metadata: dict[str, Any]
    feature_code: str | None
    scope: Scope
    user_id: UUID | None
    feature_instance_id: UUID | None
    connection_id: UUID | None
    data_source_id: UUID | None
    parent_document_id: UUID | None
    content_version: str | None
    content_hash: str
    revision: int
    size: int
    status: str
    reason: str | None
    indexed_revision: int | None
    indexed_at: datetime | None
    verified_at: datetime | None
    chunk_count: int
    created_at: datetime
    updated_at: datetime


class DocumentPatch(Wire):
    """What may change without new content. The id, the chunks and the vectors stay."""

    title: ShortText | None = None
    uri: Annotated[str, StringConstraints(max_length=8000)] | None = None
    type: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = None
    tags: list[TagName] | None = None
    metadata: Metadata | None = None
    scope: Scope | None = None
    feature_instance_id: UUID | None = None


class ReindexOut(Wire):
    queued: int
    more: bool = Field(description="there may be more: ask again")


class ChunkOut(Wire):
    id: UUID
    ordinal: int
    text: str
    content_hash: str
    locator: dict[str, Any]
    heading_path: str
    token_count: int
    language: str
    model: str


class MomentOut(Wire):
    at: datetime
    status: str
    reason: str | None
    job_id: UUID | None
    detail: dict[str, Any]


class ReceiptOut(Wire):
    id: UUID
    subject: str
    subject_id: str
    status: str
    held: bool = Field(description="a legal hold came after it: what is left stays until the hold is lifted")
    reason: str
    counts: dict[str, int]
    created_at: datetime
    finished_at: datetime | None

    @computed_field(
        description="false of one that is done: nothing was there, as for an id that nothing ever had"
    )
    @property
    def found(self) -> bool:
        return any(count for store, count in self.counts.items() if store not in _LEFTOVERS)


# What an erasure tidies up on its way, whoever left it behind.
_LEFTOVERS = {"vector", "object"}


class ErasureIn(Wire):
    """Exactly one of the four says what to erase."""

    user_id: UUID | None = None
    document_id: UUID | None = None
    source_id: UUID | None = None
    mandate: StrictBool = False  # what cannot be undone is not guessed at

    @model_validator(mode="after")
    def _exactly_one(self) -> "ErasureIn":
        if (
            sum(
                (
                    self.user_id is not None,
                    self.document_id is not None,
                    self.source_id is not None,
                    self.mandate,
                )
            )
            != 1
        ):
            raise ValueError("name exactly one of userId, documentId, sourceId, mandate")
        return self


class BlobOut(Wire):
    blob: str = Field(description="refer to it as content {'blob': …}")
    size: int
    mime_type: str


class WhyOut(Wire):
    """Why something is, or is not, in the corpus."""

    external_id: str
    found: bool
    answer: str
    document: DocumentOut | None = None
    timeline: list[MomentOut] = Field(default_factory=list[MomentOut])
    items: list[ItemOut] = Field(default_factory=list[ItemOut], description="at vendors, by id or name")
