"""Outlook's own message format (msg) by python-oxmsg, with two of its gaps closed.

Code pages of Windows have other names in Python, and a message inside a message has no bytes to hand out: it is written
down as a mail, with its own attachments, and goes on as a document of its own.
"""

import codecs
from email.message import EmailMessage
from email.utils import format_datetime
from functools import lru_cache
from typing import Any

from oxmsg import Message
from oxmsg.domain import constants
from oxmsg.properties import Properties

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import Source
from workers.pipeline.extracted import Attachment, Extracted
from workers.pipeline.formats import web
from workers.pipeline.formats.draft import Draft
from workers.pipeline.formats.mail import DEEPEST, keep_attachment, write_headers

_EMBEDDED = "__substg1.0_3701000D"
_EMBEDDED_HEADER = 24  # bytes before its properties; a message of its own has 32
_DEEPEST = 5
_DISPLAY_TO, _DISPLAY_CC, _INTERNET_MESSAGE_ID = 0x0E04, 0x0E03, 0x1035


def read(source: Source) -> Extracted:
    _know_code_pages()
    try:
        message = Message.load(bytes(source.data))
        return _written(message)
    except (OSError, ValueError, KeyError, LookupError, IndexError, AssertionError) as error:
        raise TaskFailed("damaged", f"not an Outlook message ({type(error).__name__})") from error


def _written(message: Message) -> Extracted:
    headers = {name.lower(): value for name, value in message.message_headers.items()}
    properties = message.properties
    identity = headers.get("message-id") or properties.str_prop_value(_INTERNET_MESSAGE_ID) or ""
    draft = Draft({"kind": "mail", "messageId": identity.strip("<> \t") or None})
    sent = message.sent_date
    write_headers(
        draft,
        [
            ("Subject", message.subject),
            ("From", message.sender or ""),
            ("To", headers.get("to") or properties.str_prop_value(_DISPLAY_TO) or _recipients(message)),
            ("Cc", headers.get("cc") or properties.str_prop_value(_DISPLAY_CC) or ""),
            ("Date", headers.get("date") or (format_datetime(sent) if sent else "")),
        ],
    )
    draft.part(message.subject)
    if message.body and message.body.strip():
        draft.block(message.body.rstrip("\x00"), part="body")
    elif html := _html(message):
        web.write(draft, html, paths=False, part="body")
    for attachment in message.attachments:
        if found := _attachment(attachment, 0):
            keep_attachment(draft, found)
    return draft.finish()


def _html(message: Message) -> str:
    data = message.properties.binary_prop_value(constants.PID_HTML)
    if data:
        try:
            charset: str | None = message.properties.body_encoding
        except (LookupError, ValueError, KeyError):
            charset = None
        return web.decode(Source(data, "text/html", None, charset))
    return message.html_body or ""


def _recipients(message: Message) -> str:
    return ", ".join(f"{person.name} <{person.email_address}>" for person in message.recipients)


def _attachment(attachment: Any, depth: int) -> Attachment | None:
    data: bytes | None = attachment.file_bytes
    name = attachment.file_name or attachment.properties.str_prop_value(0x3704) or "attachment"
    if data:
        return Attachment(name.rstrip("\x00"), attachment.mime_type, data)
    for storage in attachment._storage.storages:  # noqa: SLF001 - there is no other way to a message inside
        if storage.name == _EMBEDDED and depth < _DEEPEST:
            mail = _as_mail(storage, depth + 1)
            return Attachment(f"{mail['Subject'] or 'message'}.eml", "message/rfc822", mail.as_bytes())
    return None


def _as_mail(storage: Any, depth: int) -> EmailMessage:
    properties = Properties(storage, _EMBEDDED_HEADER)
    mail = EmailMessage()
    for name, number in (
        ("Subject", constants.PID_SUBJECT),
        ("From", constants.PID_SENDER_NAME),
        ("To", _DISPLAY_TO),
    ):
        value = " ".join((properties.str_prop_value(number) or "").replace("\x00", "").split())
        if value:
            mail[name] = value
    mail.set_content(properties.str_prop_value(constants.PID_BODY) or "")
    for inner in Message(storage).attachments[:DEEPEST]:
        found = _attachment(inner, depth)
        if found is not None:
            mail.add_attachment(
                found.data, maintype="application", subtype="octet-stream", filename=found.name
            )
    return mail


@lru_cache(maxsize=1)
def _know_code_pages() -> None:
    def find(name: str) -> codecs.CodecInfo | None:
        number = name.replace("-", "_").removeprefix("windows_")
        return codecs.lookup(f"cp{number}") if name.startswith("windows") and number.isdigit() else None

    codecs.register(find)
