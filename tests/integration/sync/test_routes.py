"""Syncs over HTTP: estimate, ask, watch, and why something is not here."""

import asyncio
import json

import pytest

from gateway.connections import sync_estimate_service, sync_routes
from tests.conformance.brook import BrookSurface
from tests.fixtures.tenants import make_mandate


@pytest.fixture
async def door(bank, app, client):
    """The gateway, as the connection's owner, with the brook behind it."""
    app.state.places = bank.places
    client.headers["Authorization"] = f"Bearer {bank.tenant.key}"
    return client


def path(bank, rest: str) -> str:
    return f"/v1/connections/{bank.connection_id}/{rest}"


async def test_a_vendor_that_keeps_silent_does_not_keep_an_estimate_waiting(bank, door, monkeypatch):
    async def silence(_self):
        await asyncio.Event().wait()

    monkeypatch.setattr(BrookSurface, "estimate", silence)
    monkeypatch.setattr(sync_estimate_service, "VENDOR_SECONDS", 0.05)
    answer = await door.get(path(bank, "estimate"))
    assert [one["error"] for one in answer.json()["surfaces"]] == ["unavailable"]


async def test_an_estimate_counts_before_anything_is_fetched(bank, door):
    bank.world.create("a", "x" * 1000)
    bank.world.create("b", "y" * 3000)
    answer = await door.get(path(bank, "estimate"))
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["items"], found["bytes"]) == (2, 4000)
    assert found["tokens"] > 0
    assert found["surfaces"][0]["containers"] == ["p1"]
    assert bank.world.downloads == {}


async def test_a_sync_can_be_asked_for(bank, door):
    bank.world.create("a", "Text.")
    answer = await door.post(path(bank, "sync"))
    assert answer.status_code == 202, answer.text
    [job] = answer.json()["jobs"]
    again = await door.post(path(bank, "sync"), json={"surfaces": ["sharepoint"], "mode": "bootstrap"})
    assert again.json()["jobs"] == [job]
    await bank.drain()
    assert await bank.corpus() == {"a": "Text."}
    assert (await door.post(path(bank, "sync"), json={"surfaces": ["moon"]})).status_code == 404
    assert (await door.post(path(bank, "held/approve"), params={"surface": "moon"})).status_code == 404
    await bank.rows("UPDATE connection SET paused = true RETURNING 1")
    assert (await door.post(path(bank, "sync"))).status_code == 409


async def test_items_say_what_became_of_them(bank, door):
    bank.world.create("here", "Indexed.", name="here.txt")
    bank.world.create("odd", "No.", name="odd.bin")
    bank.world.create("bad", "Later.", name="bad.txt")
    bank.world.create("gone", "Soon gone.", name="gone.txt")
    bank.world.create("folder", "", kind="folder")
    bank.world.broken |= {"odd": "unsupported", "bad": "locked"}
    await bank.sync()
    bank.world.delete("gone")
    await bank.sync()
    answers = {}
    for name in ("here", "odd", "bad", "gone", "folder"):
        [item] = (await door.get(path(bank, "items"), params={"externalId": name})).json()["items"]
        answers[name] = item["answer"]
    assert answers == {
        "here": "indexed",
        "odd": "unsupported",
        "bad": "unavailable",
        "gone": "deleted_upstream",
        "folder": "folder",
    }
    by_name = (await door.get(path(bank, "items"), params={"name": "ODD.b"})).json()["items"]
    assert [item["externalId"] for item in by_name] == ["odd"]
    first = (await door.get(path(bank, "items"), params={"limit": 3})).json()
    rest = (await door.get(path(bank, "items"), params={"limit": 3, "cursor": first["nextCursor"]})).json()
    assert sorted(item["externalId"] for item in [*first["items"], *rest["items"]]) == sorted(answers)
    assert (await door.get(path(bank, "items"), params={"cursor": "nonsense"})).json()[
        "code"
    ] == "cursor.invalid"


@pytest.mark.parametrize(
    ("state", "reason", "word"),
    [
        ("skipped", "too_large", "too_large"),
        ("skipped", "filtered", "filtered"),
        ("skipped", "outside_window", "outside_window"),
        ("skipped", "quota", "quota"),
        ("skipped", "erased", "erased"),
        ("skipped", "something new", "filtered"),
        ("failed", "forbidden", "forbidden"),
        ("failed", "anything", "failed"),
        ("deleted", "container_gone", "forbidden"),
        ("deleted", "absent", "deleted_upstream"),
        ("held", "absent", "held"),
        ("pending", None, "waiting"),
    ],
)
async def test_every_state_has_a_word_and_a_sentence(bank, door, state, reason, word):
    bank.world.create("a", "Text.")
    await bank.sync()
    await bank.rows("UPDATE remote_item SET state = :s, reason = :r RETURNING 1", s=state, r=reason)
    [item] = (await door.get(path(bank, "items"), params={"externalId": "a"})).json()["items"]
    assert item["answer"] == word
    assert item["why"]


