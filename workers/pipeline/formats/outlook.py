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
from workers.pipeline.formats import rtf, web
from workers.pipeline.formats.draft import Draft
from workers.pipeline.formats.mail import DEEPEST, keep_attachment, write_headers
from workers.pipeline.formats.rtf_compressed import unpacked

_EMBEDDED = "__substg1.0_3701000D"
_EMBEDDED_HEADER = 24  # bytes before its properties; a message of its own has 32
_DEEPEST = 5
_DISPLAY_TO, _DISPLAY_CC, _INTERNET_MESSAGE_ID, _REPRESENTED_SMTP = 0x0E04, 0x0E03, 0x1035, 0x5D02


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
            ("From", headers.get("from") or _sender(properties)),
            ("To", headers.get("to") or properties.str_prop_value(_DISPLAY_TO) or _recipients(message)),
            ("Cc", headers.get("cc") or properties.str_prop_value(_DISPLAY_CC) or ""),
            ("Date", headers.get("date") or (format_datetime(sent) if sent else "")),
        ],
    )
    draft.part(message.subject)
    _write_body(draft, properties)
    for attachment in message.attachments:
        if found := _attachment(attachment, 0):
            keep_attachment(draft, found)
    return draft.finish()


def _sender(properties: Properties) -> str:
    """Within a company the address is often a path in its directory, with the real one beside it."""
    name = (properties.str_prop_value(constants.PID_SENDER_NAME) or "").strip(" \0")
    addresses = (
        (properties.str_prop_value(number) or "").strip(" \0")
        for number in (
            constants.PID_SENDER_SMTP_ADDRESS,
            _REPRESENTED_SMTP,
            constants.PID_SENDER_EMAIL_ADDRESS,
        )
    )
    address = next((address for address in addresses if "@" in address), "")
    named = name or (properties.str_prop_value(constants.PID_SENT_REPRESENTING_NAME) or "").strip(" \0")
    return f'"{named}" <{address}>' if named and address else named or address


def _write_body(draft: Draft, properties: Properties) -> None:
    """The plain one, else the page, else what was written as RTF and nothing else: appointments, tasks and notes often are."""
    text = (properties.str_prop_value(constants.PID_BODY) or "").rstrip("\0")
    packed = properties.binary_prop_value(constants.PID_RTF_COMPRESSED)
    if text.strip():
        draft.block(text, part="body")
    elif html := _html(properties):
        web.write(draft, html, paths=False, part="body")
    elif packed:
        try:
            rtf.write(draft, unpacked(packed), part="body")
        except TaskFailed:
            draft.warnings.append("the body could not be read: its RTF is broken")


def _html(properties: Properties) -> str:
    data = properties.binary_prop_value(constants.PID_HTML)
    if not data:
        return properties.str_prop_value(constants.PID_BODY_HTML) or ""
    try:
        charset: str | None = properties.body_encoding
    except (LookupError, ValueError, KeyError):
        charset = None
    return web.decode(Source(data, "text/html", None, charset))


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
    sent = properties.date_prop_value(constants.PID_CLIENT_SUBMIT_TIME)
    mail = EmailMessage()
    for name, value in (
        ("Subject", properties.str_prop_value(constants.PID_SUBJECT)),
        ("From", _sender(properties)),
        ("To", properties.str_prop_value(_DISPLAY_TO)),
        ("Cc", properties.str_prop_value(_DISPLAY_CC)),
        ("Date", format_datetime(sent) if sent else ""),
        ("Message-ID", properties.str_prop_value(_INTERNET_MESSAGE_ID)),
    ):
        if words := " ".join((value or "").replace("\0", "").split()):
            _head(mail, name, words)
    text = properties.str_prop_value(constants.PID_BODY) or ""
    if not text.strip("\0 \r\n") and (html := _html(properties)):
        mail.set_content(html, subtype="html")
    else:
        body = Draft({})
        _write_body(body, properties)
        mail.set_content(body.finish().text)
    for inner in Message(storage).attachments[:DEEPEST]:
        found = _attachment(inner, depth)
        if found is not None:
            mail.add_attachment(
                found.data, maintype="application", subtype="octet-stream", filename=found.name
            )
    return mail


def _head(mail: EmailMessage, name: str, words: str) -> None:
    """Without the header if the parser trips over it."""
    try:
        mail[name] = words
    except (ValueError, IndexError, AttributeError, TypeError):
        del mail[name]


@lru_cache(maxsize=1)
def _know_code_pages() -> None:
    def find(name: str) -> codecs.CodecInfo | None:
        number = name.replace("-", "_").removeprefix("windows_")
        return codecs.lookup(f"cp{number}") if name.startswith("windows") and number.isdigit() else None

    codecs.register(find)
