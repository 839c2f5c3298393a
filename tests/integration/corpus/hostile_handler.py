"""A handler for the limited child that does whatever the task tells it to: the tests' stand-in for bad files."""

import ctypes
import mmap
import os
import resource
import signal
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import gateway.corpus.child
from gateway.corpus.child import TaskFailed, frames

HOARD: list[bytes] = []


def handle(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    yield from ACTIONS[task["do"]](task, payload)


def _describe(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    yield {"pid": os.getpid(), "length": len(payload), "head": payload[:4], "environment": dict(os.environ)}


def _say_where_code_is(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    yield {"handler": __file__, "child": gateway.corpus.child.__file__}


def _say_wing(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    wing = sys.modules.get("tests.integration.corpus.slow_wing")
    yield {"loaded": wing and wing.LOADED}


def _three_records(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    yield from ({"number": number} for number in range(3))


def _say_much(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    yield {"much": b"x" * task["bytes"]}


def _take_memory(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    taken = bytearray(task["bytes"])
    yield {"taken": len(taken)}


def _take_all_memory(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    for size in (1 << 20, 1 << 12, 1 << 6):
        with suppress(MemoryError):
            while True:
                HOARD.append(bytes(size))
    yield {"bytes": bytes(1 << 16)}


def _abort(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    ctypes.CDLL(None).abort()
    yield {}


def _touch_nothing_mapped(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    ctypes.string_at(0)
    yield {}


def _loop(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    while True:
        pass
    yield {}


def _spend(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    until = time.process_time() + task["seconds"]
    while time.process_time() < until:
        pass
    yield {"pid": os.getpid()}


def _wait(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    signal.pause()
    yield {}


def _flood(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    while True:
        yield {"filling": b"x" * 65536}


def _promise_a_large_frame(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    _channel().sendall(b"R\xff\xff\xff\xff")
    signal.pause()
    yield {}


def _hang_up_and_stay(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    os.close(_channel_descriptor())
    signal.pause()
    yield {}


def _say_nothing_at_length(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    _channel().send(b"")
    signal.pause()
    yield {}


def _pretend_to_stay(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    """Answers every task itself, from here on, and wants the next one each time."""
    while True:
        answer = frames.pack(frames.RECORD, {"pid": os.getpid()}) + frames.pack(frames.END, {"stays": True})
        _channel().sendall(answer)
        if frames.receive_task(_channel()) is None:
            os._exit(0)
    yield {}


def _babble(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    _channel().sendall(b"R\x00\x00\x00\x04\xc1\xc1\xc1\xc1")
    signal.pause()
    yield {}


def _write_file(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    path = Path(tempfile.mkdtemp()) / "left-behind"
    path.write_bytes(b"x" * task["bytes"])
    yield {"path": str(path), "pid": os.getpid()}


def _write_where_it_can(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    folders = {Path.home(), Path.cwd(), Path(os.environ["TMPDIR"]), Path("/tmp"), Path("/dev/shm"), Path("/")}
    written: list[str] = []
    for folder in folders:
        with suppress(OSError):
            (folder / "left-behind").write_bytes(b"x")
            written.append(str(folder))
    yield {"written": written, "home": str(Path.home())}


def _open_files(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    opened: list[int] = []
    try:
        while len(opened) < 1000:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        os.close(opened.pop())
    yield {"opened": len(opened), "core": resource.getrlimit(resource.RLIMIT_CORE)}
    for descriptor in opened:
        os.close(descriptor)


def _start_helper(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    heard, told = os.pipe()
    if os.fork() == 0:
        if task["apart"]:  # out of every group whose leader could be found, and nobody's child
            if os.fork():
                os._exit(0)
            os.setsid()
        os.write(told, b"x")
        signal.pause()
    os.read(heard, 1)
    yield {"pid": os.getpid()}


def _connect(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    try:
        with socket.create_connection(("127.0.0.1", task["port"]), timeout=5):
            yield {"connected": True}
    except OSError as error:
        yield {"connected": False, "error": type(error).__name__}


def _connect_in_native_code(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
    address = (
        socket.AF_INET.to_bytes(2, "little")
        + task["port"].to_bytes(2, "big")
        + b"\x7f\x00\x00\x01"
        + bytes(8)
    )
    yield {"connected": libc.connect(descriptor, address, len(address)) == 0}


def _send_a_datagram(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outlet:
            outlet.sendto(b"canary", ("127.0.0.1", 9))
            yield {"sent": True}
    except OSError as error:
        yield {"sent": False, "error": type(error).__name__}


def _read_file(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    try:
        yield {"read": len(Path(task["path"]).read_bytes())}
    except PermissionError:
        yield {"read": None}


def _signal(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    try:
        os.kill(task["pid"], 0)
    except OSError as error:
        yield {"reached": False, "error": type(error).__name__}
    else:
        yield {"reached": True}


def _die(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    os.kill(os.getpid(), signal.SIGKILL)
    yield {}


def _raise(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    raise ValueError("canary: a sentence from the document")
    yield {}


def _recurse(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    yield from _recurse(task, payload)


def _fail(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    raise TaskFailed(task["reason"], "as asked")
    yield {}


def _channel() -> socket.socket:
    return socket.socket(fileno=os.dup(_channel_descriptor()))


def _channel_descriptor() -> int:
    for descriptor in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                return descriptor
        except OSError:
            continue
    raise LookupError("no channel")


ACTIONS: dict[str, Callable[[dict[str, Any], bytes | mmap.mmap], Iterator[dict[str, Any]]]] = {
    name.removeprefix("_"): action
    for name, action in list(globals().items())
    if name.startswith("_") and not name.startswith(("__", "_channel")) and callable(action)
}
