"""Entries as people write and browse them."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints

from gateway.errors import of_form
from gateway.ingestion.schemas import Outcome, Scope, ShortText
from gateway.insights.schemas import no_nul
from gateway.wire import Metadata, TagName, Wire

EmbeddingStatus = Literal["ready", "pending", "error"]
EntryType = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100), AfterValidator(no_nul)
]
Tag = Annotated[
    TagName, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), AfterValidator(no_nul)
]
Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]
Text = Annotated[str, StringConstraints(min_length=1, pattern=of_form(r"\S", "more than white space"))]


class EntryIn(Wire):
    """`type` is an open vocabulary: note, rule, pattern, reference, decision, or a word of your own."""

    title: Title
    content: Text
    type: EntryType = "note"
    tags: list[Tag] = Field(default_factory=list, max_length=200)
    scope: Scope = "personal"
    feature_instance_id: UUID | None = None
    metadata: Metadata = Field(default_factory=dict)
    neutralize: bool = False


class EntryPatch(Wire):
    """Only what is given changes. New content keeps the id and the citations; what did not change is not embedded."""

    title: Title | None = None
    content: Text | None = None
    type: EntryType | None = None
    tags: list[Tag] | None = Field(default=None, max_length=200)
    scope: Scope | None = None
    feature_instance_id: UUID | None = None
    metadata: Metadata | None = None


class EntryRow(Wire):
    """An entry in the list. `cites30d` 0 means: nobody cited it."""

    id: UUID
    title: ShortText
    type: str | None
    tags: list[str]
    scope: Scope
    feature_instance_id: UUID | None
    user_id: UUID | None
    uri: str | None
    source_kind: str
    source_type: str
    embedding_status: EmbeddingStatus
    status: str
    reason: str | None
    chunk_count: int
    revision: int
    cites30d: int = Field(serialization_alias="cites30d")
    created_at: datetime
    updated_at: datetime


class EntryOut(EntryRow):
    """`content` is what was written for those who may edit it, and the kept text for everybody else."""

    content: str | None
    metadata: dict[str, Any]


class EntryAnswer(EntryOut):
    """After a write: the entry, and the handle of what it set going."""

    document_id: UUID
    job_id: UUID | None
    outcome: Outcome


class EntryTotals(Wire):
    total: int
    ready: int
    pending: int
    error: int


class EntryPage(Wire):
    """Totals count everything under the filter, not only this page."""

    items: list[EntryRow]
    next_cursor: str | None = None
    totals: EntryTotals
