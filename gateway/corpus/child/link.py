"""The line to the fork server: start it, ask for children, hear of their ends, notice when it is gone."""

import asyncio
import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gateway
from gateway.corpus.child import folders, frames
from gateway.corpus.child.failures import PoolUnavailable
from gateway.corpus.child.server import EXITED, HELLO, KILL, MESSAGE_BYTES, READY, SPAWN

# Built from nothing: no credential, proxy or path of the worker reaches a reader. One thread and few arenas, or the
# address-space limit would refuse good files on machines with many cores; and nobody phones home.
_ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "MALLOC_ARENA_MAX": "2",
    # A reader frees one page's memory and asks for the next one's: given back to the kernel in between, it costs thousands
    # of page faults in a young child (a seventh of the time of a PDF).
    "MALLOC_TOP_PAD_": str(16 * 1024 * 1024),
    # So is what is mapped on its own each time, which lists of a page's characters are from 128 kB on.
    "MALLOC_MMAP_THRESHOLD_": str(4 * 1024 * 1024),
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "TOKIO_WORKER_THREADS": "1",
    "DO_NOT_TRACK": "1",
    "SCARF_NO_ANALYTICS": "1",
}
_FOR_TESTS = ("CATCHMENT_CRASH_POINTS",)
# Loading makes a million objects and no garbage; the collector looks for some when the server is loaded, not before.
_BOOT = "import gc, sys; gc.disable(); sys.path[:0] = sys.argv[2:]; from gateway.corpus.child.server import main; main()"
_START_SECONDS = 60


class Child:
    """A child as its parent sees it. `exited` resolves to its exit status; None: never started, or lost. `tasks_left` is
    counted here: what a child says of itself may be a lie.
    """

    def __init__(self, number: int, channel: socket.socket, *, tasks: int) -> None:
        self.number = number
        self.channel = channel
        self.tasks_left = tasks
        self.exited: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()


@dataclass(frozen=True)
class Launched:
    """A fork server's process. It loads nothing before it is greeted, and whoever greets it again finds it empty."""

    control: socket.socket
    base: Path
    held: int  # keeps the folder ours
    process: subprocess.Popen[bytes]

    def close(self) -> None:
        """Hang up, wait until the server has buried its children, and remove what it could not."""
        self.control.close()
        try:
            self.process.wait(10)  # at once where another process launched it, which closes it in its turn
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stderr is not None:
            self.process.stderr.close()
        shutil.rmtree(self.base, ignore_errors=True)
        os.close(self.held)


def launch() -> Launched:
    folders.sweep()
    base, held = folders.claim()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    inherited = {name: os.environ[name] for name in _FOR_TESTS if name in os.environ}
    with theirs:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-I", "-X", "utf8", "-c", _BOOT, str(theirs.fileno()), *_import_path()],
            env={**_ENVIRONMENT, **inherited, "HOME": str(base), "TMPDIR": str(base)},
            cwd=base,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
    return Launched(ours, base, held, process)


class ServerLink:
    def __init__(self, server: Launched) -> None:
        self._server = server
        self._control = server.control
        self._children: dict[int, Child] = {}
        self._numbers = 0
        self.lost = False
        self.protections: dict[str, str] = {}

    @classmethod
    async def start(cls, config: dict[str, Any], launched: Launched | None = None) -> "ServerLink":
        link = cls(launched or await asyncio.to_thread(launch))
        try:
            await link._greet(config)
        except BaseException:
            await link.aclose()
            raise
        return link

    @property
    def has_children(self) -> bool:
        return bool(self._children)

    def spawn(self, *, tasks: int, folder: bool, office: bool = False) -> Child:
        """Ask for a child that serves so many tasks, with or without a folder to write to. Its channel can be used at once; whether it lives is told by `exited`."""
        self._numbers += 1
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        child = Child(self._numbers, ours, tasks=tasks)
        self._children[child.number] = child
        wanted = {"resident": tasks > 1, "folder": folder, "office": office}
        request = frames.pack(frames.TASK, {"op": SPAWN, "child": child.number, **wanted})
        with theirs:
            try:
                socket.send_fds(self._control, [request], [theirs.fileno()])
            except OSError:  # gone, or so far behind that a restart is due
                self._lose()
        return child

    def dismiss(self, child: Child) -> None:
        """Kill it, whatever it is doing: it has been paid, or will not be."""
        child.channel.close()
        if child.number in self._children:
            with contextlib.suppress(OSError):
                self._control.send(frames.pack(frames.TASK, {"op": KILL, "child": child.number}))

    async def aclose(self) -> None:
        if self._control.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._control)
            await asyncio.to_thread(self._server.close)
        self._lose()

    async def _greet(self, config: dict[str, Any]) -> None:
        loop, name = asyncio.get_running_loop(), secrets.token_hex(8)
        greeting = {**config, "op": HELLO, "name": name, "base": str(self._server.base)}
        message, answer = b"", dict[str, Any]()
        try:
            async with asyncio.timeout(_START_SECONDS):
                await loop.sock_sendall(self._control, frames.pack(frames.TASK, greeting))
                while message := await loop.sock_recv(self._control, MESSAGE_BYTES):
                    answer = frames.unpack(message[frames.HEAD.size :])
                    if answer["event"] == READY and answer["name"] == name:
                        break  # all before it was meant for one who died
        except (TimeoutError, ConnectionResetError, BrokenPipeError):
            message = b""
        if not message:
            raise PoolUnavailable(f"the fork server did not start: {self._last_words()}")
        self.protections = answer["protections"]
        loop.add_reader(self._control, self._hear)

    def _last_words(self) -> str:
        assert self._server.process.stderr is not None  # noqa: S101 - it was started with a pipe
        descriptor = self._server.process.stderr.fileno()
        os.set_blocking(descriptor, False)
        with contextlib.suppress(BlockingIOError):
            if said := os.read(descriptor, MESSAGE_BYTES).decode(errors="replace").strip():
                return said.splitlines()[-1]
        return "it said nothing"

    def _hear(self) -> None:
        while True:
            try:
                message = self._control.recv(MESSAGE_BYTES)
            except BlockingIOError:
                return
            except OSError:
                message = b""
            if not message:
                self._lose()
                return
            news = frames.unpack(message[frames.HEAD.size :])
            if news["event"] == EXITED:
                self._end(news["child"], news["status"])

    def _end(self, number: int, status: int | None) -> None:
        child = self._children.pop(number, None)
        if child is not None and not child.exited.done():
            child.exited.set_result(status)

    def _lose(self) -> None:
        self.lost = True
        if self._control.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._control)
        for number in list(self._children):
            self._end(number, None)


def _import_path() -> list[str]:
    """Where this process finds code, first to be searched: the server must not find another version of it."""
    home = str(Path(gateway.__file__).parent.parent)
    return list(dict.fromkeys([home, *(entry for entry in sys.path if Path(entry).is_dir())]))
