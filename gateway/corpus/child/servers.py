"""The fork servers of one pool: the house's, and those of its wings while somebody needs them."""

import asyncio
from collections import defaultdict
from typing import Any

from gateway.corpus.child.failures import PoolUnavailable
from gateway.corpus.child.link import Launched, ServerLink

HOUSE = ""  # not a wing


class Servers:
    def __init__(self, config: dict[str, Any], launched: Launched | None, wing_seconds: float) -> None:
        self._config = config
        self._launched = launched
        self._wing_seconds = wing_seconds
        self._links: dict[str, ServerLink] = {}  # by wing
        self._used: dict[str, float] = {}
        self._closing: asyncio.Task[None] | None = None
        self._changing = defaultdict[str, asyncio.Lock](asyncio.Lock)  # by wing: loading one takes seconds
        self._closed = False

    @property
    def protections(self) -> dict[str, str]:
        if HOUSE not in self._links:
            raise PoolUnavailable("the pool has not been started")
        return self._links[HOUSE].protections

    async def get(self, wing: str) -> ServerLink:
        """Started if it was not, and started again if it was lost."""
        async with self._changing[wing]:
            if wing in self._links and self._links[wing].lost:
                await self._links.pop(wing).aclose()
            if wing not in self._links and not self._closed:
                launched, self._launched = (None, self._launched) if wing else (self._launched, None)
                self._links[wing] = await ServerLink.start({**self._config, "wing": wing}, launched)
            if self._closed:
                raise PoolUnavailable("the pool is closed")
            if wing != HOUSE:
                self._look_after(wing)
            return self._links[wing]

    async def aclose(self) -> None:
        self._closed = True
        if self._closing is not None:
            self._closing.cancel()
        for wing, changing in list(self._changing.items()):
            async with changing:
                if wing in self._links:
                    await self._links.pop(wing).aclose()

    def _look_after(self, wing: str) -> None:
        self._used[wing] = asyncio.get_running_loop().time()
        if self._closing is None:
            self._closing = asyncio.create_task(self._close_wings())

    async def _close_wings(self) -> None:
        """Until none is left: a pool without a wing has nothing to look after."""
        clock = asyncio.get_running_loop().time
        while self._used:
            await asyncio.sleep(min(self._used.values()) + self._wing_seconds - clock())
            for wing in list(self._used):
                async with self._changing[wing]:
                    await self._close_if_unused(wing, clock())
        self._closing = None

    async def _close_if_unused(self, wing: str, now: float) -> None:
        if wing in self._links and self._links[wing].has_children:
            self._used[wing] = now
        elif self._used[wing] + self._wing_seconds <= now:
            del self._used[wing]
            if wing in self._links:
                await self._links.pop(wing).aclose()
