"""vendors.md E2–E4 for the calendar and Teams."""

from typing import Any

import pytest

from connectors.sandbox.server import RunningSandbox
from tests.contract.sandbox_msft.conftest import Graph
from tests.fixtures.sandboxes import Control

ADA = "ada@demo.example"
VIEW = "/me/calendarView/delta?startDateTime=2026-06-01T00:00:00Z&endDateTime=2026-07-01T00:00:00Z"


def _kinds(found: list[dict[str, Any]]) -> list[str]:
    return sorted("removed" if "@removed" in each else each["type"] for each in found)


@pytest.fixture
def series(msft_control: Control) -> dict[str, Any]:
    return msft_control.create(
        "event",
        user=ADA,
        subject="Weekly",
        text="boots",
        start="2026-06-01T09:00:00Z",
        end="2026-06-01T10:00:00Z",
        recurrence={"pattern": "weekly", "count": 3},
    )


def test_a_series_comes_with_its_dates(graph: Graph, series: dict[str, Any]) -> None:
    found, _, _ = graph.round(VIEW)
    assert _kinds(found) == ["occurrence", "occurrence", "occurrence", "seriesMaster"]
    master = next(each for each in found if each["type"] == "seriesMaster")
    assert master["recurrence"]["pattern"]["type"] == "weekly"
    assert master["start"] == {"dateTime": "2026-06-01T09:00:00.0000000", "timeZone": "UTC"}
    date = next(each for each in found if each["type"] == "occurrence")
    assert date["seriesMasterId"] == series["id"]
    assert "subject" not in date  # an ordinary date says only what differs


def test_a_changed_date_is_an_exception_and_a_cancelled_one_is_removed(
    graph: Graph, msft_control: Control, series: dict[str, Any]
) -> None:
    _, link, _ = graph.round(VIEW)
    dates = series["occurrences"]
    msft_control.edit(
        dates[1]["id"], subject="With the inspector", start="2026-06-08T11:00:00Z", end="2026-06-08T12:00:00Z"
    )
    msft_control.delete(dates[2]["id"])
    found, _, _ = graph.round(link)
    assert _kinds(found) == ["exception", "removed"]
    exception = next(each for each in found if "@removed" not in each)
    assert (exception["id"], exception["subject"]) == (dates[1]["id"], "With the inspector")
    assert exception["start"]["dateTime"].startswith("2026-06-08T11")
    assert {each["id"] for each in found if "@removed" in each} == {dates[2]["id"]}


def test_a_deleted_series_takes_its_dates_along_and_comes_back_with_them(
    graph: Graph, msft_control: Control, series: dict[str, Any]
) -> None:
    _, link, _ = graph.round(VIEW)
    msft_control.delete(series["id"])
    found, link, _ = graph.round(link)
    assert _kinds(found) == ["removed"] * 4
    msft_control.restore(series["id"])
    assert _kinds(graph.round(link)[0]) == ["occurrence", "occurrence", "occurrence", "seriesMaster"]


def test_a_shorter_series_loses_dates(graph: Graph, msft_control: Control, series: dict[str, Any]) -> None:
    _, link, _ = graph.round(VIEW)
    msft_control.edit(series["id"], recurrence={"pattern": "weekly", "count": 1})
    assert _kinds(graph.round(link)[0]) == ["occurrence", "removed", "removed", "seriesMaster"]


def test_what_leaves_the_window_is_removed(graph: Graph, msft_control: Control) -> None:
    event = msft_control.create(
        "event", user=ADA, subject="Once", start="2026-06-10T09:00:00Z", end="2026-06-10T10:00:00Z"
    )
    msft_control.create(
        "event", user=ADA, subject="Other month", start="2026-09-10T09:00:00Z", end="2026-09-10T10:00:00Z"
    )
    found, link, _ = graph.round(VIEW)
    assert [each["subject"] for each in found] == ["Once"]
    msft_control.edit(event["id"], start="2026-08-10T09:00:00Z", end="2026-08-10T10:00:00Z")
    assert _kinds(graph.round(link)[0]) == ["removed"]


