"""Cursors and merge patches, for any input."""

from datetime import datetime, timezone
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from gateway.errors import CursorInvalid
from gateway.wire import EndMoment, decode_cursor, encode_cursor, merge

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)
json_objects = st.dictionaries(st.text(max_size=3), json_values, max_size=4)


@given(st.datetimes(timezones=st.just(timezone.utc)), st.uuids())
def test_a_cursor_comes_back_as_it_went(at: datetime, row_id: UUID) -> None:
    cursor = encode_cursor(at, row_id)
    assert decode_cursor(cursor) == (at, row_id)
    assert cursor.isascii()
    assert not set(cursor) & set("+/=&?")


@given(st.text(max_size=60))
def test_any_other_text_is_refused_and_never_crashes(text: str) -> None:
    try:
        at, row_id = decode_cursor(text)
    except CursorInvalid:
        return
    assert encode_cursor(at, row_id)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("2026-11-18", "2026-11-18T23:59:59.999999+00:00"),
        ("2026-11-18T00:00:00", "2026-11-18T00:00:00+00:00"),
        ("2026-11-18T10:00:00+02:00", "2026-11-18T10:00:00+02:00"),
    ],
)
def test_a_period_that_ends_on_a_day_includes_the_day(given: str, meant: str) -> None:
    assert TypeAdapter(EndMoment).validate_python(given).isoformat() == meant


def test_a_day_that_is_none_ends_nothing() -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(EndMoment).validate_python("2026-13-01")


def test_a_cursor_of_our_shape_without_a_time_zone_is_refused() -> None:
    with pytest.raises(CursorInvalid):
        decode_cursor(encode_cursor(datetime(2026, 1, 1), UUID(int=1)))  # noqa: DTZ001 - that is the point


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


@given(json_objects, json_objects)
def test_merging_is_rfc_7396(base: dict[str, Any], patch: dict[str, Any]) -> None:
    merged = merge(base, patch)
    for key, value in patch.items():
        if value is None:
            assert key not in merged
        elif not isinstance(value, dict):
            assert merged[key] == value
        else:
            before = base.get(key)
            assert merged[key] == merge(before if isinstance(before, dict) else {}, value)
    assert {key: merged[key] for key in base.keys() - patch.keys()} == {
        key: base[key] for key in base.keys() - patch.keys()
    }


@given(json_objects)
def test_patching_nothing_yields_the_patch_without_its_nulls(patch: dict[str, Any]) -> None:
    assert merge({}, patch) == _without_nulls(patch)
