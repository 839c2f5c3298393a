"""A worker that is told to stop stops, whatever a client library makes of the cancellation."""

import asyncio

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from gateway.settings import Settings
from workers import process as worker


class Lossy:
    """As redis-py does it now and then: cancelled in the middle of a read, it reports a lost connection."""

    listening: asyncio.Event

    def __init__(self, **_options):
        self.tasks = {}

    async def async_run(self):
        self.listening.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise RedisConnectionError("the connection was lost") from None


def lossy_worker(monkeypatch):
    monkeypatch.setattr(worker, "Worker", Lossy)
    Lossy.listening = asyncio.Event()
    process = object.__new__(worker.WorkerProcess)
    process.settings, process._redis_url = Settings(), "redis://127.0.0.1:1"
    return process


async def test_a_stop_that_became_a_lost_connection_is_still_a_stop(monkeypatch):
    bells = asyncio.create_task(lossy_worker(monkeypatch)._answer_bells("delta"))
    await Lossy.listening.wait()
    bells.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(bells, 10)


async def test_a_service_that_missed_its_stop_is_told_again(monkeypatch):
    monkeypatch.setattr(worker, "STOP_AGAIN_SECONDS", 0.05)
    heard = []

    async def deaf_at_first():
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                heard.append(True)
                if len(heard) == 3:
                    raise

    service = asyncio.create_task(deaf_at_first())
    await asyncio.sleep(0)
    await asyncio.wait_for(worker._end([service]), 10)
    assert len(heard) == 3
