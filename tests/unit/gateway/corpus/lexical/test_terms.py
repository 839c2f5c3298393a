"""What a text can be found by."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.corpus.lexical.spellings import code_written_otherwise, umlauts_spelled_otherwise
from gateway.corpus.lexical.terms import (
    MAX_QUERY_GROUPS,
    MAX_TERM_CHARACTERS,
    MAX_TERMS,
    count_terms,
    query_terms,
)

LANGUAGES = ["en", "de", "fr", "es", "ru", "zh", "xx"]


@pytest.mark.parametrize(
    ("text", "whole", "parts"),
    [
        ("ACME-4711-X", "=acme-4711-x", {"acm", "4711"}),
        ("foo_bar.baz", "=foo_bar.baz", {"foo", "bar", "baz"}),
        ("a.b@example.org", "=a.b@example.org", {"exampl", "org"}),
        ("v2.3.1", "=v2.3.1", {"v2"}),
        ("2024-05-01", "=2024-05-01", {"2024", "05", "01"}),
        ("C++", "=c++", {"c"}),
        ("C#", "=c#", {"c"}),
        ("R&D", "=r&d", set()),
        ("x-y", "=x-y", set()),
    ],
)
def test_identifiers_are_found_whole_and_by_their_parts(text: str, whole: str, parts: set[str]):
    terms = count_terms(f"We ordered ({text}), again.", "en")
    assert terms[whole] == 1
    assert parts <= terms.keys()
    assert any(group[0] == whole for group in query_terms(text, ["en"]))


@pytest.mark.parametrize("typed", ["ACME-4711-X", "acme-4711-x", "Acme-4711-x"])
def test_a_product_code_is_found_however_it_is_typed(typed: str):
    assert any("=acme-4711-x" in group for group in query_terms(typed, ["en"]))


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("PX900", "PX-900"),
        ("px-900", "PX900"),
        ("ww4711b", "WW-4711-B"),
        ("E1048", "E-1048:"),
        ("SK_900_V2", "sk900v2"),
        ("12480,50", "12.480,50 EUR"),
        ("12.480", "12480"),
        ("67891", "CHF 67'891 in total"),
        ("67891", "CHF 67’891.50 in total"),
        ("91234", "91\u202f234 euros"),
        ("34567", "34,567 units"),
        ("34,567", "34567 units"),
        ("34'567", "34.567 Stück"),
        ("1234567", "1,234,567.89 dollars"),
    ],
)
def test_a_code_or_number_is_found_with_and_without_what_ties_its_parts(typed: str, written: str):
    assert not count_terms(written, "en").keys().isdisjoint(query_terms(typed, ["en"])[0])


@pytest.mark.parametrize(
    ("typed", "written"),
    [("Krueger", "Krüger"), ("Krüger", "Krueger"), ("KRÜGER", "krueger"), ("Oezdemir", "Özdemir")],
)
def test_a_name_is_found_with_umlauts_and_with_two_letters_for_them_in_any_text(typed: str, written: str):
    """Names keep their spelling in texts of other languages, where no German stemmer makes them alike."""
    for language in ("en", "de", "fr"):
        (group,) = query_terms(typed, ["en", "de", "fr"])
        assert not count_terms(written, language).keys().isdisjoint(group)


def test_a_decimal_a_date_and_a_year_are_no_codes():
    for number in ("15.4", "2026-02-11", "1979"):
        assert code_written_otherwise(number) == ()


def test_two_letters_that_are_no_umlaut_stay_two_letters():
    for word in ("neue", "Bauer", "Quelle"):
        assert umlauts_spelled_otherwise(word) == ()


def test_camel_case_names_are_found_joined_and_by_their_words():
    terms = count_terms("parseHttpResponse HTTPServer", "en")
    assert {"parsehttprespons", "pars", "http", "respons", "httpserver", "server"} == terms.keys()
    assert terms["http"] == 2


def test_a_hyphen_between_plain_words_is_only_spelling():
    assert count_terms("high-speed", "en") == count_terms("high speed", "en")


def test_the_letter_beside_an_apostrophe_is_grammar():
    assert count_terms("l'homme d’affaires", "fr") == {"homm": 1, "affair": 1}
    assert count_terms("the aircraft's wing", "en") == {"~the": 1, "aircraft": 1, "wing": 1}


@pytest.mark.parametrize(
    ("one", "other", "language"),
    [
        ("running", "runs", "en"),
        ("Verträge", "Vertrag", "de"),
        ("Müller", "Mueller", "de"),
        ("STRASSE", "Straße", "de"),
        ("résumé", "resume", "en"),
        ("élèves", "eleve", "fr"),
        ("œuvres", "oeuvre", "fr"),
        ("Ærø", "aero", "da"),
        ("Łódź", "lodz", "pl"),
        ("canción", "canciones", "es"),
        ("книги", "книга", "ru"),
        ("ﬁle", "file", "en"),
        ("co\u00adoperate", "cooperate", "en"),
    ],
)
def test_forms_of_one_word_share_a_term(one: str, other: str, language: str):
    assert count_terms(one, language).keys() == count_terms(other, language).keys()


def test_scripts_without_spaces_are_found_by_pairs_and_by_a_single_character():
    terms = count_terms("東京タワー。", "ja")
    assert {"東京", "京タ", "タワ", "ワー", "=東"} <= terms.keys()
    assert query_terms("東京", ["ja"]) == [("東京",)]
    assert query_terms("東", ["ja"]) == [("=東",)]


def test_mixed_scripts_are_taken_apart():
    assert {"iphon", "手机"} <= count_terms("iPhone手机", "en").keys()


def test_vowel_signs_do_not_split_words():
    assert list(count_terms("हिन्दी भाषा", "xx")) == ["हिन्दी", "भाषा"]


def test_function_words_are_dropped_from_a_query_that_has_others():
    assert query_terms("the cost of the wing", ["en"]) == [("cost",), ("wing",)]


def test_a_query_of_function_words_looks_for_them():
    assert query_terms("to be or not to be", ["en"]) == [
        ("~to",),
        ("~be",),
        ("~or",),
        ("~not",),
        ("~to",),
        ("~be",),
    ]


def test_function_words_of_any_of_the_languages_are_dropped():
    assert query_terms("the cost of wings", ["de", "en", "fr"]) == query_terms(
        "cost wings", ["de", "en", "fr"]
    )
    assert query_terms("das Haus", ["en", "de"]) == query_terms("Haus", ["en", "de"])


def test_a_function_word_that_means_something_in_another_language_stays_as_one_group():
    assert query_terms("die casting", ["en", "de"])[0] == ("die", "~die")
    assert query_terms("die Verträge", ["de"]) == query_terms("Verträge", ["de"])


def test_a_word_stemmed_differently_by_two_languages_is_one_group():
    assert query_terms("meeting", ["en", "de", "en"]) == [("meet", "meeting")]
    assert query_terms("wind", ["en", "de"]) == [("wind",)]


@pytest.mark.parametrize("query", ["", "  ", "?!…—", "___", "🙂", "\x00", "\ud800", "'"])
def test_a_query_without_letters_or_digits_looks_for_nothing(query: str):
    assert query_terms(query, ["en"]) == []


def test_a_language_tag_with_a_region_is_its_language():
    assert count_terms("Verträge", "de-CH") == count_terms("Verträge", "de")


def test_terms_are_bounded_in_length_and_number():
    terms = count_terms(" ".join(["x" * 5_000, "a_" * 5_000, *(f"w{n}" for n in range(20_000))]), "en")
    assert len(terms) == MAX_TERMS
    assert max(map(len, terms)) <= MAX_TERM_CHARACTERS + 1
    assert len(query_terms("word " * 1_000, ["en"])) == MAX_QUERY_GROUPS


def test_encoded_data_is_not_taken_for_camel_case():
    assert len(count_terms("aGVsbG8gd29ybGQsIHRoaXMgaXMgYmFzZTY0IGVuY29kZWQgZGF0YSB0aGF0IG1lYW5z", "en")) == 1


@given(st.text(max_size=200), st.sampled_from(LANGUAGES))
def test_any_text_gives_terms_that_a_database_can_store(text: str, language: str):
    for term, count in count_terms(text, language).items():
        assert count >= 1
        assert len(term.lstrip("=~")) >= 1
        assert len(term) <= MAX_TERM_CHARACTERS + 1
        assert "\x00" not in term.encode("utf-8").decode("utf-8")


@given(st.text(max_size=60), st.sampled_from(LANGUAGES), st.lists(st.sampled_from(LANGUAGES), max_size=3))
def test_any_text_is_found_by_itself_whatever_other_languages_the_mandate_holds(
    text: str, language: str, others: list[str]
):
    terms = count_terms(text, language)
    for group in query_terms(text, [*others, language]):
        assert any(term in terms for term in group)


@given(st.text(max_size=100))
def test_the_unicode_form_of_a_text_makes_no_difference(text: str):
    composed, decomposed = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)
    assert count_terms(composed, "de") == count_terms(decomposed, "de")
