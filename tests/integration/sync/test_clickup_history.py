"""The same random histories over ClickUp's stand-in, where nothing says that something was deleted."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connectors.sandbox.server import start
from gateway.ingestion import facade
from tests.conformance.brook import Brook
from tests.conformance.stages import API, raised
from tests.fixtures.worker import Bench
from tests.integration.sync.conftest import open_bank
from tests.integration.sync.test_sandbox_history import EXAMPLES, FULL, STEPS, History, StagePlaces, step


class ClickUpHistory(History):
    async def do_folder(self):
        """Lists are made with the tasks in them."""

    async def do_move(self, number, where):
        """A move between lists changes no word."""

    async def do_fault(self, kind):
        if kind in {"empty_page", "repeat_page"}:
            self.control.fault(kind)

    async def do_throttle(self):
        self.control.fault("throttle", retryAfter=60, path=API["clickup"])

    def truth(self):
        return {one["externalId"]: one["text"] for one in self.control.state()["clickup"]}


@pytest.fixture(scope="module")
def sandbox():
    running = start("clickup")
    yield running
    running.stop()


@pytest.mark.timeout(300 if not FULL else 6 * 3600)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
@given(steps=st.lists(step, min_size=4 if not FULL else 30, max_size=STEPS))
async def test_the_corpus_becomes_what_clickup_holds(steps, db, pool, sandbox, tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("history")
    bench = Bench(db, pool, folder, retry_base_seconds=0.01, max_attempts=3)
    async with raised("clickup.clickup", lambda _: sandbox) as stage:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(facade, "get_settings", lambda: bench.settings)
            bank = await open_bank(bench, StagePlaces(stage), Brook())
            history = ClickUpHistory(bank, stage)
            for one in steps:
                await history.apply(one)
            await history.settle()
            corpus, truth = await bank.corpus(), history.truth()
            assert corpus.keys() == truth.keys()
            assert [one for one, words in truth.items() if words not in corpus[one]] == []
            left = await bank.rows("SELECT 1 FROM remote_item WHERE state IN ('pending', 'failed', 'held')")
            assert left == []
