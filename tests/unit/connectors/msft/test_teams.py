"""Teams where Graph gives less: no replies in the feed, replies by themselves, chats without a feed."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from connectors.kit.contract import Page
from connectors.kit.http import way_out
from connectors.msft.teams import SINCE, Teams
from tests.fixtures.loopback_vendor import Asked, Reply, loopback_vendor, said
from tests.fixtures.vendor_places import workplace

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)


def message(number: int, text: str, **more: Any) -> dict[str, Any]:
    return {
        "id": str(number),
        "etag": str(number),
        "messageType": "message",
        "createdDateTime": f"2026-11-17T08:00:{number:02d}Z",
        "lastModifiedDateTime": f"2026-11-17T08:00:{number:02d}.123Z",
        "from": {"user": {"displayName": "Grace"}, "application": None},
        "body": {"contentType": "text", "content": text},
        "reactions": [{"reactionType": "like"}],
        **more,
    }


ROOT, REPLY = message(1, "Question"), message(2, "Answer", replyToId="1")


class Tenant:
    """One channel and one chat. `feed` answers the channel's delta, `chat` everything about the chat."""

    def __init__(self, feed: Callable[[Asked], Reply], chat: Callable[[Asked], Reply] | None = None) -> None:
        self._feed, self._chat = feed, chat
        self.replies_status = 200
        self.asked: list[str] = []

    def __call__(self, asked: Asked) -> Reply:
        self.asked.append(asked.target)
        path = asked.path.removeprefix("/v1.0")
        if path == "/me/joinedTeams":
            return said({"value": [{"id": "t", "displayName": "Team", "visibility": None}]})
        if path == "/me/chats":
            return said({"value": [{"id": "19:chat", "topic": None, "members": None}] if self._chat else []})
        if path == "/$batch":
            answers = {"/teams/t/channels": {"value": [{"id": "19:c", "displayName": "General"}]}}
            answers["/teams/t/channels/19:c/messages/1"] = ROOT
            answers["/teams/t/channels/19:c/messages/1/replies?$top=50"] = {"value": [REPLY]}
            return said(
                {
                    "responses": [
                        {
                            "id": one["id"],
                            "status": self.replies_status if "/replies" in one["url"] else 200,
                            "body": answers[one["url"]],
                        }
                        for one in asked.json()["requests"]
                    ]
                }
            )
        if path.startswith("/chats/") and self._chat:
            return self._chat(asked)
        return self._feed(asked)


def link(asked: Asked) -> str:
    return f"http://{asked.headers['host']}/v1.0/teams/t/channels/19:c/messages/delta?$deltatoken=2"


async def walk(tenant: Tenant, cursor: str | None = None) -> list[Page]:
    async with loopback_vendor(tenant) as vendor, way_out([vendor.url]) as http:
        place = workplace(http, {"graph": f"{vendor.url}/v1.0"}, clock=lambda: NOW)
        return [page async for page in Teams(place).pages(cursor, "bootstrap")]


def texts(pages: list[Page]) -> dict[str, str]:
    return {
        item.external_id: "\n".join(part.text for part in item.parts or ())
        for page in pages
        for item in page.upserts
    }


THREAD = {"1": "Grace (2026-11-17): Question\nGrace (2026-11-17): Answer"}


async def test_a_feed_that_does_not_expand_replies() -> None:
    def feed(asked: Asked) -> Reply:
        if "expand" in asked.target:
            return said({"error": {"code": "BadRequest"}}, status=400)
        return said({"value": [ROOT], "@odata.deltaLink": link(asked)})

    assert texts(await walk(Tenant(feed))) == THREAD


async def test_answers_that_are_refused_do_not_leave_half_a_thread() -> None:
    tenant = Tenant(lambda asked: said({"value": [ROOT], "@odata.deltaLink": link(asked)}))
    tenant.replies_status = 403
    pages = await walk(tenant)
    assert texts(pages) == {}
    assert [(one.external_id, one.reason) for page in pages for one in page.failures] == [("1", "refused")]


async def test_a_feed_that_names_a_reply_by_itself() -> None:
    tenant = Tenant(lambda asked: said({"value": [REPLY], "@odata.deltaLink": link(asked)}))
    assert texts(await walk(tenant)) == THREAD


async def test_reactions_are_nobodys_words() -> None:
    tenant = Tenant(
        lambda asked: said({"value": [{**ROOT, "replies": [REPLY]}], "@odata.deltaLink": link(asked)})
    )
    pages = await walk(tenant)
    assert texts(pages) == THREAD
    assert "like" not in str(pages)


async def test_a_chat_without_a_feed_is_read_by_time() -> None:
    left = message(3, "gone", deletedDateTime="2026-11-17T09:00:00Z")

    def chat(asked: Asked) -> Reply:
        if "delta" in asked.target:
            return said({"error": {"code": "PreconditionFailed"}}, status=412)
        return said({"value": [message(5, "hello"), left]})

    tenant = Tenant(lambda asked: said({"value": [], "@odata.deltaLink": link(asked)}), chat)
    pages = await walk(tenant)
    assert texts(pages) == {"5": "Grace (2026-11-17): hello"}
    assert [stone.external_id for page in pages for stone in page.tombstones] == ["3"]
    assert f'"{SINCE}2026-11-17T11:59:00Z"' in pages[-1].next_cursor
    tenant.asked.clear()
    await walk(tenant, pages[-1].next_cursor)
    assert not any("/chats/" in target and "delta" in target for target in tenant.asked)
    assert any("2026-11-17T11%3A59%3A00Z" in target for target in tenant.asked)
