"""Who may have the bytes as they came. Kept text is masked, its original is not (promise 10)."""

import re
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus import repository
from gateway.errors import NotFound
from gateway.ingestion.schemas import LIVE_STATUSES
from gateway.tenancy.principal import Principal

_PRINTABLE = re.compile(r"[ -~]+")


def served_as(mime_type: str | None) -> str:
    """What the header says the bytes are. A type is what somebody said of them; one that fits no header is not repeated."""
    return mime_type if mime_type and _PRINTABLE.fullmatch(mime_type) else "application/octet-stream"


async def require_original(session: AsyncSession, row: Row[Any], principal: Principal) -> None:
    """Lets pass who may have the original of a document they can read.

    Where something was masked, or where nobody has looked yet, that is its owner and admins; what the scanner refused is
    for nobody.
    """
    if row.reason == "infected":
        raise NotFound("The scanner refused the original; it is not handed out.")
    if principal.is_admin or (row.user_id is not None and row.user_id == principal.user_id):
        return
    if row.status in LIVE_STATUSES:
        raise NotFound("It is still being read; until then the original is for its owner and admins.")
    if row.neutralize or await repository.is_masked(session, row.id):
        raise NotFound("The original of a masked document is for its owner and admins.")
