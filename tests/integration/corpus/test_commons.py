"""What is for everybody: written by operators, kept in the commons, found and opened from every mandate."""

import asyncio

import pytest

from gateway.corpus.blobs import INLINE_LIMIT
from gateway.db import COMMONS
from gateway.errors import ContentInvalid
from gateway.ingestion import facade
from gateway.tenancy import service as tenancy
from tests.fixtures.corpus import Tenant, ask


@pytest.fixture
async def commons(db) -> Tenant:
    async with db.routing_session() as session:
        await tenancy.seed_commons(session)
    return Tenant(COMMONS, COMMONS, "")


def body(source_id: str, text: str, **fields) -> dict:
    return {
        "sourceKind": "paste",
        "sourceId": source_id,
        "content": {"text": text},
        "scope": "global",
        **fields,
    }


async def test_what_an_operator_hands_in_for_everybody_opens_from_every_mandate(
    client, mandate, other_mandate, commons, bench
):
    operator, stranger = mandate.auth("operator"), other_mandate.auth("member")
    handed = await client.post("/v1/ingestions", json=body("rule-1", "The xylophone rule."), headers=operator)
    assert handed.status_code == 202
    handle = handed.json()
    await bench.drain(commons)
    status = await client.get(f"/v1/ingestions/{handle['jobId']}", headers=operator)
    assert status.json()["status"] == "indexed"
    path = f"/v1/documents/{handle['documentId']}"
    for who in (mandate.auth("member"), stranger):
        shown = await client.get(path, headers=who)
        assert (shown.status_code, shown.json()["userId"]) == (200, None)
        assert (await client.get(f"{path}/chunks", headers=who)).json()["items"][0][
            "text"
        ] == "The xylophone rule."
        assert (await client.get(f"{path}/original", headers=who)).content == b"The xylophone rule."
    for method, where in (("PATCH", path), ("DELETE", path), ("POST", f"{path}/reindex")):
        for who in (stranger, other_mandate.auth("owner"), mandate.auth("owner")):
            refused = await client.request(method, where, headers=who, json={"title": "mine"})
            assert refused.status_code == 403, (method, refused.text)
    renamed = await client.patch(path, headers=operator, json={"title": "Rule one"})
    assert (renamed.status_code, renamed.json()["title"]) == (200, "Rule one")
    assert (await client.delete(path, headers=operator)).json()["status"] == "done"
    assert (await client.get(path, headers=stranger)).status_code == 404


async def test_an_operator_erases_what_is_for_everybody_with_a_receipt_and_an_admin_is_told(
    client, mandate, commons, bench
):
    operator = mandate.auth("operator")
    handle = (await client.post("/v1/ingestions", json=body("rule-1", "A rule."), headers=operator)).json()
    await bench.drain(commons)
    wanted = {"documentId": handle["documentId"]}
    refused = await client.post("/v1/erasures", json=wanted, headers=mandate.auth("owner"))
    assert (refused.status_code, refused.json()["code"]) == (403, "auth.forbidden")
    asked = asyncio.create_task(client.post("/v1/erasures", json=wanted, headers=operator))
    while not asked.done():
        await bench.drain(commons)
        await asyncio.wait([asked], timeout=0.05)
    receipt = (await asked).json()
    assert (receipt["status"], receipt["found"], receipt["counts"]["document"]) == ("done", True, 1)
    again = await client.get(f"/v1/receipts/{receipt['id']}", headers=operator)
    assert again.json() == receipt
    strange = await client.get(f"/v1/receipts/{receipt['id']}", headers=mandate.auth("owner"))
    assert strange.status_code == 404


async def test_only_operators_write_for_everybody_and_nothing_moves_there(client, mandate, commons):
    for path, wanted in (
        ("/v1/ingestions", body("a", "text")),
        ("/v1/entries", {"title": "T", "content": "text", "scope": "global"}),
    ):
        refused = await client.post(path, json=wanted, headers=mandate.auth("owner"))
        assert refused.status_code == 403
    own = await client.post("/v1/ingestions", json=body("b", "text", scope="mandate"), headers=mandate.auth())
    moved = await client.patch(
        f"/v1/documents/{own.json()['documentId']}",
        json={"scope": "global"},
        headers=mandate.auth("operator"),
    )
    assert moved.status_code == 403


async def test_files_and_entries_for_everybody(app, client, mandate, other_mandate, commons, bench):
    bench.runner.blobs = app.state.blobs
    operator = mandate.auth("operator")
    data = b"All about the marimba. " * (INLINE_LIMIT // 16)
    handle = (
        await client.post(
            "/v1/files", files={"file": ("m.txt", data)}, data={"scope": "global"}, headers=operator
        )
    ).json()
    entry = await client.post(
        "/v1/entries", json={"title": "T", "content": "Glockenspiel.", "scope": "global"}, headers=operator
    )
    assert entry.status_code == 202
    for document in (handle["documentId"], entry.json()["id"]):
        assert (
            await client.get(f"/v1/documents/{document}", headers=other_mandate.auth())
        ).status_code == 200
    await bench.drain(commons)
    original = await client.get(
        f"/v1/documents/{handle['documentId']}/original", headers=other_mandate.auth()
    )
    assert original.content == data
    assert original.headers["content-length"] == str(len(data))
    shown = await client.get(f"/v1/entries/{entry.json()['id']}", headers=other_mandate.auth())
    assert shown.json()["content"] == "Glockenspiel."
    revised = await client.patch(
        f"/v1/entries/{entry.json()['id']}", json={"content": "Celesta."}, headers=operator
    )
    assert revised.status_code == 202


async def test_in_process_the_commons_session_is_the_only_place_for_it(db, tenant, blobs, commons):
    request = ask(tenant, "g", "For everybody.", scope="global")
    async with db.tenant_session(tenant.mandate_id) as session:
        with pytest.raises(ContentInvalid):
            await facade.request_ingestion(session, request, blobs=blobs)
    async with db.tenant_session(COMMONS) as session:
        assert (await facade.request_ingestion(session, request, blobs=blobs)).outcome == "queued"