async def test_a_wait_for_the_vendor_is_an_answer(bank, door):
    bank.world.create("a", "Text.")
    bank.world.arm("throttle", at="fetch", after=600)
    await bank.sync()
    [item] = (await door.get(path(bank, "items"))).json()["items"]
    assert item["answer"] == "throttled"


async def test_a_file_that_cannot_be_parsed_says_so(bank, door):
    bank.world.create("a", "Text.")
    await bank.sync()
    await bank.rows("UPDATE document SET status = 'failed', reason = 'corrupt' RETURNING 1")
    [item] = (await door.get(path(bank, "items"))).json()["items"]
    assert item["answer"] == "parse_failed"


async def test_why_answers_for_what_a_vendor_listed(bank, door):
    bank.world.create("odd", "No.", name="odd.bin")
    bank.world.broken["odd"] = "unsupported"
    await bank.sync()
    for asked in ("odd", "odd.bin"):
        found = (await door.get("/v1/why", params={"externalId": asked})).json()
        assert found["found"]
        assert found["items"][0]["answer"] == "unsupported"
        assert "cannot be read" in found["answer"]


async def test_an_id_is_found_as_the_vendor_shows_it(bank, door):
    """People copy `8612e7ab6` out of ClickUp's address bar; we keep it as a task's."""
    bank.world.create("task/8612e7ab6", "Paint the bridge.")
    await bank.sync()
    for asked, found in (("8612e7ab6", 1), ("task/8612e7ab6", 1), ("7ab6", 0), ("%", 0)):
        items = (await door.get(path(bank, "items"), params={"externalId": asked})).json()["items"]
        why = (await door.get("/v1/why", params={"externalId": asked})).json()
        assert (len(items), why["found"]) == (found, bool(found)), asked


async def test_failures_are_listed_and_retried(bank, door):
    for name in "abc":
        bank.world.create(name, f"File {name}.")
        bank.world.broken[name] = "locked"
    await bank.sync()
    first = (await door.get(path(bank, "failures"), params={"limit": 2})).json()
    rest = (await door.get(path(bank, "failures"), params={"limit": 2, "cursor": first["nextCursor"]})).json()
    failures = {one["externalId"]: one for one in [*first["items"], *rest["items"]]}
    assert set(failures) == {"a", "b", "c"}
    bank.world.broken.clear()
    answer = await door.post(path(bank, f"failures/{failures['a']['id']}/retry"))
    assert answer.status_code == 202, answer.text
    bank.time[0] = bank.time[0].replace(microsecond=0)
    from datetime import timedelta

    bank.time[0] += timedelta(seconds=30)  # the others' time has not come
    await bank.drain()
    assert await bank.corpus() == {"a": "File a."}
    other = "00000000-0000-7000-8000-000000000001"
    assert (await door.post(path(bank, f"failures/{other}/retry"))).status_code == 404


async def test_what_was_fetched_and_could_not_be_read_is_a_failure_like_any_other(bank, door):
    bank.world.create("locked", "File.")
    bank.world.broken["locked"] = "locked"
    bank.world.create("void", "")
    bank.world.create("whole", "Text.")
    await bank.sync()
    first = (await door.get(path(bank, "failures"), params={"limit": 1})).json()
    rest = (await door.get(path(bank, "failures"), params={"limit": 1, "cursor": first["nextCursor"]})).json()
    assert rest["nextCursor"] is None
    failures = {one["externalId"]: one for one in [*first["items"], *rest["items"]]}
    assert set(failures) == {"locked", "void"}
    void = failures["void"]
    assert (void["reason"], void["detail"], void["attempts"]) == ("empty", "the file has no bytes", 1)
    assert (void["surface"], void["retryAt"]) == ("sharepoint", None)
    [source] = (await door.get(f"/v1/connections/{bank.connection_id}")).json()["sources"]
    assert source["failures"] == 2

    answer = await door.post(path(bank, f"failures/{void['id']}/retry"))
    assert (answer.status_code, answer.json()["externalId"]) == (202, "void")
    assert len(await bank.rows("SELECT 1 FROM job WHERE kind = 'ingest' AND status = 'pending'")) == 1
    await bank.drain()
    again = (await door.get(path(bank, "failures"))).json()["items"]
    assert {one["externalId"] for one in again} == {"locked", "void"}


