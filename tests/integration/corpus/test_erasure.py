"""Erasure leaves nothing, counts what it took, and survives being interrupted."""

import asyncio
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from uuid import UUID

import obstore
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from gateway.connections import repository as connections
from gateway.corpus import blob_repository, erasure, erasure_repository
from gateway.db import new_id
from gateway.errors import LegalHold, NotFound
from gateway.ingestion import consumer, events
from gateway.insights import repository as insights
from gateway.tenancy import service as tenancy
from gateway.tenancy.hold_repository import under_hold
from tests.fixtures.corpus import ask, rows_of
from tests.integration.workers.test_ingest import assert_consistent, paragraphs
from workers import ingest
from workers.ingest import IngestSlice
from workers.maintenance import Maintenance
from workers.pipeline import embed

STORES = (
    "document",
    "document_text",
    "chunk",
    "text_vector",
    "posting",
    "segment",
    "blob",
    "timeline",
    "outbox",
)


async def connect(db, tenant):
    connection = new_id()
    async with db.tenant_session(tenant.mandate_id) as session:
        await connections.add(session, connection, "msft", tenant.user_id)
    return connection


async def erase(db, bench, tenant, subject, subject_id) -> dict[str, int]:
    async with db.tenant_session(tenant.mandate_id) as session:
        receipt = await erasure.begin_erasure(session, subject, str(subject_id), "test")
    return await erasure.finish_erasure(db, bench.blobs, tenant.mandate_id, receipt)


async def fill(db, bench, tenant, connection=None, names="abc", **fields):
    fields = {"sourceKind": "sharepoint_item" if connection else "paste", "connectionId": connection} | fields
    requests = [ask(tenant, name, paragraphs(index) + name, **fields) for index, name in enumerate(names)]
    handles = await bench.hand_in(tenant, *requests)
    await bench.drain(tenant)
    return handles


async def counted(db, tenant, table: str) -> int:
    [row] = await rows_of(db, tenant, f"SELECT count(*) AS n FROM {table}")
    return row.n


@pytest.mark.parametrize("subject", ["connection", "user", "mandate", "source"])
async def test_everything_goes_and_the_receipt_equals_what_was_there(db, tenant, bench, subject):
    connection, source = await connect(db, tenant), new_id()
    await fill(db, bench, tenant, connection, dataSourceId=str(source))
    before = {
        table: await counted(db, tenant, table)
        for table in ("document", "chunk", "text_vector", "blob", "job")
    }
    subject_id = {
        "connection": connection,
        "user": tenant.user_id,
        "mandate": tenant.mandate_id,
        "source": source,
    }
    counts = await erase(db, bench, tenant, subject, subject_id[subject])
    assert (counts["document"], counts["chunk"], counts["vector"], counts["blob"], counts["job"]) == tuple(
        before.values()
    )
    await rows_of(
        db, tenant, "DELETE FROM outbox RETURNING 1"
    )  # bells of the ingestion; the relay's to remove
    assert {table: await counted(db, tenant, table) for table in STORES} == dict.fromkeys(STORES, 0)
    [row] = await rows_of(db, tenant, "SELECT state FROM connection")
    assert row.state == ("active" if subject == "source" else "revoked")


@pytest.mark.parametrize("subject", ["connection", "source"])
async def test_vectors_of_a_text_that_never_became_a_chunk_go_too(db, tenant, bench, monkeypatch, subject):
    """A worker died after the vectors' commit; what it worked for was to be forgotten before anybody tried again."""
    connection, source = await connect(db, tenant), new_id()
    fields = {"sourceKind": "sharepoint_item", "connectionId": connection, "dataSourceId": str(source)}
    await bench.hand_in(tenant, ask(tenant, "a", paragraphs(1), **fields))

    class Killed(BaseException):
        pass

    def dies(name: str) -> None:
        if name == "embed.after_commit":
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(embed, "crash_point", dies)
        patch.setattr(ingest.vectors, "release_claims", lambda *_: asyncio.sleep(0))
        with pytest.raises((Killed, BaseExceptionGroup)):
            await bench.drain(tenant)
    await rows_of(db, tenant, "UPDATE vector_claim SET claimed_until = now() - interval '1 s' RETURNING 1")
    assert await counted(db, tenant, "text_vector") > 0
    await erase(db, bench, tenant, subject, connection if subject == "connection" else source)
    assert await counted(db, tenant, "text_vector") == 0


