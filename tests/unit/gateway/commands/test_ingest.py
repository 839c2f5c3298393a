"""A file is known by its path below the folder that was named, however that folder was named."""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.commands.folders import Item, given, walk
from gateway.commands.tree import app
from gateway.errors import InvalidRequest, StoreUnavailable


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


def test_what_is_set_to_nothing_is_no_folder() -> None:
    """As in `catchment ingest "$EMPTY"`, which must not upload the folder one is in."""
    with pytest.raises(InvalidRequest, match="names nothing"):
        list(walk([given("")]))
    done = CliRunner().invoke(app, ["ingest", "", "--url", "http://127.0.0.1:9", "--api-key", "ck_x"])
    assert isinstance(done.exception, InvalidRequest)


def test_two_files_that_would_be_known_by_one_name_are_refused_before_one_replaces_the_other(
    tmp_path: Path,
) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "notes.txt").write_text(folder)
    with pytest.raises(InvalidRequest, match=r"known as notes\.txt: name the folder that holds both"):
        list(walk([tmp_path / "a" / "notes.txt", tmp_path / "b" / "notes.txt"]))
    assert len(list(walk([tmp_path]))) == 2
    assert (
        len(list(walk([tmp_path / "a", tmp_path / "a", tmp_path / "a" / "."]))) == 1
    )  # the same file is brought once


def test_a_link_that_leads_out_of_the_folder_is_not_followed_and_named(tmp_path: Path) -> None:
    """Whoever is handed a folder must not publish what is their own with it."""
    (tmp_path / "secret.txt").write_text("of somebody's own")
    (tmp_path / "private").mkdir()
    folder = tmp_path / "handed over"
    folder.mkdir()
    (folder / "page.md").write_text("A page.")
    (folder / "again.md").symlink_to("page.md")
    (folder / "out.txt").symlink_to("../secret.txt")
    (folder / "private").symlink_to(tmp_path / "private")
    (folder / "round").symlink_to(".")
    found = {item.path.name: (item.status, item.reason) for item in walk([folder])}
    left_out = ("skipped", "a link that leads out of the folder")
    assert found == {"page.md": ("", ""), "again.md": ("", ""), "out.txt": left_out, "private": left_out}
    named = list(walk([folder / "out.txt"]))  # said by name, it is meant
    assert [(item.source_id, item.status) for item in named] == [("out.txt", "")]


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the refusal is put in the place of the system's."""
    (tmp_path / "open.txt").write_text("A page.")
    (tmp_path / "closed").mkdir()
    scandir = os.scandir

    def refusing(place: str) -> object:
        if str(place).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(place))
        return scandir(place)

    monkeypatch.setattr("os.scandir", refusing)
    found = {item.path.name: (item.status, item.reason) for item in walk([tmp_path])}
    assert found == {"open.txt": ("", ""), "closed": ("failed", "Permission denied")}


def test_caches_and_installed_packages_are_no_knowledge(tmp_path: Path) -> None:
    for folder, sign in (
        (".git", "config"),
        ("some_cache", "CACHEDIR.TAG"),
        ("env", "pyvenv.cfg"),
        ("node_modules", "index.js"),
        ("docs", "page.md"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / sign).write_text("Signature: 8a477f597d28d172789f06886806bc55")
    (tmp_path / "docs" / ".git").write_text("gitdir: /somewhere/else")  # of a work tree or a submodule
    assert [item.path.name for item in walk([tmp_path])] == ["page.md"]


def test_a_name_of_several_lines_or_with_steering_characters_stays_on_its_line() -> None:
    assert Item(Path("new\nline \x1b[31m\u202etxt ü 日.md"), "").shown == "new?line ?[31m?txt ü 日.md"


def test_a_gateway_that_is_killed_in_the_middle_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is back at once, and what it was answering is asked again: neither an upload nor a look does anything twice."""
    seen: list[str] = []

    class Gateway(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self._answer({"outcome": "queued", "status": "pending", "reason": None, "jobId": "1"})

        def do_GET(self) -> None:
            self._answer({"status": "indexed", "reason": None})

        def _answer(self, answer: object) -> None:
            seen.append(self.command)
            if seen.count(self.command) == 1:
                self.connection.close()  # in the middle of its first request of the kind
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its parent's name
            """Nothing to say."""

    monkeypatch.setattr("gateway.commands.ingest.PAUSES", (0.01,))
    (tmp_path / "page.md").write_text("A page.")
    with HTTPServer(("127.0.0.1", 0), Gateway) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign] - the closed connection is meant
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        done = CliRunner().invoke(app, ["ingest", str(tmp_path), "--url", url, "--api-key", "ck_x"])
        server.shutdown()
    assert (done.exit_code, seen) == (0, ["POST", "POST", "GET", "GET"]), done.output
    assert "1 indexed" in done.output


def test_where_nobody_answers_it_is_said_once_and_not_of_every_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.commands.ingest.PAUSES", (0.01,))
    for number in range(20):
        (tmp_path / f"{number}.md").write_text("A page.")
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as gone:
        url = f"http://127.0.0.1:{gone.server_port}"
    done = CliRunner().invoke(app, ["ingest", str(tmp_path), "--url", url, "--api-key", "ck_x"])
    assert isinstance(done.exception, StoreUnavailable)
    assert "failed" not in done.output


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
