"""The rules of tenancy: who may make, change and remove whom. SQL is in the repository, commits are at the edge.

Owners and admins manage; only an owner makes, demotes or removes owners; a mandate always keeps one. Nobody hands
out more than they hold. A member who leaves loses sessions and keys in the same transaction. What a snapshot may speak of
is announced by an event in the same transaction too, whichever door the change came through.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import COMMONS, Database, emit_on_commit, enter_tenant, new_id, raw_connection, tenant_of
from gateway.errors import (
    Conflict,
    InvalidRequest,
    LegalHold,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    fields_invalid,
)
from gateway.ingestion.events import record_event
from gateway.ingestion.facade import resume_waiting
from gateway.tenancy import hold_repository, repository
from gateway.tenancy.models import ApiKey, FeatureInstance, Mandate, Membership, User
from gateway.tenancy.principal import ROLE_SCOPES, Principal, new_token, token_hash
from gateway.tenancy.schemas import (
    FeatureInstanceIn,
    FeatureInstanceOut,
    FeatureInstancePatch,
    KeyIn,
    MandateIn,
    MemberOut,
    Policy,
    Role,
    Scope,
    UserIn,
    UserPatch,
)
from gateway.wire import merge

LOGIN_LINK_LIFE = timedelta(minutes=15)


@dataclass(frozen=True)
class NewMandate:
    mandate: Mandate
    owner_id: UUID
    owner_key: str


# -- mandates and policy


async def create_mandate(session: AsyncSession, wanted: MandateIn, operator: Principal) -> NewMandate:
    """In a session of the operator's own mandate; it ends in the new one."""
    email, name = wanted.owner_email, wanted.owner_name
    if email is None:
        myself = await repository.user(session, operator.user_id) if operator.user_id else None
        if myself is None:
            raise InvalidRequest("A service must say who owns the new mandate: send ownerEmail.")
        email, name = myself.email, name or myself.display_name
    return await open_mandate(session, wanted.slug, wanted.name, email=email, owner_name=name or email)


async def open_mandate(
    session: AsyncSession,
    slug: str,
    name: str,
    *,
    email: str,
    owner_name: str,
    scopes: tuple[Scope, ...] = (),
) -> NewMandate:
    """A mandate with its owner and the owner's first key, in whatever session; from here on it is the new tenant's."""
    mandate_id = new_id()
    if not await repository.claim_slug(session, slug, mandate_id):
        raise Conflict(f"There is already a mandate {slug!r}.")
    await enter_tenant(session, mandate_id)
    await repository.insert_mandate(session, slug, name)
    owner_id = await repository.insert_user(session, email=email, display_name=owner_name)
    assert owner_id is not None, "a new mandate has no users yet"  # noqa: S101
    await repository.insert_member(session, owner_id, "owner")
    _, secret = await make_key(
        session, "first key", (*sorted(ROLE_SCOPES["owner"]), *scopes), user_id=owner_id
    )
    return NewMandate(await get_mandate(session), owner_id, secret)


async def get_mandate(session: AsyncSession, *, lock: bool = False) -> Mandate:
    found = await repository.mandate(session, lock=lock)
    if found is None:
        raise NotFound("There is no such mandate.")
    return found


async def enter_mandate(session: AsyncSession, mandate_id: UUID, principal: Principal) -> None:
    """The caller's own mandate is open to it; the others to operators."""
    if mandate_id != principal.mandate_id:
        if "operator" not in principal.scopes or not await repository.mandate_exists(session, mandate_id):
            raise NotFound("There is no such mandate.")
        await enter_tenant(session, mandate_id)


async def rename_mandate(session: AsyncSession, name: str) -> Mandate:
    await repository.update_mandate(session, name=name)
    await record_event(session, "MandateUpdated", {})
    return await get_mandate(session)


