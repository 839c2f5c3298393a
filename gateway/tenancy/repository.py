"""All SQL of tenancy. Tenant rows are reached under row-level security; routing rows before a tenant is known.

Routing tables have no row-level security, so every statement that changes one names the session's own mandate.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import AsyncConnection
from sqlalchemy import ColumnElement, delete, func, insert, or_, select, text, true, tuple_, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from gateway.db import new_id, tenant_of
from gateway.tenancy.models import (
    ApiKey,
    FeatureInstance,
    FeatureMember,
    KeyRoute,
    LoginSession,
    Mandate,
    MandateRoute,
    Membership,
    SessionRoute,
    User,
)

# A row may have been changed by a statement of the same transaction since it was last read.
_FRESH = {"populate_existing": True}

Connection = AsyncConnection[Any]
After = tuple[datetime, UUID] | None  # where the page before ended


def _beyond(
    at: InstrumentedAttribute[datetime], row_id: InstrumentedAttribute[UUID], after: After
) -> ColumnElement[bool]:
    return true() if after is None else tuple_(at, row_id) > tuple_(*after)


# -- mandates

# Tenant-free tables that lead to a mandate.
MANDATE_ROUTES = ("key_route", "session_route", "oauth_state", "webhook_route", "mandate_route")


async def claim_slug(session: AsyncSession, slug: str, mandate_id: UUID) -> bool:
    """False when the slug or the mandate is already there."""
    claimed = await session.scalar(
        upsert(MandateRoute)
        .values(slug=slug, mandate_id=mandate_id)
        .on_conflict_do_nothing()
        .returning(MandateRoute.mandate_id)
    )
    return claimed is not None


async def mandate_of_slug(session: AsyncSession, slug: str) -> UUID | None:
    return await session.scalar(select(MandateRoute.mandate_id).where(MandateRoute.slug == slug))


async def mandate_exists(session: AsyncSession, mandate_id: UUID) -> bool:
    found = await session.scalar(select(MandateRoute.slug).where(MandateRoute.mandate_id == mandate_id))
    return found is not None


async def list_mandate_ids(
    session: AsyncSession, *, after: After, limit: int
) -> Sequence[tuple[datetime, UUID]]:
    rows = await session.execute(
        select(MandateRoute.created_at, MandateRoute.mandate_id)
        .where(_beyond(MandateRoute.created_at, MandateRoute.mandate_id, after))
        .order_by(MandateRoute.created_at, MandateRoute.mandate_id)
        .limit(limit)
    )
    return [(at, mandate_id) for at, mandate_id in rows]


async def all_mandate_ids(session: AsyncSession) -> Sequence[UUID]:
    return (await session.scalars(select(MandateRoute.mandate_id).order_by(MandateRoute.mandate_id))).all()


async def insert_mandate(session: AsyncSession, slug: str, name: str) -> None:
    await session.execute(insert(Mandate).values(mandate_id=tenant_of(session), slug=slug, name=name))


async def mandate(session: AsyncSession, *, lock: bool = False) -> Mandate | None:
    """The session's own mandate."""
    statement = select(Mandate)
    return await session.scalar(statement.with_for_update() if lock else statement, execution_options=_FRESH)


async def update_mandate(session: AsyncSession, **values: Any) -> None:
    await session.execute(update(Mandate).where(Mandate.mandate_id == tenant_of(session)).values(**values))


# -- users and members


async def holds_documents(session: AsyncSession) -> bool:
    """Anything of what was handed in: documents, or bytes on their way to become one."""
    return bool(
        await session.scalar(text("SELECT EXISTS (SELECT FROM document) OR EXISTS (SELECT FROM blob)"))
    )


async def delete_mandate(session: AsyncSession) -> None:
    """With all its rows, and first the routes that lead to them."""
    mandate_id = tenant_of(session)
    for table in MANDATE_ROUTES:
        await session.execute(text(f"DELETE FROM {table} WHERE mandate_id = :id"), {"id": mandate_id})
    await session.execute(text("DELETE FROM mandate WHERE mandate_id = :id"), {"id": mandate_id})


async def insert_user(session: AsyncSession, **values: Any) -> UUID | None:
    """None when the address is taken in this mandate."""
    return await session.scalar(
        upsert(User)
        .values(mandate_id=tenant_of(session), id=new_id(), **values)
        .on_conflict_do_nothing(index_elements=["mandate_id", "email"])
        .returning(User.id)
    )


async def user(session: AsyncSession, user_id: UUID) -> User | None:
    return await session.scalar(select(User).where(User.id == user_id), execution_options=_FRESH)


