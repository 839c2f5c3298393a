"""Whose document is it: two users may bring the same thing, and nobody takes or stops what is somebody else's."""

import pytest

from gateway.connections import repository as connections
from gateway.db import new_id
from tests.fixtures.corpus import Tenant, rows_of

TEXT = "Minutes of the meeting about the turbine."


@pytest.fixture
def owner(mandate) -> Tenant:
    return Tenant(mandate.id, mandate.users["owner"], mandate.keys["owner"])


async def hand_in(client, mandate, who, text=TEXT, source_id="minutes", act_as=None, **fields):
    headers = mandate.auth(who) | ({"X-Act-As-User": str(mandate.users[act_as])} if act_as else {})
    body = {"sourceKind": "paste", "sourceId": source_id, "content": {"text": text}, **fields}
    return await client.post("/v1/ingestions", json=body, headers=headers)


async def titles(client, mandate, who):
    items = (await client.get("/v1/documents", headers=mandate.auth(who))).json()["items"]
    return {item["id"]: (item["title"], item["scope"]) for item in items}


async def test_the_same_file_of_two_users_is_two_documents_and_embedded_once(client, mandate, owner, bench):
    handles = [
        (
            await client.post(
                "/v1/files", files={"file": ("m.txt", TEXT.encode())}, headers=mandate.auth(who)
            )
        ).json()
        for who in ("owner", "member")
    ]
    assert [handle["outcome"] for handle in handles] == ["queued", "queued"]
    assert len({handle["documentId"] for handle in handles}) == 2
    await bench.drain(owner)
    for who, handle in zip(("owner", "member"), handles, strict=True):
        assert list(await titles(client, mandate, who)) == [handle["documentId"]]
        again = await client.post(
            "/v1/files", files={"file": ("m.txt", TEXT.encode())}, headers=mandate.auth(who)
        )
        assert (again.json()["outcome"], again.json()["documentId"]) == ("duplicate", handle["documentId"])
    assert len(bench.embedded()) == 1


async def test_changing_the_scope_is_the_same_document(client, mandate, owner, bench):
    mine = (await hand_in(client, mandate, "member")).json()
    await bench.drain(owner)
    for scope in ("mandate", "personal", "mandate"):
        again = (await hand_in(client, mandate, "member", scope=scope)).json()
        assert (again["outcome"], again["documentId"]) == ("duplicate", mine["documentId"])
        assert (await titles(client, mandate, "member"))[mine["documentId"]][1] == scope


async def test_what_is_shared_is_replaced_by_who_brought_it_or_an_admin_and_nobody_else(
    client, mandate, owner, bench
):
    shared = (await hand_in(client, mandate, "owner", scope="mandate", title="Ours")).json()
    await bench.drain(owner)
    same = await hand_in(client, mandate, "member", scope="mandate", title="Mine now")
    assert (same.status_code, same.json()["documentId"]) == (200, shared["documentId"])
    assert (await titles(client, mandate, "member"))[shared["documentId"]] == ("Ours", "mandate")
    refused = await hand_in(client, mandate, "member", "Other words.", scope="mandate")
    assert (refused.status_code, refused.json()["code"]) == (403, "auth.forbidden")
    own = (await hand_in(client, mandate, "member", "Other words.")).json()
    assert own["outcome"] == "queued"
    assert own["documentId"] != shared["documentId"]
    by_admin = await hand_in(client, mandate, "admin", "Better words.", scope="mandate")
    assert (by_admin.status_code, by_admin.json()["documentId"]) == (202, shared["documentId"])


async def test_a_service_keeps_its_shared_records_whoever_it_acts_for(client, mandate, owner, bench):
    first = (await hand_in(client, mandate, "service", act_as="member", scope="mandate")).json()
    for act_as in ("owner", None):
        again = await hand_in(
            client, mandate, "service", f"Edited, acting for {act_as}.", act_as=act_as, scope="mandate"
        )
        assert (again.status_code, again.json()["documentId"]) == (202, first["documentId"])


