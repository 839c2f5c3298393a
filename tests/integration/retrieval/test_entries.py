"""Entries: written by hand, found by filters, revised without losing id or citations, gone when deleted."""

from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import text

from gateway.corpus import entries_repository
from gateway.db import Database, new_id
from tests.fixtures.corpus import Tenant
from tests.fixtures.tenants import TestMandate
from tests.fixtures.worker import Bench
from tests.integration.retrieval.conftest import Shelf

PARAGRAPHS = [f"Paragraph {number} speaks of matter number {number}. " * 30 for number in range(8)]


class Browser:
    """The entries API, as one of the mandate's users."""

    def __init__(
        self, client: httpx.AsyncClient, mandate: TestMandate, bench: Bench, who: str = "owner"
    ) -> None:
        self._client, self._headers, self._bench = client, mandate.auth(who), bench
        self._tenant = Tenant(mandate.id, mandate.users["owner"], mandate.keys["owner"])

    async def call(self, method: str, path: str, status: int = 200, **options: Any) -> Any:
        answer = await self._client.request(method, f"/v1{path}", headers=self._headers, **options)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def write(self, status: int = 202, **fields: Any) -> Any:
        entry = {"title": "A title", "content": "Some content.", **fields}
        return await self.call("POST", "/entries", status, json=entry)

    async def list(self, **params: Any) -> Any:
        return await self.call("GET", "/entries", params=params)

    async def indexed(self) -> None:
        await self._bench.drain(self._tenant)


@pytest.fixture
def browser(client: httpx.AsyncClient, mandate: TestMandate, bench: Bench) -> Browser:
    return Browser(client, mandate, bench)


async def test_an_entry_answers_a_question_that_only_its_title_names_and_after_a_patch_the_new_title(
    browser: Browser,
) -> None:
    for title in ("Holidays", "Parking", "Lunch"):
        await browser.write(title=title, content=f"Ask the office about it, room {len(title)}.")
    entry = await browser.write(title="SSO reset", content="Open the settings and press the red button.")
    await browser.indexed()

    async def found(q: str) -> tuple[list[str], list[str]]:
        hits = (await browser.call("GET", "/search", params={"q": q}))["hits"]
        passages = (await browser.call("POST", "/context", json={"query": q}))["passages"]
        return [hit["documentId"] for hit in hits], [passage["documentId"] for passage in passages]

    here = ([entry["id"]], [entry["id"]])
    assert await found("How do I reset my SSO?") == here
    await browser.call("PATCH", f"/entries/{entry['id']}", json={"title": "Zephyr login"})
    assert await found("zephyr") == here
    assert await found("SSO") == ([], [])


async def test_an_entry_is_pending_then_ready_and_keeps_what_was_written(browser: Browser) -> None:
    made = await browser.write(
        title="SSO", content="Reset it in the portal.", type="runbook", tags=["it", "sso"]
    )
    assert (made["embeddingStatus"], made["outcome"], made["documentId"]) == ("pending", "queued", made["id"])
    await browser.indexed()
    entry = await browser.call("GET", f"/entries/{made['id']}")
    assert (entry["embeddingStatus"], entry["content"]) == ("ready", "Reset it in the portal.")
    assert (entry["type"], entry["sourceType"], entry["tags"], entry["cites30d"]) == (
        "runbook",
        "runbook",
        ["it", "sso"],
        0,
    )


async def test_a_revision_keeps_the_id_and_the_citations_and_embeds_only_what_changed(
    browser: Browser, bench: Bench
) -> None:
    made = await browser.write(content="\n\n".join(PARAGRAPHS), scope="mandate")
    await browser.indexed()
    before = len(bench.embedded())
    chunks = (await browser.call("GET", f"/documents/{made['id']}/chunks"))["items"]
    assert len(chunks) > 4
    cited = {"turnId": "turn", "chunkIds": [chunk["id"] for chunk in chunks]}
    await browser.call("POST", "/citations", json=cited)

    changed = [*PARAGRAPHS]
    changed[3] = changed[3].replace("matter number 3", "something else", 1)
    revised = await browser.call(
        "PATCH", f"/entries/{made['id']}", 202, json={"content": "\n\n".join(changed), "tags": ["new"]}
    )
    assert (revised["id"], revised["outcome"], revised["revision"]) == (made["id"], "queued", 2)
    await browser.indexed()
    assert 1 <= len(bench.embedded()) - before <= 2
    entry = await browser.call("GET", f"/entries/{made['id']}")
    assert (entry["cites30d"], entry["tags"], entry["title"]) == (len(chunks), ["new"], "A title")


async def test_changing_only_the_description_embeds_nothing(browser: Browser, bench: Bench) -> None:
    made = await browser.write(type="note")
    await browser.indexed()
    before = len(bench.embedded())
    shown = await browser.call(
        "PATCH", f"/entries/{made['id']}", json={"title": "Renamed", "type": "rule", "tags": ["a"]}
    )
    await browser.indexed()
    assert (shown["title"], shown["type"], shown["tags"], shown["revision"]) == ("Renamed", "rule", ["a"], 1)
    assert len(bench.embedded()) == before


