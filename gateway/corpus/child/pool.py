"""The worker's side: hand a task and a file to a child, take its records or a clear reason, never block the loop."""

import asyncio
import fcntl
import os
import socket
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from gateway.corpus.child import frames
from gateway.corpus.child.answer import Answer, HungUpError
from gateway.corpus.child.failures import ChildFailed, PoolUnavailable, from_exit
from gateway.corpus.child.inside import NOT_CONFINED
from gateway.corpus.child.limits import MIB, Limits
from gateway.corpus.child.link import Child, Launched, ServerLink
from gateway.corpus.child.servers import HOUSE, Servers

_SEALED = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


class ChildPool:
    """At most `size` tasks at a time. `isolated` tasks get a child of their own; the others share resident children,
    which are replaced after `resident_tasks` tasks and after any trouble.

    `handler` is the dotted name of a module with `handle(task, payload)`; it is imported in the fork server only.
    `launched` is a fork server that is already there; should it be lost, the pool launches its own.

    Tasks may name a `wing`: a module that few tasks need and that takes long to load. A second fork server has it loaded, from
    the first such task on until nobody has asked for it for `wing_seconds`.
    """

    def __init__(
        self,
        handler: str,
        *,
        preload: Sequence[str] = (),
        size: int = 2,
        limits: Limits | None = None,
        resident_tasks: int = 500,
        namespaces: bool = True,
        launched: Launched | None = None,
        wing_seconds: float = 300.0,
    ) -> None:
        self.limits = limits or Limits()
        config = {
            "handler": handler,
            "preload": list(preload),
            "residentTasks": resident_tasks,
            "namespaces": namespaces,
            "limits": asdict(self.limits),
        }
        self._resident_tasks = resident_tasks
        self._slots = asyncio.Semaphore(size)
        self._servers = Servers(config, launched, wing_seconds)
        self._idle: list[Child] = []

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.aclose()

    @property
    def protections(self) -> dict[str, str]:
        """Which walls are in force: `network`, `processes`, `files` (see `confinement.Protections`)."""
        return self._servers.protections

    async def start(self) -> None:
        """Start the fork server now, so that the first document does not wait for its imports."""
        await self._servers.get(HOUSE)

    async def aclose(self) -> None:
        """End every child and the fork server; their folders are gone when this returns."""
        await self._servers.aclose()
        while self._idle:
            self._idle.pop().channel.close()

    async def run(
        self,
        task: dict[str, Any],
        payload: bytes | Path | int,
        *,
        isolated: bool,
        folder: bool = False,
        office: bool = False,
        wing: str = HOUSE,
        seconds_per_mib: float | None = None,
    ) -> list[dict[str, Any]]:
        """The records the handler yields for this task. `payload` is bytes, a path or an open descriptor. `seconds_per_mib` of
        processor time, where the limits' own are too few.

        For an isolated one: `folder`, it may write files, into a folder of its own; `office`, there LibreOffice may be run;
        `wing`, it needs this module. Resident children always have a folder.

        Raises ChildFailed with the file's reason, or PoolUnavailable when no child could be had.
        """
        request = frames.pack(frames.TASK, {"task": task, "secondsPerMib": seconds_per_mib})
        if len(request) > frames.TASK_BYTES:
            raise ValueError("a task is a short description; the content belongs in the payload")
        async with self._slots:
            link = await self._servers.get(wing)
            if isinstance(payload, bytes) and len(request) + len(payload) <= frames.MESSAGE_BYTES:
                self._check_size(len(payload))
                child = self._child(link, isolated=isolated, folder=folder, office=office)
                return await self._exchange(link, child, request + payload)
            if isinstance(payload, bytes) and len(payload) < MIB:
                descriptor = _open(payload)
            else:
                descriptor = await asyncio.to_thread(_open, payload)
            try:
                self._check_size(os.fstat(descriptor).st_size)
                child = self._child(link, isolated=isolated, folder=folder, office=office)
                return await self._exchange(link, child, request, descriptor)
            finally:
                os.close(descriptor)

    def _check_size(self, size: int) -> None:
        if size > self.limits.input_bytes:
            raise ChildFailed("too_large", f"{size} bytes, allowed are {self.limits.input_bytes}")

    def _child(self, link: ServerLink, *, isolated: bool, folder: bool, office: bool) -> Child:
        while self._idle and not isolated:
            child = self._idle.pop()
            if not child.exited.done():
                return child
            child.channel.close()
        if isolated:
            return link.spawn(tasks=1, folder=folder or office, office=office)
        return link.spawn(tasks=self._resident_tasks, folder=True)

    async def _exchange(
        self, link: ServerLink, child: Child, request: bytes, *descriptors: int
    ) -> list[dict[str, Any]]:
        answer = Answer(child.channel, self.limits.output_bytes)
        child.tasks_left -= 1
        try:
            async with asyncio.timeout(self.limits.wall_seconds):
                try:
                    _send(child.channel, request, descriptors)
                    await answer.read()
                except HungUpError:  # it is dying, or only pretends to: the clock goes on
                    answer.failure = await _post_mortem(child)
        except TimeoutError:
            answer.failure = ChildFailed("too_slow", f"took longer than {self.limits.wall_seconds:g} s")
        except frames.FrameError:
            answer.failure = ChildFailed("crashed", "answered with something unreadable")
        finally:
            stays = answer.child_stays and child.tasks_left > 0
            if stays and not link.lost:
                self._idle.append(child)
            else:
                link.dismiss(child)
        if not stays:
            await child.exited  # its folder is gone, and no more than `size` are ever alive
        if answer.failure is not None:
            raise answer.failure
        return answer.records


async def _post_mortem(child: Child) -> ChildFailed:
    status = await asyncio.shield(child.exited)
    if status is None:
        raise PoolUnavailable("the fork server died or could not fork")
    if status == NOT_CONFINED:
        raise PoolUnavailable("a child could not be confined")
    return from_exit(status)


def _send(channel: socket.socket, request: bytes, descriptors: Sequence[int]) -> None:
    try:
        # An idle channel is empty and its buffer larger than any message: this never blocks.
        socket.send_fds(channel, [request], descriptors)
    except (BrokenPipeError, ConnectionResetError) as error:
        raise HungUpError from error


def _open(payload: bytes | Path | int) -> int:
    """A read-only descriptor of the content, which a child of another user may read and nobody can change."""
    if isinstance(payload, Path):
        return os.open(payload, os.O_RDONLY | os.O_CLOEXEC)
    if isinstance(payload, int):
        return os.dup(payload)
    descriptor = os.memfd_create("payload", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        view = memoryview(payload)
        while view:
            view = view[os.write(descriptor, view) :]
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALED)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
