"""Outlook mail: every folder by its own change feed, a message as one document, its attachments as documents below it.

Ids are immutable ones, asked for on every request: a message that moves to another folder keeps its id, so `@removed` there
and the message here are one move. Whether a mail was read changes its version but not its words; the corpus sees a duplicate.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from connectors.kit.contract import (
    CursorLost,
    Estimate,
    Failure,
    Fetched,
    Item,
    ItemFailed,
    ItemGone,
    Part,
    Tombstone,
    VendorUnavailable,
    Watch,
)
from connectors.kit.entries import Entries
from connectors.kit.mail_text import clean_email_body
from connectors.kit.rounds import Batch, Census, ContainerSurface
from connectors.msft.graph import Graph, Record, error_code, lies_in, meaning, moment, segment, stamp
from connectors.msft.subscriptions import Subscriptions
from connectors.registry import Workplace

PAGE, ATTACHED = 50, 100
# A feed with a date filter ends silently after so many messages; a folder with more is read without one.
MOST_FILTERED = 5000
IMMUTABLE = 'IdType="ImmutableId"'
HEADERS = {"Prefer": f"{IMMUTABLE}, odata.maxpagesize={PAGE}"}
SELECT = (
    "id,changeKey,subject,bodyPreview,from,sender,toRecipients,ccRecipients,receivedDateTime,sentDateTime,"
    "lastModifiedDateTime,hasAttachments,webLink,conversationId,internetMessageId,isDraft,importance,categories"
)
ATTACHMENT_SELECT = "id,name,contentType,size,isInline,lastModifiedDateTime"
WELL_KNOWN = ("junkemail", "deleteditems", "drafts", "outbox", "sentitems", "archive", "recoverableitemsdeletions",
              "syncissues", "conversationhistory", "clutter")  # fmt: skip
ALWAYS_SKIPPED = ("recoverableitemsdeletions", "syncissues")
KINDS = {"fileAttachment": "file", "itemAttachment": "item", "referenceAttachment": "reference"}


@dataclass(frozen=True)
class Folder:
    id: str
    name: str
    path: str
    total: int = 0
    size: int = 0


class Outlook(ContainerSurface[Folder]):
    census_keeps = True

    def __init__(self, workplace: Workplace) -> None:
        self._graph = Graph(workplace, workplace.endpoints["graph"])
        self._policy, self._clock, self._root = workplace.policy, workplace.clock, workplace.external_root
        self._subscriptions = Subscriptions(self._graph, workplace.clock)

    # -- folders

    async def census(self) -> Census[Folder]:
        """All folders at every depth, without those that are never indexed and what lies below them."""
        unwanted = await self._unwanted()
        found: dict[str, Folder] = {}
        excluded: set[str] = set()
        waiting: list[tuple[str, str, bool]] = [("/me/mailFolders", "", False)]
        while waiting:
            path, above, hidden = waiting.pop(0)
            async for entry in self._graph.every(path, params={"$top": 100}, headers={"Prefer": IMMUTABLE}):
                folder = _folder(entry, above)
                out = hidden or self._is_unwanted(entry, folder, unwanted)
                if out or not self._is_inside(folder):
                    excluded.add(folder.id)
                else:
                    found[folder.id] = folder
                if entry.get("childFolderCount"):
                    waiting.append((f"/me/mailFolders/{segment(folder.id)}/childFolders", folder.path, out))
        return Census(found, frozenset(excluded))

    async def _unwanted(self) -> set[str]:
        """Ids of well-known folders that are left out: their names are the user's language, their ids are not."""
        skipped = {name.lower() for name in self._policy.mail_skip_folders}
        names = [name for name in WELL_KNOWN if name in skipped or name in ALWAYS_SKIPPED]
        answers = await self._graph.batch([f"/me/mailFolders/{name}?$select=id" for name in names])
        return {str(body["id"]) for status, body in answers if status == 200 and isinstance(body, dict)}

    def _is_inside(self, folder: Folder) -> bool:
        """A data source may be for one folder and what lies below it, by its path or id."""
        steps = folder.path.split("/")
        above = ["/".join(steps[: count + 1]) for count in range(len(steps))]
        return lies_in(self._root, folder.id, *above)

    def _is_unwanted(self, entry: Record, folder: Folder, unwanted: set[str]) -> bool:
        if entry.get("@odata.type", "").endswith("mailSearchFolder") or entry.get("isHidden"):
            return True
        skipped = {name.lower() for name in self._policy.mail_skip_folders}
        return folder.id in unwanted or folder.name.lower() in skipped or folder.path.lower() in skipped

    # -- messages

    def described(self, container: Folder) -> str:
        return container.path

    def _since(self) -> datetime:
        return self._clock() - timedelta(days=self._policy.mail_window_days)

    async def feed(self, container: Folder, link: str | None) -> AsyncIterator[Batch]:
        address, params = link or f"/me/mailFolders/{segment(container.id)}/messages/delta", None
        if link is None:
            body = ",body" if self._policy.mail_tier in {"body", "attachments"} else ""
            params = {"$select": SELECT + body, "$orderby": "receivedDateTime desc"}
            if container.total < MOST_FILTERED:
                params["$filter"] = f"receivedDateTime ge {stamp(self._since())}"
        while True:
            page = await self._graph.page(address, params=params, headers=HEADERS)
            address, params = page.next_link or page.delta_link or "", None
            if not address:
                raise VendorUnavailable("a delta page without a link")
            yield await self._batch(container, page.value, address, done=page.next_link is None)
            if page.next_link is None:
                return

    async def _batch(self, folder: Folder, entries: Sequence[Record], link: str, *, done: bool) -> Batch:
        latest = {str(entry["id"]): entry for entry in entries if entry.get("id")}
        gone = [
            Tombstone(external_id=message_id, container_id=folder.id)
            for message_id, entry in latest.items()
            if "@removed" in entry
        ]
        messages = [entry for entry in latest.values() if "@removed" not in entry]
        # Markup of strangers: off the loop.
        read = await asyncio.to_thread(self._read, folder, messages)
        items, failures = read.items, read.failures
        if self._policy.mail_tier == "attachments":
            having = {str(entry["id"]) for entry in messages if entry.get("hasAttachments")}
            holding = [item for item in items if item.external_id in having and item.skip is None]
            found = await self._attachments(folder, holding)
            items = [found.told_by(item) for item in items] + found.entries.items
            failures = failures + found.entries.failures
        return Batch(link, done, items, gone, failures)

    def _read(self, folder: Folder, messages: Sequence[Record]) -> Entries:
        found = Entries(folder.id)
        for entry in messages:
            with found.reading(str(entry["id"]), entry.get("subject")):
                found.add(self._item(folder, entry))
        return found

    def _item(self, folder: Folder, entry: Record) -> Item:
        received = moment(entry.get("receivedDateTime"))
        outside = received is not None and received < self._since()
        subject = str(entry.get("subject") or "")
        return Item(
            external_id=str(entry["id"]),
            source_kind="outlook_message",
            name=subject or "(no subject)",
            container_id=folder.id,
            version=str(entry.get("changeKey") or "") or None,
            path=folder.path,
            uri=entry.get("webLink") or None,
            mime_type="message/rfc822",
            modified_at=received or moment(entry.get("lastModifiedDateTime")),
            metadata=_context(folder, entry),
            parts=None if outside or entry.get("isDraft") else list(self._parts(entry)),
            skip="outside_window" if outside else "filtered" if entry.get("isDraft") else None,
        )

    def _parts(self, entry: Record) -> Iterator[Part]:
        """By tier: who, when and about what; then the first lines; then all of it."""
        message_id = str(entry["id"])
        yield Part(text=_head(entry), locator={"kind": "mail", "messageId": message_id, "part": "header"})
        text = ""
        if self._policy.mail_tier in {"body", "attachments"}:
            body = entry.get("body") or {}
            content_type = "html" if str(body.get("contentType") or "").lower() == "html" else "text"
            text = clean_email_body(str(body.get("content") or ""), content_type=content_type)
        elif self._policy.mail_tier == "snippet":
            text = clean_email_body(str(entry.get("bodyPreview") or ""), content_type="text")
        if text:
            yield Part(text=text, locator={"kind": "mail", "messageId": message_id, "part": "body"})

    def left_out(self, item: Item) -> str | None:
        if item.modified_at is not None and item.modified_at < self._since():
            return "outside_window"
        if item.source_kind == "outlook_attachment" and self._policy.mail_tier != "attachments":
            return "filtered"
        return super().left_out(item)

    # -- attachments

    async def _attachments(self, folder: Folder, holding: Sequence[Item]) -> "_Attached":
        """Lists them for a page of messages, twenty messages in one request."""
        paths = [
            f"/me/messages/{segment(item.external_id)}/attachments?$select={ATTACHMENT_SELECT}&$top={ATTACHED}"
            for item in holding
        ]
        found = _Attached(Entries(folder.id))
        answers = await self._graph.batch(paths, headers={"Prefer": IMMUTABLE})
        for message, (status, body) in zip(holding, answers, strict=True):
            try:
                attached = await self._all_attached(status, body)
            except ItemGone:  # meanwhile: the next delta says so
                found.hanging[message.external_id] = None
            except (ItemFailed, CursorLost) as error:
                found.fail(message, error)
            else:
                found.hanging[message.external_id] = [str(entry["id"]) for entry in attached]
                for entry in attached:
                    with found.entries.reading(str(entry["id"]), entry.get("name")):
                        found.entries.add(self._attachment(message, entry))
        return found

    async def _all_attached(self, status: int, body: Any) -> list[Record]:
        """From the first page on: a batch answers no more than that."""
        if status != 200:
            raise meaning(status, error_code(body), {})
        if not isinstance(body, dict) or not isinstance(body.get("value"), list):
            raise ItemFailed("unreadable", "attachments without a value")
        page = self._graph.collection(body)
        rest = self._graph.every(page.next_link, headers={"Prefer": IMMUTABLE}) if page.next_link else None
        entries = [*page.value, *([entry async for entry in rest] if rest is not None else [])]
        return [entry for entry in entries if entry.get("id") and not entry.get("isInline")]

    def _attachment(self, message: Item, entry: Record) -> Item:
        kind = KINDS.get(str(entry.get("@odata.type") or "").rpartition(".")[2], "file")
        size = int(entry.get("size") or 0)
        name = str(entry.get("name") or "attachment")
        skip = None
        if kind == "reference":
            skip = "unsupported"  # a link to a file that lives elsewhere, where it is indexed or not
        elif size > self._policy.max_attachment_bytes:
            skip = "too_large"
        return Item(
            external_id=str(entry["id"]),
            source_kind="outlook_attachment",
            name=f"{name}.eml" if kind == "item" and not name.lower().endswith(".eml") else name,
            container_id=message.container_id,
            version=str(entry.get("lastModifiedDateTime") or "") or None,
            parent_id=message.external_id,
            path=message.path,
            uri=message.uri,
            mime_type="message/rfc822" if kind == "item" else str(entry.get("contentType") or "") or None,
            size=size,
            modified_at=message.modified_at,
            metadata={"folder": message.path, "message": message.name, **_sender(message.metadata)},
            handle={"message": message.external_id, "attachment": str(entry["id"]), "kind": kind},
            skip=skip,
        )

    async def fetch(self, item: Item) -> Fetched:
        message, attachment = item.handle.get("message"), item.handle.get("attachment")
        if not message or not attachment:
            raise ItemFailed("unsupported", "a message comes with its listing", permanent=True)
        answer = await self._graph.client.download(
            f"/me/messages/{segment(message)}/attachments/{segment(attachment)}/$value",
            headers={"Prefer": IMMUTABLE},
            max_bytes=self._policy.max_attachment_bytes,
        )
        return Fetched(data=answer.body, mime_type=item.mime_type, file_name=item.name)

    # -- the rest of the contract

    async def estimate(self) -> Estimate:
        folders = list((await self.census()).containers.values())
        return Estimate(
            items=sum(folder.total for folder in folders),
            size=sum(folder.size for folder in folders),
            exact=False,  # folders say how much they hold, not how much of it is recent
            containers=[folder.path for folder in folders],
        )

    async def watch(self, url: str, known: Sequence[Watch]) -> Sequence[Watch]:
        return await self._subscriptions.keep(url, known, {"/me/messages": "created,updated,deleted"})

    async def unwatch(self, known: Sequence[Watch]) -> None:
        await self._subscriptions.drop(known)


