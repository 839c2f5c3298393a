"""Mandates, users, members, feature instances, keys and policy, as a client sees them."""

import asyncio
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import text

from gateway.db import COMMONS, Database
from gateway.tenancy import repository, service
from tests.fixtures.processes import until
from tests.fixtures.tenants import TestMandate


async def test_an_operator_makes_a_mandate_and_its_owner_can_start_at_once(
    client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    slug = f"acme-{uuid4().hex}"
    made = await client.post(
        "/v1/mandates",
        headers=mandate.auth("operator"),
        json={"slug": slug, "name": "Acme", "ownerEmail": "Ann@Acme.example", "ownerName": "Ann"},
    )
    assert made.status_code == 201
    body = made.json()
    headers = {"Authorization": f"Bearer {body['ownerKey']}"}
    me = (await client.get("/v1/whoami", headers=headers)).json()
    assert (me["mandateId"], me["userId"], me["role"]) == (body["mandateId"], body["ownerId"], "owner")
    people = (await client.get("/v1/users", headers=headers)).json()["items"]
    assert [person["email"] for person in people] == ["ann@acme.example"]
    again = await client.post(
        "/v1/mandates", headers=mandate.auth("operator"), json={"slug": slug, "name": "Other"}
    )
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


async def test_without_an_owner_the_operator_becomes_it(
    client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    made = await client.post(
        "/v1/mandates", headers=mandate.auth("operator"), json={"slug": f"m-{uuid4().hex}", "name": "Mine"}
    )
    headers = {"Authorization": f"Bearer {made.json()['ownerKey']}"}
    people = (await client.get("/v1/users", headers=headers)).json()["items"]
    assert [person["email"] for person in people] == ["owner@example.org"]


async def test_operators_list_every_mandate_page_by_page_others_their_own(
    client: httpx.AsyncClient, mandate: TestMandate, other_mandate: TestMandate
) -> None:
    mine = (await client.get("/v1/mandates", headers=mandate.auth())).json()
    assert [item["mandateId"] for item in mine["items"]] == [str(mandate.id)]
    assert mine["nextCursor"] is None
    seen: list[str] = []
    cursor = None
    while True:
        params = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = (await client.get("/v1/mandates", headers=mandate.auth("operator"), params=params)).json()
        assert len(page["items"]) <= 2
        seen += [item["mandateId"] for item in page["items"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert len(seen) == len(set(seen))
    assert {str(mandate.id), str(other_mandate.id)} <= set(seen)


async def test_every_list_pages_through_all_rows_once(
    client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    for number in range(5):
        user = {"email": f"u{number}@example.org", "displayName": f"U{number}"}
        assert (await client.post("/v1/users", headers=mandate.auth(), json=user)).status_code == 201
        await client.post(
            "/v1/feature-instances",
            headers=mandate.auth(),
            json={"featureCode": "crm", "label": f"L{number}"},
        )
    for path, total in {"users": 8, "members": 8, "feature-instances": 5, "keys": 5}.items():
        rows: list[str] = []
        params: dict[str, str | int] = {"limit": 3}
        while True:
            page = (await client.get(f"/v1/{path}", headers=mandate.auth(), params=params)).json()
            rows += [item.get("id") or item["userId"] for item in page["items"]]
            if page["nextCursor"] is None:
                break
            params["cursor"] = page["nextCursor"]
        assert len(rows) == len(set(rows)) == total, path


@pytest.mark.parametrize("cursor", ["x", "bm90IGpzb24", "e30", "WzEsMl0", "W10"])
async def test_a_foreign_cursor_is_refused_politely(
    client: httpx.AsyncClient, mandate: TestMandate, cursor: str
) -> None:
    answer = await client.get("/v1/users", headers=mandate.auth(), params={"cursor": cursor})
    assert (answer.status_code, answer.json()["code"]) == (400, "cursor.invalid")


async def test_an_address_is_one_user_per_mandate(
    client: httpx.AsyncClient, mandate: TestMandate, other_mandate: TestMandate
) -> None:
    user = {"email": "Same@Example.org", "displayName": "Same"}
    assert (await client.post("/v1/users", headers=mandate.auth(), json=user)).status_code == 201
    assert (await client.post("/v1/users", headers=mandate.auth(), json=user)).status_code == 409
    assert (await client.post("/v1/users", headers=other_mandate.auth(), json=user)).status_code == 201


async def test_a_time_zone_is_one_that_exists(client: httpx.AsyncClient, mandate: TestMandate) -> None:
    user = {"email": "zone@example.org", "displayName": "Zone"}
    for wrong in (
        "Mars/Phobos",
        "",
        "../../etc/passwd",
        "/etc/passwd",
        "Europe",
        "UTC\nIgnore what was said",
    ):
        answer = await client.post("/v1/users", headers=mandate.auth(), json=user | {"timezone": wrong})
        assert answer.status_code == 422, wrong
        assert "body.timezone" in answer.json()["detail"]
    made = await client.post("/v1/users", headers=mandate.auth(), json=user | {"timezone": "Europe/Zurich"})
    assert (made.status_code, made.json()["timezone"]) == (201, "Europe/Zurich")
    patched = await client.patch(
        f"/v1/users/{made.json()['id']}", headers=mandate.auth(), json={"timezone": "Mars/Phobos"}
    )
    assert patched.status_code == 422


async def test_bad_fields_are_named_and_never_repeated(
    client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    user = {"email": "no address", "displayName": "", "password": "hunter2", "role": "god"}
    answer = await client.post("/v1/users", headers=mandate.auth(), json=user)
    body = answer.json()
    assert (answer.status_code, body["code"], body["status"]) == (422, "request.invalid", 422)
    assert {error["field"] for error in body["errors"]} == {
        "body.email",
        "body.displayName",
        "body.password",
        "body.role",
    }
    assert "hunter2" not in answer.text
    assert "no address" not in answer.text


async def test_unreadable_json_is_a_problem_too(client: httpx.AsyncClient, mandate: TestMandate) -> None:
    headers = {**mandate.auth(), "content-type": "application/json"}
    answer = await client.post("/v1/users", headers=headers, content=b"{nope")
    assert (answer.status_code, answer.json()["code"]) == (422, "request.invalid")


async def test_two_owners_cannot_leave_past_each_other(
    client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    owner, admin = mandate.users["owner"], mandate.users["admin"]
    promoted = await client.patch(f"/v1/members/{admin}", headers=mandate.auth(), json={"role": "owner"})
    assert promoted.json()["role"] == "owner"
    answers = await asyncio.gather(
        client.delete(f"/v1/members/{owner}", headers=mandate.auth("owner")),
        client.delete(f"/v1/members/{admin}", headers=mandate.auth("admin")),
    )
    assert sorted(answer.status_code for answer in answers) == [204, 409]


async def test_a_deleted_user_is_gone_and_the_address_free(
    client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    member = mandate.users["member"]
    assert (await client.delete(f"/v1/users/{member}", headers=mandate.auth())).status_code == 204
    assert (await client.get(f"/v1/users/{member}", headers=mandate.auth())).status_code == 404
    assert (await client.get("/v1/whoami", headers=mandate.auth("member"))).status_code == 401
    user = {"email": "member@example.org", "displayName": "Next"}
    assert (await client.post("/v1/users", headers=mandate.auth(), json=user)).status_code == 201


async def test_a_feature_instance_keeps_its_members(
    client: httpx.AsyncClient, mandate: TestMandate, other_mandate: TestMandate
) -> None:
    member, admin = str(mandate.users["member"]), str(mandate.users["admin"])
    wanted = {"featureCode": "crm", "label": "CRM", "memberIds": [member]}
    made = (await client.post("/v1/feature-instances", headers=mandate.auth(), json=wanted)).json()
    assert made["memberIds"] == [member]
    path = f"/v1/feature-instances/{made['id']}"
    both = await client.patch(path, headers=mandate.auth(), json={"memberIds": [member, admin, admin]})
    assert set(both.json()["memberIds"]) == {member, admin}
    renamed = await client.patch(path, headers=mandate.auth(), json={"label": "Sales"})
    assert (renamed.json()["label"], len(renamed.json()["memberIds"])) == ("Sales", 2)
    stranger = str(other_mandate.users["member"])
    assert (
        await client.patch(path, headers=mandate.auth(), json={"memberIds": [stranger]})
    ).status_code == 400
    await client.delete(f"/v1/members/{member}", headers=mandate.auth())
    assert (await client.get(path, headers=mandate.auth())).json()["memberIds"] == [admin]
    assert (await client.get(path, headers=other_mandate.auth())).status_code == 404
    assert (await client.delete(path, headers=mandate.auth())).status_code == 204
    assert (await client.get(path, headers=mandate.auth())).status_code == 404


async def test_a_keys_secret_is_shown_once(client: httpx.AsyncClient, mandate: TestMandate) -> None:
    made = (await client.post("/v1/keys", headers=mandate.auth("member"), json={"name": "laptop"})).json()
    assert made["key"].startswith("ck_")
    assert made["hint"] == made["key"][-4:]
    listed = await client.get("/v1/keys", headers=mandate.auth("member"))
    assert made["id"] in {item["id"] for item in listed.json()["items"]}
    assert made["key"] not in listed.text
    assert {item["userId"] for item in listed.json()["items"]} == {str(mandate.users["member"])}


async def test_members_see_and_revoke_their_own_keys_only(
    client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    keys = (await client.get("/v1/keys", headers=mandate.auth())).json()["items"]
    by_user = {item["userId"]: item["id"] for item in keys}
    admins, owners = by_user[str(mandate.users["admin"])], by_user[str(mandate.users["owner"])]
    assert (await client.get(f"/v1/keys/{admins}", headers=mandate.auth("member"))).status_code == 404
    assert (await client.delete(f"/v1/keys/{admins}", headers=mandate.auth("member"))).status_code == 404
    assert (await client.delete(f"/v1/keys/{owners}", headers=mandate.auth("admin"))).status_code == 403
    mine = by_user[str(mandate.users["member"])]
    assert (await client.delete(f"/v1/keys/{mine}", headers=mandate.auth("member"))).status_code == 204


async def test_the_policy_is_merged_validated_and_kept_sparse(
    client: httpx.AsyncClient, db: Database, mandate: TestMandate
) -> None:
    first = await client.patch(
        "/v1/policy", headers=mandate.auth(), json={"mail": {"windowDays": 30}, "legalHold": True}
    )
    assert (first.json()["mail"], first.json()["legalHold"]) == ({"tier": "body", "windowDays": 30}, True)
    second = await client.patch("/v1/policy", headers=mandate.auth(), json={"mail": {"tier": "snippet"}})
    assert second.json()["mail"] == {"tier": "snippet", "windowDays": 30}
    third = await client.patch("/v1/policy", headers=mandate.auth(), json={"mail": None, "legalHold": None})
    assert (third.json()["mail"]["windowDays"], third.json()["legalHold"]) == (365, False)
    async with db.tenant_session(mandate.id) as session:
        assert await session.scalar(text("SELECT policy FROM mandate")) == {}


@pytest.mark.parametrize(
    "patch", [{"unknown": 1}, {"legal_hold": True}, {"graceDays": -1}, {"mail": {"tier": "x"}}, {"mail": 5}]
)
async def test_a_bad_policy_changes_nothing(
    client: httpx.AsyncClient, mandate: TestMandate, patch: dict[str, object]
) -> None:
    answer = await client.patch("/v1/policy", headers=mandate.auth(), json=patch)
    assert (answer.status_code, answer.json()["code"]) == (422, "request.invalid")
    assert (await client.get("/v1/policy", headers=mandate.auth())).json()["graceDays"] == 7


@pytest.mark.parametrize(
    ("patch", "named"),
    [
        ('{"budget": {"monthlyCost": 1e999}}', "budget.monthlyCost"),
        ('{"budget": {"monthlyTokens": 1000000000000000000000}}', "budget.monthlyTokens"),
        ('{"quotas": {"documentBytes": 0}}', "quotas.documentBytes"),
        ('{"graceDays": 1000000000000}', "graceDays"),
        ('{"logRetentionDays": 1000000000000}', "logRetentionDays"),
        ('{"retentionDays": {"uplaod": 30}}', "retentionDays.uplaod"),
        ('{"refusedSourceKinds": ["uplaod"]}', "refusedSourceKinds.0"),
        ('{"neutralisation": {"mandatorySourceKinds": ["uplaod"]}}', "neutralisation.mandatorySourceKinds.0"),
        ('{"neutralisation": {"allowPersonalData": ["emails"]}}', "neutralisation.allowPersonalData"),
    ],
)
async def test_a_policy_that_could_not_be_kept_is_refused(
    client: httpx.AsyncClient, mandate: TestMandate, patch: str, named: str
) -> None:
    headers = {**mandate.auth(), "Content-Type": "application/json"}
    answer = await client.patch("/v1/policy", headers=headers, content=patch)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["field"].startswith(named)


async def test_concurrent_policy_patches_do_not_lose_each_other(
    client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    patches = [
        {"graceDays": 2},
        {"logRetentionDays": 3},
        {"legalHold": True},
        {"budget": {"monthlyTokens": 4}},
    ]
    await asyncio.gather(
        *(client.patch("/v1/policy", headers=mandate.auth(), json=patch) for patch in patches)
    )
    policy = (await client.get("/v1/policy", headers=mandate.auth())).json()
    assert (policy["graceDays"], policy["logRetentionDays"], policy["legalHold"]) == (2, 3, True)
    assert policy["budget"]["monthlyTokens"] == 4


async def test_seeding_is_idempotent_and_replaces_a_lost_key(client: httpx.AsyncClient, db: Database) -> None:
    first = await service.seed_local_owner(db)
    again = await service.seed_local_owner(db, first.key)
    assert again == first
    replaced = await service.seed_local_owner(db, "ck_lost")
    assert (replaced.mandate_id, replaced.user_id) == (first.mandate_id, first.user_id)
    assert replaced.key not in {first.key, "ck_lost"}
    headers = {"Authorization": f"Bearer {replaced.key}"}
    listed = (await client.get("/v1/mandates", headers=headers, params={"limit": 200})).json()["items"]
    assert {item["slug"] for item in listed} >= {"local", "commons"}
    assert str(COMMONS) in {item["mandateId"] for item in listed}


async def test_a_local_owner_who_was_removed_is_back_with_the_next_start(
    client: httpx.AsyncClient, db: Database
) -> None:
    first = await service.seed_local_owner(db)
    headers = {"Authorization": f"Bearer {first.key}"}
    heir = {"email": "heir@example.org", "displayName": "Heir", "role": "owner"}
    assert (await client.post("/v1/users", headers=headers, json=heir)).status_code == 201
    for path in ("members", "users"):
        assert (await client.delete(f"/v1/{path}/{first.user_id}", headers=headers)).status_code == 204
        again = await service.seed_local_owner(db, first.key)
        headers = {"Authorization": f"Bearer {again.key}"}
        me = (await client.get("/v1/whoami", headers=headers)).json()
        assert (me["role"], "operator" in me["scopes"]) == ("owner", True)
        first = again


async def test_under_a_legal_hold_neither_an_account_nor_a_mandate_is_deleted(
    client: httpx.AsyncClient, mandate: TestMandate, other_mandate: TestMandate
) -> None:
    held = await client.patch("/v1/policy", json={"legalHold": True}, headers=other_mandate.auth())
    assert held.status_code == 200
    member = other_mandate.users["member"]
    for path, headers in (
        (f"/v1/users/{member}", other_mandate.auth()),
        (f"/v1/mandates/{other_mandate.id}", mandate.auth("operator")),
    ):
        refused = await client.delete(path, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (409, "erasure.held"), path
    left = await client.delete(f"/v1/members/{member}", headers=other_mandate.auth())
    assert left.status_code == 204  # who leaves is out all the same
    assert (await client.get(f"/v1/users/{member}", headers=other_mandate.auth())).status_code == 200


async def test_an_emptied_mandate_can_be_deleted_with_all_that_leads_to_it(
    client: httpx.AsyncClient, mandate: TestMandate, other_mandate: TestMandate, db: Database
) -> None:
    path = f"/v1/mandates/{other_mandate.id}"
    assert (await client.delete(path, headers=other_mandate.auth("owner"))).status_code == 403
    own = await client.delete(f"/v1/mandates/{mandate.id}", headers=mandate.auth("operator"))
    assert own.status_code == 409
    body = {"sourceKind": "paste", "sourceId": "a", "content": {"text": "something"}}
    assert (await client.post("/v1/ingestions", json=body, headers=other_mandate.auth())).status_code == 202
    held = await client.delete(path, headers=mandate.auth("operator"))
    assert (held.status_code, held.json()["code"]) == (409, "conflict")
    async with db.tenant_session(other_mandate.id) as session:
        for table in ("document", "blob"):
            await session.execute(text(f"DELETE FROM {table}"))
    assert (await client.delete(path, headers=mandate.auth("operator"))).status_code == 204
    assert (await client.get(path, headers=mandate.auth("operator"))).status_code == 404
    for key in ("owner", "member", "service"):
        assert (await client.get("/v1/whoami", headers=other_mandate.auth(key))).status_code == 401
    async with db.routing_session() as session:
        for table in ("key_route", "session_route", "mandate_route"):
            left = f"SELECT count(*) FROM {table} WHERE mandate_id = :id"
            assert await session.scalar(text(left), {"id": other_mandate.id}) == 0
    again = {"slug": other_mandate.slug, "name": "The slug is free again"}
    assert (
        await client.post("/v1/mandates", headers=mandate.auth("operator"), json=again)
    ).status_code == 201


async def test_a_key_is_renamed_by_who_may_see_it(client: httpx.AsyncClient, mandate: TestMandate) -> None:
    made = (await client.post("/v1/keys", headers=mandate.auth(), json={"name": "laptop"})).json()
    path = f"/v1/keys/{made['id']}"
    refused = await client.patch(path, headers=mandate.auth("member"), json={"name": "mine"})
    assert refused.status_code == 404
    renamed = await client.patch(path, headers=mandate.auth(), json={"name": "old laptop"})
    assert (renamed.status_code, renamed.json()["name"]) == (200, "old laptop")
    scopes = await client.patch(path, headers=mandate.auth(), json={"scopes": ["operator"]})
    assert scopes.status_code == 422


async def test_who_touches_what_hangs_on_a_membership_waits_for_who_leaves(
    client: httpx.AsyncClient, db: Database, mandate: TestMandate
) -> None:
    """The membership is locked before its keys and its places in features; in another order the two would deadlock."""
    leaver = mandate.users["member"]
    made = await client.post(
        "/v1/keys", headers=mandate.auth(), json={"name": "theirs", "userId": str(leaver)}
    )
    feature = {"featureCode": "crm", "label": "CRM", "memberIds": [str(leaver)]}
    instance = await client.post("/v1/feature-instances", headers=mandate.auth(), json=feature)
    blocked = text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )

    async def both_wait() -> bool:
        async with db.routing_session() as session:
            return await session.scalar(blocked) == 2

    async with db.tenant_session(mandate.id) as leaving:
        assert await repository.member_role(leaving, leaver, lock=True) == "member"
        asked = [
            asyncio.create_task(client.request(method, path, headers=mandate.auth(), json=body))
            for method, path, body in (
                ("DELETE", f"/v1/keys/{made.json()['id']}", None),
                ("PATCH", f"/v1/feature-instances/{instance.json()['id']}", {"memberIds": [str(leaver)]}),
            )
        ]
        await until(both_wait, 10, "two requests that wait for the membership")
        assert await repository.delete_member(leaving, leaver)
    revoked, changed = await asyncio.gather(*asked)
    assert revoked.status_code == 204
    assert (changed.status_code, "Not members here" in changed.json()["detail"]) == (400, True)
