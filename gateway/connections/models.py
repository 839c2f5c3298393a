"""A user's connection to a vendor, as far as the corpus needs it: its state and generation are the fence of promise 5."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKeyConstraint, func
from sqlalchemy.orm import Mapped, mapped_column

from gateway.schema import Base, Tenant


class Connection(Tenant, Base):
    __tablename__ = "connection"
    __table_args__ = (ForeignKeyConstraint(["mandate_id"], ["mandate.mandate_id"], ondelete="CASCADE"),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    authority: Mapped[str]
    user_id: Mapped[UUID]
    state: Mapped[str]
    generation: Mapped[int] = mapped_column(server_default="1")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())
