"""The gate of a starting house: services load while the stores start, and wait here until everything is prepared.

Loading is most of a start, so it must not wait for the database. The gate is a lock on a file: it opens when the parent lets
go of it, also by dying, and the mark in a service's environment says where it is. Without a mark there is no gate.
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

MARK = "CATCHMENT_SUPERVISED"  # in the environment of every service: the data folder of its instance
_GATE = "gate"


def mark(data_dir: Path) -> dict[str, str]:
    return {MARK: os.path.realpath(data_dir)}


@contextmanager
def closed(data_dir: Path) -> Generator[None]:
    descriptor = os.open(data_dir / _GATE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def wait_until_open() -> None:
    """For a service, when it is loaded and before it touches a store."""
    folder = os.environ.get(MARK)
    if folder is None:
        return
    descriptor = os.open(Path(folder) / _GATE, os.O_RDONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)
