"""ClickUp's API v2 and the docs of v3, as recorded answers look: strings for dates, nulls, and fields nobody asked for."""

from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from connectors.sandbox.clickup import consent
from connectors.sandbox.clickup.seed import USERS
from connectors.sandbox.clickup.world import TEAM, ClickUpWorld, Thing, error
from connectors.sandbox.world import NoSuchObject

PER_PAGE, COMMENTS_PER_PAGE = 100, 25


class Answers:
    def __init__(self, world: ClickUpWorld) -> None:
        self.world = world

    # -- people and places

    def user(self, _request: Request, who: str) -> Any:
        return {
            "user": {
                **_person(who),
                "week_start_day": 1,
                "timezone": "Europe/Zurich",
                "global_font_support": None,
            }
        }

    def teams(self, _request: Request, _who: str) -> Any:
        members = [{"user": {**_person(one), "role": 3, "role_key": "member"}} for one in USERS]
        return {
            "teams": [
                {"id": TEAM, "name": "Water works", "color": "#0b6470", "avatar": None, "members": members}
            ]
        }

    def spaces(self, request: Request, _who: str) -> Any:
        if request.query_params.get("archived") == "true":
            return {"spaces": []}
        return {
            "spaces": [
                {
                    "id": one.id,
                    "name": one.name,
                    "private": False,
                    "color": None,
                    "avatar": None,
                    "statuses": [],
                    "archived": False,
                }
                for one in self.world.of_kind("space")
            ]
        }

    def folders(self, request: Request, _who: str) -> Any:
        space = self.world.known(request.path_params["id"])
        return {
            "folders": [
                {
                    "id": one.id,
                    "name": one.name,
                    "hidden": False,
                    "task_count": str(self._count(one.id)),
                    "lists": self._lists(one.id),
                }
                for one in self.world.of_kind("folder", space.id)
            ]
        }

    def lists(self, request: Request, _who: str) -> Any:
        return {"lists": self._lists(self.world.known(request.path_params["id"]).id)}

    def _lists(self, parent: str) -> list[dict[str, Any]]:
        return [
            {
                "id": one.id,
                "name": one.name,
                "orderindex": 0,
                "task_count": len(self.world.of_kind("task", one.id)),
                "archived": False,
            }
            for one in self.world.of_kind("list", parent)
        ]

    def _count(self, folder: str) -> int:
        return sum(len(self.world.of_kind("task", one.id)) for one in self.world.of_kind("list", folder))

    # -- tasks

    def team_tasks(self, request: Request, _who: str) -> Any:
        query = request.query_params
        field = {"updated": "updated", "created": "created"}.get(query.get("order_by", "created"), "created")
        chosen = [
            one
            for one in self.world.of_kind("task")
            if bool(one.fields.get("archived")) == (query.get("archived") == "true")
            and (query.get("include_closed") == "true" or not _is_closed(one))
            and (query.get("subtasks") == "true" or not one.fields.get("subtask_of"))
            and all(
                _within(getattr(one, name), query.get(f"date_{name}_gt"), query.get(f"date_{name}_lt"))
                for name in ("created", "updated")
            )
        ]
        # Newest first, unless reversed; which way round is the vendor's secret.
        chosen.sort(key=lambda one: (getattr(one, field), one.id), reverse=query.get("reverse") != "true")
        start = int(query.get("page", 0)) * PER_PAGE
        if self.world.faults.take("empty_page", path=request.url.path):
            return {"tasks": [], "last_page": False} if start else {"tasks": [], "last_page": True}
        rows = [self._task(one) for one in chosen[start : start + PER_PAGE]]
        if rows and self.world.faults.take("repeat_page", path=request.url.path):
            rows = [*rows, rows[0]][:PER_PAGE]
        return {"tasks": rows, "last_page": start + PER_PAGE >= len(chosen)}

    def task(self, request: Request, _who: str) -> Any:
        one = self._known_task(request)
        attachments = [self._attachment(each) for each in self.world.of_kind("attachment", one.id)]
        return {**self._task(one), "attachments": attachments, "markdown_description": one.text}

    def _known_task(self, request: Request) -> Thing:
        one = self.world.known(request.path_params["id"])
        if one.kind != "task" or not self.world.alive(one):
            raise NoSuchObject(one.id)
        return one

    def _task(self, one: Thing) -> dict[str, Any]:
        home = self.world.things.get(one.parent or "")
        above = self.world.things.get(home.parent or "") if home else None
        folder = above if above is not None and above.kind == "folder" else None
        space = self.world.things.get(folder.parent or "") if folder else above
        status = str(one.fields.get("status", "to do"))
        return {
            "id": one.id,
            "custom_id": None,
            "custom_item_id": 0,
            "name": one.name,
            "text_content": one.text,
            "description": one.text,
            "status": {
                "id": None,
                "status": status,
                "color": "#d3d3d3",
                "orderindex": 0,
                "type": "closed" if _is_closed(one) else "open",
            },
            "orderindex": "1.00000000000000000000000000000000",
            "date_created": str(one.created),
            "date_updated": str(one.updated),
            "date_closed": None,
            "date_done": None,
            "archived": bool(one.fields.get("archived")),
            "creator": _person(one.user),
            "assignees": [_person(who) for who in one.fields.get("assignees", ())],
            "watchers": [],
            "checklists": [],
            "tags": [{"name": tag, "tag_fg": "#fff", "tag_bg": None} for tag in one.fields.get("tags", ())],
            "parent": one.fields.get("subtask_of"),
            "priority": None,
            "due_date": None,
            "custom_fields": [],
            "dependencies": [],
            "team_id": TEAM,
            "url": f"https://app.clickup.com/t/{one.id}",
            "permission_level": "create",
            "list": {"id": home.id, "name": home.name, "access": True} if home else {},
            "project": _folder(folder),
            "folder": _folder(folder),
            "space": {"id": space.id if space else None},
            **one.fields.get("raw", {}),
        }

    def comments(self, request: Request, _who: str) -> Any:
        task = self._known_task(request)
        found = sorted(
            self.world.of_kind("comment", task.id), key=lambda one: (one.created, one.id), reverse=True
        )
        start, start_id = request.query_params.get("start"), request.query_params.get("start_id")
        if start and start_id:
            places = [number for number, one in enumerate(found) if one.id == start_id]
            found = found[places[0] + 1 :] if places else [one for one in found if one.created < int(start)]
        return {"comments": [self._comment(one) for one in found[:COMMENTS_PER_PAGE]]}

    def replies(self, request: Request, _who: str) -> Any:
        comment = self.world.known(request.path_params["id"])
        return {"comments": [self._comment(one) for one in self.world.of_kind("reply", comment.id)]}

    def _comment(self, one: Thing) -> dict[str, Any]:
        return {
            "id": one.id,
            "comment": [{"text": one.text}],
            "comment_text": one.text,
            "user": _person(one.user),
            "assignee": None,
            "reactions": [],
            "date": str(one.created),
            "reply_count": len(self.world.of_kind("reply", one.id)),
        }

    def _attachment(self, one: Thing) -> dict[str, Any]:
        url = f"{self.world.second_url}/attachments/{one.id}/{one.name}"
        return {
            "id": one.id,
            "date": str(one.created),
            "title": one.name,
            "type": 1,
            "version": one.updated,
            "extension": one.name.rpartition(".")[2],
            "thumbnail_small": None,
            "mimetype": one.fields.get("mimeType", "text/plain"),
            "hidden": False,
            "parent_id": one.parent,
            "size": len(one.text.encode()),
            "user": _person(one.user),
            "deleted": False,
            "url": url,
            "url_w_query": f"{url}?view=open",
        }

    # -- docs

    def docs(self, request: Request, _who: str) -> Any:
        limit, start = (
            int(request.query_params.get("limit", 50)),
            int(request.query_params.get("cursor") or 0),
        )
        found = self.world.of_kind("doc")
        shown: dict[str, Any] = {"docs": [_doc(one) for one in found[start : start + limit]]}
        if start + limit < len(found):
            shown["next_cursor"] = str(start + limit)
        return shown

    def pages(self, request: Request, _who: str) -> Any:
        doc = self.world.known(request.path_params["doc"])
        return self._pages(doc.id, None)

    def _pages(self, doc: str, parent: str | None) -> list[dict[str, Any]]:
        return [
            {
                "id": one.id,
                "doc_id": doc,
                "parent_page_id": parent,
                "workspace_id": TEAM,
                "name": one.name,
                "sub_title": None,
                "content": one.text,
                "date_created": one.created,
                "date_updated": one.updated,
                "deleted": False,
                "archived": False,
                "pages": self._pages(doc, one.id),
            }
            for one in self.world.of_kind("page", doc)
            if one.fields.get("page_of") == parent
        ]

    # -- hooks

    def hooks(self, _request: Request, _who: str) -> Any:
        return {"webhooks": list(self.world.hooks.hooks.values())}


