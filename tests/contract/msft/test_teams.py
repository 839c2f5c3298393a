"""Teams against the sandbox: threads as documents, chats, windows, words, and who may see what."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.contract.msft.account import ADA, Account, Mirror
from tests.fixtures.sandboxes import Control

GRACE = "grace@demo.example"


@pytest.fixture
def team(msft_control: Control) -> dict[str, Any]:
    return msft_control.create("team", name="Locks")


def say(control: Control, channel: str, text: str, **more: Any) -> str:
    return control.create("channelMessage", channelId=channel, text=text, **{"from": GRACE, **more})["id"]


async def test_a_thread_is_one_document(
    account: Account, msft_control: Control, team: dict[str, Any]
) -> None:
    root = say(msft_control, team["channelId"], "Does the gate close?", subject="Gate 4")
    reply = say(msft_control, team["channelId"], "It does since noon.", replyTo=root)
    other = say(msft_control, team["channelId"], "Lunch?")
    mirror = Mirror(account.surface("teams"))
    await mirror.sync()
    assert set(mirror.documents()) == {root, other}
    item = mirror.items[root]
    assert item.name == "Gate 4"
    assert mirror.items[other].name == "Lunch?"
    assert [part.locator for part in item.parts or ()] == [
        {"kind": "ticket", "ticketId": root, "commentId": None},
        {"kind": "ticket", "ticketId": root, "commentId": reply},
    ]
    assert "It does since noon." in mirror.text(root)
    assert item.path == "Locks / General"
    assert item.metadata["messages"] == 2


async def test_a_reply_an_edit_and_a_deletion_change_the_thread(
    account: Account, msft_control: Control, team: dict[str, Any]
) -> None:
    root = say(msft_control, team["channelId"], "Does the gate close?")
    silent = say(msft_control, team["channelId"], "To be deleted")
    mirror = Mirror(account.surface("teams"))
    await mirror.sync()
    reply = say(msft_control, team["channelId"], "It does.", replyTo=root)
    await mirror.sync()
    assert "It does." in mirror.text(root)
    msft_control.edit(reply, text="It did, until noon.")
    msft_control.delete(silent)
    await mirror.sync()
    assert "until noon" in mirror.text(root)
    assert "It does." not in mirror.text(root)
    assert set(mirror.documents()) == {root}
    msft_control.delete(root)  # the answers stay
    await mirror.sync()
    assert "Does the gate close?" not in mirror.text(root)
    assert "until noon" in mirror.text(root)
    msft_control.delete(reply)
    await mirror.sync()
    assert mirror.documents() == {}
    msft_control.restore(root)
    await mirror.sync()
    assert "Does the gate close?" in mirror.text(root)


async def test_long_threads_are_read_to_the_end(
    account: Account, msft_control: Control, team: dict[str, Any]
) -> None:
    root = say(msft_control, team["channelId"], "begin")
    for number in range(230):
        say(msft_control, team["channelId"], f"answer {number}.", replyTo=root)
    mirror = Mirror(account.surface("teams"))
    await mirror.sync()
    assert mirror.items[root].metadata["messages"] == 231
    assert "answer 0." in mirror.text(root)
    assert "answer 229." in mirror.text(root)


async def test_a_channel_is_asked_in_its_turn(
    account: Account, msft_control: Control, team: dict[str, Any]
) -> None:
    """Once a second for a channel, four times for its team; every page of the feed and of a long thread's answers."""
    root = say(msft_control, team["channelId"], "begin")
    msft_control.create_many(
        [
            {"kind": "channelMessage", "replyTo": root, "text": f"answer {number}.", "from": GRACE}
            for number in range(230)
        ]
    )
    await Mirror(account.surface("teams")).sync()
    asked = msft_control.requests(path=f"/channels/{team['channelId']}/messages", limit="1")["count"]
    assert asked >= 2
    turns = Counter(account.window.turns)
    assert turns == {(f"msft:{team['channelId']}", 1.0): asked, (f"msft:{team['id']}", 0.25): asked}


async def test_system_messages_and_markup_stay_out(
    account: Account, msft_control: Control, team: dict[str, Any]
) -> None:
    say(msft_control, team["channelId"], "Grace renamed the team", system=True)
    html = "<p>Hello <at id='0'>Ada</at></p><script>x</script>"
    root = say(msft_control, team["channelId"], "", html=html)
    mirror = Mirror(account.surface("teams"))
    await mirror.sync()
    assert set(mirror.documents()) == {root}
    assert "Hello Ada" in mirror.text(root)
    assert "<" not in mirror.text(root)


