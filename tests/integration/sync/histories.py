"""What may happen in any order at a vendor's, on the line and to the workers, and what each step means at each vendor."""

from collections import Counter
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from gateway.corpus.embedders.lookup import text_digest
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
    st.tuples(st.just("throttle"), st.booleans()),
    st.tuples(st.just("crash"), st.sampled_from(POINTS), st.integers(0, 1)),
    st.tuples(st.just("clock"), st.sampled_from([-7200, -600, 600, 7200])),
    st.tuples(st.just("later")),
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


class Entries:
    """How often each piece of text came into the world: as often it may be embedded, and no more.

    A piece comes when it is nowhere and then somewhere. It may also have to be embedded again when it ends in one place
    while another has it: the corpus may hear of the end first, and nothing is kept of what is gone.
    """

    def __init__(self) -> None:
        self.allowed: Counter = Counter()
        self._held: dict[str, set] = {}

    def look(self, held: dict[str, set]) -> None:
        """`held`: the pieces of every object there is now."""
        before = Counter(piece for pieces in self._held.values() for piece in pieces)
        now = {piece for pieces in held.values() for piece in pieces}
        self.allowed.update(now - before.keys())
        for key, pieces in self._held.items():
            self.allowed.update((pieces - held.get(key, set())) & now)
        self._held = held


class History:
    """`made` are the things a step may choose from, by the ids of the control API."""

    def __init__(self, bank: Bank, stage: Stage) -> None:
        self.bank, self.stage, self.control = bank, stage, stage.control
        self.made: list[str] = []
        self.folders: list[str] = []
        self.gone: list[str] = []
        self.binned: list[str] = []  # folders, with all that lies in them
        self.entries = Entries()
        self.lost: Counter = Counter()  # what was in flight at a crash, by digest
        self.there = self.shown()
        self.ahead = timedelta()
        stage.clock = lambda: datetime.now(UTC) + self.ahead

    async def apply(self, step: tuple) -> None:
        name, *values = step
        await getattr(self, f"do_{name}")(*values)
        self.there = self.shown()
        self.entries.look({key: self.pieces(one) for key, one in self.there.items()})

    def _nth(self, things, number):
        return things[number % len(things)] if things else None

    def _living(self, number):
        """One that is made and does not lie in a folder that is gone."""
        return self._nth([key for key in self.made if self.external(key) in self.there], number)

    async def do_create(self, text):
        self.made.append(self.stage.make(f"thing {len(self.made)}", f"Words number {text}."))

    def _folder_name(self) -> str:
        return f"folder {len(self.folders) + len(self.binned)}"

    async def do_folder(self):
        name = self._folder_name()
        if self.stage.plan.kind == "file":
            where = self.stage.plan.more(self.stage.place)
            self.folders.append(self.control.create("folder", name=name, **where)["id"])
        elif self.stage.plan.kind == "message":
            self.folders.append(self.control.create("mailFolder", user=ADA, name=name)["id"])

    async def do_edit(self, number, text):
        if key := self._living(number):
            self.control.edit(key, text=f"Words number {text}.")

    async def do_rename(self, number, text):
        field = self.stage.plan.name
        if field and (key := self._living(number)):
            self.control.edit(key, **{field: f"renamed {text} {number}-{len(self.made)}.txt"})

    async def do_move(self, number, where):
        key, folder = self._living(number), self._nth(self.folders, where)
        if key and folder:
            field = "parentId" if self.stage.plan.kind == "file" else "folder"
            self.control.edit(key, **{field: folder})

    async def do_delete(self, number):
        if number >= 6 and self.folders:  # with all that lies in it, of which some vendors say nothing
            self.binned.append(self.folders.pop())
            self.control.delete(self.binned[-1])
        elif key := self._living(number):
            self.control.delete(key)
            self.made.remove(key)
            self.gone.append(key)

    async def do_restore(self, number):
        if number >= 4 and self.binned:
            self.folders.append(self.binned.pop())
            self.control.restore(self.folders[-1])
        elif key := self._nth(self.gone, number):
            self.control.restore(key)
            self.gone.remove(key)
            self.made.append(key)

    async def do_fault(self, kind):
        self.control.fault(kind)

    async def do_throttle(self, second_kind):
        """In either of the two ways the vendor has for it."""
        self.control.fault("throttle", retryAfter=60, path=API["msft"], status=503 if second_kind else 429)

    async def do_crash(self, point, passes):
        await self.bank.ask()
        before = len(self.bank.bench.embedded())
        await die_at(point, self.bank, passes)
        kept = {row.text_hash.hex() for row in await self.bank.rows("SELECT text_hash FROM text_vector")}
        self.lost.update(one for one in self.bank.bench.embedded()[before:] if one not in kept)

    async def do_clock(self, seconds):
        """Our own clock is set, the vendor's is not."""
        self.ahead += timedelta(seconds=seconds)

    async def do_later(self):
        """Hours go by for everybody: tokens expire, schedules are due."""
        self.control.advance(7200)
        self.ahead += timedelta(hours=2)
        await self.bank.wait_over()

    async def do_sync(self):
        await self.bank.sync()

    # -- what is there, and what may be found of it

    def external(self, key: str) -> str:
        return key

    def shown(self) -> dict[str, dict]:
        """Every living object of this surface, by the id the corpus knows it by: a look inside, since it is taken after
        every step.
        """
        return {
            one["id"]: one
            for one in self.stage.sandbox.world.state(ADA)["objects"]
            if one["surface"] == self.stage.part and one["kind"] == self.stage.plan.kind
        }

    def pieces(self, one: dict) -> set:
        """What of it is embedded: a file's words, a head and the words below it, or all in one piece."""
        if self.stage.plan.kind == "file":
            return {one["text"]}
        if self.stage.part in {"outlook", "outlook_calendar", "gmail"}:
            return {(one["id"], one["name"]), one["text"]}
        return {(one["id"], one["name"], one["text"])}

    def truth(self) -> dict[str, str]:
        return {key: one["text"] for key, one in self.shown().items()}

    def agrees(self, corpus: dict[str, str]) -> bool:
        """The same things with the same words; files are nothing but their words, the others say who and when as well."""
        truth = self.truth()
        if self.stage.plan.kind == "file":
            return corpus == truth
        return corpus.keys() == truth.keys() and all(text in corpus[key] for key, text in truth.items())

    def embedded_too_often(self) -> str | None:
        """Each text no more often than it came, plus what was in flight at a crash; None if that is so."""
        embedded, allowed = Counter(self.bank.bench.embedded()), self.entries.allowed
        if embedded.total() > allowed.total() + self.lost.total():
            return f"{embedded.total()} embedded, {allowed.total()} came, {self.lost.total()} lost"
        for piece, times in allowed.items():
            digest = text_digest(piece).hex() if isinstance(piece, str) else ""
            if embedded[digest] > times + self.lost[digest]:
                return f"{piece!r}: {embedded[digest]} embedded, {times} came, {self.lost[digest]} lost"
        return None

    async def settle(self) -> None:
        self.control.clear_faults()
        await self.bank.settle(rounds=2)


