"""ClickUp: the tasks and docs of every workspace the user opened to us.

Changes are asked for by the date of the last update, with some overlap. Deletions never appear there; only a listing tells.
So a listing is made again with every round while it costs a few requests, and ever more rarely as workspaces grow.
"""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from connectors.clickup.api import ClickUpClient, Record, Walk, stamp, tasks
from connectors.clickup.reading import doc_parts, task_detail
from connectors.clickup.watching import Hooks
from connectors.kit.contract import Estimate, Fetched, Item, ItemFailed, Watch
from connectors.kit.entries import Entries
from connectors.kit.rounds import Batch, Census, ContainerSurface
from connectors.registry import Workplace

OVERLAP_MS = 60_000  # clocks differ, and an update may become visible late
FAR_MS = 4_102_444_800_000  # the year 2100
FREE_REQUESTS = 10  # a listing that took no more is made with every round
SECONDS_PER_REQUEST = 6.0  # beyond that: on average a tenth of the hundred a minute
DOCS_PER_PAGE = 100


@dataclass(frozen=True)
class Container:
    """The tasks or the docs of one workspace."""

    kind: str
    team_id: str
    name: str

    @property
    def id(self) -> str:
        return f"{self.kind}/{self.team_id}"


class ClickUpSurface(ContainerSurface[Container]):
    def __init__(self, place: Workplace) -> None:
        self._client = ClickUpClient(place)
        self._policy, self._clock = place.policy, place.clock
        self._hooks = Hooks(self._client, place.clock)
        self._spaces: dict[str, dict[str, str]] = {}

    def _now(self) -> int:
        return round(self._clock().timestamp() * 1000)

    async def census(self) -> Census[Container]:
        teams = await self._teams()
        found = [
            Container(kind, str(team["id"]), str(team.get("name") or ""))
            for team in teams
            for kind in ("tasks", "docs")
        ]
        return Census({container.id: container for container in found})

    async def _teams(self) -> list[Record]:
        answer = await self._client.json("/v2/team")
        return [team for team in answer.get("teams") or () if team.get("id")]

    def outgrown(self, container_id: str, link: str) -> bool:
        del container_id
        said = json.loads(link)
        spare = (said["requests"] - FREE_REQUESTS) * SECONDS_PER_REQUEST * 1000
        rested = self._now() - said["listed"]
        return rested < 0 or rested >= max(spare, 0)  # a listing in the future: our clock was set back

    def feed(self, container: Container, link: str | None) -> AsyncIterator[Batch]:
        return self._tasks(container, link) if container.kind == "tasks" else self._docs(container, link)

    # -- tasks

    async def _tasks(self, container: Container, link: str | None) -> AsyncIterator[Batch]:
        said = json.loads(link) if link else self._fresh()
        if "walk" not in said:  # a round of changes begins
            said |= {"next": self._now() - OVERLAP_MS, "walk": asdict(Walk("updated", said["since"], FAR_MS))}
        while True:
            walk = Walk(**said["walk"])
            async for rows, over in tasks(self._client, container.team_id, walk):
                said["count"] = said.get("count", 0) + 1
                said["walk"] = asdict(walk)
                done = over and walk.archived
                found = Entries(container.id)
                for row in rows:
                    with found.reading(f"task/{row['id']}", row.get("name")):
                        found.add(await self._task(container, row))
                if over and not walk.archived:
                    said["walk"] = asdict(
                        Walk(walk.field, said.get("from", 0), FAR_MS, archived=True)
                        if walk.field == "created"
                        else Walk("updated", said["since"], FAR_MS, archived=True)
                    )
                if done:
                    said = self._ended(said)
                link = json.dumps(said, separators=(",", ":"))
                yield Batch(link, done, upserts=found.items, failures=found.failures)
                if done:
                    return
                if over:
                    break

    def _fresh(self) -> dict[str, Any]:
        """A listing. Where changes will begin is noted before the first row is asked for."""
        now = self._now()
        return {"listed": now, "next": now - OVERLAP_MS, "walk": asdict(Walk("created", 0, FAR_MS))}

    def _ended(self, said: dict[str, Any]) -> dict[str, Any]:
        listing = said["walk"]["field"] == "created"
        requests = said["count"] if listing else said["requests"]
        return {"since": said["next"], "listed": said["listed"], "requests": requests}

    async def _task(self, container: Container, row: Record) -> Item:
        space = await self._space(container.team_id, row)
        folder = row.get("folder") or row.get("project") or {}
        names = [
            space,
            "" if folder.get("hidden") else str(folder.get("name") or ""),
            str((row.get("list") or {}).get("name") or ""),
        ]
        closed = (row.get("status") or {}).get("type") in {"closed", "done"}
        skip = None if self._wanted(names) else "filtered"
        if closed and not self._policy.closed_tasks:
            skip = "filtered"
        return Item(
            external_id=f"task/{row['id']}",
            source_kind="clickup_task",
            name=str(row.get("name") or ""),
            container_id=container.id,
            version=str(stamp(row, "date_updated")),
            path="/".join(name for name in (container.name, *names) if name),
            uri=row.get("url"),
            mime_type="text/markdown",
            modified_at=datetime.fromtimestamp(stamp(row, "date_updated") / 1000, UTC),
            metadata=_described(row),
            handle={"task": str(row["id"])},
            skip=skip,
        )

    async def _space(self, team_id: str, row: Record) -> str:
        space_id = str((row.get("space") or {}).get("id") or "")
        if team_id not in self._spaces:
            known: dict[str, str] = {}
            for archived in ("false", "true"):
                answer = await self._client.json(f"/v2/team/{team_id}/space", params={"archived": archived})
                known |= {str(one["id"]): str(one.get("name") or "") for one in answer.get("spaces") or ()}
            self._spaces[team_id] = known
        return self._spaces[team_id].get(space_id, "")

    def _wanted(self, names: Sequence[str]) -> bool:
        wanted = [pattern.lower() for pattern in self._policy.libraries]
        return not wanted or any(
            fnmatchcase(name.lower(), pattern) for name in names if name for pattern in wanted
        )

    # -- docs

    async def _docs(self, container: Container, link: str | None) -> AsyncIterator[Batch]:
        """Docs have no change feed: each round lists them, and their versions tell what is new."""
        said = json.loads(link) if link else {"listed": self._now()}
        cursor, requests = str(said.get("cursor") or ""), int(said.get("count", 0))
        while True:
            parameters = {"limit": str(DOCS_PER_PAGE), "deleted": "false", "archived": "false"}
            if cursor:
                parameters["cursor"] = cursor
            answer = await self._client.json(f"/v3/workspaces/{container.team_id}/docs", params=parameters)
            cursor, requests = str(answer.get("next_cursor") or ""), requests + 1
            done = not cursor
            said = {"listed": said["listed"], "requests": requests} | (
                {} if done else {"cursor": cursor, "count": requests}
            )
            found = Entries(container.id)
            for doc in answer.get("docs") or ():
                if doc.get("id") and not doc.get("deleted") and not doc.get("archived"):
                    with found.reading(f"doc/{doc['id']}", doc.get("name")):
                        found.add(self._doc(container, doc))
            yield Batch(
                json.dumps(said, separators=(",", ":")), done, upserts=found.items, failures=found.failures
            )
            if done:
                return

    def _doc(self, container: Container, doc: Record) -> Item:
        return Item(
            external_id=f"doc/{doc['id']}",
            source_kind="clickup_doc",
            name=str(doc.get("name") or ""),
            container_id=container.id,
            version=str(stamp(doc, "date_updated") or stamp(doc, "date_created")),
            path=container.name,
            uri=f"https://app.clickup.com/{container.team_id}/v/dc/{doc['id']}",
            mime_type="text/markdown",
            modified_at=datetime.fromtimestamp(stamp(doc, "date_updated") / 1000, UTC),
            metadata={"workspace": container.name},
            handle={"doc": str(doc["id"]), "workspace": container.team_id},
        )

    # -- the rest of the contract

    async def fetch(self, item: Item) -> Fetched:
        if "doc" in item.handle:
            return Fetched(
                parts=await doc_parts(self._client, item), version=item.version, mime_type=item.mime_type
            )
        if "url" in item.handle:
            answer = await self._client.file(item.handle["url"], self._policy.max_attachment_bytes)
            return Fetched(
                data=answer.body,
                mime_type=item.mime_type or answer.headers.get("content-type"),
                version=item.version,
                file_name=item.name,
            )
        if "task" not in item.handle:
            raise ItemFailed("unknown", "neither a task nor a doc", permanent=True)
        return await task_detail(self._client, item, self._policy)

    async def estimate(self) -> Estimate:
        """Lists say how many tasks they hold; how much text that is can only be guessed."""
        items, names = 0, list[str]()
        for team in await self._teams():
            names.append(str(team.get("name") or ""))
            items += await self._count_tasks(str(team["id"]))
        return Estimate(items=items, size=items * 2000, exact=False, containers=names)

    async def _count_tasks(self, team_id: str) -> int:
        spaces = await self._client.json(f"/v2/team/{team_id}/space", params={"archived": "false"})
        total = 0
        for space in spaces.get("spaces") or ():
            folders = await self._client.json(f"/v2/space/{space['id']}/folder", params={"archived": "false"})
            lists = await self._client.json(f"/v2/space/{space['id']}/list", params={"archived": "false"})
            held = [
                *(lists.get("lists") or ()),
                *(one for f in folders.get("folders") or () for one in f.get("lists") or ()),
            ]
            total += sum(int(one.get("task_count") or 0) for one in held)
        return total

    async def watch(self, url: str, known: Sequence[Watch]) -> Sequence[Watch]:
        return await self._hooks.keep(url, known, [str(team["id"]) for team in await self._teams()])

    async def unwatch(self, known: Sequence[Watch]) -> None:
        await self._hooks.drop(known)


def _described(row: Record) -> dict[str, Any]:
    """What may change without a word of the text changing: it describes the document and costs no embedding."""
    people = [str(one.get("username") or one.get("email") or "") for one in row.get("assignees") or () if one]
    return {
        "status": str((row.get("status") or {}).get("status") or ""),
        "priority": str((row.get("priority") or {}).get("priority") or ""),
        "assignees": [name for name in people if name],
        "tags": [str(tag.get("name")) for tag in row.get("tags") or () if tag.get("name")],
        "due": stamp(row, "due_date") or None,
        "archived": bool(row.get("archived")),
        "parentTask": row.get("parent"),
        "customId": row.get("custom_id"),
    }


def build(workplace: Workplace) -> ClickUpSurface:
    return ClickUpSurface(workplace)
