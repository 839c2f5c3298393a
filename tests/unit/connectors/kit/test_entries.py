"""What cannot be read as an item is named, and takes nothing along."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from connectors.kit.contract import Item, ItemFailed, VendorUnavailable
from connectors.kit.entries import Entries

LAST = datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-12)))


def item(name: str, at: datetime | None = None) -> Item:
    return Item(external_id=name, source_kind="upload", name=name, container_id="a", modified_at=at)


@pytest.mark.parametrize(
    ("odd", "detail"),
    [
        (lambda: datetime.fromisoformat("0000-12-30T10:00:00Z"), "ValueError"),
        (lambda: datetime(1, 1, 1, tzinfo=UTC) - timedelta(days=1), "OverflowError"),
        (lambda: datetime.fromtimestamp(10**14, UTC), "ValueError"),
        (lambda: {}["id"], "KeyError"),
        (lambda: "text".get("name"), "AttributeError"),  # pyright: ignore[reportAttributeAccessIssue]
        (lambda: int({}), "TypeError"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_an_odd_one_is_a_failure_and_the_rest_goes_on(odd, detail: str) -> None:
    found = Entries("a")
    for name in ("first", "odd", "last"):
        with found.reading(name, f"the {name}"):
            if name == "odd":
                odd()
            found.add(item(name))
    assert [one.external_id for one in found.items] == ["first", "last"]
    [failure] = found.failures
    assert (failure.external_id, failure.name, failure.container_id) == ("odd", "the odd", "a")
    assert (failure.reason, failure.detail) == ("unreadable", detail)


def test_what_is_refused_beside_it_is_its_failure() -> None:
    found = Entries("a")
    with found.reading("one", "the one"):
        raise ItemFailed("admin_policy", "403")
    [failure] = found.failures
    assert (failure.external_id, failure.reason, failure.detail) == ("one", "admin_policy", "403")


def test_a_time_no_clock_in_utc_shows_could_not_be_stored() -> None:
    found = Entries("a")
    with found.reading("late"):
        found.add(item("late", LAST))
    assert (found.items, [one.detail for one in found.failures]) == ([], ["OverflowError"])


def test_what_the_vendor_does_not_answer_is_nobodys_oddness() -> None:
    found = Entries("a")
    with pytest.raises(VendorUnavailable), found.reading("one"):
        raise VendorUnavailable("503")
    assert found.failures == []
