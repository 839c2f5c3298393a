"""Domain events: features say what happened, in their own transaction; the one consumer decides what it means."""

from typing import Any, Literal, get_args

from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import new_id
from gateway.errors import EventInvalid
from gateway.ingestion import repository
from gateway.wire import storable

EventType = Literal[
    "FileCommitted",
    "FileDeleted",
    "ConnectionEstablished",
    "ConnectionRevoked",
    "ProfileUpdated",
    "MembershipChanged",
    "MandateUpdated",
    "FeatureConfigChanged",
]
EVENT_TYPES: tuple[str, ...] = get_args(EventType)


async def record_event(session: AsyncSession, event_type: str, payload: dict[str, Any]) -> None:
    """Puts an event into the outbox; it is consumed after the caller's commit, at least once."""
    if event_type not in EVENT_TYPES:
        raise EventInvalid(f"There is no event of this type; known are {', '.join(EVENT_TYPES)}.")
    try:
        storable(payload)
    except ValueError as error:
        raise EventInvalid(f"The payload {error}.") from None
    row = {
        "id": new_id(),
        "topic": "event",
        "lane": "interactive",
        "payload": {"type": event_type, "payload": payload},
    }
    await repository.ring_on_commit(session, [row])
