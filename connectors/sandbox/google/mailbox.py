"""Gmail's side of the world: messages with labels, and a history that forgets."""

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime

from connectors.sandbox.clock import Clock
from connectors.sandbox.google.answers import Json, milliseconds
from connectors.sandbox.tokens import decoded, encoded
from connectors.sandbox.world import Ids, NoSuchObject

SYSTEM_LABELS = (
    "INBOX",
    "SENT",
    "DRAFT",
    "SPAM",
    "TRASH",
    "UNREAD",
    "STARRED",
    "IMPORTANT",
    "CATEGORY_PERSONAL",
    "CATEGORY_PROMOTIONS",
)
FIRST_HISTORY = 9000


@dataclass(frozen=True, kw_only=True)
class Attachment:
    file_name: str
    mime_type: str
    data: bytes


@dataclass(kw_only=True)
class Message:
    id: str
    thread_id: str
    subject: str
    sender: str
    to: str
    cc: str
    message_id: str  # the header, not Gmail's id
    in_reply_to: str | None
    at: datetime
    labels: set[str]
    text: str | None
    html: str | None
    attachments: list[Attachment] = field(default_factory=list[Attachment])
    footer: str | None = None  # HTML that a mail gateway appended
    forwarded: Json | None = None  # a mail that hangs on it: subject, from, text, html
    apart: bool = False  # so large that its text is told by reference
    history_id: int = 0
    gone: bool = False

    @property
    def headers(self) -> list[Json]:
        found = {
            "From": self.sender,
            "To": self.to,
            "Cc": self.cc,
            "Subject": self.subject,
            "Date": format_datetime(self.at),
            "Message-ID": self.message_id,
            "In-Reply-To": self.in_reply_to,
            "References": self.in_reply_to,
        }
        return [{"name": name, "value": value} for name, value in found.items() if value]

    @property
    def body(self) -> str:
        return self.text if self.text is not None else re.sub(r"<[^>]+>", " ", self.html or "")

    @property
    def snippet(self) -> str:
        return " ".join(self.body.split())[:200]


