"""Which stemmer a text gets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.corpus.lexical.language import LANGUAGES, SAMPLE_CHARACTERS, detect_language

SAMPLES = {
    "en": "The meeting was moved to Thursday because the auditors need the figures first.",
    "de": "Die Sitzung wurde auf Donnerstag verschoben, weil die Prüfer zuerst die Zahlen brauchen.",
    "fr": "La réunion a été reportée à jeudi parce que les auditeurs ont besoin des chiffres d'abord.",
    "es": "La reunión se ha aplazado al jueves porque los auditores necesitan antes las cifras.",
    "it": "La riunione è stata spostata a giovedì perché i revisori hanno prima bisogno delle cifre.",
    "ja": "監査人がまず数字を必要としているため、会議は木曜日に延期されました。",
    "ru": "Встреча перенесена на четверг, потому что аудиторам сначала нужны цифры.",
}


@pytest.mark.parametrize("language", SAMPLES)
def test_a_sentence_tells_its_language(language: str):
    assert detect_language(SAMPLES[language]) == language


@pytest.mark.parametrize("text", ["", "   ", "12345", "ACME-4711", "x", "🙂", "\x00"])
def test_a_text_that_does_not_tell_counts_as_english(text: str):
    assert detect_language(text) == "en"


def test_only_the_beginning_is_read():
    german = (SAMPLES["de"] + " ") * 40
    assert len(german) > SAMPLE_CHARACTERS
    assert detect_language(german + SAMPLES["ru"] * 10_000) == "de"


@given(st.text())
def test_any_text_has_one_of_our_languages(text: str):
    assert detect_language(text) in LANGUAGES
