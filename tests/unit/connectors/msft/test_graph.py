"""What Graph's answers mean, and small readings of its wire format."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from connectors.kit.contract import (
    ConnectorError,
    CursorLost,
    ItemFailed,
    ItemGone,
    Throttled,
    VendorUnavailable,
)
from connectors.kit.http import Answer, RequestRefused, way_out
from connectors.msft.graph import Graph, classify, display_name, error_code, moment, segment, stamp
from tests.fixtures.loopback_vendor import Asked, Reply, loopback_vendor, said
from tests.fixtures.vendor_places import workplace


def answer(status: int, code: str = "", inner: Any = None, **headers: str) -> Answer:
    error: dict[str, Any] = {"code": code, "message": "Never branch on this."}
    if inner is not None:
        error["innerError"] = inner
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, named, json.dumps({"error": error}).encode(), "https://graph.example/v1.0/x")


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (answer(429, "TooManyRequests", {"code": "429"}), Throttled),
        (answer(429), Throttled),
        (answer(503, "serviceNotAvailable", retry_after="12"), Throttled),
        (answer(509, "bandwidthLimitExceeded"), Throttled),
        (answer(403, "accessDenied", {"code": "activityLimitReached"}), Throttled),
        (answer(503, "serviceNotAvailable"), VendorUnavailable),
        (answer(500, "generalException"), VendorUnavailable),
        (answer(504), VendorUnavailable),
        (answer(410, "resyncRequired", {"code": "resyncChangesApplyDifferences"}), CursorLost),
        (answer(410), CursorLost),
        (answer(400, "badRequest", {"code": "SyncStateNotFound"}), CursorLost),
        (answer(404, "itemNotFound"), ItemGone),
        (answer(404, "ErrorItemNotFound"), ItemGone),
        (answer(403, "accessDenied"), ItemFailed),
        (answer(423, "notAllowed"), ItemFailed),
        (answer(412, "PreconditionFailed"), ItemFailed),
        (answer(400, "badRequest"), ItemFailed),
    ],
)
def test_errors_have_a_type(given: Answer, kind: type[ConnectorError]) -> None:
    assert type(classify(given)) is kind


def test_what_is_no_error() -> None:
    for status in (200, 201, 202, 204, 302, 304):
        assert classify(Answer(status, {}, b"", "https://graph.example/")) is None


def test_an_error_page_that_is_no_json() -> None:
    assert isinstance(
        classify(Answer(502, {}, b"<html>Bad gateway", "https://g.example/")), VendorUnavailable
    )
    assert isinstance(classify(Answer(403, {}, b"", "https://g.example/")), ItemFailed)


def test_the_wait_is_the_vendors() -> None:
    error = classify(answer(429, retry_after="17", ratelimit_reset="31"))
    assert isinstance(error, Throttled)
    assert error.after == 31
    told = classify(answer(429))
    assert isinstance(told, Throttled)
    assert told.after == 10


def test_no_message_of_the_vendors_is_repeated() -> None:
    for status in (400, 403, 404, 410, 429, 500):
        assert "Never branch" not in str(classify(answer(status, "someCode")))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"error": {"code": "a"}}, "a"),
        ({"error": {"code": "a", "innerError": {"code": "b", "innererror": {"code": "c"}}}}, "c"),
        ({"error": {"code": "TooManyRequests", "innerError": {"code": "429"}}}, "TooManyRequests"),
        ({"error": {"code": "a", "innerError": {"date": "x"}}}, "a"),
        ({"error": {"code": "SyncStateNotFound", "innerError": {"code": "new"}}}, "SyncStateNotFound"),
        (
            {
                "error": {
                    "code": "a",
                    "innerError": {"code": "activityLimitReached", "innererror": {"code": "c"}},
                }
            },
            "activityLimitReached",
        ),
        (
            {"error": {"code": "accessDenied", "innerError": {"code": "quotaLimitReached"}}},
            "quotaLimitReached",
        ),
        ({"error": {"code": None}}, ""),
        ({"error": "text"}, ""),
        ({}, ""),
        ([], ""),
        (None, ""),
    ],
)
def test_the_deepest_code_counts(body: Any, code: str) -> None:
    assert error_code(body) == code


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2026-11-17T08:30:00Z", datetime(2026, 11, 17, 8, 30, tzinfo=UTC)),
        ("2026-11-17T08:30:00.003Z", datetime(2026, 11, 17, 8, 30, 0, 3000, tzinfo=UTC)),
        ("2026-11-17T08:30:00.1234567Z", datetime(2026, 11, 17, 8, 30, 0, 123456, tzinfo=UTC)),
        ("2026-06-15T10:00:00.0000000", datetime(2026, 6, 15, 10, tzinfo=UTC)),
        ("", None),
        (None, None),
        ("yesterday", None),
        (5, None),
    ],
)
def test_times_of_every_precision(text: Any, found: datetime | None) -> None:
    assert moment(text) == found


def test_small_readings() -> None:
    assert stamp(datetime(2026, 11, 17, 8, 30, 5, 999, tzinfo=UTC)) == "2026-11-17T08:30:05Z"
    assert segment("19:abc@thread.tacv2") == "19:abc@thread.tacv2"
    assert segment("a/b?c#d e") == "a%2Fb%3Fc%23d%20e"
    assert display_name({"application": None, "user": {"displayName": "Ada"}}) == "Ada"
    assert display_name({"application": {"displayName": "Robot"}}) == "Robot"
    assert display_name(None) == display_name({}) == ""


# -- collections and batches


async def with_graph(reply: Callable[[Asked], Reply], use: Callable[[Graph, str], Any]) -> Any:
    async with loopback_vendor(reply) as vendor, way_out([vendor.url]) as http:
        graph = Graph(workplace(http, {"graph": f"{vendor.url}/v1.0"}), f"{vendor.url}/v1.0/")
        return await use(graph, vendor.url)


async def test_a_collection_is_followed_page_by_page_and_nulls_do_not_hurt() -> None:
    def reply(asked: Asked) -> Reply:
        base = f"http://{asked.headers['host']}/v1.0"
        if "skip" in asked.target:
            return said({"value": [{"id": 3}, None, "x"], "unknown": None})
        return said({"@odata.nextLink": f"{base}/things?$skip=2", "value": [{"id": 1}, {"id": 2}]})

    async def use(graph: Graph, _: str) -> list[Any]:
        return [entry["id"] async for entry in graph.every("/things", params={"$top": 2})]

    assert await with_graph(reply, use) == [1, 2, 3]


@pytest.mark.parametrize(
    "link", ["https://evil.example/next", "http://127.0.0.1:1/next", "http://169.254.169.254/"]
)
async def test_a_link_to_a_foreign_host_is_refused_before_it_is_kept(link: str) -> None:
    async def use(graph: Graph, _: str) -> None:
        with pytest.raises(RequestRefused):
            await graph.page("/things/delta")

    await with_graph(lambda _: said({"value": [], "@odata.deltaLink": link}), use)


@pytest.mark.parametrize("body", [{}, {"value": None}, {"value": {}}, [], "text"])
async def test_a_collection_without_a_value_is_no_empty_collection(body: Any) -> None:
    async def use(graph: Graph, _: str) -> None:
        with pytest.raises(VendorUnavailable):
            await graph.page("/things")

    await with_graph(lambda _: said(body), use)


async def test_batches_come_in_any_order_and_what_is_missing_is_asked_again() -> None:
    rounds: list[list[str]] = []

    def reply(asked: Asked) -> Reply:
        requests = asked.json()["requests"]
        rounds.append([one["url"] for one in requests])
        answers = [{"id": one["id"], "status": 200, "body": {"url": one["url"]}} for one in requests]
        if len(rounds) == 1:
            answers = answers[5:]
        return said({"responses": answers[::-1]})

    async def use(graph: Graph, _: str) -> Any:
        return await graph.batch([f"/x/{number}" for number in range(25)])

    answers = await with_graph(reply, use)
    assert [body["url"] for _, body in answers] == [f"/x/{number}" for number in range(25)]
    assert [len(one) for one in rounds] == [20, 5, 5]


async def test_no_paths_no_request() -> None:
    async def use(graph: Graph, _: str) -> Any:
        return await graph.batch([])

    assert await with_graph(lambda _: Reply(500), use) == []
