"""What counts as a quoted phrase, and for how much."""

import pytest

from gateway.corpus.phrases import MOST_PHRASES, folded, quoted_phrases


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


@pytest.mark.parametrize(
    ("quoted", "written"),
    [
        ("l'écrivain", "L’écrivain"),
        ("fahrt uber die Strasse", "fährt über die\u00a0Straße"),
        ("cafe\u0301 ole", "café olé"),
        ("co-operation", "co\u2011ope\u00adration"),
        ("first flight", "\ufb01rst \ufb02ight"),
        ("bueromoebel geprueft", "Büromöbel geprüft"),
    ],
)
def test_what_reads_the_same_is_the_same_phrase(quoted: str, written: str) -> None:
    assert folded(quoted) == folded(written)


def test_a_query_of_nothing_but_quotations_is_bounded() -> None:
    assert len(quoted_phrases(" ".join(f'"abc{n}"' for n in range(100)), ["en"])) == MOST_PHRASES