def test_a_calendar_round_needs_a_window_and_takes_no_query(graph: Graph) -> None:
    assert graph.ask("/me/calendarView/delta").status_code == 400
    assert graph.ask(f"{VIEW}&$select=subject").status_code == 400


def test_the_calendar_in_pages_and_its_dead_tokens(
    graph: Graph, msft_control: Control, series: dict[str, Any]
) -> None:
    found, link, pages = graph.round(VIEW, Prefer="odata.maxpagesize=1")
    assert (len(found), pages) == (4, 4)
    msft_control.fault("cursor_expiry")
    assert graph.ask(link).json()["error"]["code"] == "SyncStateNotFound"
    calendar = graph.get("/me/calendars")["value"][0]["id"]
    path = VIEW.replace("/me/calendarView", f"/me/calendars/{calendar}/calendarView")
    assert len(graph.round(path)[0]) == 4


# -- Teams


@pytest.fixture
def team(msft_control: Control) -> dict[str, Any]:
    return msft_control.create("team", name="Operations")


def _messages(team: dict[str, Any]) -> str:
    return f"/teams/{team['id']}/channels/{team['channelId']}/messages"


def test_joined_teams_are_mostly_null(graph: Graph, team: dict[str, Any]) -> None:
    shown = graph.get("/me/joinedTeams")["value"][0]
    assert {name for name, value in shown.items() if value is not None} == {
        "id",
        "displayName",
        "isArchived",
        "tenantId",
    }
    channel = graph.get(f"/teams/{team['id']}/channels")["value"][0]
    assert channel["layoutType"] is None
    assert channel["id"].startswith("19:")


def test_channel_ids_raw_and_encoded(graph: Graph, team: dict[str, Any]) -> None:
    encoded = team["channelId"].replace(":", "%3A").replace("@", "%40")
    for channel in (team["channelId"], encoded):
        assert graph.get(f"/teams/{team['id']}/channels/{channel}")["displayName"] == "General"
        assert graph.get(f"/teams('{team['id']}')/channels('{channel}')/messages")["value"] == []


def test_threads_by_their_last_change_in_pages_of_at_most_fifty(
    graph: Graph, msft_control: Control, team: dict[str, Any]
) -> None:
    said = [
        msft_control.create("channelMessage", channelId=team["channelId"], text=f"{number}", **{"from": ADA})
        for number in range(5)
    ]
    msft_control.create("channelMessage", replyTo=said[0]["id"], text="reply", **{"from": ADA})
    first = graph.get(f"{_messages(team)}?$top=3&$expand=replies")
    assert [each["body"]["content"] for each in first["value"]] == ["0", "4", "3"]
    assert [each["body"]["content"] for each in first["value"][0]["replies"]] == ["reply"]
    rest = graph.get(first["@odata.nextLink"])
    assert [each["body"]["content"] for each in rest["value"]] == ["2", "1"]
    assert graph.ask(f"{_messages(team)}?$top=51").status_code == 400


def test_replies_have_a_list_of_their_own(graph: Graph, msft_control: Control, team: dict[str, Any]) -> None:
    root = msft_control.create("channelMessage", channelId=team["channelId"], text="root", **{"from": ADA})
    for number in range(25):
        msft_control.create("channelMessage", replyTo=root["id"], text=f"r{number}", **{"from": ADA})
    page = graph.get(f"{_messages(team)}/{root['id']}/replies")
    assert len(page["value"]) == 20
    assert len(graph.get(page["@odata.nextLink"])["value"]) == 5
    assert page["value"][0]["replyToId"] == root["id"]
    assert len(graph.get(_messages(team))["value"]) == 1


