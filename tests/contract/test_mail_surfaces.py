"""Gmail and Outlook side by side: the same mail under the same policy leaves the same words, and the same things out."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from connectors.kit.contract import Item
from connectors.sandbox.server import RunningSandbox, start
from tests.contract.google import account as google
from tests.contract.msft import account as msft
from tests.contract.msft.account import Mirror
from tests.fixtures.sandboxes import Control

ADA = "ada@demo.example"
NOW = datetime.now(UTC).replace(microsecond=0)
FOLDERS = {"inbox": "INBOX", "junkemail": "SPAM", "deleteditems": "TRASH", "drafts": "DRAFT"}


@dataclass
class Post:
    """One vendor's mailbox: mail is put into it, and read back as the engine would."""

    vendor: str
    part: str
    control: Control
    account: Any

    def send(self, subject: str, *, days_ago: float = 1, folder: str = "inbox", **fields: Any) -> str:
        at = (NOW - timedelta(days=days_ago)).isoformat()
        common = {"user": ADA, "subject": subject, "from": "Carla Conti <carla@supplier.example>", **fields}
        if self.vendor == "google":
            common |= {"labels": [FOLDERS.get(folder, folder)], "at": at, "to": f"Ada <{ADA}>"}
        else:
            common |= {"folder": folder, "receivedAt": at.replace("+00:00", "Z"), "to": [f"Ada <{ADA}>"]}
        return self.control.create("message", **common)["id"]

    def mirror(self, **policy: Any) -> Mirror:
        return Mirror(self.account.surface(self.part, **policy))

    def bin(self, message: str) -> None:
        if self.vendor == "google":
            self.control.delete(message)
        else:
            self.control.edit(message, folder="deleteditems")

    def put_back(self, message: str) -> None:
        if self.vendor == "google":
            self.control.restore(message)
        else:
            self.control.edit(message, folder="inbox")

    def erase(self, message: str) -> None:
        self.control.delete(message, **({"forGood": True} if self.vendor == "google" else {}))

    def read(self, message: str) -> None:
        """Somebody opens it."""
        if self.vendor == "google":
            self.control.edit(message, labels=["INBOX"])
        else:
            self.control.edit(message, isRead=True)


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[dict[str, RunningSandbox]]:
    running = {name: start(name) for name in ("google", "msft")}
    yield running
    for one in running.values():
        one.stop()


@pytest.fixture
async def posts(sandboxes: dict[str, RunningSandbox]) -> AsyncIterator[dict[str, Post]]:
    made: dict[str, Post] = {}
    for vendor, sandbox in sandboxes.items():
        control = Control(sandbox.control_url)
        control.ask("POST", "/reset", {"seed": "empty"})
        if vendor == "google":
            account: Any = google.Account(sandbox, await google.consent(sandbox, ["gmail"]))
            made[vendor] = Post(vendor, "gmail", control, account)
        else:
            account = msft.Account(sandbox, await msft.consent(sandbox, ADA, "outlook"))
            made[vendor] = Post(vendor, "outlook", control, account)
    yield made
    for post in made.values():
        await post.account.http.aclose()
        post.control.close()


@pytest.fixture(params=["google", "msft"])
def post(request: pytest.FixtureRequest, posts: dict[str, Post]) -> Post:
    return posts[request.param]


# What is written, what of it must be found, what must not.
CLEANING = [
    pytest.param(
        {
            "text": "We agree.\n\nOn Mon, Nov 2, 2026 at 9:14 AM Ben <ben@demo.example> wrote:\n> Is the price final?"
        },
        ["We agree."],
        ["Is the price final"],
        id="reply in English",
    ),
    pytest.param(
        {
            "text": "Einverstanden.\n\nAm 02.11.2026 um 09:14 schrieb Ben <ben@demo.example>:\n> Ist der Preis fest?"
        },
        ["Einverstanden."],
        ["Ist der Preis fest"],
        id="reply in German",
    ),
    pytest.param(
        {
            "text": "D'accord.\n\nLe lun. 2 nov. 2026 à 09:14, Ben <ben@demo.example> a écrit :\n> Le prix est-il fixe ?"
        },
        ["D'accord."],
        ["Le prix est-il fixe"],
        id="reply in French",
    ),
    pytest.param(
        {
            "text": "De acuerdo.\n\nEl lun, 2 nov 2026 a las 9:14, Ben (<ben@demo.example>) escribió:\n> ¿Es fijo el precio?"
        },
        ["De acuerdo."],
        ["Es fijo el precio"],
        id="reply in Spanish",
    ),
    pytest.param(
        {"text": "The sample arrives on Friday.\n\n-- \nCarla Conti\nHead of Sales\n+41 44 000 00 00"},
        ["arrives on Friday"],
        ["Head of Sales"],
        id="signature",
    ),
    pytest.param(
        {
            "html": '<p>The valve is closed.</p><blockquote type="cite">Is the valve closed?</blockquote>'
            '<img src="https://track.example/p.gif" width="1" height="1"><div style="display:none">hidden words</div>'
        },
        ["The valve is closed."],
        ["Is the valve closed", "track.example", "hidden words"],
        id="markup with quote, pixel and hidden text",
    ),
    pytest.param(
        {"html": "<table><tr><td>Pump</td><td>Nord</td></tr></table><p>Druck &auml;ndert sich.</p>"},
        ["Pump", "Nord", "Druck ändert sich."],
        ["<td>", "&auml;"],
        id="table and entities",
    ),
]


