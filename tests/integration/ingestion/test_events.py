"""Domain events: kept with the caller's commit, consumed at least once, and none that is unusable stands in the way."""

from typing import Any

import pytest
from redis.asyncio import Redis
from sqlalchemy.exc import OperationalError

from gateway.connections import repository as connections
from gateway.db import new_id
from gateway.errors import EventInvalid
from gateway.ingestion import bell
from gateway.ingestion.consumer import KnowledgeIngestionConsumer
from gateway.ingestion.events import EVENT_TYPES, record_event
from tests.fixtures.corpus import ask, make_tenant, rows_of
from workers.relay import Relay


@pytest.fixture
async def relay(db, database_urls, redis_url):
    async with Redis.from_url(redis_url) as plain:
        await plain.flushdb()
    redis = bell.connect(redis_url)
    yield Relay(db, database_urls.runtime_url, redis, sweep_seconds=60)
    await redis.aclose()


async def say(db, tenant, event_type: str, payload: dict) -> None:
    async with db.tenant_session(tenant.mandate_id) as session:
        await record_event(session, event_type, payload)


async def left(db, tenant) -> list[dict]:
    return [
        row.payload for row in await rows_of(db, tenant, "SELECT payload FROM outbox WHERE topic = 'event'")
    ]


async def test_an_event_appears_with_its_commit_or_not_at_all(db, tenant):
    class Undone(Exception):
        pass

    async def caller() -> None:
        async with db.tenant_session(tenant.mandate_id) as session:
            await record_event(session, "ProfileUpdated", {"userId": str(tenant.user_id)})
            raise Undone

    with pytest.raises(Undone):
        await caller()
    assert await left(db, tenant) == []
    with pytest.raises(EventInvalid, match="no event of this type") as refused:
        await say(db, tenant, "SomethingElse", {})
    assert "SomethingElse" not in str(refused.value), "no refusal repeats what was given"


async def test_a_committed_file_is_ingested_and_a_deleted_one_erased(db, tenant, bench, relay):
    request = ask(tenant, "file-1", "A sluice has two gates.", sourceKind="feature_record", scope="mandate")
    await say(db, tenant, "FileCommitted", request.model_dump(mode="json", by_alias=True))
    await relay.relay_outbox()
    await bench.drain(tenant)
    [document] = await rows_of(db, tenant, "SELECT status, source_id FROM document")
    assert (document.status, document.source_id) == ("indexed", "file-1")
    # a feature may say more than is asked for
    await say(db, tenant, "FileDeleted", {"sourceKind": "feature_record", "sourceId": "file-1", "by": "ada"})
    await relay.relay_outbox()
    await bench.drain(tenant)
    assert await rows_of(db, tenant, "SELECT 1 FROM document") == []
    assert await left(db, tenant) == []


async def test_a_part_of_a_file_does_not_come_after_the_erasure_of_the_file(db, tenant, bench, relay, capsys):
    [parent] = await bench.hand_in(tenant, ask(tenant, "file-1", "A sluice."))
    part = ask(tenant, "part-1", "Its second gate.", parentDocumentId=parent.document_id)
    await say(db, tenant, "FileDeleted", {"sourceKind": "paste", "sourceId": "file-1"})
    await relay.relay_outbox()
    await bench.drain(tenant)
    await say(db, tenant, "FileCommitted", part.model_dump(mode="json", by_alias=True))
    await relay.relay_outbox()
    assert await rows_of(db, tenant, "SELECT 1 FROM document") == []
    assert "to be the parent" in capsys.readouterr().out


@pytest.mark.parametrize(("said", "left_over"), [(True, ["theirs"]), (False, [])])
async def test_a_deleted_file_of_one_user_is_not_the_file_another_keeps_under_that_name(
    db, tenant, bench, relay, said, left_over
):
    other = new_id()
    await bench.hand_in(tenant, ask(tenant, "readme", "Mine.", title="mine", scope="personal"))
    await bench.hand_in(
        tenant, ask(tenant, "readme", "Theirs.", title="theirs", scope="personal", userId=other)
    )
    await bench.hand_in(
        tenant, ask(tenant, "readme", "Shared.", title="shared", scope="mandate", userId=None)
    )
    gone = {"sourceKind": "paste", "sourceId": "readme"} | ({"userId": str(tenant.user_id)} if said else {})
    await say(db, tenant, "FileDeleted", gone)
    await relay.relay_outbox()
    await bench.drain(tenant)
    assert [row.title for row in await rows_of(db, tenant, "SELECT title FROM document")] == left_over


async def test_a_revoked_connection_and_a_member_who_left_are_fenced_at_once(db, tenant, relay):
    theirs, another = new_id(), new_id()
    async with db.tenant_session(tenant.mandate_id) as session:
        for connection_id in (theirs, another):
            await connections.add(session, connection_id, "msft", tenant.user_id)
    await say(db, tenant, "ConnectionRevoked", {"connectionId": str(theirs), "authority": "msft"})
    await say(db, tenant, "MembershipChanged", {"userId": str(tenant.user_id), "role": "admin"})
    await relay.relay_outbox()
    states = {row.id: row.state for row in await rows_of(db, tenant, "SELECT id, state FROM connection")}
    assert states == {theirs: "revoked", another: "active"}
    await say(db, tenant, "MembershipChanged", {"userId": str(tenant.user_id), "role": None})
    await relay.relay_outbox()
    assert {row.state for row in await rows_of(db, tenant, "SELECT state FROM connection")} == {"revoked"}


