"""What is asked, cited and spent, over HTTP: to those who may see it, 0 where it is 0."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import text

from gateway.db import Database, new_id
from gateway.insights import spend_repository
from gateway.insights.query_log import Asked, QueryLog
from gateway.insights.service import apply_retention
from gateway.tenancy import service as tenancy
from gateway.wire import encode_text_cursor
from tests.fixtures.tenants import TestMandate
from tests.integration.retrieval.conftest import Shelf


async def get(client: httpx.AsyncClient, mandate: TestMandate, path: str, who: str = "owner") -> Any:
    answer = await client.get(f"/v1{path}", headers=mandate.auth(who))
    assert answer.status_code == 200, answer.text
    return answer.json()


async def ask(log: QueryLog, mandate: TestMandate, *questions: str, **fields: Any) -> None:
    for question in questions:
        log.note(
            Asked(
                mandate_id=mandate.id,
                q=question,
                took_ms=4,
                user_id=mandate.users["member"],
                **{"result_count": 3, "answered": True, **fields},
            )
        )
    await log.drained()


async def test_top_queries_count_one_question_however_it_is_typed(
    client: httpx.AsyncClient, query_log: QueryLog, mandate: TestMandate
) -> None:
    await ask(query_log, mandate, "Reset  SSO", "reset sso", "holidays")
    await ask(query_log, mandate, " RESET SSO ", result_count=0, answered=False)
    items = (await get(client, mandate, "/insights/queries"))["items"]
    assert [(item["query"], item["count"], item["zeroResults"]) for item in items] == [
        ("reset sso", 3, 1),
        ("holidays", 1, 0),
    ]


@pytest.mark.parametrize("what", ["queries", "gaps"])
async def test_questions_are_read_to_the_last_page_by_page(
    client: httpx.AsyncClient, query_log: QueryLog, mandate: TestMandate, what: str
) -> None:
    long = "why " * 200
    await ask(query_log, mandate, "a", "a", "b", "c", "d", long, "c", answered=False, result_count=0)
    path = f"/insights/{what}?limit=2"
    pages = [await get(client, mandate, path)]
    while pages[-1]["nextCursor"]:
        pages.append(await get(client, mandate, f"{path}&cursor={pages[-1]['nextCursor']}"))
    assert [len(page["items"]) for page in pages] == [2, 2, 1]
    found = [item["query"] for page in pages for item in page["items"]]
    assert set(found[:2]) == {"a", "c"}
    assert sorted(found) == sorted(["a", "b", "c", "d", long.strip()])


async def test_the_most_cited_are_read_to_the_last_page_by_page(
    client: httpx.AsyncClient, mandate: TestMandate, shelf: Shelf
) -> None:
    put = [await shelf.put(mandate.id, f"doc {number}", f"text {number}") for number in range(5)]
    for number, one in enumerate(put):
        for turn in range(1 + number % 2):
            body = {"turnId": f"turn {turn}", "chunkIds": [str(one.chunk_ids[0])]}
            assert (await client.post("/v1/citations", headers=mandate.auth(), json=body)).status_code == 200
    path = "/insights/citations?limit=2"
    pages = [await get(client, mandate, path)]
    while pages[-1]["nextCursor"]:
        pages.append(await get(client, mandate, f"{path}&cursor={pages[-1]['nextCursor']}"))
    counts = [[item["citations"] for item in page["items"]] for page in pages]
    assert counts == [[2, 2], [1, 1], [1]]
    assert len({item["documentId"] for page in pages for item in page["items"]}) == 5


@pytest.mark.parametrize("path", ["queries", "gaps", "citations", "citations?show=never"])
async def test_a_cursor_of_somebody_else_is_refused(
    client: httpx.AsyncClient, mandate: TestMandate, path: str
) -> None:
    of_another_list = encode_text_cursor(datetime.now(UTC), "name")
    for cursor in ("zzz", of_another_list):
        join = "&" if "?" in path else "?"
        answer = await client.get(f"/v1/insights/{path}{join}cursor={cursor}", headers=mandate.auth())
        assert (answer.status_code, answer.json()["code"]) == (400, "cursor.invalid")


async def test_gaps_are_what_was_not_answered_the_last_time(
    client: httpx.AsyncClient, query_log: QueryLog, mandate: TestMandate
) -> None:
    await ask(query_log, mandate, "parking", "canteen", result_count=0, answered=False)
    await ask(query_log, mandate, "far from it", result_count=5, answered=False)
    await ask(query_log, mandate, "canteen")  # since answered
    items = (await get(client, mandate, "/insights/gaps"))["items"]
    assert {(item["query"], item["unanswered"]) for item in items} == {("parking", 1), ("far from it", 1)}


async def test_members_see_their_own_questions_and_admins_everybodys(
    client: httpx.AsyncClient, query_log: QueryLog, mandate: TestMandate
) -> None:
    await ask(query_log, mandate, "the members own")
    query_log.note(
        Asked(
            mandate_id=mandate.id, q="the owners", result_count=1, took_ms=1, user_id=mandate.users["owner"]
        )
    )
    await query_log.drained()
    seen = {
        who: {item["query"] for item in (await get(client, mandate, "/insights/queries", who))["items"]}
        for who in ("member", "admin")
    }
    assert seen == {"member": {"the members own"}, "admin": {"the members own", "the owners"}}
    refused = await client.get("/v1/insights/queries", headers=mandate.auth("service"))
    assert refused.status_code == 403


async def test_questions_of_another_mandate_are_not_counted(
    client: httpx.AsyncClient, query_log: QueryLog, mandate: TestMandate, other_mandate: TestMandate
) -> None:
    await ask(query_log, other_mandate, "not yours")
    assert (await get(client, mandate, "/insights/queries"))["items"] == []


async def test_citations_are_recorded_once_and_counted(
    client: httpx.AsyncClient, mandate: TestMandate, shelf: Shelf
) -> None:
    cited = await shelf.put(mandate.id, "cited", "one", "two", title="Cited")
    unread = await shelf.put(mandate.id, "unread", "three", title="Unread")
    nowhere = str(new_id())
    body = {"turnId": "turn-1", "chunkIds": [*map(str, cited.chunk_ids), nowhere], "agentDeploymentId": "bot"}
    first = await client.post("/v1/citations", headers=mandate.auth(), json=body)
    again = await client.post("/v1/citations", headers=mandate.auth(), json=body)
    assert (first.json()["recorded"], first.json()["unknown"]) == (2, [nowhere])
    assert again.json()["recorded"] == 0
    (most,) = (await get(client, mandate, "/insights/citations"))["items"]
    assert (most["documentId"], most["title"], most["citations"]) == (str(cited.document_ids[0]), "Cited", 2)
    never = (await get(client, mandate, "/insights/citations?show=never"))["items"]
    assert [(item["documentId"], item["citations"]) for item in never] == [(str(unread.document_ids[0]), 0)]


async def test_a_chunk_that_is_not_the_callers_to_see_cannot_be_cited(
    client: httpx.AsyncClient, mandate: TestMandate, other_mandate: TestMandate, shelf: Shelf
) -> None:
    private = await shelf.put(
        mandate.id, "diary", "dear diary", scope="personal", user_id=mandate.users["owner"]
    )
    foreign = await shelf.put(other_mandate.id, "foreign", "elsewhere")
    body = {"turnId": "t", "chunkIds": [str(private.chunk_ids[0]), str(foreign.chunk_ids[0])]}
    answer = await client.post("/v1/citations", headers=mandate.auth("member"), json=body)
    assert answer.json() == {"turnId": "t", "recorded": 0, "unknown": body["chunkIds"]}


async def test_what_is_everybodys_is_cited_where_it_lies_and_nobody_learns_by_whom(
    db: Database,
    client: httpx.AsyncClient,
    mandate: TestMandate,
    other_mandate: TestMandate,
    shelf: Shelf,
    commons: UUID,
) -> None:
    law = await shelf.put(commons, "law", "Beekeepers register every hive.", scope="global")
    body = {"turnId": "t", "chunkIds": [str(law.chunk_ids[0])]}
    answers = [
        (await client.post("/v1/citations", headers=who.auth("member"), json=body)).json()
        for who in (mandate, mandate, other_mandate)
    ]
    assert [(answer["recorded"], answer["unknown"]) for answer in answers] == [(1, []), (0, []), (1, [])]
    async with db.tenant_session(commons) as session:
        rows = list(
            await session.execute(
                text("SELECT * FROM citation WHERE document_id = :id"), {"id": law.document_ids[0]}
            )
        )
    assert len(rows) == 2
    assert all(row.user_id is None and row.turn_id != "t" for row in rows)
    assert all(str(who.id) not in str(rows) for who in (mandate, other_mandate))


async def test_never_cited_goes_page_by_page(
    client: httpx.AsyncClient, mandate: TestMandate, shelf: Shelf
) -> None:
    for number in range(5):
        await shelf.put(mandate.id, f"d{number}", f"text {number}")
    seen: list[str] = []
    path = "/insights/citations?show=never&limit=2"
    cursor = ""
    while True:
        page = await get(client, mandate, path + cursor)
        seen += [item["documentId"] for item in page["items"]]
        if page["nextCursor"] is None:
            break
        cursor = f"&cursor={page['nextCursor']}"
    assert len(seen) == len(set(seen)) == 5


async def test_spend_adds_up_and_stands_beside_the_budget(
    db: Database, client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    async with db.tenant_session(mandate.id) as session:
        await spend_repository.add(session, "m", texts=2, tokens=1000, cost=Decimal("0.5"))
        await spend_repository.add(session, "n", texts=1, tokens=10, cost=Decimal("0.25"))
        await tenancy.patch_policy(session, {"budget": {"monthlyCost": 20}})
    found = await get(client, mandate, "/insights/spend")
    assert [(item["model"], item["tokens"]) for item in found["items"]] == [("m", 1000), ("n", 10)]
    assert (found["total"]["cost"], found["month"]["tokens"], found["monthlyCostBudget"]) == (0.75, 1010, 20)


async def test_stats_count_the_mandate(
    client: httpx.AsyncClient, query_log: QueryLog, mandate: TestMandate, shelf: Shelf
) -> None:
    assert (await get(client, mandate, "/stats"))["documents"] == 0
    await shelf.put(mandate.id, "a", "one", "two")
    await ask(query_log, mandate, "q", result_count=0, answered=False)
    found = await get(client, mandate, "/stats")
    assert (found["documents"], found["chunks"], found["documentsByStatus"]) == (1, 2, {"indexed": 1})
    assert (found["queries"], found["unansweredQueries"], found["citations"]) == (1, 1, 0)


@pytest.mark.parametrize(
    "path",
    [
        "/insights/queries?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
        "/insights/gaps?from=soon",
        "/insights/spend?to=0001-01-01T00:00:00Z",
    ],
)
async def test_an_impossible_period_is_refused(
    client: httpx.AsyncClient, mandate: TestMandate, path: str
) -> None:
    assert (await client.get(f"/v1{path}", headers=mandate.auth())).status_code in {400, 422}


async def test_a_time_without_a_zone_is_meant_in_utc(client: httpx.AsyncClient, mandate: TestMandate) -> None:
    for path in ("/insights/queries?from=2020-01-01", "/entries?from=2020-01-01&to=2020-01-02T12:00:00"):
        assert (await client.get(f"/v1{path}", headers=mandate.auth())).status_code == 200


# -- retention


async def _age(db: Database, mandate: TestMandate, days: int) -> None:
    async with db.tenant_session(mandate.id) as session:
        for table, column in (
            ("query_log", "at"),
            ("citation", "cited_at"),
            ("answer", "created_at"),
            ("timeline", "at"),
        ):
            await session.execute(
                text(f"UPDATE {table} SET {column} = {column} - make_interval(days => :days)"), {"days": days}
            )


async def _left(db: Database, mandate: TestMandate) -> dict[str, int]:
    async with db.tenant_session(mandate.id) as session:
        return {
            table: await session.scalar(text(f"SELECT count(*) FROM {table}")) or 0
            for table in ("query_log", "query_hit", "citation", "timeline")
        }


@pytest.fixture
async def history(client: httpx.AsyncClient, query_log: QueryLog, mandate: TestMandate, shelf: Shelf) -> None:
    found = await shelf.put(mandate.id, "a", "one")
    await ask(query_log, mandate, "old question", document_ids=found.document_ids)
    await client.post(
        "/v1/citations",
        headers=mandate.auth(),
        json={"turnId": "t", "chunkIds": [str(found.chunk_ids[0])]},
    )
    # a second moment in the timeline, so that there is a last word and one before it
    async with shelf.db.tenant_session(mandate.id) as session:
        await session.execute(
            text(
                "INSERT INTO timeline (mandate_id, id, document_id, status, at) "
                "SELECT mandate_id, gen_random_uuid(), document_id, 'indexed', at + interval '1 hour' FROM timeline"
            )
        )


@pytest.mark.usefixtures("history")
async def test_what_is_past_its_days_goes_and_the_last_word_of_a_timeline_stays(
    db: Database, mandate: TestMandate
) -> None:
    assert await _left(db, mandate) == {"query_log": 1, "query_hit": 1, "citation": 1, "timeline": 2}
    await _age(db, mandate, 89)
    assert sum((await apply_retention(db, mandate.id)).values()) == 0
    await _age(db, mandate, 2)
    assert await apply_retention(db, mandate.id) == {
        "query_log": 1,
        "citation": 1,
        "answer": 0,
        "timeline": 1,
    }
    assert await _left(db, mandate) == {"query_log": 0, "query_hit": 0, "citation": 0, "timeline": 1}


@pytest.mark.usefixtures("history")
async def test_the_mandates_own_days_count_and_a_legal_hold_keeps_everything(
    db: Database, mandate: TestMandate
) -> None:
    async with db.tenant_session(mandate.id) as session:
        await tenancy.patch_policy(session, {"logRetentionDays": 7, "legalHold": True})
    await _age(db, mandate, 8)
    assert sum((await apply_retention(db, mandate.id)).values()) == 0
    async with db.tenant_session(mandate.id) as session:
        await tenancy.patch_policy(session, {"legalHold": False})
    assert sum((await apply_retention(db, mandate.id)).values()) == 3


async def test_retention_leaves_other_mandates_alone(
    db: Database, query_log: QueryLog, mandate: TestMandate, other_mandate: TestMandate
) -> None:
    old = datetime.now(UTC) - timedelta(days=400)
    await ask(query_log, other_mandate, "old, and not ours", at=old)
    assert sum((await apply_retention(db, mandate.id)).values()) == 0
    assert (await _left(db, other_mandate))["query_log"] == 1