def _person(who: str) -> dict[str, Any]:
    number, name = USERS.get(who, (999, who))
    return {
        "id": number,
        "username": name,
        "email": who,
        "color": None,
        "profilePicture": None,
        "initials": name[:2].upper(),
    }


def _folder(folder: Thing | None) -> dict[str, Any]:
    if folder is None:
        return {"id": "0", "name": "hidden", "hidden": True, "access": True}
    return {"id": folder.id, "name": folder.name, "hidden": False, "access": True}


def _doc(one: Thing) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "type": 1,
        "parent": {"id": TEAM, "type": 12},
        "public": False,
        "workspace_id": int(TEAM),
        "creator": 183,
        "date_created": one.created,
        "date_updated": one.updated,
        "deleted": False,
        "archived": False,
    }


def _is_closed(one: Thing) -> bool:
    return str(one.fields.get("status", "")) in {"complete", "closed", "done"}


def _within(value: int, after: str | None, before: str | None) -> bool:
    return (after is None or value > int(after)) and (before is None or value < int(before))


def build(world: ClickUpWorld) -> Starlette:  # noqa: C901 - one small handler per verb
    answers = Answers(world)

    def get(path: str, handler: Callable[[Request, str], Any]) -> Route:
        async def endpoint(request: Request) -> Response:
            who = world.grants.user_of(request.headers.get("authorization", ""))
            if who is None:
                return error(401, "Token invalid", "OAUTH_025")
            if world.faults.take("forbid_container", path=str(request.url.path)):
                return error(401, "Team not authorized", "OAUTH_027")
            try:
                return JSONResponse(handler(request, who))
            except NoSuchObject:
                return error(404, "Task not found, deleted", "ITEM_013")

        endpoint.__name__ = handler.__name__
        return Route(f"/api{path}", endpoint, methods=["GET"])

    async def add_hook(request: Request) -> Response:
        who = world.grants.user_of(request.headers.get("authorization", ""))
        if who is None:
            return error(401, "Token invalid", "OAUTH_025")
        hook = world.hooks.add(request.path_params["team"], who, await request.json())
        return JSONResponse({"id": hook["id"], "webhook": hook})

    async def drop_hook(request: Request) -> Response:
        if world.hooks.hooks.pop(request.path_params["id"], None) is None:
            return error(404, "Webhook not found", "WH_001")
        return JSONResponse({})

    async def attachment(request: Request) -> Response:
        if "authorization" in request.headers:
            return Response("a token has no business here", status_code=400)
        try:
            one = world.known(request.path_params["id"])
        except NoSuchObject:
            return Response(status_code=404)
        return Response(one.text.encode(), media_type=str(one.fields.get("mimeType", "text/plain")))

    return Starlette(
        routes=[
            *consent.routes(world),
            get("/v2/user", answers.user),
            get("/v2/team", answers.teams),
            get("/v2/team/{team}/space", answers.spaces),
            get("/v2/space/{id}/folder", answers.folders),
            get("/v2/space/{id}/list", answers.lists),
            get("/v2/folder/{id}/list", answers.lists),
            get("/v2/team/{team}/task", answers.team_tasks),
            get("/v2/task/{id}", answers.task),
            get("/v2/task/{id}/comment", answers.comments),
            get("/v2/comment/{id}/reply", answers.replies),
            get("/v3/workspaces/{team}/docs", answers.docs),
            get("/v3/workspaces/{team}/docs/{doc}/pages", answers.pages),
            get("/v2/team/{team}/webhook", answers.hooks),
            Route("/api/v2/team/{team}/webhook", add_hook, methods=["POST"]),
            Route("/api/v2/webhook/{id}", drop_hook, methods=["DELETE"]),
            Route("/attachments/{id}/{name:path}", attachment, methods=["GET"]),
        ]
    )
