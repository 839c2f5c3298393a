"""The vendor's limits hold across processes, and Redis may forget them at any time."""

import asyncio

import pytest
from redis.asyncio import Redis

from connectors.kit.contract import Throttled
from gateway.connections.rate_window import Limits, SharedRateWindow
from gateway.db import new_id


@pytest.fixture
async def redis(redis_url):
    client = Redis.from_url(redis_url)
    yield client
    await client.aclose()


class Time:
    def __init__(self) -> None:
        self.now, self.waits = 1000.0, []

    def __call__(self) -> float:
        return self.now

    async def pause(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


def window(redis, connection, time, **limits):
    chosen = Limits(**({"requests": 1000, "seconds": 60, "at_once": 100} | limits))
    return SharedRateWindow(redis, connection, chosen, now=time, pause=time.pause)


async def test_requests_of_a_window_are_shared_by_two_processes(redis):
    connection, time = new_id(), Time()
    one, other = (window(redis, connection, time, requests=6, seconds=3) for _ in range(2))
    for _ in range(3):
        await one.enter()
        await other.enter()
    assert time.waits == []
    await other.enter()
    assert time.now >= 1003


async def test_a_long_wait_goes_back_to_the_ledger(redis):
    connection, time = new_id(), Time()
    rate = window(redis, connection, time, requests=1, seconds=60)
    await rate.enter()
    with pytest.raises(Throttled) as told:
        await rate.enter()
    assert 59 < told.value.after <= 60


async def test_nobody_asks_before_the_vendor_said(redis):
    connection, time = new_id(), Time()
    one, other = (window(redis, connection, time) for _ in range(2))
    await one.close_for(120)
    await other.close_for(5)  # a shorter pause does not shorten it
    with pytest.raises(Throttled) as told:
        await other.enter()
    assert 119 < told.value.after <= 120
    time.now += 121
    await other.enter()


@pytest.mark.parametrize("told", [0.0, 0.2, 1.0, 10.0])
async def test_a_vendor_that_says_too_little_is_not_asked_again_and_again(redis, told):
    """Closed for ten seconds out of twenty, whatever it says: no more than 1.3 times the requests that are needed."""
    time, asked, needed = Time(), 0, 200
    rate = window(redis, new_id(), time)
    answered = 0
    while answered < needed:
        try:
            await rate.enter()
        except Throttled as throttled:
            time.now += throttled.after
            continue
        asked, closed = asked + 1, time.now % 20 < 10
        time.now += 0.2
        await rate.leave()
        if closed:
            await rate.close_for(told)
        else:
            answered += 1
    assert asked <= 1.3 * needed
    print(f"told {told} s: {asked} requests, {time.now - 1000:.0f} s")
    assert time.now - 1000 < 2 * 20 * (needed / 50)  # and no more than twice the time


async def test_a_pause_that_was_long_enough_is_not_made_longer(redis):
    time = Time()
    rate = window(redis, new_id(), time)
    for _ in range(3):
        await rate.close_for(2)
        began = time.now
        await rate.enter()
        await rate.leave()
        assert time.now - began < 2.5
        time.now += 5  # it was open for a while


async def test_only_so_many_at_once(redis):
    connection = new_id()
    limits = Limits(1000, 60, 2)
    inside, most = 0, 0

    async def work(rate):
        nonlocal inside, most
        await rate.enter()
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.02)  # the work that must not overlap more than twice
        inside -= 1
        await rate.leave()

    await asyncio.gather(*(work(SharedRateWindow(redis, connection, limits)) for _ in range(8)))
    assert most == 2


async def test_a_place_has_turns_that_all_connections_take(redis):
    time = Time()
    one, other = (window(redis, new_id(), time) for _ in range(2))
    place = f"msft:{new_id()}"
    began = time.now
    for rate in (one, other, one, other):
        await rate.turn(place, 1.0)
    assert time.now == pytest.approx(began + 3, abs=0.01)
    assert len(time.waits) == 3  # the first came at once
    await one.turn(place, 20.0)  # a batch
    await other.turn(f"{place}-elsewhere", 1.0)
    assert time.now == pytest.approx(began + 4, abs=0.01)
    await other.turn(place, 20.0)
    assert time.now == pytest.approx(began + 24, abs=0.01)


async def test_a_turn_too_far_off_is_not_taken(redis):
    time, place = Time(), f"msft:{new_id()}"
    rate = window(redis, new_id(), time)
    await rate.turn(place, 40.0)
    for _ in range(2):
        with pytest.raises(Throttled) as told:
            await rate.turn(place, 40.0)
        assert told.value.after == pytest.approx(40, abs=0.01)
    assert time.waits == []


async def test_the_slots_of_a_dead_process_come_free(redis):
    connection, time = new_id(), Time()
    dead = window(redis, connection, time, at_once=1)
    await dead.enter()
    time.now += 400
    await window(redis, connection, time, at_once=1).enter()


async def test_redis_may_forget_everything(redis):
    connection, time = new_id(), Time()
    rate = window(redis, connection, time)
    await rate.enter()
    async for key in redis.scan_iter(f"catchment:rate:{connection}*"):
        await redis.delete(key)
    await redis.script_flush()
    await rate.enter()
    await rate.leave()
    await rate.leave()


async def test_without_redis_the_vendors_own_limits_remain():
    gone = Redis.from_url("redis://127.0.0.1:1", socket_connect_timeout=0.2)
    rate = SharedRateWindow(gone, new_id())
    await rate.enter()
    await rate.leave()
    await rate.turn("msft:x", 1.0)
    await rate.close_for(5)
    await gone.aclose()