async def test_a_purge_of_one_connection_leaves_uploads_and_other_connections(db, tenant, bench):
    first, second = await connect(db, tenant), await connect(db, tenant)
    await fill(db, bench, tenant, first)
    await fill(db, bench, tenant, second)
    await fill(db, bench, tenant)
    counts = await erase(db, bench, tenant, "connection", first)
    assert (counts["document"], counts["vector"]) == (3, 0)
    assert await counted(db, tenant, "document") == 6
    await assert_consistent(db, tenant)


@pytest.mark.parametrize("connection_id", ["", "00000000-0000-7000-8000-00000000dead"])
async def test_an_empty_or_unknown_connection_purges_nothing(db, tenant, bench, connection_id):
    await fill(db, bench, tenant)
    with pytest.raises(NotFound):
        await erase(db, bench, tenant, "connection", connection_id)
    assert await counted(db, tenant, "document") == 3


async def test_children_go_with_their_parent(db, tenant, bench):
    [parent, *_] = await fill(db, bench, tenant, names="p")
    await fill(db, bench, tenant, names="xy", parentDocumentId=str(parent.document_id))
    [child] = await rows_of(db, tenant, "SELECT id FROM document WHERE source_id = 'x'")
    await fill(db, bench, tenant, names="z", parentDocumentId=str(child.id))
    assert (await erase(db, bench, tenant, "document", parent.document_id))["document"] == 4


async def test_attachments_of_a_users_document_go_although_they_name_no_user(db, tenant, bench):
    [parent, *_] = await fill(db, bench, tenant, names="p")
    await fill(
        db, bench, tenant, names="x", parentDocumentId=str(parent.document_id), userId=None, scope="mandate"
    )
    assert (await erase(db, bench, tenant, "user", tenant.user_id))["document"] == 2
    assert await counted(db, tenant, "document") == 0


async def test_what_a_user_uploaded_or_announced_goes_before_it_ever_was_a_document(db, tenant, bench):
    kept, lost = (
        b"also uploaded by somebody else",
        b"uploaded and never used" * 10_000,
    )  # the second lies in the store
    async with db.tenant_session(tenant.mandate_id) as session:
        for data, principals in (
            (kept, ("user:other", f"user:{tenant.user_id}")),
            (lost, (f"user:{tenant.user_id}",)),
        ):
            digest = sha256(data).digest()
            await bench.blobs.add(session, [(digest, data)])
            for principal in principals:
                await blob_repository.note_upload(session, digest, principal)
        request = ask(tenant, "f", "From an event.").model_dump(mode="json", by_alias=True)
        await events.record_event(session, "FileCommitted", request)
        await events.record_event(session, "FileCommitted", request | {"userId": str(new_id())})
    counts = await erase(db, bench, tenant, "user", tenant.user_id)
    assert (counts["upload"], counts["blob"], counts["event"]) == (2, 1, 1)
    assert await counted(db, tenant, "blob") == 1
    assert await counted(db, tenant, "blob_upload") == 1
    assert await counted(db, tenant, "outbox") == 1  # another user's
    assert objects(bench) == []