async def user_by_email(session: AsyncSession, email: str) -> User | None:
    return await session.scalar(select(User).where(User.email == email))


async def list_users(session: AsyncSession, *, after: After, limit: int) -> Sequence[User]:
    statement = select(User).where(_beyond(User.created_at, User.id, after))
    return (await session.scalars(statement.order_by(User.created_at, User.id).limit(limit))).all()


async def update_user(session: AsyncSession, user_id: UUID, **values: Any) -> None:
    await session.execute(update(User).where(User.id == user_id).values(**values))


async def delete_user(session: AsyncSession, user_id: UUID) -> bool:
    gone = await session.scalar(delete(User).where(User.id == user_id).returning(User.id))
    return gone is not None


async def insert_member(session: AsyncSession, user_id: UUID, role: str) -> bool:
    """False when the user is already a member."""
    joined = await session.scalar(
        upsert(Membership)
        .values(mandate_id=tenant_of(session), user_id=user_id, role=role)
        .on_conflict_do_nothing()
        .returning(Membership.user_id)
    )
    return joined is not None


async def member_role(session: AsyncSession, user_id: UUID, *, lock: bool = False) -> str | None:
    statement = select(Membership.role).where(Membership.user_id == user_id)
    return await session.scalar(statement.with_for_update() if lock else statement)


async def members_among(session: AsyncSession, user_ids: Sequence[UUID]) -> set[UUID]:
    """Held until commit: whoever leaves meanwhile waits, and takes along what is hung on the membership."""
    statement = select(Membership.user_id).where(Membership.user_id.in_(user_ids))
    held = statement.order_by(Membership.user_id).with_for_update(read=True, key_share=True)
    return set(await session.scalars(held))


async def lock_owners(session: AsyncSession) -> Sequence[UUID]:
    """Held to the end of the transaction, so that two owners cannot leave past each other."""
    statement = select(Membership.user_id).where(Membership.role == "owner").order_by(Membership.user_id)
    return (await session.scalars(statement.with_for_update())).all()


async def list_members(
    session: AsyncSession, *, after: After, limit: int
) -> Sequence[tuple[Membership, User]]:
    rows = await session.execute(
        select(Membership, User)
        .join(User, (User.mandate_id == Membership.mandate_id) & (User.id == Membership.user_id))
        .where(_beyond(Membership.joined_at, Membership.user_id, after))
        .order_by(Membership.joined_at, Membership.user_id)
        .limit(limit)
    )
    return [(membership, person) for membership, person in rows]


async def count_members(session: AsyncSession) -> int:
    return await session.scalar(select(func.count()).select_from(Membership)) or 0


async def get_member(session: AsyncSession, user_id: UUID) -> tuple[Membership, User] | None:
    row = (
        await session.execute(
            select(Membership, User)
            .join(User, (User.mandate_id == Membership.mandate_id) & (User.id == Membership.user_id))
            .where(Membership.user_id == user_id),
            execution_options=_FRESH,
        )
    ).first()
    return (row[0], row[1]) if row else None


async def set_role(session: AsyncSession, user_id: UUID, role: str) -> None:
    await session.execute(update(Membership).where(Membership.user_id == user_id).values(role=role))


async def delete_member(session: AsyncSession, user_id: UUID) -> bool:
    """Takes the member's keys and sessions along (they hang on the membership) and first the routes that lead to them."""
    mandate_id = tenant_of(session)
    keys = select(ApiKey.id).where(ApiKey.user_id == user_id)
    sessions = select(LoginSession.id).where(LoginSession.user_id == user_id)
    await session.execute(
        delete(KeyRoute).where(KeyRoute.mandate_id == mandate_id, KeyRoute.key_id.in_(keys)),
        execution_options={"synchronize_session": False},
    )
    await session.execute(
        delete(SessionRoute).where(
            SessionRoute.mandate_id == mandate_id,
            or_(SessionRoute.subject_id == user_id, SessionRoute.subject_id.in_(sessions)),
        ),
        execution_options={"synchronize_session": False},
    )
    gone = await session.scalar(
        delete(Membership).where(Membership.user_id == user_id).returning(Membership.user_id)
    )
    return gone is not None


# -- feature instances


async def insert_feature_instance(session: AsyncSession, feature_code: str, label: str) -> UUID:
    instance_id = new_id()
    await session.execute(
        insert(FeatureInstance).values(
            mandate_id=tenant_of(session), id=instance_id, feature_code=feature_code, label=label
        )
    )
    return instance_id


async def feature_instance(session: AsyncSession, instance_id: UUID) -> FeatureInstance | None:
    return await session.scalar(
        select(FeatureInstance).where(FeatureInstance.id == instance_id), execution_options=_FRESH
    )