async def delete_mandate(session: AsyncSession, operator: Principal) -> None:
    """The session's mandate, once nothing of what it knew is left. Its receipts go with it."""
    mandate_id = tenant_of(session)
    if mandate_id in {COMMONS, operator.mandate_id}:
        raise Conflict("The commons and your own mandate cannot be deleted.")
    _refuse_under_hold(await get_mandate(session, lock=True), "deleting it")
    if await repository.holds_documents(session):
        raise Conflict(
            'The mandate still holds documents; erase them first: POST /v1/erasures {"mandate": true}.'
        )
    await repository.delete_mandate(session)
    emit_on_commit(session, "tenancy.mandate.deleted", mandateId=str(mandate_id))


async def policy_of(session: AsyncSession) -> Policy:
    return Policy.model_validate((await get_mandate(session)).policy)


async def patch_policy(session: AsyncSession, patch: dict[str, Any]) -> Policy:
    """RFC 7396; only what differs from the defaults is kept, so that a later default reaches old mandates."""
    if "legalHold" in patch:  # from this answer on nothing goes
        await hold_repository.wait_for_erasures(session)
    before = (await get_mandate(session, lock=True)).policy
    stored = merge(before, patch)
    try:
        policy = Policy.model_validate(stored, by_alias=True, by_name=False)
    except ValidationError as error:
        raise fields_invalid(error.errors()) from error
    earlier = Policy.model_validate(before)
    _check_kinds(policy, earlier)
    await repository.update_mandate(session, policy=stored)
    await _announce_policy(session, earlier, policy)
    for reason in ("budget", "grace", "legal hold"):  # whatever waits for these looks again
        await resume_waiting(session, reason)
    return policy


def _check_kinds(policy: Policy, before: Policy) -> None:
    """Of what is new: a word that names no kind would let nothing through and look as if it did."""
    from gateway.corpus.personal_data import KINDS  # noqa: PLC0415 - loads its patterns

    allowed, kept = policy.neutralisation.allow_personal_data, before.neutralisation.allow_personal_data
    if set(allowed) - set(kept) - set(KINDS):
        where = ("neutralisation", "allowPersonalData")
        raise fields_invalid(
            [{"loc": where, "msg": f"Known kinds are {', '.join(KINDS)}", "type": "literal_error"}]
        )


async def _announce_policy(session: AsyncSession, before: Policy, after: Policy) -> None:
    """The mandate's own snapshot tells of the policy; whether there are any snapshots hangs on a few of its words."""
    if before == after:
        return
    deciding = {"snapshots", "refused_source_kinds", "legal_hold"}
    everything = before.model_dump(include=deciding) != after.model_dump(include=deciding)
    await record_event(session, "MandateUpdated", {"everything": everything})


# -- users and members


async def create_user(session: AsyncSession, wanted: UserIn, principal: Principal) -> User:
    """A user and their membership in one step."""
    _may_grant(principal, wanted.role)
    user_id = await repository.insert_user(session, **wanted.model_dump(exclude={"role"}))
    if user_id is None:
        raise Conflict(f"{wanted.email} is already a user of this mandate.")
    await _join(session, user_id, wanted.role)
    return await get_user(session, user_id)


async def get_user(session: AsyncSession, user_id: UUID) -> User:
    found = await repository.user(session, user_id)
    if found is None:
        raise NotFound(f"There is no user {user_id} here.")
    return found


async def change_user(session: AsyncSession, user_id: UUID, patch: UserPatch, principal: Principal) -> User:
    """One's own profile, or anybody's as an admin."""
    if user_id != principal.user_id and not principal.is_admin:
        raise NotAllowed("Only an admin may change somebody else's profile.")
    await get_user(session, user_id)
    values = patch.model_dump(exclude_unset=True, exclude_none=True)
    if values:
        await repository.update_user(session, user_id, **values)
        await record_event(session, "ProfileUpdated", {"userId": str(user_id)})
    return await get_user(session, user_id)


