"""Uploads, the corpus browser and erasure over HTTP, with a worker behind them."""

import asyncio
import hashlib

import httpx
import pytest

from gateway.corpus import erasure
from gateway.corpus.child.failures import REASONS
from gateway.corpus.service import REASON_SENTENCES
from gateway.db import new_id
from gateway.errors import StoreUnavailable
from tests.fixtures.corpus import Tenant, ask, rows_of

MARKDOWN = b"# Guide\n\nReset the gateway with the red button.\n"


@pytest.fixture
def owner(mandate) -> Tenant:
    return Tenant(mandate.id, mandate.users["owner"], mandate.keys["owner"])


async def upload(client, mandate, data=MARKDOWN, who="owner", name="guide.md", **fields):
    return await client.post(
        "/v1/files", files={"file": (name, data)}, data=fields, headers=mandate.auth(who)
    )


async def test_an_uploaded_file_becomes_a_document_that_can_be_browsed(client, mandate, owner, bench):
    answer = await upload(client, mandate, tags="a,b", title="The guide")
    assert answer.status_code == 202, answer.text
    handle = answer.json()
    await bench.drain(owner)
    status = (await client.get(f"/v1/ingestions/{handle['jobId']}", headers=mandate.auth())).json()
    assert status["status"] == "indexed"
    base = f"/v1/documents/{handle['documentId']}"
    document = (await client.get(base, headers=mandate.auth())).json()
    assert (document["title"], document["tags"], document["sourceId"]) == (
        "The guide",
        ["a", "b"],
        hashlib.sha256(MARKDOWN).hexdigest(),
    )
    assert document["mimeType"] == "text/markdown"
    chunks = (await client.get(f"{base}/chunks", headers=mandate.auth())).json()["items"]
    assert chunks[0]["headingPath"] == "Guide"
    moments = (await client.get(f"{base}/timeline", headers=mandate.auth())).json()["items"]
    assert [moment["status"] for moment in moments] == ["pending", "extracted", "embedding", "indexed"]
    original = await client.get(f"{base}/original", headers=mandate.auth())
    assert original.content == MARKDOWN
    assert original.headers["content-disposition"].startswith('attachment; filename="The guide.md"')
    assert "sandbox" in original.headers["content-security-policy"]
    again = await upload(client, mandate)
    assert (again.status_code, again.json()["outcome"]) == (200, "duplicate")


@pytest.mark.parametrize(
    "name", ["nul\x00.txt", "../../etc/passwd", "l" * 1500 + ".txt", "\u202egpj.exe.txt", " "]
)
async def test_a_hostile_file_name_is_shown_as_far_as_it_can_be(client, mandate, name):
    answer = await upload(client, mandate, f"words of {len(name)}".encode(), name=name)
    assert answer.status_code == 202, answer.text
    shown = await client.get(f"/v1/documents/{answer.json()['documentId']}", headers=mandate.auth())
    assert len(shown.json()["title"]) <= 500
    assert all(letter.isprintable() for letter in shown.json()["title"])


@pytest.mark.parametrize("fields", [{"sourceId": "x" * 3000}, {"title": "a\x00b"}, {"tags": "t" * 5000}])
async def test_fields_of_an_upload_that_cannot_be_kept_are_named(client, mandate, fields):
    answer = await upload(client, mandate, **fields)
    assert (answer.status_code, answer.json()["code"]) == (422, "request.invalid"), answer.text


@pytest.mark.parametrize("said", ["text/plain\r\n\r\n;<script>", "текст/plain", "text/plain; a=\rX-Evil: 1"])
async def test_a_type_that_fits_no_header_is_not_repeated_in_one(client, mandate, owner, bench, said):
    body = {"sourceKind": "paste", "sourceId": said, "content": {"text": "Some text."}, "mimeType": said}
    handle = (await client.post("/v1/ingestions", json=body, headers=mandate.auth())).json()
    await bench.drain(owner)
    original = await client.get(f"/v1/documents/{handle['documentId']}/original", headers=mandate.auth())
    assert (original.status_code, original.content) == (200, b"Some text.")
    assert original.headers["content-type"] == "application/octet-stream"
    assert "sandbox" in original.headers["content-security-policy"]


