"""Claim, lease, fence: who may run a job, and who may no longer write for it."""

import asyncio

from gateway.db import new_id
from gateway.ingestion import ledger_repository as ledger
from gateway.ingestion import repository as ingestion
from tests.fixtures.corpus import Tenant, make_tenant, rows_of


async def add_jobs(db, tenant: Tenant, count: int, lane: str = "backfill") -> list:
    ids = [new_id() for _ in range(count)]
    async with db.tenant_session(tenant.mandate_id) as session:
        await ingestion.insert_jobs(session, [{"id": i, "kind": "test", "lane": lane} for i in ids])
    return ids


async def claim(db, tenant: Tenant, limit: int = 10, lease: float = 30):
    async with db.tenant_session(tenant.mandate_id) as session:
        return await ledger.claim(session, "backfill", limit=limit, lease_seconds=lease)


async def claim_orphans(db, tenant: Tenant, lease: float = 30):
    async with db.tenant_session(tenant.mandate_id) as session:
        return await ledger.claim_orphans(session, "backfill", lease_seconds=lease)


async def test_concurrent_claims_never_share_a_job(db, tenant):
    await add_jobs(db, tenant, 60)
    slices = await asyncio.gather(*(claim(db, tenant) for _ in range(8)))
    claimed = [job.id for jobs in slices for job in jobs]
    assert len(claimed) == len(set(claimed)) == 60


async def test_a_claim_takes_only_its_lane_and_mandate(db, tenant):
    other = await make_tenant(db)
    await add_jobs(db, tenant, 1, lane="interactive")
    await add_jobs(db, other, 1)
    assert await claim(db, tenant) == []


async def test_a_leased_job_is_neither_claimed_nor_an_orphan(db, tenant):
    await add_jobs(db, tenant, 1)
    assert len(await claim(db, tenant)) == 1
    assert await claim(db, tenant) == []
    assert await claim_orphans(db, tenant) == []


async def test_an_orphan_gets_a_new_fence_and_the_old_holder_cannot_write(db, tenant):
    await add_jobs(db, tenant, 1)
    [old] = await claim(db, tenant, lease=-1)
    [new] = await claim_orphans(db, tenant)
    assert new.fence == old.fence + 1
    async with db.tenant_session(tenant.mandate_id) as session:
        assert await ledger.hold(session, [(old.id, old.fence)]) == set()
        assert await ledger.hold(session, [(new.id, new.fence)]) == {new.id}


async def test_orphans_run_in_ever_smaller_company_and_only_deaths_alone_count(db, tenant):
    await add_jobs(db, tenant, 20)
    await claim(db, tenant, limit=20, lease=-1)  # twenty in one slice: whose fault its death was is not known
    sizes, deaths = [], []
    for _ in range(40):
        jobs = await claim_orphans(db, tenant, lease=-1)
        sizes.append(len(jobs))
        deaths.append(max(job.deaths for job in jobs))
    assert sizes[:3] == [8, 8, 4]
    assert sizes[3:13] == [2] * 10
    assert set(sizes[13:]) == {1}
    assert max(deaths[:14]) == 0
    assert deaths[-1] >= 1


async def test_renewing_keeps_the_lease_only_for_the_holder_of_the_fence(db, tenant):
    await add_jobs(db, tenant, 1)
    [job] = await claim(db, tenant, lease=-1)
    async with db.tenant_session(tenant.mandate_id) as session:
        await ledger.renew(session, [(job.id, job.fence - 1)], lease_seconds=30)
    [stale] = await rows_of(db, tenant, "SELECT lease_until < now() AS expired FROM job")
    assert stale.expired
    async with db.tenant_session(tenant.mandate_id) as session:
        await ledger.renew(session, [(job.id, job.fence)], lease_seconds=30)
    assert await claim_orphans(db, tenant) == []


async def test_a_put_back_job_waits_for_its_time_and_a_refund_does_not_count_the_try(db, tenant):
    await add_jobs(db, tenant, 1)
    [job] = await claim(db, tenant)
    async with db.tenant_session(tenant.mandate_id) as session:
        await ledger.put_back(session, job.id, delay_seconds=60, reason="trouble")
    assert await claim(db, tenant) == []
    async with db.tenant_session(tenant.mandate_id) as session:
        await ledger.put_back(session, job.id, delay_seconds=0, reason=None, refund=True)
    [again] = await claim(db, tenant)
    assert again.attempts == 1


async def test_the_sweeper_sees_doors_with_work_and_nothing_else(db, tenant):
    await add_jobs(db, tenant, 3)
    await claim(db, tenant, limit=1, lease=-1)
    async with db.sweeper_session() as session:
        due = [row for row in await ledger.due_bells(session) if row.mandate_id == tenant.mandate_id]
    assert [(row.lane, row.orphans) for row in due] == [("backfill", 1)]
