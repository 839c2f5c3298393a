"""The façade against real Postgres: outcomes, idempotency, the caller's transaction."""

import asyncio
import hashlib
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.connections import repository as connections
from gateway.corpus.blobs import INLINE_LIMIT, BlobStore
from gateway.db import Database, new_id
from gateway.errors import ContentInvalid, NotFound, TooLarge
from gateway.ingestion import facade
from gateway.ingestion.schemas import IngestionHandle, IngestionRequest
from gateway.settings import get_settings
from tests.fixtures.corpus import Tenant, ask, rows_of


async def hand_in(
    db: Database, tenant: Tenant, blobs: BlobStore, *requests: IngestionRequest
) -> list[IngestionHandle]:
    async with db.tenant_session(tenant.mandate_id) as session:
        return await facade.request_ingestions(session, requests, blobs=blobs)


async def finish(db: Database, tenant: Tenant, status: str) -> None:
    """Ends all live jobs as a worker would, as far as the façade can see."""
    await rows_of(
        db,
        tenant,
        "WITH done AS (UPDATE job SET status = :s, finished_at = now(), lease_until = NULL "
        "WHERE status IN ('pending', 'extracted', 'embedding') RETURNING document_id) "
        "UPDATE document SET status = :s WHERE id IN (SELECT document_id FROM done) RETURNING id",
        s=status,
    )


async def test_new_content_is_queued_with_document_job_outbox_and_timeline(db, tenant, blobs):
    [handle] = await hand_in(db, tenant, blobs, ask(tenant, "a", "hello"))
    assert (handle.outcome, handle.status) == ("queued", "pending")
    [job] = await rows_of(db, tenant, "SELECT * FROM job")
    assert (job.id, job.document_id, job.lane, job.status) == (
        handle.job_id,
        handle.document_id,
        "interactive",
        "pending",
    )
    assert [row.topic for row in await rows_of(db, tenant, "SELECT topic FROM outbox")] == ["bell"]
    assert [row.status for row in await rows_of(db, tenant, "SELECT status FROM timeline")] == ["pending"]


async def test_a_mandate_that_is_not_there_is_named(db, tenant, blobs):
    stranger = new_id()
    with pytest.raises(NotFound, match=str(stranger)):
        async with db.tenant_session(stranger) as session:
            await facade.request_ingestion(session, ask(tenant, "a", "text"), blobs=blobs)


async def test_everything_rolls_back_with_the_caller(db, tenant, blobs):
    class CallerFailed(Exception):
        pass

    async def caller() -> None:
        async with db.tenant_session(tenant.mandate_id) as session:
            await facade.request_ingestion(session, ask(tenant, "a", "hello"), blobs=blobs)
            raise CallerFailed

    with pytest.raises(CallerFailed):
        await caller()
    for table in ("document", "job", "outbox", "timeline", "blob"):
        assert await rows_of(db, tenant, f"SELECT 1 FROM {table}") == []


async def test_the_same_content_in_flight_returns_the_running_handle(db, tenant, blobs):
    [first] = await hand_in(db, tenant, blobs, ask(tenant, "a", "hello"))
    [second] = await hand_in(db, tenant, blobs, ask(tenant, "a", "hello"))
    assert second.outcome == "duplicate"
    assert (second.job_id, second.document_id, second.status) == (first.job_id, first.document_id, "pending")
    assert len(await rows_of(db, tenant, "SELECT 1 FROM job")) == 1


async def test_an_indexed_duplicate_applies_description_and_version_and_keeps_the_revision(db, tenant, blobs):
    [first] = await hand_in(db, tenant, blobs, ask(tenant, "a", "hello", title="Old", contentVersion="1"))
    await finish(db, tenant, "indexed")
    request = ask(
        tenant, "a", "hello", title="New", contentVersion="2", tags=["x"], metadata={"k": 1}, scope="mandate"
    )
    [again] = await hand_in(db, tenant, blobs, request)
    assert (again.outcome, again.status, again.document_id) == ("duplicate", "indexed", first.document_id)
    [row] = await rows_of(db, tenant, "SELECT * FROM document")
    assert (row.title, row.content_version, row.tags, row.metadata, row.scope) == (
        "New",
        "2",
        ["x"],
        {"k": 1},
        "mandate",
    )
    assert (row.revision, row.status) == (1, "indexed")


