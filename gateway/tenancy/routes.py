"""Mandates, users, members, feature instances, keys and policy over HTTP (DESIGN §5)."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from fastapi import APIRouter, Request

from gateway.db import enter_tenant
from gateway.http import Cursor, Db, Limit, base_url
from gateway.tenancy import repository, service
from gateway.tenancy.access import Admin, Operator, Reader, Writer
from gateway.tenancy.schemas import (
    FeatureInstanceIn,
    FeatureInstanceOut,
    FeatureInstancePatch,
    KeyIn,
    KeyOut,
    KeyPatch,
    LoginLinkIn,
    LoginLinkOut,
    MandateIn,
    MandateOut,
    MandatePatch,
    MemberIn,
    MemberOut,
    MemberPatch,
    NewKeyOut,
    NewMandateOut,
    Policy,
    UserIn,
    UserOut,
    UserPatch,
    WhoAmIOut,
)
from gateway.wire import JsonPatch, Page, decode_cursor, encode_cursor

router = APIRouter(tags=["tenancy"])

Row = TypeVar("Row")


def _after(cursor: str | None) -> repository.After:
    return decode_cursor(cursor) if cursor else None


def _cut(
    rows: Sequence[Row], limit: int, place: Callable[[Row], tuple[datetime, UUID]]
) -> tuple[list[Row], str | None]:
    """One row more than the page was asked for; it says whether there is a next one."""
    page = list(rows[:limit])
    return page, encode_cursor(*place(page[-1])) if len(rows) > limit else None


@router.get("/whoami")
async def whoami(principal: Reader) -> WhoAmIOut:
    return WhoAmIOut(
        mandate_id=principal.mandate_id,
        user_id=principal.user_id,
        service=principal.service,
        role=principal.role,
        scopes=sorted(principal.scopes),
        via=principal.via,
    )


# -- mandates and policy


@router.post("/mandates", status_code=201)
async def create_mandate(db: Db, wanted: MandateIn, principal: Operator) -> NewMandateOut:
    async with db.tenant_session(principal.mandate_id) as session:
        made = await service.create_mandate(session, wanted, principal)
    shown = MandateOut.model_validate(made.mandate)
    return NewMandateOut(**shown.model_dump(), owner_id=made.owner_id, owner_key=made.owner_key)


@router.get("/mandates")
async def list_mandates(
    db: Db, principal: Reader, limit: Limit = 50, cursor: Cursor = None
) -> Page[MandateOut]:
    """One's own; for operators all."""
    async with db.tenant_session(principal.mandate_id) as session:
        if "operator" not in principal.scopes:
            return Page(items=[MandateOut.model_validate(await service.get_mandate(session))])
        routes = await repository.list_mandate_ids(session, after=_after(cursor), limit=limit + 1)
        page, next_cursor = _cut(routes, limit, lambda route: route)
        items: list[MandateOut] = []
        for _, mandate_id in page:
            # Names are a tenant's own, so each is read as that tenant.
            await enter_tenant(session, mandate_id)
            items.append(MandateOut.model_validate(await service.get_mandate(session)))
    return Page(items=items, next_cursor=next_cursor)


@router.get("/mandates/{mandate_id}")
async def get_mandate(db: Db, mandate_id: UUID, principal: Reader) -> MandateOut:
    async with db.tenant_session(principal.mandate_id) as session:
        await service.enter_mandate(session, mandate_id, principal)
        return MandateOut.model_validate(await service.get_mandate(session))


@router.patch("/mandates/{mandate_id}")
async def rename_mandate(db: Db, mandate_id: UUID, patch: MandatePatch, principal: Admin) -> MandateOut:
    async with db.tenant_session(principal.mandate_id) as session:
        await service.enter_mandate(session, mandate_id, principal)
        renamed = await service.rename_mandate(session, patch.name)
    return MandateOut.model_validate(renamed)


