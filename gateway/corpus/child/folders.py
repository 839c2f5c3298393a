"""Private folders of fork servers, and what is left of those whose owners were all killed in the same instant.

A folder is in use as long as anyone holds a shared lock on it, and the kernel drops locks with their holder. So whoever
starts next can tell a leftover from a folder in use, and removes it: it may hold pieces of documents.
"""

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

_PREFIX = "catchment-parser-"
_SETTLED_SECONDS = 60  # a younger folder may not have been locked yet


def claim() -> tuple[Path, int]:
    """A new folder, and the descriptor that keeps it ours until it is closed."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    return folder, hold(folder)


def hold(folder: Path) -> int:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def sweep() -> None:
    """Remove folders of ours that nobody holds any more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            seen = folder.lstat()
            if seen.st_uid != os.geteuid() or time.time() - seen.st_mtime < _SETTLED_SECONDS:
                continue
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:  # gone meanwhile, or not a folder
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)