async def test_a_personal_document_is_invisible_to_everybody_else(
    client, mandate, other_mandate, owner, bench
):
    handle = (await upload(client, mandate)).json()
    await bench.drain(owner)
    base = f"/v1/documents/{handle['documentId']}"
    for suffix in ("", "/chunks", "/timeline", "/original"):
        assert (await client.get(base + suffix, headers=mandate.auth("admin"))).status_code == 404
        assert (await client.get(base + suffix, headers=other_mandate.auth())).status_code == 404
    assert (await client.patch(base, json={"scope": "mandate"}, headers=mandate.auth())).status_code == 200
    assert (await client.get(base, headers=mandate.auth("member"))).status_code == 200
    refused = await client.patch(base, json={"title": "x"}, headers=mandate.auth("member"))
    assert refused.status_code == 403


async def test_a_patch_keeps_id_chunks_and_vectors(client, mandate, owner, bench):
    handle = (await upload(client, mandate)).json()
    await bench.drain(owner)
    base = f"/v1/documents/{handle['documentId']}"
    before = (await client.get(f"{base}/chunks", headers=mandate.auth())).json()
    patched = await client.patch(
        base, json={"title": "New", "tags": ["x"], "metadata": {"a": 1}}, headers=mandate.auth()
    )
    assert (patched.json()["title"], patched.json()["metadata"]) == ("New", {"a": 1})
    assert (await client.get(f"{base}/chunks", headers=mandate.auth())).json() == before
    assert len(bench.embedded()) == 1


async def test_delete_answers_with_a_receipt(client, mandate, owner, bench):
    handle = (await upload(client, mandate)).json()
    await bench.drain(owner)
    receipt = await client.delete(f"/v1/documents/{handle['documentId']}", headers=mandate.auth())
    assert receipt.status_code == 200
    assert (receipt.json()["status"], receipt.json()["counts"]["chunk"]) == ("done", 1)
    assert (
        await client.get(f"/v1/documents/{handle['documentId']}", headers=mandate.auth())
    ).status_code == 404
    kept = await client.get(f"/v1/receipts/{receipt.json()['id']}", headers=mandate.auth())
    assert kept.json() == receipt.json()


async def test_an_erasure_runs_in_the_worker_and_answers_with_its_receipt(client, mandate, owner, bench):
    await upload(client, mandate)
    await bench.drain(owner)
    asked = asyncio.create_task(
        client.post("/v1/erasures", json={"userId": str(owner.user_id)}, headers=mandate.auth())
    )
    while not asked.done():
        await bench.drain(owner)
    assert (asked.result().status_code, asked.result().json()["counts"]["document"]) == (200, 1)
    for body in ({}, {"userId": str(owner.user_id), "mandate": True}, {"mandate": "true"}):
        assert (await client.post("/v1/erasures", json=body, headers=mandate.auth())).status_code == 422
    assert (
        await client.post("/v1/erasures", json={"mandate": True}, headers=mandate.auth("member"))
    ).status_code == 403


async def test_a_document_is_found_by_what_its_source_calls_it(client, mandate, owner):
    for name in ("note-1", "note-12"):
        body = ask(owner, name, f"About {name}.").model_dump(mode="json", by_alias=True)
        await client.post("/v1/ingestions", json=body, headers=mandate.auth())
    for name, found in (("note-1", ["note-1"]), ("note", [])):
        answer = await client.get("/v1/documents", params={"sourceId": name}, headers=mandate.auth())
        assert [item["sourceId"] for item in answer.json()["items"]] == found


async def test_a_tag_is_the_same_however_it_was_typed(client, mandate, owner, bench):
    body = ask(owner, "a", "A note about boats.").model_dump(mode="json", by_alias=True)
    body |= {"tags": [" spaced ", "u\u0308mla\u0308ut"]}
    await client.post("/v1/ingestions", json=body, headers=mandate.auth())
    await bench.drain(owner)
    for tag in ("spaced", " spaced", "ümläut", "u\u0308mla\u0308ut"):
        found = await client.get("/v1/search", params={"q": "boats", "tags": tag}, headers=mandate.auth())
        assert len(found.json()["hits"]) == 1, tag


