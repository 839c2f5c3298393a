"""A vendor's limits, kept in Redis and so shared by every process that works for one connection.

Three things are kept per connection: until when the vendor wants to hear nothing, the requests of the running window, and
the requests in flight. A place with a limit of its own – a channel of Teams – has turns, whichever connection asks there.
All of it is a guess that the vendor corrects; Redis may forget it at any time.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from redis.asyncio import Redis
from redis.exceptions import RedisError

from connectors.kit.contract import Throttled
from gateway.db import new_id
from gateway.logs import emit

PATIENCE = 5.0  # seconds waited for room, with a lease running; longer waits go back to the ledger
LONGEST_TURN = 30.0  # a batch of twenty takes twenty turns, and a page that was begun should end
SHORTEST_PAUSE = 0.2  # after a refusal, also when the vendor says none is needed
LONGEST_GUESS = 60.0  # seconds more that are guessed when a pause turned out too short
SLOT_SECONDS = (
    330.0  # a request of a process that died stops counting after this; longer than any answer may take
)


@dataclass(frozen=True)
class Limits:
    requests: float
    seconds: float
    at_once: int


# What the vendors document, with room to spare for the user's own clients: Outlook takes 10,000 requests in 10 minutes and
# 4 at once per mailbox; Drive 12,000 a minute per user; ClickUp 100 a minute on its smallest plan.
LIMITS = {
    "msft": Limits(9000, 600, 4),
    "google": Limits(10_000, 60, 8),
    "clickup": Limits(95, 60, 4),
}
DEFAULT = Limits(600, 60, 4)

# KEYS: closed-until, window, slots. ARGV: now, requests, seconds, at once, cost, ticket, slot seconds.
# Answers how long to wait, 0 when in.
_ENTER = """
local now = tonumber(ARGV[1])
local closed = tonumber(redis.call('GET', KEYS[1]) or '0')
if closed > now then return tostring(closed - now) end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - tonumber(ARGV[3]))
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
if redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[4]) then return '0.05' end
local cost = math.max(1, math.ceil(tonumber(ARGV[5])))
local count = redis.call('ZCARD', KEYS[2])
if count + cost > tonumber(ARGV[2]) and count > 0 then
    local oldest = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
    return tostring(math.max(0.05, tonumber(oldest[2]) + tonumber(ARGV[3]) - now))
end
for i = 1, cost do redis.call('ZADD', KEYS[2], now, ARGV[6] .. ':' .. i) end
redis.call('ZADD', KEYS[3], now + tonumber(ARGV[7]), ARGV[6])
redis.call('PEXPIRE', KEYS[2], math.ceil(tonumber(ARGV[3]) * 1000))
redis.call('PEXPIRE', KEYS[3], math.ceil(tonumber(ARGV[7]) * 1000))
return '0'
"""
# KEYS: when the next turn is. ARGV: now, seconds, most. Answers how long until the turn it took; none is taken beyond `most`.
_TURN = """
local now = tonumber(ARGV[1])
local turn = math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0'))
if turn - now <= tonumber(ARGV[3]) then
    local free = turn + tonumber(ARGV[2])
    redis.call('SET', KEYS[1], string.format('%.3f', free), 'PX', math.ceil((free - now) * 1000))
end
return tostring(turn - now)
"""
# KEYS: closed-until, what is known of it. ARGV: now, seconds, longest. A shorter pause never shortens a longer one. Who is
# refused again right after a pause (its jitter and one request later) was told too little: the whole of its waiting grows by
# half each time, and a little less than what was enough is where it begins the next time. What is known stays well beyond
# a pause: times decide, not how soon a busy process comes back.
_CLOSE = """
local now, wait, longest = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local closed = tonumber(redis.call('GET', KEYS[1]) or '0')
local known = redis.call('HMGET', KEYS[2], 'began', 'last', 'short')
local began, last, short = tonumber(known[1] or now), tonumber(known[2] or '0'), known[3] or '0'
if closed <= now then
    if closed > 0 and now - closed <= math.max(0.7, 0.3 * last) then
        wait = math.max(wait, math.min((now - began) / 2, longest))
        short = '1'
    else
        local enough = short == '1' and math.min(0.9 * (closed - began), longest) or 0
        short = enough > wait and '1' or '0'
        wait, began = math.max(wait, enough), now
    end
end
if now + wait > closed then
    local life = math.ceil((2 * wait + 60) * 1000)
    redis.call('SET', KEYS[1], string.format('%.3f', now + wait), 'PX', life)
    redis.call('HSET', KEYS[2], 'began', string.format('%.3f', began), 'last', wait, 'short', short)
    redis.call('PEXPIRE', KEYS[2], life)
end
return 1
"""


class SharedRateWindow:
    """The `RateWindow` of one connection."""

    def __init__(
        self,
        redis: Redis,
        connection_id: UUID,
        limits: Limits = DEFAULT,
        *,
        now: Callable[[], float] = time.time,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._redis, self._limits, self._now, self._pause = redis, limits, now, pause
        name = f"catchment:rate:{connection_id}"
        self._closed, self._window, self._slots = f"{name}:closed", f"{name}:window", f"{name}:slots"
        self._pausing = f"{name}:refusals"
        self._held: list[str] = []
        self._enter = redis.register_script(_ENTER)
        self._turn = redis.register_script(_TURN)
        self._close = redis.register_script(_CLOSE)

    async def enter(self, cost: float = 1.0) -> None:
        waited = 0.0
        ticket = new_id().hex
        while True:
            wait = await self._ask(cost, ticket)
            if wait <= 0:
                self._held.append(ticket)
                return
            if wait > PATIENCE or waited > 12 * PATIENCE:
                raise Throttled(wait, "the connection's window is full or closed")
            step = wait * random.uniform(1.0, 1.2)  # noqa: S311 - so that waiters do not come back together
            await self._pause(step)
            waited += step

    async def _ask(self, cost: float, ticket: str) -> float:
        limits = self._limits
        arguments = [
            self._now(),
            limits.requests,
            limits.seconds,
            limits.at_once,
            cost,
            ticket,
            SLOT_SECONDS,
        ]
        try:
            keys = [self._closed, self._window, self._slots]
            return float(cast("Any", await self._enter(keys=keys, args=arguments)))
        except (RedisError, OSError) as error:
            # Without Redis the vendor's own limits are the only ones; its answers are still obeyed.
            emit("house.store.unavailable", component="rate", error=type(error).__name__)
            return 0.0

    async def leave(self) -> None:
        ticket = self._held.pop() if self._held else None
        if ticket is None:
            return
        try:
            await self._redis.zrem(self._slots, ticket)
        except (RedisError, OSError) as error:
            emit("house.store.unavailable", component="rate", error=type(error).__name__)

    async def turn(self, place: str, seconds: float) -> None:
        try:
            keys, arguments = [f"catchment:rate:turn:{place}"], [self._now(), seconds, LONGEST_TURN]
            wait = float(cast("Any", await self._turn(keys=keys, args=arguments)))
        except (RedisError, OSError) as error:
            emit("house.store.unavailable", component="rate", error=type(error).__name__)
            return
        if wait > LONGEST_TURN:
            raise Throttled(wait, "others are before us at this place")
        if wait > 0:
            await self._pause(wait)

    async def close_for(self, seconds: float) -> None:
        try:
            await self._close(
                keys=[self._closed, self._pausing],
                args=[self._now(), max(seconds, SHORTEST_PAUSE), LONGEST_GUESS],
            )
        except (RedisError, OSError) as error:
            emit("house.store.unavailable", component="rate", error=type(error).__name__)