async def test_who_left_is_erased_when_that_is_said_and_a_mandate_and_a_source_too(db, tenant, bench, relay):
    other = new_id()
    source = new_id()
    await rows_of(
        db,
        tenant,
        "INSERT INTO \"user\" (mandate_id, id, email, display_name) VALUES (:m, :u, 'eve@example.org', 'Eve') RETURNING id",
        m=tenant.mandate_id,
        u=other,
    )
    for who, name in ((tenant.user_id, "mine"), (other, "hers")):
        await bench.hand_in(tenant, ask(tenant, name, f"words of {name}", scope="mandate", userId=str(who)))
    await bench.hand_in(
        tenant, ask(tenant, "listed", "words from a source", scope="mandate", dataSourceId=str(source))
    )
    await bench.drain(tenant)

    async def after(event_type: str, **payload: Any) -> set[str]:
        await say(db, tenant, event_type, payload)
        await relay.relay_outbox()
        await bench.drain(tenant)
        return {row.source_id for row in await rows_of(db, tenant, "SELECT source_id FROM document")}

    everything = {"mine", "hers", "listed"}
    assert await after("MembershipChanged", userId=str(other), role=None) == everything
    assert await after("MembershipChanged", userId=str(other), role="member", erase=True) == everything
    assert await after("MembershipChanged", userId=str(other), role=None, erase=True) == {"mine", "listed"}
    assert await after("FileDeleted", dataSourceId=str(source)) == {"mine"}
    assert await after("MandateUpdated", name="New name") == {"mine"}
    assert await after("MandateUpdated", erase=True) == set()
    receipts = await rows_of(db, tenant, "SELECT subject, status, reason FROM receipt ORDER BY created_at")
    assert [tuple(row) for row in receipts] == [
        ("user", "done", "MembershipChanged"),
        ("source", "done", "FileDeleted"),
        ("mandate", "done", "MandateUpdated"),
    ]


async def test_that_somebody_left_must_be_said(db, tenant, relay):
    mine = new_id()
    async with db.tenant_session(tenant.mandate_id) as session:
        await connections.add(session, mine, "msft", tenant.user_id)
    await say(db, tenant, "MembershipChanged", {"userId": str(tenant.user_id)})
    await relay.relay_outbox()
    assert [row.state for row in await rows_of(db, tenant, "SELECT state FROM connection")] == ["active"]


UNUSABLE = [
    {},
    {"sourceId": 5, "sourceKind": 5, "connectionId": 5, "userId": 5, "content": 5},
    {"sourceId": "", "connectionId": "", "userId": ""},
    {"sourceId": "x\x00y", "sourceKind": "paste", "connectionId": "no uuid", "userId": "no uuid"},
    {"sourceId": "x", "sourceKind": "no kind", "connectionId": str(new_id()), "userId": str(new_id())},
    {
        "sourceId": "x",
        "sourceKind": "upload",
        "connectionId": None,
        "content": {"text": "personal to nobody"},
    },
]


@pytest.mark.parametrize("event_type", EVENT_TYPES)
async def test_an_unusable_event_is_dropped_and_the_next_one_handled(db, tenant, bench, relay, event_type):
    for payload in UNUSABLE:
        try:
            await say(db, tenant, event_type, payload)
        except EventInvalid:
            continue  # refused at the door is as good
    good = ask(tenant, "after", "Still handled.", scope="mandate")
    await say(db, tenant, "FileCommitted", good.model_dump(mode="json", by_alias=True))
    await relay.relay_outbox()
    assert await left(db, tenant) == []
    assert [row.source_id for row in await rows_of(db, tenant, "SELECT source_id FROM document")] == ["after"]


async def test_one_mandates_trouble_does_not_keep_the_others_waiting(db, tenant, bench, relay, monkeypatch):
    other = await make_tenant(db)
    consume = KnowledgeIngestionConsumer.consume

    async def fails_for_the_first(self, mandate_id, event_ids):
        if mandate_id == tenant.mandate_id:
            raise OperationalError("statement", {}, Exception("canceling statement due to lock timeout"))
        await consume(self, mandate_id, event_ids)

    for who in (tenant, other):
        body = ask(who, "x", "text", scope="mandate").model_dump(mode="json", by_alias=True)
        await say(db, who, "FileCommitted", body)
    with monkeypatch.context() as patch:
        patch.setattr(KnowledgeIngestionConsumer, "consume", fails_for_the_first)
        await relay.relay_outbox()
    assert (len(await left(db, tenant)), await left(db, other)) == (1, [])
    await relay.relay_outbox()
    assert await left(db, tenant) == []
