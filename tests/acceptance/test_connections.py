"""Connections, shown on real processes with Microsoft's stand-in: connect, sync, change, revoke. Figures are printed.

Everything happens over HTTP, as a newcomer with `catchment up --demo` does it; only what must be gone is looked for in the
database itself. Random histories over this sandbox are in tests/integration/sync. `CATCHMENT_ACCEPTANCE=full` revokes a
hundred times.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.embedded.postgres import DATABASE, SUPERUSER, EmbeddedPostgres
from tests.fixtures.demo import ADA, Demo, done, wait_for
from tests.fixtures.sandboxes import Control
from tests.fixtures.traces import in_database

FULL = os.environ.get("CATCHMENT_ACCEPTANCE") == "full"
REVOCATIONS = 100 if FULL else 4
GRACE = "grace@demo.example"
SURFACES = ["sharepoint", "outlook"]
SKIPPED_FOLDERS = {"junkemail", "deleteditems", "drafts", "outbox"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    folder: Path = tmp_path_factory.mktemp("demo")
    running = Demo(folder / "data")
    yield running
    running.close()


@pytest.fixture
def microsoft(demo: Demo) -> Iterator[Control]:
    control = demo.controls["msft"]
    control.clear_faults()
    control.ask("POST", "/reset", {"seed": "demo"})
    yield control
    for connection in demo.api.get("/connections", params={"limit": 200}).json()["items"]:
        if connection["status"] != "revoked":
            demo.revoke(connection["id"])


def files(control: Control) -> dict[str, dict[str, Any]]:
    """What of SharePoint belongs into the corpus: files, without what editors and systems leave behind."""
    return {
        one["id"]: one
        for one in control.state(ADA)["objects"]
        if one["surface"] == "sharepoint"
        and one["kind"] == "file"
        and not one["name"].startswith(("~$", "."))
    }


def mails(control: Control) -> dict[str, dict[str, Any]]:
    return {
        one["id"]: one
        for one in control.state(ADA)["objects"]
        if one["surface"] == "outlook"
        and one["kind"] == "message"
        and one["container"] not in SKIPPED_FOLDERS
        and one["name"] != "Very old"
    }


def indexed(demo: Demo, connection: str, kind: str) -> dict[str, dict[str, Any]]:
    return {one["sourceId"]: one for one in demo.documents(connection).values() if one["sourceKind"] == kind}


def assert_equal(demo: Demo, connection: str, control: Control) -> int:
    """The corpus is the sandbox."""
    truth, found = files(control), indexed(demo, connection, "sharepoint_item")
    assert set(found) == set(truth), sorted(
        truth.get(key, found.get(key, {})).get("name", found.get(key, {}).get("title", key))
        for key in set(found) ^ set(truth)
    )
    assert {key: one["title"] for key, one in found.items()} == {
        key: one["name"] for key, one in truth.items()
    }
    letters = indexed(demo, connection, "outlook_message")
    assert set(letters) == set(mails(control))
    return len(truth) + len(letters)


def left_of(demo: Demo, needle: str) -> set[str]:
    """Every table in which a superuser still finds this."""
    url = EmbeddedPostgres(demo.data_dir).url(SUPERUSER, database=DATABASE)
    return {place.partition(".")[0] for place in in_database(url, needle)}


def test_connect_search_change_and_revoke_over_http_only(demo: Demo, microsoft: Control) -> None:
    began = time.monotonic()
    connection = demo.connect("msft", surfaces=SURFACES)
    demo.arrived(connection, 300)
    first = time.monotonic() - began
    count = assert_equal(demo, connection, microsoft)

    [mail, *_] = demo.search("bronze bearing lower turbine deliver", sourceKinds="outlook_message", limit=3)
    assert mail["citation"]["locator"]["kind"] == "mail"
    [page, *_] = demo.search("Operating manual spillway page 217", sourceKinds="sharepoint_item", limit=3)
    assert page["citation"]["locator"]["kind"] == "pdf"
    assert page["citation"]["locator"]["page"] >= 1

    named = {one["name"]: key for key, one in files(microsoft).items()}
    letters = {one["name"]: key for key, one in mails(microsoft).items()}
    microsoft.edit(
        named["Wehrordnung.txt"], text="Das Wehr wird nun am Dienstag geöffnet, Schlüssel beim Pförtner."
    )
    microsoft.edit(named["Budget.txt"], name="Budget 2027.txt")
    manuals = next(one for one in microsoft.state(ADA)["objects"] if one["name"] == "Manuals")
    microsoft.edit(named["Flood season.pptx"], parentId=manuals["id"])
    microsoft.delete(named["Turbine notes.md"])
    microsoft.delete(letters["Offer for the bearing"])
    microsoft.create(
        "message", user=ADA, subject="Frost warning", text="Minus nine tonight at the upper weir."
    )
    demo.sync(connection)
    assert_equal(demo, connection, microsoft)
    [hit, *_] = demo.search("Schlüssel beim Pförtner Dienstag Wehr", connectionId=connection, limit=3)
    assert "Pförtner" in hit["text"]
    microsoft.restore(named["Turbine notes.md"])
    microsoft.restore(letters["Offer for the bearing"])
    demo.sync(connection)
    assert_equal(demo, connection, microsoft)

    held = len(demo.documents(connection))
    receipt = demo.revoke(connection)
    for words in ("bronze bearing", "Operating manual spillway", "Frost warning", "Pförtner"):
        assert demo.search(words, connectionId=connection) == []
        assert all(hit["citation"]["connectionId"] != connection for hit in demo.search(words))
    assert receipt["counts"]["document"] == held
    # What promise 5 keeps: that there was a connection, and the receipt of its end. Queries are the asker's own.
    assert left_of(demo, connection) <= {"connection", "receipt", "query_log"}
    for gone in ("minus nine tonight", "beim Pförtner", named["Wehrordnung.txt"]):
        assert left_of(demo, gone) <= {"query_log"}, gone
    print(
        f"\nfirst sync of {count} items in {first:.1f} s; equal after 8 changes in 2 deltas; "
        f"revoked {held} documents: {receipt['counts']}"
    )


def test_a_second_bootstrap_costs_no_download_and_no_embedding(demo: Demo, microsoft: Control) -> None:
    connection = demo.connect("msft", surfaces=SURFACES)
    demo.arrived(connection, 300)
    synced = [one for one in demo.documents(connection).values() if one["sourceKind"] != "connection_summary"]
    embedded, told = demo.embedded(), len(demo.logged("ingestion.skipped.duplicate"))
    microsoft.forget_requests()
    demo.sync(connection, "bootstrap")
    downloads = {name: n for name, n in demo.asked("msft").items() if "content" in name or "download" in name}
    assert not downloads, downloads
    assert demo.embedded() == embedded
    skipped = len(demo.logged("ingestion.skipped.duplicate")) - told
    assert skipped >= len(synced)
    print(f"\nsecond bootstrap of {len(synced)}: 0 downloads, 0 embeddings, {skipped} duplicates told")


def test_why_something_is_not_here(demo: Demo, microsoft: Control) -> None:
    connection = demo.connect("msft", surfaces=SURFACES, policy={"maxFileBytes": 100_000})
    demo.arrived(connection, 300)
    answers = {}
    for name in ("Operating manual.pdf", "Wehrordnung.txt", "~$Night shift rules.docx"):
        found = done(demo.api.get(f"/connections/{connection}/items", params={"name": name}))["items"]
        answers[name] = found[0]["answer"] if found else "never listed"
    assert answers["Operating manual.pdf"] == "too_large"
    assert answers["Wehrordnung.txt"] == "indexed"
    assert answers["~$Night shift rules.docx"] in {"filtered", "never listed"}
    why = done(demo.api.get("/why", params={"externalId": "Operating manual.pdf"}))
    assert "larger" in why["answer"]


def test_an_estimate_before_anything_is_fetched(demo: Demo, microsoft: Control) -> None:
    connection = demo.connect("msft", surfaces=SURFACES, autoStart=False)
    found = done(demo.api.get(f"/connections/{connection}/estimate"))
    assert found["items"] > 0, found
    assert {one["surface"] for one in found["surfaces"]} == set(SURFACES)
    assert indexed(demo, connection, "sharepoint_item") == {}
    print(
        f"\nestimate: {found['items']} items, {found['bytes']} bytes, {found['tokens']} tokens, {found['seconds']} s"
    )


@contextmanager
def person(demo: Demo, email: str) -> Iterator[Demo]:
    """The same house as another user: their own key, their own browser."""
    users = done(demo.api.get("/users", params={"limit": 200}))["items"]
    user_id = next(user["id"] for user in users if user["email"] == email)
    key = done(demo.api.post("/keys", json={"name": "theirs", "userId": user_id}))["key"]
    link = done(demo.api.post("/login-links", json={"userId": user_id}))["url"]
    api, browser = demo.api, demo.browser
    demo.api = httpx.Client(
        verify=False,
        base_url=f"{demo.url}/v1",
        headers={"Authorization": f"Bearer {key}"},
        timeout=60,
        trust_env=False,
    )
    demo.browser = httpx.Client(verify=False, base_url=demo.url, timeout=60, trust_env=False)
    try:
        assert demo.browser.get(link).status_code == 303
        yield demo
    finally:
        demo.api.close()
        demo.browser.close()
        demo.api, demo.browser = api, browser


def test_two_users_see_one_file_and_each_has_it_until_they_leave(demo: Demo, microsoft: Control) -> None:
    words = "Am Wehr wird nicht gebadet"
    with person(demo, ADA):
        adas = demo.connect("msft", user=ADA, surfaces=["sharepoint"])
        demo.arrived(adas, 300)
        own = demo.titles(adas)
    embedded = demo.embedded()
    with person(demo, GRACE):
        graces = demo.connect("msft", user=GRACE, surfaces=["sharepoint"])
        demo.arrived(graces, 300)
        hers = demo.titles(graces)
        both = set(own) & set(hers)
        assert both, "they share a site"
        assert set(own) - set(hers), "and each has something of their own"
        [hit, *_] = demo.search(words, limit=3)
        assert hit["citation"]["connectionId"] == graces
    # her summary is new; what she shares with him was embedded when he connected
    fresh = demo.embedded() - embedded
    assert fresh <= 3, fresh
    with person(demo, ADA):
        [hit, *_] = demo.search(words, limit=3)
        assert hit["citation"]["connectionId"] == adas
        demo.revoke(adas)
        assert all(hit["citation"]["connectionId"] is None for hit in demo.search(words, limit=50))
    with person(demo, GRACE):
        [hit, *_] = demo.search(words, limit=3)
        assert hit["citation"]["connectionId"] == graces
        assert demo.titles(graces) == hers
        demo.revoke(graces)
    print(
        f"\n{len(both)} files seen by two: {fresh:.0f} texts embedded for the second; one leaves, the other keeps all"
    )


@pytest.mark.timeout(3600)
def test_revocations_in_the_middle_of_a_sync(demo: Demo, microsoft: Control) -> None:
    letters = [
        {
            "kind": "message",
            "user": ADA,
            "subject": f"Reading {n}",
            "text": f"The gauge stood at {n} centimetres.",
        }
        for n in range(300)
    ]
    microsoft.create_many(letters)
    revoked: list[str] = []
    caught = 0
    slowest = 0.0
    for _ in range(REVOCATIONS):
        connection = demo.connect("msft", surfaces=SURFACES)
        wait_for(
            lambda c=connection: len(demo.documents(c)) > 3,
            120,
            "the sync to write",
            lambda c=connection: demo.progress(c),
        )
        caught += not demo.progress(connection)["done"]
        began = time.monotonic()
        receipt = demo.revoke(connection)
        slowest = max(slowest, time.monotonic() - began)
        assert receipt["counts"]["document"] > 3
        assert demo.search("gauge centimetres", connectionId=connection) == []
        revoked.append(connection)
    wait_for(lambda: not demo.working(), 120, "whoever was still at it", lambda: "jobs are due")
    for connection in revoked:
        assert left_of(demo, connection) <= {"connection", "receipt", "query_log"}, connection
    assert left_of(demo, "the gauge stood at") == set()
    assert caught >= REVOCATIONS // 2, "most of them met a sync that was under way"
    print(
        f"\n{REVOCATIONS} revocations, {caught} in the middle of a sync: nothing left; slowest receipt {slowest:.1f} s"
    )