async def test_bytes_that_an_event_referred_to_go_whoever_uploaded_them(db, tenant, bench):
    digest = sha256(b"uploaded by a service").digest()
    async with db.tenant_session(tenant.mandate_id) as session:
        await bench.blobs.add(session, [(digest, b"uploaded by a service")])
        await blob_repository.note_upload(session, digest, "service:crm")
    request = ask(tenant, "f", {"blob": f"sha256:{digest.hex()}"}).model_dump(mode="json", by_alias=True)
    await emit_event(db, tenant, "FileCommitted", request)
    assert (await erase(db, bench, tenant, "user", tenant.user_id))["blob"] == 1
    assert await counted(db, tenant, "blob") == 0


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("user_id", str),
        ("userId", lambda one: str(one).upper()),
        ("userId", lambda one: one.hex),
        ("userId", UUID),
    ],
)
async def test_what_was_announced_is_withdrawn_however_the_feature_spelled_the_user(
    db, tenant, bench, name, spelled
):
    request = ask(tenant, "f", "From an event.").model_dump(mode="json", by_alias=True)
    del request["userId"]
    async with db.tenant_session(tenant.mandate_id) as session:
        user_id = spelled(tenant.user_id) if spelled is not UUID else tenant.user_id
        await events.record_event(session, "FileCommitted", request | {name: user_id})
    assert (await erase(db, bench, tenant, "user", tenant.user_id))["event"] == 1
    assert await counted(db, tenant, "outbox") == 0


async def test_an_account_goes_when_its_user_is_no_member_any_more(db, tenant, bench):
    assert (await erase(db, bench, tenant, "user", tenant.user_id))["account"] == 0
    await rows_of(db, tenant, "DELETE FROM membership WHERE user_id = :id RETURNING 1", id=tenant.user_id)
    assert (await erase(db, bench, tenant, "user", tenant.user_id))["account"] == 1


def objects(bench) -> list[str]:
    return [
        entry["path"]
        for listed in obstore.list(bench.blobs._store)
        for entry in listed
        if "/" in entry["path"]
    ]


async def test_bytes_whose_writer_died_before_its_commit_are_collected(db, tenant, bench):
    data = b"large enough for the store" * 10_000
    async with db.tenant_session(tenant.mandate_id) as session:
        await bench.blobs.add(session, [(sha256(data).digest(), data)])
        assert len(objects(bench)) == 1
        async with db.tenant_session(tenant.mandate_id) as other:
            await other.execute(text("SET LOCAL lock_timeout = '200ms'"))
            with pytest.raises(DBAPIError):  # the writer lives: nobody takes its bytes away
                await bench.blobs.collect_orphans(other)
            await other.rollback()
        await session.rollback()
    await bench.hand_in(tenant, ask(tenant, "a", "x" * 200_000))
    assert len(objects(bench)) == 2
    async with db.tenant_session(tenant.mandate_id) as session:
        assert await bench.blobs.collect_orphans(session) == 1
    assert len(objects(bench)) == 1


async def test_documents_leave_when_their_kind_has_had_its_time(db, tenant, bench, capsys):
    await fill(db, bench, tenant, names="abc")
    await fill(db, bench, tenant, names="x", sourceKind="feature_record")
    [parent] = await rows_of(db, tenant, "SELECT id FROM document WHERE source_id = 'a'")
    await fill(db, bench, tenant, names="n", sourceKind="upload", parentDocumentId=str(parent.id))
    await rows_of(
        db,
        tenant,
        "UPDATE document SET created_at = now() - interval '31 days' WHERE source_id <> 'b' RETURNING 1",
    )
    hold = """UPDATE mandate SET policy = '{"retentionDays": {"paste": 30}, "legalHold": %s}' RETURNING 1"""
    await rows_of(db, tenant, hold % "true")
    assert await erasure.expire_documents(db, bench.blobs, tenant.mandate_id) == 0
    await rows_of(db, tenant, hold % "false")
    await Maintenance(db, bench.settings).tidy(tenant.mandate_id)
    left = await rows_of(db, tenant, "SELECT source_id FROM document ORDER BY source_id")
    assert [row.source_id for row in left] == ["b", "x"]
    assert "ingestion.retention.done" in capsys.readouterr().out
    await assert_consistent(db, tenant)


