"""Ending what was left behind, whoever is its parent by now."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from gateway.embedded.orphans import end, working_in

SLEEP = [shutil.which("sleep") or "sleep", "600"]


def test_a_zombie_nobody_buries_is_not_waited_for() -> None:
    unburied = subprocess.Popen(SLEEP)
    process = psutil.Process(unburied.pid)
    began = time.monotonic()
    end([process], ask=[process], with_signal=signal.SIGTERM, patience=60.0)
    assert time.monotonic() - began < 30
    assert process.status() == psutil.STATUS_ZOMBIE
    unburied.wait()


def test_what_does_not_listen_is_killed() -> None:
    code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.sigwait([])"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as stubborn:
        assert stubborn.stdout
        stubborn.stdout.readline()
        process = psutil.Process(stubborn.pid)
        end([process], ask=[process], with_signal=signal.SIGTERM, patience=0.1)
        assert stubborn.wait(10) == -signal.SIGKILL


def test_only_that_program_in_that_folder_is_found(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    with subprocess.Popen(SLEEP, cwd=here) as wanted, subprocess.Popen(SLEEP, cwd=there) as other:
        assert [process.pid for process in working_in(here, "sleep")] == [wanted.pid]
        assert working_in(here, "postgres") == []
        wanted.kill()
        other.kill()