class GoogleHistory(History):
    """What a step means at Google; what makes no sense at a surface does nothing there."""

    @property
    def part(self) -> str:
        return self.stage.part

    async def do_folder(self):
        kind = {"drive": "folder", "google_calendar": "calendar"}.get(self.part)
        if kind:
            self.folders.append(self.control.create(kind, name=self._folder_name())["id"])

    async def do_edit(self, number, text):
        if self.part == "gmail":  # a mail stays as it is; its labels do not
            if key := self._living(number):
                self.control.edit(key, labels=["INBOX", f"Project {text}"])
        else:
            await super().do_edit(number, text)

    async def do_rename(self, number, text):
        if self.part != "gmail":
            await super().do_rename(number, text)

    async def do_move(self, number, where):
        key, target = self._living(number), self._nth(self.folders, where)
        if self.part == "drive":
            await super().do_move(number, where)
        elif self.part == "gmail" and key:  # out of the inbox, or back into it
            self.control.edit(key, labels=["INBOX"] if where % 2 else ["Project 1"])
        elif key and target and not key.startswith(f"{target}/"):
            # As Google does it: cancelled in one calendar, there with the same id in the other.
            event = self.there[key]
            self.control.delete(key)
            self.made.remove(key)
            more = self.stage.plan.more(self.stage.place)
            moved = self.control.create(
                "event",
                id=key.rpartition("/")[2],
                calendarId=target,
                name=event["name"],
                text=event["text"],
                **more,
            )
            self.made.append(moved["id"])

    async def do_fault(self, kind):
        if kind == "cursor_expiry" and self.part == "drive":
            # Drive's tokens do not expire; they have been refused all the same.
            self.control.fault("refuse", status=410, reason="invalid", path="/changes")
        elif kind != "repeat_item":  # Google names nothing twice on a page
            self.control.fault(kind)

    async def do_throttle(self, second_kind):
        self.control.fault("throttle", retryAfter=60, path=API["google"], status=403 if second_kind else 429)

    def shown(self):
        return {
            one["id"]: one
            for one in self.stage.sandbox.world.state(ADA)[self.part]
            if one["kind"] != "folder"
        }


class ClickUpHistory(History):
    """There are no cursors: listings come due by themselves."""

    async def do_folder(self):
        self.folders.append(self.control.create("list", name=self._folder_name())["id"])

    async def do_move(self, number, where):
        key, target = self._living(number), self._nth(self.folders, where)
        if key and target:
            self.control.edit(key, list=target)

    async def do_fault(self, kind):
        if kind in {"empty_page", "repeat_page"}:
            self.control.fault(kind)

    async def do_throttle(self, second_kind):
        """With the moment of its end, or without a word."""
        self.control.fault("throttle", retryAfter=60, path=API["clickup"], bare=second_kind)

    def external(self, key):
        return f"task/{key}"

    def shown(self):
        return {one["externalId"]: one for one in self.stage.sandbox.world.state(None)["clickup"]}


HISTORIES = {"msft": History, "google": GoogleHistory, "clickup": ClickUpHistory}
