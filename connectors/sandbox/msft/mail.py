"""Mailboxes: folders, messages, attachments, and what left which folder when."""

import base64
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from hashlib import sha256
from html import unescape
from typing import Any, Literal

from connectors.sandbox.msft.content import Content
from connectors.sandbox.msft.directory import Directory, User
from connectors.sandbox.msft.feed import Changes
from connectors.sandbox.msft.graph import parsed_time
from connectors.sandbox.world import Fields, Ids, NoSuchObject, Refused

WELL_KNOWN = {
    "inbox": "Inbox",
    "sentitems": "Sent Items",
    "drafts": "Drafts",
    "deleteditems": "Deleted Items",
    "junkemail": "Junk Email",
    "archive": "Archive",
    "outbox": "Outbox",
    "conversationhistory": "Conversation History",
    "syncissues": "Sync Issues",
}
HIDDEN = {"conversationhistory", "syncissues"}


@dataclass(kw_only=True)
class MailFolder:
    id: str
    user: User
    name: str
    parent_id: str
    seq: int
    well_known: str | None = None
    hidden: bool = False
    deleted: bool = False


@dataclass(kw_only=True)
class Attachment:
    id: str
    name: str
    kind: Literal["file", "item", "reference"]
    mime: str
    content: Content
    modified: datetime
    inline: bool = False
    text: str | None = None


@dataclass(kw_only=True)
class Message:
    """`id` is the immutable id; `mutable_id` is what clients see who do not ask for it, and changes with every move."""

    id: str
    mutable_id: str
    user: User
    folder_id: str
    subject: str
    content_type: Literal["text", "html"]
    body: str
    sender: tuple[str, str]
    to: list[tuple[str, str]]
    cc: list[tuple[str, str]]
    received: datetime
    created: datetime
    modified: datetime
    conversation: str
    internet_id: str
    in_reply_to: str | None
    created_seq: int
    seq: int
    change: int = 1
    read: bool = False
    draft: bool = False
    deleted: bool = False
    categories: list[str] = field(default_factory=list[str])
    attachments: list[Attachment] = field(default_factory=list[Attachment])

    @property
    def change_key(self) -> str:
        return base64.b64encode(sha256(f"{self.id}:{self.change}".encode()).digest()[:21]).decode()

    @property
    def text(self) -> str:
        return plain(self.body) if self.content_type == "html" else self.body

    def mime(self) -> bytes:
        letter = EmailMessage()
        letter["Message-ID"], letter["Subject"] = self.internet_id, re.sub(r"[\r\n]+", " ", self.subject)
        letter["From"] = f"{self.sender[0]} <{self.sender[1]}>"
        letter["To"] = ", ".join(f"{name} <{address}>" for name, address in self.to)
        letter["Date"] = self.received.strftime("%a, %d %b %Y %H:%M:%S +0000")
        letter.set_content(self.body, subtype="html" if self.content_type == "html" else "plain")
        for each in self.attachments:
            kind, _, subtype = each.mime.partition("/")
            letter.add_attachment(each.content.data, maintype=kind, subtype=subtype, filename=each.name)
        return letter.as_bytes()


def plain(html: str) -> str:
    """What Outlook makes of HTML when text is preferred; good enough to recognise every sentence."""
    broken = re.sub(r"(?i)<br\s*/?>|</(p|div|tr|li|h\d|blockquote)>", "\n", html)
    bare = re.sub(r"(?is)<(style|script|head)\b.*?</\1>|<[^>]+>", "", broken)
    return unescape(bare).strip()


def address(value: Any, people: Directory) -> tuple[str, str]:
    """Of a user, `Name <a@b>`, or a bare address."""
    text = str(value)
    if match := re.fullmatch(r"(.*?)\s*<(.+)>", text):
        return match[1], match[2]
    try:
        user = people.find(text)
    except NoSuchObject:
        return text, text
    return user.name, user.email


