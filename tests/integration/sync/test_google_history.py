"""The same random histories over Google's stand-in: files, mail and events, through Google's own client."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connectors.sandbox.server import start
from gateway.ingestion import facade
from tests.conformance.brook import Brook
from tests.conformance.stages import ADA, API, raised
from tests.fixtures.worker import Bench
from tests.integration.sync.conftest import open_bank
from tests.integration.sync.test_sandbox_history import EXAMPLES, FULL, STEPS, History, StagePlaces, step

SURFACES = ["drive", "gmail", "google_calendar"]


class GoogleHistory(History):
    """What a step means at Google; what makes no sense at a surface does nothing there."""

    def __init__(self, bank, stage):
        super().__init__(bank, stage)
        self.binned = []

    @property
    def part(self) -> str:
        return self.stage.part

    async def do_folder(self):
        if self.part == "drive":
            self.folders.append(self.control.create("folder", name=f"folder {len(self.folders)}")["id"])

    async def do_edit(self, number, text):
        if self.part == "gmail":  # a mail stays as it is; its labels do not
            if key := self._nth(self.made, number):
                self.control.edit(key, labels=["INBOX", f"Project {text}"])
        else:
            await super().do_edit(number, text)

    async def do_rename(self, number, text):
        if self.part != "gmail":
            await super().do_rename(number, text)

    async def do_move(self, number, where):
        if self.part == "drive":
            await super().do_move(number, where)

    async def do_delete(self, number):
        if number >= 6 and self.folders:  # with all that lies in it, of which Google says nothing
            folder = self.folders.pop()
            self.control.delete(folder)
            self.binned.append(folder)
        else:
            await super().do_delete(number)

    async def do_restore(self, number):
        if number >= 4 and self.binned:
            folder = self.binned.pop()
            self.control.restore(folder)
            self.folders.append(folder)
        else:
            await super().do_restore(number)

    async def do_fault(self, kind):
        if kind in {"empty_page", "repeat_page"} or (kind == "cursor_expiry" and self.part != "drive"):
            self.control.fault(kind)

    async def do_throttle(self):
        self.control.fault("throttle", retryAfter=60, path=API["google"])

    def truth(self):
        return {
            one["id"]: one["text"] for one in self.control.state(ADA)[self.part] if one["kind"] != "folder"
        }


@pytest.fixture(scope="module")
def sandbox():
    running = start("google")
    yield running
    running.stop()


@pytest.mark.parametrize("part", SURFACES)
@pytest.mark.timeout(300 if not FULL else 6 * 3600)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
@given(steps=st.lists(step, min_size=4 if not FULL else 30, max_size=STEPS))
async def test_the_corpus_becomes_what_google_holds(part, steps, db, pool, sandbox, tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("history")
    bench = Bench(db, pool, folder, retry_base_seconds=0.01, max_attempts=3)
    async with raised(f"google.{part}", lambda _: sandbox) as stage:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(facade, "get_settings", lambda: bench.settings)
            bank = await open_bank(bench, StagePlaces(stage), Brook())
            history = GoogleHistory(bank, stage)
            for one in steps:
                await history.apply(one)
            await history.settle()
            corpus, truth = await bank.corpus(), history.truth()
            assert corpus.keys() == truth.keys()
            assert [one for one, words in truth.items() if words not in corpus[one]] == []
            left = await bank.rows("SELECT 1 FROM remote_item WHERE state IN ('pending', 'failed', 'held')")
            assert left == []
