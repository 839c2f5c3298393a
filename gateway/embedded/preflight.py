"""What can be known to go wrong before anything is started, each said in one sentence a person can act on."""

import errno
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

# Below this a first start (about 50 MB) plus one round of WAL would end in a database that cannot write.
LEAST_FREE_BYTES = 200 * 1024 * 1024

_NO_ROOM = ("No space left on device", "Disk quota exceeded")
_TELLING = re.compile(r"(FATAL|PANIC|initdb: error): .*")


class StartupRefused(Exception):
    """Catchment cannot start; the message is one sentence for the person at the terminal."""


def free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def check_folder(data_dir: Path) -> None:
    """Creates the data folder if needed and proves that we can write in it."""
    try:
        str(data_dir).encode()  # it is written into addresses, settings and logs
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=data_dir, prefix=".write-check-"):
            pass
    except (FileExistsError, NotADirectoryError):
        raise StartupRefused(
            f"The data folder {data_dir} cannot be used because a file is in its place."
        ) from None
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise disk_full(data_dir) from None
        raise StartupRefused(
            f"The data folder {data_dir} cannot be written to ({_reason(error)}): "
            "choose another one with --data-dir or correct its permissions."
        ) from None
    except ValueError as error:
        raise StartupRefused(f"The data folder {str(data_dir)!r} is not a usable path: {error}.") from None


def check_disk(data_dir: Path, measure: Callable[[Path], int] = free_bytes) -> None:
    if measure(data_dir) < LEAST_FREE_BYTES:
        raise disk_full(data_dir)


def open_port(host: str, port: int) -> socket.socket:
    """Listens there, so that nobody else can from here on; 0 stands for any free port."""
    if not 0 <= port <= 65535:
        raise StartupRefused(f"Port {port} does not exist: choose one between 1 and 65535.")
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror:
        raise StartupRefused(f"The host name {host} is not known on this machine.") from None
    # Named as TCP, or asyncio leaves Nagle's algorithm on.
    listener = socket.socket(family, kind, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise StartupRefused(
                f"Port {port} on {host} is already taken by another program: choose another one with --port."
            ) from None
        raise StartupRefused(f"Catchment cannot listen on {host} port {port}: {_reason(error)}.") from None
    return listener


def disk_full(folder: Path) -> StartupRefused:
    megabytes = LEAST_FREE_BYTES // (1024 * 1024)
    return StartupRefused(
        f"The disk that holds {folder} is full: Catchment needs at least {megabytes} MB of free space to start."
    )


def of_another_user(folder: Path) -> StartupRefused:
    return StartupRefused(
        f"The folder {folder} belongs to another user (uid {folder.stat().st_uid}): "
        "start Catchment as that user, or choose another --data-dir."
    )


def failed_program(name: str, happened: str, output: str, folder: Path | None) -> StartupRefused:
    """Turns what a program printed before it gave up into our one sentence."""
    if folder is not None and any(sign in output for sign in _NO_ROOM):
        return disk_full(folder)
    lines = [" ".join(line.split()) for line in output.splitlines() if line.strip()]
    telling = [found[0] for line in lines if (found := _TELLING.search(line))]
    last = (telling or lines or ["it printed nothing"])[-1]
    return StartupRefused(f"{name.capitalize()} {happened}: {last}")


def _reason(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else str(error)
