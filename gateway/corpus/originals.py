"""Who may have the bytes as they came. Kept text is masked, its original is not (promise 10)."""

import mimetypes
import re
from typing import Any
from urllib.parse import quote

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus import repository
from gateway.errors import NotFound
from gateway.ingestion.schemas import LIVE_STATUSES
from gateway.tenancy.principal import Principal

_PRINTABLE = re.compile(r"[ -~]+")
# What ends a header, leaves a folder, means something to a file system, or turns the rest of a name round on the screen.
_NOT_IN_NAMES = re.compile(
    '[\x00-\x1f\x7f-\x9f"\\\\/:*?<>|%;\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]'
)
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,8}$")
WITHHELD_INFECTED = "The scanner refused the original; it is not handed out."
WITHHELD_UNREAD = "It is still being read; until then the original is for its owner and admins."
WITHHELD_MASKED = "The original of a masked document is for its owner and admins."
_LONGEST_NAME = 150  # without its ending; file systems take 255 bytes


def served_as(mime_type: str | None) -> str:
    """What the header says the bytes are. A type is what somebody said of them; one that fits no header is not repeated."""
    return mime_type if mime_type and _PRINTABLE.fullmatch(mime_type) else "application/octet-stream"


def saved_as(title: str, mime_type: str | None, otherwise: str) -> str:
    """The `Content-Disposition` of an original: never opened in place, and saved under its document's name."""
    name = _NOT_IN_NAMES.sub("_", title).strip(" .") or otherwise
    found = _ENDING.search(name)
    ending = (
        found.group() if found else mimetypes.guess_extension((mime_type or "").split(";")[0].strip()) or ""
    )
    name = name.removesuffix(ending)[:_LONGEST_NAME] + ending
    plain = re.sub(r"[^ -~]", "_", name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


async def require_original(
    session: AsyncSession, row: Row[Any], principal: Principal, *, served: bool = False
) -> None:
    """Lets pass who may have the original of a document they can read; `served`: of the revision that searches cite."""
    why = await why_withheld(session, row, principal, served=served)
    if why is not None:
        raise NotFound(why)


async def why_withheld(
    session: AsyncSession, row: Row[Any], principal: Principal, *, served: bool = False
) -> str | None:
    """Where something was masked, or where nobody has looked yet, the original is for its owner and admins; what the scanner
    refused is for nobody.
    """
    if row.reason == "infected":
        return WITHHELD_INFECTED
    if _its_owner_or_admin(row, principal):
        return None
    if row.status in LIVE_STATUSES and not (served and row.indexed_hash):
        return WITHHELD_UNREAD
    if row.neutralize or await repository.is_masked(session, row.id):
        return WITHHELD_MASKED
    return None


async def require_former(
    session: AsyncSession, row: Row[Any], former: Row[Any], principal: Principal
) -> None:
    """The same for an earlier revision. Of what is not served any more nobody knows what was masked in it."""
    if _its_owner_or_admin(row, principal):
        return
    if former.content_hash != row.indexed_hash:
        raise NotFound("The originals of earlier revisions are for the document's owner and admins.")
    await require_original(session, row, principal, served=True)


def _its_owner_or_admin(row: Row[Any], principal: Principal) -> bool:
    return principal.is_admin or (row.user_id is not None and row.user_id == principal.user_id)
