"""What a child answers, read with suspicion: every byte is counted before it is kept, every frame checked."""

import asyncio
import socket
from typing import Any

from gateway.corpus.child import frames
from gateway.corpus.child.failures import REASONS, ChildFailed


class HungUpError(Exception):
    """The child closed its end before it had answered."""


class Answer:
    """The records of one task, or the failure that took their place; `child_stays` if the child can be used again."""

    def __init__(self, channel: socket.socket, limit: int) -> None:
        self._channel = channel
        self._limit = limit
        self._buffer = bytearray()
        self._received = 0
        self.records: list[dict[str, Any]] = []
        self.failure: ChildFailed | None = None
        self.child_stays = False

    async def read(self) -> None:
        while True:
            frame = await self._frame()
            if frame is None:
                self.failure = ChildFailed("output_limit", f"answered with more than {self._limit} bytes")
                return
            kind, body = frame
            if kind == frames.RECORD and isinstance(body, dict):
                self.records.append(body)
                continue
            if kind == frames.FAILED and isinstance(body, dict) and body.get("reason") in REASONS:
                self.failure = ChildFailed(body["reason"], str(body.get("detail", ""))[:200])
            elif kind != frames.END or not isinstance(body, dict):
                self.failure = ChildFailed("crashed", "answered with something unreadable")
                return
            self.child_stays = body.get("stays") is True
            return

    async def _frame(self) -> tuple[bytes, Any] | None:
        """The next frame; None when it would go over the limit."""
        if not await self._fill(frames.HEAD.size):
            return None
        kind, length = frames.HEAD.unpack_from(self._buffer)
        end = frames.HEAD.size + length
        if not await self._fill(end):
            return None
        with memoryview(self._buffer) as view, view[frames.HEAD.size : end] as piece:
            body = frames.unpack(piece)  # released by us: whoever looks at our frames may keep it alive
        del self._buffer[:end]
        return kind, body

    async def _fill(self, length: int) -> bool:
        if self._received - len(self._buffer) + length > self._limit:
            return False
        loop = asyncio.get_running_loop()
        while len(self._buffer) < length:
            try:
                piece = await loop.sock_recv(self._channel, frames.MESSAGE_BYTES)
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise HungUpError
            self._received += len(piece)
            self._buffer += piece
        return True
