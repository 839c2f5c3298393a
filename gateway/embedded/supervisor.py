"""The parent of the process tree: starts services in order, restarts what dies, stops all in reverse order.

Every service is a session of its own, so that Ctrl-C at the terminal reaches the parent alone and the order of
stopping is ours. If the parent itself is killed, the kernel ends its children (`launch.py`) and the next start clears
away what may be left (`orphans.py`).
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Self

from gateway.embedded.output import Output, Pipe, Show
from gateway.embedded.preflight import StartupRefused, failed_program
from gateway.embedded.service import POLL_SECONDS, STOPPED_EARLY, Service, not_ready

Emit = Callable[..., None]  # the event's name, then its fields
Started = Callable[[str, int], None]  # a service was started or restarted, with this pid


@dataclass(frozen=True)
class Backoff:
    """How long a service that keeps dying waits for its next chance."""

    first: float = 0.2
    longest: float = 10.0
    forgiven_after: float = 30.0  # a service that ran this long starts over with the shortest wait


class Child:
    """One process of a service, from its start to its end."""

    def __init__(self, service: Service, process: asyncio.subprocess.Process, pipe: Pipe) -> None:
        self.service = service
        self.process = process
        self._pipe = pipe

    @classmethod
    async def spawn(cls, service: Service, output: Output) -> Self:
        if service.before_start:
            await asyncio.to_thread(service.before_start)
        pipe = Pipe(service.name, output)
        try:
            await pipe.open()
            # On this thread and no other: the kernel's death signal follows the thread that forked.
            process = await asyncio.create_subprocess_exec(
                *service.argv(),
                env=dict(service.environment),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=pipe.writing_end,
                stderr=pipe.writing_end,
                start_new_session=True,
                pass_fds=[each.fileno() for each in service.sockets],
            )
        finally:
            os.close(pipe.writing_end)
        return cls(service, process, pipe)

    async def wait_until_ready(self) -> None:
        service, deadline = self.service, time.monotonic() + self.service.ready_timeout
        while service.ready and not await asyncio.to_thread(service.ready, self.process.pid):
            if self.process.returncode is not None:
                happened = STOPPED_EARLY
            elif time.monotonic() > deadline:
                happened = not_ready(service)
            else:
                await asyncio.sleep(POLL_SECONDS)
                continue
            await self._pipe.close()
            raise failed_program(service.name, happened, "\n".join(self._pipe.tail), service.folder)

    async def mended(self) -> bool:
        """Asked once it has ended: whether its service knew what that was about, and removed the cause."""
        mend = self.service.mend
        return mend is not None and await asyncio.to_thread(mend, "\n".join(self._pipe.tail))

    async def wait(self) -> int:
        """Until the process is gone, and with it whatever it started in its own session."""
        code = await self.process.wait()
        self._kill_session()
        await self._pipe.close()
        return code

    async def stop(self, hurry: asyncio.Event) -> None:
        gone = asyncio.create_task(self.wait())
        impatient = asyncio.create_task(hurry.wait())
        with suppress(ProcessLookupError):
            self.process.send_signal(self.service.stop_signal)
        await asyncio.wait(
            {gone, impatient}, timeout=self.service.stop_timeout, return_when=asyncio.FIRST_COMPLETED
        )
        impatient.cancel()
        if self.process.returncode is None:
            self._kill_session()
        await gone

    def _kill_session(self) -> None:
        with suppress(ProcessLookupError, PermissionError):  # the latter is how macOS says "already a zombie"
            os.killpg(self.process.pid, signal.SIGKILL)


@dataclass
class _Kept:
    """A service, its process of the moment, and the task that replaces it when it dies."""

    service: Service
    child: Child | None = None
    keeper: asyncio.Task[None] | None = None


@dataclass(frozen=True)
class Begun:
    """A service that was started and is not known to be ready yet."""

    kept: _Kept
    child: Child


class Supervisor:
    """`show` and `emit` are called from a thread of their own and may block; `on_started` must be quick."""

    def __init__(
        self, *, show: Show, emit: Emit, on_started: Started | None = None, backoff: Backoff | None = None
    ) -> None:
        self._output = Output(show)
        self._emit = emit
        self._on_started = on_started
        self._backoff = backoff or Backoff()
        self._kept: list[_Kept] = []
        self._hurry = asyncio.Event()

    @property
    def pids(self) -> dict[str, int]:
        return {kept.service.name: kept.child.process.pid for kept in self._kept if kept.child}

    async def start(self, service: Service) -> None:
        """Returns when the service is ready; refuses if it never becomes so. From then on it is kept alive."""
        await self.ready(await self.begin(service))

    async def begin(self, service: Service) -> Begun:
        """Starts it without waiting; `ready` does that."""
        kept = _Kept(service)
        self._kept.append(kept)
        return Begun(kept, await self._spawn(kept))

    async def ready(self, begun: Begun) -> None:
        kept, child = begun.kept, begun.child
        try:
            await child.wait_until_ready()
        except StartupRefused:
            if not await child.mended():
                raise
            child = await self._spawn(kept)
            await child.wait_until_ready()
        kept.keeper = asyncio.create_task(self._keep(kept, child))
        self._say("house.ready", component=kept.service.name)

    async def watch(self) -> None:
        """Runs for as long as services are kept alive; raises only if our own keeping of them breaks."""
        await asyncio.gather(*(kept.keeper for kept in self._kept if kept.keeper))

    async def stop(self) -> None:
        """Every service in reverse order, each within its own time."""
        while self._kept:
            kept = self._kept[-1]
            self._say("house.stopping", component=kept.service.name)
            if kept.keeper:
                kept.keeper.cancel()
                await asyncio.wait({kept.keeper})
            if kept.child:
                await kept.child.stop(self._hurry)
            self._kept.pop()
        await asyncio.to_thread(self._output.close)

    def hurry(self) -> None:
        """Somebody asked twice: what has not stopped yet is killed."""
        self._hurry.set()

    async def _spawn(self, kept: _Kept) -> Child:
        kept.child = child = await Child.spawn(kept.service, self._output)
        if self._on_started:
            await asyncio.to_thread(self._on_started, kept.service.name, child.process.pid)
        self._say("house.starting", component=kept.service.name, pid=child.process.pid)
        return child

    async def _keep(self, kept: _Kept, child: Child) -> None:
        pause = self._backoff.first
        while True:
            began = time.monotonic()
            code = await child.wait()
            await child.mended()
            if time.monotonic() - began > self._backoff.forgiven_after:
                pause = self._backoff.first
            child, pause = await self._replace(kept, code, pause)

    async def _replace(self, kept: _Kept, code: int, pause: float) -> tuple[Child, float]:
        """Tries until the system lets a new process start; how long that runs is the caller's concern."""
        error = {}
        while True:
            fields = {"exitCode": code, "restartMs": round(pause * 1000), **error}
            self._say("house.child.died", component=kept.service.name, **fields)
            await asyncio.sleep(pause)
            pause = min(pause * 2, self._backoff.longest)
            try:
                return await self._spawn(kept), pause
            except (OSError, StartupRefused) as refused:  # no memory, no processes, a full disk: it may pass
                error = {"error": str(refused)}

    def _say(self, event: str, **fields: object) -> None:
        self._output.call(partial(self._emit, event, **fields))
