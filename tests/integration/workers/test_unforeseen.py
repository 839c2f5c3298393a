"""What nobody foresaw in a worker: it is in our log by type and place, and no job is called what it is not."""

from tests.fixtures.corpus import ask, rows_of
from workers.process import answered


async def test_trouble_before_the_first_document_is_a_try_and_no_death(db, tenant, bench, capsys):
    """A handler that cannot even be made fails its jobs by their tries; no worker died of them."""
    broken = {"scan_command": 'unbalanced "quote', "max_attempts": 2, "retry_base_seconds": 0.001}
    bench.runner.settings = bench.settings.model_copy(update=broken)
    await bench.hand_in(tenant, ask(tenant, "a", "One text."))
    for _ in range(bench.settings.max_deaths + 1):
        await rows_of(db, tenant, "UPDATE job SET run_after = now() WHERE status = 'pending' RETURNING 1")
        await bench.drain(tenant)
    [job] = await rows_of(db, tenant, "SELECT status, reason, error, deaths FROM job")
    assert (job.status, job.reason, job.error, job.deaths) == ("failed", "attempts", "ValueError", 0)
    said = capsys.readouterr().out
    assert "ingestion.retry" in said
    assert "ingestion.failed" in said


async def test_trouble_while_jobs_are_taken_is_in_the_log_and_costs_nothing(db, tenant, bench, capsys):
    bench.runner.settings = bench.settings.model_copy(update={"lease_seconds": 1e12})
    await bench.hand_in(tenant, ask(tenant, "a", "One text."))
    await answered(bench.runner, "interactive", tenant.mandate_id)
    said = capsys.readouterr().out
    assert "ledger.answer.failed" in said
    assert "DataError at " in said
    [job] = await rows_of(db, tenant, "SELECT status, attempts, deaths FROM job")
    assert (job.status, job.attempts, job.deaths) == ("pending", 0, 0)