async def test_new_bytes_supersede_the_job_in_flight(db, tenant, blobs):
    [first] = await hand_in(db, tenant, blobs, ask(tenant, "a", "one"))
    [second] = await hand_in(db, tenant, blobs, ask(tenant, "a", "two"))
    assert second.outcome == "queued"
    assert second.document_id == first.document_id
    jobs = {row.id: row.status for row in await rows_of(db, tenant, "SELECT id, status FROM job")}
    assert jobs == {first.job_id: "superseded", second.job_id: "pending"}
    [row] = await rows_of(db, tenant, "SELECT revision FROM document")
    assert row.revision == 2


async def test_supplied_bytes_decide_over_the_version(db, tenant, blobs):
    await hand_in(db, tenant, blobs, ask(tenant, "a", "one", contentVersion="7"))
    [again] = await hand_in(db, tenant, blobs, ask(tenant, "a", "two", contentVersion="7"))
    assert again.outcome == "queued"


async def test_after_a_failure_the_same_content_is_queued_again(db, tenant, blobs):
    await hand_in(db, tenant, blobs, ask(tenant, "a", "one"))
    await finish(db, tenant, "failed")
    [again] = await hand_in(db, tenant, blobs, ask(tenant, "a", "one"))
    assert again.outcome == "queued"


async def test_another_model_or_policy_re_indexes(db, tenant, blobs, monkeypatch):
    await hand_in(db, tenant, blobs, ask(tenant, "a", "one"))
    await finish(db, tenant, "indexed")
    [masked] = await hand_in(db, tenant, blobs, ask(tenant, "a", "one", neutralize=True))
    assert masked.outcome == "queued"
    await finish(db, tenant, "indexed")
    monkeypatch.setattr(get_settings(), "embedder", "lookup:64")
    [remodelled] = await hand_in(db, tenant, blobs, ask(tenant, "a", "one", neutralize=True))
    assert remodelled.outcome == "queued"


async def test_fifty_callers_at_one_instant_make_one_job(db, tenant, blobs):
    handles = await asyncio.gather(
        *(hand_in(db, tenant, blobs, ask(tenant, "a", "same text")) for _ in range(50))
    )
    outcomes = sorted(handle.outcome for [handle] in handles)
    assert outcomes == ["duplicate"] * 49 + ["queued"]
    assert len({handle.job_id for [handle] in handles}) == 1


async def test_batches_in_opposite_order_do_not_deadlock(db, tenant, blobs):
    names = [f"n{number}" for number in range(40)]

    async def batch(order: list[str], text: str) -> None:
        await hand_in(db, tenant, blobs, *(ask(tenant, name, text) for name in order))

    for text in ("x", "y", "z"):
        await asyncio.gather(batch(names, text), batch(names[::-1], text), batch(names, text + "!"))
    assert len(await rows_of(db, tenant, "SELECT 1 FROM document")) == 40


async def test_a_batch_keeps_the_order_of_its_requests_and_refuses_a_repeated_object(db, tenant, blobs):
    handles = await hand_in(db, tenant, blobs, ask(tenant, "b", "1"), ask(tenant, "a", "2"))
    ids = {row.source_id: row.id for row in await rows_of(db, tenant, "SELECT id, source_id FROM document")}
    assert [handle.document_id for handle in handles] == [ids["b"], ids["a"]]
    with pytest.raises(ContentInvalid):
        await hand_in(db, tenant, blobs, ask(tenant, "c", "1"), ask(tenant, "c", "2"))


