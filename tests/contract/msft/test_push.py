"""Subscriptions and notifications: the handshake, renewal, replays and forgeries, with a receiver that really listens."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from connectors.kit.contract import Delivery
from connectors.msft.webhooks import WEBHOOKS
from tests.contract.msft.account import ADA, Account
from tests.fixtures.loopback_vendor import Asked, LoopbackVendor, Reply, loopback_vendor
from tests.fixtures.processes import until
from tests.fixtures.sandboxes import Control

PLAIN = {"Content-Type": "text/plain"}


def delivery_of(asked: Asked) -> Delivery:
    return Delivery(headers=asked.headers, query=asked.query, body=asked.body)


def receive(asked: Asked) -> Reply:
    token = WEBHOOKS.handshake(delivery_of(asked))
    return Reply(200, token.encode(), PLAIN) if token is not None else Reply(202)


def said(door: LoopbackVendor) -> list[Delivery]:
    return [delivery_of(one) for one in door.asked if "validationToken" not in one.query]


@pytest.fixture
async def door() -> AsyncIterator[LoopbackVendor]:
    async with loopback_vendor(receive) as found:
        yield found


def url(door: LoopbackVendor) -> str:
    return f"{door.url}/v1/webhooks/msft"


def subscriptions(account: Account) -> dict[str, Any]:
    return account.sandbox.world.push.subscriptions  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("part", ["sharepoint", "onedrive", "outlook", "outlook_calendar", "teams"])
async def test_every_surface_can_be_watched_and_unwatched(
    account: Account, msft_control: Control, door: LoopbackVendor, part: str
) -> None:
    msft_control.create("site", name="Plant")
    msft_control.create("team", name="Locks")
    surface = account.surface(part)
    watches = await surface.watch(url(door), [])
    assert watches
    assert {one.vendor_id for one in watches} == set(subscriptions(account))
    assert len({one.secret for one in watches}) == len(watches)
    assert all(
        len(one.secret) >= 32 and one.expires_at > datetime.now(UTC) + timedelta(days=2) for one in watches
    )
    again = await surface.watch(url(door), watches)
    assert again == watches  # still long enough: nothing is asked
    await surface.unwatch(watches)
    assert subscriptions(account) == {}
    await surface.unwatch(watches)  # gone already: nothing to say


async def test_a_watch_is_renewed_before_its_end_and_made_again_when_gone(
    account: Account, msft_control: Control, door: LoopbackVendor
) -> None:
    shift = timedelta()
    surface = account.surface("outlook", lambda: datetime.now(UTC) + shift)
    first = (await surface.watch(url(door), []))[0]
    shift = timedelta(days=5)
    msft_control.advance(shift.total_seconds())
    renewed = (await surface.watch(url(door), [first]))[0]
    assert renewed.vendor_id == first.vendor_id
    assert renewed.secret == first.secret
    assert renewed.expires_at > first.expires_at + timedelta(days=4)
    subscriptions(account).clear()
    shift += timedelta(days=5)
    msft_control.advance(5 * 86400)
    anew = (await surface.watch(url(door), [renewed]))[0]
    assert anew.vendor_id != first.vendor_id
    assert anew.secret != first.secret


async def test_a_subscription_nobody_remembers_is_replaced(account: Account, door: LoopbackVendor) -> None:
    """After a crash between Graph's answer and our commit: Graph says 409, and we do not know its secret."""
    surface = account.surface("outlook")
    lost = (await surface.watch(url(door), []))[0]
    found = (await surface.watch(url(door), []))[0]
    assert found.vendor_id != lost.vendor_id
    assert set(subscriptions(account)) == {found.vendor_id}


async def test_a_door_that_does_not_answer_leaves_polling(account: Account) -> None:
    async with loopback_vendor(lambda _: Reply(404)) as deaf:
        assert await account.surface("outlook").watch(url(deaf), []) == []