def texts(mirror: Mirror, message: str) -> dict[str, str]:
    return {str((part.locator or {})["part"]): part.text for part in mirror.items[message].parts or ()}


@pytest.mark.parametrize(("written", "found", "left_out"), CLEANING)
async def test_the_same_mail_leaves_the_same_words(
    posts: dict[str, Post], written: dict[str, str], found: list[str], left_out: list[str]
) -> None:
    told: dict[str, dict[str, str]] = {}
    for vendor, post in posts.items():
        message = post.send("Offer", **written)
        mirror = post.mirror()
        await mirror.sync()
        told[vendor] = texts(mirror, message)
    assert told["google"] == told["msft"]
    body = told["google"]["body"]
    assert [words for words in found if words not in body] == []
    assert [words for words in left_out if words in body] == []


LONG = "The first words of it. " + "More follows here. " * 60 + "These are the very last words."


@pytest.mark.parametrize(
    ("tier", "head", "first", "last", "files"),
    [
        ("metadata", True, False, False, 0),
        ("snippet", True, True, False, 0),
        ("body", True, True, True, 0),
        ("attachments", True, True, True, 1),
    ],
)
async def test_a_tier_is_as_deep_everywhere(
    post: Post, tier: str, head: bool, first: bool, last: bool, files: int
) -> None:
    message = post.send(
        "Depth", text=LONG, attachments=[{"name": "plan.txt", "mimeType": "text/plain", "text": "the plan"}]
    )
    mirror = post.mirror(mail_tier=tier)
    await mirror.sync()
    text = mirror.text(message)
    assert ("Subject: Depth" in text, "first words" in text, "very last words" in text) == (head, first, last)
    hanging = [item for item in mirror.items.values() if item.parent_id == message]
    assert len(hanging) == files
    for item in hanging:
        assert (await mirror.surface.fetch(item)).data == b"the plan"


async def test_windows_and_folders_leave_the_same_out(post: Post) -> None:
    kept = {post.send("kept", text="x"), post.send("edge", text="x", days_ago=29)}
    for subject, options in {
        "old": {"days_ago": 31},
        "junk": {"folder": "junkemail"},
        "bin": {"folder": "deleteditems"},
        "draft": {"folder": "drafts"},
    }.items():
        post.send(subject, text="x", **options)
    mirror = post.mirror(mail_window_days=30)
    await mirror.sync()
    assert set(mirror.documents()) == kept


async def test_a_default_policy_reads_a_year_of_bodies(post: Post) -> None:
    inside, outside = (
        post.send("inside", text="words", days_ago=360),
        post.send("outside", text="words", days_ago=370),
    )
    mirror = post.mirror()
    await mirror.sync()
    assert set(mirror.documents()) == {inside}
    assert outside not in mirror.documents()
    assert "words" in mirror.text(inside)


async def test_large_attachments_are_named_and_left_out(post: Post) -> None:
    message = post.send(
        "Files",
        text="x",
        attachments=[
            {"name": "small.txt", "mimeType": "text/plain", "text": "x"},
            {"name": "large.txt", "mimeType": "text/plain", "text": "x" * 5000},
        ],
    )
    mirror = post.mirror(mail_tier="attachments", max_attachment_bytes=1000)
    await mirror.sync()
    reasons = {item.name: item.skip for item in mirror.items.values() if item.parent_id == message}
    assert reasons == {"small.txt": None, "large.txt": "too_large"}


async def test_bin_erasure_and_return(post: Post) -> None:
    binned, erased, kept = (
        post.send(name, text=name, attachments=_file()) for name in ("bin", "erase", "keep")
    )
    mirror = post.mirror(mail_tier="attachments")
    await mirror.sync()
    assert len(mirror.documents()) == 6
    post.bin(binned)
    post.erase(erased)
    await mirror.sync()
    assert _messages(mirror) == {kept}
    assert len(mirror.documents()) == 2  # what hung on them went along
    post.put_back(binned)
    await mirror.sync()
    assert _messages(mirror) == {kept, binned}


async def test_reading_a_mail_changes_no_word(post: Post) -> None:
    message = post.send("Read me", text="the same words")
    mirror = post.mirror()
    await mirror.sync()
    before = texts(mirror, message)
    post.read(message)
    await mirror.sync()
    assert texts(mirror, message) == before


async def test_what_ties_a_thread_is_kept(post: Post) -> None:
    message = post.send("Thread", text="x")
    mirror = post.mirror()
    await mirror.sync()
    told = mirror.items[message].metadata
    assert told["internetMessageId"].startswith("<")
    assert told["conversationId"]
    assert told["from"] == "Carla Conti <carla@supplier.example>"


def _file() -> list[dict[str, str]]:
    return [{"name": "file.txt", "mimeType": "text/plain", "text": "file"}]


def _messages(mirror: Mirror) -> set[str]:
    def is_message(item: Item) -> bool:
        return item.source_kind.endswith("_message")

    return {item.external_id for item in mirror.documents().values() if is_message(item)}
