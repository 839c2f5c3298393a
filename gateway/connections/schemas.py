"""What is said and heard about connections. No field of an answer ever holds a secret."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field, SecretStr, StringConstraints, model_validator

from connectors.kit.policy import MailTier, SyncPolicy
from connectors.registry import SURFACES
from gateway.connections.waiting import WAITS_FOR, WaitsFor
from gateway.tenancy.schemas import Policy
from gateway.wire import JsonObject, Wire

State = Literal["pending", "active", "needs_reauth", "revoked"]
SurfaceName = Annotated[str, StringConstraints(max_length=50)]
TIERS: tuple[MailTier, ...] = ("metadata", "snippet", "body", "attachments")


class Credential(Wire):
    """What a vendor gave out already: a personal token, or a refresh token of our own application."""

    access_token: SecretStr | None = None
    refresh_token: SecretStr | None = None
    expires_at: AwareDatetime | None = None

    @model_validator(mode="after")
    def _holds_something(self) -> "Credential":
        if self.access_token is None and self.refresh_token is None:
            raise ValueError("give accessToken, refreshToken or both")
        return self


class ConnectionIn(Wire):
    """Without surfaces all of the vendor's. With a credential nobody needs a browser."""

    authority: SurfaceName
    surfaces: list[SurfaceName] | None = Field(default=None, min_length=1)
    policy: SyncPolicy = Field(default_factory=SyncPolicy)
    auto_start: bool = True
    user_id: UUID | None = Field(default=None, description="whose it is; for admins and services")
    credential: Credential | None = None

    def chosen_surfaces(self) -> list[str]:
        return chosen_surfaces(self.authority, self.surfaces)


class ConnectionPatch(Wire):
    """`policy` is a merge patch: null puts a field back to what the mandate says."""

    surfaces: list[SurfaceName] | None = Field(default=None, min_length=1)
    policy: JsonObject | None = None


class SourceOut(Wire):
    """One surface."""

    id: UUID
    surface: str
    phase: str
    items: int
    indexed: int
    failures: int
    held: bool
    last_sync_at: datetime | None
    last_error: str | None
    waits_for: WaitsFor | None = Field(default=None, description=WAITS_FOR)
    waits_until: datetime | None = None


class ConnectionOut(Wire):
    id: UUID
    authority: str
    status: State
    paused: bool
    user_id: UUID | None
    account_name: str | None
    account_email: str | None
    surfaces: list[str]
    policy: dict[str, Any]
    auto_start: bool
    reason: str | None
    created_at: datetime
    established_at: datetime | None
    reauth_since: datetime | None
    revoked_at: datetime | None
    purged_at: datetime | None
    receipt_id: UUID | None = Field(description="of a revoked one: what was erased with it")
    not_granted: list[str] = Field(
        description="surfaces the last consent does not cover; open `authorizeUrl` again to allow them"
    )
    sources: list[SourceOut]
    authorize_url: str | None = Field(
        default=None, description="to be opened in a browser in which the connection's user is signed in"
    )


class RevocationOut(Wire):
    """While the erasure still runs; `GET /receipts/{receiptId}` says when it is done."""

    receipt_id: UUID
    status: str


def chosen_surfaces(authority: str, wanted: list[str] | None) -> list[str]:
    known = list(SURFACES.get(authority, {}))
    unknown = [name for name in wanted or () if name not in known]
    if unknown:
        raise ValueError(f"{authority} has no surface {', '.join(unknown)}; known are {', '.join(known)}")
    return [name for name in known if wanted is None or name in wanted]


def effective_policy(own: Mapping[str, Any], mandate: Policy) -> SyncPolicy:
    """The connection's own word; where it is silent, the mandate's. What a mandate states expressly is also the most a
    connection may take.
    """
    policy = SyncPolicy.model_validate(dict(own))
    changes: dict[str, Any] = {}
    stated = mandate.mail.model_fields_set
    if "mail_tier" not in policy.model_fields_set:
        changes["mail_tier"] = mandate.mail.tier
    elif "tier" in stated:
        changes["mail_tier"] = min(policy.mail_tier, mandate.mail.tier, key=TIERS.index)
    if "mail_window_days" not in policy.model_fields_set:
        changes["mail_window_days"] = mandate.mail.window_days
    elif "window_days" in stated:
        changes["mail_window_days"] = min(policy.mail_window_days, mandate.mail.window_days)
    if mandate.quotas.document_bytes is not None:
        limit = mandate.quotas.document_bytes
        changes["max_file_bytes"] = min(policy.max_file_bytes, limit)
        changes["max_attachment_bytes"] = min(policy.max_attachment_bytes, limit)
    if (days := mandate.quotas.days) is not None:
        windows = ("mail_window_days", "calendar_past_days", "chat_window_days")
        changes |= {name: min(changes.get(name, getattr(policy, name)), days) for name in windows}
    if mandate.quotas.documents is not None:
        changes["max_items"] = (
            min(policy.max_items or mandate.quotas.documents, mandate.quotas.documents) or 1
        )
    return policy.model_copy(update=changes)


def stored_policy(policy: SyncPolicy) -> dict[str, Any]:
    """Only what was said, so that a later word of the mandate reaches old connections."""
    return policy.model_dump(mode="json", by_alias=True, exclude_unset=True)