async def test_a_change_is_announced_and_proven(
    account: Account, msft_control: Control, door: LoopbackVendor
) -> None:
    site = msft_control.create("site", name="Plant")
    watches = {
        part: (await account.surface(part).watch(url(door), []))[0] for part in ("outlook", "sharepoint")
    }
    msft_control.create("message", user=ADA, subject="x", text="y")
    msft_control.create("file", driveId=site["driveId"], name="a.txt", text="z")

    async def both() -> bool:
        return len(_routes(door)) == 2

    await until(both, 30, "a notification of each")
    assert _routes(door) == {one.vendor_id for one in watches.values()}
    for delivery in said(door):
        for notice in WEBHOOKS.notices(delivery):
            own = next(one for one in watches.values() if one.vendor_id == notice.route)
            other = next(one for one in watches.values() if one.vendor_id != notice.route)
            assert notice.kind == "change"
            assert WEBHOOKS.verify(notice, own.secret, delivery)
            assert not WEBHOOKS.verify(notice, other.secret, delivery)
            assert not WEBHOOKS.verify(notice, "", delivery)


def _routes(door: LoopbackVendor) -> set[str]:
    return {notice.route for delivery in said(door) for notice in WEBHOOKS.notices(delivery)}


def delivered(*entries: Any) -> Delivery:
    return Delivery(headers={}, query={}, body=json.dumps({"value": list(entries)}).encode())


def test_the_handshake_gives_the_decoded_token_back() -> None:
    token = "Validation: Testing client application reachability + 1%20"
    assert WEBHOOKS.handshake(Delivery(headers={}, query={"validationToken": token}, body=b"")) == token
    assert WEBHOOKS.handshake(Delivery(headers={}, query={}, body=b"{}")) is None
    assert WEBHOOKS.handshake(Delivery(headers={}, query={"validationToken": ""}, body=b"")) is None


@pytest.mark.parametrize(
    ("event", "kind"),
    [("missed", "missed"), ("subscriptionRemoved", "removed"), ("reauthorizationRequired", "reauthorize")],
)
def test_lifecycle_events(event: str, kind: str) -> None:
    entry = {"subscriptionId": "s", "clientState": "c", "lifecycleEvent": event, "tenantId": "t"}
    assert [notice.kind for notice in WEBHOOKS.notices(delivered(entry))] == [kind]


def test_a_replay_is_told_from_a_second_change() -> None:
    def mail(etag: str, change: str = "updated") -> dict[str, Any]:
        data = {"@odata.type": "#Microsoft.Graph.Message", "id": "m", "@odata.etag": etag}
        return {"subscriptionId": "s", "clientState": "c", "changeType": change, "resourceData": data}

    ids = [
        notice.delivery_id
        for notice in WEBHOOKS.notices(
            delivered(
                mail("1"), mail("1"), mail("2"), mail("2", "deleted"), {"subscriptionId": "s", "id": "n-1"}
            )
        )
    ]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 4
    drive = {"subscriptionId": "s", "clientState": "c", "changeType": "updated", "resource": "drives/d/root"}
    assert WEBHOOKS.notices(delivered(drive))[0].delivery_id is None  # nothing in it says which change it was


@pytest.mark.parametrize(
    "body",
    [
        b"", b"no json", b"[]", b"{}", b'{"value": {}}', b'{"value": ["x"]}', b'{"value": [{}]}', b"\xff\xfe",
        b'{"value": [{"subscriptionId": 5}]}', b'{"value": [{"subscriptionId": "s", "lifecycleEvent": "party"}]}',
        json.dumps({"value": [{"subscriptionId": "s"}] * 1001}).encode(),
    ],
)  # fmt: skip
def test_what_is_not_theirs_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):
        WEBHOOKS.notices(Delivery(headers={}, query={}, body=body))


def test_a_notice_without_its_secret_proves_nothing() -> None:
    notice = WEBHOOKS.notices(delivered({"subscriptionId": "s", "clientState": None}))[0]
    assert not WEBHOOKS.verify(notice, "secret", delivered())