async def test_chats_where_consent_and_policy_allow(account: Account, msft_control: Control) -> None:
    chat = msft_control.create("chat", members=[ADA, GRACE], topic="Weekend")["id"]
    said = msft_control.create("chatMessage", chatId=chat, text="Boat at ten?", **{"from": GRACE})["id"]
    mirror = Mirror(account.surface("teams"))
    await mirror.sync()
    assert "Boat at ten?" in mirror.text(said)
    assert mirror.items[said].metadata["chat"] == "Weekend"
    quiet = Mirror(account.surface("teams", chats=False), cursor=mirror.cursor)
    quiet.items.update(mirror.items)
    quiet._listing = False
    await quiet.sync()
    assert quiet.documents() == {}


async def test_the_window_and_the_words(
    account: Account, msft_control: Control, team: dict[str, Any]
) -> None:
    gate = say(msft_control, team["channelId"], "The gate is open.")
    lunch = say(msft_control, team["channelId"], "Lunch?")
    words = Mirror(account.surface("teams", chat_keywords=["GATE", "sluice"]))
    await words.sync()
    assert set(words.documents()) == {gate}
    assert words.items[lunch].skip == "filtered"
    later = Mirror(
        account.surface("teams", lambda: datetime.now(UTC) + timedelta(days=100), chat_window_days=90)
    )
    await later.sync()
    assert later.documents() == {}


async def test_who_leaves_a_team_loses_its_threads(
    account: Account, msft_control: Control, team: dict[str, Any]
) -> None:
    root = say(msft_control, team["channelId"], "Members only")
    private = msft_control.create("channel", teamId=team["id"], name="Inner", private=True, members=[ADA])[
        "id"
    ]
    inner = say(msft_control, private, "Ada only")
    mirror = Mirror(account.surface("teams"))
    await mirror.sync()
    assert set(mirror.documents()) == {root, inner}
    msft_control.delete(private)
    await mirror.sync()
    assert set(mirror.documents()) == {root}
    msft_control.edit(team["id"], members=[GRACE])
    await mirror.sync()
    assert mirror.documents() == {}


async def test_a_lost_token_relists_that_channel(
    account: Account, msft_control: Control, team: dict[str, Any]
) -> None:
    gone, kept = say(msft_control, team["channelId"], "gone"), say(msft_control, team["channelId"], "kept")
    mirror = Mirror(account.surface("teams"))
    await mirror.sync()
    msft_control.delete(gone)
    msft_control.fault("cursor_expiry", path="messages/delta")
    await mirror.sync()
    assert set(mirror.documents()) == {kept}
    assert mirror.lost == [f"{team['id']}/{team['channelId']}"]


@pytest.mark.parametrize("fault", ["empty_page", "repeat_page", "repeat_item"])
async def test_odd_pages(account: Account, msft_control: Control, team: dict[str, Any], fault: str) -> None:
    ids = {say(msft_control, team["channelId"], f"thread {number}") for number in range(60)}
    msft_control.fault(fault, path="messages/delta", times=2)
    mirror = Mirror(account.surface("teams"))
    await mirror.sync()
    assert set(mirror.documents()) == ids


async def test_a_large_channel_costs_a_request_per_fifty_threads(
    account: Account, msft_control: Control, team: dict[str, Any]
) -> None:
    for number in range(400):
        say(msft_control, team["channelId"], f"thread {number}")
    msft_control.forget_requests()
    mirror = Mirror(account.surface("teams"))
    pages = await mirror.sync()
    assert len(mirror.documents()) == 400
    assert max(len(page.upserts) for page in pages) <= 50
    assert sum(n for path, n in msft_control.requests()["byPath"].items() if "messages/delta" in path) == 8
    assert msft_control.requests()["total"] <= 12
    assert account.window.turns.count((f"msft:{team['channelId']}", 1.0)) == 8


async def test_an_estimate_names_the_channels(
    account: Account, msft_control: Control, team: dict[str, Any]
) -> None:
    say(msft_control, team["channelId"], "one")
    estimate = await account.surface("teams").estimate()
    assert estimate.items >= 1
    assert "General" in estimate.containers
