"""From a vendor's item to a request at the one door, and to a row of the ledger."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy import Row

from connectors.kit.contract import Item, Part
from connectors.kit.policy import SyncPolicy
from gateway.ingestion.schemas import BlobContent, ContentObject, IngestionRequest, ObjectsContent
from gateway.wire import METADATA_BYTES, json_size

_MIME = re.compile(r"^[\w.+-]+/[\w.+-]+(\s*;.*)?$")
_LONGEST = 2000  # of names and ids, as the façade takes them


def cleaned(value: Any) -> Any:
    """What every store can hold: no NUL, no half of a surrogate pair, however deep."""
    if isinstance(value, str):
        return value.replace("\x00", "").encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {str(cleaned(key)): cleaned(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [cleaned(item) for item in cast("Sequence[Any]", value)]
    return value


def ledger_row(
    item: Item,
    *,
    state: str,
    reason: str | None,
    urgent: bool,
    generation: int,
    with_parent: bool = False,
) -> dict[str, Any]:
    return cleaned(
        {
            "external_id": item.external_id,
            "source_kind": item.source_kind,
            "name": item.name,
            "container_id": item.container_id,
            "parent_id": item.parent_id,
            "path": item.path,
            "uri": item.uri,
            "mime_type": item.mime_type,
            "size": item.size,
            "version": item.version,
            "modified_at": item.modified_at.isoformat() if item.modified_at else None,
            "metadata": item.metadata,
            "handle": item.handle,
            "state": state,
            "reason": reason,
            "urgent": urgent,
            "with_parent": with_parent,
            "with_listing": item.parts is not None,
            "generation": generation,
        }
    )


def item_of(row: Row[Any]) -> Item:
    """The item as it was listed, for `fetch`."""
    return Item(
        external_id=row.external_id,
        source_kind=row.source_kind,
        name=row.name,
        container_id=row.container_id,
        version=row.version,
        parent_id=row.parent_id,
        path=row.path,
        uri=row.uri,
        mime_type=row.mime_type,
        size=row.size,
        modified_at=row.modified_at,
        metadata=row.described,
        handle=row.handle,
    )


def _within(metadata: dict[str, Any]) -> dict[str, Any]:
    """As much as the façade takes: of a mail to a thousand people the longest list goes, not the mail."""
    while json_size(metadata) > METADATA_BYTES:
        longest = max(metadata, key=lambda name: json_size(metadata[name]))
        metadata = {name: value for name, value in metadata.items() if name != longest}
    return metadata


@dataclass(frozen=True)
class Sender:
    """What every request of one data source has in common."""

    source: Row[Any]
    policy: SyncPolicy

    def describe(self, item: Item, parent: UUID | None) -> dict[str, Any]:
        """Everything but the content."""
        metadata = {**item.metadata, "path": item.path, "container": item.container_id}
        if item.modified_at is not None:
            metadata.setdefault("modifiedAt", item.modified_at.isoformat())
        tags = [tag for tag in item.metadata.get("tags", ()) if isinstance(tag, str) and 0 < len(tag) <= 200]
        shared = self.policy.share_into_mandate or self.source.scope == "mandate"
        return cleaned(
            {
                "title": item.name[:_LONGEST],
                "uri": item.uri[:8000] if item.uri else None,
                "mime_type": item.mime_type if item.mime_type and _MIME.match(item.mime_type) else None,
                "tags": tags[:200],
                "metadata": _within(cleaned(metadata)),
                "feature_code": self.source.feature_code,
                "scope": "mandate" if shared else "personal",
            }
        ) | {
            "user_id": self.source.connection_user or self.source.user_id,
            "data_source_id": self.source.id,
            "parent_document_id": parent,
            "content_version": item.version[:_LONGEST] if item.version else None,
        }

    def description_row(self, item: Item, document_id: UUID, parent: UUID | None) -> dict[str, Any]:
        """For a document whose content is known to be unchanged."""
        described = self.describe(item, parent)
        return {
            name: str(value) if isinstance(value, UUID) else value for name, value in described.items()
        } | {
            "id": str(document_id),
            "language": None,
            "type": None,
            "feature_instance_id": None,
        }

    def request(
        self, item: Item, content: Any, *, parent: UUID | None, urgent: bool
    ) -> IngestionRequest | None:
        """None if the façade could never take it: an id without a character, or one of a novel's length."""
        try:
            return IngestionRequest(
                source_kind=cast("Any", item.source_kind),
                source_id=item.external_id,
                content=content,
                connection_id=self.source.connection_id,
                neutralize=self.policy.neutralize,
                lane="delta" if urgent else "backfill",
                **self.describe(item, parent),
            )
        except ValidationError:
            return None


def objects(parts: Sequence[Part]) -> ObjectsContent:
    return ObjectsContent(
        objects=[
            ContentObject(
                text=cleaned(part.text),
                mime_type=part.mime_type,
                locator=cleaned(dict(part.locator)) if part.locator is not None else None,
            )
            for part in parts
        ]
    )


def blob(digest: bytes) -> BlobContent:
    return BlobContent(blob=f"sha256:{digest.hex()}")
