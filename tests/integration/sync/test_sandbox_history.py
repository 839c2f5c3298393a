"""The same random histories over every vendor's stand-in, through the real adapters: the corpus becomes what is there.

And no text is embedded more often than it came into the world, but for what was in flight at a crash.
"""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connectors.registry import SURFACES
from connectors.sandbox.server import start
from gateway.ingestion import facade
from tests.conformance.brook import Brook
from tests.conformance.stages import raised
from tests.fixtures.worker import Bench
from tests.integration.sync.conftest import open_bank
from tests.integration.sync.histories import HISTORIES, StagePlaces, step
from tests.integration.workers.test_ingest import assert_consistent

FULL = os.environ.get("CATCHMENT_ACCEPTANCE") == "full"
# Of each surface. `CATCHMENT_EXAMPLES` cuts the full profile into batches, each with a `--hypothesis-seed` of its own.
EXAMPLES, STEPS = (int(os.environ.get("CATCHMENT_EXAMPLES", "300")), 50) if FULL else (2, 12)
EVERY = [f"{authority}.{part}" for authority, parts in SURFACES.items() for part in parts]


@pytest.fixture(scope="module")
def sandboxes():
    running = {name: start(name) for name in SURFACES}
    yield running
    for one in running.values():
        one.stop()


@pytest.mark.parametrize("surface", EVERY)
@pytest.mark.timeout(300 if not FULL else 6 * 3600)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
@given(steps=st.lists(step, min_size=STEPS if FULL else 4, max_size=STEPS))
async def test_the_corpus_becomes_what_the_sandbox_holds(
    surface, steps, db, pool, sandboxes, tmp_path_factory
):
    folder: Path = tmp_path_factory.mktemp("history")
    bench = Bench(db, pool, folder, retry_base_seconds=0.01, max_attempts=3)
    async with raised(surface, sandboxes.__getitem__) as stage:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(facade, "get_settings", lambda: bench.settings)
            bank = await open_bank(bench, StagePlaces(stage), Brook())
            history = HISTORIES[stage.authority](bank, stage)
            for one in steps:
                await history.apply(one)
            await history.settle()
            corpus = await bank.corpus()
            assert history.agrees(corpus), (corpus, history.truth())
            left = await bank.rows("SELECT 1 FROM remote_item WHERE state IN ('pending', 'failed', 'held')")
            assert left == []
            await assert_consistent(db, bank.tenant)
            assert history.embedded_too_often() is None