async def delete_user(session: AsyncSession, user_id: UUID, principal: Principal) -> None:
    await get_user(session, user_id)
    _refuse_under_hold(
        await get_mandate(session),
        "deleting an account; that its user is no member any more can be said meanwhile",
    )
    if await repository.member_role(session, user_id) is not None:
        await remove_member(session, user_id, principal)
    await repository.delete_user(session, user_id)


def _refuse_under_hold(mandate: Mandate, what: str) -> None:
    if Policy.model_validate(mandate.policy).legal_hold:
        raise LegalHold(f"The mandate is under legal hold; lift it in the policy before {what}.")


async def add_member(session: AsyncSession, user_id: UUID, role: Role, principal: Principal) -> MemberOut:
    _may_grant(principal, role)
    await get_user(session, user_id)
    if not await _join(session, user_id, role):
        raise Conflict("That user is already a member.")
    return await get_member(session, user_id)


async def _join(session: AsyncSession, user_id: UUID, role: Role) -> bool:
    joined = await repository.insert_member(session, user_id, role)
    if joined:
        await record_event(session, "MembershipChanged", {"userId": str(user_id), "role": role})
    return joined


async def get_member(session: AsyncSession, user_id: UUID) -> MemberOut:
    found = await repository.get_member(session, user_id)
    if found is None:
        raise NotFound(f"{user_id} is no member here.")
    return member_out(*found)


def member_out(membership: Membership, person: User) -> MemberOut:
    return MemberOut(
        user_id=person.id,
        email=person.email,
        display_name=person.display_name,
        role=membership.role,  # pyright: ignore[reportArgumentType] - the table's CHECK says so
        joined_at=membership.joined_at,
    )


async def change_role(session: AsyncSession, user_id: UUID, role: Role, principal: Principal) -> MemberOut:
    _may_grant(principal, role)
    await _let_go(session, user_id, principal, keeps_owner=role == "owner")
    await repository.set_role(session, user_id, role)
    await record_event(session, "MembershipChanged", {"userId": str(user_id), "role": role})
    return await get_member(session, user_id)


async def remove_member(session: AsyncSession, user_id: UUID, principal: Principal) -> None:
    """Leaving, or being removed. Sessions, keys and the routes to them go with the membership."""
    if user_id != principal.user_id and not principal.is_admin:
        raise NotAllowed("Only an admin may remove somebody else.")
    await _let_go(session, user_id, principal, keeps_owner=False)
    await repository.delete_member(session, user_id)
    await record_event(session, "MembershipChanged", {"userId": str(user_id), "role": None})
    emit_on_commit(session, "tenancy.member.left", mandateId=str(tenant_of(session)), userId=str(user_id))


async def _let_go(session: AsyncSession, user_id: UUID, principal: Principal, *, keeps_owner: bool) -> None:
    """Takes the locks and the decision that a member may change or leave."""
    owners = await repository.lock_owners(session)
    role = await repository.member_role(session, user_id, lock=True)
    if role is None:
        raise NotFound(f"{user_id} is no member here.")
    if role == "owner" and not keeps_owner:
        if not principal.outranks("owner"):
            raise NotAllowed("Only an owner may demote or remove an owner.")
        if len(owners) == 1:
            raise Conflict("This is the last owner; make somebody else an owner first.")


def _may_grant(principal: Principal, role: Role) -> None:
    if not principal.outranks(role):
        raise NotAllowed(f"Only an owner may make somebody {role}.")


# -- feature instances


async def create_feature_instance(session: AsyncSession, wanted: FeatureInstanceIn) -> FeatureInstanceOut:
    instance_id = await repository.insert_feature_instance(session, wanted.feature_code, wanted.label)
    await _set_feature_members(session, instance_id, wanted.member_ids)
    await _announce_feature(session, instance_id)
    return await get_feature_instance(session, instance_id)