async def test_the_same_object_through_two_connections_is_two_documents(db, tenant, blobs):
    first, second = new_id(), new_id()
    async with db.tenant_session(tenant.mandate_id) as session:
        for connection in (first, second):
            await connections.add(session, connection, "msft", tenant.user_id)
    handles = await hand_in(
        db,
        tenant,
        blobs,
        ask(tenant, "f", "x", sourceKind="sharepoint_item", connectionId=first),
        ask(tenant, "f", "x", sourceKind="sharepoint_item", connectionId=second),
        ask(tenant, "f", "x", sourceKind="sharepoint_item"),
    )
    assert len({handle.document_id for handle in handles}) == 3


@pytest.mark.parametrize("state", ["revoked", "unknown"])
async def test_nothing_enters_through_a_revoked_or_unknown_connection(db, tenant, blobs, state):
    connection = new_id()
    if state == "revoked":
        async with db.tenant_session(tenant.mandate_id) as session:
            await connections.add(session, connection, "msft", tenant.user_id)
            await connections.revoke(session, connection)
    request = ask(tenant, "f", "x", sourceKind="sharepoint_item", connectionId=connection)
    [handle] = await hand_in(db, tenant, blobs, request)
    assert (handle.outcome, handle.reason, handle.job_id) == ("skipped", "revoked", None)


async def set_policy(db: Database, tenant: Tenant, policy: str) -> None:
    await rows_of(db, tenant, "UPDATE mandate SET policy = CAST(:p AS jsonb) RETURNING 1", p=policy)


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ('{"refusedSourceKinds": ["paste"]}', "policy"),
        ('{"quotas": {"documentBytes": 3}}', "too_large"),
        ('{"quotas": {"documents": 1}}', "quota"),
        ('{"quotas": {"bytes": 7}}', "quota"),
    ],
)
async def test_policy_and_quotas_keep_content_out_with_a_reason(db, tenant, blobs, policy, reason):
    await hand_in(db, tenant, blobs, ask(tenant, "first", "1234"))
    await set_policy(db, tenant, policy)
    [handle] = await hand_in(db, tenant, blobs, ask(tenant, "second", "5678"))
    assert (handle.outcome, handle.reason) == ("skipped", reason)


async def test_a_batch_fills_a_quota_and_no_more(db, tenant, blobs):
    await set_policy(db, tenant, '{"quotas": {"documents": 3, "bytes": 10}}')
    batch = [ask(tenant, name, "1234") for name in "abcd"]
    handles = await hand_in(db, tenant, blobs, *batch)
    assert [handle.outcome for handle in handles] == ["queued", "queued", "skipped", "skipped"]
    small = await hand_in(db, tenant, blobs, ask(tenant, "e", "12"), ask(tenant, "f", ""))
    assert [handle.outcome for handle in small] == ["queued", "skipped"]


async def test_a_full_quota_does_not_keep_a_document_from_changing(db, tenant, blobs):
    await hand_in(db, tenant, blobs, ask(tenant, "a", "1234"))
    await set_policy(db, tenant, '{"quotas": {"documents": 1, "bytes": 4}}')
    handles = [
        (await hand_in(db, tenant, blobs, ask(tenant, "a", text)))[0] for text in ("5678", "567", "56789")
    ]
    assert [(handle.outcome, handle.reason) for handle in handles] == [
        ("queued", None),
        ("queued", None),
        ("skipped", "quota"),
    ]


async def test_a_mandates_policy_makes_neutralisation_mandatory(db, tenant, blobs):
    await set_policy(db, tenant, '{"neutralisation": {"mandatorySourceKinds": ["paste"]}}')
    await hand_in(db, tenant, blobs, ask(tenant, "a", "x"))
    [row] = await rows_of(db, tenant, "SELECT neutralize FROM document")
    assert row.neutralize is True


