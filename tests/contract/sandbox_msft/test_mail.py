"""vendors.md E2–E4 for mail: rounds per folder, two kinds of ids, preferences, attachments."""

from typing import Any

import pytest

from connectors.sandbox.server import RunningSandbox
from tests.contract.sandbox_msft.conftest import Graph
from tests.fixtures.sandboxes import Control

ADA = "ada@demo.example"
IMMUTABLE = {"Prefer": 'IdType="ImmutableId"'}
INBOX = "/me/mailFolders/inbox/messages/delta"


def _subjects(found: list[dict[str, Any]]) -> list[str | None]:
    return [each.get("subject") for each in found]


def _removed(found: list[dict[str, Any]]) -> set[str]:
    return {each["id"] for each in found if each.get("@removed") == {"reason": "deleted"}}


@pytest.fixture
def letters(msft_control: Control) -> list[dict[str, Any]]:
    return [
        msft_control.create(
            "message",
            user=ADA,
            subject=f"Letter {number}",
            text=f"Text {number}",
            receivedAt=f"2026-0{number}-01T00:00:00Z",
        )
        for number in range(1, 6)
    ]


def test_a_round_in_pages_by_preference(graph: Graph, letters: list[dict[str, Any]]) -> None:
    found, _, pages = graph.round(INBOX, Prefer="odata.maxpagesize=2")
    assert (len(found), pages) == (5, 3)


def test_links_change_their_spelling(graph: Graph, letters: list[dict[str, Any]]) -> None:
    page = graph.get(INBOX, Prefer="odata.maxpagesize=2")
    assert "/me/mailFolders('inbox')/messages/delta?$skiptoken=" in page["@odata.nextLink"]
    assert page["@odata.nextLink"].startswith(graph.base)
    _, link, _ = graph.round(page["@odata.nextLink"])
    assert "$deltatoken=" in link


def test_newest_first_within_a_window(graph: Graph, letters: list[dict[str, Any]]) -> None:
    query = "$filter=receivedDateTime+ge+2026-02-15T00:00:00Z&$orderby=receivedDateTime+desc&$select=subject"
    found, _, pages = graph.round(f"{INBOX}?{query}", Prefer="odata.maxpagesize=2")
    assert _subjects(found) == ["Letter 5", "Letter 4", "Letter 3"]
    assert pages == 2
    assert set(found[0]) == {"@odata.type", "@odata.etag", "id", "subject"}


def test_the_window_goes_along_into_later_rounds(
    graph: Graph, msft_control: Control, letters: list[dict[str, Any]]
) -> None:
    _, link, _ = graph.round(f"{INBOX}?$filter=receivedDateTime+ge+2026-02-15T00:00:00Z")
    msft_control.create("message", user=ADA, subject="Too old", receivedAt="2025-01-01T00:00:00Z")
    msft_control.edit(letters[4]["id"], isRead=True)
    found, _, _ = graph.round(link)
    assert _subjects(found) == ["Letter 5"]
    assert found[0]["isRead"] is True


def test_a_move_is_a_removal_here_and_an_arrival_there(
    graph: Graph, msft_control: Control, letters: list[dict[str, Any]]
) -> None:
    _, inbox, _ = graph.round(INBOX, **IMMUTABLE)
    _, archive, _ = graph.round("/me/mailFolders/archive/messages/delta", **IMMUTABLE)
    msft_control.edit(letters[0]["id"], folder="archive")
    assert _removed(graph.round(inbox, **IMMUTABLE)[0]) == {letters[0]["id"]}
    arrived, _, _ = graph.round(archive, **IMMUTABLE)
    assert [each["id"] for each in arrived] == [letters[0]["id"]]


def test_a_mutable_id_does_not_survive_a_move(
    graph: Graph, msft_control: Control, letters: list[dict[str, Any]]
) -> None:
    _, link, _ = graph.round(INBOX)
    moved = msft_control.edit(letters[0]["id"], folder="archive")
    assert moved["mutableId"] != letters[0]["mutableId"]
    assert moved["version"] != letters[0]["version"]
    assert _removed(graph.round(link)[0]) == {letters[0]["mutableId"]}
    assert graph.ask(f"/me/messages/{letters[0]['mutableId']}").status_code == 404
    assert graph.get(f"/me/messages/{letters[0]['id']}", **IMMUTABLE)["id"] == letters[0]["id"]