async def test_erasures_by_document_source_and_mandate_and_a_hold_that_refuses(
    client, mandate, owner, bench, db
):
    source = str(new_id())
    handles = [
        (await client.post("/v1/ingestions", json=body, headers=mandate.auth())).json()
        for body in (
            ask(owner, name, f"The text of {name}.", dataSourceId=source if name == "b" else None).model_dump(
                mode="json", by_alias=True
            )
            for name in "abc"
        )
    ]
    await bench.drain(owner)
    await rows_of(db, owner, """UPDATE mandate SET policy = '{"legalHold": true}' RETURNING 1""")
    held = await client.post("/v1/erasures", json={"mandate": True}, headers=mandate.auth())
    assert (held.status_code, held.json()["code"]) == (409, "erasure.held")
    assert "legal hold" in held.json()["detail"]
    await rows_of(db, owner, "UPDATE mandate SET policy = '{}' RETURNING 1")
    for body in ({"documentId": handles[0]["documentId"]}, {"sourceId": source}, {"mandate": True}):
        asked = asyncio.create_task(client.post("/v1/erasures", json=body, headers=mandate.auth()))
        while not asked.done():
            await bench.drain(owner)
        path = f"/v1/receipts/{asked.result().json()['id']}"
        receipt = (await client.get(path, headers=mandate.auth())).json()
        assert (receipt["status"], receipt["counts"]["document"]) == ("done", 1), body
    assert await rows_of(db, owner, "SELECT 1 FROM document") == []


async def test_a_blob_can_only_be_referred_to_by_who_uploaded_it(client, mandate):
    kept = await client.post("/v1/blobs", content=b"some text to keep", headers=mandate.auth())
    assert kept.status_code == 201
    body = {
        "sourceKind": "paste",
        "sourceId": "b",
        "content": {"blob": kept.json()["blob"]},
        "scope": "mandate",
    }
    stolen = await client.post("/v1/ingestions", json=body, headers=mandate.auth("member"))
    assert (stolen.status_code, stolen.json()["code"]) == (404, "not_found")
    own = await client.post("/v1/ingestions", json=body, headers=mandate.auth())
    assert own.status_code == 202


async def test_a_blob_may_come_as_a_form_like_a_file(client, mandate):
    bare = await client.post("/v1/blobs", content=MARKDOWN, headers=mandate.auth())
    form = await client.post("/v1/blobs", files={"file": ("guide.md", MARKDOWN)}, headers=mandate.auth())
    assert (form.status_code, form.json()["blob"]) == (201, bare.json()["blob"])
    assert form.json()["size"] == len(MARKDOWN)
    for wrong in (
        {"files": {"other": ("a.md", MARKDOWN)}},
        {"files": {"x": ("", "")}, "data": {"file": "a"}},
    ):
        answer = await client.post("/v1/blobs", headers=mandate.auth(), **wrong)
        assert (answer.status_code, answer.json()["code"]) == (422, "request.invalid")
        assert answer.json()["errors"][0]["field"] == "body.file"


async def test_too_large_and_malformed_uploads_get_a_clear_error(client, app, mandate, monkeypatch):
    monkeypatch.setattr(app.state.settings, "upload_limit_bytes", 10)
    answer = await upload(client, mandate, b"x" * 11)
    assert (answer.status_code, answer.json()["code"]) == (413, "content.too_large")
    locator = "body.content.objects.0.locator"
    for content, said in (
        ({"base64": "%%%"}, "body.content.base64: base64 does not decode"),
        (
            {"objects": [{"text": "a", "locator": {"kind": "moon"}}]},
            f"{locator}: kind is one of pdf, web, code, ticket, mail, office, text",
        ),
        (
            {"objects": [{"text": "a", "locator": {"kind": "pdf", "bbox": [1, 2, 3, 4]}}]},
            f"{locator}: a locator of kind pdf needs its page",
        ),
        ({}, "body.content: One of text, base64, blob and objects is needed"),
        (None, "body.content: One of text, base64, blob and objects is needed"),
    ):
        bad = {"sourceKind": "paste", "sourceId": "a", "content": content}
        answer = await client.post("/v1/ingestions", json=bad, headers=mandate.auth())
        assert (answer.status_code, answer.json()["detail"]) == (422, said)
    answer = await client.get("/v1/documents?cursor=nonsense", headers=mandate.auth())
    assert (answer.status_code, answer.json()["code"]) == (400, "cursor.invalid")