class Mailbox:
    """One user's. Every change is a record with a number; records before `forgotten` can no longer be asked for."""

    def __init__(self, address: str, clock: Clock, ids: Ids) -> None:
        self.address = address
        self._clock, self._ids = clock, ids
        self.messages: dict[str, Message] = {}
        self.labels: dict[str, str] = {name: name for name in SYSTEM_LABELS}
        self.history: list[Json] = []
        self.latest = FIRST_HISTORY
        self.forgotten = FIRST_HISTORY
        self._fetches = 0

    def note(self, change: str, message: Message, labels: list[str] | None = None) -> None:
        self.latest += 7  # numbers grow, and not by one
        message.history_id = self.latest
        self.history.append(
            {"id": self.latest, "change": change, "message": message.id, "labels": labels or []}
        )

    def known(self, message_id: str) -> Message:
        if message_id not in self.messages or self.messages[message_id].gone:
            raise NoSuchObject(message_id)
        return self.messages[message_id]

    # -- what the control API does

    def create(self, fields: Json) -> Message:
        number = self._ids.digest("message").hex()[:16]
        at = fields.get("at")
        message = Message(
            id=number,
            thread_id=fields.get("threadId") or number,
            subject=fields.get("subject") or fields.get("name", ""),
            sender=fields.get("from", "Someone <someone@demo.example>"),
            to=fields.get("to", self.address),
            cc=fields.get("cc", ""),
            message_id=fields.get("messageId") or f"<{number}@mail.demo.example>",
            in_reply_to=fields.get("inReplyTo"),
            at=datetime.fromisoformat(at) if at else self._clock.stamp(),
            labels=self._ids_of(fields.get("labels", ("INBOX", "UNREAD"))),
            text=fields.get("text", None if "html" in fields else ""),
            html=fields.get("html"),
            attachments=[_attachment(each) for each in fields.get("attachments", ())],
            footer=fields.get("footer"),
            forwarded=fields.get("forwarded"),
            apart=bool(fields.get("apart")),
        )
        self.messages[message.id] = message
        self.note("messagesAdded", message)
        return message

    def _ids_of(self, names: Iterable[str]) -> set[str]:
        """Labels a user made have ids of their own; Google's are their names."""
        found: set[str] = set()
        for name in names:
            known = next((each for each, called in self.labels.items() if name in {each, called}), None)
            if known is None:
                known = f"Label_{len(self.labels)}"
                self.labels[known] = name
            found.add(known)
        return found

    def edit(self, message: Message, fields: Json) -> Message:
        """Mail does not change; its labels do. `text` is a draft's."""
        if "labels" in fields:
            wanted = self._ids_of(fields["labels"])
            added, removed = wanted - message.labels, message.labels - wanted
            message.labels = wanted
            if added:
                self.note("labelsAdded", message, sorted(added))
            if removed:
                self.note("labelsRemoved", message, sorted(removed))
        return message

    def delete(self, message: Message, *, for_good: bool) -> None:
        if for_good:
            message.gone = True
            self.note("messagesDeleted", message)
        else:
            self.edit(message, {"labels": (message.labels | {"TRASH"}) - {"INBOX"}})

    def restore(self, message_id: str) -> Message:
        if message_id not in self.messages:
            raise NoSuchObject(message_id)
        message = self.messages[message_id]
        if message.gone:
            message.gone = False
            self.note("messagesAdded", message)
        if "TRASH" in message.labels:
            self.edit(message, {"labels": (message.labels | {"INBOX"}) - {"TRASH"}})
        return message

    # -- as the API shows it

    def found(self, query: str, labels: list[str], *, spam_and_trash: bool) -> list[Message]:
        kept = [
            message
            for message in self.messages.values()
            if not message.gone
            and set(labels) <= message.labels
            and (spam_and_trash or not message.labels & {"SPAM", "TRASH"})
            and all(self._matches(message, word) for word in query.split())
        ]
        return sorted(kept, key=lambda message: (message.at, message.id), reverse=True)

    def _matches(self, message: Message, word: str) -> bool:
        """One word of a search: `after:`, `before:`, `in:`, `label:`, with `-` for not; anything else is looked for."""
        if word.startswith("-"):
            return not self._matches(message, word[1:])
        name, _, value = word.partition(":")
        if name in {"after", "newer"}:
            return message.at >= _day(value)
        if name in {"before", "older"}:
            return message.at < _day(value)
        if name in {"in", "label"}:
            wanted = {"drafts": "draft"}.get(value, value)
            return wanted in {re.sub(r"[ /]", "-", self.labels[each]).lower() for each in message.labels}
        return word.lower() in f"{message.subject} {message.sender} {message.body}".lower()

    def record(self, entry: Json) -> Json:
        message = self.messages[entry["message"]]
        short: Json = {"id": message.id, "threadId": message.thread_id}
        shown: Json = {"message": {**short, "labelIds": sorted(message.labels)}}
        if entry["change"].startswith("labels"):
            shown["labelIds"] = entry["labels"]
        return {"id": str(entry["id"]), "messages": [short], entry["change"]: [shown]}

    def resource(self, message: Message, form: str, headers: list[str]) -> Json:
        found: Json = {
            "id": message.id,
            "threadId": message.thread_id,
            "labelIds": sorted(message.labels),
            "snippet": message.snippet,
            "historyId": str(message.history_id),
            "internalDate": str(milliseconds(message.at)),
            "sizeEstimate": len(message.body) + sum(len(each.data) for each in message.attachments) + 500,
        }
        if form == "minimal":
            return {**found, "payload": {"partId": ""}}
        if form == "raw":
            return {**found, "raw": base64.urlsafe_b64encode(raw(message)).decode()}
        payload = self._payload(message)
        if form == "metadata":
            wanted = {name.lower() for name in headers}
            kept = [each for each in payload["headers"] if not wanted or each["name"].lower() in wanted]
            payload = {"partId": "", "mimeType": payload["mimeType"], "headers": kept}
        return {**found, "payload": payload}

    def _payload(self, message: Message) -> Json:
        self._fetches += 1
        top = _built(message)
        for part in _parts(top):
            data = part["body"].get("data")
            if data is None or not (part["filename"] or message.apart):
                continue
            # Told by reference. Google's attachment ids are good for the answer they came with, and differ in the next.
            del part["body"]["data"]
            part["body"]["attachmentId"] = "ANGjdJ" + encoded(
                f"{message.id}:{part['partId'] or '-'}:{self._fetches}".encode()
            )
        return {**top, "headers": message.headers}

    def attachment(self, message: Message, attachment_id: str) -> bytes:
        try:
            owner, number, _ = decoded(attachment_id.removeprefix("ANGjdJ")).decode().split(":")
        except ValueError as error:
            raise NoSuchObject(attachment_id) from error
        found = [each for each in _parts(_built(message)) if (each["partId"] or "-") == number]
        if owner != message.id or not found:
            raise NoSuchObject(attachment_id)
        return base64.urlsafe_b64decode(found[0]["body"].get("data", ""))


