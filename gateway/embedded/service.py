"""One supervised process: what to run, how to tell that it is ready, how to ask it to stop."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gateway.embedded import launch
from gateway.embedded.account import Account
from gateway.embedded.preflight import failed_program

POLL_SECONDS = 0.01  # readiness of another process can only be looked up; a look is cheap
STOPPED_EARLY = "stopped while starting"


@dataclass(frozen=True, kw_only=True)
class Service:
    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    folder: Path | None = None
    account: Account | None = None
    # Listening, and ours: whoever connects while the process starts, or is started again, only waits.
    sockets: Sequence[socket.socket] = ()
    # Given the process id; may block for a moment, is never called on the event loop.
    ready: Callable[[int], bool] | None = None
    ready_timeout: float = 60.0
    # Clears the ground before every start, the first and each restart.
    before_start: Callable[[], None] | None = None
    # Told what a process printed that ended: True when it removed the cause and another start is worth while.
    mend: Callable[[str], bool] | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    stop_timeout: float = 10.0
    # What the kernel sends when the parent is killed and nobody is left to ask nicely.
    death_signal: signal.Signals = signal.SIGKILL

    def argv(self) -> list[str]:
        account = self.account
        who = (str(account.uid), str(account.gid)) if account else ("-", "-")
        folder = str(self.folder) if self.folder else "-"
        wrapper = [sys.executable, "-I", "-S", launch.__file__]
        return [*wrapper, str(os.getpid()), str(int(self.death_signal)), folder, *who, *self.command]


@contextmanager
def running(service: Service, log: Path) -> Generator[int]:
    """Runs one service without a supervisor, for as long as the block lasts."""
    if service.before_start:
        service.before_start()
    with log.open("a+b") as output:
        begin = output.seek(0, os.SEEK_END)
        process = subprocess.Popen(  # noqa: S603 - our own command
            service.argv(),
            env=dict(service.environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            if failure := _wait_until_ready(service, process):
                output.seek(begin)
                printed = output.read().decode(errors="replace")
                raise failed_program(service.name, failure, printed, service.folder)
            yield process.pid
        finally:
            process.send_signal(service.stop_signal)
            try:
                process.wait(service.stop_timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_ready(service: Service, process: subprocess.Popen[bytes]) -> str | None:
    """None when ready, else what went wrong."""
    deadline = time.monotonic() + service.ready_timeout
    while service.ready and not service.ready(process.pid):
        if process.poll() is not None:
            return STOPPED_EARLY
        if time.monotonic() > deadline:
            return not_ready(service)
        time.sleep(POLL_SECONDS)
    return None


def not_ready(service: Service) -> str:
    return f"was not ready within {service.ready_timeout:.0f} s"
