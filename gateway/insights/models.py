"""What was asked, what was cited, what was answered, and what embedding costs."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, ForeignKeyConstraint, Numeric, func
from sqlalchemy.orm import Mapped, mapped_column

from gateway.schema import Base, Tenant


def _of_mandate() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["mandate_id"], ["mandate.mandate_id"], ondelete="CASCADE")


def _of_document() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["mandate_id", "document_id"], ["document.mandate_id", "document.id"], ondelete="CASCADE"
    )


class Spend(Tenant, Base):
    __tablename__ = "spend"
    __table_args__ = (_of_mandate(),)

    day: Mapped[date] = mapped_column(primary_key=True)
    model: Mapped[str] = mapped_column(primary_key=True)
    texts: Mapped[int] = mapped_column(BigInteger)
    tokens: Mapped[int] = mapped_column(BigInteger)
    cost: Mapped[Decimal] = mapped_column(Numeric(18, 6))


class QueryLogEntry(Tenant, Base):
    """One search. `q` is None once a document it had found was erased."""

    __tablename__ = "query_log"
    __table_args__ = (_of_mandate(),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    origin: Mapped[str]
    agent_deployment_id: Mapped[str | None]
    user_id: Mapped[UUID | None]
    q: Mapped[str | None]
    filters: Mapped[dict[str, Any]]
    result_count: Mapped[int]
    answered: Mapped[bool]
    top_score: Mapped[float | None]
    took_ms: Mapped[int]


class QueryHit(Tenant, Base):
    __tablename__ = "query_hit"
    __table_args__ = (
        _of_document(),
        ForeignKeyConstraint(
            ["mandate_id", "query_id"], ["query_log.mandate_id", "query_log.id"], ondelete="CASCADE"
        ),
    )

    document_id: Mapped[UUID] = mapped_column(primary_key=True)
    query_id: Mapped[UUID] = mapped_column(primary_key=True)


class Citation(Tenant, Base):
    """A turn that was given a chunk. The chunk may since have been replaced; the document is still there."""

    __tablename__ = "citation"
    __table_args__ = (_of_mandate(), _of_document())

    turn_id: Mapped[str] = mapped_column(primary_key=True)
    chunk_id: Mapped[UUID] = mapped_column(primary_key=True)
    document_id: Mapped[UUID]
    agent_deployment_id: Mapped[str | None]
    user_id: Mapped[UUID | None]
    cited_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Answer(Tenant, Base):
    __tablename__ = "answer"
    __table_args__ = (_of_mandate(),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    conversation_id: Mapped[UUID]
    asked_by: Mapped[str]
    user_id: Mapped[UUID | None]
    question: Mapped[str]
    text: Mapped[str]
    model: Mapped[str]
    complete: Mapped[bool]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
