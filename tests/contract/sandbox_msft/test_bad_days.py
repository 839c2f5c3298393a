"""vendors.md E5 and the faults of the framework: throttles, outages, broken answers, `$batch`, the log of requests."""

import asyncio
from typing import Any

import httpx
import pytest

from connectors.sandbox.server import RunningSandbox, start
from tests.contract.sandbox_msft.conftest import Graph
from tests.fixtures.sandboxes import Control, msft_sign_in

ADA = "ada@demo.example"


@pytest.mark.parametrize(
    ("options", "status", "headers"),
    [
        ({"retryAfter": 7}, 429, {"retry-after": "7"}),
        ({}, 429, {}),
        ({"status": 503, "retryAfter": 3}, 503, {"retry-after": "3"}),
        ({"retryAfter": 2, "rateLimitReset": 9}, 429, {"retry-after": "2", "ratelimit-reset": "9"}),
        ({"code": "activityLimitReached"}, 429, {}),
    ],
)
def test_throttles(
    graph: Graph, msft_control: Control, options: dict[str, Any], status: int, headers: dict[str, str]
) -> None:
    msft_control.fault("throttle", times=2, **options)
    for _ in range(2):
        answer = graph.ask("/me")
        assert answer.status_code == status
        assert {name: answer.headers[name] for name in headers} == headers
        assert ("retry-after" in answer.headers) == ("retry-after" in headers)
        assert answer.json()["error"]["code"] in {
            "TooManyRequests",
            "serviceNotAvailable",
            "activityLimitReached",
        }
    assert graph.ask("/me").status_code == 200


def test_faults_by_path_count_and_rhythm(graph: Graph, msft_control: Control) -> None:
    msft_control.fault("server_error", status=502, path="/me/drive", times=None, every=2)
    statuses = [graph.ask("/me/drive").status_code for _ in range(4)]
    assert statuses == [200, 502, 200, 502]
    assert graph.ask("/me").status_code == 200
    msft_control.clear_faults()
    msft_control.fault("server_error", after=1, path="/me/drive")
    assert [graph.ask("/me/drive").status_code for _ in range(3)] == [200, 500, 200]


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "no_such_fault"},
        {"kind": "slow", "path": "("},
        {"kind": "slow", "times": 0},
        {"kind": "slow", "every": 0},
        {"kind": "slow", "after": -1},
        ["slow"],
        {},
    ],
)
def test_a_bad_day_that_makes_no_sense_is_refused_at_once(
    graph: Graph, msft_sandbox: RunningSandbox, fault: Any
) -> None:
    answer = httpx.post(f"{msft_sandbox.control_url}/faults", json=fault, trust_env=False, verify=False)
    assert answer.status_code == 400
    assert graph.ask("/me").status_code == 200


def test_seeds_and_questions_that_make_no_sense_are_refused(msft_sandbox: RunningSandbox) -> None:
    asked = httpx.get(
        f"{msft_sandbox.control_url}/requests", params={"path": "("}, trust_env=False, verify=False
    )
    assert asked.status_code == 400
    answer = httpx.post(
        f"{msft_sandbox.control_url}/reset", json={"seed": "mustard"}, trust_env=False, verify=False
    )
    assert answer.status_code == 400


def test_success_may_come_with_a_warning(graph: Graph, msft_control: Control) -> None:
    msft_control.fault("rate_headers")
    answer = graph.ask("/me/drive")
    assert (answer.status_code, answer.headers["ratelimit-remaining"]) == (200, "100")


def test_broken_answers(graph: Graph, msft_control: Control) -> None:
    msft_control.fault("cut_json")
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        graph.ask("/me").json()
    msft_control.fault("drop")
    with pytest.raises(httpx.RemoteProtocolError):
        graph.ask("/me")
    assert graph.ask("/me").status_code == 200


def test_forbidden_and_vanished_containers(
    graph: Graph, msft_control: Control, library: dict[str, Any]
) -> None:
    path = f"/drives/{library['driveId']}/root/delta"
    msft_control.fault("forbid_container", path=library["driveId"])
    assert graph.ask(path).json()["error"]["code"] == "accessDenied"
    msft_control.fault("gone_container", path=library["driveId"])
    assert graph.ask(path).json()["error"]["code"] == "itemNotFound"
    msft_control.fault("forbid_container", path="inbox")
    assert graph.ask("/me/mailFolders/inbox/messages").json()["error"]["code"] == "ErrorAccessDenied"


async def test_a_mailbox_takes_four_at_a_time(msft_sandbox: RunningSandbox, msft_control: Control) -> None:
    token = msft_sign_in(msft_sandbox)["access_token"]
    msft_control.fault("hold", seconds=1, times=None, path="mailFolders")
    url = f"{msft_sandbox.endpoints['graph']}/me/mailFolders"
    async with httpx.AsyncClient(
        headers={"Authorization": f"Bearer {token}"}, trust_env=False, verify=False, timeout=60
    ) as client:
        answers = await asyncio.gather(*(client.get(url) for _ in range(6)))
    refused = [each for each in answers if each.status_code == 429]
    assert len(refused) == 2
    assert refused[0].json()["error"]["code"] == "ApplicationThrottled"
    assert msft_control.state()["mailboxConcurrency"] == {ADA: 4}