def _built(message: Message) -> Json:
    """Its tree of parts, with all data in place."""
    top = _words(message.text, message.html)
    beside = [_text_part("text/html", message.footer)] if message.footer is not None else []
    if message.forwarded is not None:
        beside.append(_forwarded(message.forwarded))
    beside += [_file_part(each) for each in message.attachments]
    top = _container("multipart/mixed", [top, *beside]) if beside else top
    _number(top, "")
    return top


def _words(text: str | None, html: str | None) -> Json:
    bodies = [
        _text_part(kind, said)
        for kind, said in (("text/plain", text), ("text/html", html))
        if said is not None
    ]
    return bodies[0] if len(bodies) == 1 else _container("multipart/alternative", bodies)


def _forwarded(mail: Json) -> Json:
    """A mail as an attachment: named after its subject, and its own tree below it."""
    inside = _words(mail.get("text"), mail.get("html"))
    names = {"Subject": mail.get("subject", ""), "From": mail.get("from", "Someone <someone@demo.example>")}
    inside["headers"] = [*inside["headers"], *({"name": each, "value": names[each]} for each in names)]
    whole = "".join(f"{name}: {value}\r\n" for name, value in names.items())
    data = f"{whole}\r\n{mail.get('text') or mail.get('html') or ''}".encode()
    part = _file_part(
        Attachment(file_name=f"{mail.get('subject', 'noname')}.eml", mime_type="message/rfc822", data=data)
    )
    return {**part, "parts": [inside]}


def raw(message: Message) -> bytes:
    mail = EmailMessage()
    for header in message.headers:
        mail[header["name"]] = header["value"]
    mail.set_content(message.body)
    return mail.as_bytes()


def _attachment(fields: Json) -> Attachment:
    data = base64.b64decode(fields["base64"]) if "base64" in fields else str(fields.get("text", "")).encode()
    return Attachment(
        file_name=fields.get("name", "attachment.txt"),
        mime_type=fields.get("mimeType", "text/plain"),
        data=data,
    )


def _text_part(kind: str, text: str) -> Json:
    data = text.encode()
    return {
        "mimeType": kind,
        "filename": "",
        "headers": [{"name": "Content-Type", "value": f"{kind}; charset=utf-8"}],
        "body": {"size": len(data), "data": base64.urlsafe_b64encode(data).decode()},
    }


def _file_part(attachment: Attachment) -> Json:
    return {
        "mimeType": attachment.mime_type,
        "filename": attachment.file_name,
        "headers": [
            {"name": "Content-Type", "value": attachment.mime_type},
            {"name": "Content-Disposition", "value": f'attachment; filename="{attachment.file_name}"'},
        ],
        "body": {
            "size": len(attachment.data),
            "data": base64.urlsafe_b64encode(attachment.data).decode(),
        },
    }


def _container(kind: str, parts: list[Json]) -> Json:
    return {"mimeType": kind, "filename": "", "headers": [], "body": {"size": 0}, "parts": parts}


def _number(part: Json, number: str) -> None:
    part["partId"] = number
    for index, child in enumerate(part.get("parts", ())):
        _number(child, f"{number}.{index}" if number else str(index))


def _parts(part: Json) -> list[Json]:
    return [part, *(each for child in part.get("parts", ()) for each in _parts(child))]


def _day(value: str) -> datetime:
    if value.isdigit():
        return datetime.fromtimestamp(int(value), UTC)
    return datetime.strptime(value, "%Y/%m/%d").replace(tzinfo=UTC)