async def test_small_originals_stay_in_the_row_and_large_ones_go_to_the_store(db, tenant, blobs):
    small, large = "s", "L" * (INLINE_LIMIT + 1)
    await hand_in(db, tenant, blobs, ask(tenant, "s", small), ask(tenant, "l", large))
    kept: dict[str, Any] = {
        row.source_id: row
        for row in await rows_of(
            db,
            tenant,
            "SELECT d.source_id, b.data, b.sha256 FROM document d JOIN blob b ON b.sha256 = d.blob_sha256",
        )
    }
    assert kept["s"].data == b"s"
    assert kept["l"].data is None
    async with db.tenant_session(tenant.mandate_id) as session:
        assert await blobs.read(session, kept["l"].sha256) == large.encode()


async def test_bad_content_gets_a_clear_error(db, tenant, blobs, monkeypatch):
    with pytest.raises(NotFound, match="POST it to"):
        await hand_in(db, tenant, blobs, ask(tenant, "a", {"blob": "sha256:" + "0" * 64}))
    with pytest.raises(ContentInvalid, match="userId"):
        await hand_in(db, tenant, blobs, ask(tenant, "a", "x", userId=None))
    monkeypatch.setattr(get_settings(), "upload_limit_bytes", 3)
    with pytest.raises(TooLarge, match="limit is 3"):
        await hand_in(db, tenant, blobs, ask(tenant, "a", "1234"))


@pytest.mark.parametrize("kind", ["entry", "knowledge_piece"])
async def test_what_is_written_by_hand_is_refused_while_it_holds_a_secret(db, tenant, blobs, kind):
    secret = "ghp_" + "a1B2" * 9
    with pytest.raises(ContentInvalid, match="secret") as refused:
        await hand_in(db, tenant, blobs, ask(tenant, "a", f"token: {secret}", sourceKind=kind))
    assert secret not in str(refused.value)
    data = f"token: {secret}".encode()
    async with db.tenant_session(tenant.mandate_id) as session:
        await blobs.add(session, [(hashlib.sha256(data).digest(), data)])
    blob = {"blob": f"sha256:{hashlib.sha256(data).hexdigest()}"}
    with pytest.raises(ContentInvalid, match="secret"):
        await hand_in(db, tenant, blobs, ask(tenant, "a", blob, sourceKind=kind))
    [fine] = await hand_in(db, tenant, blobs, ask(tenant, "a", "the token is in the safe", sourceKind=kind))
    assert fine.outcome == "queued"


async def test_what_is_refused_at_the_door_is_logged_without_its_path(db, tenant, blobs):
    """It may hold a secret, and there is no row by which an erasure would know that a line speaks of somebody."""
    secret = "ghp_" + "a1B2" * 9
    path = f"keys/{secret}.txt"
    await set_policy(db, tenant, '{"refusedSourceKinds": ["upload"]}')
    with capture_logs() as lines:
        [handle] = await hand_in(db, tenant, blobs, ask(tenant, path, "x", sourceKind="upload"))
    assert handle.outcome == "skipped"
    digest = hashlib.sha256(path.encode()).hexdigest()
    assert [line["sourceHash"] for line in lines if "sourceHash" in line] == [digest[:16]]
    assert (secret in str(lines), "keys/" in str(lines)) == (False, False)


async def test_cancel_ends_a_live_job_and_only_a_live_one(db, tenant, blobs):
    [handle] = await hand_in(db, tenant, blobs, ask(tenant, "a", "x"))
    async with db.tenant_session(tenant.mandate_id) as session:
        status = await facade.cancel_ingestion(session, handle.job_id)
    assert status.status == "cancelled"
    [again] = await hand_in(db, tenant, blobs, ask(tenant, "a", "x"))
    assert again.outcome == "queued"
    await finish(db, tenant, "indexed")
    async with db.tenant_session(tenant.mandate_id) as session:
        assert (await facade.cancel_ingestion(session, again.job_id)).status == "indexed"
