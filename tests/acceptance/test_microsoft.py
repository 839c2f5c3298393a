"""Microsoft complete, shown on `catchment up --demo` with its stand-in: five surfaces, push, a large channel, lost access.

Everything happens over HTTP; what was asked of the vendor its own log tells. Figures are printed (`pytest -s`).
`CATCHMENT_ACCEPTANCE=full` runs the same tests with the full numbers.
"""

import asyncio
import math
import os
import re
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import httpx
import psutil
import pytest
from prometheus_client.mmap_dict import MmapedDict

from tests.fixtures.demo import ADA, Demo, done, wait_for
from tests.fixtures.sandboxes import Control

FULL = os.environ.get("CATCHMENT_ACCEPTANCE") == "full"
GRACE, LINUS = "grace@demo.example", "linus@demo.example"
SURFACES = {"sharepoint", "onedrive", "outlook", "outlook_calendar", "teams"}
MESSAGES = 10_000 if FULL else 600
NOTICES, PER_SECOND = 4_000 if FULL else 200, 25
AT_ONCE = 16
# A day: what arrives sooner was not polled for. The large manual is another file's business.
SLOWLY = {"intervalSeconds": 86_400, "maxFileBytes": 200_000}
FEED = r"/channels\b.*/messages/delta"  # links spell the path in another way than we do
DOWNLOADS = {"item_content", "content", "attachment_bytes", "message_mime"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    folder: Path = tmp_path_factory.mktemp("demo")
    running = Demo(folder / "data", reachable=True)
    yield running
    running.close()


@pytest.fixture(scope="module")
def microsoft(demo: Demo) -> Control:
    return demo.controls["msft"]


@pytest.fixture(scope="module")
def connection(demo: Demo, microsoft: Control) -> Iterator[str]:
    """All five surfaces of Ada's, everything there, every subscription made."""
    began = time.monotonic()
    made = demo.connect("msft", policy=SLOWLY)
    demo.arrived(made)
    print(f"\nfive surfaces, {len(demo.documents(made))} documents, in {time.monotonic() - began:.1f} s")
    watched(demo, microsoft)
    yield made
    demo.revoke(made)


@pytest.fixture(autouse=True)
def in_order(microsoft: Control) -> Iterator[None]:
    yield
    microsoft.clear_faults()
    microsoft.push(mode="auto")


def subscriptions(control: Control) -> dict[str, dict[str, Any]]:
    return {one["resource"]: one for one in control.push()["subscriptions"]}


def watched(demo: Demo, control: Control) -> None:
    """Drives, mailbox, calendar and channels: the first round of each surface subscribes at its end."""

    def complete() -> bool:
        kinds = {topic.partition(":")[0] for topic in topics(control)}
        return kinds == {"drive", "mailbox", "events", "channel"} and not demo.working()

    wait_for(complete, 60, "the subscriptions", lambda: subscriptions(control))


def topics(control: Control) -> set[str]:
    return {one["topic"] for one in control.push()["subscriptions"]}


def settle(demo: Demo) -> None:
    """Nothing is under way and nothing is due."""
    wait_for(lambda: not demo.working(), 60, "quiet", lambda: demo.logged("webhook.accepted")[-3:])


def synced(demo: Demo, connection: str) -> None:
    """One delta of every surface that began after this moment, and all that follows from it."""
    settle(demo)
    demo.sync(connection)
    settle(demo)


def finds(demo: Demo, connection: str, words: str) -> bool:
    hits = demo.search(words, connectionId=connection, limit=5)
    return any(words.casefold() in hit["text"].casefold() for hit in hits)


def appears(demo: Demo, connection: str, words: str, seconds: float = 60) -> float:
    """Seconds until a search finds these very words."""
    began = time.monotonic()
    wait_for(
        lambda: finds(demo, connection, words), seconds, words, lambda: demo.logged("webhook.accepted")[-3:]
    )
    return time.monotonic() - began


class Heard:
    """What was made of notifications, and what it led to, since `again`."""

    def __init__(self, demo: Demo, control: Control) -> None:
        self._demo, self._control = demo, control
        self.again()

    def again(self) -> None:
        self._counts = self._all()
        self._control.forget_requests()

    def _all(self) -> Counter[str]:
        accepted = self._demo.logged("webhook.accepted")
        queued = self._demo.logged("ingestion.connection.delta.queued")
        return Counter(
            fresh=sum(one["notices"] for one in accepted),
            repeated=sum(one["repeated"] for one in accepted),
            queued=sum(one["reason"] == "webhook" for one in queued),
            rejected=len(self._demo.logged("webhook.rejected")),
            rounds=len(self._demo.logged("ingestion.connection.delta.done")),
            embedded=round(self._demo.embedded()),
        )

    def now(self) -> dict[str, int]:
        found = {name: count - self._counts[name] for name, count in self._all().items()}
        asked = self._demo.asked("msft")
        return found | {"asked": sum(asked.values()), "downloads": sum(asked[one] for one in DOWNLOADS)}


def deliver(demo: Demo, *notices: Mapping[str, Any]) -> int:
    """As Graph does it, straight to our door."""
    door = f"{demo.url}/v1/webhooks/msft"
    answer = httpx.post(door, json={"value": list(notices)}, trust_env=False, timeout=60, verify=False)
    return answer.status_code


def last_notice(control: Control, subscription: str) -> dict[str, Any]:
    """The last genuine notification of a subscription, secret and all."""
    told = [one for delivery in control.push()["deliveries"] for one in delivery["value"]]
    return next(
        one for one in reversed(told) if one["subscriptionId"] == subscription and "lifecycleEvent" not in one
    )


def renamed(notice: Mapping[str, Any], etag: str) -> dict[str, Any]:
    """The same notification about another change."""
    return {**notice, "resourceData": {**notice["resourceData"], "@odata.etag": etag}}


# -- five surfaces


def test_five_surfaces_at_once_each_cited_where_it_says_so(demo: Demo, connection: str) -> None:
    now = demo.progress(connection)
    assert {one["surface"] for one in now["surfaces"]} == SURFACES
    kinds = Counter(one["sourceKind"] for one in demo.documents(connection).values())
    assert {"sharepoint_item", "onedrive_item", "outlook_message", "outlook_event", "teams_message"} <= set(
        kinds
    )
    wanted = {
        "teams_message": ("float switch replaced with type FS-22", "FS-22", "ticket"),
        "outlook_event": ("Sachverständige prüft Turbine Maschinenhaus", "Maschinenhaus", "text"),
        "onedrive_item": ("Travel town kilometres Harbour", "Harbour", "office"),
    }
    for kind, (words, inside, locator) in wanted.items():
        [hit, *_] = demo.search(words, sourceKinds=kind, connectionId=connection, limit=3)
        cited = hit["citation"]
        assert (cited["sourceKind"], cited["connectionId"]) == (kind, connection)
        assert cited["locator"]["kind"] == locator, cited
        assert inside in hit["text"]
        if locator == "ticket":
            assert cited["locator"]["commentId"], "the reply itself, not the thread"
        if locator == "office":
            assert (cited["locator"]["sheet"], bool(cited["locator"]["cellRange"])) == ("Travel", True)
    print(f"\n{dict(kinds)}")


# -- push


def test_a_change_is_searchable_soon_without_polling(demo: Demo, microsoft: Control, connection: str) -> None:
    state = microsoft.state(ADA)["objects"]
    named = {one["name"]: one for one in state if one["name"]}
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    day = {"start": tomorrow.isoformat(), "end": (tomorrow + timedelta(hours=1)).isoformat()}
    changes: dict[str, Callable[[], Any]] = {
        "sharepoint": lambda: microsoft.edit(named["Wehrordnung.txt"]["id"], text="Heron at sharepoint now."),
        "onedrive": lambda: microsoft.create("file", user=ADA, name="h.txt", text="Heron at onedrive now."),
        "outlook": lambda: microsoft.create(
            "message", user=ADA, subject="Heron", text="Heron at outlook now."
        ),
        "outlook_calendar": lambda: microsoft.create(
            "event", user=ADA, subject="Heron", text="Heron at outlook_calendar now.", **day
        ),
        "teams": lambda: microsoft.create(
            "channelMessage",
            replyTo=named["Alarm last night"]["id"],
            text="Heron at teams now.",
            **{"from": GRACE},
        ),
    }
    assert set(changes) == SURFACES
    heard = Heard(demo, microsoft)
    took: dict[str, float] = {}
    for surface, change in changes.items():
        change()
        took[surface] = appears(demo, connection, f"Heron at {surface} now.")
    settle(demo)
    found = heard.now()
    told = ", ".join(f"{surface} {seconds:.1f} s" for surface, seconds in took.items())
    print(f"\nsearchable after a change at the vendor, pushed: {told}; {found}")
    assert found["fresh"] >= len(changes)
    # The promise is for a machine of one's own; a crowded one takes longer for everything.
    crowd = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    assert max(took.values()) <= 5 * crowd, took


def test_with_push_broken_the_next_poll_brings_it(demo: Demo, microsoft: Control, connection: str) -> None:
    heard = Heard(demo, microsoft)
    microsoft.push(mode="manual")
    microsoft.create("message", user=ADA, subject="Silent", text="The silent owl arrives by poll.")
    microsoft.create("message", user=GRACE, subject="Silent", text="The silent owl arrives by schedule.")
    assert not finds(demo, connection, "The silent owl arrives by poll.")
    synced(demo, connection)
    assert finds(demo, connection, "The silent owl arrives by poll.")
    # Grace's polls every few seconds; her subscription says nothing either.
    polled = demo.connect("msft", user=GRACE, surfaces=["outlook"], policy={"intervalSeconds": 5})
    demo.arrived(polled)
    microsoft.create("message", user=GRACE, subject="Silent", text="The late owl arrives by schedule.")
    took = appears(demo, polled, "The late owl arrives by schedule.")
    assert heard.now()["fresh"] == 0, "nothing was pushed"
    # What was held back all the while, in the wrong order: nothing new, and nothing lost.
    demo.revoke(polled)
    settle(demo)
    heard.again()
    microsoft.push(deliver=True, reverse=True)
    settle(demo)
    found = heard.now()
    assert (found["downloads"], found["embedded"]) == (0, 0), found
    print(f"\npush broken: found by the next poll (every 5 s) after {took:.1f} s; told afterwards: {found}")


# -- notifications that should not count


def test_forged_replayed_late_and_duplicated_notifications(
    demo: Demo, microsoft: Control, connection: str
) -> None:
    microsoft.create("message", user=ADA, subject="Real", text="A genuine plover was pushed.")
    appears(demo, connection, "A genuine plover was pushed.")
    settle(demo)
    mail = "/me/messages"
    genuine = last_notice(microsoft, subscriptions(microsoft)[mail]["id"])
    heard = Heard(demo, microsoft)

    # Forged: a guessed secret, none, another subscription's, nobody's subscription.
    subscribed = len(microsoft.push()["subscriptions"])
    for guess in ("guessed", "", None, genuine["clientState"][:-1]):
        microsoft.push(forge={"clientState": guess})
    drive = next(one for resource, one in subscriptions(microsoft).items() if resource.startswith("/drives"))
    assert deliver(demo, {**renamed(genuine, "x1"), "subscriptionId": drive["id"]}) == 202
    assert deliver(demo, {**renamed(genuine, "x2"), "subscriptionId": "nobody"}) == 202
    forged = heard.now()
    assert forged["rejected"] == 4 * subscribed + 2
    assert (forged["fresh"], forged["queued"]) == (0, 0), forged
    assert forged["asked"] == 0, forged

    # Replayed: the very same again, alone and in a crowd.
    heard.again()
    for _ in range(10):
        assert deliver(demo, genuine) == 202
    assert deliver(demo, *[genuine] * 50) == 202
    replayed = heard.now()
    assert (replayed["repeated"], replayed["fresh"], replayed["queued"]) == (60, 0, 0), replayed
    assert replayed["asked"] == 0, replayed

    # Duplicated before the first was through: twenty at once are one.
    heard.again()
    statuses = asyncio.run(flood(demo, [renamed(genuine, "twenty")] * 20))
    settle(demo)
    duplicated = heard.now()
    assert statuses == {202: 20}
    assert (duplicated["fresh"], duplicated["repeated"], duplicated["queued"]) == (1, 19, 1), duplicated
    assert duplicated["rounds"] <= 1
    assert (duplicated["downloads"], duplicated["embedded"]) == (0, 0), duplicated

    # A drive's notification does not say which change it means: told a hundred times more it costs a few looks, no work.
    microsoft.edit(file_of(microsoft, "Wehrordnung.txt"), text="The drive says only that something changed.")
    appears(demo, connection, "The drive says only that something changed.")
    settle(demo)
    changed = last_notice(microsoft, subscriptions(microsoft)[drive_of(microsoft, "Wehrordnung.txt")]["id"])
    heard.again()
    asyncio.run(flood(demo, [changed] * 100))
    settle(demo)
    looked = heard.now()
    assert (looked["downloads"], looked["embedded"]) == (0, 0), looked
    assert 1 <= looked["rounds"] < 50, looked
    print(
        f"\nforged {forged['rejected']}: 0 accepted; replayed 60: 0 accepted; 20 at once: 1 delta; "
        f"a drive's notification told 100 times more: {looked['rounds']} deltas, {looked['asked']} requests, 0 downloads, "
        "0 embeddings"
    )


def file_of(control: Control, name: str) -> str:
    return next(one["id"] for one in control.state(ADA)["objects"] if one["name"] == name)


def drive_of(control: Control, name: str) -> str:
    container = next(one["containerId"] for one in control.state(ADA)["objects"] if one["name"] == name)
    return f"/drives/{container}/root"


async def flood(demo: Demo, notices: list[dict[str, Any]]) -> Counter[int]:
    """Each in a delivery of its own, sixteen at once; the statuses."""
    waiting, statuses = iter(notices), Counter[int]()

    async def sender(client: httpx.AsyncClient) -> None:
        for notice in waiting:
            answer = await client.post("/v1/webhooks/msft", json={"value": [notice]})
            statuses[answer.status_code] += 1

    async with httpx.AsyncClient(verify=False, base_url=demo.url, timeout=60, trust_env=False) as client:
        await asyncio.gather(*(sender(client) for _ in range(AT_ONCE)))
    return statuses


async def stream(
    demo: Demo, notices: list[dict[str, Any]], per_second: int
) -> tuple[Counter[int], list[float], int]:
    """So many a second, whether or not those before are answered, while somebody searches; statuses, seconds of each."""
    statuses, took, searches, over = Counter[int](), list[float](), 0, asyncio.Event()

    async def post(client: httpx.AsyncClient, notice: dict[str, Any], at: float) -> None:
        await asyncio.sleep(max(0.0, at - time.perf_counter()))  # the beat is what is measured against
        began = time.perf_counter()
        answer = await client.post("/v1/webhooks/msft", json={"value": [notice]})
        took.append(time.perf_counter() - began)
        statuses[answer.status_code] += 1

    async def search(client: httpx.AsyncClient) -> None:
        nonlocal searches
        while not over.is_set():
            key = {"Authorization": demo.api.headers["Authorization"]}
            answer = await client.get("/v1/search", params={"q": "bearing of the turbine"}, headers=key)
            searches += answer.status_code == 200

    async with httpx.AsyncClient(verify=False, base_url=demo.url, timeout=60, trust_env=False) as client:
        searching = asyncio.create_task(search(client))
        begin = time.perf_counter() + 0.5
        beats = (post(client, notice, begin + number / per_second) for number, notice in enumerate(notices))
        await asyncio.gather(*beats)
        over.set()
        await searching
    return statuses, took, searches


def test_lifecycle_events_and_what_comes_too_late(demo: Demo, microsoft: Control, connection: str) -> None:
    mail = "/me/messages"
    microsoft.create("message", user=ADA, subject="Real", text="A dunlin comes before the end.")
    appears(demo, connection, "A dunlin comes before the end.")
    settle(demo)
    before = subscriptions(microsoft)[mail]
    genuine = last_notice(microsoft, subscriptions(microsoft)[mail]["id"])

    # missed: what was never told is looked for.
    microsoft.push(mode="manual")
    microsoft.create("message", user=ADA, subject="Missed", text="A missed godwit is looked for.")
    microsoft.push(lifecycle="missed", subscriptionId=before["id"])
    missed = appears(demo, connection, "A missed godwit is looked for.")
    microsoft.push(mode="auto", deliver=True)
    settle(demo)

    # reauthorizationRequired: renewed, under the same id.
    microsoft.forget_requests()
    microsoft.push(lifecycle="reauthorizationRequired", subscriptionId=before["id"])
    wait_for(
        lambda: demo.asked("msft")["renew_subscription"] >= 1,
        60,
        "the renewal",
        lambda: demo.asked("msft"),
    )
    settle(demo)
    assert subscriptions(microsoft)[mail]["id"] == before["id"]

    # subscriptionRemoved: made anew, and it works.
    microsoft.push(lifecycle="subscriptionRemoved", subscriptionId=before["id"])
    wait_for(lambda: mail in subscriptions(microsoft), 60, "another one", lambda: subscriptions(microsoft))
    settle(demo)
    assert subscriptions(microsoft)[mail]["id"] != before["id"]
    microsoft.create("message", user=ADA, subject="Anew", text="A new knot is announced again.")
    anew = appears(demo, connection, "A new knot is announced again.")
    settle(demo)

    # Late: the subscription that ended has nothing to say any more, whatever it knows.
    heard = Heard(demo, microsoft)
    assert deliver(demo, renamed(genuine, "late")) == 202
    late = heard.now()
    assert (late["rejected"], late["fresh"], late["queued"], late["asked"]) == (1, 0, 0, 0), late
    print(
        f"\nmissed: found after {missed:.1f} s; removed: subscribed again, pushed after {anew:.1f} s; late: 0 accepted"
    )


def test_the_handshake(demo: Demo) -> None:
    token = "Validation: Testing + 1%20 <b>"
    door = f"{demo.url}/v1/webhooks/msft"
    answer = httpx.post(door, params={"validationToken": token}, trust_env=False, timeout=60, verify=False)
    assert (answer.status_code, answer.text) == (200, token)
    assert answer.headers["content-type"].startswith("text/plain")


def test_the_webhook_answers_quickly_under_load(demo: Demo, microsoft: Control, connection: str) -> None:
    microsoft.create("message", user=ADA, subject="Load", text="A curlew before the flood.")
    appears(demo, connection, "A curlew before the flood.")
    settle(demo)
    genuine = last_notice(microsoft, subscriptions(microsoft)["/me/messages"]["id"])
    # A machine that others use stands still now and then; what counts is that the door does not.
    for attempt in range(1 if FULL else 3):
        p99, crowd = answers_of_a_stream(demo, microsoft, genuine, f"load-{attempt}")
        if p99 <= 200 * crowd:
            break
    assert p99 <= 200 * crowd


def answers_of_a_stream(
    demo: Demo, microsoft: Control, genuine: Mapping[str, Any], name: str
) -> tuple[float, float]:
    """The 99th percentile in milliseconds, and how crowded the machine was."""
    heard = Heard(demo, microsoft)
    # Every second one is a change that was not told before; the others repeat one.
    notices = [renamed(genuine, f"{name}-{number // 2}") for number in range(NOTICES)]
    statuses, took, searches = asyncio.run(stream(demo, notices, PER_SECOND))
    load = os.getloadavg()[0]
    settle(demo)
    found = heard.now()
    assert statuses == {202: NOTICES}
    assert (found["fresh"], found["repeated"]) == (NOTICES // 2, NOTICES - NOTICES // 2), found
    assert found["rounds"] <= NOTICES // 2, "several notifications are one delta"
    assert (found["downloads"], found["embedded"]) == (0, 0), found
    p99 = statistics.quantiles(took, n=100)[98] * 1000
    print(
        f"\n{NOTICES} notifications, {PER_SECOND} a second, with {searches} searches and {found['rounds']} deltas meanwhile: "
        f"p50 {statistics.median(took) * 1000:.0f} ms, p99 {p99:.0f} ms (load {load:.1f})"
    )
    return p99, 1.0 if FULL else max(1.0, load / (os.cpu_count() or 1))


def test_a_notification_after_the_end_of_its_connection(demo: Demo, microsoft: Control) -> None:
    known = {one["id"] for one in microsoft.push()["subscriptions"]}
    made = demo.connect("msft", user=LINUS, surfaces=["outlook"], policy=SLOWLY)
    demo.arrived(made)
    settle(demo)
    [own] = {one["id"] for one in microsoft.push()["subscriptions"]} - known
    microsoft.create("message", user=LINUS, subject="Last", text="The last turnstone.")
    appears(demo, made, "The last turnstone.")
    settle(demo)
    genuine = last_notice(microsoft, own)
    demo.revoke(made)
    heard = Heard(demo, microsoft)
    for number in range(5):
        assert deliver(demo, renamed(genuine, f"after-{number}")) == 202
    found = heard.now()
    assert (found["rejected"], found["fresh"], found["queued"]) == (5, 0, 0), found
    left = {one["id"] for one in microsoft.push()["subscriptions"]}
    assert own not in left, "ended at the vendor too"
    assert left == known
    print(
        "\nafter the connection was revoked: 5 genuine notifications, 0 accepted; 0 of its subscriptions left"
    )


# -- lost access


def test_what_the_user_loses_leaves_with_the_next_delta(demo: Demo, microsoft: Control) -> None:
    policy = {**SLOWLY, "sharedWithMe": True}
    microsoft.push(mode="manual")  # the next delta is ours to ask for
    plans = microsoft.create("file", user=ADA, name="Kept.txt", text="Only Linus keeps the redshank plans.")
    theirs = microsoft.create("file", user=ADA, name="Shared.txt", text="The redshank plans are shared.")
    microsoft.edit(theirs["id"], share=[LINUS])
    site = microsoft.create("site", name="Redshank", members=[ADA, LINUS])
    inside = microsoft.create("file", driveId=site["driveId"], name="Inside.txt", text="The redshank inside.")
    denied = microsoft.create("file", driveId=site["driveId"], name="Denied.txt", text="The redshank denied.")
    team = microsoft.create("team", name="Redshank team", members=[ADA, LINUS])
    microsoft.create(
        "channelMessage", channelId=team["channelId"], text="The redshank thread.", **{"from": ADA}
    )
    linus = demo.connect("msft", user=LINUS, surfaces=["sharepoint", "onedrive", "teams"], policy=policy)
    demo.arrived(linus)

    def held() -> dict[str, dict[str, Any]]:
        return {one["sourceId"]: one for one in demo.documents(linus).values()}

    def sharing(source_id: str) -> Any:
        document = done(demo.api.get(f"/documents/{held()[source_id]['id']}"))
        return document["metadata"].get("sharing")

    found = held()
    assert plans["id"] not in found
    assert {theirs["id"], inside["id"], denied["id"]} <= set(found)
    assert sharing(theirs["id"]) == {"scope": "users", "owner": "Ada Brook"}
    assert sharing(inside["id"]) is None
    microsoft.edit(inside["id"], link="organization")
    synced(demo, linus)
    assert sharing(inside["id"])["scope"] == "organization"

    threads = [one["sourceId"] for one in demo.documents(linus).values() if "redshank" in one["title"]]
    assert len(threads) == 1
    microsoft.edit(theirs["id"], unshare=[LINUS])
    microsoft.edit(denied["id"], unshare=[LINUS])
    microsoft.edit(team["id"], members=[ADA])
    synced(demo, linus)
    left = held()
    assert not {theirs["id"], denied["id"], *threads} & set(left)
    assert inside["id"] in left
    assert not finds(demo, linus, "The redshank thread.")
    microsoft.edit(site["id"], members=[ADA])
    synced(demo, linus)
    assert inside["id"] not in held()
    assert not any("redshank" in hit["text"] for hit in demo.search("redshank", connectionId=linus))
    demo.revoke(linus)
    print(
        "\nunshared, denied, out of the team, out of the site: 4 documents left with the next delta, 0 found"
    )


# -- a large channel


class Sizes:
    """Resident memory of the larger of some processes, in MB, looked at while something runs."""

    def __init__(self, processes: list[psutil.Process]) -> None:
        self._processes, self._over = processes, threading.Event()
        self.samples: list[float] = []
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(10)

    def _look(self) -> None:
        while not self._over.wait(0.25):
            self.samples.append(max(one.memory_info().rss for one in self._processes) / 2**20)


def vendor_requests(demo: Demo, pid: int) -> float:
    """What one process asked of Microsoft, by its own metrics."""
    file = demo.data_dir / "metrics" / f"counter_{pid}.db"
    if not file.exists():
        return 0.0
    found = MmapedDict.read_all_values_from_file(str(file))
    return sum(value for key, value, *_ in found if "catchment_vendor_requests_total" in key)


def most_within(times: list[float], seconds: float) -> int:
    """The largest number of them that any such window holds."""
    return max((sum(start <= at < start + seconds for at in times) for start in times), default=0)


def most_at_once(entries: list[dict[str, Any]]) -> int:
    steps = sorted(
        [(one["at"], 1) for one in entries] + [(one["at"] + one["took"], -1) for one in entries],
    )
    inside = most = 0
    for _, step in steps:
        inside += step
        most = max(most, inside)
    return most


@pytest.mark.timeout(3600 if FULL else 900)
def test_a_large_channel_within_limits_two_workers_share(demo: Demo, microsoft: Control) -> None:
    microsoft.ask("POST", "/reset", {"seed": "empty"})
    team = microsoft.create("team", name="Flood room", members=[ADA])
    threads = MESSAGES // 2
    for start in range(0, threads, 500):
        made = microsoft.create_many(
            [
                {
                    "kind": "channelMessage",
                    "channelId": team["channelId"],
                    "text": f"Reading {number}: {140 + number % 60} cm at gate {number}.",
                    "from": ADA,
                }
                for number in range(start, min(start + 500, threads))
            ]
        )
        microsoft.create_many(
            [
                {"kind": "channelMessage", "replyTo": one["id"], "text": f"Seen {one['id']}.", "from": ADA}
                for one in made
            ]
        )
    microsoft.create_many(
        [
            {"kind": "file", "user": ADA, "name": f"note {number}.txt", "text": f"Note {number} of gate."}
            for number in range(80)
        ]
    )
    microsoft.create_many(
        [
            {"kind": "message", "user": ADA, "subject": f"mail {number}", "text": f"Mail {number}."}
            for number in range(80)
        ]
    )
    microsoft.forget_requests()
    with demo.second_worker() as workers, Sizes(workers) as sizes:
        before = [vendor_requests(demo, one.pid) for one in workers]
        # Slow enough that without a shared window more than four would be under way.
        microsoft.fault("slow", times=None, seconds=0.1, path=r"^/v1\.0/")
        began = time.monotonic()
        connection = demo.connect("msft", surfaces=["onedrive", "outlook", "teams"], policy=SLOWLY)
        wait_for(
            lambda: demo.controls["msft"].requests(path=FEED, limit="1")["count"] >= 3,
            60,
            "a few pages",
            lambda: demo.progress(connection),
        )
        microsoft.fault("throttle", retryAfter=3, path=FEED)
        demo.arrived(connection, 1200 if FULL else 180)
        took = time.monotonic() - began
        asked = [vendor_requests(demo, one.pid) - first for one, first in zip(workers, before, strict=True)]
    kinds = Counter(one["sourceKind"] for one in demo.documents(connection).values())
    assert kinds["teams_message"] == threads, kinds
    log = microsoft.requests(path=r"^/v1\.0/", limit="50000")["requests"]
    channel = [one for one in log if re.search(FEED, one["path"])]
    pages = [one["at"] for one in channel if one["status"] == 200]
    gaps = [later - earlier for earlier, later in pairwise(sorted(one["at"] for one in channel))]
    [closed] = [one for one in log if one["status"] == 429]
    shut = [one for one in log if 0.5 < one["at"] - closed["at"] - closed["took"] < 2.9]
    at_once = most_at_once(log)
    early, late = max(sizes.samples[: len(sizes.samples) // 3]), max(sizes.samples)
    print(
        f"\n{MESSAGES} messages in {threads} threads in {took:.0f} s: {len(log)} requests, {len(pages)} pages of the channel, "
        f"smallest gap {min(gaps):.2f} s, at most {most_within(pages, 10)} in 10 s; two workers asked "
        f"{asked[0]:.0f} and {asked[1]:.0f}, at most {at_once} at once; {len(shut)} while closed for 3 s; "
        f"memory of the larger worker {early:.0f} MB in the first third, {late:.0f} MB at most"
    )
    assert math.ceil(threads / 50) <= len(pages) <= threads / 50 + 10
    assert most_within(pages, 3) <= 5, (
        "one a second for a channel; one that had to wait for room may be close behind"
    )
    assert most_within(pages, 10) <= 12
    # A small channel can be done before the second worker, started beside other tests, has its first turn.
    assert min(asked) > 0 or not FULL, "both workers asked"
    assert at_once <= 4
    assert shut == []
    assert len(log) < 10_000
    assert late - early < 64, "what was read is not kept"
    demo.revoke(connection)
