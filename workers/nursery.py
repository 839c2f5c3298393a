"""Loads once, forks the worker, and forks it again when it was killed.

Loading is nearly all of a worker's start, and its parsers take as long again. A worker that a document or the kernel
killed is back at once, because modules, embedder and the parsers' fork server are still here. The nursery itself does
nothing a document could harm: it opens no store and reads no content.
"""

import ctypes
import os
import signal
import sys
import time

from gateway.corpus.child import Launched, launch
from gateway.logs import emit

_WATCHED = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT}
_PAUSE_SECONDS = 0.05  # a worker that is killed as soon as it lives must not keep a core busy
_PR_SET_PDEATHSIG = 1


def worker() -> Launched:
    """Returns in every new worker, with the fork server of its parsers. The nursery itself never returns: it ends with its
    worker, unless that was killed.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    parsers = launch()
    while True:
        if parsers.process.poll() is not None:
            parsers.close()
            parsers = launch()
        nursery = os.getpid()
        pid = os.fork()
        if pid == 0:
            _die_with(nursery)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
            return parsers
        code, told = _wait(pid)
        if told or code >= 0:
            parsers.close()
            sys.exit(max(code, 0))
        emit("house.child.died", component="worker", exitCode=code)
        time.sleep(_PAUSE_SECONDS)


def _wait(pid: int) -> tuple[int, bool]:
    """How the worker ended, and whether it was told to."""
    told = False
    while True:
        heard = signal.sigwait(_WATCHED)
        if heard != signal.SIGCHLD:
            told = True
            os.kill(pid, signal.SIGTERM)  # not yet buried, so the number is still its own
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), told


def _die_with(nursery: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != nursery:
        sys.exit("the nursery is already gone")
