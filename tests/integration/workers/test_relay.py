"""Postgres is the ledger, Redis is the doorbell: rings follow commits, and a lost ring is only late."""

import asyncio

import pytest
from redis.asyncio import Redis

from gateway.ingestion import bell
from tests.fixtures.corpus import ask, make_tenant, rows_of
from tests.fixtures.processes import until
from workers import relay as relay_module
from workers.relay import Relay


@pytest.fixture
async def redis(redis_url):
    async with Redis.from_url(redis_url) as plain:
        await plain.flushdb()
    client = bell.connect(redis_url)
    yield client
    await client.aclose()


@pytest.fixture
def relay(db, database_urls, redis):
    return Relay(db, database_urls.runtime_url, redis, sweep_seconds=60)


async def rings(redis, tenant, lane: str = "interactive") -> int:
    """Rings of this mandate that wait in the queue; other tests' mandates may ring too."""
    waiting = [
        bell.unpack(await redis.get(f"arq:job:{job.decode()}"))
        for job in await redis.zrange(bell.queue_name(lane), 0, -1)
    ]
    return sum(1 for ring in waiting if ring["a"] == [lane, str(tenant.mandate_id)])


async def test_at_most_one_ring_is_outstanding_until_somebody_hears_it(tenant, redis):
    assert await bell.ring(redis, "delta", tenant.mandate_id)
    assert not await bell.ring(redis, "delta", tenant.mandate_id)
    assert await rings(redis, tenant, "delta") == 1
    [ring] = await redis.zrange(bell.queue_name("delta"), 0, -1)
    await bell.hear(redis, "delta", tenant.mandate_id, ring.decode())
    assert await rings(redis, tenant, "delta") == 0  # whoever hears it may die: nobody stumbles over it later
    assert await bell.ring(redis, "delta", tenant.mandate_id)


async def test_what_lies_in_redis_is_ids_only_and_no_pickle(tenant, redis):
    await bell.ring(redis, "delta", tenant.mandate_id)
    [job_key] = [key async for key in redis.scan_iter("arq:job:*")]
    stored = bell.unpack(await redis.get(job_key))
    assert stored["f"] == "answer"
    assert stored["a"] == ["delta", str(tenant.mandate_id)]


async def test_the_outbox_rings_once_per_door_and_is_emptied(db, tenant, bench, relay, redis):
    await bench.hand_in(tenant, ask(tenant, "a", "1"), ask(tenant, "b", "2"))
    await bench.hand_in(tenant, ask(tenant, "c", "3", lane="backfill"))
    await relay.relay_outbox()
    assert (await rings(redis, tenant), await rings(redis, tenant, "backfill")) == (1, 1)
    assert await rows_of(db, tenant, "SELECT 1 FROM outbox") == []


async def test_a_lost_bell_is_rung_again_by_the_sweep(db, tenant, bench, relay, redis):
    await bench.hand_in(tenant, ask(tenant, "a", "1"))
    await relay.relay_outbox()
    await redis.flushdb()
    await relay.sweep()
    assert await rings(redis, tenant) == 1


async def test_a_dead_workers_job_is_rung_for_again(db, tenant, bench, relay, redis):
    await bench.hand_in(tenant, ask(tenant, "a", "1"))
    await rows_of(db, tenant, "DELETE FROM outbox RETURNING 1")
    await rows_of(db, tenant, "UPDATE job SET lease_until = now() + interval '1 h' RETURNING 1")
    await relay.sweep()
    assert await rings(redis, tenant) == 0
    await rows_of(db, tenant, "UPDATE job SET lease_until = now() - interval '1 s' RETURNING 1")
    await relay.sweep()
    assert await rings(redis, tenant) == 1


async def test_a_crash_between_ring_and_forgetting_rings_twice_never_less(
    db, tenant, bench, relay, redis, monkeypatch
):
    class Killed(BaseException):
        pass

    def die(_name: str) -> None:
        raise Killed

    await bench.hand_in(tenant, ask(tenant, "a", "1"))
    with monkeypatch.context() as patch:
        patch.setattr(relay_module, "crash_point", die)
        with pytest.raises(Killed):
            await relay.relay_outbox()
    assert len(await rows_of(db, tenant, "SELECT 1 FROM outbox")) == 1
    await relay.relay_outbox()
    assert await rows_of(db, tenant, "SELECT 1 FROM outbox") == []


async def test_a_commit_wakes_the_relay_without_waiting_for_the_sweep(db, tenant, bench, relay, redis):
    running = asyncio.create_task(relay.run())
    try:
        async with asyncio.timeout(10):
            await relay.listening.wait()
            await bench.hand_in(tenant, ask(tenant, "a", "1"))
        await until(lambda: rings(redis, tenant), 10, "the ring")
    finally:
        running.cancel()


async def test_mandates_take_turns_at_the_bell(db, bench, relay, redis):
    """Fifty thousand jobs of one mandate are one bell; another mandate's bell is right behind it."""
    tenants = (await make_tenant(db), await make_tenant(db))
    for tenant in tenants:
        await bench.hand_in(tenant, *(ask(tenant, f"d{n}", "x") for n in range(50)))
    await relay.sweep()
    assert [await rings(redis, tenant) for tenant in tenants] == [1, 1]