async def list_feature_instances(
    session: AsyncSession, *, after: After, limit: int
) -> Sequence[FeatureInstance]:
    statement = select(FeatureInstance).where(_beyond(FeatureInstance.created_at, FeatureInstance.id, after))
    ordered = statement.order_by(FeatureInstance.created_at, FeatureInstance.id)
    return (await session.scalars(ordered.limit(limit))).all()


async def update_feature_instance(session: AsyncSession, instance_id: UUID, label: str) -> None:
    await session.execute(
        update(FeatureInstance).where(FeatureInstance.id == instance_id).values(label=label)
    )


async def delete_feature_instance(session: AsyncSession, instance_id: UUID) -> bool:
    gone = await session.scalar(
        delete(FeatureInstance).where(FeatureInstance.id == instance_id).returning(FeatureInstance.id)
    )
    return gone is not None


async def feature_members(session: AsyncSession, instance_ids: Sequence[UUID]) -> dict[UUID, list[UUID]]:
    rows = await session.execute(
        select(FeatureMember.feature_instance_id, FeatureMember.user_id)
        .where(FeatureMember.feature_instance_id.in_(instance_ids))
        .order_by(FeatureMember.user_id)
    )
    found: dict[UUID, list[UUID]] = {instance_id: [] for instance_id in instance_ids}
    for instance_id, user_id in rows:
        found[instance_id].append(user_id)
    return found


async def set_feature_members(session: AsyncSession, instance_id: UUID, user_ids: Sequence[UUID]) -> None:
    await session.execute(delete(FeatureMember).where(FeatureMember.feature_instance_id == instance_id))
    if user_ids:
        rows = [
            {"mandate_id": tenant_of(session), "feature_instance_id": instance_id, "user_id": user_id}
            for user_id in sorted(set(user_ids))
        ]
        await session.execute(insert(FeatureMember), rows)


# -- keys


async def insert_key(session: AsyncSession, key_hash: bytes, **values: Any) -> UUID:
    key_id = new_id()
    mandate_id = tenant_of(session)
    await session.execute(insert(ApiKey).values(mandate_id=mandate_id, id=key_id, **values))
    await session.execute(insert(KeyRoute).values(key_hash=key_hash, mandate_id=mandate_id, key_id=key_id))
    return key_id


async def key(session: AsyncSession, key_id: UUID) -> ApiKey | None:
    return await session.scalar(select(ApiKey).where(ApiKey.id == key_id), execution_options=_FRESH)


async def list_keys(
    session: AsyncSession, *, user_id: UUID | None, after: After, limit: int
) -> Sequence[ApiKey]:
    """All keys of the mandate, or those of one user."""
    statement = select(ApiKey).where(_beyond(ApiKey.created_at, ApiKey.id, after))
    if user_id is not None:
        statement = statement.where(ApiKey.user_id == user_id)
    return (await session.scalars(statement.order_by(ApiKey.created_at, ApiKey.id).limit(limit))).all()


async def revoke_key(session: AsyncSession, key_id: UUID) -> bool:
    """The route goes at once; the row stays, so that a list still shows that the key existed."""
    revoked = await session.scalar(
        update(ApiKey)
        .where(ApiKey.id == key_id, ApiKey.revoked_at.is_(None))
        .values(revoked_at=func.now())
        .returning(ApiKey.id)
    )
    await session.execute(
        delete(KeyRoute).where(KeyRoute.mandate_id == tenant_of(session), KeyRoute.key_id == key_id)
    )
    return revoked is not None


async def rename_key(session: AsyncSession, key_id: UUID, name: str) -> None:
    await session.execute(update(ApiKey).where(ApiKey.id == key_id).values(name=name))


async def key_route(session: AsyncSession, key_hash: bytes) -> tuple[UUID, UUID] | None:
    """Hash of a key → (mandate, key)."""
    row = (
        await session.execute(
            select(KeyRoute.mandate_id, KeyRoute.key_id).where(KeyRoute.key_hash == key_hash)
        )
    ).first()
    return (row[0], row[1]) if row else None


class UsableKey(NamedTuple):
    """`role` is its user's, `acted_role` that of the user it wants to act as."""

    id: UUID
    user_id: UUID | None
    service: str | None
    scopes: list[str]
    role: str | None
    acted_role: str | None


