"""Gmail: one mailbox, listed newest first within its window and then followed by its history.

Mail itself does not change; its labels do. TRASH, SPAM and the labels a policy leaves out are the end of a message here.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeGuard

from connectors.google.api import GoogleApi, Refusal, about_container
from connectors.google.messages import (
    METADATA_HEADERS,
    READING,
    all_parts,
    attachments,
    body_parts,
    decoded,
    letter,
)
from connectors.kit.contract import (
    CursorLost,
    Estimate,
    Failure,
    Fetched,
    Item,
    ItemFailed,
    ItemGone,
    Tombstone,
    Watch,
)
from connectors.kit.entries import Entries
from connectors.kit.rounds import Batch, Census, ContainerSurface
from connectors.registry import Workplace

MAILBOX = "mailbox"
PAGE = 100
AT_ONCE = 8  # messages are asked for one by one; so many are read, and kept, together
HISTORY_PAGE = 200
CHANGES = ["messageAdded", "messageDeleted", "labelAdded", "labelRemoved"]
ENDED = frozenset({"TRASH", "SPAM"})
WATCH_RENEW_BEFORE = timedelta(days=5)  # Google wants it once a day, and ends it after seven
MEAN_BYTES = 20_000


@dataclass(frozen=True)
class Place:
    """A link, read: a page of the listing since a moment, or a page of the history since a number.

    `waiting` are messages of the page before, named there and not read yet: what was read is not asked for again.
    """

    kind: str  # list, history
    history: str
    since: str = ""
    page: str | None = None
    waiting: Sequence[str] = ()
    ended: bool = False  # the page before was the last one

    def text(self) -> str:
        told = [self.kind, self.history, self.since, self.page, list(self.waiting), self.ended]
        return json.dumps(told, separators=(",", ":"))

    @staticmethod
    def read(link: str) -> "Place":
        return Place(*json.loads(link))


class Gmail(ContainerSurface[str]):
    def __init__(self, workplace: Workplace) -> None:
        self._workplace, self._policy = workplace, workplace.policy
        self._api = GoogleApi(workplace, workplace.endpoints, "gmail", "v1")
        self._left_out = {label.casefold() for label in workplace.policy.mail_skip_folders}
        self._labels: dict[str, str] = {}  # names by id: those a user made are called Label_7 on a message
        self._skipped: frozenset[str] = ENDED

    async def census(self) -> Census[str]:
        return Census({MAILBOX: MAILBOX})

    async def feed(self, container: str, link: str | None) -> AsyncGenerator[Batch]:
        del container
        try:
            await self._learn_labels()
            # The number is taken before the first message is listed: what changes meanwhile comes with the first delta.
            place = Place.read(link) if link else Place("list", await self._history_id(), self._since())
            ask = self._listed if place.kind == "list" else self._changed
            while True:
                async for batch in self._waiting(place):
                    yield batch
                if place.ended:
                    return
                place, tombstones = await ask(place)
                if tombstones or not place.waiting:
                    done = place.ended and not place.waiting
                    yield Batch(self._after(place, place.waiting).text(), done, tombstones=tombstones)
                    if done:
                        return
        except Refusal as error:
            if link is not None and error.status in {400, 404}:
                raise CursorLost(str(error)) from error
            if error.status == 403:
                raise about_container(error) from error
            raise

    async def _history_id(self) -> str:
        profile = await self._api.ask(lambda api: api.users().getProfile(userId="me"))
        return str(profile["historyId"])

    async def _learn_labels(self) -> None:
        if not self._labels:
            answer = await self._api.ask(lambda api: api.users().labels().list(userId="me"))
            self._labels = {label["id"]: label["name"] for label in answer.get("labels", ())}
        self._skipped = ENDED | {
            label
            for label, name in self._labels.items()
            if {label.casefold(), name.casefold()} & self._left_out
        }

    def _earliest(self) -> datetime:
        return self._workplace.clock() - timedelta(days=self._policy.mail_window_days)

    def _since(self) -> str:
        """In seconds: a date would be read in Google's own time zone."""
        return str(int(self._earliest().timestamp()))

    def _query(self, since: str) -> str:
        """Everything in the window but what policy leaves out; Gmail itself leaves out spam and trash."""
        names = sorted(
            self._labels[label].lower() for label in self._skipped - ENDED if label in self._labels
        )
        left_out = [re.sub(r"[ /]", "-", name) for name in names]  # as Gmail's search spells them
        return " ".join([f"after:{since}", *(f"-label:{name}" for name in left_out)])

    # -- the listing

    async def _listed(self, place: Place) -> tuple[Place, list[Tombstone]]:
        page = await self._api.ask(
            lambda api: (
                api.users()
                .messages()
                .list(userId="me", q=self._query(place.since), maxResults=PAGE, pageToken=place.page)
            )
        )
        following = page.get("nextPageToken")
        named = [str(entry["id"]) for entry in page.get("messages", ())]
        return replace(place, page=following, waiting=named, ended=following is None), []

    async def _waiting(self, place: Place) -> AsyncGenerator[Batch]:
        """Reads what a page named, a few at a time, and says after each few what is left: also before it gives up."""
        waiting = list(place.waiting)
        while waiting:
            some, waiting = waiting[:AT_ONCE], waiting[AT_ONCE:]
            answers = await asyncio.gather(*(self._read(one) for one in some), return_exceptions=True)
            read = {one: answer for one, answer in zip(some, answers, strict=True) if not _broke(answer)}
            waiting = [one for one in some if one not in read] + waiting
            # Markup of strangers: off the loop.
            found = await asyncio.to_thread(self._judged, read)
            link, done = self._after(place, waiting).text(), place.ended and not waiting
            if read:
                yield Batch(link, done, found.upserts, found.tombstones, found.failures)
            for answer in answers:
                if _broke(answer):
                    raise answer

    def _after(self, place: Place, waiting: Sequence[str]) -> Place:
        """A listing that is through goes on as the history since the number it began with."""
        if waiting or not place.ended:
            return replace(place, waiting=waiting)
        return Place("history", place.history)

    def _judged(self, messages: Mapping[str, Any]) -> "_Found":
        found = _Found()
        for message_id, message in messages.items():
            if message is None:
                found.tombstones.append(Tombstone(external_id=message_id))
            elif isinstance(message, Refusal):
                found.failures.append(
                    Failure(
                        external_id=message_id,
                        name="",
                        reason="refused",
                        detail=str(message),
                        container_id=MAILBOX,
                    )
                )
            elif set(message.get("labelIds", ())) & self._skipped:
                found.tombstones.append(Tombstone(external_id=message_id, reason="trashed"))
            else:
                entries = Entries(MAILBOX)
                with entries.reading(message_id, message.get("snippet")):
                    for item in self._items(message):
                        entries.add(item)
                found.upserts += entries.items
                found.failures += entries.failures
        return found

    async def _read(self, message_id: str) -> Mapping[str, Any] | Refusal | None:
        """With all of its words: Gmail tells large ones by reference."""
        message = await self._message(message_id)
        if message is None or isinstance(message, Refusal):
            return message
        for part in body_parts(message.get("payload") or {}):
            body = part["body"]
            if body.get("data") or not body.get("attachmentId"):
                continue
            try:
                body |= await self._ask_attachment(message_id, body["attachmentId"])
            except Refusal as error:
                return error  # the message is there, and not all of it can be read
        return message

    async def _message(self, message_id: str) -> Mapping[str, Any] | Refusal | None:
        """None for one that is gone. What Google will not show costs that one message."""
        options: dict[str, Any] = {"format": "full"}
        if self._policy.mail_tier in {"metadata", "snippet"}:
            options = {"format": "metadata", "metadataHeaders": METADATA_HEADERS}
        try:
            return await self._api.ask(
                lambda api: api.users().messages().get(userId="me", id=message_id, **options)
            )
        except Refusal as error:
            return None if error.status == 404 else error

    def _items(self, message: Mapping[str, Any]) -> list[Item]:
        policy, written = self._policy, letter(message, self._labels)
        too_old = written.received_at is not None and written.received_at < self._earliest()
        mail = Item(
            external_id=message["id"],
            source_kind="gmail_message",
            name=written.subject or "(no subject)",
            container_id=MAILBOX,
            version=f"{policy.mail_tier}:{','.join(sorted(written.labels))}",
            uri=f"https://mail.google.com/mail/u/0/#all/{message['id']}",
            mime_type="message/rfc822",
            size=int(message.get("sizeEstimate", 0)),
            modified_at=written.received_at,
            metadata=written.metadata(),
            parts=None if too_old else list(written.parts(policy.mail_tier)),
            skip="outside_window" if too_old else None,
        )
        if too_old or policy.mail_tier != "attachments":
            return [mail]
        return [mail, *attachments(message, mail, policy)]

    def left_out(self, item: Item) -> str | None:
        if item.modified_at is not None and item.modified_at < self._earliest():
            return "outside_window"
        attached = item.source_kind == "gmail_attachment" and self._policy.mail_tier != "attachments"
        labels = {str(label).casefold() for label in item.metadata.get("labels", ())}
        return "filtered" if attached or labels & self._left_out else None

    # -- the history

    async def _changed(self, place: Place) -> tuple[Place, list[Tombstone]]:
        page = await self._api.ask(
            lambda api: (
                api.users()
                .history()
                .list(
                    userId="me",
                    startHistoryId=place.history,
                    historyTypes=CHANGES,
                    maxResults=HISTORY_PAGE,
                    pageToken=place.page,
                )
            )
        )
        touched = _touched(page.get("history", ()))
        following = page.get("nextPageToken")
        # The number of the last page is where the next round begins; until then the old one, and a page of it.
        history = place.history if following is not None else str(page["historyId"])
        living = [one for one, lives in touched.items() if lives]
        gone = [Tombstone(external_id=one) for one, lives in touched.items() if not lives]
        return Place("history", history, "", following, living, ended=following is None), gone

    # -- attachments

    async def fetch(self, item: Item) -> Fetched:
        """An attachment, by the number of its part: the id Google gives it is another one at every look."""
        message_id, part_id = item.handle.get("message", ""), item.handle.get("part", "")
        message = await self._message(message_id) if message_id else None
        if message is None:
            raise ItemGone("the message is gone")
        if isinstance(message, Refusal):
            raise ItemFailed("refused", str(message)) from message
        body = next(
            (part["body"] for part in all_parts(message["payload"]) if part.get("partId") == part_id), None
        )
        if body is None:
            raise ItemGone("the message has no such part")
        if "attachmentId" in body:
            body = await self._attachment(message_id, body["attachmentId"])
        data = decoded(body.get("data", ""))
        if len(data) > self._policy.max_attachment_bytes:
            raise ItemFailed("too_large", f"{len(data)} bytes", permanent=True)
        return Fetched(data=data, mime_type=item.mime_type, file_name=item.name)

    async def _attachment(self, message_id: str, attachment_id: str) -> Mapping[str, Any]:
        try:
            return await self._ask_attachment(message_id, attachment_id)
        except Refusal as error:
            if error.status == 404:
                raise ItemGone(str(error)) from error
            raise ItemFailed("refused", str(error)) from error

    async def _ask_attachment(self, message_id: str, attachment_id: str) -> Mapping[str, Any]:
        return await self._api.ask(
            lambda api: (
                api.users().messages().attachments().get(userId="me", messageId=message_id, id=attachment_id)
            )
        )

    # -- what a first sync would bring

    async def estimate(self) -> Estimate:
        await self._learn_labels()
        query, items, token = self._query(self._since()), 0, None
        while True:
            page = await self._api.ask(
                lambda api, token=token: (
                    api.users().messages().list(userId="me", q=query, maxResults=500, pageToken=token)
                )
            )
            items += len(page.get("messages", ()))
            token = page.get("nextPageToken")
            if token is None:
                return Estimate(items=items, size=items * MEAN_BYTES, exact=True, containers=["Gmail"])

    # -- push: through the operator's Pub/Sub topic

    async def watch(self, url: str, known: Sequence[Watch]) -> Sequence[Watch]:
        """Nothing without a topic and the token its push subscription carries in the URL; polling stays."""
        del url
        endpoints = self._workplace.endpoints
        topic, secret = endpoints.get("pubsub_topic"), endpoints.get("pubsub_token")
        if not topic or not secret:
            return []
        now = self._workplace.clock()
        live = [watch for watch in known if watch.resource == topic and watch.secret == secret]
        if live and live[0].expires_at > now + WATCH_RENEW_BEFORE:
            return live
        profile = await self._api.ask(lambda api: api.users().getProfile(userId="me"))
        answer = await self._api.ask(
            lambda api: api.users().watch(userId="me", body={"topicName": topic}), cost=20
        )
        expires = datetime.fromtimestamp(int(answer["expiration"]) / 1000, UTC)
        address = str(profile["emailAddress"]).lower()
        return [Watch(vendor_id=address, resource=topic, expires_at=expires, secret=secret)]

    async def unwatch(self, known: Sequence[Watch]) -> None:
        if known:
            await self._api.tell(lambda api: api.users().stop(userId="me"))


def _broke(answer: object) -> TypeGuard[BaseException]:
    """Not an answer about one message, but the end of asking for now."""
    return isinstance(answer, BaseException) and not isinstance(answer, Refusal)


class _Found:
    def __init__(self) -> None:
        self.upserts: list[Item] = []
        self.tombstones: list[Tombstone] = []
        self.failures: list[Failure] = []


def _touched(records: Sequence[Mapping[str, Any]]) -> dict[str, bool]:
    """Each message once, and whether it lives: as it is now will be asked, only its end is believed as it was told."""
    touched: dict[str, bool] = {}
    for record in records:
        for entry in record.get("messagesDeleted", ()):
            touched[entry["message"]["id"]] = False
        for entry in record.get("messagesAdded", ()):
            touched[entry["message"]["id"]] = True
        for entry in [*record.get("labelsAdded", ()), *record.get("labelsRemoved", ())]:
            if set(entry.get("labelIds", ())) - READING:
                touched[entry["message"]["id"]] = True
    return touched


def build(workplace: Workplace) -> Gmail:
    return Gmail(workplace)