def test_there_and_back_is_only_a_change(
    graph: Graph, msft_control: Control, letters: list[dict[str, Any]]
) -> None:
    _, link, _ = graph.round(INBOX, **IMMUTABLE)
    msft_control.edit(letters[0]["id"], folder="archive")
    msft_control.edit(letters[0]["id"], folder="inbox")
    found, _, _ = graph.round(link, **IMMUTABLE)
    assert _removed(found) == set()
    assert [each["id"] for each in found] == [letters[0]["id"]]


@pytest.mark.parametrize("soft", [False, True])
def test_a_deletion_is_a_removal_and_can_be_undone(
    graph: Graph, msft_control: Control, letters: list[dict[str, Any]], soft: bool
) -> None:
    _, link, _ = graph.round(INBOX, **IMMUTABLE)
    msft_control.delete(letters[1]["id"], soft=soft)
    found, link, _ = graph.round(link, **IMMUTABLE)
    assert _removed(found) == {letters[1]["id"]}
    inside = graph.get("/me/mailFolders/deleteditems/messages", **IMMUTABLE)["value"]
    assert [each["id"] for each in inside] == ([letters[1]["id"]] if soft else [])
    if not soft:
        msft_control.restore(letters[1]["id"])
        assert [each["id"] for each in graph.round(link, **IMMUTABLE)[0]] == [letters[1]["id"]]


def test_what_changes_during_the_walk_comes_with_the_next_round(
    graph: Graph, msft_control: Control, letters: list[dict[str, Any]]
) -> None:
    page = graph.get(
        f"{INBOX}?$orderby=receivedDateTime+desc", Prefer='odata.maxpagesize=2, IdType="ImmutableId"'
    )
    msft_control.edit(letters[0]["id"], text="edited")
    msft_control.delete(letters[4]["id"])
    msft_control.create("message", user=ADA, subject="New")
    rest, link, _ = graph.round(page["@odata.nextLink"], **IMMUTABLE)
    later, _, _ = graph.round(link, **IMMUTABLE)
    assert _subjects([*page["value"], *rest]) == ["Letter 5", "Letter 4", "Letter 3", "Letter 2"]
    assert _removed(later) == {letters[4]["id"]}
    assert {each.get("subject") for each in later} == {"Letter 1", "New", None}


def test_only_the_asked_kind_of_change(
    graph: Graph, msft_control: Control, letters: list[dict[str, Any]]
) -> None:
    _, link, _ = graph.round(f"{INBOX}?changeType=created")
    msft_control.edit(letters[0]["id"], text="edited")
    msft_control.delete(letters[1]["id"])
    msft_control.create("message", user=ADA, subject="New")
    assert _subjects(graph.round(link)[0]) == ["New"]


def test_a_forgotten_sync_state(graph: Graph, msft_control: Control, letters: list[dict[str, Any]]) -> None:
    page = graph.get(INBOX, Prefer="odata.maxpagesize=2")
    _, link, _ = graph.round(INBOX)
    for path in (page["@odata.nextLink"], link):
        msft_control.fault("cursor_expiry")
        answer = graph.ask(path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (410, "SyncStateNotFound")
    assert len(graph.round(INBOX)[0]) == 5


def test_empty_and_repeated_pages(graph: Graph, msft_control: Control, letters: list[dict[str, Any]]) -> None:
    msft_control.fault("empty_page", path="mailFolders")
    found, _, pages = graph.round(INBOX)
    assert (len(found), pages) == (5, 2)
    msft_control.fault("repeat_page", path="mailFolders")
    assert len(graph.round(INBOX)[0]) == 10


def test_text_when_text_is_preferred(graph: Graph, msft_control: Control) -> None:
    letter = msft_control.create(
        "message", user=ADA, subject="H", html="<p>One &amp; two<br>three</p><script>x()</script>"
    )
    path = f"/me/messages/{letter['mutableId']}"
    assert graph.get(path)["body"]["contentType"] == "html"
    answer = graph.ask(path, Prefer='outlook.body-content-type="text"')
    assert answer.headers["preference-applied"] == 'outlook.body-content-type="text"'
    assert answer.json()["body"] == {"contentType": "text", "content": "One & two\nthree"}


def test_folders_in_pages_levels_and_rounds(graph: Graph, msft_control: Control) -> None:
    parent = msft_control.create("mailFolder", user=ADA, name="Projects")
    child = msft_control.create("mailFolder", user=ADA, name="Süd / <b>", parentId=parent["id"])
    top = graph.get("/me/mailFolders?$top=3")
    assert len(top["value"]) == 3
    assert top["@odata.nextLink"]
    shown = {each["displayName"] for each in graph.get("/me/mailFolders?$top=100")["value"]}
    hidden = {
        each["displayName"]
        for each in graph.get("/me/mailFolders?$top=100&includeHiddenFolders=true")["value"]
    }
    assert hidden - shown == {"Conversation History", "Sync Issues"}
    assert [each["id"] for each in graph.get(f"/me/mailFolders/{parent['id']}/childFolders")["value"]] == [
        child["id"]
    ]
    found, link, _ = graph.round("/me/mailFolders/delta")
    assert {parent["id"], child["id"]} <= {each["id"] for each in found}
    msft_control.delete(child["id"])
    msft_control.edit(parent["id"], name="Renamed")
    later, _, _ = graph.round(link)
    assert _removed(later) == {child["id"]}
    assert "Renamed" in {each.get("displayName") for each in later}
    gone = graph.ask(f"/me/mailFolders/{child['id']}/messages/delta")
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "ErrorItemNotFound")


