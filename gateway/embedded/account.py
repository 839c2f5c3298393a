"""Whom the stores run as. Postgres refuses to be root, so root hands its stores to an unprivileged user.

Only what belongs to the stores changes hands. Folders above them keep their owners and modes, even where that user
may not enter them: the stores are started inside their own folder and never look at the way there.
"""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from gateway.embedded.preflight import StartupRefused, of_another_user


@dataclass(frozen=True)
class Account:
    name: str
    uid: int
    gid: int


def store_account(data_dir: Path) -> Account | None:
    """None for an ordinary user: the stores run as the one who started them.

    Root keeps to the owner the stores already have, so that a folder an ordinary user made stays that user's.
    """
    if os.geteuid() != 0:
        return None
    for folder in (data_dir / "postgres", data_dir / "redis"):
        if folder.exists() and (owner := folder.stat()).st_uid != 0:
            return Account(str(owner.st_uid), owner.st_uid, owner.st_gid)
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        raise StartupRefused(
            "Postgres refuses to run as root and this machine has no user 'nobody' to run it as: "
            "start Catchment as an ordinary user."
        ) from None
    return Account(nobody.pw_name, nobody.pw_uid, nobody.pw_gid)


def own_folder(folder: Path, account: Account | None) -> Path:
    """A private folder that belongs, with all in it, to the account the stores run as."""
    folder.mkdir(mode=0o700, exist_ok=True)
    owner = folder.stat().st_uid
    if account is None:
        if owner != os.geteuid():
            raise of_another_user(folder)
    elif owner != account.uid:
        _hand_over(folder, account)
    folder.chmod(0o700)
    return folder


def _hand_over(folder: Path, account: Account) -> None:
    try:
        for parent, folders, files in os.walk(folder):
            for name in (*folders, *files):
                os.chown(Path(parent) / name, account.uid, account.gid, follow_symlinks=False)
        os.chown(folder, account.uid, account.gid)  # last, so that an interrupted hand-over is begun again
    except OSError:
        raise StartupRefused(
            f"Postgres refuses to run as root and {folder} cannot be given to the user {account.name}: "
            "start Catchment as an ordinary user."
        ) from None


def may_run(program: Path, account: Account) -> bool:
    """Whether the account reaches the program through every folder above it, by owner, group and mode."""

    def allowed(path: Path, wanted: int) -> bool:
        status = path.stat()
        if status.st_uid == account.uid:
            shift = 6
        elif status.st_gid == account.gid:
            shift = 3
        else:
            shift = 0
        return (status.st_mode >> shift) & wanted == wanted

    return allowed(program, 0o5) and all(allowed(folder, 0o1) for folder in program.parents)
