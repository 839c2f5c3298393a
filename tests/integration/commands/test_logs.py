"""`catchment logs` on a real file, by a real process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures import preloaded
from tests.fixtures.processes import REPOSITORY


def _line(event: str, **fields: object) -> str:
    return json.dumps({"event": event, "level": "info", "time": "2026-01-01T00:00:00Z", **fields}) + "\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "logs" / "catchment.jsonl"
    path.parent.mkdir()
    path.write_text(_line("house.ready", component="a") + _line("ingestion.queued", jobId="1") + '{"cut off')
    return path


def _command(log: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "gateway", "logs", "--data-dir", str(log.parents[1]), *options]


def _run(log: Path, *options: str) -> str:
    done = preloaded.run("logs", "--data-dir", str(log.parents[1]), *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_shows_the_last_lines_for_people_and_for_machines(log: Path) -> None:
    assert _run(log).splitlines() == [
        "2026-01-01T00:00:00 info    house.ready  component=a",
        "2026-01-01T00:00:00 info    ingestion.queued  jobId=1",
    ]
    assert [json.loads(line)["event"] for line in _run(log, "--json", "-n", "1").splitlines()] == [
        "ingestion.queued"
    ]
    assert "house.ready" not in _run(log, "--event", "ingestion.*")


def test_follows_the_log_and_its_successor_until_it_is_gone(log: Path) -> None:
    following = subprocess.Popen(
        _command(log, "--follow", "--json", "--event", "house.*"),
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert following.stdout
    assert json.loads(following.stdout.readline())["component"] == "a"
    with log.open("a") as file:
        file.write('"}\n' + _line("ingestion.failed") + _line("house.stopping", component="b"))
    assert json.loads(following.stdout.readline())["component"] == "b"
    log.rename(log.with_suffix(".jsonl.1"))
    log.with_suffix(".draft").write_text(_line("house.starting", component="c"))
    log.with_suffix(".draft").rename(log)
    assert json.loads(following.stdout.readline())["component"] == "c"
    log.unlink()
    assert following.wait(20) == 0


def test_says_where_it_looked(tmp_path: Path) -> None:
    done = preloaded.run("logs", "--data-dir", str(tmp_path))
    assert done.returncode == 1
    assert str(tmp_path) in done.stderr
