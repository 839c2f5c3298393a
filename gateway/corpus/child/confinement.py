"""Walls around a child, from what the kernel grants this process: namespaces, Landlock, no capabilities.

What could not be had is replaced by something weaker and reported, so that `Protections` never claims more than is in
force. A container's default rules refuse namespaces and allow Landlock; most other places allow both.
"""

import ctypes
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from gateway.corpus.child import landlock

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION = 0x20080522
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc", "/dev/null", "/dev/zero", "/dev/urandom")

_OFFICE = Path("/var/lib/libreoffice")

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Protections:
    network: str  # "namespace": no interface at all; "landlock": no TCP, sockets refused in Python; "audit_hook": only the latter
    processes: str  # "pid_namespace": nothing outlives the fork server; "process_group": a child's helpers die with it
    files: str  # "landlock": code and its own folder only; "none": whatever the worker's user may read

    @classmethod
    def available(cls, *, namespaces: bool) -> "Protections":
        weaker = "landlock" if landlock.can_refuse_tcp() else "audit_hook"
        return cls(
            network="namespace" if namespaces else weaker,
            processes="pid_namespace" if namespaces else "process_group",
            files="landlock" if landlock.version() else "none",
        )


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _unshare_as_root() -> None:
    _checked(_libc.unshare(_CLONE_NEWNET | _CLONE_NEWPID))


def _unshare_as_user() -> None:
    user, group = os.geteuid(), os.getegid()
    _checked(_libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET | _CLONE_NEWPID))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def enter_namespaces() -> bool:
    """Leave the network and start a process-id namespace; the next fork becomes its first process."""
    for step in (_unshare_as_root, _unshare_as_user):
        pid = os.fork()  # tried in a throw-away process first: half a namespace is worse than none
        if pid == 0:
            try:
                step()
            except OSError:
                os._exit(1)
            os._exit(0)
        if os.waitpid(pid, 0)[1] == 0:
            step()
            return True
    return False


def walls(
    protections: Protections, code: list[Path], home: Path | None = None, *, office: bool = False
) -> int | None:
    """Which files and connections stay within reach, as a descriptor for `confine`; None where the kernel has no Landlock.

    `office`: LibreOffice is needed. It puts a socket into /tmp whatever it is told, and looks for itself in /var.
    """
    if protections.files != "landlock":
        return None
    return landlock.rules(
        readable=[*code, *map(Path, _SYSTEM), *([_OFFICE] if office else [])],
        writable=[home] if home else [],
        listed=[Path("/var")] if office else [],
        sockets=[Path("/tmp")] if office else [],  # noqa: S108
        tcp=protections.network != "landlock",
    )


def confine(protections: Protections, walls: int | None) -> None:
    """Give up, for good, whatever parsing a file does not need."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    _checked(_libc.capset(header, (ctypes.c_uint32 * 6)()))
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    if walls is not None:
        landlock.confine(walls)
    if protections.network != "namespace":
        _refuse_sockets()


def die_with_parent(parent: int) -> None:
    """`parent` is who forked this process: one that died before the wish was made would go unnoticed."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0))
    if os.getppid() != parent:
        os._exit(1)


def _refuse_sockets() -> None:
    """Where no network namespace can be had: it holds for Python code, not for native code."""

    def refuse(event: str, _arguments: tuple[object, ...]) -> None:
        if event == "socket.__new__":
            raise PermissionError("no network in a parser child")

    sys.addaudithook(refuse)
