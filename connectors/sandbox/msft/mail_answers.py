"""Mail as Graph answers it."""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from connectors.sandbox.msft.directory import User
from connectors.sandbox.msft.feed import Key, Mark
from connectors.sandbox.msft.graph import (
    Call,
    GraphError,
    Json,
    Reply,
    collection,
    iso,
    listed,
    parsed_time,
    selected,
)
from connectors.sandbox.msft.mail import Attachment, MailFolder, Message
from connectors.sandbox.msft.rounds import answered, begun
from connectors.sandbox.world import NoSuchObject

_NOT_FOUND = "The specified object was not found in the store."
MOST_FILTERED = 5000


def mailbox(call: Call, who: str) -> User:
    if who not in {"me", call.user.id} and who.lower() != call.user.email:
        raise GraphError(403, "ErrorAccessDenied", "Access is denied. Check credentials and try again.")
    return call.user


def _folder(call: Call, who: str, named: str) -> MailFolder:
    try:
        return call.world.mail.folder(mailbox(call, who), named)
    except NoSuchObject:
        raise GraphError(404, "ErrorItemNotFound", _NOT_FOUND) from None


# -- folders


def shown_folder(call: Call, folder: MailFolder) -> Json:
    mail = call.world.mail
    inside = mail.in_folder(folder)
    return {
        "id": folder.id,
        "displayName": folder.name,
        "parentFolderId": folder.parent_id,
        "childFolderCount": sum(each.parent_id == folder.id for each in mail.folders_of(folder.user)),
        "unreadItemCount": sum(not each.read for each in inside),
        "totalItemCount": len(inside),
        "sizeInBytes": sum(len(each.body) for each in inside),
        "isHidden": folder.hidden,
    }


def top_folders(call: Call, who: str) -> Reply:
    user = mailbox(call, who)
    return _folders(call, user, call.world.mail.root_of(user))


def child_folders(call: Call, who: str, folder_id: str) -> Reply:
    user = mailbox(call, who)
    if folder_id == "msgfolderroot":
        return _folders(call, user, call.world.mail.root_of(user))
    return _folders(call, user, _folder(call, who, folder_id).id)


def _folders(call: Call, user: User, parent_id: str) -> Reply:
    hidden = call.query.get("includeHiddenFolders", "").lower() == "true"
    rows = [
        selected(shown_folder(call, each), call.query)
        for each in call.world.mail.folders_of(user)
        if each.parent_id == parent_id and (hidden or not each.hidden)
    ]
    return listed(call, "mailFolders", rows, size=call.page_size(10, 1000))


def one_folder(call: Call, who: str, folder_id: str) -> Reply:
    return Reply(body=selected(shown_folder(call, _folder(call, who, folder_id)), call.query))


def folder_changes(call: Call, who: str) -> Reply:
    user = mailbox(call, who)
    mark = begun(call, f"folders:{user.id}", ("$select",))
    mail = call.world.mail
    entries: list[tuple[Key, MailFolder]] = [
        ((each.seq,), each)
        for each in mail.folders.values()
        if each.user.id == user.id
        and mark.since < each.seq <= mark.until
        and (mark.since or mail.standing(each))
    ]

    def show(folder: MailFolder) -> Json:
        if not mail.standing(folder):
            return {"id": folder.id, "@removed": {"reason": "deleted"}}
        return selected(shown_folder(call, folder), mark.query)

    return answered(
        call,
        mark,
        entries,
        show=show,
        size=call.page_size(10, 1000),
        path=f"/users('{user.id}')/mailFolders/delta",
        context="Collection(mailFolder)",
    )


# -- messages


def _recipient(who: tuple[str, str]) -> Json:
    return {"emailAddress": {"name": who[0], "address": who[1]}}