async def test_bytes_of_earlier_revisions_go_with_their_document(db, tenant, bench):
    """They are collected a moment after they were replaced; an erasure must not come in between."""
    for words in ("first secret plan", "second plan", "third plan"):
        await bench.hand_in(tenant, ask(tenant, "a", words))
        await bench.drain(tenant)
    await bench.hand_in(
        tenant, ask(tenant, "b", "first secret plan")
    )  # of another document: these bytes stay
    await bench.drain(tenant)
    [document] = await rows_of(db, tenant, "SELECT id FROM document WHERE source_id = 'a'")
    counts = await erase(db, bench, tenant, "document", document.id)
    assert counts["blob"] == 2
    assert (await counted(db, tenant, "blob"), await counted(db, tenant, "former_original")) == (1, 0)


async def test_bytes_of_earlier_revisions_are_collected_and_kept_under_legal_hold(db, tenant, bench):
    hold = "UPDATE mandate SET policy = '{\"legalHold\": %s}' RETURNING 1"
    await rows_of(db, tenant, hold % "true")
    for words in ("the evidence", "what was made of it"):
        await bench.hand_in(tenant, ask(tenant, "a", words))
        await bench.drain(tenant)
    maintenance = Maintenance(db, bench.settings)
    await maintenance.tidy(tenant.mandate_id)
    assert await counted(db, tenant, "blob") == 2
    async with db.tenant_session(tenant.mandate_id) as session:
        [document] = await session.scalars(text("SELECT id FROM document"))
        former = await blob_repository.former_original(session, document, revision=1)
        assert former is not None
        assert await bench.blobs.read(session, former.sha256) == b"the evidence"
    await rows_of(db, tenant, hold % "false")
    await maintenance.tidy(tenant.mandate_id)
    assert (await counted(db, tenant, "blob"), await counted(db, tenant, "former_original")) == (1, 0)


async def test_the_original_of_what_is_served_stays_until_the_new_one_is(db, tenant, bench):
    await bench.hand_in(tenant, ask(tenant, "a", "first"))
    await bench.drain(tenant)
    maintenance = Maintenance(db, bench.settings)
    await bench.hand_in(tenant, ask(tenant, "a", "second"))
    await bench.hand_in(tenant, ask(tenant, "a", "third"))
    await maintenance.tidy(tenant.mandate_id)
    assert [row.revision for row in await rows_of(db, tenant, "SELECT revision FROM former_original")] == [1]
    await bench.drain(tenant)
    await maintenance.tidy(tenant.mandate_id)
    assert (await counted(db, tenant, "blob"), await counted(db, tenant, "former_original")) == (1, 0)


async def test_a_legal_hold_refuses(db, tenant, bench):
    [handle, *_] = await fill(db, bench, tenant)
    await rows_of(db, tenant, """UPDATE mandate SET policy = '{"legalHold": true}' RETURNING 1""")
    with pytest.raises(LegalHold):
        await erase(db, bench, tenant, "document", handle.document_id)


async def test_an_erasure_whose_job_was_set_aside_is_taken_up_again(db, tenant, bench):
    await fill(db, bench, tenant)
    async with db.tenant_session(tenant.mandate_id) as session:
        await erasure.enqueue_erasure(
            session, await erasure.begin_erasure(session, "user", str(tenant.user_id), "test")
        )
    set_aside = (
        "UPDATE job SET status = 'failed', reason = 'poison', finished_at = now() - interval '%s' "
        "WHERE kind = 'erase' RETURNING 1"
    )
    maintenance = Maintenance(db, bench.settings)
    await rows_of(db, tenant, "UPDATE receipt SET created_at = now() - interval '1 day' RETURNING 1")
    await rows_of(db, tenant, set_aside % "1 minute")
    await maintenance.tidy(tenant.mandate_id)
    await bench.drain(tenant)
    assert await counted(db, tenant, "document") == 3  # not over and over
    await rows_of(db, tenant, set_aside % "1 hour")
    await maintenance.tidy(tenant.mandate_id)
    await bench.drain(tenant)
    assert await counted(db, tenant, "document") == 0
    [receipt] = await rows_of(db, tenant, "SELECT status, counts FROM receipt")
    assert (receipt.status, receipt.counts["document"]) == ("done", 3)


