"""A file is known by its path below the folder that was named, however that folder was named."""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.commands.ingest import walk
from gateway.commands.tree import app


@pytest.mark.parametrize(
    ("named", "known_as"),
    [
        ("wiki", "wiki/deep/page.md"),
        ("./wiki/", "wiki/deep/page.md"),
        ("wiki/deep", "deep/page.md"),
        ("../home/wiki", "wiki/deep/page.md"),
        ("{here}/wiki", "wiki/deep/page.md"),
        (".", "wiki/deep/page.md"),
        ("..", "{above}/home/wiki/deep/page.md"),
        ("wiki/deep/page.md", "page.md"),
    ],
)
def test_a_folder_may_be_named_from_here_or_from_the_root(
    named: str, known_as: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / "wiki" / "deep").mkdir(parents=True)
    (home / "wiki" / "deep" / "page.md").write_text("A page.")
    monkeypatch.chdir(home)
    [item] = walk([Path(named.format(here=home))])
    assert item.source_id == known_as.format(above=tmp_path.name)
    assert item.path.read_text() == "A page."


@pytest.mark.parametrize("as_json", [False, True])
def test_a_name_in_another_encoding_costs_that_file_alone(tmp_path: Path, as_json: bool) -> None:
    class Gateway(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            answer = {"outcome": "queued", "status": "indexed", "reason": None, "jobId": None}
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its parent's name
            """Nothing to say."""

    (tmp_path / "good.txt").write_text("A page.")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xffname.txt")).write_text("A page.")
    with HTTPServer(("127.0.0.1", 0), Gateway) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        options = ["--url", url, "--api-key", "ck_x", *(["--json"] if as_json else [])]
        done = CliRunner().invoke(app, ["ingest", str(tmp_path), *options])
        server.shutdown()
    assert (done.exit_code, type(done.exception)) == (1, SystemExit)
    if as_json:
        reported = {Path(file["path"]).name: file["reason"] for file in json.loads(done.output)["files"]}
        assert reported == {"good.txt": "", "bad?name.txt": "name is not UTF-8"}
    else:
        assert f"failed: {tmp_path}/bad?name.txt  name is not UTF-8" in done.output
        assert "1 failed, 1 indexed" in done.output
