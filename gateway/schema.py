"""What every table shares: the declarative base, the tenant's leading key, and the list of tables without a tenant."""

from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

from sqlalchemy import ARRAY, DateTime, LargeBinary, MetaData, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

import migrations

# Routing tables: they lead from a key hash, a login, a slug … to a mandate, before a tenant is known. Everything else
# carries `mandate_id`, leads every key with it and is under forced row-level security (tests/integration/test_catalogue.py).
TENANT_FREE_TABLES: dict[str, str] = {
    "alembic_version": "schema revision",
    "heartbeat": "when each kind of background loop last ran",
    "key_route": "hash of an API key → mandate",
    "mandate_route": "slug → mandate, and the operator's list",
    "oauth_state": "hash of a consent's state → mandate, connection, user",
    "session_route": "hash of a login link or session cookie → mandate",
    "webhook_route": "a vendor's subscription id → mandate and watch",
}


@cache
def newest_revision() -> str:
    """The revision this code needs, from the names of the migrations: a start must not wait for Alembic to load."""
    return max(
        path.name.partition("_")[0]
        for path in (Path(migrations.__file__).parent / "versions").glob("[0-9]*.py")
    )


class Base(DeclarativeBase):
    metadata = MetaData()
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: Text(),
        bytes: LargeBinary(),
        datetime: DateTime(timezone=True),
        UUID: Uuid(),
        dict[str, Any]: JSONB(),
        list[str]: ARRAY(Text()),
    }


class Tenant:
    """A row of a mandate."""

    mandate_id: Mapped[UUID] = mapped_column(primary_key=True, sort_order=-1)