async def test_a_new_description_is_masked_like_the_first(browser: Browser) -> None:
    made = await browser.write()
    words = {
        "title": "The password is Winter!Sun42",
        "tags": ["pwd=Toro#2026"],
        "metadata": {"apiKey": "k7Qz2Wm9Rt4Xy6Bv1Nc8Pd3F"},
    }
    await browser.call("PATCH", f"/entries/{made['id']}", json=words)
    kept = str(await browser.call("GET", f"/entries/{made['id']}"))
    assert not any(secret in kept for secret in ("Winter!Sun42", "Toro#2026", "k7Qz2Wm9Rt4Xy6Bv1Nc8Pd3F"))


async def test_the_same_content_again_is_a_duplicate(browser: Browser, bench: Bench) -> None:
    made = await browser.write(content="Unchanged.")
    await browser.indexed()
    before = len(bench.embedded())
    shown = await browser.call(
        "PATCH", f"/entries/{made['id']}", json={"content": "Unchanged.", "title": "New"}
    )
    assert (shown["outcome"], shown["title"], shown["revision"]) == ("duplicate", "New", 1)
    assert len(bench.embedded()) == before


async def test_a_deleted_entry_leaves_nothing_and_the_receipt_counts(browser: Browser, db: Database) -> None:
    made = await browser.write()
    await browser.indexed()
    receipt = await browser.call("DELETE", f"/entries/{made['id']}")
    assert (receipt["status"], receipt["counts"]["document"], receipt["counts"]["chunk"]) == ("done", 1, 1)
    await browser.call("GET", f"/entries/{made['id']}", 404)
    assert (await browser.list())["totals"]["total"] == 0


async def test_filters_narrow_rows_and_totals_alike(browser: Browser) -> None:
    await browser.write(title="Rule one", type="rule", content="Never deploy on Fridays.")
    await browser.write(title="Note one", type="note", content="The canteen has soup.")
    await browser.indexed()
    pending = await browser.write(title="Note two", type="note", content="Still on its way.")
    everything = await browser.list()
    assert everything["totals"] == {"total": 3, "ready": 2, "pending": 1, "error": 0}
    rules = await browser.list(sourceType="rule")
    assert ([item["title"] for item in rules["items"]], rules["totals"]["total"]) == (["Rule one"], 1)
    waiting = await browser.list(embeddingStatus="pending")
    assert [item["id"] for item in waiting["items"]] == [pending["id"]]
    assert waiting["totals"] == {"total": 1, "ready": 0, "pending": 1, "error": 0}
    at = pending["createdAt"]
    assert (await browser.list(**{"from": at}))["totals"]["total"] == 1
    assert (await browser.list(to=at))["totals"]["total"] == 2


@pytest.mark.parametrize(
    ("q", "found"),
    [
        ("canteen", {"Lunch"}),
        ("deploying friday", {"Rule"}),  # words of the text, in any form
        ("lun", {"Lunch"}),  # part of a title
        ("ACME-4711-X", {"Rule"}),
        ("canteen friday", set()),  # every word must be in one chunk
        ("nowhere", set()),
        ("…", set()),
    ],
)
async def test_q_looks_into_titles_and_texts(browser: Browser, q: str, found: set[str]) -> None:
    await browser.write(title="Rule", content="Never deploy ACME-4711-X on Fridays.")
    await browser.write(title="Lunch", content="The canteen has soup.")
    await browser.indexed()
    listed = await browser.list(q=q)
    assert {item["title"] for item in listed["items"]} == found
    assert listed["totals"]["total"] == len(found)


