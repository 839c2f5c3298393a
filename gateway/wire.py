"""How we speak JSON: camelCase names, opaque cursors, merge patches. Shared by every noun's schemas."""

import base64
import json
import math
import re
import unicodedata
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar
from uuid import UUID

import orjson
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from gateway.errors import CursorInvalid

API_PREFIX = "/v1"
_NOT_OURS = "The cursor is not one this service gave out; start without one."

_DAY = re.compile(r"\d{4}-\d\d-\d\d")

DEEPEST = 100  # levels of JSON; the encoders end at 250
_LEAST, _MOST = -(2**63), 2**64 - 1
# What describes a document travels with every row of a list; what is long belongs into its content.
METADATA_BYTES = 64 * 1024

T = TypeVar("T")


class Wire(BaseModel):
    """camelCase JSON outside, snake_case Python inside, and nothing unknown slips through."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", from_attributes=True
    )


class Page(Wire, Generic[T]):
    items: list[T]
    next_cursor: str | None = None


def storable(value: Any) -> Any:
    """As it is; what no store can hold – NUL, half a surrogate pair, a number beyond 64 bits, however deep – is refused at the
    door, and so is what is nested deeper than anything reads.
    """
    _check(value, DEEPEST)
    return value


def _readable(value: Any) -> Any:
    _check(value, DEEPEST, numbers=False)
    return value


def _check(value: Any, levels: int, *, numbers: bool = True) -> None:
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, int | float):
        if numbers:
            _check_number(value)
    elif isinstance(value, dict | list | tuple):
        if not levels:
            raise ValueError(f"must not be nested deeper than {DEEPEST} levels")
        for item in (*value, *value.values()) if isinstance(value, dict) else value:
            _check(item, levels - 1, numbers=numbers)


def _check_number(value: float) -> None:
    if isinstance(value, int) and not _LEAST <= value <= _MOST:
        raise ValueError("must not contain integers of more than 64 bits")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("must not contain numbers that are not finite")


def _check_text(value: str) -> None:
    if "\x00" in value:
        raise ValueError("must not contain NUL characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("must be valid Unicode") from None


def _small(value: dict[str, Any]) -> dict[str, Any]:
    if json_size(value) > METADATA_BYTES:
        raise ValueError(f"must not be longer than {METADATA_BYTES} bytes as JSON")
    return value


def json_size(value: Any) -> int:
    """Bytes, as it is written into the database."""
    return len(orjson.dumps(value))


def _one_spelling(tag: str) -> str:
    return unicodedata.normalize("NFC", tag).strip() or tag


# Two people who write the same tag mean the same, however their keyboards spell an ü.
TagName = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_one_spelling)]


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _through_the_day(bound: Any) -> Any:
    return f"{bound}T23:59:59.999999Z" if isinstance(bound, str) and _DAY.fullmatch(bound) else bound


# Bounds that somebody asks for; without a zone they are meant in UTC, as all our times are. A day alone includes that day.
Moment = Annotated[datetime, AfterValidator(_in_utc)]
EndMoment = Annotated[datetime, BeforeValidator(_through_the_day), AfterValidator(_in_utc)]
JsonObject = Annotated[dict[str, Any], AfterValidator(storable)]
# Merged into something whose own fields say which numbers they take.
JsonPatch = Annotated[dict[str, Any], AfterValidator(_readable)]
Metadata = Annotated[
    JsonObject, AfterValidator(_small), Field(description=f"at most {METADATA_BYTES} bytes as JSON")
]


def encode_cursor(at: datetime, row_id: UUID) -> str:
    """Where a page ended, over `(createdAt, id)`; opaque to clients."""
    return encode_text_cursor(at, str(row_id))


def decode_cursor(cursor: str) -> tuple[datetime, UUID]:
    at, row_id = decode_text_cursor(cursor)
    try:
        return at, UUID(row_id)
    except ValueError:
        raise CursorInvalid(_NOT_OURS) from None


def encode_text_cursor(at: datetime, name: str) -> str:
    """The same over `(time, name)`, for rows that a vendor named."""
    return _packed([at.isoformat(), name])


def decode_text_cursor(cursor: str) -> tuple[datetime, str]:
    try:
        text, name = _unpacked(cursor)
        at = datetime.fromisoformat(text)
    except (ValueError, TypeError, AttributeError, RecursionError):
        at = name = None
    if at is None or at.tzinfo is None or not isinstance(name, str):
        raise CursorInvalid(_NOT_OURS)
    return at, name


def encode_ranked_cursor(count: int, at: datetime, row_id: UUID) -> str:
    """Where a page of what counts most ended, over `(count, time, id)`."""
    return _packed([count, at.isoformat(), str(row_id)])


def decode_ranked_cursor(cursor: str) -> tuple[int, datetime, UUID]:
    try:
        count, text, row_id = _unpacked(cursor)
        at, name = datetime.fromisoformat(text), UUID(row_id)
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise CursorInvalid(_NOT_OURS) from None
    if at.tzinfo is None or type(count) is not int or not 0 <= count < 2**63:
        raise CursorInvalid(_NOT_OURS)
    return count, at, name


def _packed(parts: list[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def _unpacked(cursor: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))


def merge(base: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """RFC 7396 merge patch: null removes, objects merge, everything else replaces."""
    merged = dict(base)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            before = merged.get(key)
            merged[key] = merge(before if isinstance(before, dict) else {}, value)
        else:
            merged[key] = value
    return merged
