"""Citations: where a passage stands, pinned to the revision that was indexed.

`revision` is the source's own word for it (eTag, commit, changeKey) where there is one, else our count; `contentHash`
is that of the passage, so that a reader can tell whether it still says what was cited.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import orjson

from gateway.wire import Wire

if TYPE_CHECKING:
    from gateway.corpus.search_repository import Found  # the client knows citations and needs no database


class Citation(Wire):
    document_id: UUID
    chunk_id: UUID
    source_kind: str
    title: str
    uri: str | None
    revision: str
    connection_id: UUID | None
    content_hash: str
    verified_at: datetime | None
    locator: dict[str, Any]


def citation_of(found: "Found") -> Citation:
    # Rows of ours need no checking, and a page has many.
    return Citation.model_construct(
        document_id=UUID(found.document_id),
        chunk_id=UUID(found.chunk_id),
        source_kind=found.source_kind,
        title=found.title,
        uri=found.uri,
        revision=found.indexed_version or str(found.indexed_revision),
        connection_id=UUID(found.connection_id) if found.connection_id else None,
        content_hash=found.text_hash.hex(),
        verified_at=datetime.fromisoformat(found.verified_at) if found.verified_at else None,
        locator=orjson.loads(found.locator),
    )


def cited_boxes(locator: dict[str, Any], page: int) -> list[list[float]]:
    """What a locator marks on a page: nothing, if it points elsewhere."""
    if locator.get("kind") != "pdf" or locator.get("page") != page:
        return []
    return locator.get("boxes") or ([locator["bbox"]] if locator.get("bbox") else [])
