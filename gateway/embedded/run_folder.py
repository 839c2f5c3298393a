"""A short private folder for sockets. A socket's path may have about 100 characters; a data folder may have any.

As root it also holds a copy of the stores' programs when these were installed where their user may not go
(a virtual environment under root's home, say).
"""

import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gateway.embedded.account import Account, may_run, own_folder
from gateway.embedded.preflight import StartupRefused

_LONGEST = (
    60  # characters of the folder for temporary files, so that <it>/catchment-…/s/.s.PGSQL.5432.lock fits
)


class RunFolder:
    """One per data folder and user; both stores share it."""

    def __init__(self, data_dir: Path) -> None:
        uid = os.geteuid()
        temporary = tempfile.gettempdir()
        # Root's own TMPDIR may be closed to the user the stores run as; /tmp is open to everybody.
        parent = "/tmp" if uid == 0 or len(temporary) > _LONGEST else temporary  # noqa: S108 - checked in create()
        name = hashlib.sha256(f"{uid}:{data_dir.resolve()}".encode()).hexdigest()[:12]
        self.path = Path(parent) / f"catchment-{uid}-{name}"
        self.sockets = self.path / "s"
        self._held: int | None = None

    def create(self, account: Account | None) -> None:
        # The stores' user has to pass through, nobody may look around.
        mode = 0o700 if account is None else 0o711
        try:
            self.path.mkdir(mode=mode)
        except FileExistsError:
            found = self.path.lstat()
            if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode):
                raise StartupRefused(
                    f"{self.path} is needed for sockets but belongs to somebody else: "
                    "remove it or point TMPDIR to a folder of your own."
                ) from None
        self.path.chmod(mode)
        own_folder(self.sockets, account)
        if self._held is None:
            # Cleaners of old temporary files leave a locked folder alone.
            self._held = os.open(self.path, os.O_RDONLY)
            fcntl.flock(self._held, fcntl.LOCK_SH)

    def programs(self, root: Path, parts: Sequence[str], account: Account | None) -> Path:
        """`root` if the account can run what is in it (the first part is a program), else a copy of the parts."""
        if account is None or may_run((root / parts[0]).resolve(), account):
            return root
        copy = self.path / root.name
        for part in parts:
            source, target = root / part, copy / part
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            elif source.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        _open_to_all(copy)
        return copy

    def tidy(self) -> None:
        """Removes the folder unless the other store still has its socket there."""
        if self._held is not None:
            os.close(self._held)
            self._held = None
        try:
            self.sockets.rmdir()
        except OSError:
            return
        shutil.rmtree(self.path, ignore_errors=True)


def _open_to_all(copy: Path) -> None:
    """Readable whatever the umask was at installation; only root can write."""
    for parent, _, files in os.walk(copy):
        Path(parent).chmod(0o755)
        for name in files:
            file = Path(parent) / name
            file.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)
