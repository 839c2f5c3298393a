"""Becomes another program that dies with its parent, in a folder and as a user of the parent's choosing.

    python -I -S launch.py PARENT DEATH_SIGNAL FOLDER UID GID PROGRAM [ARGUMENT…]

FOLDER, UID and GID may be '-' for "as it is". A step of its own rather than a hook between fork and exec, because
such a hook is not safe in a process with threads. It must stay free of imports from the house: every start pays for it.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, death_signal, folder, uid, gid, *command = sys.argv[1:]
    if folder != "-":
        os.chdir(folder)  # while we may still walk there; afterwards only the folder itself matters
    if uid != "-":
        os.setgroups([])
        os.setgid(int(gid))
        os.setuid(int(uid))
    if sys.platform == "linux":
        # After the change of user, which would have cleared it.
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
        if os.getppid() != int(parent):
            sys.exit("the parent is already gone")
    try:
        os.execv(command[0], command)  # noqa: S606 - the command is composed by our own supervisor
    except OSError as error:
        sys.exit(f"FATAL: {command[0]} cannot be run: {error.strerror}")


if __name__ == "__main__":
    main()