@router.delete("/mandates/{mandate_id}", status_code=204)
async def delete_mandate(db: Db, mandate_id: UUID, principal: Operator) -> None:
    """Takes an emptied mandate away with its users, keys and sessions; what it knows is erased by POST /erasures first."""
    async with db.tenant_session(principal.mandate_id) as session:
        await service.enter_mandate(session, mandate_id, principal)
        await service.delete_mandate(session, principal)


@router.get("/policy")
async def get_policy(db: Db, principal: Reader) -> Policy:
    async with db.tenant_session(principal.mandate_id) as session:
        return await service.policy_of(session)


@router.patch("/policy")
async def patch_policy(db: Db, patch: JsonPatch, principal: Admin) -> Policy:
    """A merge patch (RFC 7396): null puts a field back to its default."""
    async with db.tenant_session(principal.mandate_id) as session:
        return await service.patch_policy(session, patch)


# -- users and members


@router.post("/users", status_code=201)
async def create_user(db: Db, wanted: UserIn, principal: Admin) -> UserOut:
    async with db.tenant_session(principal.mandate_id) as session:
        made = await service.create_user(session, wanted, principal)
    return UserOut.model_validate(made)


@router.get("/users")
async def list_users(db: Db, principal: Reader, limit: Limit = 50, cursor: Cursor = None) -> Page[UserOut]:
    async with db.tenant_session(principal.mandate_id) as session:
        rows = await repository.list_users(session, after=_after(cursor), limit=limit + 1)
    page, next_cursor = _cut(rows, limit, lambda row: (row.created_at, row.id))
    return Page(items=[UserOut.model_validate(row) for row in page], next_cursor=next_cursor)


@router.get("/users/{user_id}")
async def get_user(db: Db, user_id: UUID, principal: Reader) -> UserOut:
    async with db.tenant_session(principal.mandate_id) as session:
        return UserOut.model_validate(await service.get_user(session, user_id))


@router.patch("/users/{user_id}")
async def change_user(db: Db, user_id: UUID, patch: UserPatch, principal: Writer) -> UserOut:
    async with db.tenant_session(principal.mandate_id) as session:
        changed = await service.change_user(session, user_id, patch, principal)
    return UserOut.model_validate(changed)


@router.delete("/users/{user_id}", status_code=204)
async def delete_user(db: Db, user_id: UUID, principal: Admin) -> None:
    """Removes the membership and the profile. What the user brought is erased by POST /erasures."""
    async with db.tenant_session(principal.mandate_id) as session:
        await service.delete_user(session, user_id, principal)


@router.post("/members", status_code=201)
async def add_member(db: Db, wanted: MemberIn, principal: Admin) -> MemberOut:
    async with db.tenant_session(principal.mandate_id) as session:
        return await service.add_member(session, wanted.user_id, wanted.role, principal)


@router.get("/members")
async def list_members(
    db: Db, principal: Reader, limit: Limit = 50, cursor: Cursor = None
) -> Page[MemberOut]:
    async with db.tenant_session(principal.mandate_id) as session:
        rows = await repository.list_members(session, after=_after(cursor), limit=limit + 1)
    page, next_cursor = _cut(rows, limit, lambda row: (row[0].joined_at, row[0].user_id))
    return Page(items=[service.member_out(*row) for row in page], next_cursor=next_cursor)


@router.get("/members/{user_id}")
async def get_member(db: Db, user_id: UUID, principal: Reader) -> MemberOut:
    async with db.tenant_session(principal.mandate_id) as session:
        return await service.get_member(session, user_id)


@router.patch("/members/{user_id}")
async def change_role(db: Db, user_id: UUID, patch: MemberPatch, principal: Admin) -> MemberOut:
    async with db.tenant_session(principal.mandate_id) as session:
        return await service.change_role(session, user_id, patch.role, principal)


@router.delete("/members/{user_id}", status_code=204)
async def remove_member(db: Db, user_id: UUID, principal: Writer) -> None:
    """Leaving oneself, or removing somebody as an admin. Sessions and keys stop working at once."""
    async with db.tenant_session(principal.mandate_id) as session:
        await service.remove_member(session, user_id, principal)


# -- feature instances