async def test_lists_page_through_everything_once(client, mandate, owner, bench):
    await bench.hand_in(owner, *(ask(owner, f"d{n}", f"text {n}", scope="mandate") for n in range(7)))
    for path in ("/v1/documents", "/v1/ingestions"):
        seen, cursor = [], ""
        while True:
            page = (await client.get(f"{path}?limit=3{cursor}", headers=mandate.auth())).json()
            seen += [item.get("id") or item["jobId"] for item in page["items"]]
            if page["nextCursor"] is None:
                break
            cursor = f"&cursor={page['nextCursor']}"
        assert len(seen) == len(set(seen)) == 7


async def test_why_answers_in_plain_words(client, mandate, owner, bench):
    await bench.hand_in(owner, ask(owner, "clip.mp4", {"base64": "AAAA"}, mimeType="video/mp4"))
    await bench.drain(owner)
    found = (await client.get("/v1/why?externalId=clip.mp4", headers=mandate.auth())).json()
    assert "not supported" in found["answer"]
    assert [moment["status"] for moment in found["timeline"]] == ["pending", "skipped"]
    absent = (await client.get("/v1/why?externalId=never", headers=mandate.auth())).json()
    assert absent["found"] is False


async def test_reindex_runs_again_and_embeds_nothing_that_did_not_change(client, mandate, owner, bench):
    handle = (await upload(client, mandate)).json()
    await bench.drain(owner)
    again = await client.post(f"/v1/documents/{handle['documentId']}/reindex", headers=mandate.auth())
    assert again.status_code == 202
    await bench.drain(owner)
    status = (await client.get(f"/v1/ingestions/{again.json()['jobId']}", headers=mandate.auth())).json()
    assert status["status"] == "indexed"
    assert len(bench.embedded()) == 1


async def test_what_would_be_read_otherwise_now_is_read_anew(client, mandate, owner, bench, monkeypatch):
    monkeypatch.setattr("gateway.corpus.routes.REINDEXED_AT_ONCE", 2)

    async def ask_for_it(role: str = "owner") -> httpx.Response:
        return await client.post("/v1/documents/reindex", headers=mandate.auth(role))

    for number in range(3):
        await bench.hand_in(owner, ask(owner, f"note {number}", f"Note {number}."))
    await bench.drain(owner)
    assert (await ask_for_it()).json() == {"queued": 0, "more": False}
    policy = {"extraction": {"html": "unstructured"}}
    assert (await client.patch("/v1/policy", json=policy, headers=mandate.auth())).status_code == 200
    assert (await ask_for_it("member")).status_code == 403
    assert [(await ask_for_it()).json()["queued"] for _ in range(3)] == [2, 1, 0]
    await bench.drain(owner)
    listed = (await client.get("/v1/documents", headers=mandate.auth())).json()["items"]
    assert [document["status"] for document in listed] == ["indexed"] * 3
    assert len(bench.embedded()) == 3
    assert (await ask_for_it()).json() == {"queued": 0, "more": False}


