"""Mandates and who may act in them."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ForeignKeyConstraint, Index, UniqueConstraint, func
from sqlalchemy.orm import Mapped, mapped_column

from gateway.schema import Base, Tenant


class Mandate(Tenant, Base):
    __tablename__ = "mandate"

    slug: Mapped[str]
    name: Mapped[str]
    policy: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class MandateRoute(Base):
    __tablename__ = "mandate_route"

    slug: Mapped[str] = mapped_column(primary_key=True)
    mandate_id: Mapped[UUID] = mapped_column(unique=True)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class User(Tenant, Base):
    """A person in this mandate. The same person in another mandate is another row there."""

    __tablename__ = "user"
    __table_args__ = (
        UniqueConstraint("mandate_id", "email"),
        ForeignKeyConstraint(["mandate_id"], ["mandate.mandate_id"], ondelete="CASCADE"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    email: Mapped[str]
    display_name: Mapped[str]
    locale: Mapped[str] = mapped_column(server_default="en")
    timezone: Mapped[str] = mapped_column(server_default="UTC")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Membership(Tenant, Base):
    __tablename__ = "membership"
    __table_args__ = (
        ForeignKeyConstraint(["mandate_id", "user_id"], ["user.mandate_id", "user.id"], ondelete="CASCADE"),
    )

    user_id: Mapped[UUID] = mapped_column(primary_key=True)
    role: Mapped[str]
    joined_at: Mapped[datetime] = mapped_column(server_default=func.now())


class FeatureInstance(Tenant, Base):
    __tablename__ = "feature_instance"
    __table_args__ = (ForeignKeyConstraint(["mandate_id"], ["mandate.mandate_id"], ondelete="CASCADE"),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    feature_code: Mapped[str]
    label: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class FeatureMember(Tenant, Base):
    """Who sees what is scoped to a feature instance."""

    __tablename__ = "feature_member"
    __table_args__ = (
        ForeignKeyConstraint(
            ["mandate_id", "feature_instance_id"],
            ["feature_instance.mandate_id", "feature_instance.id"],
            ondelete="CASCADE",
        ),
        ForeignKeyConstraint(
            ["mandate_id", "user_id"], ["membership.mandate_id", "membership.user_id"], ondelete="CASCADE"
        ),
    )

    feature_instance_id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID] = mapped_column(primary_key=True)


class ApiKey(Tenant, Base):
    """A key's secret is shown once and kept as a hash. It belongs to a user or to a named service."""

    __tablename__ = "api_key"
    __table_args__ = (
        ForeignKeyConstraint(["mandate_id"], ["mandate.mandate_id"], ondelete="CASCADE"),
        ForeignKeyConstraint(
            ["mandate_id", "user_id"], ["membership.mandate_id", "membership.user_id"], ondelete="CASCADE"
        ),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    hint: Mapped[str]
    user_id: Mapped[UUID | None]
    service: Mapped[str | None]
    scopes: Mapped[list[str]]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class KeyRoute(Base):
    __tablename__ = "key_route"
    __table_args__ = (Index("key_route_key", "mandate_id", "key_id"),)

    key_hash: Mapped[bytes] = mapped_column(primary_key=True)
    mandate_id: Mapped[UUID]
    key_id: Mapped[UUID]


class LoginSession(Tenant, Base):
    __tablename__ = "session"
    __table_args__ = (
        ForeignKeyConstraint(
            ["mandate_id", "user_id"], ["membership.mandate_id", "membership.user_id"], ondelete="CASCADE"
        ),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID]
    csrf_token: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    expires_at: Mapped[datetime]


class SessionRoute(Base):
    """`kind` is `login` (a one-time link, used up by one DELETE) or `session` (a cookie)."""

    __tablename__ = "session_route"
    __table_args__ = (Index("session_route_subject", "mandate_id", "subject_id"),)

    token_hash: Mapped[bytes] = mapped_column(primary_key=True)
    kind: Mapped[str]
    mandate_id: Mapped[UUID]
    subject_id: Mapped[UUID]
    expires_at: Mapped[datetime]


class Heartbeat(Base):
    __tablename__ = "heartbeat"

    name: Mapped[str] = mapped_column(primary_key=True)
    beat_at: Mapped[datetime] = mapped_column(server_default=func.now())