async def policy(db, tenant, **fields) -> None:
    async with db.tenant_session(tenant.mandate_id) as session:
        await tenancy.patch_policy(session, fields)


async def test_a_hold_that_comes_while_an_erasure_runs_stops_it_until_it_is_lifted(
    db, tenant, bench, monkeypatch
):
    class Killed(BaseException):
        pass

    def die(_name: str) -> None:
        raise Killed

    await fill(db, bench, tenant)
    monkeypatch.setattr(erasure, "BATCH", 1)
    async with db.tenant_session(tenant.mandate_id) as session:
        receipt = await erasure.begin_erasure(session, "user", str(tenant.user_id), "test")
        await erasure.enqueue_erasure(session, receipt)
    with monkeypatch.context() as patch:
        patch.setattr(erasure, "crash_point", die)
        with pytest.raises(Killed):
            await erasure.finish_erasure(db, bench.blobs, tenant.mandate_id, receipt)
    await policy(db, tenant, legalHold=True)
    with pytest.raises(LegalHold, match="goes on when the hold is lifted"):
        await erasure.finish_erasure(db, bench.blobs, tenant.mandate_id, receipt)
    await bench.drain(tenant)
    assert await counted(db, tenant, "document") == 2
    async with db.tenant_session(tenant.mandate_id) as session:
        found = await erasure_repository.find_receipt(session, receipt)
    assert (found.status, found.held, found.counts["document"]) == ("running", True, 1)
    [job] = await rows_of(db, tenant, "SELECT status, reason, attempts FROM job WHERE kind = 'erase'")
    assert job == ("pending", "legal hold", 0)
    await policy(db, tenant, legalHold=None)
    await bench.drain(tenant)
    async with db.tenant_session(tenant.mandate_id) as session:
        found = await erasure_repository.find_receipt(session, receipt)
    assert (found.status, found.held, found.counts["document"]) == ("done", False, 3)


async def test_who_sets_a_hold_waits_for_the_batch_that_goes_on(db, tenant):
    """Once it is answered, nothing goes any more."""
    async with db.tenant_session(tenant.mandate_id) as erasing:
        assert not await under_hold(erasing)
        async with db.tenant_session(tenant.mandate_id) as session:
            await session.execute(text("SET LOCAL lock_timeout = '200ms'"))
            with pytest.raises(DBAPIError):
                await tenancy.patch_policy(session, {"legalHold": True})
            await session.rollback()
    await policy(db, tenant, legalHold=True)
    async with db.tenant_session(tenant.mandate_id) as erasing:
        assert await under_hold(erasing)


async def test_under_a_legal_hold_an_upload_that_nobody_used_stays(db, tenant, bench):
    async with db.tenant_session(tenant.mandate_id) as session:
        await bench.blobs.add(session, [(sha256(b"evidence").digest(), b"evidence")])
    await rows_of(db, tenant, "UPDATE blob SET created_at = now() - interval '2 days' RETURNING 1")
    await policy(db, tenant, legalHold=True)
    await Maintenance(db, bench.settings).tidy(tenant.mandate_id)
    assert await counted(db, tenant, "blob") == 1
    await policy(db, tenant, legalHold=False)
    await Maintenance(db, bench.settings).tidy(tenant.mandate_id)
    assert await counted(db, tenant, "blob") == 0


async def test_an_interrupted_erasure_resumes_and_still_counts_everything(db, tenant, bench, monkeypatch):
    class Killed(BaseException):
        pass

    def die(_name: str) -> None:
        raise Killed

    connection = await connect(db, tenant)
    await fill(db, bench, tenant, connection, names="abcdefgh")
    async with db.tenant_session(tenant.mandate_id) as session:
        receipt = await erasure.begin_erasure(session, "connection", str(connection), "test")
        again = await erasure.begin_erasure(session, "connection", str(connection), "test")
    assert again == receipt  # a second request joins the first
    monkeypatch.setattr(erasure, "BATCH", 3)
    for _ in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(erasure, "crash_point", die)
            with pytest.raises(Killed):
                await erasure.finish_erasure(db, bench.blobs, tenant.mandate_id, receipt)
    counts = await erasure.finish_erasure(db, bench.blobs, tenant.mandate_id, receipt)
    assert counts["document"] == 8
    assert await counted(db, tenant, "chunk") == 0


