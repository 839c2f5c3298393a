"""Finds and ends what a killed process tree left behind.

The kernel usually ends children with their parent, so there is rarely anything to do. What is left is recognised by
facts that no other process shares: a store by the private folder it works in, a service by a mark in its environment.
The caller holds the lock of the data folder, so nothing found here belongs to a living instance.
"""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from gateway.embedded.gate import MARK, mark

_LOOK_SECONDS = 0.01  # not our children, so there is nothing to wait on but a look
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess)


def working_in(folder: Path, program: str) -> list[psutil.Process]:
    """Processes of that program whose working folder this is. Both stores stay in theirs for life."""
    wanted = os.path.realpath(folder)
    return [p for p in _others() if _name(p) == program and _folder(p) == wanted]


def marked(data_dir: Path) -> list[psutil.Process]:
    """Services, and whatever they started, of an instance on this data folder."""
    wanted = mark(data_dir)[MARK]
    return [p for p in _others() if _environment(p).get(MARK) == wanted]


def end(
    processes: Sequence[psutil.Process],
    *,
    ask: Sequence[psutil.Process],
    with_signal: signal.Signals,
    patience: float,
) -> None:
    """Asks some to stop, waits for all, kills the rest."""
    for process in ask:
        _send(process, with_signal)
    for process in _wait(processes, patience):
        _send(process, signal.SIGKILL)
    _wait(processes, patience)


def _wait(processes: Sequence[psutil.Process], patience: float) -> list[psutil.Process]:
    """Those still there when patience is at an end.

    A zombie is gone: its new parent may be the first process of a container, which often never buries anybody.
    """
    deadline = time.monotonic() + patience
    while alive := [process for process in processes if _lives(process)]:
        if time.monotonic() > deadline:
            return alive
        time.sleep(_LOOK_SECONDS)
    return []


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _others() -> Iterator[psutil.Process]:
    ourselves = {os.getpid(), *(p.pid for p in psutil.Process().parents())}
    return (p for p in psutil.process_iter() if p.pid not in ourselves)


def _send(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(*_GONE):
        process.send_signal(number)


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except _GONE:
        return ""


def _folder(process: psutil.Process) -> str:
    try:
        return process.cwd()
    except _GONE:
        return ""


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except (*_GONE, OSError):
        return {}
