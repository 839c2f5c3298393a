"""Google's notifications: channels per drive and calendar, Pub/Sub for mail, and who is believed."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qsl, urlsplit

import pytest

from connectors import registry
from connectors.kit.contract import Delivery, Watch
from tests.contract.google.account import Account

HOOKS = registry.webhooks("google")


class Postbox:
    """Keeps what is posted to it."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        box = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                box.deliveries.append(
                    Delivery(
                        headers={name.lower(): value for name, value in self.headers.items()},
                        query=dict(parse_qsl(urlsplit(self.path).query)),
                        body=body,
                    )
                )
                self.send_response(202)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/webhooks/google"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def postbox() -> Iterator[Postbox]:
    box = Postbox()
    yield box
    box.close()


async def test_a_calendar_that_cannot_be_watched_costs_the_others_nothing(
    ada: Account, postbox: Postbox
) -> None:
    ada.create("calendar", name="Holidays", accessRole="reader", unwatchable=True)
    team = ada.create("calendar", name="Team")
    surface = ada.surface("google_calendar")
    watches = await surface.watch(postbox.url, [])
    assert {watch.resource for watch in watches} == {"ada@demo.example", team}
    assert await surface.watch(postbox.url, watches) == watches
    await asyncio.to_thread(ada.push, sync=True)
    assert len(postbox.deliveries) == 2, "no channel is open that nobody knows"


async def test_channels_that_were_opened_before_google_stopped_answering_are_kept(
    ada: Account, postbox: Postbox
) -> None:
    ada.create("drive", name="Team", members=["ada@demo.example"])
    surface = ada.surface("drive")
    ada.fault("throttle", path="/changes/watch", after=1, times=None, retryAfter=600)
    [first] = await surface.watch(postbox.url, [])
    ada.clear_faults()
    both = await surface.watch(postbox.url, [first])
    assert first in both
    assert len(both) == 2
    ada.fault("refuse", path="/channels/stop", status=403, reason="forbidden")
    gone = replace(first, vendor_id="another", resource="gone")
    assert await surface.watch(postbox.url, [*both, gone]) == both


async def test_every_drive_is_watched_and_a_change_is_told(ada: Account, postbox: Postbox) -> None:
    team = ada.create("drive", name="Team", members=["ada@demo.example"])
    surface = ada.surface("drive")
    watches = await surface.watch(postbox.url, [])
    assert {watch.resource for watch in watches} == {"my-drive", team}
    assert len({watch.secret for watch in watches}) == 2
    assert await surface.watch(postbox.url, watches) == watches  # still young
    await asyncio.to_thread(ada.push, sync=True)
    assert [HOOKS.notices(delivery) for delivery in postbox.deliveries] == [[], []]
    postbox.deliveries.clear()
    ada.create("file", name="a.txt", text="x", parentId=team)
    await asyncio.to_thread(ada.push)
    (delivery,) = postbox.deliveries
    (notice,) = HOOKS.notices(delivery)
    watch = next(watch for watch in watches if watch.resource == team)
    assert notice.route == watch.vendor_id
    assert HOOKS.verify(notice, watch.secret, delivery)
    assert not HOOKS.verify(notice, "another", delivery)
    assert not HOOKS.verify(notice, "", delivery)
    await asyncio.to_thread(ada.push, again=True)
    repeated = [HOOKS.notices(one)[0].delivery_id for one in postbox.deliveries]
    assert repeated.count(notice.delivery_id) == 2
    await asyncio.to_thread(ada.push, again=True, token="forged")
    forged = postbox.deliveries[-1]
    assert not any(HOOKS.verify(HOOKS.notices(forged)[0], each.secret, forged) for each in watches)
    await surface.unwatch(watches)
    await surface.unwatch(watches)  # ended already
    postbox.deliveries.clear()
    ada.create("file", name="b.txt", text="x")
    await asyncio.to_thread(ada.push)
    assert postbox.deliveries == []


async def test_a_channel_near_its_end_is_replaced(ada: Account, postbox: Postbox) -> None:
    surface = ada.surface("google_calendar")
    (watch,) = await surface.watch(postbox.url, [])
    old = Watch(**{**watch.__dict__, "expires_at": ada.workplace().clock()})
    (renewed,) = await surface.watch(postbox.url, [old])
    assert renewed.vendor_id != watch.vendor_id
    ada.create("event", name="x", start={"date": "2026-12-01"}, end={"date": "2026-12-02"})
    await asyncio.to_thread(ada.push)
    assert [HOOKS.notices(one)[0].route for one in postbox.deliveries] == [renewed.vendor_id]


async def test_mail_is_told_through_the_operators_topic(ada: Account, postbox: Postbox) -> None:
    assert await ada.surface("gmail").watch(postbox.url, []) == []  # no topic, no push
    settings = {"pubsub_topic": "projects/p/topics/mail", "pubsub_token": "operators-token"}
    surface = ada.surface("gmail", endpoints=settings)
    (watch,) = await surface.watch(postbox.url, [])
    assert await surface.watch(postbox.url, [watch]) == [watch]
    ada.create("message", subject="x", text="x")
    await asyncio.to_thread(ada.push, pubsubUrl=f"{postbox.url}?token=operators-token")
    (delivery,) = postbox.deliveries
    (notice,) = HOOKS.notices(delivery)
    assert notice.route == watch.vendor_id == "ada@demo.example"
    assert HOOKS.verify(notice, watch.secret, delivery)
    bare = Delivery(headers=delivery.headers, query={}, body=delivery.body)
    assert not HOOKS.verify(HOOKS.notices(bare)[0], watch.secret, bare)
    await surface.unwatch([watch])


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b'{"message":{"data":"!!"}}', b'{"message":{"data":"e30="}}']
)
def test_what_is_not_googles_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):
        HOOKS.notices(Delivery(headers={}, query={}, body=body))
    assert HOOKS.handshake(Delivery(headers={}, query={}, body=body)) is None
