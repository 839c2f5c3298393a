"""Why is this file not here? The ledger's answer, as one word and as a sentence."""

from typing import Any
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.connections import sync_item_repository as items
from gateway.connections.sync_schemas import ItemOut
from gateway.tenancy.principal import Principal

_NOBODY = UUID(int=0)

# What a word means, for a person. `reason` words of surfaces and of the ledger lead here.
SENTENCES = {
    "indexed": "It is indexed and can be found.",
    "indexing": "It was handed over and is being indexed.",
    "waiting": "It was found and waits to be downloaded.",
    "throttled": "It was found; the vendor asked us to wait before the next download.",
    "paused": "It was found; the connection is paused.",
    "reauth": "It was found; the connection waits until its user gives consent again.",
    "folder": "It is a folder: what lies in it is indexed, it itself has no content.",
    "too_large": "It is larger than the policy allows.",
    "unsupported": "Its format cannot be read.",
    "filtered": "The connection's policy leaves it out.",
    "outside_window": "It is older than the connection's policy reaches back.",
    "quota": "A quota of the mandate or of the connection is used up.",
    "policy": "The mandate's policy refuses this kind of content.",
    "forbidden": "The account may not read it (any more).",
    "unavailable": "The vendor did not answer as it should; it is tried again by itself.",
    "parse_failed": "It was downloaded, but no text came out of it.",
    "failed": "It could not be had; it is tried again by itself.",
    "deleted_upstream": "It was deleted at its source, and with it here.",
    "held": "Its source no longer lists it; the deletion waits for somebody to approve it.",
    "erased": "Somebody had it erased here; it does not come back by itself.",
}
_SYNONYMS = {
    "access_lost": "forbidden",
    "download_forbidden": "forbidden",
    "locked": "unavailable",
    "too_big": "too_large",
    "empty": "parse_failed",
    "no_text": "parse_failed",
    "encrypted": "parse_failed",
}


def answer_of(row: Row[Any]) -> str:
    """One word for an item with its story (`find_items`, `explain_items`)."""
    if row.state == "pending":
        if row.connection_state == "needs_reauth":
            return "reauth"
        if row.paused:
            return "paused"
        return "throttled" if row.waits_for == "throttled" else "waiting"
    if row.state == "handed":
        return _handed(row)
    if row.state in {"held", "folder"}:
        return str(row.state)
    if row.state == "deleted":
        return "forbidden" if row.reason in {"access_lost", "container_gone"} else "deleted_upstream"
    reason = _SYNONYMS.get(row.reason or "", row.reason or "")
    if reason in SENTENCES:
        return reason
    return "filtered" if row.state == "skipped" else "failed"


def _handed(row: Row[Any]) -> str:
    status = row.document_status
    if status in {"indexed", None}:
        return "indexed" if status else "indexing"
    if status == "skipped":
        reason = _SYNONYMS.get(row.document_reason or "", row.document_reason or "")
        return reason if reason in SENTENCES else "unsupported"
    return "parse_failed" if status == "failed" else "indexing"


def item_out(row: Row[Any]) -> ItemOut:
    word = answer_of(row)
    said = [SENTENCES[word]]
    detail = row.failure_detail or row.document_reason if row.state in {"failed", "handed"} else row.reason
    if detail == word or word in {"indexed", "folder"}:
        detail = None
    if detail:
        said.append(f"({detail})")
    if row.retry_at is not None:
        said.append(f"Next try: {row.retry_at:%Y-%m-%d %H:%M} UTC, after {row.attempts} so far.")
    names = (
        "external_id",
        "surface",
        "authority",
        "connection_id",
        "source_kind",
        "name",
        "path",
        "uri",
        "size",
    )
    more = ("version", "modified_at", "seen_at", "document_id", "retry_at", "failure_id")
    return ItemOut(
        answer=word,
        why=" ".join(said),
        detail=detail or None,
        **{name: getattr(row, name) for name in (*names, *more)},
    )


async def explain(session: AsyncSession, external_id: str, principal: Principal) -> list[ItemOut]:
    """Every item with this id or name that the caller may know of: one's own connections', for admins all."""
    viewer = None if principal.is_admin else principal.user_id or _NOBODY
    return [item_out(row) for row in await items.explain_items(session, external_id, viewer, limit=20)]
