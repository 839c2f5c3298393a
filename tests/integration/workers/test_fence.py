"""A worker that lost its job writes nothing, however late it wakes up – and the test notices when the fence is gone."""

import asyncio

import pytest

from gateway.ingestion import ledger_repository as ledger
from tests.fixtures.corpus import ask, rows_of


async def two_workers_on_one_job(db, tenant, bench, monkeypatch) -> list[str]:
    """The first worker stops in the middle past its lease, a second one finishes, the first wakes up. Returns the
    document's ends: the effects of the job."""
    stopped, wake = asyncio.Event(), asyncio.Event()
    embed = bench.embedder.embed
    first = True

    async def stop_once(texts):
        nonlocal first
        if first:
            first = False
            stopped.set()
            await wake.wait()
        return await embed(texts)

    monkeypatch.setattr(bench.embedder, "embed", stop_once)
    await bench.hand_in(tenant, ask(tenant, "a", "One text."))
    late = asyncio.create_task(bench.runner.answer("interactive", tenant.mandate_id))
    await stopped.wait()
    await rows_of(db, tenant, "UPDATE job SET lease_until = now() - interval '1 s' RETURNING 1")
    await rows_of(db, tenant, "UPDATE vector_claim SET claimed_until = now() - interval '1 s' RETURNING 1")
    await bench.drain(tenant, bench.second_worker())
    wake.set()
    await late
    rows = await rows_of(db, tenant, "SELECT status FROM timeline WHERE status = 'indexed'")
    return [row.status for row in rows]


async def test_the_late_worker_writes_nothing(db, tenant, bench, monkeypatch):
    assert await two_workers_on_one_job(db, tenant, bench, monkeypatch) == ["indexed"]


async def test_without_the_fence_the_effect_would_happen_twice(db, tenant, bench, monkeypatch):
    """Shows that the test above can fail: the same scenario with the fence taken out."""

    async def no_fence(session, claims):
        return {job_id for job_id, _ in claims}

    monkeypatch.setattr(ledger, "hold", no_fence)
    assert await two_workers_on_one_job(db, tenant, bench, monkeypatch) == ["indexed", "indexed"]


@pytest.mark.parametrize("rounds", [5])
async def test_a_stop_hands_the_jobs_back_without_counting_the_try(db, tenant, bench, monkeypatch, rounds):
    reached = asyncio.Event()

    async def never(texts):
        reached.set()
        await asyncio.Event().wait()

    await bench.hand_in(tenant, ask(tenant, "a", "One text."))
    with monkeypatch.context() as patch:
        patch.setattr(bench.embedder, "embed", never)
        for _ in range(rounds):
            reached.clear()
            running = asyncio.create_task(bench.second_worker().answer("interactive", tenant.mandate_id))
            await reached.wait()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    [job] = await rows_of(db, tenant, "SELECT attempts, lease_until, status FROM job")
    assert (job.attempts, job.lease_until, job.status) == (0, None, "pending")
    await bench.drain(tenant)
    [job] = await rows_of(db, tenant, "SELECT status FROM job")
    assert job.status == "indexed"
