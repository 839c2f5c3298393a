"""Files inside a mail become documents of their own: with its owner, in its transaction, once, and no longer than it has them."""

import base64

from gateway.corpus.erasure import begin_erasure, expire_documents, finish_erasure
from gateway.corpus.repository import find_document
from gateway.corpus.schemas import DocumentPatch
from gateway.corpus.service import describe
from gateway.db import new_id
from gateway.ingestion.facade import reindex
from gateway.tenancy.principal import Principal
from gateway.tenancy.service import patch_policy
from tests.fixtures.corpus import ask, rows_of
from tests.fixtures.mail_files import as_bytes, mail
from workers.pipeline.formats.mail import MOST_ATTACHMENTS

DOCUMENTS = (
    "SELECT id, source_kind, source_id, title, status, reason, parent_document_id, scope, user_id, neutralize, connection_id, "
    "tags, revision FROM document ORDER BY created_at, source_id"
)


def message(*attachments: tuple[str, bytes], subject: str = "Bericht", body: str = "Siehe Anhang."):
    found = mail(subject, body)
    for name, data in attachments:
        found.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    return found


def content(found) -> dict[str, str]:
    return {"base64": base64.b64encode(as_bytes(found)).decode()}


async def hand_in(bench, tenant, found, **fields):
    request = ask(
        tenant, "m1", content(found), mimeType="message/rfc822", **{"sourceKind": "outlook_message", **fields}
    )
    [handle] = await bench.hand_in(tenant, request)
    await bench.drain(tenant)
    return handle


async def test_attachments_are_documents_of_the_mail(db, tenant, bench):
    found = message(
        ("notiz.txt", "Notiz über die Brücke".encode()), ("liste.csv", b"Name,Ort\nAnna,Ulm\nBob,Bonn\n")
    )
    await hand_in(bench, tenant, found, scope="mandate", tags=["post"], neutralize=False)
    parent, *children = await rows_of(db, tenant, DOCUMENTS)
    assert (parent.source_kind, parent.status) == ("outlook_message", "indexed")
    assert [child.title for child in children] == ["notiz.txt", "liste.csv"]
    for index, child in enumerate(children):
        assert child.source_kind == "outlook_attachment"
        assert child.source_id.startswith(f"m1#attachment/{index}-")
        assert (child.parent_document_id, child.status) == (parent.id, "indexed")
        assert (child.scope, child.user_id, child.tags) == (parent.scope, parent.user_id, parent.tags)
    texts = await rows_of(db, tenant, "SELECT text FROM document_text")
    assert {"Notiz über die Brücke", "Name | Ort\nName: Anna | Ort: Ulm\nName: Bob | Ort: Bonn"} <= {
        row.text for row in texts
    }


async def test_a_second_look_indexes_nothing_twice(db, tenant, bench):
    found = message(("a.txt", b"the first attachment"))
    await hand_in(bench, tenant, found)
    before = bench.embedded()
    found.replace_header("Subject", "Bericht, noch einmal")
    await hand_in(bench, tenant, found)
    parent, child = await rows_of(db, tenant, DOCUMENTS)
    assert (parent.revision, child.revision) == (2, 1)
    assert len(bench.embedded()) == len(before) + 1  # the new headers


async def test_what_a_new_revision_no_longer_holds_is_erased(db, tenant, bench):
    await hand_in(bench, tenant, message(("keep.txt", b"this one stays"), ("go.txt", b"this one goes")))
    await hand_in(bench, tenant, message(("keep.txt", b"this one stays")))
    assert [row.title for row in await rows_of(db, tenant, DOCUMENTS)] == ["", "keep.txt"]
    texts = [row.text for row in await rows_of(db, tenant, "SELECT text FROM document_text")]
    assert not [text for text in texts if "goes" in text]
    await hand_in(bench, tenant, message())
    assert len(await rows_of(db, tenant, DOCUMENTS)) == 1


async def test_attachments_are_seen_by_whoever_may_see_the_mail(db, tenant, bench):
    inner = message(("tief.txt", b"deep inside"), subject="Innen")
    outer = message(("a.txt", b"outside"))
    outer.add_attachment(inner)
    await hand_in(bench, tenant, outer, scope="mandate")
    assert {row.scope for row in await rows_of(db, tenant, DOCUMENTS)} == {"mandate"}
    handle = await hand_in(bench, tenant, outer, scope="mandate", title="again")
    assert handle.outcome == "duplicate"
    async with db.tenant_session(tenant.mandate_id) as session:
        mandate_wide = await find_document(session, handle.document_id, tenant.user_id)
        principal = Principal(
            mandate_id=tenant.mandate_id,
            user_id=tenant.user_id,
            role="owner",
            scopes=frozenset({"write"}),
            via="key",
            credential_id=new_id(),
        )
        await describe(session, mandate_wide, DocumentPatch(scope="personal"), principal)
    rows = await rows_of(db, tenant, DOCUMENTS)
    assert [row.scope for row in rows] == ["personal"] * 4
    assert {row.user_id for row in rows} == {tenant.user_id}


async def test_legal_hold_keeps_what_a_new_revision_left_out(db, tenant, bench):
    await hand_in(bench, tenant, message(("go.txt", b"this one goes")))
    await rows_of(db, tenant, "UPDATE mandate SET policy = '{\"legalHold\": true}' RETURNING slug")
    await hand_in(bench, tenant, message())
    assert len(await rows_of(db, tenant, DOCUMENTS)) == 2


