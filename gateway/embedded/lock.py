"""One instance per data folder. The lock dies with its process, so a killed instance never blocks the next."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from gateway.embedded.preflight import StartupRefused


@contextmanager
def data_dir_lock(data_dir: Path) -> Generator[None]:
    descriptor = os.open(data_dir / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 20).decode().strip()
            raise StartupRefused(
                f"Catchment is already running on {data_dir} (process {holder or 'unknown'}): "
                "stop it first, or choose another --data-dir."
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        yield
    finally:
        os.close(descriptor)