def shown_message(call: Call, message: Message, query: dict[str, str] | None = None) -> Json:
    as_text = call.preferences.get("outlook.body-content-type") == "text"
    content_type = "text" if as_text else message.content_type
    body: Json = {
        "@odata.etag": f'W/"{message.change_key}"',
        "id": message.id if call.immutable else message.mutable_id,
        "createdDateTime": iso(message.created),
        "lastModifiedDateTime": iso(message.modified),
        "changeKey": message.change_key,
        "categories": message.categories,
        "receivedDateTime": iso(message.received),
        "sentDateTime": iso(message.received),
        "hasAttachments": any(not each.inline for each in message.attachments),
        "internetMessageId": message.internet_id,
        "subject": message.subject or None,
        "bodyPreview": re.sub(r"\s+", " ", message.text)[:255],
        "importance": "normal",
        "parentFolderId": message.folder_id,
        "conversationId": message.conversation,
        "conversationIndex": base64.b64encode(message.conversation.encode()[:16]).decode(),
        "isDeliveryReceiptRequested": None,
        "isReadReceiptRequested": False,
        "isRead": message.read,
        "isDraft": message.draft,
        "webLink": f"https://outlook.sandbox.example/owa/?ItemID={quote(message.mutable_id)}&exvsurl=1",
        "inferenceClassification": "focused",
        "body": {
            "contentType": content_type,
            "content": message.text if as_text else message.body,
        },
        "sender": _recipient(message.sender),
        "from": _recipient(message.sender),
        "toRecipients": [_recipient(each) for each in message.to],
        "ccRecipients": [_recipient(each) for each in message.cc],
        "bccRecipients": [],
        "replyTo": [],
        "flag": {"flagStatus": "notFlagged"},
        "sandboxUnknownField": {"nested": None},
    }
    asked = call.query if query is None else query
    if "attachments" in asked.get("$expand", ""):
        body["attachments"] = [_shown_attachment(each) for each in message.attachments]
        asked = {**asked, "$select": f"{asked['$select']},attachments"} if "$select" in asked else asked
    if "internetMessageHeaders" in asked.get("$select", ""):
        body["internetMessageHeaders"] = [{"name": "Message-ID", "value": message.internet_id}]
    return selected(body, asked)


def _message(call: Call, who: str, message_id: str) -> Message:
    user = mailbox(call, who)
    message = call.world.mail.get(message_id)
    if message is None or message.deleted or message.user.id != user.id:
        raise GraphError(404, "ErrorItemNotFound", _NOT_FOUND)
    return message


def _matching(query: dict[str, str], messages: list[Message]) -> list[Message]:
    """`$filter` on receivedDateTime, the only one a delta knows."""
    bounds = re.findall(r"receivedDateTime\s+(ge|gt|le|lt)\s+([0-9T:.Z+-]+)", query.get("$filter", ""))
    compare = {
        "ge": lambda when, bound: when >= bound,
        "gt": lambda when, bound: when > bound,
        "le": lambda when, bound: when <= bound,
        "lt": lambda when, bound: when < bound,
    }
    for operator, text in bounds:
        bound = parsed_time(text)
        messages = [each for each in messages if compare[operator](each.received, bound)]
    return messages


def folder_messages(call: Call, who: str, folder_id: str) -> Reply:
    return _messages(call, call.world.mail.in_folder(_folder(call, who, folder_id)))


def all_messages(call: Call, who: str) -> Reply:
    user = mailbox(call, who)
    mail = call.world.mail
    return _messages(call, [each for folder in mail.folders_of(user) for each in mail.in_folder(folder)])


def _messages(call: Call, messages: list[Message]) -> Reply:
    rows = sorted(_matching(call.query, messages), key=lambda each: (each.received, each.id), reverse=True)
    if call.query.get("$orderby", "").endswith(("asc", "receivedDateTime")):
        rows.reverse()
    reply = listed(call, "messages", rows, size=call.page_size(10, 1000))
    reply.body["value"] = [shown_message(call, each) for each in reply.body["value"]]
    if call.query.get("$count") == "true":
        reply.body["@odata.count"] = len(rows)
    return _preferred(call, reply)


def _preferred(call: Call, reply: Reply) -> Reply:
    kind = call.preferences.get("outlook.body-content-type")
    if kind:
        reply.headers["Preference-Applied"] = f'outlook.body-content-type="{kind}"'
    return reply


def one_message(call: Call, who: str, message_id: str) -> Reply:
    return _preferred(call, Reply(body=shown_message(call, _message(call, who, message_id))))


def message_mime(call: Call, who: str, message_id: str) -> Reply:
    return Reply(body=_message(call, who, message_id).mime(), headers={"Content-Type": "text/plain"})


def translate_ids(call: Call, who: str) -> Reply:
    mailbox(call, who)
    asked = call.body or {}
    if len(asked.get("inputIds", [])) > 1000:
        raise GraphError(400, "ErrorInvalidRequest", "At most 1000 ids.")
    immutable = "immutable" in asked.get("targetIdType", "").lower()
    value: list[Json] = []
    for source in asked.get("inputIds", []):
        message = _message(call, who, source)
        value.append({"sourceId": source, "targetId": message.id if immutable else message.mutable_id})
    return collection(call, "Collection(convertIdResult)", value)


# -- delta


@dataclass(frozen=True)
class _Gone:
    id: str