async def test_what_a_hold_kept_goes_when_it_is_lifted_unless_it_is_there_again(db, tenant, bench):
    first, second = ("a.txt", b"first note"), ("b.txt", b"second note")
    await hand_in(bench, tenant, message(first, second))
    await hold(db, tenant, True)
    await hand_in(bench, tenant, message(subject="leer"))
    await hand_in(bench, tenant, message(first, subject="wieder da"))
    assert len(await rows_of(db, tenant, DOCUMENTS)) == 3
    await hold(db, tenant, False)
    await bench.drain(tenant)
    assert [row.title for row in await rows_of(db, tenant, DOCUMENTS)] == ["", "a.txt"]
    assert [row.status for row in await rows_of(db, tenant, "SELECT status FROM receipt")] == ["done"]


async def hold(db, tenant, on: bool) -> None:
    async with db.tenant_session(tenant.mandate_id) as session:
        await patch_policy(session, {"legalHold": on})


async def test_an_attachment_whose_kind_has_had_its_time_does_not_come_back_with_its_mail(db, tenant, bench):
    handle = await hand_in(bench, tenant, message(("a.txt", b"a note")))
    async with db.tenant_session(tenant.mandate_id) as session:
        await patch_policy(session, {"retentionDays": {"outlook_attachment": 30}})
    await rows_of(db, tenant, "UPDATE document SET created_at = now() - interval '31 days' RETURNING 1")
    assert await expire_documents(db, bench.blobs, tenant.mandate_id) == 1
    async with db.tenant_session(tenant.mandate_id) as session:
        await reindex(session, handle.document_id)
    await bench.drain(tenant)
    found = await rows_of(db, tenant, DOCUMENTS)
    assert [(row.source_kind, row.status, row.revision) for row in found] == [
        ("outlook_message", "indexed", 2)
    ]
    await rows_of(db, tenant, "UPDATE document SET created_at = now() - interval '29 days' RETURNING 1")
    await hand_in(bench, tenant, message(("a.txt", b"a note"), subject="zu dieser Zeit"))
    assert len(await rows_of(db, tenant, DOCUMENTS)) == 2


async def test_mails_inside_mails_are_opened_three_deep(db, tenant, bench):
    found = message(("grund.txt", b"at the very bottom"), subject="Ebene 5")
    for depth in (4, 3, 2, 1):
        outer = message(subject=f"Ebene {depth}", body=f"Text der Ebene {depth}")
        outer.add_attachment(found)
        found = outer
    await hand_in(bench, tenant, found, sourceKind="upload")
    rows = await rows_of(db, tenant, DOCUMENTS)
    assert [row.title for row in rows] == ["", "Ebene 2.eml", "Ebene 3.eml", "Ebene 4.eml"]
    assert {row.source_kind for row in rows} == {"upload"}
    assert all(row.status == "indexed" for row in rows)


async def test_erasing_the_mail_takes_everything_inside_along(db, tenant, bench):
    inner = message(("tief.txt", b"deep inside"), subject="Innen")
    outer = message(("a.txt", b"outside"))
    outer.add_attachment(inner)
    handle = await hand_in(bench, tenant, outer)
    assert len(await rows_of(db, tenant, DOCUMENTS)) == 4
    async with db.tenant_session(tenant.mandate_id) as session:
        receipt = await begin_erasure(session, "document", str(handle.document_id), "test")
    counts = await finish_erasure(db, bench.blobs, tenant.mandate_id, receipt)
    assert counts["document"] == 4
    for table in ("document", "chunk", "document_text", "blob"):
        assert await rows_of(db, tenant, f"SELECT 1 FROM {table}") == []


async def test_what_is_left_out_of_a_mail_stands_in_its_timeline(db, tenant, bench):
    many = [(f"{number}.txt", b"%d" % number) for number in range(MOST_ATTACHMENTS + 2)]
    handle = await hand_in(bench, tenant, message(*many))
    (row,) = await rows_of(
        db,
        tenant,
        f"SELECT detail FROM timeline WHERE status = 'extracted' AND document_id = '{handle.document_id}'",
    )
    assert row.detail["warnings"] == ["an attachment was left out: too many or too large"] * 2


async def test_an_attachment_that_cannot_be_read_costs_itself(db, tenant, bench):
    await hand_in(
        bench,
        tenant,
        message(
            ("kaputt.pdf", b"%PDF-1.4 broken"),
            ("film.mp4", b"\x00\x00\x00\x18ftypmp42" + bytes(64)),
            ("gut.txt", b"fine"),
        ),
    )
    by_title = {row.title: row for row in await rows_of(db, tenant, DOCUMENTS)}
    assert by_title[""].status == by_title["gut.txt"].status == "indexed"
    assert (by_title["kaputt.pdf"].status, by_title["kaputt.pdf"].reason) == ("failed", "damaged")


async def test_another_engine_by_policy_indexes_anew(db, tenant, bench):
    page = {
        "base64": base64.b64encode(b"<html><body><h1>One</h1><p>Some words here.</p></body></html>").decode()
    }
    request = ask(tenant, "p", page, mimeType="text/html", uri="https://host.example/p")
    first, second = await bench.hand_in(tenant, request), await bench.hand_in(tenant, request)
    assert second[0].outcome == "duplicate"
    await bench.drain(tenant)
    await rows_of(
        db, tenant, 'UPDATE mandate SET policy = \'{"extraction": {"html": "unstructured"}}\' RETURNING slug'
    )
    third = await bench.hand_in(tenant, request)
    assert third[0].outcome == "queued"
    await bench.drain(tenant)
    [row] = await rows_of(db, tenant, "SELECT status, revision FROM document")
    assert (row.status, row.revision) == ("indexed", 2)
    [chunk] = await rows_of(db, tenant, "SELECT locator FROM chunk")
    assert (chunk.locator["kind"], chunk.locator["url"]) == ("web", "https://host.example/p")
    assert first[0].document_id == third[0].document_id
