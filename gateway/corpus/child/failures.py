"""How a task in a child can end badly, in words the rest of the house can use.

`TaskFailed` is raised by a handler inside the child; `ChildFailed` is what the caller sees. The detail never quotes the
document: it may end up in a log.
"""

import signal

REASONS = frozenset(
    {
        "too_large",  # memory or input size
        "too_slow",  # processor or wall-clock time
        "crashed",  # a native fault or an exception nobody foresaw
        "damaged",  # the file is not what it claims to be
        "encrypted",
        "empty",  # zero bytes
        "no_text",  # bytes, but no text in them
        "needs_ocr",  # a picture or a scan, and no engine to read it
        "unsupported",  # no reader for this format
        "output_limit",  # wrote or answered more than allowed
        "holds_secret",  # a note or a piece of knowledge, which must not
        "infected",  # refused by the operator's scanner, before any child saw it
    }
)


class TaskFailed(Exception):
    """The file cannot be used, for a reason that lies in the file."""

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(f"{reason}: {detail}" if detail else reason)


class ChildFailed(TaskFailed):
    """A child did not finish its task; the same file would end the same way again."""


class PoolUnavailable(Exception):
    """No child could be started, or it was killed from outside: our trouble, not the file's. Worth another try."""


OUT_OF_MEMORY = 72  # exit code of a child that had none left to say so
_LOADER_FAILED = 127  # how the dynamic loader leaves when there is no memory left for it


def from_exit(status: int) -> ChildFailed:
    """What the exit status of a child that ended without an answer means (negative: the signal that ended it)."""
    if status in {-signal.SIGPROF, -signal.SIGXCPU}:
        return ChildFailed("too_slow", "used up its processor time")
    if status in {
        -signal.SIGABRT,
        _LOADER_FAILED,
        OUT_OF_MEMORY,
    }:  # native code aborts when an allocation fails
        return ChildFailed("too_large", "ran out of memory")
    if status == -signal.SIGXFSZ:
        return ChildFailed("output_limit", "wrote a file larger than allowed")
    if status == -signal.SIGKILL:  # neither our clock nor a limit: the machine ran short, or somebody did it
        raise PoolUnavailable("a child was killed from outside")
    if status < 0:
        return ChildFailed("crashed", f"ended by signal {-status}")
    return ChildFailed("crashed", f"left without an answer (exit code {status})")
