"""What `catchment erase` says when there was nothing to erase, and whom it finds by an address."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner, Result

from gateway.commands.erase import NOTHING_THERE
from gateway.commands.tree import app
from gateway.db import new_id
from gateway.errors import NotFound

LEFT = {"id": str(new_id()), "email": "left@example.org"}


class Gateway(BaseHTTPRequestHandler):
    """A mandate whose one member has left it, and which holds nothing."""

    receipts: ClassVar[dict[str, dict[str, Any]]] = {}

    def do_GET(self) -> None:
        listed = {"items": [LEFT] if "/users" in self.path else [], "nextCursor": None}
        self._answer(self.receipts.get(self.path.rpartition("/")[2], listed))

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = asked.get("userId") == LEFT["id"]
        counts = {"document": 2 if known else 0, "vector": 3}
        receipt: dict[str, Any] = {
            "id": str(new_id()),
            "status": "done",
            "counts": counts,
            "found": known,
            "held": False,
        }
        self.receipts[receipt["id"]] = receipt
        self._answer(receipt)

    def _answer(self, body: object) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its parent's name
        """Nothing to say."""


@pytest.fixture
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Gateway) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _erase(url: str, *options: str) -> Result:
    return CliRunner().invoke(app, ["erase", *options, "--yes", "--url", url, "--api-key", "ck_x"])


def test_nothing_is_called_erased_that_was_not_there(url: str) -> None:
    said = _erase(url, "--document", str(new_id()))
    assert said.exit_code == NOTHING_THERE
    assert "Erased" not in said.output
    assert "Nothing was erased, because nothing was there" in said.output


def test_who_left_is_found_by_their_address(url: str) -> None:
    said = _erase(url, "--user", "Left@example.org")
    assert (said.exit_code, "document       2" in said.output) == (0, True), said.output


def test_of_an_address_that_no_account_has_the_id_is_asked_for(url: str) -> None:
    refused = _erase(url, "--user", "dora@example.org")
    assert isinstance(refused.exception, NotFound)
    assert "name its id" in refused.exception.detail
