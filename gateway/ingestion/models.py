"""The ledger: jobs, the outbox that carries bells and events, and the timeline of every document."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ForeignKeyConstraint, func
from sqlalchemy.orm import Mapped, mapped_column

from gateway.schema import Base, Tenant


class Job(Tenant, Base):
    """Work that was promised. `fence` counts claims: whoever holds an older one can no longer write."""

    __tablename__ = "job"
    __table_args__ = (
        ForeignKeyConstraint(["mandate_id"], ["mandate.mandate_id"], ondelete="CASCADE"),
        ForeignKeyConstraint(
            ["mandate_id", "document_id"], ["document.mandate_id", "document.id"], ondelete="CASCADE"
        ),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    kind: Mapped[str]
    lane: Mapped[str]
    status: Mapped[str]
    document_id: Mapped[UUID | None]
    revision: Mapped[int | None]
    connection_id: Mapped[UUID | None]
    connection_generation: Mapped[int | None]
    dedupe_key: Mapped[str | None]
    payload: Mapped[dict[str, Any]]
    attempts: Mapped[int] = mapped_column(server_default="0")
    crashes: Mapped[int] = mapped_column(server_default="0")
    deaths: Mapped[int] = mapped_column(server_default="0")
    solo: Mapped[bool] = mapped_column(server_default="false")
    run_after: Mapped[datetime] = mapped_column(server_default=func.now())
    lease_until: Mapped[datetime | None]
    fence: Mapped[int] = mapped_column(server_default="0")
    reason: Mapped[str | None]
    error: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    finished_at: Mapped[datetime | None]


class Outbox(Tenant, Base):
    __tablename__ = "outbox"
    __table_args__ = (ForeignKeyConstraint(["mandate_id"], ["mandate.mandate_id"], ondelete="CASCADE"),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    topic: Mapped[str]
    lane: Mapped[str]
    payload: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Timeline(Tenant, Base):
    __tablename__ = "timeline"
    __table_args__ = (
        ForeignKeyConstraint(
            ["mandate_id", "document_id"], ["document.mandate_id", "document.id"], ondelete="CASCADE"
        ),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    document_id: Mapped[UUID]
    job_id: Mapped[UUID | None]
    status: Mapped[str]
    reason: Mapped[str | None]
    detail: Mapped[dict[str, Any]]
    at: Mapped[datetime] = mapped_column(server_default=func.now())


class Receipt(Tenant, Base):
    """What an erasure removed, store by store; it holds counts, never content."""

    __tablename__ = "receipt"
    __table_args__ = (ForeignKeyConstraint(["mandate_id"], ["mandate.mandate_id"], ondelete="CASCADE"),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    subject: Mapped[str]
    subject_id: Mapped[str]
    status: Mapped[str]
    reason: Mapped[str]
    counts: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    finished_at: Mapped[datetime | None]
