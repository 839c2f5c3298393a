"""Files nobody else may read, written so that a crash leaves the old one or the new one, never half of one."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from gateway.embedded.preflight import of_another_user


def private_folder(path: Path) -> Path:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        path.chmod(0o700)
    except PermissionError:
        raise of_another_user(path) from None
    return path


def write_private(path: Path, text: str) -> None:
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # mode 0600 from birth
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).rename(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def kept_secret(folder: Path, name: str, make: Callable[[], str]) -> str:
    """The secret of that name, made on first use and the same ever after."""
    path = private_folder(folder) / name
    if not path.exists():
        write_private(path, make())
    return path.read_text(encoding="utf-8")
