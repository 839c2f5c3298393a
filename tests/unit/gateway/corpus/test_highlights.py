"""The words asked for are marked in every form, and a place is said in words."""

from typing import Any

import pytest

from gateway.console.words import Words
from gateway.corpus.highlights import matches, place, wanted_terms


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
    assert [text[low:high] for low, high in matches(text, wanted_terms(query))] == found


@pytest.mark.parametrize(
    ("locator", "words"),
    [
        ({"kind": "pdf", "page": 3}, "page 3"),
        ({"kind": "code", "path": "a.py", "lineStart": 1, "lineEnd": 9, "symbol": "f"}, "a.py:1–9 (f)"),
        ({"kind": "code", "path": "a.py", "lineStart": 1, "lineEnd": 9}, "a.py:1–9"),
        ({"kind": "ticket", "ticketId": "T1"}, "ticket T1"),
        ({"kind": "mail", "messageId": "AAkALgAAAAAAHYQDEapmEc2byACqAC", "part": "body"}, "body"),
        ({"kind": "mail", "part": "1.2"}, "part 1.2"),
        ({"kind": "mail", "messageId": None, "charStart": 5, "charEnd": 9}, "characters 5–9"),
        ({"kind": "office", "charStart": 5, "charEnd": 9}, "characters 5–9"),
        ({"kind": "pdf"}, "characters 0–0"),
        ({"kind": "code", "path": "a.py", "lineStart": 1}, "characters 0–0"),
        ({"kind": "ticket"}, "characters 0–0"),
        ({"kind": "office", "sheet": "Sales", "cellRange": "A1:B2"}, "sheet Sales, cells A1:B2"),
        ({"kind": "text", "charStart": 5, "charEnd": 9}, "characters 5–9"),
        ({"kind": "text", "lineStart": 1, "lineEnd": 12, "charStart": 0, "charEnd": 98}, "lines 1–12"),
        ({"kind": "text", "lineStart": 7, "lineEnd": 7}, "line 7"),
        ({"kind": "text", "cell": 3, "charStart": 5, "charEnd": 9}, "cell 3"),
        ({"kind": "code", "path": "a.ipynb", "cell": 2, "lineStart": 1, "lineEnd": 4}, "cell 2, a.ipynb:1–4"),
        ({"kind": "text", "path": "/shop/item[2]", "charStart": 5, "charEnd": 9}, "/shop/item[2]"),
        ({"kind": "text", "pointer": "/staff/0", "charStart": 5, "charEnd": 9}, "/staff/0"),
        ({"kind": "text", "pointer": "", "charStart": 5, "charEnd": 9}, "characters 5–9"),
        ({}, "characters 0–0"),
        ({"kind": "office", "section": "Bridges", "sectionEnd": "Tunnels"}, "section Bridges – Tunnels"),
        ({"kind": "office", "sectionEnd": "Tunnels"}, "section Tunnels"),
    ],
)
def test_a_place_is_said_in_words(locator: dict[str, Any], words: str) -> None:
    assert place(locator) == words


def test_a_place_is_said_in_the_readers_language() -> None:
    german = Words("de")
    assert place({"kind": "pdf", "page": 3}, german) == "Seite 3"
    assert (
        place({"kind": "office", "sheet": "Sales", "cellRange": "A1:B2"}, german)
        == "Blatt Sales, Zellen A1:B2"
    )
    assert place({"kind": "mail", "part": "body"}, german) == "Text"
    assert place({"kind": "text", "lineStart": 1, "lineEnd": 2}, german) == "Zeilen 1–2"
    assert place({"kind": "text", "lineStart": 2, "lineEnd": 2}, german) == "Zeile 2"
    assert place({"kind": "text", "cell": 3}, german) == "Zelle 3"
    assert place({"charStart": 5, "charEnd": 9}, german) == "Zeichen 5–9"
