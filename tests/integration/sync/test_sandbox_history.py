"""The same random histories over Microsoft's stand-in, through the real adapters: the corpus becomes what is there."""

import os
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connectors.registry import SURFACES
from connectors.sandbox.server import start
from gateway.connections import sync_service
from gateway.ingestion import facade
from tests.conformance.brook import Brook
from tests.conformance.stages import ADA, Stage, raised
from tests.fixtures.worker import Bench
from tests.integration.sync.conftest import Bank, open_bank
from tests.integration.sync.crashing import SYNC_POINTS, die_at

FULL = os.environ.get("CATCHMENT_ACCEPTANCE") == "full"
EXAMPLES, STEPS = (300, 50) if FULL else (2, 12)  # of each surface

number, text_number = st.integers(0, 7), st.integers(0, 9)
step = st.one_of(
    st.tuples(st.just("create"), text_number),
    st.tuples(st.just("create"), text_number),
    st.tuples(st.just("folder")),
    st.tuples(st.just("edit"), number, text_number),
    st.tuples(st.just("rename"), number, text_number),
    st.tuples(st.just("move"), number, number),
    st.tuples(st.just("delete"), number),
    st.tuples(st.just("restore"), number),
    st.tuples(
        st.just("fault"), st.sampled_from(["cursor_expiry", "empty_page", "repeat_page", "repeat_item"])
    ),
    st.tuples(st.just("throttle")),
    st.tuples(st.just("crash"), st.sampled_from(SYNC_POINTS), st.integers(0, 1)),
    st.tuples(st.just("clock")),
    st.tuples(st.just("sync")),
    st.tuples(st.just("sync")),
)


class StagePlaces:
    """Where the engine finds the surface that is on the stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.worlds: dict = {}

    @asynccontextmanager
    async def surface(self, mandate_id, source):
        yield self.stage.surface()

    async def aclose(self) -> None:
        return None


class History:
    def __init__(self, bank: Bank, stage: Stage) -> None:
        self.bank, self.stage, self.control = bank, stage, stage.control
        self.made: list[str] = []
        self.folders: list[str] = []
        self.gone: list[str] = []

    async def apply(self, step: tuple) -> None:
        name, *values = step
        await getattr(self, f"do_{name}")(*values)

    def _nth(self, things, number):
        return things[number % len(things)] if things else None

    async def do_create(self, text):
        self.made.append(self.stage.make(f"thing {len(self.made)}", f"Words number {text}."))

    async def do_folder(self):
        name = f"folder {len(self.folders)}"
        if self.stage.plan.kind == "file":
            where = self.stage.plan.more(self.stage.place)
            self.folders.append(self.control.create("folder", name=name, **where)["id"])
        elif self.stage.plan.kind == "message":
            self.folders.append(self.control.create("mailFolder", user=ADA, name=name)["id"])

    async def do_edit(self, number, text):
        if key := self._nth(self.made, number):
            self.control.edit(key, text=f"Words number {text}.")

    async def do_rename(self, number, text):
        field = self.stage.plan.name
        if field and (key := self._nth(self.made, number)):
            self.control.edit(key, **{field: f"renamed {text} {number}-{len(self.made)}.txt"})

    async def do_move(self, number, where):
        key, folder = self._nth(self.made, number), self._nth(self.folders, where)
        if key and folder:
            field = "parentId" if self.stage.plan.kind == "file" else "folder"
            self.control.edit(key, **{field: folder})

    async def do_delete(self, number):
        if key := self._nth(self.made, number):
            self.control.delete(key)
            self.made.remove(key)
            self.gone.append(key)

    async def do_restore(self, number):
        if key := self._nth(self.gone, number):
            self.control.restore(key)
            self.gone.remove(key)
            self.made.append(key)

    async def do_fault(self, kind):
        self.control.fault(kind)

    async def do_throttle(self):
        self.control.fault("throttle", retryAfter=60, path="delta|content")

    async def do_crash(self, point, passes):
        await self.bank.ask()
        await die_at(point, self.bank, passes)

    async def do_clock(self):
        await self.bank.wait_over()

    async def do_sync(self):
        await self.bank.sync()

    def truth(self) -> dict[str, str]:
        return {
            one["id"]: one["text"]
            for one in self.control.state(ADA)["objects"]
            if one["surface"] == self.stage.part and one["kind"] == self.stage.plan.kind
        }

    def agrees(self, corpus: dict[str, str]) -> bool:
        """The same things with the same words; files are nothing but their words, the others say who and when as well."""
        truth = self.truth()
        if self.stage.plan.kind == "file":
            return corpus == truth
        return corpus.keys() == truth.keys() and all(text in corpus[key] for key, text in truth.items())

    async def settle(self) -> None:
        self.control.clear_faults()
        for _ in range(2):
            await self.bank.rows(
                "UPDATE job SET deaths = 0, lease_until = NULL WHERE finished_at IS NULL RETURNING 1"
            )
            await self.bank.wait_over()
            await self.bank.sync()
        async with self.bank.db.tenant_session(self.bank.tenant.mandate_id) as session:
            await sync_service.approve_held(session, self.bank.connection_id)
        await self.bank.drain()


@pytest.fixture(scope="module")
def sandbox():
    running = start("msft")
    yield running
    running.stop()


@pytest.mark.parametrize("part", SURFACES["msft"])
@pytest.mark.timeout(300 if not FULL else 6 * 3600)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
@given(steps=st.lists(step, min_size=4 if not FULL else 30, max_size=STEPS))
async def test_the_corpus_becomes_what_the_sandbox_holds(part, steps, db, pool, sandbox, tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("history")
    bench = Bench(db, pool, folder, retry_base_seconds=0.01, max_attempts=3)
    async with raised(f"msft.{part}", lambda _: sandbox) as stage:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(facade, "get_settings", lambda: bench.settings)
            bank = await open_bank(bench, StagePlaces(stage), Brook())
            history = History(bank, stage)
            for one in steps:
                await history.apply(one)
            await history.settle()
            corpus = await bank.corpus()
            assert history.agrees(corpus), (corpus, history.truth())
            left = await bank.rows("SELECT 1 FROM remote_item WHERE state IN ('pending', 'failed', 'held')")
            assert left == []