async def test_what_must_be_masked_now_is_masked_when_it_is_read_anew(client, mandate, owner, bench):
    await bench.hand_in(owner, ask(owner, "note", "Write to ada.lovelace@example.org about it."))
    await bench.drain(owner)
    policy = {"neutralisation": {"mandatorySourceKinds": ["paste"]}}
    assert (await client.patch("/v1/policy", json=policy, headers=mandate.auth())).status_code == 200
    answer = await client.post("/v1/documents/reindex", headers=mandate.auth())
    assert answer.json() == {"queued": 1, "more": False}
    await bench.drain(owner)
    (document,) = (await client.get("/v1/documents", headers=mandate.auth())).json()["items"]
    chunks = await client.get(f"/v1/documents/{document['id']}/chunks", headers=mandate.auth())
    assert document["status"] == "indexed"
    assert "ada.lovelace" not in chunks.text


async def test_events_are_accepted_from_admins_and_unknown_ones_refused(client, mandate):
    body = {"type": "FileDeleted", "payload": {"sourceId": "x"}}
    assert (await client.post("/v1/events", json=body, headers=mandate.auth())).status_code == 202
    assert (await client.post("/v1/events", json=body, headers=mandate.auth("member"))).status_code == 403
    answer = await client.post("/v1/events", json={"type": "Nonsense"}, headers=mandate.auth())
    assert (answer.status_code, answer.json()["code"]) == (422, "event.invalid")


async def test_raising_the_budget_wakes_what_waits_for_it(client, mandate, owner, bench):
    budget = {"budget": {"monthlyTokens": 1}}
    assert (await client.patch("/v1/policy", json=budget, headers=mandate.auth())).status_code == 200
    handle = (await upload(client, mandate)).json()
    await bench.drain(owner)
    status = (await client.get(f"/v1/ingestions/{handle['jobId']}", headers=mandate.auth())).json()
    assert (status["status"], status["reason"]) == ("pending", "budget")
    await client.patch("/v1/policy", json={"budget": None}, headers=mandate.auth())
    await bench.drain(owner)
    status = (await client.get(f"/v1/ingestions/{handle['jobId']}", headers=mandate.auth())).json()
    assert status["status"] == "indexed"


async def test_why_knows_a_file_by_the_end_of_its_path(client, mandate, owner, bench):
    handle = (await upload(client, mandate, sourceId="handbook/part one/guide.md")).json()
    await upload(client, mandate, b"# Other\n\nText.\n", sourceId="other/guide.md")
    for asked in ("handbook/part one/guide.md", "part one/guide.md", "/home/ada/handbook/part one/guide.md"):
        answer = await client.get("/v1/why", params={"externalId": asked}, headers=mandate.auth())
        assert answer.json()["document"]["id"] == handle["documentId"], asked
    for asked in ("uide.md", "handbook", "%", "other/part one/guide.md"):
        answer = await client.get("/v1/why", params={"externalId": asked}, headers=mandate.auth())
        assert answer.json()["found"] is False, asked