def test_a_batch_has_an_answer_for_each(graph: Graph, msft_control: Control) -> None:
    letter = msft_control.create("message", user=ADA, subject="S", attachments=[{"name": "a", "text": "raw"}])
    attachment = f"/me/messages/{letter['mutableId']}/attachments/{letter['attachments'][0]['id']}/$value"
    msft_control.fault("batch_throttle", path="/me/drive", retryAfter=4)
    requests = [
        {"id": "1", "method": "GET", "url": "/me"},
        {"id": "2", "method": "GET", "url": "/me/drive"},
        {"id": "3", "method": "GET", "url": "/me/nonsense"},
        {"id": "4", "method": "GET", "url": "/me", "dependsOn": ["2"]},
        {"id": "5", "method": "GET", "url": attachment},
        {"id": "6", "method": "GET", "url": "/me/messages?$select=subject"},
    ]
    answer = graph.post("/$batch", {"requests": requests})
    found = {each["id"]: each for each in answer.json()["responses"]}
    assert [found[name]["status"] for name in "123456"] == [200, 429, 400, 424, 200, 200]
    assert found["2"]["headers"]["Retry-After"] == "4"
    assert found["5"]["body"] == "cmF3"
    assert found["6"]["body"]["value"][0]["subject"] == "S"
    assert [each["id"] for each in answer.json()["responses"]] != list("123456")


@pytest.mark.parametrize(
    "requests",
    [
        [{"id": str(number), "method": "GET", "url": "/me"} for number in range(21)],
        [{"id": "1", "method": "GET", "url": "/me"}] * 2,
    ],
)
def test_a_batch_has_limits(graph: Graph, requests: list[dict[str, str]]) -> None:
    assert graph.post("/$batch", {"requests": requests}).status_code == 400


def test_headers_of_every_answer(graph: Graph) -> None:
    answer = graph.ask("/me", **{"client-request-id": "my-own"})
    assert answer.headers["client-request-id"] == "my-own"
    assert answer.headers["request-id"]
    assert answer.headers["odata-version"] == "4.0"
    assert "odata.metadata=minimal" in answer.headers["content-type"]


def test_unknown_paths_and_methods(graph: Graph) -> None:
    assert graph.ask("/me/nonsense").json()["error"]["code"] == "BadRequest"
    assert graph.client.delete(f"{graph.base}/me").status_code == 405


def test_requests_are_counted_by_kind_and_hold_no_secret(graph: Graph, msft_control: Control) -> None:
    msft_control.forget_requests()
    for _ in range(3):
        graph.get("/me/drive")
    graph.ask("/me/drive/items/nothing")
    log = msft_control.requests()
    assert log["byRoute"] == {"my_drive": 3, "one_item": 1}
    assert log["byStatus"] == {"200": 3, "404": 1}
    assert msft_control.requests(route="my_drive", status="200")["count"] == 3
    assert msft_control.requests(since="3")["count"] == 1
    token = graph.client.headers["Authorization"].partition(" ")[2]
    assert token not in str(log)


def test_two_sandboxes_grow_the_same_world() -> None:
    states: list[Any] = []
    for _ in range(2):
        sandbox = start("msft", seed="demo")
        control = Control(sandbox.control_url)
        made = control.create("file", user=ADA, name="a.txt", text="x")
        objects = control.state()["objects"]
        states.append(
            (
                made["id"],
                [(each["id"], each["version"], each["text"], each.get("sha256")) for each in objects],
            )
        )
        control.close()
        sandbox.stop()
    assert states[0] == states[1]


def test_a_held_clock_moves_only_when_pushed() -> None:
    from datetime import UTC, datetime

    sandbox = start("msft", at=datetime(2026, 3, 1, 12, tzinfo=UTC))
    control = Control(sandbox.control_url)
    first = control.create("file", user=ADA, name="a.txt", text="x")["modified"]
    second = control.create("file", user=ADA, name="b.txt", text="x")["modified"]
    assert first < second
    assert second.startswith("2026-03-01T12:00:00")
    control.advance(86400)
    assert control.create("file", user=ADA, name="c.txt", text="x")["modified"].startswith(
        "2026-03-02T12:00:00"
    )
    control.close()
    sandbox.stop()


@pytest.mark.parametrize(
    ("method", "path", "fields", "status"),
    [
        ("PATCH", "/objects/nothing", {"text": "x"}, 404),
        ("DELETE", "/objects/nothing", {}, 404),
        ("POST", "/objects", {"kind": "spaceship"}, 400),
        ("POST", "/objects", {"kind": "file", "name": "x", "user": "nobody@demo.example"}, 404),
        ("POST", "/faults", {"times": 1}, 400),
    ],
)
def test_the_control_api_says_what_it_cannot_do(
    msft_sandbox: RunningSandbox, method: str, path: str, fields: dict[str, Any], status: int
) -> None:
    answer = httpx.request(
        method, f"{msft_sandbox.control_url}{path}", json=fields, trust_env=False, verify=False
    )
    assert answer.status_code == status
    assert answer.json()["error"]
