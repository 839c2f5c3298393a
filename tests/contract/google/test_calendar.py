"""Google Calendar as the engine sees it: series, exceptions, windows and tokens that expire."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from connectors.kit.contract import CursorLost
from connectors.registry import Workplace, surface
from tests.contract.google.account import Account, text_of, walk

ZONE = "Europe/Zurich"
NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)


def span(days: float, hours: float = 1) -> dict[str, Any]:
    start = NOON + timedelta(days=days)
    return {
        "start": {"dateTime": start.isoformat(), "timeZone": ZONE},
        "end": {"dateTime": (start + timedelta(hours=hours)).isoformat(), "timeZone": ZONE},
    }


async def test_an_event_is_told_in_words(ada: Account) -> None:
    made = ada.create(
        "event",
        name="Review",
        text="<p>Bring the <b>second</b> sample.</p><p>And coffee.</p>",
        location="Room 4",
        attendees=[{"email": "ben@demo.example", "displayName": "Ben Brook"}],
        **span(1),
    )
    board = ada.surface("google_calendar")
    found = await walk(board)
    text = await text_of(board, found.items[made])
    for words in ("Review", "Room 4", "Ben Brook", "second", "coffee", ZONE):
        assert words in text
    assert "<" not in text
    quiet = ada.surface("google_calendar", calendar_attendees=False)
    assert "Ben Brook" not in await text_of(quiet, (await walk(quiet)).items[made])
    assert (await board.fetch(found.items[made])).data.decode() == text


async def test_a_series_is_one_item_and_exceptions_hang_on_it(ada: Account) -> None:
    series = ada.create("event", name="Weekly", recurrence=["RRULE:FREQ=WEEKLY;COUNT=5"], **span(1))
    second = (NOON + timedelta(days=8)).isoformat()
    moved = ada.create(
        "event",
        name="Weekly, moved",
        seriesId=series.rpartition("/")[2],
        originalStart={"dateTime": second, "timeZone": ZONE},
        **span(9),
    )
    before = await walk(ada.surface("google_calendar"))
    assert set(before.items) == {series, moved}
    assert before.items[moved].parent_id == series
    assert "FREQ=WEEKLY" in (before.items[series].parts or [])[0].text
    ada.delete(moved)
    cut = await walk(ada.surface("google_calendar"), before.cursor)
    assert set(cut.gone) == {moved}
    again = await walk(ada.surface("google_calendar"))
    assert set(again.items) == {series}
    assert set(again.gone) == {moved}  # told in a listing too, as long as the series lives
    ada.delete(series)
    ended = await walk(ada.surface("google_calendar"), again.cursor)
    assert series in ended.gone


async def test_deltas_bring_edits_cancellations_and_what_came_back(ada: Account) -> None:
    one, two = ada.create("event", name="one", **span(1)), ada.create("event", name="two", **span(2))
    before = await walk(ada.surface("google_calendar"))
    assert not (await walk(ada.surface("google_calendar"), before.cursor)).items
    ada.edit(one, text="new words")
    ada.delete(two)
    after = await walk(ada.surface("google_calendar"), before.cursor)
    assert set(after.items) == {one}
    assert after.items[one].version != before.items[one].version
    assert set(after.gone) == {two}
    ada.restore(two)
    assert set((await walk(ada.surface("google_calendar"), after.cursor)).items) == {two}


async def test_the_window_decides(ada: Account) -> None:
    inside = ada.create("event", name="inside", **span(1))
    ada.create("event", name="past", **span(-40))
    future = ada.create("event", name="future", **span(400))
    options = {"calendar_past_days": 30, "calendar_future_days": 100}
    found = await walk(ada.surface("google_calendar", **options))
    assert set(found.documents) == {inside}
    assert found.items[future].skip == "outside_window"
    ada.edit(inside, **span(-50))
    moved = await walk(ada.surface("google_calendar", **options), found.cursor)
    assert moved.items[inside].skip == "outside_window"


async def test_a_window_that_moved_on_is_listed_again(ada: Account) -> None:
    event = ada.create("event", name="in a while", **span(110))
    place = ada.workplace(calendar_future_days=100)
    before = await walk(surface("google", "google_calendar", place))
    assert before.items[event].skip == "outside_window"
    later = Workplace(**{**place.__dict__, "clock": lambda: datetime.now(UTC) + timedelta(days=31)})
    with pytest.raises(CursorLost) as lost:
        await walk(surface("google", "google_calendar", later), before.cursor)
    relisted = await walk(surface("google", "google_calendar", later), lost.value.cursor)
    assert relisted.items[event].skip is None


async def test_an_expired_token_lists_that_calendar_alone(ada: Account) -> None:
    team = ada.create("calendar", name="Team")
    mine, theirs = (
        ada.create("event", name="mine", **span(1)),
        ada.create("event", name="theirs", calendarId=team, **span(2)),
    )
    before = await walk(ada.surface("google_calendar"))
    assert set(before.items) == {mine, theirs}
    assert before.complete == {"ada@demo.example", team}
    ada.fault("cursor_expiry", path=r"group\.calendar")
    with pytest.raises(CursorLost) as lost:
        await walk(ada.surface("google_calendar"), before.cursor)
    assert lost.value.container_id == team
    relisted = await walk(ada.surface("google_calendar"), lost.value.cursor)
    assert relisted.complete == {team}
    assert set(relisted.items) == {theirs}


async def test_calendars_come_go_and_fail_by_themselves(ada: Account) -> None:
    mine = ada.create("event", name="mine", **span(1))
    team = ada.create("calendar", name="Team")
    theirs = ada.create("event", name="theirs", calendarId=team, **span(2))
    ada.create("calendar", name="Busy only", accessRole="freeBusyReader")
    ada.fault("forbid_container", path=r"^c_", times=None)
    found = await walk(ada.surface("google_calendar"))
    assert (set(found.items), found.failed) == ({mine}, {team})
    assert found.complete == {"ada@demo.example"}
    ada.reset()
    mine = ada.create("event", name="mine", **span(1))
    before = await walk(ada.surface("google_calendar"))
    team = ada.create("calendar", name="Team")
    theirs = ada.create("event", name="theirs", calendarId=team, **span(2))
    after = await walk(ada.surface("google_calendar"), before.cursor)
    assert set(after.items) == {theirs}
    ada.delete(team)
    assert (await walk(ada.surface("google_calendar"), after.cursor)).left == {team}


@pytest.mark.parametrize("first", [True, False], ids=["listed", "changed"])
async def test_an_event_nobody_can_read_costs_itself(ada: Account, first: bool) -> None:
    before = None if first else (await walk(ada.surface("google_calendar"))).cursor
    odd = ada.create(
        "event",
        name="odd",
        start={"dateTime": "0000-12-30T10:00:00Z"},
        end={"dateTime": "0000-12-30T11:00:00Z"},
    )
    good = ada.create("event", name="good", **span(1))
    found = await walk(ada.surface("google_calendar"), before)
    assert set(found.items) == {good}
    assert [
        (one.external_id, one.name, one.reason, one.detail) for page in found.pages for one in page.failures
    ] == [(odd, "odd", "unreadable", "ValueError")]
    assert (found.failed, found.gone) == (set(), {})


async def test_calendars_nobody_may_list_any_more_are_asked_themselves(ada: Account) -> None:
    ada.create("event", name="mine", **span(1))
    before = await walk(ada.surface("google_calendar"))
    ada.fault("refuse", path="calendarList", status=403, reason="insufficientPermissions")
    after = await walk(ada.surface("google_calendar"), before.cursor)
    assert after.left == set()


@pytest.mark.parametrize("kind", ["empty_page", "repeat_page"])
async def test_strange_pages_lose_nothing(ada: Account, kind: str) -> None:
    one = ada.create("event", name="one", **span(1))
    ada.fault(kind, path="/events")
    before = await walk(ada.surface("google_calendar"))
    assert set(before.items) == {one}
    two = ada.create("event", name="two", **span(1))
    ada.fault(kind, path="/events")
    assert two in (await walk(ada.surface("google_calendar"), before.cursor)).items


async def test_a_whole_day_has_no_hour(ada: Account) -> None:
    day = NOON + timedelta(days=3)
    made = ada.create(
        "event",
        name="Fair",
        start={"date": f"{day:%Y-%m-%d}"},
        end={"date": f"{day + timedelta(days=2):%Y-%m-%d}"},
    )
    board = ada.surface("google_calendar")
    text = await text_of(board, (await walk(board)).items[made])
    assert f"{day:%Y-%m-%d}" in text
    assert ":00" not in text
    assert (await board.estimate()).items == 1
