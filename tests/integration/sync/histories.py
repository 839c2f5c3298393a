"""What may happen in any order at a vendor's, on the line and to the workers, and what each step means at each vendor."""

from contextlib import asynccontextmanager

from hypothesis import strategies as st

from tests.conformance.stages import ADA, API, Stage
from tests.integration.sync.conftest import Bank
from tests.integration.sync.crashing import POINTS, die_at

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
    st.tuples(st.just("crash"), st.sampled_from(POINTS), st.integers(0, 1)),
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
        self.comebacks = self.crashes = 0  # what may make a text that was known be embedded again

    async def apply(self, step: tuple) -> None:
        name, *values = step
        if name in {"edit", "delete", "restore"}:
            self.comebacks += len(self.made) + len(self.gone) if self.folders else 1
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
        self.crashes += await die_at(point, self.bank, passes)

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

    def embedded_again(self) -> int:
        """How many embeddings were of texts that had been embedded before."""
        embedded = self.bank.bench.embedded()
        return len(embedded) - len(set(embedded))

    def agrees(self, corpus: dict[str, str]) -> bool:
        """The same things with the same words; files are nothing but their words, the others say who and when as well."""
        truth = self.truth()
        if self.stage.plan.kind == "file":
            return corpus == truth
        return corpus.keys() == truth.keys() and all(text in corpus[key] for key, text in truth.items())

    async def settle(self) -> None:
        self.control.clear_faults()
        await self.bank.settle(rounds=2)


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


HISTORIES = {"msft": History, "google": GoogleHistory, "clickup": ClickUpHistory}
