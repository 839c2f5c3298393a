"""Outlook mail against the sandbox: folders, tiers, attachments, moves, and what a delta must not do."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

import pytest

from connectors.kit.contract import ItemFailed, Throttled
from tests.contract.msft.account import ADA, Account, Mirror
from tests.fixtures.sandboxes import Control

SKIPPED = {"junkemail", "deleteditems", "drafts", "outbox"}


def truth(control: Control) -> dict[str, Any]:
    return {
        one["id"]: one
        for one in control.state(ADA)["objects"]
        if one["surface"] == "outlook" and one["kind"] == "message" and one["container"] not in SKIPPED
    }


def assert_equal(mirror: Mirror, control: Control) -> None:
    wanted = truth(control)
    messages = {
        one: item for one, item in mirror.documents().items() if item.source_kind == "outlook_message"
    }
    assert set(messages) == set(wanted)
    for external_id, item in messages.items():
        assert item.version == wanted[external_id]["version"]
        assert item.container_id == wanted[external_id]["containerId"]
        assert wanted[external_id]["text"].split("\n")[0] in mirror.text(external_id)


def mail(control: Control, subject: str, text: str = "Some words.", **more: Any) -> str:
    return control.create("message", user=ADA, subject=subject, text=text, **more)["id"]


async def test_all_folders_but_the_skipped(account: Account, msft_control: Control) -> None:
    above = msft_control.create("mailFolder", user=ADA, name="Projects")["id"]
    below = msft_control.create("mailFolder", user=ADA, name="Weir", parentId=above)["id"]
    hidden = mail(msft_control, "spam", folder="junkemail")
    dropped = msft_control.create("mailFolder", user=ADA, name="Old")["id"]
    ids = [
        mail(msft_control, "in the inbox"),
        mail(msft_control, "deep down", folder=below),
        mail(msft_control, "sent", folder="sentitems"),
    ]
    mirror = Mirror(account.surface("outlook"))
    await mirror.sync()
    assert_equal(mirror, msft_control)
    assert set(mirror.documents()) == set(ids)
    assert hidden not in mirror.items
    assert mirror.items[ids[1]].path == "Projects/Weir"
    inside = mail(msft_control, "in a folder that goes", folder=dropped)
    await mirror.sync()
    assert inside in mirror.items
    msft_control.delete(dropped)
    await mirror.sync()
    assert inside not in mirror.items
    msft_control.restore(dropped)
    await mirror.sync()
    assert_equal(mirror, msft_control)
    only = Mirror(account.surface("outlook", mail_skip_folders=["Projects", "sentitems", "junkemail"]))
    await only.sync()
    assert set(only.documents()) == {ids[0], inside}


async def test_a_delta_brings_what_is_new_gone_and_moved(account: Account, msft_control: Control) -> None:
    other = msft_control.create("mailFolder", user=ADA, name="Projects")["id"]
    kept, gone, moved, binned = (mail(msft_control, name) for name in ("kept", "gone", "moved", "binned"))
    mirror = Mirror(account.surface("outlook"))
    await mirror.sync()
    msft_control.delete(gone)
    msft_control.edit(moved, folder=other)
    msft_control.delete(binned, soft=True)
    added = mail(msft_control, "added")
    pages = await mirror.sync()
    assert_equal(mirror, msft_control)
    assert {one.external_id for page in pages for one in page.tombstones} == {gone, moved, binned}
    assert mirror.items[moved].container_id == other
    assert {kept, added, moved} == set(mirror.documents())
    msft_control.restore(gone)
    msft_control.edit(binned, folder="inbox")
    await mirror.sync()
    assert_equal(mirror, msft_control)


async def test_reading_a_mail_changes_no_words(account: Account, msft_control: Control) -> None:
    external_id = mail(msft_control, "news")
    mirror = Mirror(account.surface("outlook"))
    await mirror.sync()
    before = mirror.items[external_id]
    msft_control.edit(external_id, isRead=True)
    await mirror.sync()
    after = mirror.items[external_id]
    assert after.version != before.version
    assert after.parts == before.parts


async def test_a_message_is_its_head_and_its_body_with_locators(
    account: Account, msft_control: Control
) -> None:
    external_id = msft_control.create(
        "message",
        user=ADA,
        subject="The weir",
        html="<p>It holds.</p><blockquote type=cite>Does it hold?</blockquote><img src='https://t.example/p.gif'>",
        **{"from": "grace@demo.example"},
        receivedAt="2026-11-01T08:30:00Z",
    )["id"]
    clock = lambda: datetime(2026, 11, 17, tzinfo=UTC)  # noqa: E731
    mirror = Mirror(account.surface("outlook", clock))
    await mirror.sync()
    parts = mirror.items[external_id].parts or []
    assert [part.locator for part in parts] == [
        {"kind": "mail", "messageId": external_id, "part": "header"},
        {"kind": "mail", "messageId": external_id, "part": "body"},
    ]
    assert parts[0].text.splitlines() == [
        "Subject: The weir",
        "From: Grace Weir <grace@demo.example>",
        "To: Ada Brook <ada@demo.example>",
        "Date: 2026-11-01 08:30 UTC",
    ]
    assert parts[1].text == "It holds."


@pytest.mark.parametrize(("tier", "has_body", "has_file"), [
    ("metadata", False, False), ("snippet", True, False), ("body", True, False), ("attachments", True, True),
])  # fmt: skip
async def test_tiers(
    account: Account, msft_control: Control, tier: str, has_body: bool, has_file: bool
) -> None:
    external_id = mail(
        msft_control, "tiers", "Words of the body.", attachments=[{"name": "a.txt", "text": "of the file"}]
    )
    msft_control.forget_requests()
    mirror = Mirror(account.surface("outlook", mail_tier=tier))
    await mirror.sync()
    assert ("Words of the body." in mirror.text(external_id)) == has_body
    assert any(one.source_kind == "outlook_attachment" for one in mirror.items.values()) == has_file
    asked = [one["query"] for one in msft_control.requests()["requests"] if "/messages/delta" in one["path"]]
    with_body = [",body&" in f"{unquote(query)}&" for query in asked if "bodyPreview" in query]
    assert with_body
    assert set(with_body) == {tier in {"body", "attachments"}}


async def test_attachments_beyond_the_first_page_are_listed_too(
    account: Account, msft_control: Control
) -> None:
    files = [{"name": f"{number}.txt", "text": f"file {number}"} for number in range(203)]
    external_id = mail(msft_control, "many", attachments=files)
    mirror = Mirror(account.surface("outlook", mail_tier="attachments"))
    await mirror.sync()
    hanging = {one.external_id for one in mirror.documents().values() if one.parent_id == external_id}
    assert len(hanging) == 203
    assert set(mirror.items[external_id].children or ()) == hanging
    msft_control.fault("server_error", status=400, code="ErrorInvalidRequest", path=r"attachments.*skiptoken")
    again = Mirror(account.surface("outlook", mail_tier="attachments"))
    pages = await again.sync()
    [failure] = [one for page in pages for one in page.failures]
    assert (failure.external_id, failure.reason) == (f"{external_id}/attachments", "attachments")
    assert again.items[external_id].children is None, "half a list says nothing about what is gone"


async def test_attachments_hang_on_their_message(account: Account, msft_control: Control) -> None:
    attachments = [
        {"name": "plan.txt", "text": "the plan"},
        {"name": "logo.png", "inline": True, "mimeType": "image/png", "text": "x"},
        {"name": "Old mail", "kind": "item", "mimeType": "message/rfc822", "text": "Subject: old\n\nwords"},
        {"name": "in the cloud.docx", "kind": "reference", "text": ""},
        {"name": "large.bin", "text": "x" * 3000},
    ]
    external_id = mail(msft_control, "files", attachments=attachments)
    for number in range(25):
        mail(
            msft_control, f"more {number}", attachments=[{"name": f"{number}.txt", "text": f"file {number}"}]
        )
    msft_control.forget_requests()
    mirror = Mirror(account.surface("outlook", mail_tier="attachments", max_attachment_bytes=2000))
    await mirror.sync()
    requests = msft_control.requests()["byPath"]
    assert not any("attachments" in path for path in requests)  # they come in batches
    found = {one.name: one for one in mirror.items.values() if one.parent_id == external_id}
    assert {name: one.skip for name, one in found.items()} == {
        "plan.txt": None, "Old mail.eml": None, "in the cloud.docx": "unsupported", "large.bin": "too_large"
    }  # fmt: skip
    assert (await mirror.surface.fetch(found["plan.txt"])).data == b"the plan"
    letter = await mirror.surface.fetch(found["Old mail.eml"])
    assert letter.mime_type == "message/rfc822"
    assert b"words" in letter.data
    assert sum(one.source_kind == "outlook_attachment" for one in mirror.documents().values()) == 27
    msft_control.delete(external_id)
    await mirror.sync()
    assert not any(one.parent_id == external_id for one in mirror.items.values())


async def test_throttled_parts_of_a_batch_are_asked_again(account: Account, msft_control: Control) -> None:
    ids = [
        mail(msft_control, f"files {number}", attachments=[{"name": "plan.txt", "text": f"plan {number}"}])
        for number in range(3)
    ]
    mirror = Mirror(account.surface("outlook", mail_tier="attachments"))
    msft_control.fault("batch_throttle", path="attachments", retryAfter=1)
    await mirror.sync()
    assert {one.parent_id for one in mirror.items.values() if one.parent_id} == set(ids)
    assert account.window.closed
    msft_control.fault("batch_throttle", path="attachments", retryAfter=300)
    mirror.relist()
    with pytest.raises(Throttled) as throttled:
        await mirror.sync()
    assert throttled.value.after == 300


async def test_the_window_and_newest_first(account: Account, msft_control: Control) -> None:
    now = datetime.now(UTC)
    ids = {
        days: mail(msft_control, f"{days} days", receivedAt=(now - timedelta(days=days)).isoformat())
        for days in (400, 10, 200, 1)
    }
    mirror = Mirror(account.surface("outlook"))
    pages = await mirror.sync()
    order = [one.external_id for page in pages for one in page.upserts]
    assert order == [ids[1], ids[10], ids[200]]
    short = Mirror(account.surface("outlook", mail_window_days=30))
    await short.sync()
    assert set(short.documents()) == {ids[1], ids[10]}


async def test_a_lost_sync_state_relists_that_folder(account: Account, msft_control: Control) -> None:
    other = msft_control.create("mailFolder", user=ADA, name="Projects")["id"]
    gone, kept = mail(msft_control, "gone"), mail(msft_control, "kept")
    mail(msft_control, "elsewhere", folder=other)
    mirror = Mirror(account.surface("outlook"))
    await mirror.sync()
    inbox = mirror.items[kept].container_id
    msft_control.delete(gone)
    msft_control.fault("cursor_expiry", path=inbox[:30])
    await mirror.sync()
    assert mirror.lost == [inbox]
    assert_equal(mirror, msft_control)
    assert set(mirror.documents()) >= {kept}


@pytest.mark.parametrize("fault", ["empty_page", "repeat_page", "repeat_item"])
async def test_odd_pages(account: Account, msft_control: Control, fault: str) -> None:
    for number in range(60):
        mail(msft_control, f"mail {number}")
    msft_control.fault(fault, path="messages/delta", times=2)
    mirror = Mirror(account.surface("outlook"))
    await mirror.sync()
    assert_equal(mirror, msft_control)


async def test_immutable_ids_are_asked_for_everywhere(account: Account, msft_control: Control) -> None:
    external_id = mail(msft_control, "x", attachments=[{"name": "a.txt", "text": "file"}])
    mirror = Mirror(account.surface("outlook", mail_tier="attachments"))
    await mirror.sync()
    mutable = {one["mutableId"] for one in truth(msft_control).values()}
    assert external_id in mirror.items
    assert not mutable & set(mirror.items)
    other = msft_control.create("mailFolder", user=ADA, name="Projects")["id"]
    msft_control.edit(external_id, folder=other)
    await mirror.sync()
    attachment = next(one for one in mirror.items.values() if one.parent_id == external_id)
    assert (await mirror.surface.fetch(attachment)).data == b"file"


async def test_estimate_and_what_cannot_be_fetched(account: Account, msft_control: Control) -> None:
    external_id = mail(msft_control, "one")
    mail(msft_control, "two")
    surface = account.surface("outlook")
    estimate = await surface.estimate()
    assert estimate.items == 2
    assert not estimate.exact
    mirror = Mirror(surface)
    await mirror.sync()
    with pytest.raises(ItemFailed):
        await surface.fetch(mirror.items[external_id])


async def test_nothing_new_is_one_request_per_folder(account: Account, msft_control: Control) -> None:
    mail(msft_control, "one")
    mirror = Mirror(account.surface("outlook"))
    await mirror.sync()
    folders = sum("messages/delta" in path for path in msft_control.requests()["byPath"])
    msft_control.forget_requests()
    pages = await mirror.sync()
    assert len(pages) == 1
    assert (
        sum(n for path, n in msft_control.requests()["byPath"].items() if "messages/delta" in path) == folders
    )