@router.post("/feature-instances", status_code=201)
async def create_feature_instance(db: Db, wanted: FeatureInstanceIn, principal: Admin) -> FeatureInstanceOut:
    async with db.tenant_session(principal.mandate_id) as session:
        return await service.create_feature_instance(session, wanted)


@router.get("/feature-instances")
async def list_feature_instances(
    db: Db, principal: Reader, limit: Limit = 50, cursor: Cursor = None
) -> Page[FeatureInstanceOut]:
    async with db.tenant_session(principal.mandate_id) as session:
        rows = await repository.list_feature_instances(session, after=_after(cursor), limit=limit + 1)
        page, next_cursor = _cut(rows, limit, lambda row: (row.created_at, row.id))
        return Page(items=await service.with_members(session, page), next_cursor=next_cursor)


@router.get("/feature-instances/{instance_id}")
async def get_feature_instance(db: Db, instance_id: UUID, principal: Reader) -> FeatureInstanceOut:
    async with db.tenant_session(principal.mandate_id) as session:
        return await service.get_feature_instance(session, instance_id)


@router.patch("/feature-instances/{instance_id}")
async def change_feature_instance(
    db: Db, instance_id: UUID, patch: FeatureInstancePatch, principal: Admin
) -> FeatureInstanceOut:
    async with db.tenant_session(principal.mandate_id) as session:
        return await service.change_feature_instance(session, instance_id, patch)


@router.delete("/feature-instances/{instance_id}", status_code=204)
async def delete_feature_instance(db: Db, instance_id: UUID, principal: Admin) -> None:
    async with db.tenant_session(principal.mandate_id) as session:
        await service.delete_feature_instance(session, instance_id)


# -- keys and login links


@router.post("/keys", status_code=201)
async def create_key(db: Db, wanted: KeyIn, principal: Writer) -> NewKeyOut:
    """The answer holds the secret; it cannot be shown again."""
    async with db.tenant_session(principal.mandate_id) as session:
        made, secret = await service.create_key(session, wanted, principal)
    return NewKeyOut(**KeyOut.model_validate(made).model_dump(), key=secret)


@router.get("/keys")
async def list_keys(db: Db, principal: Reader, limit: Limit = 50, cursor: Cursor = None) -> Page[KeyOut]:
    """One's own; for admins all of the mandate."""
    whose = None if principal.is_admin else principal.user_id
    if whose is None and not principal.is_admin:
        return Page(items=[])
    async with db.tenant_session(principal.mandate_id) as session:
        rows = await repository.list_keys(session, user_id=whose, after=_after(cursor), limit=limit + 1)
    page, next_cursor = _cut(rows, limit, lambda row: (row.created_at, row.id))
    return Page(items=[KeyOut.model_validate(row) for row in page], next_cursor=next_cursor)


@router.get("/keys/{key_id}")
async def get_key(db: Db, key_id: UUID, principal: Reader) -> KeyOut:
    async with db.tenant_session(principal.mandate_id) as session:
        return KeyOut.model_validate(await service.visible_key(session, key_id, principal))


@router.patch("/keys/{key_id}")
async def rename_key(db: Db, key_id: UUID, patch: KeyPatch, principal: Writer) -> KeyOut:
    """What a key may do is fixed when it is made; its name is not."""
    async with db.tenant_session(principal.mandate_id) as session:
        return KeyOut.model_validate(await service.rename_key(session, key_id, patch.name, principal))


@router.delete("/keys/{key_id}", status_code=204)
async def revoke_key(db: Db, key_id: UUID, principal: Writer) -> None:
    async with db.tenant_session(principal.mandate_id) as session:
        await service.revoke_key(session, key_id, principal)


@router.post("/login-links", status_code=201)
async def create_login_link(db: Db, request: Request, wanted: LoginLinkIn, principal: Writer) -> LoginLinkOut:
    """A URL that signs a member in to the console, once, within 15 minutes."""
    async with db.tenant_session(principal.mandate_id) as session:
        url, expires_at = await service.request_login_link(
            session, wanted.user_id, principal, base_url(request)
        )
    return LoginLinkOut(url=url, expires_at=expires_at)