@dataclass
class _Attached:
    """What hangs on a page of messages. `hanging` names it by message; None where nobody could say."""

    entries: Entries
    hanging: dict[str, list[str] | None] = field(default_factory=dict[str, "list[str] | None"])

    def fail(self, message: Item, error: Exception) -> None:
        self.hanging[message.external_id] = None
        self.entries.failures.append(
            Failure(
                external_id=f"{message.external_id}/attachments",
                name=message.name,
                reason="attachments",
                detail=str(error),
                container_id=message.container_id,
            )
        )

    def told_by(self, message: Item) -> Item:
        """The message, saying what hangs on it, so that an attachment somebody took off is noticed."""
        hanging = self.hanging.get(message.external_id, [])
        return message if hanging is None or message.skip is not None else replace(message, children=hanging)


def _folder(entry: Record, above: str) -> Folder:
    name = str(entry.get("displayName") or "")
    path = f"{above}/{name}" if above else name
    return Folder(
        str(entry["id"]),
        name,
        path,
        int(entry.get("totalItemCount") or 0),
        int(entry.get("sizeInBytes") or 0),
    )


def _address(recipient: Any) -> str:
    address = (recipient or {}).get("emailAddress") or {}
    name, mail = str(address.get("name") or ""), str(address.get("address") or "")
    return f"{name} <{mail}>" if name and mail and name != mail else name or mail


