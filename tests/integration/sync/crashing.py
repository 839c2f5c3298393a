"""A worker that dies at a named point, as far as everybody else can tell."""

import pytest

from tests.fixtures.corpus import rows_of
from tests.integration.sync.conftest import Bank
from workers import ingest, runner
from workers.pipeline import embed, store
from workers.sync import fetching, listing

SYNC_POINTS = (
    "sync.before_page_commit",
    "sync.inside_page",
    "sync.after_page_commit",
    "fetch.after_download",
)
# Every named point a sync passes on its way; the others lie at the door, in the vault, in erasures and migrations.
POINTS = (
    "job.after_claim",
    *SYNC_POINTS,
    "embed.before_commit",
    "embed.after_commit",
    "store.inside",
    "store.after_commit",
)


class Killed(BaseException):
    """Stands in for SIGKILL: nothing below may catch it."""


async def _nothing(*_arguments: object) -> None:
    return None


async def die_at(point: str, bank: Bank, passes: int = 0) -> bool:
    """Runs until the crash point was passed so often, then leaves everything as a dead process would: leases and claims
    held, in time gone. Says whether the point was reached."""
    left = passes
    died = False

    def dies(name: str) -> None:
        nonlocal left, died
        if name == point:
            left -= 1
            if left < 0:
                died = True
                raise Killed

    worker = bank.bench.second_worker()
    worker.places, worker.clock = bank.places, bank.bench.runner.clock
    with pytest.MonkeyPatch.context() as patch:
        for module in (runner, embed, store, ingest, listing, fetching):
            patch.setattr(module, "crash_point", dies)
        patch.setattr(ingest.vectors, "release_claims", _nothing)  # a dead process hands nothing back
        try:
            await bank.bench.drain(bank.tenant, worker)
        except BaseExceptionGroup as group:
            assert group.split(Killed)[1] is None  # noqa: PT017 - nothing else went wrong
        except Killed:
            pass
    await rows_of(
        bank.db,
        bank.tenant,
        "UPDATE job SET lease_until = now() - interval '1 s', deaths = 0, solo = false "
        "WHERE lease_until > now() RETURNING 1",
    )
    await rows_of(
        bank.db, bank.tenant, "UPDATE vector_claim SET claimed_until = now() - interval '1 s' RETURNING 1"
    )
    return died
