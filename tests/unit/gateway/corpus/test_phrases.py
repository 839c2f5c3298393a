"""What counts as a quoted phrase, and for how much."""

import pytest

from gateway.corpus.phrases import folded, quoted_phrases


@pytest.mark.parametrize(
    ("query", "phrases"),
    [
        ('"net thirty days"', [("net thirty days", 1.0)]),
        ('invoice "net thirty days"', [("net thirty days", 0.75)]),
        ("„zahlbar sofort“ netto", [("zahlbar sofort", pytest.approx(2 / 3))]),
        ("«à payer»", [("à payer", 1.0)]),
        ("“twice” “twice”", [("twice", 0.5)]),
        ("it's 5\" wide", []),
        ('an "unfinished', []),
        ('""', []),
        ('"   "', []),
        ("plain words", []),
    ],
)
def test_quoted_words_are_found_with_their_share_of_the_query(
    query: str, phrases: list[tuple[str, float]]
) -> None:
    assert [(phrase.text, phrase.share) for phrase in quoted_phrases(query, ["en"])] == phrases


def test_line_breaks_and_case_do_not_break_a_phrase() -> None:
    assert folded("Net  Thirty\nDAYS") == "net thirty days"
