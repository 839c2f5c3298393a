"""What a task and a doc say: name and description, comments with their threads, pages; and what hangs on a task."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from connectors.clickup.api import Record, stamp
from connectors.kit.contract import Fetched, Item, ItemGone, Part
from connectors.kit.policy import SyncPolicy
from connectors.kit.vendor import VendorClient

PER_CALL = 25  # comments
MOST_COMMENTS = 1000
MOST_PAGES = 2000


async def task_detail(client: VendorClient, item: Item, policy: SyncPolicy) -> Fetched:
    task_id = item.handle["task"]
    task = await client.json(f"/v2/task/{task_id}", params={"include_markdown_description": "true"})
    about = "\n\n".join(text for text in (str(task.get("name") or "").strip(), _description(task)) if text)
    parts = [Part(text=about, mime_type="text/markdown", locator={"kind": "ticket", "ticketId": task_id})]
    parts += await _comments(client, task_id)
    children = [
        _attachment(item, one, policy)
        for one in task.get("attachments") or ()
        if one.get("id") and not one.get("deleted")
    ]
    return Fetched(
        parts=parts, children=children, version=str(stamp(task, "date_updated")), mime_type=item.mime_type
    )


def _description(task: Record) -> str:
    found = task.get("markdown_description") or task.get("text_content") or task.get("description") or ""
    fields = [
        f"{field['name']}: {field['value']}"
        for field in task.get("custom_fields") or ()
        if field.get("name") and isinstance(field.get("value"), str) and field["value"].strip()
    ]
    lists = [
        f"- {entry.get('name')}"
        for checklist in task.get("checklists") or ()
        for entry in checklist.get("items") or ()
        if entry.get("name")
    ]
    return "\n\n".join(text for text in (str(found).strip(), "\n".join(fields), "\n".join(lists)) if text)


async def _comments(client: VendorClient, task_id: str) -> list[Part]:
    """Oldest first, each with its replies. The vendor gives the newest first, 25 at a time."""
    found: list[Record] = []
    parameters: dict[str, str] = {}
    while len(found) < MOST_COMMENTS:
        answer = await client.json(f"/v2/task/{task_id}/comment", params=parameters)
        page = [one for one in answer.get("comments") or () if one.get("id")]
        fresh = [one for one in page if one["id"] not in {known["id"] for known in found}]
        found += fresh
        if len(page) < PER_CALL or not fresh:
            break
        parameters = {"start": str(stamp(page[-1], "date")), "start_id": str(page[-1]["id"])}
    parts: list[Part] = []
    for comment in reversed(found):
        parts.append(_comment(task_id, comment))
        if int(comment.get("reply_count") or 0):
            replies = await client.json(f"/v2/comment/{comment['id']}/reply")
            ordered = sorted(replies.get("comments") or (), key=lambda one: stamp(one, "date"))
            parts += [_comment(task_id, reply) for reply in ordered]
    return [part for part in parts if part.text.strip()]


def _comment(task_id: str, comment: Record) -> Part:
    said = comment.get("comment_text") or "".join(
        str(piece.get("text") or "") for piece in comment.get("comment") or () if isinstance(piece, dict)
    )
    who = str((comment.get("user") or {}).get("username") or "")
    text = f"{who}: {str(said).strip()}" if who and str(said).strip() else str(said).strip()
    return Part(text=text, locator={"kind": "ticket", "ticketId": task_id, "commentId": str(comment["id"])})


def _attachment(task: Item, one: Record, policy: SyncPolicy) -> Item:
    size = int(one.get("size") or 0)
    name = str(one.get("title") or one.get("id"))
    return Item(
        external_id=f"{task.external_id}/attachment/{one['id']}",
        source_kind="clickup_task",
        name=name,
        container_id=task.container_id,
        parent_id=task.external_id,
        version=f"{one.get('version') or 0}:{stamp(one, 'date')}",
        path=f"{task.path}/{task.name}",
        uri=task.uri,
        mime_type=one.get("mimetype"),
        size=size,
        modified_at=datetime.fromtimestamp(stamp(one, "date") / 1000, UTC),
        metadata={"attachmentOf": task.name},
        handle={"url": str(one.get("url") or one.get("url_w_host") or "")},
        skip="too_large" if size > policy.max_attachment_bytes else None,
    )


async def doc_parts(client: VendorClient, item: Item) -> list[Part]:
    path = f"/v3/workspaces/{item.handle['workspace']}/docs/{item.handle['doc']}/pages"
    pages = await client.json(path, params={"max_page_depth": "-1", "content_format": "text/md"})
    if not isinstance(pages, list):
        raise ItemGone("the doc has no pages any more")
    parts: list[Part] = []
    _walk(pages, (), parts)
    return parts or [Part(text=item.name, mime_type="text/markdown", locator={"kind": "text"})]


def _walk(pages: Sequence[Any], above: tuple[str, ...], parts: list[Part]) -> None:
    for page in pages:
        if (
            not isinstance(page, dict)
            or page.get("deleted")
            or page.get("archived")
            or len(parts) >= MOST_PAGES
        ):
            continue
        name = str(page.get("name") or "").strip()
        heading = f"# {name}\n\n" if name else ""
        text = f"{heading}{str(page.get('content') or '').strip()}".strip()
        if text:
            locator = {"kind": "ticket", "ticketId": str(page.get("id") or "")}
            parts.append(Part(text=text, mime_type="text/markdown", locator=locator))
        _walk(page.get("pages") or (), (*above, name), parts)
