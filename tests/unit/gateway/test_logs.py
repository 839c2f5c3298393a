"""Every log line of ours is in the catalogue, carries its keys, and never a secret."""

import ast
import json
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from gateway.log_file import LogFile
from gateway.logs import CATALOGUE, configure_logs, emit
from gateway.tenancy.principal import new_token

ROOT = Path(__file__).parents[3]
CALLS = {"emit": 0, "emit_on_commit": 1, "_say": 0}  # position of the event's name
SEVERITIES = {"debug", "info", "warning", "error"}


def _calls() -> Iterator[tuple[str, ast.Call, int]]:
    for package in ("gateway", "workers", "connectors", "migrations"):
        for file in sorted((ROOT / package).rglob("*.py")):
            if "sandbox" in file.parts:
                continue  # the stand-ins of the vendors do not log; they have calls of their own by these names
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Call):
                    name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
                    if name in CALLS and len(node.args) > CALLS[name]:
                        yield f"{file.relative_to(ROOT)}:{node.lineno}", node, CALLS[name]


def test_every_logged_event_is_known_and_carries_its_keys() -> None:
    wrong: list[str] = []
    seen: set[str] = set()
    for place, call, position in _calls():
        event = call.args[position]
        if not (isinstance(event, ast.Constant) and isinstance(event.value, str)):
            # The two functions that hand an event on, and nothing else.
            if not place.startswith(("gateway/db.py", "gateway/embedded/supervisor.py")):
                wrong.append(f"{place}: the event's name is not a constant")
            continue
        seen.add(event.value)
        known = CATALOGUE.get(event.value)
        if known is None:
            wrong.append(f"{place}: {event.value} is not in the catalogue")
            continue
        given_keys = {keyword.arg for keyword in call.keywords}
        missing = set(known.keys) - given_keys
        if missing and None not in given_keys:  # `**fields`: checked where they are made
            wrong.append(f"{place}: {event.value} lacks {', '.join(sorted(missing))}")
    assert wrong == []
    assert len(seen) > 20


def test_nothing_else_is_printed_or_logged() -> None:
    """One way to write a line; the terminal of `up` is the exception."""
    allowed = {"gateway/logs.py", "gateway/commands/up.py"}
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for package in ("gateway", "workers")
        for file in sorted((ROOT / package).rglob("*.py"))
        if str(file.relative_to(ROOT)) not in allowed
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "print"
    ]
    assert found == []


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_events_are_named_and_described_alike(name: str) -> None:
    event = CATALOGUE[name]
    assert re.fullmatch(r"[a-z]+(\.[a-z]+)+", name)
    assert event.severity in SEVERITIES
    assert event.meaning
    assert not event.meaning.endswith(".")
    assert all(re.fullmatch(r"[a-z]+([A-Z][a-z]*)*", key) for key in event.keys)
    assert len(set(event.keys)) == len(event.keys)


@pytest.fixture
def lines(tmp_path: Path) -> Iterator[list[str]]:
    shown: list[str] = []
    configure_logs(log_format="console", data_dir=tmp_path, show=shown.append)
    yield shown
    structlog.reset_defaults()


def test_the_file_gets_json_and_the_terminal_what_was_chosen(lines: list[str], tmp_path: Path) -> None:
    emit("http.request", method="GET", path="/v1/users", status=200, durationMs=3)
    kept = json.loads((tmp_path / "logs" / "catchment.jsonl").read_text())
    assert kept["event"] == "http.request"
    assert (kept["level"], kept["status"]) == ("info", 200)
    assert "time" in kept
    assert len(lines) == 1
    assert "/v1/users" in lines[0]
    assert (tmp_path / "logs" / "catchment.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_full_disk_or_a_closed_terminal_costs_the_line_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "catchment.jsonl").symlink_to("/dev/full")
    with Path("/dev/full").open("w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        configure_logs(data_dir=tmp_path)
        emit("house.ready", component="gateway")
        monkeypatch.undo()
        structlog.reset_defaults()
        with suppress(OSError):
            closed.close()


def test_a_long_file_is_put_aside_and_everybody_goes_on_in_the_next(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "catchment.jsonl"
    one, other = (LogFile(path, largest_bytes=100) for _ in range(2))  # as two processes have it
    for file in (one, other):
        file.keep(b"x" * 60)
    one.keep(b"first of the new")
    other.keep(b"second of the new")
    assert path.read_bytes() == b"first of the new\nsecond of the new\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert (path.parent / "catchment.jsonl.1").read_bytes() == (b"x" * 60 + b"\n") * 2
    path.unlink()
    other.keep(b"after somebody removed it")
    assert path.read_bytes() == b"after somebody removed it\n"


def test_what_is_no_unicode_is_escaped(lines: list[str], tmp_path: Path) -> None:
    emit("http.failed", method="GET", path="/", error="caf\udce9")
    assert json.loads((tmp_path / "logs" / "catchment.jsonl").read_text())["error"] == "caf\udce9"
    assert len(lines) == 1


def test_an_unknown_event_is_an_error_at_once() -> None:
    with pytest.raises(KeyError):
        emit("something.else")


@pytest.mark.parametrize("kind", ["ck", "cs", "cl"])
@pytest.mark.parametrize("frame", ["{}", "failed with {}!", "https://x.example/login?token={}", "Bearer {}"])
def test_tokens_of_ours_are_starred(lines: list[str], tmp_path: Path, kind: str, frame: str) -> None:
    token = new_token(kind)  # pyright: ignore[reportArgumentType]
    emit("http.failed", method="GET", path="/", error=frame.format(token))
    text = (tmp_path / "logs" / "catchment.jsonl").read_text() + "".join(lines)
    assert token not in text
    assert "***" in text


@pytest.mark.parametrize(
    "value",
    [
        "postgresql://user:pass-word@host/db",
        "postgresql+psycopg://u:p@/db?host=/x",
        "sk-abcdefgh12345678",
        "Bearer abc",
    ],
)
def test_other_secrets_are_starred_too(lines: list[str], value: str) -> None:
    emit("http.failed", method="GET", path="/", error=f"could not use {value}")
    assert value not in lines[0]


@given(
    st.sampled_from(["token", "accessToken", "clientSecret", "password", "apiKey", "cookie"]),
    st.text(min_size=9),
)
def test_fields_named_like_secrets_are_starred_whatever_they_hold(key: str, value: str) -> None:
    shown: list[str] = []
    configure_logs(show=shown.append)
    emit("house.ready", component="x", **{key: value})
    structlog.reset_defaults()
    assert json.loads(shown[0])[key] == "***"
