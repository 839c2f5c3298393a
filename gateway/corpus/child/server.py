"""The fork server: a clean, single-threaded process with the readers loaded, which forks children and buries them.

It is started with an environment made from nothing, opens no document and knows no tenant. It loads when it is first
greeted; greeted again, by the next worker after a death, it kills every child and deletes every private folder of the one
before. When the last end of the control socket closes – orderly or by `kill -9` – it does so too and leaves. Where
the kernel allows it is the first process of its own process-id namespace, so that nothing at all can outlive it.
"""

import contextlib
import gc
import os
import selectors
import signal
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gateway.corpus.child import confinement, folders, frames, inside, orphans, pages
from gateway.corpus.child.limits import Limits

MESSAGE_BYTES = 64 * 1024
READY, EXITED = "ready", "exited"
HELLO, SPAWN, KILL = "hello", "spawn", "kill"
_ROUNDS = 100


@dataclass(slots=True)
class _Child:
    number: int
    home: Path | None
    office: bool


class Server:
    def __init__(self, control: socket.socket, config: dict[str, Any]) -> None:
        self._control = control
        self._base = Path(config["base"])
        self._resident_tasks = int(config["residentTasks"])
        self._limits = Limits(**config["limits"])
        self._handler = inside.load_handler(config["handler"], config["preload"], config["wing"])
        self._code = inside.code_folders(config["handler"])
        self._protections = confinement.Protections.available(namespaces=config["namespaces"])
        # Of every child that needs no folder. Making them takes longer than reading many a file.
        self._walls = confinement.walls(self._protections, self._code)
        self._children: dict[int, _Child] = {}

    def serve(self, name: str) -> None:
        """`name` is the greeting to answer."""
        threads = len(list(Path("/proc/self/task").iterdir()))
        if threads != 1:
            raise RuntimeError(f"a preloaded module started threads ({threads}): forking would not be safe")
        orphans.adopt()
        gc.collect()
        gc.freeze()  # pages that children share stay shared
        gc.enable()
        pages.enlarge()
        wake_read, wake_write = socket.socketpair()
        wake_write.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(wake_write.fileno(), warn_on_full_buffer=False)
        self._welcome(name)
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(wake_read, selectors.EVENT_READ)
            while True:
                for key, _events in selector.select():
                    if key.fileobj is wake_read:
                        wake_read.recv(4096)
                        self._bury()
                    elif not self._obey():
                        return

    def close(self) -> None:
        self._end_children()
        _remove(self._base)

    def _welcome(self, name: str) -> None:
        self._end_children()
        self._tell({"event": READY, "name": name, "protections": asdict(self._protections)})

    def _end_children(self) -> None:
        for pid in self._children:
            _kill_group(pid)
        for pid, child in self._children.items():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
            _remove(child.home)
        self._children.clear()

    def _tell(self, message: dict[str, Any]) -> None:
        # When the worker is gone, the next read says so.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._control.send(frames.pack(frames.RECORD, message))

    def _obey(self) -> bool:
        data, descriptors, _flags, _address = socket.recv_fds(self._control, MESSAGE_BYTES, 1)
        if not data:
            return False
        message = frames.unpack(data[frames.HEAD.size :])
        if message["op"] == SPAWN:
            self._spawn(
                int(message["child"]),
                descriptors[0],
                resident=bool(message["resident"]),
                folder=bool(message["folder"]),
                office=bool(message["office"]),
            )
        elif message["op"] == KILL:
            self._kill(int(message["child"]))
        elif message["op"] == HELLO:
            self._welcome(str(message["name"]))
        return True

    def _spawn(self, number: int, channel: int, *, resident: bool, folder: bool, office: bool) -> None:
        home = self._base / str(number) if folder else None
        server = os.getpid()
        try:
            if home is not None:
                home.mkdir(mode=0o700)
            pid = os.fork()
        except OSError:
            _remove(home)
            os.close(channel)
            self._tell({"event": EXITED, "child": number, "status": None})
            return
        if pid == 0:
            inside.live(
                channel,
                handler=self._handler,
                limits=self._limits,
                home=home,
                server=server,
                resident_tasks=self._resident_tasks if resident else 0,
                walls=lambda: self._confine(home, office=office),
            )
        os.close(channel)
        self._children[pid] = _Child(number, home, office)

    def _confine(self, home: Path | None, *, office: bool) -> None:
        """In the child."""
        walls = confinement.walls(self._protections, self._code, home, office=office) if home else self._walls
        confinement.confine(self._protections, walls)

    def _kill(self, number: int) -> None:
        for pid, child in self._children.items():
            if child.number == number:
                _kill_group(pid)

    def _bury(self) -> None:
        while True:
            try:
                # Looked at, not yet reaped: while the body is there its number cannot be anyone else's.
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            _kill_group(found.si_pid)
            _pid, status = os.waitpid(found.si_pid, 0)
            child = self._children.pop(found.si_pid, None)
            if child is None:  # a child's orphan, adopted here
                continue
            self._end_escaped()
            _remove(child.home)
            code = os.waitstatus_to_exitcode(status)
            self._tell({"event": EXITED, "child": child.number, "status": code})

    def _end_escaped(self) -> None:
        """Orphans outside of every living child's group. Whatever LibreOffice starts is waited for."""
        if any(child.office for child in self._children.values()):
            return
        for _ in range(_ROUNDS):
            escaped = [pid for pid in orphans.children(len(self._children) + 1) if self._is_nobodys(pid)]
            if not escaped:
                return
            for pid in escaped:
                _kill_group(pid)
                os.waitpid(pid, 0)
        raise RuntimeError("helpers multiply faster than they can be ended")  # with this process they all end

    def _is_nobodys(self, pid: int) -> bool:
        with contextlib.suppress(ProcessLookupError):
            return pid not in self._children and os.getpgid(pid) not in self._children
        return False


def _kill_group(pid: int) -> None:
    """A child leads its own group; a helper it started dies with it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)  # in the instant before it has become leader of its group


def _remove(folder: Path | None) -> None:
    if folder is None:
        return
    try:
        folder.rmdir()  # nearly always empty
    except FileNotFoundError:
        return
    except OSError:  # rm, unlike shutil, takes any depth a hostile child may have built
        subprocess.run(["/bin/rm", "-rf", "--", str(folder)], check=False)  # noqa: S603 - a fixed program, our own folder


def _become_first_process() -> None:
    """Fork into the new process-id namespace; the process outside only waits for the one inside."""
    pid = os.fork()
    if pid:
        os.closerange(3, 1024)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 0xFF)
    confinement.die_with_parent(
        0
    )  # seen from inside, the parent is outside of the namespace and has no number


def main() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # what the launcher waits for is not for us to miss
    control = socket.socket(fileno=int(sys.argv[1]))
    control.setblocking(True)
    config = frames.unpack(control.recv(MESSAGE_BYTES)[frames.HEAD.size :])
    config["namespaces"] = config["namespaces"] and confinement.enter_namespaces()
    if config["namespaces"]:
        _become_first_process()
    folders.hold(Path(config["base"]))  # until this process ends
    server = Server(control, config)
    try:
        server.serve(str(config["name"]))
    finally:
        server.close()
