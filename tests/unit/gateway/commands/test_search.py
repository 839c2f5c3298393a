"""What `catchment search` shows: the words that matched, and nothing a document could smuggle in."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.commands.search import SHOWN_CHARACTERS, coloured
from gateway.corpus.boundary import escape
from gateway.corpus.highlights import matches, wanted_terms


@given(text=st.text(max_size=2000), query=st.text(min_size=1, max_size=50))
def test_what_is_coloured_is_what_matched_and_no_more_is_shown_than_fits(text: str, query: str) -> None:
    text, wanted = escape(text), wanted_terms(query)
    shown = coloured(text, wanted)
    words = {text[low:high] for low, high in matches(text, wanted)}
    assert {shown.plain[span.start : span.end] for span in shown.spans} <= words
    assert len(shown.plain) <= SHOWN_CHARACTERS + 5


def test_a_match_far_down_is_shown() -> None:
    shown = coloured("x " * 2000 + "needle in the haystack", wanted_terms("needle"))
    assert "needle" in shown.plain
    assert shown.plain.startswith("   …")