async def usable_key(connection: Connection, key_id: UUID, act_as: UUID | None) -> UsableKey | None:
    """The key if it still works. Asked with every request, so it goes to the driver directly and is planned once."""
    cursor = await connection.execute(
        """
        SELECT k.id, k.user_id, k.service, k.scopes, m.role, a.role FROM api_key k
        LEFT JOIN membership m ON m.mandate_id = k.mandate_id AND m.user_id = k.user_id
        LEFT JOIN membership a ON a.mandate_id = k.mandate_id AND a.user_id = %(act_as)s::uuid
        WHERE k.id = %(id)s AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
        """,
        {"id": key_id, "act_as": act_as},
        prepare=True,
        binary=True,
    )
    row = await cursor.fetchone()
    return UsableKey._make(row) if row else None


# -- sign-in


async def insert_login_route(
    session: AsyncSession, token_hash: bytes, user_id: UUID, life: timedelta
) -> datetime:
    return await _insert_session_route(session, token_hash, "login", user_id, life)


async def use_login_route(session: AsyncSession, token_hash: bytes) -> tuple[UUID, UUID] | None:
    """Hash of a one-time link → (mandate, user), once: of two at the same instant one finds the row gone."""
    row = (
        await session.execute(
            delete(SessionRoute)
            .where(SessionRoute.token_hash == token_hash, SessionRoute.kind == "login")
            .where(SessionRoute.expires_at > func.now())
            .returning(SessionRoute.mandate_id, SessionRoute.subject_id)
        )
    ).first()
    return (row[0], row[1]) if row else None


async def insert_session(
    session: AsyncSession, token_hash: bytes, user_id: UUID, csrf_token: str, life: timedelta
) -> UUID:
    session_id = new_id()
    expires_at = await _insert_session_route(session, token_hash, "session", session_id, life)
    await session.execute(
        insert(LoginSession).values(
            mandate_id=tenant_of(session),
            id=session_id,
            user_id=user_id,
            csrf_token=csrf_token,
            expires_at=expires_at,
        )
    )
    return session_id


async def _insert_session_route(
    session: AsyncSession, token_hash: bytes, kind: str, subject_id: UUID, life: timedelta
) -> datetime:
    expires_at = await session.scalar(
        insert(SessionRoute)
        .values(
            token_hash=token_hash,
            kind=kind,
            mandate_id=tenant_of(session),
            subject_id=subject_id,
            expires_at=func.now() + life,
        )
        .returning(SessionRoute.expires_at)
    )
    assert expires_at is not None, "an INSERT without a conflict clause returns its row"  # noqa: S101
    return expires_at


async def session_route(session: AsyncSession, token_hash: bytes) -> tuple[UUID, UUID] | None:
    """Hash of a session cookie → (mandate, session)."""
    row = (
        await session.execute(
            select(SessionRoute.mandate_id, SessionRoute.subject_id).where(
                SessionRoute.token_hash == token_hash, SessionRoute.kind == "session"
            )
        )
    ).first()
    return (row[0], row[1]) if row else None


class UsableSession(NamedTuple):
    """`role` is its user's."""

    id: UUID
    user_id: UUID
    csrf_token: str
    role: str


async def usable_session(connection: Connection, session_id: UUID) -> UsableSession | None:
    """The session if it has not expired."""
    cursor = await connection.execute(
        """
        SELECT s.id, s.user_id, s.csrf_token, m.role FROM session s
        JOIN membership m ON m.mandate_id = s.mandate_id AND m.user_id = s.user_id
        WHERE s.id = %(id)s AND s.expires_at > now()
        """,
        {"id": session_id},
        prepare=True,
        binary=True,
    )
    row = await cursor.fetchone()
    return UsableSession._make(row) if row else None


async def delete_session(session: AsyncSession, session_id: UUID) -> None:
    await session.execute(
        delete(SessionRoute).where(
            SessionRoute.mandate_id == tenant_of(session), SessionRoute.subject_id == session_id
        )
    )
    await session.execute(delete(LoginSession).where(LoginSession.id == session_id))


async def delete_expired_sessions(session: AsyncSession) -> None:
    """Those of the session's mandate; called at each sign-in, so that nothing has to remember to run it."""
    await session.execute(
        delete(SessionRoute).where(
            SessionRoute.mandate_id == tenant_of(session), SessionRoute.expires_at <= func.now()
        )
    )
    await session.execute(delete(LoginSession).where(LoginSession.expires_at <= func.now()))


# -- the house


async def sweeper_age_seconds(session: AsyncSession) -> float | None:
    """How long ago the sweeper last ran; None before a worker ever did."""
    return await session.scalar(
        text("SELECT extract(epoch FROM now() - beat_at)::float FROM heartbeat WHERE name = 'sweeper'")
    )


async def schema_revision(session: AsyncSession) -> str | None:
    return await session.scalar(text("SELECT version_num FROM alembic_version"))
