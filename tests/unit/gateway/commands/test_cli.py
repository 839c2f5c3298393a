"""The way into every command."""

import os
import signal
import subprocess
import sys
from pathlib import Path

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
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
