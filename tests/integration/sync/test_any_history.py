"""Whatever happens in whatever order – at the vendor's, on the line, to the workers – the corpus becomes what is there.

And no text is embedded more often than it entered the world, plus once for each crash: the batch in flight.
"""

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.corpus.embedders.lookup import text_digest
from gateway.ingestion import facade
from tests.conformance.brook import Brook, BrookPlaces
from tests.fixtures.worker import Bench
from tests.integration.sync.conftest import Bank, open_bank
from tests.integration.sync.crashing import POINTS, die_at
from tests.integration.workers.test_ingest import assert_consistent

FULL = os.environ.get("CATCHMENT_ACCEPTANCE") == "full"
EXAMPLES, STEPS = (300, 50) if FULL else (6, 14)

number = st.integers(0, 7)
pool_name = st.sampled_from(["p1", "p2"])
text_number = st.integers(0, 9)
step = st.one_of(
    st.tuples(
        st.just("create"), st.sampled_from(["file", "file", "note", "folder"]), pool_name, text_number, number
    ),
    st.tuples(st.just("edit"), number, text_number),
    st.tuples(st.just("rename"), number, text_number),
    st.tuples(st.just("move"), number, pool_name, st.booleans()),
    st.tuples(st.just("delete"), number),
    st.tuples(st.just("restore"), number),
    st.tuples(st.just("vanish"), number),
    st.tuples(st.just("throttle"), st.sampled_from(["pages", "fetch"]), st.sampled_from([0.0, 30.0])),
    st.tuples(st.just("unavailable"), st.sampled_from(["pages", "fetch"])),
    st.tuples(st.just("forget")),
    st.tuples(st.just("empty")),
    st.tuples(st.just("repeat")),
    st.tuples(st.just("break"), number),
    st.tuples(st.just("unlistable"), number),
    st.tuples(st.just("dark")),
    st.tuples(st.just("crash"), st.sampled_from(POINTS), st.integers(0, 2)),
    st.tuples(st.just("clock")),
    st.tuples(st.just("sync")),
    st.tuples(st.just("sync")),
    st.tuples(st.just("relist")),
)


class History:
    """Applies steps to a brook; what does not fit the moment is left out."""

    def __init__(self, bank: Bank) -> None:
        self.bank, self.world = bank, bank.world
        self.entered: Counter[str] = Counter()
        self.crashes = 0
        self.made = 0

    def _nth(self, things: dict, number: int):
        names = sorted(things)
        return things[names[number % len(names)]] if names else None

    def _enter(self, *texts: str) -> None:
        self.entered.update(text for text in texts if text)

    async def apply(self, step: tuple) -> None:
        name, *values = step
        await getattr(self, f"do_{name}")(*values)

    async def do_create(self, kind, pool, text, parent):
        holder = self._nth(
            {k: t for k, t in self.world.things.items() if t.kind == "folder" and t.pool == pool}, parent
        )
        self.made += 1
        content = "" if kind == "folder" else f"Text number {text}."
        self.world.create(
            f"t{self.made:02}",
            content,
            pool=pool,
            kind=kind,
            parent=holder.id if holder and parent % 2 else None,
        )
        self._enter(content)

    async def do_edit(self, number, text):
        thing = self._nth({k: t for k, t in self.world.things.items() if t.kind != "folder"}, number)
        if thing:
            self.world.edit(thing.id, f"Text number {text}.")
            self._enter(f"Text number {text}.")

    async def do_rename(self, number, text):
        if thing := self._nth(self.world.things, number):
            self.world.rename(thing.id, f"name {text}.txt")

    async def do_move(self, number, pool, gone_first):
        thing = self._nth({k: t for k, t in self.world.things.items() if t.kind != "folder"}, number)
        if thing:
            self.world.gone_first = gone_first
            self.world.move(thing.id, pool)

    async def do_delete(self, number):
        if thing := self._nth(self.world.things, number):
            self.world.delete(thing.id)

    async def do_restore(self, number):
        if thing := self._nth(self.world.trash, number):
            self.world.restore(thing.id)
            self._enter(thing.text)

    async def do_vanish(self, number):
        """Without a word: so that it is noticed, the feed is forgotten too."""
        thing = self._nth({k: t for k, t in self.world.things.items() if t.kind != "folder"}, number)
        if thing:
            self.world.vanish(thing.id)
            self.world.forget_feed()

    async def do_throttle(self, where, after):
        self.world.arm("throttle", at=where, after=after)

    async def do_unavailable(self, where):
        self.world.arm("unavailable", at=where)

    async def do_forget(self):
        self.world.forget_feed()

    async def do_empty(self):
        self.world.arm("empty_page", times=2)

    async def do_repeat(self):
        self.world.arm("repeat_page", times=2)

    async def do_break(self, number):
        if thing := self._nth(self.world.things, number):
            self.world.broken[thing.id] = "locked"

    async def do_unlistable(self, number):
        if thing := self._nth(self.world.things, number):
            self.world.unlistable.add(thing.id)

    async def do_dark(self):
        """A container cannot be listed for a while."""
        if self.world.dark_pools:
            self.world.dark_pools = set()
        else:
            self.world.dark_pools = {"p2"}
            self.world.forget_feed()  # what happens in the dark is not in the feed

    async def do_crash(self, point, passes):
        await self.bank.ask()
        self.crashes += await die_at(point, self.bank, passes)

    async def do_clock(self):
        await self.bank.wait_over()

    async def do_sync(self):
        await self.bank.sync()

    async def do_relist(self):
        await self.bank.sync("bootstrap")

    async def settle(self) -> None:
        """The troubles end, time goes by, and a person says yes to what was held."""
        self.world.faults.clear()
        self.world.broken.clear()
        self.world.unlistable.clear()
        if self.world.dark_pools:
            self.world.dark_pools = set()
            self.world.forget_feed()
        await self.bank.settle(rounds=3)


@pytest.mark.timeout(300 if not FULL else 6 * 3600)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
@given(steps=st.lists(step, min_size=STEPS if FULL else 1, max_size=STEPS))
async def test_the_corpus_becomes_what_is_there(steps, db, pool, tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("history")
    bench = Bench(db, pool, folder, retry_base_seconds=0.01, max_attempts=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(facade, "get_settings", lambda: bench.settings)
        bank = await open_bank(bench, BrookPlaces(), Brook())
        history = History(bank)
        for one in steps:
            await history.apply(one)
        await history.settle()
        assert await bank.corpus() == bank.world.truth()
        titles = await bank.rows("SELECT source_id, title FROM document")
        assert {row.source_id: row.title for row in titles} == {
            thing.id: thing.name for thing in bank.world.things.values() if thing.kind != "folder"
        }
        assert await bank.rows("SELECT 1 FROM remote_item WHERE state IN ('pending', 'failed', 'held')") == []
        assert await bank.rows("SELECT 1 FROM item_failure") == []
        await assert_consistent(db, bank.tenant)
        embedded = Counter(bench.embedded())
        for text, times in history.entered.items():
            assert embedded[text_digest(text).hex()] <= times + history.crashes
        assert sum(embedded.values()) <= sum(history.entered.values()) + history.crashes * 10
