"""What `catchment search` shows: the words that matched, the place of a passage, and nothing a document could smuggle in."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.commands.search import SHOWN_CHARACTERS, coloured, matches, place
from gateway.corpus.boundary import escape
from gateway.corpus.lexical.terms import query_terms


def terms(query: str) -> set[str]:
    return {term for group in query_terms(query, ("en", "de", "fr", "es")) for term in group}


@pytest.mark.parametrize(
    ("query", "text", "found"),
    [
        ("refund", "Refunds were refunded; a fund was not.", ["Refunds", "refunded"]),
        ("Häuser", "Das Haus und die Häuser.", ["Haus", "Häuser"]),
        ("ACME-4711-X", "The ACME-4711-X is here.", ["ACME-4711-X"]),
        ("the", "There is the thing.", ["the"]),
        ("nothing", "There is something.", []),
    ],
)
def test_words_are_marked_in_every_form(query: str, text: str, found: list[str]) -> None:
    assert [text[low:high] for low, high in matches(text, terms(query))] == found


@given(text=st.text(max_size=2000), query=st.text(min_size=1, max_size=50))
def test_what_is_coloured_is_what_matched_and_no_more_is_shown_than_fits(text: str, query: str) -> None:
    text, wanted = escape(text), terms(query)
    shown = coloured(text, wanted)
    words = {text[low:high] for low, high in matches(text, wanted)}
    assert {shown.plain[span.start : span.end] for span in shown.spans} <= words
    assert len(shown.plain) <= SHOWN_CHARACTERS + 5


def test_a_match_far_down_is_shown() -> None:
    shown = coloured("x " * 2000 + "needle in the haystack", terms("needle"))
    assert "needle" in shown.plain
    assert shown.plain.startswith("   …")


@pytest.mark.parametrize(
    ("locator", "words"),
    [
        ({"kind": "pdf", "page": 3}, "page 3"),
        ({"kind": "code", "path": "a.py", "lineStart": 1, "lineEnd": 9, "symbol": "f"}, "a.py:1–9 (f)"),
        ({"kind": "code", "path": "a.py", "lineStart": 1, "lineEnd": 9}, "a.py:1–9"),
        ({"kind": "ticket", "ticketId": "T1"}, "ticket T1"),
        ({"kind": "mail", "messageId": "<m>"}, "message <m>"),
        ({"kind": "office", "sheet": "Sales", "cellRange": "A1:B2"}, "sheet Sales, cellRange A1:B2"),
        ({"kind": "text", "charStart": 5, "charEnd": 9}, "characters 5–9"),
        ({}, "characters 0–0"),
    ],
)
def test_a_place_is_said_in_words(locator: dict[str, Any], words: str) -> None:
    assert place(locator) == words