class Mailboxes:
    def __init__(self, ids: Ids, changes: Changes, people: Directory) -> None:
        self._ids, self._changes, self._people = ids, changes, people
        self.folders: dict[str, MailFolder] = {}
        self.messages: dict[str, Message] = {}
        self._by_mutable: dict[str, str] = {}
        self._inside: defaultdict[str, dict[str, Message]] = defaultdict(dict)
        # What left a folder: folder, change number, both ids it had there.
        self.left: list[tuple[str, int, str, str]] = []
        self._roots = {user.id: self._id("mailroot", "AQMkAD") for user in people.all()}
        for user in people.all():
            for known, name in WELL_KNOWN.items():
                self.add_folder(user, name, self._roots[user.id], known)

    def _id(self, kind: str, prefix: str) -> str:
        return prefix + base64.urlsafe_b64encode(self._ids.digest(kind) + self._ids.digest(kind)).decode()

    # -- folders

    def root_of(self, user: User) -> str:
        return self._roots[user.id]

    def folders_of(self, user: User) -> list[MailFolder]:
        return [each for each in self.folders.values() if each.user.id == user.id and self.standing(each)]

    def standing(self, folder: MailFolder) -> bool:
        """Neither it nor a folder above it was deleted."""
        here: MailFolder | None = folder
        while here:
            if here.deleted:
                return False
            here = self.folders.get(here.parent_id)
        return True

    def folder(self, user: User, named: str) -> MailFolder:
        for each in self.folders_of(user):
            if named in {each.id, each.well_known} or named.lower() == each.well_known:
                return each
        raise NoSuchObject(named)

    def add_folder(self, user: User, name: str, parent_id: str, known: str | None = None) -> MailFolder:
        seq, _ = self._changes.next()
        folder = MailFolder(
            id=self._id("mailfolder", "AAMkAD"),
            user=user,
            name=name,
            parent_id=parent_id,
            seq=seq,
            well_known=known,
            hidden=known in HIDDEN,
        )
        self.folders[folder.id] = folder
        return folder

    def edit_folder(self, folder: MailFolder, fields: Fields) -> None:
        folder.name = str(fields.get("name", folder.name))
        folder.parent_id = str(fields.get("parentId", folder.parent_id))
        folder.seq, _ = self._changes.next()

    def set_folder_deleted(self, folder: MailFolder, *, deleted: bool) -> None:
        if folder.well_known:
            raise Refused("well-known folders stay")
        folder.deleted = deleted
        folder.seq, _ = self._changes.next()

    # -- messages

    def in_folder(self, folder: MailFolder) -> list[Message]:
        return [each for each in self._inside[folder.id].values() if not each.deleted]

    def get(self, any_id: str) -> Message | None:
        return self.messages.get(any_id) or self.messages.get(self._by_mutable.get(any_id, ""))

    def add(self, fields: Fields) -> Message:
        user = self._people.find(str(fields["user"]))
        folder = self.folder(user, str(fields.get("folder", "inbox")))
        seq, now = self._changes.next()
        received = parsed_time(fields["receivedAt"]) if "receivedAt" in fields else now
        message = Message(
            id=self._id("message", "AAkALgAAAAAAHYQDEapmEc2byACqAC"),
            mutable_id=self._id("message id", "AAMkAGI"),
            user=user,
            folder_id=folder.id,
            subject=str(fields.get("subject", "")),
            content_type="html" if "html" in fields else "text",
            body=str(fields.get("html", fields.get("text", ""))),
            sender=address(fields.get("from", "sender@outside.example"), self._people),
            to=[address(each, self._people) for each in fields.get("to", [user.email])],
            cc=[address(each, self._people) for each in fields.get("cc", [])],
            received=received,
            created=received,
            modified=now,
            conversation=self._conversation(fields),
            internet_id=f"<{self._ids.guid('internet message')}@sandbox.example>",
            in_reply_to=fields.get("inReplyTo"),
            created_seq=seq,
            seq=seq,
            draft=folder.well_known == "drafts",
        )
        for each in fields.get("attachments", []):
            message.attachments.append(self._attachment(each, received))
        self.messages[message.id] = self._inside[folder.id][message.id] = message
        self._by_mutable[message.mutable_id] = message.id
        return message

    def _conversation(self, fields: Fields) -> str:
        if reply_to := fields.get("inReplyTo"):
            answered = self.get(str(reply_to))
            if answered:
                return answered.conversation
        named = fields.get("conversation")
        data = sha256(str(named).encode()).digest() if named else self._ids.digest("conversation")
        return "AAQkAD" + base64.urlsafe_b64encode(data).decode()

    def _attachment(self, fields: Fields, now: datetime) -> Attachment:
        text = fields.get("text")
        if isinstance(given := fields.get("content"), Content):
            content = given
        elif "contentBase64" in fields:
            content = Content.of(base64.b64decode(fields["contentBase64"]))
        else:
            content = Content.of(str(text or "").encode())
        return Attachment(
            id=self._id("attachment", "AAMkAGIatt"),
            name=str(fields["name"]),
            kind=fields.get("kind", "file"),
            mime=str(fields.get("mimeType", "text/plain")),
            content=content,
            modified=now,
            inline=bool(fields.get("inline", False)),
            text=text,
        )

    def edit(self, message: Message, fields: Fields) -> None:
        if message.deleted:
            raise Refused(f"{message.id} is deleted")
        message.subject = str(fields.get("subject", message.subject))
        if "html" in fields or "text" in fields:
            message.content_type = "html" if "html" in fields else "text"
            message.body = str(fields.get("html", fields.get("text")))
        message.read = bool(fields.get("isRead", message.read))
        message.categories = list(fields.get("categories", message.categories))
        for each in fields.get("addAttachments", []):
            message.attachments.append(self._attachment(each, self._changes.next()[1]))
        gone = set(fields.get("removeAttachments", []))
        message.attachments = [each for each in message.attachments if each.id not in gone]
        if "folder" in fields:
            self._move(message, self.folder(message.user, str(fields["folder"])))
        self._touch(message)

    def _move(self, message: Message, target: MailFolder) -> None:
        self._leave(message)
        del self._inside[message.folder_id][message.id]
        message.folder_id = target.id
        self._inside[target.id][message.id] = message
        self._by_mutable.pop(message.mutable_id)
        message.mutable_id = self._id("message id", "AAMkAGI")
        self._by_mutable[message.mutable_id] = message.id

    def _leave(self, message: Message) -> None:
        seq, _ = self._changes.next()
        self.left.append((message.folder_id, seq, message.id, message.mutable_id))

    def _touch(self, message: Message) -> None:
        message.seq, message.modified = self._changes.next()
        message.change += 1

    def delete(self, message: Message, *, soft: bool) -> None:
        if message.deleted:
            raise NoSuchObject(message.id)
        if soft:
            self.edit(message, {"folder": "deleteditems"})
        else:
            self._leave(message)
            message.deleted = True

    def restore(self, message: Message) -> None:
        message.deleted = False
        self._touch(message)

    # -- the truth

    def state(self, user: User | None) -> Iterator[dict[str, Any]]:
        for message in self.messages.values():
            folder = self.folders[message.folder_id]
            if message.deleted or not self.standing(folder) or (user and message.user.id != user.id):
                continue
            yield self.told(message)
            for each in message.attachments:
                yield {
                    "id": each.id,
                    "kind": "attachment",
                    "surface": "outlook",
                    "user": message.user.email,
                    "name": each.name,
                    "parentId": message.id,
                    "containerId": message.folder_id,
                    "version": message.change_key,
                    "attachmentKind": each.kind,
                    "inline": each.inline,
                    "text": each.text,
                    "sha256": sha256(each.content.data).hexdigest(),
                }

    def told(self, message: Message) -> dict[str, Any]:
        folder = self.folders[message.folder_id]
        return {
            "id": message.id,
            "mutableId": message.mutable_id,
            "kind": "message",
            "surface": "outlook",
            "user": message.user.email,
            "name": message.subject,
            "version": message.change_key,
            "containerId": folder.id,
            "container": folder.well_known or folder.name,
            "parentId": None,
            "text": message.text,
            "received": message.received.isoformat(),
            "conversationId": message.conversation,
            "deleted": message.deleted,
        }
