"""Every change of tenancy that a snapshot may speak of is announced with it, or not at all."""

from uuid import UUID

import pytest
from sqlalchemy import text

from gateway.db import Database
from gateway.tenancy import service
from gateway.tenancy.principal import ROLE_SCOPES, Principal
from gateway.tenancy.schemas import FeatureInstanceIn, FeatureInstancePatch, UserIn, UserPatch
from tests.fixtures.events import waiting
from tests.fixtures.tenants import SignIn, TestMandate


def owner_of(mandate: TestMandate) -> Principal:
    return Principal(
        mandate.id, mandate.users["owner"], "owner", ROLE_SCOPES["owner"], "key", mandate.users["owner"]
    )


async def announced(db: Database, mandate: TestMandate) -> list[tuple[str, dict[str, object]]]:
    """And forgotten, so that the next look sees only what is new."""
    rows = await waiting(db, mandate.id)
    async with db.tenant_session(mandate.id) as session:
        await session.execute(text("DELETE FROM outbox"))
    return [(row.payload["type"], row.payload["payload"]) for row in rows]


async def test_people(db: Database, mandate: TestMandate) -> None:
    principal = owner_of(mandate)
    async with db.tenant_session(mandate.id) as session:
        made = await service.create_user(
            session, UserIn(email="new@example.org", display_name="New"), principal
        )
        await service.change_user(session, made.id, UserPatch(locale="de"), principal)
        await service.change_user(session, made.id, UserPatch(), principal)  # nothing to tell
        await service.change_role(session, made.id, "admin", principal)
        await service.remove_member(session, made.id, principal)
        await service.add_member(session, made.id, "member", principal)
        await service.ensure_member(session, "new@example.org", "New", "member")  # is one already
        await service.ensure_member(session, "demo@example.org", "Demo", "member")
    who = str(made.id)
    *first, last = await announced(db, mandate)
    assert first == [
        ("MembershipChanged", {"userId": who, "role": "member"}),
        ("ProfileUpdated", {"userId": who}),
        ("MembershipChanged", {"userId": who, "role": "admin"}),
        ("MembershipChanged", {"userId": who, "role": None}),
        ("MembershipChanged", {"userId": who, "role": "member"}),
    ]
    assert (last[0], last[1]["role"]) == ("MembershipChanged", "member")


async def test_mandates_and_their_policy(db: Database, mandate: TestMandate) -> None:
    async with db.tenant_session(mandate.id) as session:
        await service.rename_mandate(session, "Acme")
        for patch in (
            {"snapshots": {"enabled": True}},
            {"snapshots": {"enabled": True}},  # says nothing new
            {"mail": {"tier": "snippet"}},
            {"refusedSourceKinds": ["profile_snapshot"]},
            {"legalHold": True},
        ):
            await service.patch_policy(session, patch)
    assert await announced(db, mandate) == [
        ("MandateUpdated", {}),
        ("MandateUpdated", {"everything": True}),
        ("MandateUpdated", {"everything": False}),
        ("MandateUpdated", {"everything": True}),
        ("MandateUpdated", {"everything": True}),
    ]


async def test_feature_instances(db: Database, mandate: TestMandate) -> None:
    async with db.tenant_session(mandate.id) as session:
        made = await service.create_feature_instance(
            session, FeatureInstanceIn(feature_code="coach", label="Ours")
        )
        await service.change_feature_instance(session, made.id, FeatureInstancePatch(label="Yours"))
        await service.delete_feature_instance(session, made.id)
    expected = ("FeatureConfigChanged", {"featureInstanceId": str(made.id), "everything": True})
    assert await announced(db, mandate) == [expected] * 3


async def test_what_is_undone_is_not_announced(db: Database, mandate: TestMandate) -> None:
    class Undone(Exception):
        pass

    async def change(user_id: UUID) -> None:
        async with db.tenant_session(mandate.id) as session:
            await service.change_user(session, user_id, UserPatch(display_name="Ada"), owner_of(mandate))
            raise Undone

    with pytest.raises(Undone):
        await change(mandate.users["member"])
    assert await announced(db, mandate) == []


async def test_the_console_announces_too(db: Database, mandate: TestMandate, sign_in: SignIn) -> None:
    browser = await sign_in(mandate.id, mandate.users["owner"])
    async with db.tenant_session(mandate.id) as session:
        token = await session.scalar(text("SELECT csrf_token FROM session"))
    form = {
        "displayName": "Ada",
        "display_name": "Ada",
        "locale": "en",
        "timezone": "UTC",
        "csrf_token": token,
    }
    answer = await browser.post("/settings/profile", data=form, headers={"X-CSRF-Token": str(token)})
    assert answer.status_code == 303, answer.text
    assert await announced(db, mandate) == [("ProfileUpdated", {"userId": str(mandate.users["owner"])})]
