"""The operator's own scanner may veto a file before anything opens it.

`CATCHMENT_SCAN_COMMAND` (`clamdscan --fdpass -`, say) gets the bytes as its standard input, which is a file it can seek in.
Exit 0 lets the document pass, 1 means infected; anything else, and a scanner that takes too long or is not there, is the
scanner's trouble: the document waits and is tried again. Nothing is let through because nobody looked.
"""

import asyncio
import contextlib
import os
import shlex
import signal

from gateway.corpus.child import ChildFailed, PoolUnavailable

CLEAN, INFECTED = 0, 1


class ScanUnavailable(PoolUnavailable):
    """The scanner gave no verdict."""


class Scanner:
    def __init__(self, command: str | None, seconds: float) -> None:
        self._command = shlex.split(command or "")
        self._seconds = seconds

    async def check(self, data: bytes) -> None:
        """Raises ChildFailed("infected") or ScanUnavailable; without a command everything passes."""
        if not self._command or not data:
            return
        content = await asyncio.to_thread(_as_file, data)
        try:
            verdict = await self._verdict(content)
        finally:
            os.close(content)
        if verdict == INFECTED:
            raise ChildFailed("infected", "refused by the scanner")
        if verdict != CLEAN:
            raise ScanUnavailable(f"the scanner ended with {verdict}")

    async def _verdict(self, content: int) -> int:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=content,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},  # no key of ours
                start_new_session=True,
            )
        except OSError as error:
            raise ScanUnavailable(f"the scanner could not be started: {type(error).__name__}") from error
        try:
            async with asyncio.timeout(self._seconds):
                return await process.wait()
        except TimeoutError as error:
            raise ScanUnavailable("the scanner took too long") from error
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()


def _as_file(data: bytes) -> int:
    descriptor = os.memfd_create("scanned", os.MFD_CLOEXEC)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