async def test_a_timeline_comes_in_pages(client, mandate, owner, bench):
    handle = (await upload(client, mandate)).json()
    await bench.drain(owner)
    path, seen, cursor = f"/v1/documents/{handle['documentId']}/timeline", [], None
    while True:
        params = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        page = (await client.get(path, params=params, headers=mandate.auth())).json()
        seen += [moment["status"] for moment in page["items"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
        assert len(page["items"]) == 3
    assert seen == ["pending", "extracted", "embedding", "indexed"]


def test_every_reason_has_words():
    """What a parser child may say, and what is left out unread."""
    assert (REASONS | {"archive", "media", "executable", "budget", "poison", "attempts"}) - set(
        REASON_SENTENCES
    ) == set()


async def test_a_deletion_whose_gateway_died_is_carried_to_its_end(
    client, mandate, owner, bench, monkeypatch
):
    document = (await upload(client, mandate)).json()["documentId"]
    entry = {"title": "a", "content": "An entry.", "type": "note"}
    written = (await client.post("/v1/entries", json=entry, headers=mandate.auth())).json()
    await bench.drain(owner)

    async def dies(*_: object) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(erasure, "finish_erasure", dies)
    for path in (f"documents/{document}", f"entries/{written['id']}"):
        answer = await client.delete(f"/v1/{path}", headers=mandate.auth())
        assert answer.status_code == 503, answer.text
    await bench.drain(owner)
    assert await rows_of(bench.db, owner, "SELECT 1 FROM document") == []


@pytest.mark.parametrize("size", [1, 10_000])
async def test_an_upload_that_waits_to_be_used_outlives_somebody_elses_document(
    client, mandate, owner, bench, app, size
):
    """The same bytes, from two people; the second was told that it may refer to them."""
    app.state.blobs, data = bench.blobs, b"Words of two people. " * size
    theirs = (await upload(client, mandate, data)).json()
    kept = await client.post("/v1/blobs", content=data, headers=mandate.auth("member"))
    deleted = await client.delete(f"/v1/documents/{theirs['documentId']}", headers=mandate.auth())
    assert (deleted.status_code, deleted.json()["counts"]["blob"]) == (200, 0), deleted.text
    wanted = {"sourceKind": "paste", "sourceId": "a", "content": {"blob": kept.json()["blob"]}}
    mine = await client.post("/v1/ingestions", json=wanted, headers=mandate.auth("member"))
    assert mine.status_code == 202, mine.text
    # now a document keeps them, and nothing does once it is gone
    document = mine.json()["documentId"]
    deleted = await client.delete(f"/v1/documents/{document}", headers=mandate.auth("member"))
    assert (deleted.json()["counts"]["blob"], await rows_of(bench.db, owner, "SELECT 1 FROM blob")) == (1, [])


async def test_what_an_earlier_revision_masked_is_not_handed_out_by_its_number(client, mandate, owner, bench):
    """Kept under a legal hold. The newest revision is for everybody, and says nothing of what the first one held."""
    await rows_of(bench.db, owner, """UPDATE mandate SET policy = '{"legalHold": true}' RETURNING 1""")
    for text, masked in (("Call Anna at +49 30 90182 0.", True), ("Harmless.", False)):
        request = ask(owner, "a", text, scope="mandate", neutralize=masked)
        [handle] = await bench.hand_in(owner, request)
        await bench.drain(owner)
    path = f"/v1/documents/{handle.document_id}/original"
    for who, asked, status in (
        ("member", 2, 200),
        ("member", 1, 404),
        ("admin", 1, 200),
        ("owner", 1, 200),
        ("owner", 9, 404),
    ):
        answer = await client.get(path, params={"revision": asked}, headers=mandate.auth(who))
        assert answer.status_code == status, (who, asked, answer.text)
    # while the third is being read, the second is what searches cite
    await bench.hand_in(owner, ask(owner, "a", "Just as harmless.", scope="mandate"))
    answer = await client.get(path, params={"revision": 2}, headers=mandate.auth("member"))
    assert (answer.status_code, answer.text) == (200, "Harmless.")


async def test_the_original_of_a_document_with_a_secret_is_for_its_owner_and_admins(
    client, mandate, owner, bench
):
    text = b"# Notes\n\nThe password is Winter!Sun42 until Friday.\n"
    handle = (await upload(client, mandate, text, scope="mandate")).json()
    path = f"/v1/documents/{handle['documentId']}/original"
    waiting = await client.get(path, headers=mandate.auth("member"))
    assert waiting.status_code == 404  # nobody has looked yet
    await bench.drain(owner)
    chunks = (await client.get(path.replace("original", "chunks"), headers=mandate.auth("member"))).json()
    assert "[secret:password:" in chunks["items"][0]["text"]
    assert (await client.get(path, headers=mandate.auth("member"))).status_code == 404
    for who in ("owner", "admin"):
        assert (await client.get(path, headers=mandate.auth(who))).content == text
    plain = (await upload(client, mandate, MARKDOWN, scope="mandate")).json()
    await bench.drain(owner)
    answer = await client.get(f"/v1/documents/{plain['documentId']}/original", headers=mandate.auth("member"))
    assert answer.content == MARKDOWN


async def test_what_is_said_about_a_document_is_masked_too(client, mandate, owner, bench):
    handle = (await upload(client, mandate, name="password hunter2go.md", tags="pwd=Toro#2026")).json()
    base = f"/v1/documents/{handle['documentId']}"
    document = (await client.get(base, headers=mandate.auth())).json()
    patched = await client.patch(
        base,
        json={"title": "The password is Winter!Sun42", "metadata": {"apiKey": "k7Qz2Wm9Rt4Xy6Bv1Nc8Pd3F"}},
        headers=mandate.auth(),
    )
    assert patched.status_code == 200
    said = str(document) + patched.text
    assert not any(value in said for value in ("Toro#2026", "Winter!Sun42", "k7Qz2Wm9Rt4Xy6Bv1Nc8Pd3F"))
    assert "[secret:" in patched.json()["title"]


async def test_why_names_what_keeps_something_from_ever_being_known(client, mandate):
    for quotas, days in (({"days": None}, 365), ({"days": 30}, 30)):
        await client.patch("/v1/policy", json={"quotas": quotas}, headers=mandate.auth("admin"))
        asked = await client.get("/v1/why", params={"externalId": "old-mail"}, headers=mandate.auth())
        assert asked.json()["found"] is False
        assert "refused as it came (by a quota, the policy or its size" in asked.json()["answer"]
        assert f"that is {days} days" in asked.json()["answer"]


@pytest.mark.parametrize(
    ("event_type", "payload", "field"),
    [
        ("FileCommitted", {}, "body.payload.sourceKind"),
        ("FileCommitted", {"sourceKind": "upload", "sourceId": "a", "content": {}}, "body.payload.content"),
        ("FileDeleted", {}, "body.payload"),
        ("ConnectionRevoked", {"connectionId": "none"}, "body.payload.connectionId"),
        ("MembershipChanged", {"userId": str(new_id())}, "body.payload.role"),
        ("ProfileUpdated", {}, "body.payload.userId"),
        ("FeatureConfigChanged", {}, "body.payload.featureInstanceId"),
    ],
)
async def test_an_event_that_says_too_little_is_refused_while_its_sender_listens(
    client, mandate, event_type, payload, field
):
    body = {"type": event_type, "payload": payload}
    answer = await client.post("/v1/events", json=body, headers=mandate.auth())
    assert (answer.status_code, answer.json()["code"]) == (422, "event.invalid"), answer.text
    assert field in [one["field"] for one in answer.json()["errors"]]


async def test_a_receipt_says_whether_anything_was_there(client, mandate, owner, bench):
    """A mistyped id must not yield a certificate; asking twice is no error."""
    handle = (await upload(client, mandate)).json()
    await bench.drain(owner)
    nobody = str(new_id())
    for body, found in (
        ({"documentId": handle["documentId"]}, True),
        ({"documentId": handle["documentId"]}, False),
        ({"userId": nobody}, False),
        ({"sourceId": nobody}, False),
        ({"documentId": nobody}, False),
    ):
        asked = asyncio.create_task(client.post("/v1/erasures", json=body, headers=mandate.auth()))
        while not asked.done():
            await bench.drain(owner)
        answer = asked.result()
        assert (answer.status_code, answer.json()["status"], answer.json()["found"]) == (200, "done", found)


async def test_a_form_field_nobody_knows_and_a_second_file_are_refused_by_name(client, mandate):
    one, other = ("file", ("a.txt", b"Some text.")), ("file", ("b.txt", b"Another."))
    for path, files, data, field in (
        ("/v1/files", [one], {"tag": "a"}, "body.tag"),
        ("/v1/files", [one, other], {}, "body.file"),
        ("/v1/files", [one, ("more", ("b.txt", b"Another."))], {}, "body.more"),
        ("/v1/files", [one], {"title": ["a", "b"]}, "body.title"),
        ("/v1/blobs", [one, other], {}, "body.file"),
        ("/v1/blobs", [one], {"title": "a"}, "body.title"),
    ):
        answer = await client.post(path, files=files, data=data, headers=mandate.auth())
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field), answer.text
    taken = await client.post("/v1/files", files=[one], data={"tags": ["a", "b"]}, headers=mandate.auth())
    assert taken.status_code == 202
