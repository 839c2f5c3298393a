"""What supervised processes print, line by line, to whoever shows it.

The shower runs in a thread of its own behind a bounded queue: a paused terminal or a slow disk costs lines, never a
child that hangs in its next print.
"""

import asyncio
import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial

Show = Callable[[str, str], None]  # name of the service, one line

_WAITING_LINES = 10_000
_LONGEST_LINE = 64 * 1024
_TAIL_LINES = 40


class Output:
    """Shows lines, and makes other calls that may block, one after the other and off the event loop."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._waiting: queue.Queue[Callable[[], None] | None] = queue.Queue(_WAITING_LINES)
        self._dropped = 0
        self._thread = threading.Thread(target=self._run, name="output", daemon=True)
        self._thread.start()

    def line(self, name: str, line: str) -> None:
        self.call(partial(self._show, name, line))

    def call(self, action: Callable[[], None]) -> None:
        try:
            self._waiting.put_nowait(action)
        except queue.Full:
            self._dropped += 1

    def close(self, patience: float = 2.0) -> None:
        """Shows what is waiting, unless the shower is stuck."""
        with suppress(queue.Full):
            self._waiting.put(None, timeout=patience)
        self._thread.join(patience)

    def _run(self) -> None:
        while (action := self._waiting.get()) is not None:
            # A closed terminal ends the showing, not the work.
            with suppress(OSError):
                action()
                if self._dropped:
                    dropped, self._dropped = self._dropped, 0
                    self._show("output", f"{dropped} lines were dropped because nobody took them in time")


class Pipe:
    """Both ends of what one process prints to. Bounded, however long its lines are."""

    def __init__(self, name: str, output: Output) -> None:
        self.tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._name = name
        self._output = output
        self._rest = b""
        self._stream = asyncio.StreamReader()
        self._reading_end, self.writing_end = os.pipe()
        self._transport: asyncio.ReadTransport | None = None
        self._drain: asyncio.Task[None] | None = None

    async def open(self) -> None:
        self._transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self._stream),
            os.fdopen(self._reading_end, "rb", buffering=0),
        )
        self._drain = asyncio.create_task(self._read())

    async def close(self, patience: float = 1.0) -> None:
        """Waits for the last lines; a grandchild that escaped with the writing end must not hold us up."""
        if self._drain:
            await asyncio.wait({self._drain}, timeout=patience)
            self._drain.cancel()
        if self._transport:
            self._transport.close()

    async def _read(self) -> None:
        while chunk := await self._stream.read(_LONGEST_LINE):
            self._take(chunk)
        self._take(b"\n")

    def _take(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            lines.append(self._rest)
            self._rest = b""
        for line in filter(None, lines):
            text = line.decode(errors="replace")
            self.tail.append(text)
            self._output.line(self._name, text)
