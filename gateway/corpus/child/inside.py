"""Life inside a child: take on the limits, then answer tasks until told to leave.

Nothing here may raise into the fork server's code: `live` never returns. Details of failures name types and places,
never messages, because a reader's message can quote the document.
"""

import errno
import importlib
import mmap
import os
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from gateway.corpus.child import confinement, frames
from gateway.corpus.child.failures import OUT_OF_MEMORY, TaskFailed
from gateway.corpus.child.limits import Limits

NOT_CONFINED = 71  # exit code of a child that could not take on its limits and so touched nothing
_LEAVES_AFTER = frozenset({"crashed", "too_large", "too_slow", "output_limit", "damaged"})

Handler = Callable[[dict[str, Any], bytes | mmap.mmap], Iterator[dict[str, Any]]]


def load_handler(name: str, preload: list[str], wing: str) -> Handler:
    """Import what children will need. A handler module has `handle(task, payload)`; it and a wing may have `prepare()`."""
    for module in preload:
        importlib.import_module(module)
    modules = [importlib.import_module(one) for one in (wing, name) if one]
    for module in modules:
        if prepare := getattr(module, "prepare", None):
            prepare()
    return modules[-1].handle


def code_folders(handler: str) -> list[Path]:
    """Where code that may still be imported lies: interpreter, libraries, this package and the handler's."""
    packages = [sys.modules[name.partition(".")[0]] for name in (__name__, handler)]
    ours = [Path(str(package.__file__)).parent for package in packages if hasattr(package, "__path__")]
    return [Path(sys.prefix), Path(sys.base_prefix), *ours]


def live(
    channel_descriptor: int,
    *,
    handler: Handler,
    limits: Limits,
    home: Path | None,
    server: int,
    resident_tasks: int,
    walls: Callable[[], None],
) -> NoReturn:
    """Serve one task, or up to `resident_tasks` of them."""
    code = NOT_CONFINED
    try:
        channel = _settle(channel_descriptor, home, server, walls)
        limits.apply(resident_tasks=resident_tasks)
        code = 1
        turns = max(1, resident_tasks)
        while turns and (received := frames.receive_task(channel)) is not None:
            turns -= 1
            last, outcome = _answer(channel, handler, limits, *received)
            stays = turns > 0 and outcome.get("reason") not in _LEAVES_AFTER and _left_nothing(home)
            kind = frames.FAILED if "reason" in outcome else frames.END
            # Together: most answers are one record, and each send wakes the parent.
            frames.send(channel, last + frames.pack(kind, {**outcome, "stays": stays}))
            if not stays:
                break
        code = 0
    except MemoryError:  # so little is left that not even an answer fits
        code = OUT_OF_MEMORY
    finally:
        os._exit(code)


def _settle(descriptor: int, home: Path | None, server: int, walls: Callable[[], None]) -> socket.socket:
    confinement.die_with_parent(server)
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    if home is not None:
        os.environ.update(HOME=str(home), TMPDIR=str(home))
        tempfile.tempdir = None
    os.umask(0o077)
    os.chdir(home or "/")
    channel = socket.socket(fileno=descriptor)
    walls()  # by a descriptor that goes with all the others
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, 4096)
    return channel


def _left_nothing(home: Path | None) -> bool:
    return home is None or not any(home.iterdir())


def _answer(
    channel: socket.socket, handler: Handler, limits: Limits, task: dict[str, Any], payload: bytes | int
) -> tuple[bytes, dict[str, str]]:
    """Run one task and send its records but the last, which comes back; the reason and detail of a failure, or nothing."""
    _crash_point()
    size = len(payload) if isinstance(payload, bytes) else os.fstat(payload).st_size
    limits.grant(size, task["secondsPerMib"])
    last = b""
    try:
        if size == 0:
            return last, {"reason": "empty", "detail": "zero bytes"}
        for record in handler(task["task"], payload if isinstance(payload, bytes) else _mapped(payload)):
            if last:
                frames.send(channel, last)
            last = frames.pack(frames.RECORD, record)
    except TaskFailed as failure:
        return b"", {"reason": failure.reason, "detail": failure.detail}
    except MemoryError:
        return b"", {"reason": "too_large", "detail": "ran out of memory"}
    except RecursionError:
        return b"", {"reason": "damaged", "detail": "nested too deeply"}
    except OSError as error:
        reason = "output_limit" if error.errno == errno.EFBIG else "crashed"
        return b"", {"reason": reason, "detail": _place(error)}
    except Exception as error:  # noqa: BLE001 - the edge of the process: whatever a reader raises becomes an answer
        return b"", {"reason": "crashed", "detail": _place(error)}
    return last, {}


def _mapped(descriptor: int) -> mmap.mmap:
    """A private copy-on-write view: readers that want a writable buffer get one, the file stays as it is."""
    try:
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY)
    finally:
        os.close(descriptor)


def _place(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"


def _crash_point() -> None:
    if "CATCHMENT_CRASH_POINTS" not in os.environ:
        return  # nearly always; what every new child imports costs each of them
    from gateway.crashpoints import crash_point  # noqa: PLC0415 - the fork server itself has no crash point

    crash_point("parser.child")