def test_a_channel_round_shows_threads_that_changed(
    graph: Graph, msft_control: Control, team: dict[str, Any]
) -> None:
    root = msft_control.create("channelMessage", channelId=team["channelId"], text="root", **{"from": ADA})
    msft_control.create("channelMessage", channelId=team["channelId"], text="other", **{"from": ADA})
    found, link, _ = graph.round(f"{_messages(team)}/delta?$expand=replies")
    assert len(found) == 2
    reply = msft_control.create(
        "channelMessage", replyTo=root["id"], text="reply", **{"from": "grace@demo.example"}
    )
    found, link, _ = graph.round(link)
    assert [each["id"] for each in found] == [root["id"]]
    assert [each["id"] for each in found[0]["replies"]] == [reply["id"]]
    msft_control.delete(root["id"])
    found, link, _ = graph.round(link)
    assert found[0]["deletedDateTime"]
    assert found[0]["body"]["content"] == ""
    msft_control.fault("cursor_expiry")
    assert graph.ask(link).status_code == 410


def test_a_private_channel_is_its_members(
    msft_sandbox: RunningSandbox, msft_control: Control, team: dict[str, Any]
) -> None:
    msft_control.create("channel", teamId=team["id"], name="Secret", members=["grace@demo.example"])
    ada, grace = Graph(msft_sandbox), Graph(msft_sandbox, "grace@demo.example")
    assert [each["displayName"] for each in ada.get(f"/teams/{team['id']}/channels")["value"]] == ["General"]
    private = grace.get(f"/teams/{team['id']}/channels?$filter=membershipType eq 'private'")["value"]
    assert [each["displayName"] for each in private] == ["Secret"]
    assert ada.ask(f"/teams/{team['id']}/channels/{private[0]['id']}/messages").status_code == 403


def test_whoever_leaves_a_team_loses_its_site_too(
    graph: Graph, msft_control: Control, team: dict[str, Any]
) -> None:
    assert graph.get(f"/teams/{team['id']}/channels/{team['channelId']}/filesFolder")["folder"]
    msft_control.edit(team["id"], members=["grace@demo.example"])
    assert graph.get("/me/joinedTeams")["value"] == []
    assert graph.ask(_messages(team)).status_code == 403
    assert graph.get("/sites?search=*")["value"] == []


def test_chats_and_what_they_do_not_offer(graph: Graph, msft_control: Control) -> None:
    chat = msft_control.create("chat", members=[ADA, "grace@demo.example"], chatType="oneOnOne")
    for number in range(3):
        msft_control.create("chatMessage", chatId=chat["id"], text=f"{number}", **{"from": ADA})
    assert [each["id"] for each in graph.get("/me/chats?$expand=members")["value"]] == [chat["id"]]
    path = f"/chats/{chat['id']}/messages"
    assert [each["body"]["content"] for each in graph.get(f"{path}?$top=2")["value"]] == ["2", "1"]
    found, link, _ = graph.round(f"{path}/delta")
    assert len(found) == 3
    assert graph.round(link)[0] == []
    answer = graph.ask("/me/chats/getAllMessages/delta")
    assert (answer.status_code, answer.json()["error"]["code"]) == (412, "PreconditionFailed")


def test_system_messages_have_no_author(graph: Graph, msft_control: Control, team: dict[str, Any]) -> None:
    msft_control.create("channelMessage", channelId=team["channelId"], text="", system=True)
    shown = graph.get(_messages(team))["value"][0]
    assert shown["from"] is None
    assert shown["messageType"] == "unknownFutureValue"


def test_a_large_channel_is_walked_whole(graph: Graph, msft_control: Control, team: dict[str, Any]) -> None:
    said = [
        {"kind": "channelMessage", "channelId": team["channelId"], "text": f"{n}", "from": ADA}
        for n in range(2000)
    ]
    msft_control.create_many(said)
    found, _, pages = graph.round(f"{_messages(team)}/delta?$top=50")
    assert (len({each["id"] for each in found}), pages) == (2000, 40)
