"""What `catchment search` shows: the words that matched, and nothing a document could smuggle in."""

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


def test_a_question_needs_no_quotation_marks_for_the_shell() -> None:
    asked: list[str] = []

    class Gateway(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.extend(parse_qs(urlsplit(self.path).query)["q"])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"hits": []}')

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its parent's name
            """Nothing to say."""

    with HTTPServer(("127.0.0.1", 0), Gateway) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        command = ["search", "who", "reads", "the gauges", "--json", "--url", url, "--api-key", "ck_x"]
        result = CliRunner().invoke(app, command)
        server.shutdown()
    assert (result.exit_code, asked) == (0, ["who reads the gauges"]), result.output
