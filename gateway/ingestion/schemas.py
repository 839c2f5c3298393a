"""`IngestionRequest` in, `IngestionHandle` out: the contract every lane speaks."""

import base64
import binascii
from datetime import datetime
from typing import Annotated, Any, Literal, get_args
from uuid import UUID

from pydantic import Discriminator, Field, StringConstraints, Tag, field_validator, model_validator

from gateway.errors import of_form
from gateway.wire import JsonObject, Metadata, TagName, Wire, storable

SourceKind = Literal[
    "upload", "paste", "entry", "feature_record", "web_page", "repo_file", "mcp_resource", "sharepoint_item",
    "onedrive_item", "outlook_message", "outlook_attachment", "outlook_event", "teams_message", "drive_file",
    "gmail_message", "gmail_attachment", "google_event", "clickup_task", "clickup_doc", "connection_summary",
    "profile_snapshot", "mandate_snapshot", "feature_snapshot", "knowledge_piece",
]  # fmt: skip
SOURCE_KINDS: tuple[str, ...] = get_args(SourceKind)

Scope = Literal["personal", "featureInstance", "mandate", "global"]
Lane = Literal["interactive", "delta", "backfill"]
Outcome = Literal["queued", "duplicate", "skipped"]
Status = Literal[
    "pending", "extracted", "embedding", "indexed", "failed", "skipped", "superseded", "cancelled"
]
LIVE_STATUSES = ("pending", "extracted", "embedding")

ShortText = Annotated[str, StringConstraints(max_length=2000)]
Identifier = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
_MIME_TYPE = of_form(r"^[\w.+-]+/[\w.+-]+(\s*;.*)?$", "a media type such as text/plain")
_BLOB = of_form(r"^sha256:[0-9a-f]{64}$", "sha256: and 64 hexadecimal digits, as POST /v1/blobs answers")
_LANGUAGE = of_form(r"^[a-z]{2}$", "a language of two letters, such as en")

MimeType = Annotated[str, StringConstraints(to_lower=True, pattern=_MIME_TYPE, max_length=200)]


class TextContent(Wire):
    text: str


class BytesContent(Wire):
    base64: str

    @field_validator("base64")
    @classmethod
    def _decodes(cls, value: str) -> str:
        try:
            base64.b64decode(value, validate=True)
        except binascii.Error as error:
            raise ValueError("base64 does not decode") from error
        return value

    def data(self) -> bytes:
        return base64.b64decode(self.base64)


class BlobContent(Wire):
    blob: Annotated[str, StringConstraints(pattern=_BLOB)]

    def sha256(self) -> bytes:
        return bytes.fromhex(self.blob.removeprefix("sha256:"))


# What a locator of each kind says at least; where in the text it stands is ours to add.
_LOCATORS: dict[str, dict[str, type]] = {
    "pdf": {"page": int},
    "web": {},
    "code": {"path": str},
    "ticket": {"ticketId": str},
    "mail": {},
    "office": {},
    "text": {},
}


class ContentObject(Wire):
    text: str
    mime_type: MimeType = "text/plain"
    locator: JsonObject | None = None

    @field_validator("locator")
    @classmethod
    def _leads_somewhere(cls, value: JsonObject | None) -> JsonObject | None:
        kind = (value or {}).get("kind", "text")
        needed = _LOCATORS.get(kind) if isinstance(kind, str) else None
        if needed is None:
            raise ValueError(f"kind is one of {', '.join(_LOCATORS)}")
        said = value or {}
        missing = [name for name, wanted in needed.items() if not isinstance(said.get(name), wanted)]
        if missing:
            raise ValueError(f"a locator of kind {kind} needs its {missing[0]}")
        return value


class ObjectsContent(Wire):
    objects: list[ContentObject] = Field(max_length=100_000)


_FORMS = ("text", "base64", "blob", "objects")


def _form_of(content: Any) -> str | None:
    """Which form is meant, so that what is wrong is said of that one and not of each in turn."""
    if isinstance(content, dict):
        return next((form for form in _FORMS if form in content), None)
    return next((form for form in _FORMS if hasattr(content, form)), None)


Content = Annotated[
    Annotated[TextContent, Tag("text")]
    | Annotated[BytesContent, Tag("base64")]
    | Annotated[BlobContent, Tag("blob")]
    | Annotated[ObjectsContent, Tag("objects")],
    Discriminator(
        _form_of,
        custom_error_type="content_form",
        custom_error_message="One of text, base64, blob and objects is needed",
    ),
]


class IngestionRequest(Wire):
    source_kind: SourceKind
    source_id: Identifier
    content: Content
    content_version: ShortText | None = None
    title: ShortText = ""
    uri: Annotated[str, StringConstraints(max_length=8000)] | None = None
    mime_type: MimeType | None = None
    language: Annotated[str, StringConstraints(pattern=_LANGUAGE)] | None = None
    type: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = None
    tags: list[TagName] = Field(default_factory=list, max_length=200)
    metadata: Metadata = Field(default_factory=dict)
    feature_code: ShortText | None = None
    scope: Scope = "personal"
    user_id: UUID | None = None
    feature_instance_id: UUID | None = None
    connection_id: UUID | None = None
    data_source_id: UUID | None = None
    parent_document_id: UUID | None = None
    neutralize: bool = False
    lane: Lane = "interactive"

    @field_validator("title", "source_id", "uri", "content_version", "type", "tags", "feature_code")
    @classmethod
    def _storable(cls, value: Any) -> Any:
        return storable(value)

    @model_validator(mode="after")
    def _scope_is_whole(self) -> "IngestionRequest":
        if self.scope == "featureInstance" and self.feature_instance_id is None:
            raise ValueError("scope featureInstance needs featureInstanceId")
        return self


class IngestionHandle(Wire):
    job_id: UUID | None
    document_id: UUID | None
    outcome: Outcome
    status: Status
    reason: str | None = None


class IngestionStatus(Wire):
    """What `getIngestionStatus` answers."""

    job_id: UUID
    document_id: UUID | None
    kind: str
    lane: Lane
    status: Status
    reason: str | None
    error: str | None
    attempts: int
    created_at: datetime
    finished_at: datetime | None