def _addresses(recipients: Any) -> str:
    return ", ".join(filter(None, (_address(one) for one in (recipients or [])[:50])))


def _head(entry: Record) -> str:
    received = moment(entry.get("receivedDateTime") or entry.get("sentDateTime"))
    lines = {
        "Subject": str(entry.get("subject") or ""),
        "From": _address(entry.get("from") or entry.get("sender")),
        "To": _addresses(entry.get("toRecipients")),
        "Cc": _addresses(entry.get("ccRecipients")),
        "Date": received.strftime("%Y-%m-%d %H:%M UTC") if received else "",
    }
    return "\n".join(f"{name}: {value}" for name, value in lines.items() if value)


def _context(folder: Folder, entry: Record) -> dict[str, Any]:
    told = {
        "folder": folder.path,
        "from": _address(entry.get("from") or entry.get("sender")),
        "to": _addresses(entry.get("toRecipients")),
        "conversationId": entry.get("conversationId"),
        "internetMessageId": entry.get("internetMessageId"),
        "categories": list(entry.get("categories") or []),
    }
    return {name: value for name, value in told.items() if value}


def _sender(metadata: Any) -> dict[str, Any]:
    return {"from": metadata["from"]} if "from" in metadata else {}


def build(workplace: Workplace) -> Outlook:
    return Outlook(workplace)
