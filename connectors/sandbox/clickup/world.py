"""Everything the sandbox's ClickUp knows: a workspace with spaces, lists, tasks, comments, attachments, docs and hooks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from connectors.sandbox.clickup.consent import Grants
from connectors.sandbox.clickup.hooks import Hooks
from connectors.sandbox.clickup.seed import USERS, fill
from connectors.sandbox.clock import Clock
from connectors.sandbox.faults import Fault
from connectors.sandbox.world import Fields, Ids, NoSuchObject, Refused, World

TEAM = "9001"


@dataclass
class Thing:
    """A space, folder, list, task, comment, reply, attachment, doc or page."""

    id: str
    kind: str
    name: str
    text: str = ""
    parent: str | None = None  # what it hangs on
    user: str = ""
    created: int = 0
    updated: int = 0
    gone: bool = False
    fields: dict[str, Any] = field(default_factory=dict[str, Any])


class ClickUpWorld(World):
    bad_days = frozenset({"empty_page", "repeat_page", "forbid_container"})

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__(clock)
        self.grants = Grants(self.clock)  # outlive a reset: who consented stays signed in
        self.things: dict[str, Thing] = {}
        self.hooks = Hooks(self)

    def reset(self, seed: str) -> None:
        self.ids = Ids()
        self.things = {}
        self.hooks = Hooks(self)
        if seed == "demo":
            fill(self)
        elif seed != "empty":
            raise Refused(f"no seed {seed}")

    def now(self) -> int:
        return round(self.clock.stamp().timestamp() * 1000)

    # -- the control API

    def add_list(self, space: str, folder: str | None, name: str) -> str:
        """Finds or makes a list and what it lies in."""
        within = self._named("space", space, None)
        if folder is not None:
            within = self._named("folder", folder, within.id)
        return self._named("list", name, within.id).id

    def _named(self, kind: str, name: str, parent: str | None) -> Thing:
        for thing in self.things.values():
            if (thing.kind, thing.name, thing.parent) == (kind, name, parent):
                return thing
        return self._make(kind, name, parent, {})

    def _make(self, kind: str, name: str, parent: str | None, fields: Mapping[str, Any]) -> Thing:
        digest = self.ids.digest(kind)
        number = int.from_bytes(digest[:6], "big")
        thing_id = (
            f"86{digest.hex()[:7]}" if kind == "task" else f"8c-{number}" if kind == "doc" else str(number)
        )
        now = self.now()
        thing = Thing(
            thing_id,
            kind,
            name,
            str(fields.get("text", "")),
            parent,
            str(fields.get("user") or next(iter(USERS))),
            now,
            now,
        )
        known = {"kind", "name", "text", "user", "list", "task", "comment", "doc", "parent"}
        thing.fields = {key: value for key, value in fields.items() if key not in known}
        self.things[thing_id] = thing
        return thing

    def create(self, fields: Fields) -> Fields:
        kind = str(fields.get("kind", "task"))
        if kind == "list":
            made = self.add_list("Operations", None, str(fields["name"]))
            return {"id": made, "kind": kind}
        places = {
            "task": "list",
            "comment": "task",
            "reply": "comment",
            "attachment": "task",
            "page": "doc",
            "doc": "",
        }
        if kind not in places:
            raise Refused(f"no kind {kind}")
        place = places[kind]
        within = str(fields[place]) if place and place in fields else None
        if kind == "task" and within is None:
            within = self.add_list("Operations", None, "Tasks")
        thing = self._make(kind, str(fields.get("name", kind)), within, fields)
        if kind == "task" and fields.get("parent"):
            thing.fields["subtask_of"] = fields["parent"]
        if kind == "page" and fields.get("parent"):
            thing.fields["page_of"] = fields["parent"]
        self._touch_owner(thing)
        self.hooks.happened("taskCreated" if kind == "task" else "taskUpdated", self._task_of(thing))
        return self.shown(thing)

    def edit(self, object_id: str, fields: Fields) -> Fields:
        thing = self.known(object_id)
        thing.name, thing.text = str(fields.get("name", thing.name)), str(fields.get("text", thing.text))
        thing.parent = str(fields["list"]) if "list" in fields else thing.parent
        extra = {key: value for key, value in fields.items() if key not in {"name", "text", "list", "kind"}}
        thing.fields |= extra
        thing.updated = self.now()
        self._touch_owner(thing)
        self.hooks.happened("taskStatusUpdated" if "status" in extra else "taskUpdated", self._task_of(thing))
        return self.shown(thing)

    def delete(self, object_id: str, fields: Fields) -> Fields:
        del fields
        thing = self.known(object_id)
        thing.gone = True
        if thing.kind not in {"task", "doc"}:
            self._touch_owner(thing)
        self.hooks.happened("taskDeleted" if thing.kind == "task" else "taskUpdated", self._task_of(thing))
        return {"id": object_id, "deleted": True}

    def restore(self, object_id: str) -> Fields:
        """Out of the trash with its old dates: whoever goes by dates alone never sees it again."""
        thing = self.things.get(object_id)
        if thing is None:
            raise NoSuchObject(object_id)
        thing.gone = False
        if thing.kind not in {"task", "doc"}:
            self._touch_owner(thing)
        self.hooks.happened("taskUpdated", self._task_of(thing))
        return self.shown(thing)

    def known(self, object_id: str) -> Thing:
        thing = self.things.get(object_id)
        if thing is None or thing.gone:
            raise NoSuchObject(object_id)
        return thing

    def alive(self, thing: Thing) -> bool:
        """Not in the trash, and nothing it lies in is."""
        above: Thing | None = thing
        while above is not None:
            if above.gone:
                return False
            parent = above.fields.get("subtask_of") or above.parent
            above = self.things.get(parent) if parent else None
        return True

    def of_kind(self, kind: str, parent: str | None = None) -> list[Thing]:
        return [
            thing
            for thing in self.things.values()
            if thing.kind == kind and self.alive(thing) and (parent is None or thing.parent == parent)
        ]

    def _touch_owner(self, thing: Thing) -> None:
        """A comment, reply or attachment updates its task, a page its doc."""
        above = thing
        while above.kind in {"comment", "reply", "attachment", "page"} and above.parent in self.things:
            above = self.things[above.parent]
            above.updated = self.now()

    def _task_of(self, thing: Thing) -> str | None:
        above: Thing | None = thing
        while above is not None and above.kind != "task":
            above = self.things.get(above.parent) if above.parent else None
        return above.id if above else None

    def state(self, user: str | None) -> Fields:
        del user  # the workspace is everybody's
        return {
            "clickup": [
                self.shown(thing)
                for kind in ("task", "doc", "attachment")
                for thing in self.of_kind(kind)
                if kind != "attachment" or self.alive(self.things[str(thing.parent)])
            ]
        }

    def shown(self, thing: Thing) -> dict[str, Any]:
        external = {"task": f"task/{thing.id}", "doc": f"doc/{thing.id}"}.get(
            thing.kind, f"task/{thing.parent}/attachment/{thing.id}"
        )
        return {
            "id": thing.id,
            "externalId": external,
            "kind": thing.kind,
            "name": thing.name,
            "version": str(thing.updated),
            "text": self._spoken(thing),
            **({"list": thing.parent} if thing.kind == "task" else {}),
        }

    def _spoken(self, thing: Thing) -> str:
        """All that is said on it, for a test to look for."""
        below = {"task": ("comment",), "comment": ("reply",), "doc": ("page",)}.get(thing.kind, ())
        return "\n".join(
            [thing.text, *(self._spoken(one) for kind in below for one in self.of_kind(kind, thing.id))]
        )

    def revoke(self, fields: Fields) -> Fields:
        self.grants.end(fields.get("user"))
        return {"revoked": True}

    async def deliver(self, fields: Fields) -> Fields:
        return await self.hooks.deliver(fields)

    def refusal(self, fault: Fault, request: Request) -> Response:
        del request
        options = fault.options
        if fault.kind == "throttle":
            wait = float(options.get("retryAfter", 1))
            headers = {
                "X-RateLimit-Limit": "100",
                "X-RateLimit-Remaining": "0",
                "X-RateLimit-Reset": str(round(self.clock.now().timestamp() + wait + 0.5)),
            }
            return error(429, "Rate limit reached", "APP_002", {} if options.get("bare") else headers)
        if fault.kind == "unauthorized":
            return error(401, "Token invalid", str(options.get("code", "OAUTH_025")))
        return error(int(options.get("status", 500)), "Internal Server Error", "ITEM_000")


def error(status: int, text: str, code: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"err": text, "ECODE": code}, status_code=status, headers=dict(headers or {}))


def make(clock: Clock | None = None) -> ClickUpWorld:
    return ClickUpWorld(clock)