async def test_a_job_of_an_erased_document_writes_nothing(db, tenant, bench, monkeypatch):
    """The document is erased after it was parsed and before it is stored."""
    advance = IngestSlice._advance

    async def erase_then_advance(self, group):
        held = await advance(self, group)
        await erase(db, bench, tenant, "user", tenant.user_id)
        return held

    monkeypatch.setattr(IngestSlice, "_advance", erase_then_advance)
    await bench.hand_in(tenant, ask(tenant, "a", paragraphs(1)))
    await bench.drain(tenant)
    for table in ("document", "chunk", "text_vector", "posting"):
        assert await counted(db, tenant, table) == 0


async def emit_event(db, tenant, event_type: str, payload: dict) -> None:
    async with db.tenant_session(tenant.mandate_id) as session:
        await events.record_event(session, event_type, payload)
    ids = [row.id for row in await rows_of(db, tenant, "SELECT id FROM outbox WHERE topic = 'event'")]
    await consumer.KnowledgeIngestionConsumer(db).consume(tenant.mandate_id, ids)
    assert await rows_of(db, tenant, "SELECT 1 FROM outbox WHERE topic = 'event'") == []


async def test_the_consumer_ingests_deletes_and_purges(db, tenant, bench):
    request = ask(tenant, "f", "From an event.").model_dump(mode="json", by_alias=True)
    await emit_event(db, tenant, "FileCommitted", request)
    await bench.drain(tenant)
    assert await counted(db, tenant, "chunk") == 1
    await emit_event(db, tenant, "FileDeleted", {"sourceKind": "paste", "sourceId": "f"})
    await bench.drain(tenant)
    assert await counted(db, tenant, "document") == 0
    connection = await connect(db, tenant)
    await fill(db, bench, tenant, connection)
    await emit_event(db, tenant, "ConnectionRevoked", {"connectionId": str(connection), "authority": "msft"})
    await bench.drain(tenant)
    assert await counted(db, tenant, "document") == 0
    [receipt] = await rows_of(db, tenant, "SELECT * FROM receipt WHERE subject = 'connection'")
    assert (receipt.status, receipt.counts["document"]) == ("done", 3)


@pytest.mark.parametrize(
    ("event_type", "payload"),
    [
        ("FileDeleted", {"sourceKind": "paste", "sourceId": "a"}),
        ("MembershipChanged", {"role": None, "erase": True}),
        ("MandateUpdated", {"erase": True}),
    ],
)
async def test_what_an_event_would_have_erased_under_a_hold_is_logged_as_refused(
    db, tenant, bench, capsys, event_type, payload
):
    await fill(db, bench, tenant, names="a")
    await policy(db, tenant, legalHold=True)
    if event_type == "MembershipChanged":
        payload = payload | {"userId": str(tenant.user_id)}
    capsys.readouterr()
    await emit_event(db, tenant, event_type, payload)
    out = capsys.readouterr().out
    assert ("ingestion.event.ignored" in out, "legal hold" in out, f"type={event_type}" in out) == (True,) * 3
    assert await counted(db, tenant, "document") == 1


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("left: by\nherself", "left: by herself"),
        ("x" * 400, "revoked"),
        (None, "revoked"),
        (["x"], "revoked"),
    ],
)
async def test_the_reason_of_a_revocation_is_a_line(db, tenant, bench, capsys, said, kept):
    connection = await connect(db, tenant)
    await emit_event(db, tenant, "ConnectionRevoked", {"connectionId": str(connection), "reason": said})
    await bench.drain(tenant)
    [receipt] = await rows_of(db, tenant, "SELECT reason FROM receipt")
    assert receipt.reason == f"{kept}:msft"
    assert "authority=msft" in capsys.readouterr().out


