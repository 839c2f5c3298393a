"""Which files a child may touch, by Landlock: the code it runs, and its own folder. Needs no privilege, only Linux ≥ 5.13.

The kernel's interface has no wrapper in the C library, so the three calls are made by number (the same on every
architecture). What an older kernel does not know is left out; what it knows is refused unless a rule here allows it.
"""

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_RULE_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_FILE, _MAKE_SOCKET = 1 << 5, 1 << 9
_TRUNCATE = 1 << 14
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_KNOWN_SINCE = (
    (1, (1 << 13) - 1),
    (2, 1 << 13),
    (3, 1 << 14),
    (5, 1 << 15),
)  # version, access rights to files
_TCP = 0b11  # bind and connect, since version 4
_TCP_SINCE = 4
_SIGNALS = 0b10  # to processes outside, since version 6
_SIGNALS_SINCE = 6

_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def version() -> int:
    """The kernel's version of the interface; 0 where there is none."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)))


def can_refuse_tcp() -> bool:
    return version() >= _TCP_SINCE


def rules(
    *,
    readable: Sequence[Path],
    writable: Sequence[Path],
    listed: Sequence[Path] = (),
    sockets: Sequence[Path] = (),
    tcp: bool,
) -> int:
    """A descriptor of rules that allow these paths only, and no TCP unless `tcp`.

    Of `listed` only the names can be seen. In the folders of `sockets` a socket may be made and taken away again; what lies
    there cannot be read or written.
    """
    known = version()
    files = sum(rights for since, rights in _KNOWN_SINCE if known >= since)
    handled = _Ruleset(
        files,
        _TCP if known >= _TCP_SINCE and not tcp else 0,
        _SIGNALS if known >= _SIGNALS_SINCE else 0,
    )
    # An older kernel wants the structure as short as it knew it.
    size = 8 if known < _TCP_SINCE else 16 if known < _SIGNALS_SINCE else 24
    ruleset = _call(_CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(size), 0)
    grants = (
        (readable, _READ),
        (writable, files),
        (sockets, _MAKE_SOCKET | _REMOVE_FILE),
        (listed, _READ_DIR),
    )
    try:
        for paths, rights in grants:
            for path in paths:
                _allow(ruleset, path, rights & files)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def confine(ruleset: int) -> None:
    """From here on this process and its helpers reach only what the rules allow. Cannot be undone."""
    _call(_RESTRICT_SELF, ruleset, 0)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:  # /lib64 is not everywhere
        return
    try:
        rule = _PathBeneath(rights if path.is_dir() else rights & _OF_FILES, descriptor)
        _call(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(descriptor)


def _call(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