async def get_feature_instance(session: AsyncSession, instance_id: UUID) -> FeatureInstanceOut:
    found = await repository.feature_instance(session, instance_id)
    if found is None:
        raise NotFound(f"There is no feature instance {instance_id} here.")
    return (await with_members(session, [found]))[0]


async def with_members(session: AsyncSession, rows: list[FeatureInstance]) -> list[FeatureInstanceOut]:
    members = await repository.feature_members(session, [row.id for row in rows])
    return [
        FeatureInstanceOut(
            id=row.id,
            feature_code=row.feature_code,
            label=row.label,
            member_ids=members[row.id],
            created_at=row.created_at,
        )
        for row in rows
    ]


async def change_feature_instance(
    session: AsyncSession, instance_id: UUID, patch: FeatureInstancePatch
) -> FeatureInstanceOut:
    await get_feature_instance(session, instance_id)
    if patch.label is not None:
        await repository.update_feature_instance(session, instance_id, patch.label)
    if patch.member_ids is not None:
        await _set_feature_members(session, instance_id, patch.member_ids)
    await _announce_feature(session, instance_id)
    return await get_feature_instance(session, instance_id)


async def delete_feature_instance(session: AsyncSession, instance_id: UUID) -> None:
    await get_feature_instance(session, instance_id)
    await repository.delete_feature_instance(session, instance_id)
    await _announce_feature(session, instance_id)


async def _announce_feature(session: AsyncSession, instance_id: UUID) -> None:
    """Its label stands in what is said of the mandate and of its members."""
    payload = {"featureInstanceId": str(instance_id), "everything": True}
    await record_event(session, "FeatureConfigChanged", payload)


async def _set_feature_members(session: AsyncSession, instance_id: UUID, user_ids: list[UUID]) -> None:
    strangers = set(user_ids) - await repository.members_among(session, user_ids)
    if strangers:
        raise InvalidRequest(f"Not members here: {', '.join(sorted(map(str, strangers)))}.")
    await repository.set_feature_members(session, instance_id, user_ids)


# -- keys


async def create_key(session: AsyncSession, wanted: KeyIn, principal: Principal) -> tuple[ApiKey, str]:
    """For oneself, or as an admin for a service or for a user of no higher rank; never with more than one holds."""
    if principal.acting:
        raise NotAllowed("A service that acts for a user cannot make keys.")
    user_id = None if wanted.service else wanted.user_id or principal.user_id
    if wanted.service is None and user_id is None:
        raise InvalidRequest("Say whose key it is: send userId or service.")
    if wanted.service is not None and wanted.user_id is not None:
        raise InvalidRequest("A key belongs to a user or to a service, not to both.")
    scopes = frozenset(wanted.scopes)
    if user_id is None or user_id != principal.user_id:
        if not principal.is_admin:
            raise NotAllowed("Only an admin may make keys for services or for somebody else.")
        if user_id is not None and not principal.outranks(await _role_of(session, user_id)):
            raise NotAllowed("Only an owner may make keys for an owner.")
    if "act_as" in scopes and user_id is not None:
        raise InvalidRequest("Only a service's key can act for users.")
    grantable = principal.scopes | ({"act_as"} if principal.is_admin else frozenset[Scope]())
    if scopes - grantable:
        raise NotAllowed(
            f"You cannot hand out what you do not hold: {', '.join(sorted(scopes - grantable))}."
        )
    if await _outlives(session, wanted.expires_at, principal):
        raise NotAllowed("This key expires; one that it makes cannot work longer: send an earlier expiresAt.")
    return await make_key(
        session,
        wanted.name,
        tuple(sorted(scopes)),
        user_id=user_id,
        service=wanted.service,
        expires_at=wanted.expires_at,
    )


async def _outlives(session: AsyncSession, expires_at: datetime | None, principal: Principal) -> bool:
    """Whether what a key is asked to make would still work when the key itself no longer does."""
    if principal.via != "key":
        return False
    end = (await _get_key(session, principal.credential_id)).expires_at
    return end is not None and (expires_at is None or expires_at > end)


