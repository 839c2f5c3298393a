"""Many at once, or one alone. A job whose holder died runs alone, so that a second death is certainly its own."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Gate:
    def __init__(self) -> None:
        self._condition = asyncio.Condition()
        self._inside = 0
        self._alone_waiting = 0

    @asynccontextmanager
    async def together(self) -> AsyncGenerator[None]:
        async with self._condition:
            await self._condition.wait_for(lambda: self._inside >= 0 and not self._alone_waiting)
            self._inside += 1
        try:
            yield
        finally:
            async with self._condition:
                self._inside -= 1
                self._condition.notify_all()

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        async with self._condition:
            self._alone_waiting += 1
            try:
                await self._condition.wait_for(lambda: self._inside == 0)
            finally:
                self._alone_waiting -= 1
            self._inside = -1
        try:
            yield
        finally:
            async with self._condition:
                self._inside = 0
                self._condition.notify_all()
