"""Domain events: features say what happened, in their own transaction; the one consumer decides what it means."""

from typing import Any, Literal, get_args
from uuid import UUID

from pydantic import TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import new_id
from gateway.errors import EventInvalid, fields_invalid
from gateway.ingestion import repository
from gateway.ingestion.event_schemas import SHAPES
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
_ID = TypeAdapter(UUID)


def check_event(event_type: str, payload: dict[str, Any]) -> None:
    """What can be known before it is consumed: who sends an event over HTTP is told at once that it says too little."""
    shape = SHAPES.get(event_type)
    try:
        if shape is not None:
            shape.model_validate(payload)
    except ValidationError as error:
        named = [{**one, "loc": ("body", "payload", *one["loc"])} for one in error.errors()]
        refused = fields_invalid(named)
        raise EventInvalid(refused.detail, **refused.extra) from None


def _ids_spelled_out(event_type: str, payload: dict[str, Any]) -> dict[str, Any]:
    """Ids in one spelling, whichever the feature used: an erasure looks for them among the events that wait."""
    spelled = dict(payload)
    for name, field in SHAPES[event_type].model_fields.items():
        kind: Any = field.annotation
        if kind not in {UUID, UUID | None}:
            continue
        for said in (name, to_camel(name)):  # the second is what counts when both are there
            try:
                spelled[to_camel(name)] = str(_ID.validate_python(spelled[said]))
            except (KeyError, ValidationError):  # the consumer says what is wrong with it
                continue
            if said != to_camel(name):
                del spelled[said]
    return spelled


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
        "payload": {"type": event_type, "payload": _ids_spelled_out(event_type, payload)},
    }
    await repository.ring_on_commit(session, [row])