def message_changes(call: Call, who: str, folder_id: str) -> Reply:
    folder = _folder(call, who, folder_id)
    kept = ("$select", "$filter", "$orderby", "$expand", "changeType", "$top")
    mark = begun(call, f"messages:{folder.id}", kept)
    if "$search" in call.query:
        raise GraphError(400, "ErrorInvalidUrlQuery", "$search is not supported for change tracking.")
    entries = list(_entries(call, folder, mark))

    def show(entry: "Message | _Gone") -> Json:
        if isinstance(entry, _Gone):
            return {
                "@odata.type": "#microsoft.graph.message",
                "id": entry.id,
                "@removed": {"reason": "deleted"},
            }
        return {"@odata.type": "#microsoft.graph.message", **shown_message(call, entry, mark.query)}

    size = call.page_size(int(mark.query.get("$top", 10)), 1000)
    path = f"/me/mailFolders('{quote(folder_id)}')/messages/delta"
    reply = answered(call, mark, entries, show=show, size=size, path=path, context="Collection(message)")
    return _preferred(call, reply)


def _entries(call: Call, folder: MailFolder, mark: Mark) -> Iterator[tuple[Key, Any]]:
    mail = call.world.mail
    inside = _matching(mark.query, mail.in_folder(folder))
    kinds = set(filter(None, mark.query.get("changeType", "").split(","))) or {
        "created",
        "updated",
        "deleted",
    }
    changed = [
        each
        for each in inside
        if mark.since < each.seq <= mark.until
        and ("created" if each.created_seq > mark.since else "updated") in kinds
    ]
    if not mark.since:
        newest = sorted(changed, key=lambda each: (each.received, each.id), reverse=True)
        if "$filter" in mark.query:
            newest = newest[:MOST_FILTERED]
        by_date = mark.query.get("$orderby", "").endswith("desc")
        for each in newest:
            yield ((-each.received.timestamp(), each.id) if by_date else (each.seq,)), each
        return
    for each in changed:
        yield (each.seq,), each
    here = {each.id for each in mail.in_folder(folder)} | {each.mutable_id for each in mail.in_folder(folder)}
    for folder_id, seq, immutable, mutable in mail.left:
        shown = immutable if call.immutable else mutable
        if (
            folder_id == folder.id
            and mark.since < seq <= mark.until
            and shown not in here
            and "deleted" in kinds
        ):
            yield (seq,), _Gone(shown)


# -- attachments


def _shown_attachment(attachment: Attachment, *, expanded: bool = False) -> Json:
    body: Json = {
        "@odata.type": f"#microsoft.graph.{attachment.kind}Attachment",
        "@odata.mediaContentType": attachment.mime,
        "id": attachment.id,
        "lastModifiedDateTime": iso(attachment.modified),
        "name": attachment.name,
        "contentType": attachment.mime,
        # Outlook counts its own overhead.
        "size": len(attachment.content.data) + 158,
        "isInline": attachment.inline,
    }
    if attachment.kind == "file":
        body |= {
            "contentId": f"{attachment.id[-8:]}@sandbox" if attachment.inline else None,
            "contentLocation": None,
            "contentBytes": base64.b64encode(attachment.content.data).decode(),
        }
    elif attachment.kind == "item" and expanded:
        body["item"] = {
            "@odata.type": "#microsoft.graph.message",
            "id": "",
            "subject": attachment.name,
            "body": {"contentType": "text", "content": attachment.content.data.decode(errors="replace")},
        }
    return body


def message_attachments(call: Call, who: str, message_id: str) -> Reply:
    message = _message(call, who, message_id)
    expanded = "itemattachment" in call.query.get("$expand", "").lower()
    rows = [selected(_shown_attachment(each, expanded=expanded), call.query) for each in message.attachments]
    return listed(call, "attachments", rows, size=call.page_size(10, 1000))


def one_attachment(call: Call, who: str, message_id: str, attachment_id: str) -> Reply:
    expanded = "itemattachment" in call.query.get("$expand", "").lower()
    found = _attachment(call, who, message_id, attachment_id)
    return Reply(body=selected(_shown_attachment(found, expanded=expanded), call.query))


def attachment_bytes(call: Call, who: str, message_id: str, attachment_id: str) -> Reply:
    found = _attachment(call, who, message_id, attachment_id)
    if found.kind == "reference":
        raise GraphError(405, "ErrorMethodNotAllowed", "A reference attachment has no content here.")
    return Reply(body=found.content.data, headers={"Content-Type": found.mime})


def _attachment(call: Call, who: str, message_id: str, attachment_id: str) -> Attachment:
    for each in _message(call, who, message_id).attachments:
        if each.id == attachment_id:
            return each
    raise GraphError(404, "ErrorItemNotFound", _NOT_FOUND)
