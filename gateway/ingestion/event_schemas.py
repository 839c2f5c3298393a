"""What the consumer reads of each event. A feature may say more: fields that are not named here are not looked at.

What events add to a snapshot is on an explicit list too, few and short: what is no short line is left out, not cut.
"""

from typing import Annotated, Any, cast
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, model_validator
from pydantic.alias_generators import to_camel

from gateway.ingestion.schemas import Identifier, IngestionRequest, SourceKind
from gateway.wire import Wire

MOST_CHARACTERS = 300
MOST_ENTRIES = 20


class Payload(Wire):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore")


# -- files, connections


class FileDeleted(Payload):
    """One file, or with `dataSourceId` all that came from a source. With `userId` what other users keep for themselves under
    the same name stays.
    """

    source_id: Identifier | None = None
    source_kind: SourceKind = "upload"
    connection_id: UUID | None = None
    data_source_id: UUID | None = None
    user_id: UUID | None = None

    @model_validator(mode="after")
    def _names_something(self) -> "FileDeleted":
        if self.source_id is None and self.data_source_id is None:
            raise ValueError("neither a sourceId nor a dataSourceId is given")
        return self


class ConnectionEstablished(Payload):
    connection_id: UUID


# -- people, mandates, features


def one_line(value: Any) -> str | None:
    """One printable line, so that no value can pass for a second one; None for what is none, or is too long."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, str | int | float):
        return None
    words = "".join(letter if letter.isprintable() else " " for letter in str(value)).split()
    line = " ".join(words)
    return line if 0 < len(line) <= MOST_CHARACTERS else None


Line = Annotated[str | None, BeforeValidator(one_line)]


class ConnectionRevoked(Payload):
    """The reason stands in the receipt and in a log line."""

    connection_id: UUID
    reason: Line = None


class Preferences(Payload):
    """How somebody likes to be answered. Nothing here says who they are or how to reach them."""

    answer_language: Line = None
    answer_length: Line = None
    answer_style: Line = None
    date_format: Line = None
    number_format: Line = None
    units: Line = None
    currency: Line = None
    week_start: Line = None
    working_hours: Line = None


class Entry(Payload):
    """A data source or an automation of a feature, as people call it."""

    label: Line = None
    description: Line = None


def _entries(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    first = cast("list[Any]", value)[:MOST_ENTRIES]
    return [{"label": item} if isinstance(item, str) else item for item in first]


Entries = Annotated[list[Entry] | None, BeforeValidator(_entries)]


class FeatureWords(Payload):
    """What a feature says of an instance; its label and code are ours to know."""

    description: Line = None
    data_sources: Entries = None
    automations: Entries = None


class ProfileUpdated(Payload):
    """Preferences that are not named stay as they were; null takes one back."""

    user_id: UUID
    preferences: Preferences = Field(default_factory=Preferences)


class MembershipChanged(Payload):
    """The role must be said: null is for who left, and leaving is nothing to be guessed from silence."""

    user_id: UUID
    role: str | None
    erase: StrictBool = False  # of who left: all that is theirs, not their connections alone


class MandateUpdated(Payload):
    erase: StrictBool = False
    everything: StrictBool = False  # every snapshot is looked at again, not the mandate's alone


class FeatureConfigChanged(FeatureWords):
    """Like a profile's: what is not named stays, null takes it back."""

    feature_instance_id: UUID
    everything: StrictBool = False

    def words(self) -> FeatureWords:
        said = self.model_fields_set & FeatureWords.model_fields.keys()
        return FeatureWords.model_construct(said, **{name: getattr(self, name) for name in said})


# What each event must say.
SHAPES: dict[str, type[BaseModel]] = {
    "FileCommitted": IngestionRequest,
    "FileDeleted": FileDeleted,
    "ConnectionEstablished": ConnectionEstablished,
    "ConnectionRevoked": ConnectionRevoked,
    "ProfileUpdated": ProfileUpdated,
    "MembershipChanged": MembershipChanged,
    "MandateUpdated": MandateUpdated,
    "FeatureConfigChanged": FeatureConfigChanged,
}
