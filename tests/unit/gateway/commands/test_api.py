"""How a command finds the instance: with which key it goes where, and what it says of somebody else's answer."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gateway.commands.tree import app
from gateway.embedded.instance import Instance
from gateway.errors import CatchmentError


class Listener(HTTPServer):
    """Notes with which key it was asked, and always answers the same."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.keys: list[str | None] = []
        self.answer = b'{"hits": []}'


class Asked(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Listener)
        self.server.keys.append(self.headers["Authorization"])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its parent's name
        """Nothing to say."""


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    monkeypatch.delenv("CATCHMENT_URL", raising=False)
    monkeypatch.delenv("CATCHMENT_API_KEY", raising=False)
    with Listener() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def _search(*options: str) -> Result:
    return CliRunner().invoke(app, ["search", "x", "--json", *options])


@pytest.mark.parametrize("way", ["option", "environment"])
def test_the_key_of_the_instance_is_sent_nowhere_else(
    listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    Instance(url="http://127.0.0.1:8440", api_key="ck_owner").write(tmp_path)
    where = ["--url", listener.url]
    if way == "environment":
        monkeypatch.setenv("CATCHMENT_URL", listener.url)
        where = []
    for folder in (tmp_path, tmp_path / "where none runs"):
        refused = _search(*where, "--data-dir", str(folder))
        assert isinstance(refused.exception, CatchmentError)
        assert "--api-key" in refused.exception.detail
    assert listener.keys == []
    assert _search(*where, "--data-dir", str(tmp_path), "--api-key", "ck_other").exit_code == 0
    assert listener.keys == ["Bearer ck_other"]


def test_the_key_of_the_instance_is_sent_to_it(listener: Listener, tmp_path: Path) -> None:
    Instance(url=listener.url, api_key="ck_owner").write(tmp_path)
    assert _search("--data-dir", str(tmp_path)).exit_code == 0
    assert _search("--data-dir", str(tmp_path), "--url", f"{listener.url}/").exit_code == 0
    assert listener.keys == ["Bearer ck_owner", "Bearer ck_owner"]


@pytest.mark.parametrize("answer", [b"{}", b"[]", b'"x"', b"<html>", b"\xff", b""])
@pytest.mark.parametrize("command", ["search x", "why x", "keys list", "policy show"])
def test_an_answer_of_somebody_else_is_one_sentence(listener: Listener, command: str, answer: bytes) -> None:
    listener.answer = answer
    words = [*command.split(), "--url", listener.url, "--api-key", "ck_x"]
    shown = CliRunner().invoke(app, words)
    if (command, shown.exit_code) == ("policy show", 0):  # no field of it is needed
        return
    assert isinstance(shown.exception, CatchmentError), shown.exception
    assert "is not Catchment" in shown.exception.detail


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://127.0.0.1:99999", "127.0.0.1:8440", "ftp://host", "https://"]
)
def test_an_address_that_is_none_is_one_sentence(url: str) -> None:
    refused = CliRunner().invoke(app, ["search", "x", "--api-key", "ck_x", "--url", url])
    assert isinstance(refused.exception, CatchmentError)
    assert "must look like https://" in refused.exception.detail
