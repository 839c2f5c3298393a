"""Real stores on real folders. One cluster is made and then copied, because making one takes a second."""

import os
import pwd
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from gateway.embedded.run_folder import RunFolder
from gateway.embedded.stores import running_stores

# Spaces, letters beyond ASCII, and longer than any socket path may be.
AWKWARD = Path("Ünïcode folder with spaces 東京") / ("long " * 30).strip()


@pytest.fixture(scope="session")
def store_uid() -> int:
    """Whom the stores run as: us, or nobody when we are root."""
    return os.geteuid() or pwd.getpwnam("nobody").pw_uid


@pytest.fixture(scope="session")
def stopped_instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    data_dir = tmp_path_factory.mktemp("stopped") / "data"
    with running_stores(data_dir, {"fsync": "off"}):
        pass
    yield data_dir
    forget(data_dir)


@pytest.fixture
def make_data_dir(stopped_instance: Path, tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """A data folder that has been started and stopped before, under a name of the test's choosing."""
    made: list[Path] = []

    def make(name: str) -> Path:
        made.append(tmp_path / AWKWARD / name)
        shutil.copytree(stopped_instance, made[-1], symlinks=True)
        return made[-1]

    yield make
    for folder in made:
        forget(folder)


def forget(data_dir: Path) -> None:
    """Removes what a killed instance would leave for the next start, and 50 MB of data."""
    shutil.rmtree(RunFolder(data_dir).path, ignore_errors=True)
    shutil.rmtree(data_dir, ignore_errors=True)


@pytest.fixture
def data_dir(make_data_dir: Callable[[str], Path]) -> Path:
    return make_data_dir("data")


def all_gone(processes: Sequence[psutil.Process], timeout: float = 10.0) -> bool:
    """Waits for processes that need not be our children. A zombie is gone: who buries it is not our concern."""
    deadline = time.monotonic() + timeout
    while any(_lives(process) for process in processes):
        if time.monotonic() > deadline:
            return False
        psutil.wait_procs(processes, timeout=0.02)
    return True


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
