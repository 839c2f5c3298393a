"""Spans, windows and keyed placeholders."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway.corpus.masking import (
    PLACEHOLDER,
    Span,
    as_seen,
    lowered,
    placeholder_key,
    positions,
    settle,
    value_tag,
    windows,
)

RANKS = {"sure": 0, "vague": 1}


def test_a_tag_depends_on_the_value_and_on_the_mandate_and_on_nothing_else():
    one, other = placeholder_key("key", "mandate-1"), placeholder_key("key", "mandate-2")
    assert value_tag(one, "hunter2") == value_tag(one, "hunter2")
    assert value_tag(one, "hunter2") != value_tag(one, "hunter3")
    assert value_tag(one, "hunter2") != value_tag(other, "hunter2")
    assert one != placeholder_key("another key", "mandate-1")
    assert PLACEHOLDER.fullmatch(f"[secret:password:{value_tag(one, 'x')}]")
    assert PLACEHOLDER.fullmatch(f"[email:{value_tag(one, 'x')}]")


@given(st.text())
def test_lower_case_keeps_every_character_at_its_place(text: str):
    assert len(lowered(text)) == len(text)


@given(st.lists(st.integers(0, 300)), st.integers(0, 20), st.integers(1, 20))
def test_windows_cover_every_position_and_never_overlap(at: list[int], before: int, after: int):
    found = list(windows(sorted(at), before=before, after=after, length=320))
    for position in at:
        assert any(start <= max(0, position - before) and position + after <= end for start, end in found)
    assert all(left[1] < right[0] for left, right in pairwise(found))


def test_positions_of_several_needles_come_in_order():
    assert positions("abcab", ("b", "ab")) == [0, 1, 3, 4]


def test_signs_nobody_sees_are_looked_over_and_places_stay_right():
    def words(text: str) -> list[Span]:
        return [Span(text.index("word"), text.index("word") + 4, "sure")] if "word" in text else []

    for text, value in (("a word", "word"), ("\ufeffa w\u00ador\u200bd\u2060.", "w\u00ador\u200bd")):
        (span,) = as_seen(text, words)
        assert text[span.start : span.end] == value
    assert as_seen("\u00ad", words) == []


def test_overlapping_spans_become_one_of_the_surer_kind():
    text = "x" * 40
    spans = [Span(10, 20, "vague"), Span(15, 25, "sure"), Span(30, 35, "vague")]
    assert settle(text, spans, RANKS)[0] == Span(10, 25, "sure")
    assert [(s.start, s.end) for s in settle(text, spans, RANKS)] == [(10, 25), (30, 35)]


def test_the_same_value_has_one_kind_wherever_it_stands():
    text = "aaaa bbbb aaaa"
    spans = [Span(0, 4, "vague"), Span(10, 14, "sure")]
    assert {span.kind for span in settle(text, spans, RANKS)} == {"sure"}


def test_a_placeholder_is_no_finding_and_what_follows_its_words_neither():
    text = "password: [secret:password:0a1b2c3d] and more"
    inside = text.index("0a1b")
    assert settle(text, [Span(10, 36, "sure"), Span(inside, 45, "sure")], RANKS) == []
