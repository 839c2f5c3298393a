"""Helpers that a child started and left behind: who lost its parent becomes the fork server's own child, and can be found.

A helper in its child's process group dies with the child. One that left the group – hostile code may – is looked for here.
"""

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def adopt() -> None:
    """From here on; the first process of a process-id namespace adopts them anyway."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children(at_least: int) -> Iterator[int]:
    """Of this thread, if there are so many, by the numbers that this process can send signals to.

    None where the kernel does not list them.
    """
    try:
        with open("/proc/thread-self/children", "rb") as file:  # noqa: PTH123 - after every child, and half as dear
            listed = file.read().split()
    except FileNotFoundError:
        return
    for number in listed if len(listed) >= at_least else ():
        with suppress(OSError):  # it may be gone meanwhile
            # /proc counts as whoever mounted it, which may be outside of our namespace; we are the innermost.
            status = Path(f"/proc/{int(number)}/status").read_text()
            yield int(status.partition("NSpid:")[2].partition("\n")[0].split()[-1])
