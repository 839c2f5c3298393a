"""Outlook calendar against the sandbox: series and their exceptions, the window that moves, what leaves."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.contract.msft.account import ADA, Account, Mirror
from tests.fixtures.sandboxes import Control

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)


def at(days: float) -> str:
    return (NOW + timedelta(days=days)).isoformat()


def event(control: Control, subject: str, days: float = 1, **more: Any) -> str:
    start = NOW + timedelta(days=days)
    fields = {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat(), **more}
    return control.create("event", user=ADA, subject=subject, **fields)["id"]


class Watch:
    """A clock a test can move."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Watch:
    return Watch()


async def test_an_event_is_told_with_time_place_and_people(
    account: Account, msft_control: Control, clock: Watch
) -> None:
    external_id = event(
        msft_control,
        "Weir inspection",
        location="North lock",
        attendees=["grace@demo.example"],
        text="Bring boots.",
    )
    mirror = Mirror(account.surface("outlook_calendar", clock))
    await mirror.sync()
    text = mirror.text(external_id)
    for words in (
        "Weir inspection",
        "2026-11-18 12:00 to 13:00 UTC",
        "North lock",
        "Grace Weir",
        "Bring boots.",
    ):
        assert words in text
    quiet = Mirror(account.surface("outlook_calendar", clock, calendar_attendees=False))
    await quiet.sync()
    assert "Grace Weir" not in quiet.text(external_id)


async def test_a_series_is_one_document_and_its_exceptions_hang_on_it(
    account: Account, msft_control: Control, clock: Watch
) -> None:
    series = event(msft_control, "Standup", recurrence={"pattern": "daily", "count": 10}, text="What now?")
    mirror = Mirror(account.surface("outlook_calendar", clock))
    await mirror.sync()
    assert set(mirror.documents()) == {series}
    assert "daily" in mirror.text(series)
    dates = msft_control.state(ADA)["objects"]
    told = next(one for one in dates if one["id"] == series)
    occurrence = _occurrence(account, series, told)
    msft_control.edit(occurrence, subject="Standup in the boat house")
    await mirror.sync()
    assert set(mirror.documents()) == {series, occurrence}
    assert mirror.items[occurrence].parent_id == series
    assert "boat house" in mirror.text(occurrence)
    msft_control.delete(occurrence)
    await mirror.sync()
    assert set(mirror.documents()) == {series}
    msft_control.delete(series)
    await mirror.sync()
    assert mirror.documents() == {}
    msft_control.restore(series)
    await mirror.sync()
    assert series in mirror.documents()


def _occurrence(account: Account, series: str, _: Any) -> str:
    """The id of the third date, as the sandbox makes it."""
    found = account.sandbox.world.calendars.events[series]  # pyright: ignore[reportAttributeAccessIssue]
    return list(found.occurrences())[2].id


async def test_edits_deletions_and_returns(account: Account, msft_control: Control, clock: Watch) -> None:
    edited, gone = event(msft_control, "edited"), event(msft_control, "gone")
    mirror = Mirror(account.surface("outlook_calendar", clock))
    await mirror.sync()
    msft_control.edit(edited, subject="edited again")
    msft_control.delete(gone)
    added = event(msft_control, "added")
    pages = await mirror.sync()
    assert set(mirror.documents()) == {edited, added}
    assert "edited again" in mirror.text(edited)
    assert not any(page.listing for page in pages)
    msft_control.edit(edited, start=at(900), end=at(900.1))  # out of the window
    await mirror.sync()
    assert set(mirror.documents()) == {added}


async def test_the_window_moves_along(account: Account, msft_control: Control, clock: Watch) -> None:
    past, soon, later = (
        event(msft_control, "past", -28),
        event(msft_control, "soon", 5),
        event(msft_control, "later", 33),
    )
    mirror = Mirror(
        account.surface("outlook_calendar", clock, calendar_past_days=30, calendar_future_days=30)
    )
    await mirror.sync()
    assert set(mirror.documents()) == {past, soon}
    clock.now += timedelta(days=3)  # too little to begin anew
    await mirror.sync()
    assert mirror.lost == []
    clock.now += timedelta(days=5)
    msft_control.delete(soon)
    await mirror.sync()
    assert len(mirror.lost) == 1
    assert set(mirror.documents()) == {later}
    clock.now -= timedelta(days=40)  # a clock that was set back
    await mirror.sync()
    assert set(mirror.documents()) == {past}


async def test_a_lost_sync_state(account: Account, msft_control: Control, clock: Watch) -> None:
    gone, kept = event(msft_control, "gone"), event(msft_control, "kept")
    mirror = Mirror(account.surface("outlook_calendar", clock))
    await mirror.sync()
    msft_control.delete(gone)
    msft_control.fault("cursor_expiry", path="calendarView")
    await mirror.sync()
    assert set(mirror.documents()) == {kept}
    assert len(mirror.lost) == 1


@pytest.mark.parametrize("fault", ["empty_page", "repeat_page", "repeat_item"])
async def test_odd_pages(account: Account, msft_control: Control, clock: Watch, fault: str) -> None:
    ids = {event(msft_control, f"event {number}") for number in range(60)}
    msft_control.fault(fault, path="calendarView", times=2)
    mirror = Mirror(account.surface("outlook_calendar", clock))
    await mirror.sync()
    assert set(mirror.documents()) == ids


async def test_an_estimate_counts_series_once(account: Account, msft_control: Control, clock: Watch) -> None:
    event(msft_control, "one")
    event(msft_control, "series", recurrence={"pattern": "weekly", "count": 5})
    assert (await account.surface("outlook_calendar", clock).estimate()).items == 2