async def test_somebody_elses_connection_takes_nothing_from_me(db, client, mandate):
    connection = new_id()
    async with db.tenant_session(mandate.id) as session:
        await connections.add(session, connection, "msft", mandate.users["owner"])
    fields = {"sourceKind": "sharepoint_item", "connectionId": str(connection)}
    assert (await hand_in(client, mandate, "owner", **fields)).status_code == 202
    assert (await hand_in(client, mandate, "member", "Forged.", **fields)).status_code == 404
    unknown = await hand_in(client, mandate, "member", **fields | {"connectionId": str(new_id())})
    assert (unknown.json()["outcome"], unknown.json()["reason"]) == ("skipped", "revoked")


async def test_jobs_are_seen_by_who_may_see_the_document_and_stopped_by_who_may_edit_it(
    db, client, mandate, owner, bench
):
    private = (await hand_in(client, mandate, "owner")).json()
    shared = (await hand_in(client, mandate, "owner", source_id="b", scope="mandate")).json()
    listed = (await client.get("/v1/ingestions", headers=mandate.auth("member"))).json()["items"]
    assert [job["jobId"] for job in listed] == [shared["jobId"]]
    for job, status in ((private, 404), (shared, 200)):
        answer = await client.get(f"/v1/ingestions/{job['jobId']}", headers=mandate.auth("member"))
        assert answer.status_code == status
    for job, status in ((private, 404), (shared, 403)):
        answer = await client.post(f"/v1/ingestions/{job['jobId']}/cancel", headers=mandate.auth("member"))
        assert answer.status_code == status
    everything = (await client.get("/v1/ingestions", headers=mandate.auth("admin"))).json()["items"]
    assert {job["jobId"] for job in everything} == {private["jobId"], shared["jobId"]}
    assert {row.status for row in await rows_of(db, owner, "SELECT status FROM job")} == {"pending"}
    for job in (private, shared):
        stopped = await client.post(f"/v1/ingestions/{job['jobId']}/cancel", headers=mandate.auth())
        assert stopped.json()["status"] == "cancelled"


async def test_a_document_moves_into_a_feature_instance_that_is_named(client, mandate):
    made = (await hand_in(client, mandate, "owner")).json()["documentId"]
    moved = await client.patch(
        f"/v1/documents/{made}", json={"scope": "featureInstance"}, headers=mandate.auth()
    )
    assert (moved.status_code, moved.json()["detail"]) == (
        422,
        "Scope featureInstance needs a featureInstanceId.",
    )


async def test_what_every_context_begins_with_is_not_a_members_to_say(client, mandate):
    for kind, more in (
        ("mandate_snapshot", {"scope": "mandate"}),
        ("profile_snapshot", {"scope": "mandate"}),
        ("feature_snapshot", {}),
    ):
        refused = await hand_in(client, mandate, "member", sourceKind=kind, **more)
        assert (refused.status_code, refused.json()["code"]) == (403, "auth.forbidden"), kind
    assert (await hand_in(client, mandate, "member", sourceKind="profile_snapshot")).status_code == 202
    for who in ("admin", "service"):
        trusted = await hand_in(
            client, mandate, who, who, source_id=who, sourceKind="mandate_snapshot", scope="mandate"
        )
        assert trusted.status_code == 202, who


async def test_whom_and_what_a_document_hangs_on_must_be_there_for_its_caller(client, mandate):
    nobody = await hand_in(client, mandate, "owner", userId=str(new_id()))
    assert (nobody.status_code, nobody.json()["code"]) == (404, "not_found")
    private = (await hand_in(client, mandate, "owner")).json()["documentId"]
    for who, parent, status in (
        ("owner", private, 202),
        ("member", private, 404),
        ("admin", str(new_id()), 404),
    ):
        answer = await hand_in(client, mandate, who, source_id="child", parentDocumentId=parent)
        assert answer.status_code == status, (who, answer.text)
