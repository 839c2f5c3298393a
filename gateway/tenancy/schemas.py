"""What tenancy says and hears over HTTP: camelCase outside, snake_case inside."""

from datetime import datetime, timezone
from typing import Annotated, Literal
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, AwareDatetime, Field, StringConstraints

from gateway.errors import of_form
from gateway.ingestion.schemas import SourceKind
from gateway.wire import Wire

Role = Literal["owner", "admin", "member"]
Scope = Literal["read", "write", "admin", "act_as", "operator"]
_SLUG = of_form(
    r"^[a-z0-9][a-z0-9-]{0,62}$", "at most 63 lower-case letters, digits and dashes, such as acme"
)
_EMAIL = of_form(r"^[^@\s]+@[^@\s]+$", "an address such as ada@example.org")
_LOCALE = of_form(r"^[a-z]{2}(-[A-Z]{2})?$", "a language such as en or de-CH")

Slug = Annotated[str, StringConstraints(pattern=_SLUG)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Email = Annotated[
    str, StringConstraints(strip_whitespace=True, to_lower=True, pattern=_EMAIL, max_length=320)
]


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # unknown, no name at all, a folder of names
        raise ValueError("must be a time zone such as Europe/Zurich") from None
    return name


Zone = Annotated[str, StringConstraints(max_length=64), AfterValidator(_known_zone)]
Days = Annotated[int, Field(ge=0, le=36500)]  # a hundred years; calendars end somewhere
Amount = Annotated[int, Field(ge=0, le=2**53)]  # what JSON can say exactly


class MandateIn(Wire):
    """Without an owner's address the operator who asks becomes the owner."""

    slug: Slug
    name: Name
    owner_email: Email | None = None
    owner_name: Name | None = None


class MandateOut(Wire):
    mandate_id: UUID
    slug: str
    name: str
    created_at: datetime


class NewMandateOut(MandateOut):
    owner_id: UUID
    owner_key: str = Field(description="the owner's first key; it is shown this once")


class MandatePatch(Wire):
    name: Name


class UserIn(Wire):
    email: Email
    display_name: Name
    locale: Annotated[str, StringConstraints(pattern=_LOCALE)] = "en"
    timezone: Zone = "UTC"
    role: Role = "member"


class UserOut(Wire):
    id: UUID
    email: str
    display_name: str
    locale: str
    timezone: str
    created_at: datetime


class UserPatch(Wire):
    display_name: Name | None = None
    locale: Annotated[str, StringConstraints(pattern=_LOCALE)] | None = None
    timezone: Zone | None = None


class MemberIn(Wire):
    user_id: UUID
    role: Role


class MemberPatch(Wire):
    role: Role


class MemberOut(Wire):
    user_id: UUID
    email: str
    display_name: str
    role: Role
    joined_at: datetime


class FeatureInstanceIn(Wire):
    feature_code: Name
    label: Name
    member_ids: list[UUID] = Field(default_factory=list)


class FeatureInstancePatch(Wire):
    label: Name | None = None
    member_ids: list[UUID] | None = None


class FeatureInstanceOut(Wire):
    id: UUID
    feature_code: str
    label: str
    member_ids: list[UUID]
    created_at: datetime


def _to_come(moment: datetime) -> datetime:
    if moment <= datetime.now(timezone.utc):
        raise ValueError("must be in the future")
    return moment


class KeyIn(Wire):
    """With `service` the key belongs to a named service, otherwise to `userId` (default: the caller)."""

    name: Name
    scopes: list[Scope] = Field(default_factory=lambda: ["read", "write"], min_length=1)
    user_id: UUID | None = None
    service: Name | None = None
    expires_at: Annotated[AwareDatetime, AfterValidator(_to_come)] | None = None


class KeyOut(Wire):
    id: UUID
    name: str
    hint: str
    user_id: UUID | None
    service: str | None
    scopes: list[str]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class KeyPatch(Wire):
    name: Name


class NewKeyOut(KeyOut):
    key: str = Field(description="the secret; it is shown this once")


class LoginLinkIn(Wire):
    """For `userId`, or for the caller."""

    user_id: UUID | None = None


class LoginLinkOut(Wire):
    url: str = Field(description="opens the console once; hand it to nobody but its user")
    expires_at: datetime


class WhoAmIOut(Wire):
    """Whom the service takes the caller for."""

    mandate_id: UUID
    user_id: UUID | None
    service: str | None
    role: Role
    scopes: list[str]
    via: str


class Budget(Wire):
    """Embedding spend of a calendar month. Unset means without limit."""

    monthly_tokens: Amount | None = None
    monthly_cost: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class Quotas(Wire):
    documents: Amount | None = None
    bytes: Amount | None = None
    document_bytes: Annotated[Amount, Field(ge=1)] | None = None
    days: Annotated[Days, Field(ge=1)] | None = Field(
        default=None,
        description="how far back mail, calendars and chats may reach, whatever a connection says",
    )


class Neutralisation(Wire):
    mandatory_source_kinds: list[SourceKind] = Field(default_factory=list)
    allow_personal_data: list[str] = Field(default_factory=list)


class MailPolicy(Wire):
    tier: Literal["metadata", "snippet", "body", "attachments"] = "body"
    window_days: Annotated[Days, Field(ge=1)] = 365


# Who reads a format: our own reader, or the general one.
Engine = Literal["own", "unstructured"]


class Snapshots(Wire):
    enabled: bool = False


class Policy(Wire):
    """The mandate's word on what may enter, how long it stays and what it may cost."""

    mail: MailPolicy = Field(default_factory=MailPolicy)
    budget: Budget = Field(default_factory=Budget)
    quotas: Quotas = Field(default_factory=Quotas)
    neutralisation: Neutralisation = Field(default_factory=Neutralisation)
    snapshots: Snapshots = Field(default_factory=Snapshots)
    extraction: dict[str, Engine] = Field(
        default_factory=dict, description="format → engine, where another than ours is wanted"
    )
    refused_source_kinds: list[SourceKind] = Field(default_factory=list)
    retention_days: dict[SourceKind, Annotated[Days, Field(ge=1)]] = Field(default_factory=dict)
    log_retention_days: Annotated[Days, Field(ge=1)] = 90
    grace_days: Days = 7
    legal_hold: bool = False
