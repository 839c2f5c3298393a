"""A user's connection to a vendor, its surfaces, and the ledger of what the vendor listed.

State and generation of a connection are the fence of promise 5; everything else here goes with a purge.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, ForeignKeyConstraint, func
from sqlalchemy.orm import Mapped, mapped_column

from gateway.schema import Base, Tenant


class Connection(Tenant, Base):
    __tablename__ = "connection"
    __table_args__ = (ForeignKeyConstraint(["mandate_id"], ["mandate.mandate_id"], ondelete="CASCADE"),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    authority: Mapped[str]
    user_id: Mapped[UUID | None]
    state: Mapped[str]
    generation: Mapped[int] = mapped_column(server_default="1")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())
    surfaces: Mapped[list[str]]
    policy: Mapped[dict[str, Any]]
    auto_start: Mapped[bool]
    account: Mapped[dict[str, Any]]
    sealed_tokens: Mapped[bytes | None]
    token_expires_at: Mapped[datetime | None]
    paused: Mapped[bool]
    reason: Mapped[str | None]
    established_at: Mapped[datetime | None]
    reauth_since: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    purged_at: Mapped[datetime | None]


class DataSource(Tenant, Base):
    """One surface of one connection; a managed source later has none."""

    __tablename__ = "data_source"
    __table_args__ = (
        ForeignKeyConstraint(["mandate_id"], ["mandate.mandate_id"], ondelete="CASCADE"),
        ForeignKeyConstraint(
            ["mandate_id", "connection_id"], ["connection.mandate_id", "connection.id"], ondelete="CASCADE"
        ),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    connection_id: Mapped[UUID | None]
    user_id: Mapped[UUID | None]
    surface: Mapped[str]
    adapter_kind: Mapped[str]
    external_root: Mapped[str]
    feature_code: Mapped[str | None]
    scope: Mapped[str]
    cursor: Mapped[str | None]
    phase: Mapped[str]
    listing_generation: Mapped[int]
    listing: Mapped[dict[str, Any]]
    held: Mapped[dict[str, Any] | None]
    run: Mapped[dict[str, Any]]
    last_sync_at: Mapped[datetime | None]
    last_error: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class RemoteItem(Tenant, Base):
    """What the vendor listed, and what became of it."""

    __tablename__ = "remote_item"
    __table_args__ = (
        ForeignKeyConstraint(
            ["mandate_id", "data_source_id"], ["data_source.mandate_id", "data_source.id"], ondelete="CASCADE"
        ),
    )

    data_source_id: Mapped[UUID] = mapped_column(primary_key=True)
    external_id: Mapped[str] = mapped_column(primary_key=True)
    connection_id: Mapped[UUID | None]
    source_kind: Mapped[str]
    name: Mapped[str]
    container_id: Mapped[str]
    parent_id: Mapped[str | None]
    path: Mapped[str]
    uri: Mapped[str | None]
    mime_type: Mapped[str | None]
    size: Mapped[int | None] = mapped_column(BigInteger)
    version: Mapped[str | None]
    fetched_version: Mapped[str | None]
    modified_at: Mapped[datetime | None]
    # `metadata` is SQLAlchemy's own word on a class
    described: Mapped[dict[str, Any]] = mapped_column("metadata")
    handle: Mapped[dict[str, Any]]
    state: Mapped[str]
    reason: Mapped[str | None]
    document_id: Mapped[UUID | None]
    urgent: Mapped[bool]
    with_parent: Mapped[bool] = mapped_column(server_default="false")
    generation: Mapped[int]
    seen_at: Mapped[datetime] = mapped_column(server_default=func.now())


class ItemFailure(Tenant, Base):
    """An item that could not be had, with a retry schedule of its own."""

    __tablename__ = "item_failure"
    __table_args__ = (
        ForeignKeyConstraint(
            ["mandate_id", "data_source_id"], ["data_source.mandate_id", "data_source.id"], ondelete="CASCADE"
        ),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    data_source_id: Mapped[UUID]
    external_id: Mapped[str]
    name: Mapped[str]
    reason: Mapped[str]
    detail: Mapped[str]
    attempts: Mapped[int]
    retry_at: Mapped[datetime | None]
    first_at: Mapped[datetime] = mapped_column(server_default=func.now())
    last_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Watch(Tenant, Base):
    """A push subscription at the vendor's."""

    __tablename__ = "watch"
    __table_args__ = (
        ForeignKeyConstraint(
            ["mandate_id", "data_source_id"], ["data_source.mandate_id", "data_source.id"], ondelete="CASCADE"
        ),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    data_source_id: Mapped[UUID]
    vendor_id: Mapped[str]
    resource: Mapped[str]
    sealed_secret: Mapped[bytes]
    details: Mapped[dict[str, Any]]
    expires_at: Mapped[datetime]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class WebhookDelivery(Tenant, Base):
    __tablename__ = "webhook_delivery"
    __table_args__ = (ForeignKeyConstraint(["mandate_id"], ["mandate.mandate_id"], ondelete="CASCADE"),)

    authority: Mapped[str] = mapped_column(primary_key=True)
    delivery_id: Mapped[str] = mapped_column(primary_key=True)
    data_source_id: Mapped[UUID]
    seen_at: Mapped[datetime] = mapped_column(server_default=func.now())


class OAuthState(Base):
    """What a callback must bring back; found before a mandate is known."""

    __tablename__ = "oauth_state"

    state_hash: Mapped[bytes] = mapped_column(primary_key=True)
    authority: Mapped[str]
    mandate_id: Mapped[UUID]
    connection_id: Mapped[UUID]
    user_id: Mapped[UUID]
    browser_hash: Mapped[bytes]
    sealed_flow: Mapped[bytes]
    expires_at: Mapped[datetime]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class WebhookRoute(Base):
    """From a vendor's subscription id to the mandate that made it."""

    __tablename__ = "webhook_route"

    authority: Mapped[str] = mapped_column(primary_key=True)
    vendor_id: Mapped[str] = mapped_column(primary_key=True)
    mandate_id: Mapped[UUID]
    watch_id: Mapped[UUID]