async def make_key(
    session: AsyncSession,
    name: str,
    scopes: tuple[Scope, ...],
    *,
    user_id: UUID | None = None,
    service: str | None = None,
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """The row and the secret. The secret exists nowhere else."""
    secret = new_token("ck")
    key_id = await repository.insert_key(
        session,
        token_hash(secret),
        name=name,
        hint=secret[-4:],
        user_id=user_id,
        service=service,
        scopes=list(scopes),
        expires_at=expires_at,
    )
    emit_on_commit(session, "tenancy.key.created", mandateId=str(tenant_of(session)), keyId=str(key_id))
    return await _get_key(session, key_id), secret


async def revoke_key(session: AsyncSession, key_id: UUID, principal: Principal) -> None:
    """One's own, or any as an admin. Revoking twice is no error."""
    found = await visible_key(session, key_id, principal)
    if (
        found.user_id
        and found.user_id != principal.user_id
        and not principal.outranks(await _role_of(session, found.user_id))
    ):
        raise NotAllowed("Only an owner may revoke an owner's key.")
    if found.user_id:
        # The membership before what hangs on it, as everywhere; who leaves at this instant takes the key along.
        await repository.member_role(session, found.user_id, lock=True)
    if await repository.revoke_key(session, key_id):
        emit_on_commit(session, "tenancy.key.revoked", mandateId=str(tenant_of(session)), keyId=str(key_id))


async def rename_key(session: AsyncSession, key_id: UUID, name: str, principal: Principal) -> ApiKey:
    await visible_key(session, key_id, principal)
    await repository.rename_key(session, key_id, name)
    return await _get_key(session, key_id)


async def visible_key(session: AsyncSession, key_id: UUID, principal: Principal) -> ApiKey:
    found = await _get_key(session, key_id)
    if not principal.is_admin and (found.user_id is None or found.user_id != principal.user_id):
        raise NotFound(f"There is no key {key_id} here.")
    return found


async def _get_key(session: AsyncSession, key_id: UUID) -> ApiKey:
    found = await repository.key(session, key_id)
    if found is None:
        raise NotFound(f"There is no key {key_id} here.")
    return found


async def _role_of(session: AsyncSession, user_id: UUID) -> Role:
    role = await repository.member_role(session, user_id)
    if role is None:
        raise NotFound(f"{user_id} is no member here.")
    return role  # pyright: ignore[reportReturnType] - the table's CHECK says so


# -- sign-in


async def create_login_link(session: AsyncSession, user_id: UUID, base_url: str) -> tuple[str, datetime]:
    """A URL that signs this member in, once, within a quarter of an hour."""
    await _role_of(session, user_id)
    token = new_token("cl")
    expires_at = await repository.insert_login_route(session, token_hash(token), user_id, LOGIN_LINK_LIFE)
    return f"{base_url.rstrip('/')}/login?token={token}", expires_at


async def request_login_link(
    session: AsyncSession, user_id: UUID | None, principal: Principal, base_url: str
) -> tuple[str, datetime]:
    """For oneself or, as an admin, for others of no higher rank.

    A session has all its role allows, so a key with fewer scopes cannot make one.
    """
    if principal.acting:
        raise NotAllowed("A service that acts for a user cannot make login links.")
    target = user_id or principal.user_id
    if target is None:
        raise InvalidRequest("Say whom the link is for: send userId.")
    role = await _role_of(session, target)
    if target != principal.user_id and not (principal.is_admin and principal.outranks(role)):
        raise NotAllowed(
            "Only an admin may make login links for somebody else, and only an owner for an owner."
        )
    if ROLE_SCOPES[role] - principal.scopes:
        raise NotAllowed("The key has fewer scopes than a session of that user would have.")
    if await _outlives(session, None, principal):
        raise NotAllowed("This key expires, and a session could last longer.")
    return await create_login_link(session, target, base_url)


async def sign_in(db: Database, token: str, life: timedelta) -> str:
    """Uses a one-time link up and returns the session cookie's value."""
    cookie = new_token("cs")
    async with db.routing_session() as session:
        route = await repository.use_login_route(session, token_hash(token))
        if route is None:
            raise NotAuthenticated("This link was already used or has expired.")
        mandate_id, user_id = route
        await enter_tenant(session, mandate_id)
        if await repository.member_role(session, user_id, lock=True) is None:
            raise NotAuthenticated("This link was already used or has expired.")
        await repository.delete_expired_sessions(session)
        await repository.insert_session(session, token_hash(cookie), user_id, new_token("cs"), life)
    return cookie


async def sign_out(db: Database, principal: Principal) -> None:
    async with db.tenant_session(principal.mandate_id) as session:
        await repository.delete_session(session, principal.credential_id)


# -- seeding


@dataclass(frozen=True)
class LocalOwner:
    mandate_id: UUID
    user_id: UUID
    key: str


LOCAL_EMAIL, LOCAL_NAME = "owner@localhost", "Owner"


async def ensure_member(session: AsyncSession, email: str, name: str, role: Role) -> UUID:
    """Adds the user and the membership where missing; who is a member already keeps their role."""
    await repository.insert_user(session, email=email, display_name=name)
    person = await repository.user_by_email(session, email)
    assert person is not None, "just inserted, or already there"  # noqa: S101
    await _join(session, person.id, role)
    return person.id


async def seed_commons(session: AsyncSession) -> None:
    if await repository.claim_slug(session, "commons", COMMONS):
        await enter_tenant(session, COMMONS)
        await repository.insert_mandate(session, "commons", "Commons")


async def open_house(db: Database, wanted: MandateIn, base_url: str) -> tuple[NewMandate, str]:
    """A mandate whose owner is an operator, and a link that signs them in: the way into a house nobody has a key to yet."""
    assert wanted.owner_email is not None, "nobody is asking whose address could be taken"  # noqa: S101
    async with db.routing_session() as session:
        await seed_commons(session)
    async with db.routing_session() as session:
        made = await open_mandate(
            session,
            wanted.slug,
            wanted.name,
            email=wanted.owner_email,
            owner_name=wanted.owner_name or wanted.owner_email,
            scopes=("operator",),
        )
        login_url, _ = await create_login_link(session, made.owner_id, base_url)
    return made, login_url


async def seed_local_owner(db: Database, known_key: str | None = None, *, slug: str = "local") -> LocalOwner:
    """The commons, the mandate of whoever runs the house here, and its owner with an operator's key.

    `known_key` is kept if it still works, otherwise replaced.
    """
    async with db.routing_session() as session:
        await seed_commons(session)
    async with db.routing_session() as session:
        mandate_id = await repository.mandate_of_slug(session, slug)
        if mandate_id is None:
            made = await open_mandate(
                session,
                slug,
                slug.capitalize(),
                email=LOCAL_EMAIL,
                owner_name=LOCAL_NAME,
                scopes=("operator",),
            )
            return LocalOwner(made.mandate.mandate_id, made.owner_id, made.owner_key)
        route = await repository.key_route(session, token_hash(known_key)) if known_key else None
        await enter_tenant(session, mandate_id)
        # Whoever can start the house holds its files: removed, they are back with the next start.
        owner_id = await ensure_member(session, LOCAL_EMAIL, LOCAL_NAME, "owner")
        connection = await raw_connection(session)
        works = route and route[0] == mandate_id and await repository.usable_key(connection, route[1], None)
        if known_key and works:
            return LocalOwner(mandate_id, owner_id, known_key)
        scopes: tuple[Scope, ...] = (*sorted(ROLE_SCOPES["owner"]), "operator")
        _, secret = await make_key(session, "local owner", scopes, user_id=owner_id)
        return LocalOwner(mandate_id, owner_id, secret)
