"""What `catchment search` shows: the words that matched, and nothing a document could smuggle in."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from gateway.commands.search import SHOWN_CHARACTERS, coloured
from gateway.commands.tree import app
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


def answered_with(command: list[str], answer: object) -> tuple[str, list[str]]:
    """What the command prints about an answer, and what it asked for."""
    asked: list[str] = []

    class Gateway(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.extend(parse_qs(urlsplit(self.path).query)["q"])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its parent's name
            """Nothing to say."""

    with HTTPServer(("127.0.0.1", 0), Gateway) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        result = CliRunner().invoke(app, ["search", *command, "--url", url, "--api-key", "ck_x"])
        server.shutdown()
    assert result.exit_code == 0, result.output
    return result.output, asked


def test_a_question_needs_no_quotation_marks_for_the_shell() -> None:
    _, asked = answered_with(["who", "reads", "the gauges", "--json"], {"hits": []})
    assert asked == ["who reads the gauges"]


def test_that_nothing_is_about_it_is_said_before_what_is_merely_near() -> None:
    citation = {
        "sourceKind": "upload",
        "locator": {"kind": "text", "charStart": 0, "charEnd": 9},
        "uri": None,
    }
    hit = {
        "documentId": "d",
        "score": 1.0,
        "text": "sluice two",
        "title": "Handbook",
        "citation": citation,
        "sources": [],
    }
    found = {"hits": [hit], "tookMs": 3, "answered": False}
    near, _ = answered_with(["ornithopter"], found)
    assert near.index("Nothing here is about this") < near.index("Handbook")
    assert "1.000" not in near  # no measure of how well it answers, beside the words that it does not
    about, _ = answered_with(["sluice"], found | {"answered": True})
    assert "Nothing here is about this" not in about
    assert "1.000" in about
