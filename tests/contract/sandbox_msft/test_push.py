"""vendors.md E7: subscriptions, the handshake, deliveries in every condition, lifecycle events."""

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from connectors.sandbox.server import RunningSandbox
from tests.contract.sandbox_msft.conftest import Graph
from tests.fixtures.processes import until
from tests.fixtures.sandboxes import Control

ADA = "ada@demo.example"


class Receiver:
    """Where notifications arrive. `statuses` are answered in turn, then 202."""

    def __init__(self) -> None:
        self.handshakes: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.statuses: list[int] = []
        self.says_back = True
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers.get("content-length", 0)))
                token = parse_qs(urlsplit(self.path).query).get("validationToken")
                if token:
                    receiver.handshakes.append(token[0])
                    self._answer(200, token[0] if receiver.says_back else "no")
                else:
                    receiver.bodies.append(json.loads(data))
                    self._answer(receiver.statuses.pop(0) if receiver.statuses else 202, "")

            def _answer(self, status: int, text: str) -> None:
                self.send_response(status)
                self.send_header("content-type", "text/plain")
                self.send_header("content-length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook?a=b"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def notices(self) -> list[dict[str, Any]]:
        return [each for body in self.bodies for each in body["value"]]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


Subscribe = Callable[..., dict[str, Any]]


@pytest.fixture
def subscribe(graph: Graph, receiver: Receiver) -> Subscribe:
    def subscribe(
        resource: str, change_type: str = "updated", minutes: float = 60, **more: Any
    ) -> dict[str, Any]:
        answer = graph.post("/subscriptions", _wish(receiver.url, resource, change_type, minutes, **more))
        assert answer.status_code == 201, answer.text
        return answer.json()

    return subscribe


def _wish(
    url: str, resource: str, change_type: str = "updated", minutes: float = 60, **more: Any
) -> dict[str, Any]:
    expires = datetime.now(UTC) + timedelta(minutes=minutes)
    return {
        "changeType": change_type,
        "notificationUrl": url,
        "lifecycleNotificationUrl": url,
        "resource": resource,
        "expirationDateTime": expires.strftime("%Y-%m-%dT%H:%M:%S.0000000Z"),
        "clientState": "secret-state",
        **more,
    }


async def _arrived(receiver: Receiver, count: int) -> list[dict[str, Any]]:
    async def enough() -> bool:
        return len(receiver.notices) >= count

    await until(enough, 30, f"{count} notifications, got {receiver.notices}")
    return receiver.notices


async def test_the_receiver_says_the_token_back_before_anything_else(
    receiver: Receiver, subscribe: Subscribe
) -> None:
    made = subscribe("/me/drive/root")
    assert len(receiver.handshakes) == 2  # also for lifecycle events
    assert " " in receiver.handshakes[0]  # it was encoded on the way
    assert made["id"]
    assert made["clientState"] is None


def test_whoever_does_not_say_it_back_gets_no_subscription(graph: Graph, receiver: Receiver) -> None:
    receiver.says_back = False
    answer = graph.post("/subscriptions", _wish(receiver.url, "/me/drive/root"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "InvalidRequest")
    answer = graph.post("/subscriptions", _wish("http://127.0.0.1:9/nobody", "/me/drive/root"))
    assert answer.status_code == 400
    assert graph.get("/subscriptions")["value"] == []


async def test_a_drive_says_only_that_something_changed(
    receiver: Receiver, subscribe: Subscribe, msft_control: Control
) -> None:
    made = subscribe("/me/drive/root")
    msft_control.create("file", user=ADA, name="a.txt", text="x")
    notice = (await _arrived(receiver, 1))[0]
    assert (notice["subscriptionId"], notice["clientState"]) == (made["id"], "secret-state")
    assert notice["resourceData"] == {"@odata.type": "#Microsoft.Graph.driveItem"}


async def test_mail_events_and_talk_say_which(
    receiver: Receiver, subscribe: Subscribe, msft_control: Control
) -> None:
    team = msft_control.create("team", name="Operations")
    subscribe("/me/mailFolders('inbox')/messages", "created,updated,deleted")
    subscribe("/me/events", "created,updated,deleted")
    subscribe(f"/teams/{team['id']}/channels/{team['channelId']}/messages", "created,updated,deleted")
    letter = msft_control.create("message", user=ADA, subject="S")
    event = msft_control.create("event", user=ADA, subject="E")
    said = msft_control.create("channelMessage", channelId=team["channelId"], text="T", **{"from": ADA})
    notices = await _arrived(receiver, 3)
    # each has a delivery of its own, and those overtake each other
    assert {each["resourceData"]["id"] for each in notices} == {letter["mutableId"], event["id"], said["id"]}
    msft_control.delete(letter["id"])
    assert (await _arrived(receiver, 4))[3]["changeType"] == "deleted"


async def test_several_subscriptions_may_share_a_delivery(
    receiver: Receiver, subscribe: Subscribe, msft_control: Control
) -> None:
    subscribe("/me/drive/root")
    subscribe("/me/messages", "created")
    msft_control.push(mode="manual")
    msft_control.create("file", user=ADA, name="a.txt", text="x")
    msft_control.create("file", user=ADA, name="b.txt", text="x")
    msft_control.create("message", user=ADA, subject="S")
    assert msft_control.push()["pending"] == 2  # a drive is told once
    assert receiver.bodies == []
    msft_control.push(deliver=True, reverse=True)
    assert len(receiver.bodies) == 1
    assert len(receiver.bodies[0]["value"]) == 2
    assert "driveItem" in receiver.bodies[0]["value"][1]["resourceData"]["@odata.type"]


async def test_duplicates_forgeries_and_a_receiver_that_stumbles(
    receiver: Receiver, subscribe: Subscribe, msft_control: Control
) -> None:
    made = subscribe("/me/drive/root")
    receiver.statuses = [503]
    msft_control.create("file", user=ADA, name="a.txt", text="x")
    await _arrived(receiver, 2)
    assert receiver.bodies[0] == receiver.bodies[1]  # refused, sent again
    msft_control.push(duplicate=2)
    assert receiver.bodies[3] == receiver.bodies[0]
    msft_control.push(forge={"clientState": "guessed"}, subscriptionId=made["id"])
    assert receiver.notices[-1]["clientState"] == "guessed"


@pytest.mark.parametrize("event", ["missed", "reauthorizationRequired", "subscriptionRemoved"])
async def test_lifecycle_events(
    receiver: Receiver, subscribe: Subscribe, msft_control: Control, graph: Graph, event: str
) -> None:
    made = subscribe("/me/messages", "created")
    msft_control.push(lifecycle=event)
    notice = receiver.notices[0]
    assert (notice["lifecycleEvent"], notice["clientState"]) == (event, "secret-state")
    assert "changeType" not in notice
    status = graph.ask(f"/subscriptions/{made['id']}").status_code
    assert status == (404 if event == "subscriptionRemoved" else 200)


def test_renewal_expiry_and_end(
    receiver: Receiver, subscribe: Subscribe, msft_control: Control, graph: Graph
) -> None:
    made = subscribe("/me/messages", "created")
    later = (datetime.now(UTC) + timedelta(days=6)).isoformat()
    renewed = graph.client.patch(
        f"{graph.base}/subscriptions/{made['id']}", json={"expirationDateTime": later}
    )
    assert renewed.status_code == 200
    assert renewed.json()["expirationDateTime"] > made["expirationDateTime"]
    assert graph.client.delete(f"{graph.base}/subscriptions/{made['id']}").status_code == 204
    gone = graph.client.patch(f"{graph.base}/subscriptions/{made['id']}", json={"expirationDateTime": later})
    assert gone.status_code == 404
    short = subscribe("/me/messages", "created", minutes=1)
    expires = datetime.fromisoformat(short["expirationDateTime"].replace("0Z", "+00:00"))
    assert expires - datetime.now(UTC) > timedelta(minutes=40)  # less than 45 minutes is not to be had
    msft_control.advance(46 * 60)
    msft_control.create("message", user=ADA, subject="S")
    assert msft_control.push()["subscriptions"] == []


@pytest.mark.parametrize(
    ("wish", "status"),
    [
        ({"change_type": "created"}, 400),
        ({"minutes": 43_000}, 400),
        ({"minutes": -1}, 400),
        ({"clientState": "x" * 129}, 400),
        ({"resource": "/drives/b!nobodys/root"}, 403),
    ],
)
def test_wishes_that_are_refused(graph: Graph, receiver: Receiver, wish: dict[str, Any], status: int) -> None:
    answer = graph.post("/subscriptions", _wish(receiver.url, **{"resource": "/me/drive/root", **wish}))
    assert answer.status_code == status
    assert receiver.handshakes == []


def test_the_same_wish_twice_is_a_conflict(graph: Graph, receiver: Receiver, subscribe: Subscribe) -> None:
    made = subscribe("/me/drive/root")
    answer = graph.post("/subscriptions", _wish(receiver.url, "/me/drive/root"))
    assert answer.status_code == 409
    assert made["id"] in answer.json()["error"]["message"]


def test_subscriptions_are_their_owners(msft_sandbox: RunningSandbox, subscribe: Subscribe) -> None:
    made = subscribe("/me/drive/root")
    grace = Graph(msft_sandbox, "grace@demo.example")
    assert grace.get("/subscriptions")["value"] == []
    assert grace.ask(f"/subscriptions/{made['id']}").status_code == 404