async def test_held_deletions_are_shown_and_approved(bank, door):
    for number in range(5):
        bank.world.create(f"f{number}", f"File {number}.")
    await bank.sync()
    for number in range(3):
        bank.world.vanish(f"f{number}")
    bank.world.forget_feed()
    await bank.sync()
    [held] = (await door.get(path(bank, "held"))).json()["items"]
    assert (held["count"], held["known"], held["percent"]) == (3, 5, 60.0)
    assert sorted(held["examples"]) == ["f0.txt", "f1.txt", "f2.txt"]
    assert (await door.post(path(bank, "held/approve"))).json() == {"approved": 3}
    await bank.drain()
    assert await bank.corpus() == bank.world.truth()
    assert (await door.get(path(bank, "held"))).json() == {"items": []}


async def test_progress_as_json_and_as_a_stream(bank, door):
    for number in range(4):
        bank.world.create(f"f{number}", f"File {number}.")
    bank.world.broken["f0"] = "locked"
    await bank.sync()
    now = (await door.get(path(bank, "progress"))).json()
    [surface] = now["surfaces"]
    assert now["done"]
    assert {name: surface[name] for name in ("found", "indexed", "failed", "skipped", "waiting")} == {
        "found": 4,
        "indexed": 3,
        "failed": 1,
        "skipped": 0,
        "waiting": 0,
    }
    stream = await door.get(path(bank, "progress"), headers={"Accept": "text/event-stream"})
    events = [block.split("\n") for block in stream.text.strip().split("\n\n")]
    assert [lines[0] for lines in events] == ["event: progress", "event: done"]
    assert json.loads(events[0][1].removeprefix("data: "))["surfaces"][0]["indexed"] == 3


async def test_a_first_sync_that_is_being_prepared_is_not_done(bank, door, monkeypatch):
    monkeypatch.setattr(sync_routes, "WATCH_SECONDS", 0.2)
    monkeypatch.setattr(sync_routes, "LOOK_SECONDS", 0.05)
    await bank.rows("DELETE FROM data_source RETURNING 1")
    for state, last in (("active", "event: progress"), ("pending", "event: done")):
        await bank.rows("UPDATE connection SET state = :state RETURNING 1", state=state)
        stream = await door.get(path(bank, "progress"), headers={"Accept": "text/event-stream"})
        told = [line for line in stream.text.split("\n") if line.startswith("event: ")]
        assert told[-1] == last, state


async def test_progress_counts_what_waits(bank, door):
    for number in range(4):
        bank.world.create(f"f{number}", f"File {number}.")
    bank.world.arm("throttle", at="fetch", after=600, times=50)
    await bank.sync()
    now = (await door.get(path(bank, "progress"))).json()
    assert (now["done"], now["surfaces"][0]["waiting"]) == (False, 4)


async def test_progress_tells_what_became_of_the_documents(bank, door):
    for number in range(7):
        bank.world.create(f"f{number}", f"File {number}.")
    await bank.sync()
    for number, status in enumerate(("indexed", "pending", "failed", "skipped", "cancelled")):
        await bank.rows(
            "UPDATE document SET status = :status WHERE source_id = :id RETURNING 1",
            status=status,
            id=f"f{number}",
        )
    # one that lost its document, and one that is read again while its document is still there
    await bank.rows("UPDATE remote_item SET document_id = NULL WHERE external_id = 'f5' RETURNING 1")
    await bank.rows("UPDATE remote_item SET state = 'pending' WHERE external_id = 'f6' RETURNING 1")
    [surface] = (await door.get(path(bank, "progress"))).json()["surfaces"]
    told = ("found", "indexed", "indexing", "failed", "skipped", "waiting", "held")
    assert [surface[name] for name in told] == [7, 1, 1, 1, 1, 1, 0]


async def test_every_50_items_are_told(bank, capsys):
    bank.world.page_size = 30
    for number in range(120):
        bank.world.create(f"n{number:03}", f"Note {number}.", kind="note")
    await bank.ask()
    await bank.bench.runner.answer("backfill", bank.tenant.mandate_id)
    out = capsys.readouterr().out
    assert out.count("ingestion.connection.bootstrap.progress") == 2
    assert out.count("ingestion.connection.bootstrap.done") == 1


PATHS = [
    ("GET", "estimate"),
    ("POST", "sync"),
    ("GET", "items"),
    ("GET", "failures"),
    ("GET", "held"),
    ("POST", "held/approve"),
    ("GET", "progress"),
]


@pytest.mark.parametrize(("verb", "rest"), PATHS)
async def test_another_members_connection_is_not_there(bank, door, client, db, verb, rest):
    stranger = await make_mandate(db)
    answer = await client.request(verb, path(bank, rest), headers=stranger.auth("owner"))
    assert answer.status_code == 404
    assert sync_routes.WATCH_SECONDS > 0