def test_attachments_of_three_kinds(graph: Graph, msft_control: Control) -> None:
    letter = msft_control.create(
        "message",
        user=ADA,
        subject="Parcels",
        text="see",
        attachments=[
            {"name": "a.txt", "text": "eleven byte"},
            {"name": "note", "kind": "item", "text": "inside", "mimeType": "message/rfc822"},
            {"name": "link", "kind": "reference"},
        ],
    )
    path = f"/me/messages/{letter['mutableId']}/attachments"
    file, item, reference = graph.get(path)["value"]
    assert (file["@odata.type"], file["size"]) == ("#microsoft.graph.fileAttachment", 169)
    assert graph.ask(f"{path}/{file['id']}/$value").content == b"eleven byte"
    assert "item" not in item
    expanded = graph.get(f"{path}/{item['id']}?$expand=microsoft.graph.itemattachment/item")
    assert expanded["item"]["body"]["content"] == "inside"
    assert graph.ask(f"{path}/{reference['id']}/$value").status_code == 405
    assert b"Subject: Parcels" in graph.ask(f"/me/messages/{letter['mutableId']}/$value").content


def test_only_inline_attachments_do_not_count(graph: Graph, msft_control: Control) -> None:
    letter = msft_control.create(
        "message", user=ADA, subject="Logo", attachments=[{"name": "l.gif", "text": "x", "inline": True}]
    )
    assert graph.get(f"/me/messages/{letter['mutableId']}")["hasAttachments"] is False


def test_a_changed_attachment_changes_the_message(graph: Graph, msft_control: Control) -> None:
    letter = msft_control.create(
        "message", user=ADA, subject="P", attachments=[{"name": "a.txt", "text": "x"}]
    )
    changed = msft_control.edit(
        letter["id"],
        removeAttachments=[letter["attachments"][0]["id"]],
        addAttachments=[{"name": "b.txt", "text": "y"}],
    )
    assert changed["version"] != letter["version"]
    value = graph.get(f"/me/messages/{letter['mutableId']}/attachments")["value"]
    assert [each["name"] for each in value] == ["b.txt"]


def test_ids_are_translated(graph: Graph, letters: list[dict[str, Any]]) -> None:
    body = {
        "inputIds": [letters[0]["mutableId"]],
        "sourceIdType": "restId",
        "targetIdType": "restImmutableEntryId",
    }
    answer = graph.post("/me/translateExchangeIds", body)
    assert answer.json()["value"] == [{"sourceId": letters[0]["mutableId"], "targetId": letters[0]["id"]}]


def test_a_mailbox_is_its_owners(msft_sandbox: RunningSandbox, letters: list[dict[str, Any]]) -> None:
    grace = Graph(msft_sandbox, "grace@demo.example")
    assert grace.round(INBOX)[0] == []
    assert grace.ask(f"/me/messages/{letters[0]['mutableId']}").status_code == 404
    assert grace.ask(f"/users/{ADA}/messages").status_code == 403
    assert Graph(msft_sandbox).get(f"/users/{ADA}/messages")["value"]


def test_threads_share_a_conversation(msft_control: Control, graph: Graph) -> None:
    first = msft_control.create("message", user=ADA, subject="A", text="a")
    second = msft_control.create("message", user=ADA, subject="RE: A", text="b", inReplyTo=first["id"])
    assert first["conversationId"] == second["conversationId"]
    assert len({each["internetMessageId"] for each in graph.get("/me/messages")["value"]}) == 2
