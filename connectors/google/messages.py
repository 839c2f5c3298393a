"""A message as Gmail gives it: headers, a tree of parts, and files that hang on it."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.header import decode_header, make_header
from email.utils import getaddresses
from html import unescape
from typing import Any

from connectors.kit.contract import Item, Part
from connectors.kit.mail_text import ContentType, clean_email_body
from connectors.kit.policy import MailTier, SyncPolicy

# Labels that say how somebody reads, not what a message is.
READING = frozenset({"UNREAD", "STARRED", "IMPORTANT"})
METADATA_HEADERS = ["From", "To", "Cc", "Subject", "Date", "Message-ID", "In-Reply-To"]
TEXTS: Mapping[str, ContentType] = {"text/html": "html", "text/plain": "text"}
ATTACHED = frozenset({"message/rfc822", "message/global"})
DEEPEST = 30
MOST_ATTACHMENTS = 100

Record = Mapping[str, Any]


def decoded(data: str) -> bytes:
    """Base64 of the URL kind, padded or not. Raises ValueError for what is none."""
    return base64.urlsafe_b64decode(data + "=" * (-len(data) % 4))


def all_parts(payload: Record, depth: int = 0) -> Iterator[Record]:
    yield payload
    if depth < DEEPEST:
        for part in payload.get("parts") or ():
            yield from all_parts(part, depth + 1)


def _header(payload: Record, name: str) -> str:
    for header in payload.get("headers") or ():
        if str(header.get("name", "")).lower() == name:
            return _words(str(header.get("value", "")))
    return ""


def _words(value: str) -> str:
    """Encoded words are usually read for us; where not, here. A broken one stays as it is."""
    if "=?" not in value:
        return value
    try:
        return str(make_header(decode_header(value)))
    except (LookupError, ValueError):
        return value


def _people(value: str) -> str:
    found = [(name, address) for name, address in getaddresses([value]) if name or address]
    return ", ".join(
        f"{name} <{address}>" if name and address and name != address else name or address
        for name, address in found[:50]
    )


@dataclass(frozen=True, kw_only=True)
class Letter:
    """What a message says of itself. `internet_id` is its Message-ID: what ties a thread together across mailboxes."""

    id: str
    thread_id: str
    subject: str
    sender: str
    to: str
    cc: str
    received_at: datetime | None
    snippet: str
    bodies: Sequence[tuple[ContentType, str]]
    internet_id: str
    in_reply_to: str
    labels: frozenset[str]

    def parts(self, tier: MailTier) -> Iterator[Part]:
        """By tier: who, when and about what; then the first lines; then all of it. As in Outlook, word for word."""
        yield Part(text=self._head(), locator={"kind": "mail", "messageId": self.id, "part": "header"})
        text = ""
        if tier in {"body", "attachments"}:
            cleaned = (clean_email_body(body, content_type=kind) for kind, body in self.bodies)
            text = "\n\n".join(one for one in cleaned if one)
        elif tier == "snippet":
            text = clean_email_body(self.snippet, content_type="text")
        if text:
            yield Part(text=text, locator={"kind": "mail", "messageId": self.id, "part": "body"})

    def _head(self) -> str:
        lines = {
            "Subject": self.subject,
            "From": self.sender,
            "To": self.to,
            "Cc": self.cc,
            "Date": self.received_at.strftime("%Y-%m-%d %H:%M UTC") if self.received_at else "",
        }
        return "\n".join(f"{name}: {value}" for name, value in lines.items() if value)

    def metadata(self) -> dict[str, Any]:
        told = {
            "from": self.sender,
            "to": self.to,
            "conversationId": self.thread_id,
            "internetMessageId": self.internet_id,
            "inReplyTo": self.in_reply_to,
            "labels": sorted(self.labels),
        }
        return {name: value for name, value in told.items() if value}


def letter(message: Record, label_names: Mapping[str, str]) -> Letter:
    payload: Record = message.get("payload") or {}
    at = message.get("internalDate")
    return Letter(
        id=str(message["id"]),
        thread_id=str(message.get("threadId", "")),
        subject=_header(payload, "subject"),
        sender=_people(_header(payload, "from")),
        to=_people(_header(payload, "to")),
        cc=_people(_header(payload, "cc")),
        received_at=datetime.fromtimestamp(int(at) / 1000, UTC) if at else None,
        snippet=unescape(str(message.get("snippet", ""))),
        bodies=_bodies(payload),
        internet_id=_header(payload, "message-id"),
        in_reply_to=_header(payload, "in-reply-to"),
        labels=frozenset(label_names.get(one, one) for one in set(message.get("labelIds") or ()) - READING),
    )


def body_parts(part: Record, depth: int = 0) -> list[Record]:
    """The parts that are the message's own words, in their order. Of alternatives the HTML if there is one: it says what was
    quoted and what was hidden. A file, or a mail that hangs on it, is somebody else's words.
    """
    kind = _kind(part)
    if part.get("filename") or kind in ATTACHED or depth > DEEPEST:
        return []
    if kind in TEXTS:
        return [part] if (part.get("body") or {}).get("size") or (part.get("body") or {}).get("data") else []
    choices = [body_parts(child, depth + 1) for child in part.get("parts") or ()]
    if kind != "multipart/alternative":
        return [one for choice in choices for one in choice]
    spoken = [choice for choice in choices if choice]
    rich = [choice for choice in spoken if any(_kind(one) == "text/html" for one in choice)]
    return next(iter([*rich[::-1], *spoken]), [])


def _kind(part: Record) -> str:
    return str(part.get("mimeType", "")).lower()


def _bodies(payload: Record) -> list[tuple[ContentType, str]]:
    """What follows one another in the same kind is one text: a quote may begin in one part and go on in the next."""
    found: list[tuple[ContentType, str]] = []
    for part in body_parts(payload):
        # Gmail hands text on as UTF-8, whatever the header of a part still says.
        text = decoded((part.get("body") or {}).get("data") or "").decode("utf-8", "replace")
        kind = TEXTS[_kind(part)]
        if found and found[-1][0] == kind:
            text = f"{found.pop()[1]}\n{text}"
        found.append((kind, text))
    return found


def attachments(message: Record, mail: Item, policy: SyncPolicy) -> list[Item]:
    """Files that hang on a message. Pictures that belong to its layout are not files."""
    found: list[Item] = []
    for part in all_parts(message.get("payload") or {}):
        name, size = str(part.get("filename") or ""), int((part.get("body") or {}).get("size") or 0)
        if not name or _is_layout(part) or len(found) >= MOST_ATTACHMENTS:
            continue
        part_id = str(part.get("partId", ""))
        found.append(
            Item(
                external_id=f"{message['id']}/{part_id}",
                source_kind="gmail_attachment",
                name=name,
                container_id=mail.container_id,
                parent_id=mail.external_id,
                version=f"{part_id}:{size}",  # a message is never rewritten
                uri=mail.uri,
                mime_type=part.get("mimeType"),
                size=size,
                modified_at=mail.modified_at,
                metadata={"message": mail.name, "from": mail.metadata.get("from", "")},
                handle={"message": message["id"], "part": part_id},
                skip="too_large" if size > policy.max_attachment_bytes else None,
            )
        )
    return found


def _is_layout(part: Record) -> bool:
    if not str(part.get("mimeType", "")).startswith("image/"):
        return False
    names = {str(header.get("name", "")).lower() for header in part.get("headers") or ()}
    disposition = _header(part, "content-disposition").lower()
    return "content-id" in names and not disposition.startswith("attachment")
