"""Token, patience and typed errors of a vendor's client."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from connectors.kit.contract import AuthRevoked, ConnectorError, ItemFailed, Throttled, VendorUnavailable
from connectors.kit.http import Answer, RequestRefused, way_out
from connectors.kit.vendor import VendorClient, retry_after
from tests.fixtures.loopback_vendor import Asked, LoopbackVendor, Reply, loopback_vendor, said
from tests.fixtures.vendor_places import OpenWindow, PlainTokens, workplace


def classify(answer: Answer) -> ConnectorError | None:
    if answer.status == 429:
        return Throttled(retry_after(answer.headers, default=30))
    if answer.status >= 500:
        return VendorUnavailable(str(answer.status))
    return ItemFailed("gone") if answer.status == 404 else None


class Desk:
    """A client with everything a test wants to look at afterwards."""

    def __init__(
        self, vendor: LoopbackVendor, client: VendorClient, tokens: PlainTokens, rate: OpenWindow
    ) -> None:
        self.vendor, self.client, self.tokens, self.rate = vendor, client, tokens, rate
        self.paused: list[float] = []


@asynccontextmanager
async def desk(answer: Callable[[Asked], Reply], *renewals: str) -> AsyncIterator[Desk]:
    async with loopback_vendor(answer) as vendor, way_out([vendor.url]) as http:
        tokens, rate = PlainTokens("token-1", *renewals), OpenWindow()
        place = workplace(http, {"api": vendor.url}, tokens=tokens, rate=rate)
        found: Desk

        async def pause(seconds: float) -> None:
            found.paused.append(seconds)

        client = VendorClient(place, authority="msft", api=f"{vendor.url}/v1", classify=classify, pause=pause)
        found = Desk(vendor, client, tokens, rate)
        yield found
        assert rate.inside == 0


def in_turn(*replies: Reply) -> Callable[[Asked], Reply]:
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


async def test_a_path_is_below_the_api_and_carries_the_token() -> None:
    async with desk(in_turn(said({"ok": 1}))) as at:
        assert await at.client.json("me", params={"$select": "id"}) == {"ok": 1}
        assert at.vendor.asked[0].target == "/v1/me?%24select=id"
        assert at.vendor.asked[0].headers["authorization"] == "Bearer token-1"


async def test_a_next_link_is_followed_as_it_is() -> None:
    async with desk(in_turn(said({}))) as at:
        await at.client.json(f"{at.vendor.url}/v1/x('inbox')/delta?$skiptoken=a%2Bb&%24top=5")
        assert at.vendor.asked[0].target == "/v1/x('inbox')/delta?$skiptoken=a%2Bb&%24top=5"


async def test_a_next_link_to_another_host_is_never_asked() -> None:
    """Not even where the fetcher itself would go: another vendor's host must not see this vendor's token."""
    async with loopback_vendor(lambda _: said({})) as foreign, loopback_vendor(lambda _: said({})) as own:
        async with way_out([own.url, foreign.url]) as http:
            place = workplace(http, {})
            client = VendorClient(place, authority="msft", api=own.url, classify=classify)
            for link in (f"{foreign.url}/next", "https://evil.example/next", "http://127.0.0.1/next"):
                with pytest.raises(RequestRefused):
                    await client.json(link)
                with pytest.raises(RequestRefused):
                    await client.download(link, max_bytes=1)
        assert foreign.asked == own.asked == []


async def test_a_401_is_answered_by_one_renewal() -> None:
    def answer(asked: Asked) -> Reply:
        return said({}) if asked.headers["authorization"] == "Bearer token-2" else Reply(401)

    async with desk(answer, "token-2") as at:
        assert await at.client.json("me") == {}
        assert at.tokens.renewed == ["token-1"]


async def test_a_401_that_passes_costs_nobody_the_grant() -> None:
    async with desk(in_turn(Reply(401), Reply(401), said({"a": 1})), "token-2", "token-3") as at:
        assert await at.client.json("/x") == {"a": 1}
        assert at.tokens.renewed == ["token-1"]
        assert len(at.paused) == 1


async def test_a_401_that_stays_means_the_grant_is_dead() -> None:
    async with desk(in_turn(Reply(401)), "token-2", "token-3") as at:
        with pytest.raises(AuthRevoked):
            await at.client.json("me")
        assert len(at.vendor.asked) == 4
        assert at.tokens.renewed == ["token-1"]


async def test_a_renewal_that_fails_says_so() -> None:
    async with desk(in_turn(Reply(401))) as at:
        with pytest.raises(AuthRevoked):
            await at.client.json("me")


async def test_a_short_throttle_is_waited_out_and_shared() -> None:
    async with desk(in_turn(Reply(429, headers={"Retry-After": "2"}), said({"ok": 1}))) as at:
        assert await at.client.json("me") == {"ok": 1}
        assert at.paused == [2.0]
        assert at.rate.closed == [2.0]


async def test_a_long_throttle_is_the_engines() -> None:
    async with desk(in_turn(Reply(429, headers={"Retry-After": "120"}))) as at:
        with pytest.raises(Throttled) as caught:
            await at.client.json("me")
        assert caught.value.after == 120
        assert at.rate.closed == [120.0]
        assert at.paused == []
        assert len(at.vendor.asked) == 1


async def test_a_throttle_that_goes_on_ends_in_the_engines_hands() -> None:
    async with desk(in_turn(Reply(429, headers={"Retry-After": "1"}))) as at:
        with pytest.raises(Throttled):
            await at.client.json("me")
        assert len(at.vendor.asked) == 3


async def test_a_passing_failure_is_tried_again_and_a_lasting_one_is_not_hammered() -> None:
    async with desk(in_turn(Reply(502), Reply(raw=b""), said({"ok": 1}))) as at:
        assert await at.client.json("me") == {"ok": 1}
    async with desk(in_turn(Reply(500))) as at:
        with pytest.raises(VendorUnavailable):
            await at.client.json("me")
        assert len(at.vendor.asked) == 3


async def test_what_changes_something_is_not_repeated_after_a_failure() -> None:
    async with desk(in_turn(Reply(500))) as at:
        with pytest.raises(VendorUnavailable):
            await at.client.request("POST", "subscriptions", json={})
        assert len(at.vendor.asked) == 1


async def test_other_errors_are_raised_as_they_are_typed() -> None:
    async with desk(in_turn(Reply(404))) as at:
        with pytest.raises(ItemFailed):
            await at.client.json("me")
        assert len(at.vendor.asked) == 1


async def test_a_download_that_is_too_large_is_the_items_failure() -> None:
    async with desk(in_turn(Reply(200, b"x" * 100))) as at:
        with pytest.raises(ItemFailed) as caught:
            await at.client.download("content", max_bytes=10)
        assert (caught.value.reason, caught.value.permanent) == ("too_large", True)


async def test_a_download_that_leads_elsewhere_is_the_items_failure() -> None:
    async with desk(in_turn(Reply(302, headers={"Location": "http://169.254.169.254/"}))) as at:
        with pytest.raises(ItemFailed) as caught:
            await at.client.download("content", max_bytes=10)
        assert caught.value.reason == "download_refused"


async def test_costs_reach_the_window() -> None:
    async with desk(in_turn(said({}))) as at:
        await at.client.json("me", cost=5)
        assert at.rate.costs == [5]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "7", "ratelimit-reset": "31"}, 31),
        ({"retry-after": "Tue, 17 Nov 2026 12:00:30 GMT"}, 30),
        ({"retry-after": "Tue, 17 Nov 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "soon"}, 9),
        ({"retry-after": "nan"}, 9),
        ({"retry-after": "-5"}, 0),
        ({"retry-after": "999999"}, 3600),
        ({}, 9),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float) -> None:
    now = datetime(2026, 11, 17, 12, tzinfo=UTC)
    assert retry_after(headers, default=9, now=now) == seconds
