"""The file in the data folder that every process of an instance writes its lines to.

Nobody owns it, so whoever finds it too long puts it aside, and the others notice with their next line. One predecessor is
kept: a house that runs for years fills no disk.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

LARGEST_BYTES = 100 * 1024 * 1024


class LogFile:
    """Append mode keeps lines whole. A full disk costs the line, never the request or the job that spoke."""

    def __init__(self, path: Path, largest_bytes: int = LARGEST_BYTES) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path, self._largest = path, largest_bytes
        self._fd = self._open()
        self._inode = os.fstat(self._fd).st_ino

    def keep(self, line: bytes) -> None:
        with suppress(OSError):
            self._be_current()
            os.write(self._fd, line + b"\n")

    def _be_current(self) -> None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            found = None
        if found and found.st_size > self._largest:
            self._put_aside()
        elif found and found.st_ino == self._inode:
            return
        fresh = self._open()
        os.dup2(fresh, self._fd, inheritable=False)  # in place: another thread may be writing
        os.close(fresh)
        self._inode = os.fstat(self._fd).st_ino

    def _put_aside(self) -> None:
        own = os.open(self._path, os.O_RDONLY)
        try:
            fcntl.flock(own, fcntl.LOCK_EX)
            # Of several who found it too long, the first has moved it by now.
            if os.fstat(own).st_ino == self._path.stat().st_ino:
                self._path.replace(self._path.with_suffix(".jsonl.1"))
        finally:
            os.close(own)

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