@pytest.mark.parametrize("few", [0, 2_000])
async def test_frequent_words_and_rare_ones_are_found_alike(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(entries_repository, "FEW_CHUNKS", few)
    for number in range(3):
        await browser.write(title=f"Lock {number}", content="The lock is opened at dawn.")
    await browser.write(title="Dawn chorus", content="Birds sing.")
    await browser.write(title="Lunch", content="The canteen has soup.")
    await browser.indexed()
    first = await browser.list(q="dawn", limit=3)
    assert first["totals"] == {"total": 4, "ready": 4, "pending": 0, "error": 0}
    assert [item["title"] for item in first["items"]] == ["Dawn chorus", "Lock 2", "Lock 1"]
    second = await browser.list(q="dawn", limit=3, cursor=first["nextCursor"])
    assert ([item["title"] for item in second["items"]], second["nextCursor"]) == (["Lock 0"], None)
    assert second["totals"] == first["totals"]
    assert (await browser.list(q="dawn", sourceType="rule"))["totals"]["total"] == 0


async def test_pages_follow_each_other_without_gap_or_repeat(browser: Browser) -> None:
    written = [(await browser.write(title=f"Entry {number}"))["id"] for number in range(7)]
    seen: list[str] = []
    params: dict[str, Any] = {"limit": 3}
    while True:
        page = await browser.list(**params)
        assert page["totals"]["total"] == 7
        seen += [item["id"] for item in page["items"]]
        if page["nextCursor"] is None:
            break
        params["cursor"] = page["nextCursor"]
    assert seen == written[::-1]


async def test_managed_documents_go_by_the_kind_of_their_source(
    browser: Browser, mandate: TestMandate, shelf: Shelf
) -> None:
    await shelf.put(mandate.id, "page", "crawled", source_kind="web_page", title="Page")
    await shelf.put(mandate.id, "mail", "not curated", source_kind="outlook_message", title="Mail")
    listed = await browser.list(sourceType="url_crawl")
    assert [item["title"] for item in listed["items"]] == ["Page"]
    assert (await browser.list())["totals"]["total"] == 1  # mails are in the corpus, not among the entries
    refused = await browser.call(
        "PATCH", f"/entries/{listed['items'][0]['id']}", 422, json={"content": "mine now"}
    )
    assert refused["code"] == "content.invalid"


async def test_others_read_what_is_shared_and_change_nothing(
    client: httpx.AsyncClient, mandate: TestMandate, bench: Bench, browser: Browser
) -> None:
    shared = await browser.write(scope="mandate", content="For everybody.")
    private = await browser.write(content="For me.")
    await browser.indexed()
    member = Browser(client, mandate, bench, "member")
    for seen in (await member.list(), await member.list(q="for")):
        assert {item["id"] for item in seen["items"]} == {shared["id"]}
        assert seen["totals"] == {"total": 1, "ready": 1, "pending": 0, "error": 0}  # not even counted
    assert (await member.call("GET", f"/entries/{shared['id']}"))["content"] == "For everybody."
    await member.call("GET", f"/entries/{private['id']}", 404)
    await member.call("PATCH", f"/entries/{shared['id']}", 403, json={"title": "Mine"})
    await member.call("DELETE", f"/entries/{shared['id']}", 403)


async def test_an_entry_stays_whose_it_is_whoever_revises_it(
    client: httpx.AsyncClient, mandate: TestMandate, bench: Bench, browser: Browser
) -> None:
    service = Browser(client, mandate, bench, "service")
    made = await service.write(scope="mandate", content="The service wrote this.")
    await browser.indexed()
    await browser.call("PATCH", f"/entries/{made['id']}", 202, json={"content": "An admin revised it."})
    await browser.indexed()
    again = await service.call("PATCH", f"/entries/{made['id']}", 202, json={"content": "The service again."})
    assert again["userId"] is None
    mine = await Browser(client, mandate, bench, "member").write(scope="mandate", content="A member's.")
    refused = await browser.call("PATCH", f"/entries/{mine['id']}", 403, json={"scope": "personal"})
    assert "owner" in refused["detail"]


async def test_an_admin_writes_into_a_feature_instance_that_exists(
    client: httpx.AsyncClient, mandate: TestMandate, browser: Browser
) -> None:
    instance = {"featureCode": "crm", "label": "CRM", "memberIds": []}
    made = await browser.call("POST", "/feature-instances", 201, json=instance)
    where = {"scope": "featureInstance", "featureInstanceId": made["id"]}
    entry = await browser.write(**where)
    assert entry["featureInstanceId"] == made["id"]
    nowhere = {"scope": "featureInstance", "featureInstanceId": str(new_id())}
    assert "feature instance" in (await browser.write(404, **nowhere))["detail"]
    shared = await browser.write(scope="mandate")
    await browser.call("PATCH", f"/entries/{shared['id']}", 404, json=nowhere)
    await browser.call("PATCH", f"/entries/{shared['id']}", 200, json=where)


async def test_a_reader_gets_the_kept_text_and_never_the_original_of_a_masked_entry(
    client: httpx.AsyncClient, mandate: TestMandate, bench: Bench, browser: Browser, db: Database
) -> None:
    made = await browser.write(scope="mandate", content="The code is 1234.")
    await browser.indexed()
    async with db.tenant_session(mandate.id) as session:  # as the neutraliser would have left it
        await session.execute(
            text("UPDATE document_text SET text = 'The code is ****.' WHERE document_id = :id"),
            {"id": UUID(made["id"])},
        )
    member = Browser(client, mandate, bench, "member")
    assert (await member.call("GET", f"/entries/{made['id']}"))["content"] == "The code is ****."
    assert (await browser.call("GET", f"/entries/{made['id']}"))["content"] == "The code is 1234."


@pytest.mark.parametrize(
    "broken",
    [
        {"content": "  \n"},
        {"title": ""},
        {"title": "a\x00b"},
        {"tags": ["a\x00b"]},
        {"scope": "universe"},
        {"scope": "featureInstance"},
        {"colour": "red"},
    ],
)
async def test_a_broken_entry_is_refused(browser: Browser, broken: dict[str, Any]) -> None:
    refused = await browser.write(422, **broken)
    assert refused["code"] == "request.invalid"


async def test_a_filter_with_a_character_no_text_holds_is_refused(browser: Browser) -> None:
    await browser.call("GET", "/entries", 422, params={"q": "a\x00b"})
