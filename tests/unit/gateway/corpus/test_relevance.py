"""Whether a passage is about a question: by the model's own scale, or by the words they share."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.corpus.embedders import embedding_model
from gateway.corpus.relevance import LEAST_SIMILARITY, Question, least_similarity, share


def test_the_default_embedder_has_a_measured_floor() -> None:
    assert embedding_model("wordllama") in LEAST_SIMILARITY


def test_a_model_nobody_measured_hides_nothing_and_one_without_meaning_everything() -> None:
    assert least_similarity("some-new-model@1") <= -1
    assert least_similarity("lookup-64@1") == math.inf


@pytest.mark.parametrize(
    ("question", "passage", "language", "about"),
    [
        ("how long do refunds take", "A refund takes long.", "en", True),
        ("how long do refunds take", "The canteen has soup.", "en", False),
        ("refund period for customers abroad in winter", "Refund period: none.", "en", False),  # two of five
        ("warranty our customers get on the ACME-4711-X machine", "ACME-4711-X: 36 months", "en", True),
        ("How do I reset my SSO?", "SSO reset: press the red button.", "en", True),
        ("How do I reset my SSO?", "How do I get my lunch?", "en", False),
        (
            "Wo finde ich unsere Kündigungsfrist?",
            "Die Kündigungsfrist: drei Monate.",
            "de",
            False,
        ),  # one of two
        ("Wie lautet unsere Kündigungsfrist?", "Die Kündigungsfrist: drei Monate.", "de", True),
        ("Was ist unsere Kündigungsfrist?", "Die Kündigungsfrist: drei Monate.", "de", True),
        ("Quel est notre délai de préavis ?", "Délai de préavis : trois mois.", "fr", True),
        ("¿Cuál es nuestro plazo de preaviso?", "Plazo de preaviso: tres meses.", "es", True),
        ("who are you", "Who are you?", "en", True),
        ("wie lange dauern Rückzahlungen", "Die Rückzahlung dauert lange.", "de", True),
        ("what did ada@example.org write", "From: ada@example.org", "en", True),
        ("the of and", "the of and", "en", True),
    ],
)
def test_words_decide(question: str, passage: str, language: str, about: bool) -> None:
    assert Question(question).shares_words(passage, language) is about


@given(st.lists(st.lists(st.text(min_size=1), min_size=1)), st.sets(st.text()))
def test_a_share_lies_between_nothing_and_everything(groups: list[list[str]], held: set[str]) -> None:
    found = share(groups, held)
    assert 0 <= found <= 1
    assert share(groups, held | {term for group in groups for term in group}) == (1 if groups else 0)


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_can_be_asked_about_any_other(question: str, passage: str) -> None:
    assert Question(question).shares_words(passage, "en") in {True, False}