async def test_a_leaving_members_connections_are_purged(db, tenant, bench):
    connection = await connect(db, tenant)
    await fill(db, bench, tenant, connection)
    await emit_event(db, tenant, "MembershipChanged", {"userId": str(tenant.user_id), "role": "admin"})
    assert await counted(db, tenant, "document") == 3
    await emit_event(db, tenant, "MembershipChanged", {"userId": str(tenant.user_id), "role": None})
    await bench.drain(tenant)
    assert await counted(db, tenant, "document") == 0


@pytest.mark.parametrize(
    ("event_type", "payload"),
    [
        ("ConnectionRevoked", {}),
        ("ConnectionRevoked", {"connectionId": ""}),
        ("FileCommitted", {"sourceKind": "nonsense"}),
        ("FileDeleted", {}),
        ("ProfileUpdated", {"userId": "x"}),
    ],
)
async def test_an_event_that_cannot_be_used_is_logged_and_dropped(
    db, tenant, bench, event_type, payload, capsys
):
    await fill(db, bench, tenant)
    await emit_event(db, tenant, event_type, payload)
    assert await counted(db, tenant, "document") == 3
    assert "ingestion.event.ignored" in capsys.readouterr().out


async def test_a_question_written_behind_an_erasure_does_not_come_after_it(db, tenant, bench):
    """Notes of searches wait in the gateway for a moment."""
    [handle, *_] = await fill(db, bench, tenant)
    stayed = new_id()

    def note(user_id, asked_at) -> dict:
        common = {
            "origin": "sdk",
            "q": "what about p1w3",
            "filters": {},
            "result_count": 1,
            "answered": True,
            "took_ms": 1,
        }
        return common | {"id": str(new_id()), "user_id": str(user_id), "at": asked_at.isoformat()}

    before = datetime.now(UTC)
    await erase(db, bench, tenant, "user", tenant.user_id)
    notes = [
        note(tenant.user_id, before),
        note(stayed, before),
        note(tenant.user_id, datetime.now(UTC) + timedelta(hours=1)),
    ]
    async with db.tenant_session(tenant.mandate_id) as session:
        await insights.add_queries(session, notes)
        await insights.add_query_hits(session, [(UUID(notes[0]["id"]), handle.document_id)])
    written = {str(row.id) for row in await rows_of(db, tenant, "SELECT id FROM query_log")}
    assert written == {notes[1]["id"], notes[2]["id"]}
    assert await counted(db, tenant, "query_hit") == 0


async def test_two_who_ask_at_the_same_moment_have_one_receipt(db, bench, tenant):
    """Who comes second waits for the first, and joins."""
    subject = ("user", str(tenant.user_id), "test")
    async with db.tenant_session(tenant.mandate_id) as first:
        receipt = await erasure.begin_erasure(first, *subject)
        async with db.tenant_session(tenant.mandate_id) as second:
            await second.execute(text("SET LOCAL lock_timeout = '200ms'"))
            with pytest.raises(DBAPIError):
                await erasure.begin_erasure(second, *subject)
            await second.rollback()
    async with db.tenant_session(tenant.mandate_id) as second:
        assert await erasure.begin_erasure(second, *subject) == receipt


async def test_who_asks_for_an_erasure_that_runs_already_joins_it(db, bench, tenant):
    [handle] = await fill(db, bench, tenant, names="a")
    receipts = set()
    for _ in range(2):
        async with db.tenant_session(tenant.mandate_id) as session:
            receipt = await erasure.begin_erasure(session, "document", str(handle.document_id), "test")
            await erasure.enqueue_erasure(session, receipt)
            receipts.add(receipt)
    assert len(receipts) == 1
    assert len(await rows_of(db, tenant, "SELECT 1 FROM job WHERE kind = 'erase'")) == 1
    await bench.drain(tenant)
    assert await counted(db, tenant, "document") == 0
