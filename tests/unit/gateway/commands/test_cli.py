"""The way into every command."""

import os
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.commands.tree import app
from gateway.settings import get_settings
from tests.fixtures.processes import REPOSITORY


def test_interrupted_while_it_loads_it_ends_without_a_word(tmp_path: Path) -> None:
    """A library that is loaded early stands for the moment at which somebody presses Ctrl-C."""
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "up"],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        # Whoever starts the tests in the background has everything they start ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_a_folder_that_is_set_to_nothing_is_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `--data-dir "$EMPTY"`; taken for a path it would be the folder one is in."""
    monkeypatch.setenv("CATCHMENT_DATA_DIR", str(tmp_path / "elsewhere"))
    get_settings.cache_clear()
    try:
        shown = CliRunner().invoke(app, ["doctor", "--settings", "--data-dir", ""])
    finally:
        get_settings.cache_clear()
    assert f"CATCHMENT_DATA_DIR={tmp_path / 'elsewhere'}" in shown.output


def test_it_says_which_version_it_is() -> None:
    shown = CliRunner().invoke(app, ["--version"])
    assert (shown.exit_code, shown.output) == (0, f"catchment {version('catchment')}\n")


@pytest.mark.parametrize(
    "command",
    [
        "keys create k --days 4000000",
        "logs --lines 99999999999999999999",
        "up --port 70000",
        "gateway --port 70000",
        "gateway --fd 99999999999999999999",
        "search a --limit 99999999999999999999",
    ],
)
def test_a_number_beyond_all_bounds_is_refused_in_words(command: str, tmp_path: Path) -> None:
    """As a mistake in the command line, before anything is started or asked."""
    options = [] if command.startswith("gateway") else ["--data-dir", str(tmp_path)]
    refused = CliRunner().invoke(app, [*command.split(), *options])
    assert (refused.exit_code, type(refused.exception)) == (2, SystemExit)
    assert "Invalid value for" in refused.output
