"""Mail (eml) by the standard library: what the headers say, the body's text, and attachments as files of their own.

A message inside a message is an attachment too: it becomes a document with its own headers. What is written here is shared
with Outlook's own format (`outlook.py`).
"""

import email
import email.policy
import re
from collections.abc import Iterator
from email.message import EmailMessage, Message
from typing import Any, cast

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import Source
from workers.pipeline.extracted import Attachment, Extracted
from workers.pipeline.formats import text as plain
from workers.pipeline.formats import tnef, web
from workers.pipeline.formats.draft import Draft

MOST_PARTS = 1_000
DEEPEST = 50
MOST_ATTACHMENTS = 100
ATTACHMENT_BYTES = 64 << 20  # of one message, together
_CALENDAR = "text/calendar"
_WORD = re.compile(r"\w{2,}")
_SIGNATURE = "-- "
_LONGEST_STUB = 2_000  # characters; of a longer one it is seen without reading the page
_HEADERS = ("Subject", "From", "To", "Cc", "Bcc", "Reply-To", "Date")


def read(source: Source) -> Extracted:
    message = _parsed(source)
    draft = Draft({"kind": "mail", "messageId": _header(message, "Message-ID").strip("<> \t") or None})
    subject = _header(message, "Subject")
    write_headers(draft, [(name, _header(message, name)) for name in _HEADERS])
    for number, part in _bodies(message):
        draft.part(subject)
        if part.get_content_type() == "text/html":
            web.write(draft, _words(part, html=True), paths=False, part=number)
        elif part.get_content_type() == _CALENDAR:
            draft.block(plain.unfolded(_words(part, html=False)), part=number)
        else:
            draft.block(_words(part, html=False), part=number)
    has_body = any(unit.locator["part"] != "headers" for unit in draft.units)
    for attachment in _attachments(message):
        if (winmail := _winmail(attachment)) is None:
            keep_attachment(draft, attachment)
            continue
        for inside in winmail.attachments():
            keep_attachment(draft, inside)
        if not has_body:
            draft.part(subject)
            winmail.write_body(draft, part="body")
    return draft.finish()


def _winmail(attachment: Attachment) -> tnef.Winmail | None:
    """None for what is none, or broken: that is an attachment like others."""
    if attachment.mime_type not in tnef.TYPES and attachment.name.lower() != tnef.NAME:
        return None
    try:
        return tnef.Winmail(attachment.data)
    except TaskFailed:
        return None


def page_of(source: Source) -> str:
    """The first page in a message that is nothing else: what a browser saves with its pictures in one file."""
    found = (part for _, part in _bodies(_parsed(source)) if part.get_content_type() == "text/html")
    return next((_words(part, html=True) for part in found), "")


def write_headers(draft: Draft, headers: list[tuple[str, str]]) -> None:
    lines = [f"{name}: {' '.join(value.split())}" for name, value in headers if value.strip()]
    subject = next((value for name, value in headers if name == "Subject"), "")
    draft.part(subject)
    draft.lines(lines, part="headers")


def keep_attachment(draft: Draft, attachment: Attachment) -> None:
    """Within limits; what is over them is named in a warning rather than taken."""
    if not attachment.data:
        return
    held = sum(len(other.data) for other in draft.attachments) + len(attachment.data)
    if len(draft.attachments) >= MOST_ATTACHMENTS or held > ATTACHMENT_BYTES:
        draft.warnings.append("an attachment was left out: too many or too large")
    else:
        draft.attachments.append(attachment)


def _parsed(source: Source) -> EmailMessage:
    data = bytes(source.data)
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"} or b"\x00" in data[:256]:
        data = plain.decode(source).encode()  # saved as UTF-16, with or without a mark
    data = data.lstrip(b"\xef\xbb\xbf")
    if data.count(b"\n--") > 20 * MOST_PARTS:
        raise TaskFailed("too_large", "too many parts")
    try:
        message = email.message_from_bytes(data, policy=email.policy.default)
        _check(message)
    except RecursionError as error:
        raise TaskFailed("damaged", "nested too deeply") from error
    if not message.keys():
        raise TaskFailed("damaged", "no headers")
    return message


def _check(message: Message) -> None:
    parts = 0
    stack: list[tuple[Message, int]] = [(message, 0)]
    while stack:
        part, depth = stack.pop()
        parts += 1
        if parts > MOST_PARTS:
            raise TaskFailed("too_large", "too many parts")
        if depth > DEEPEST:
            raise TaskFailed("damaged", "nested too deeply")
        if part.is_multipart():
            stack += [(child, depth + 1) for child in cast("list[Message]", part.get_payload())]


def _header(message: Message, name: str) -> str:
    try:
        value = str(message.get(name) or "")
    except (
        LookupError,
        ValueError,
        AttributeError,
        TypeError,
        OverflowError,
    ):  # the parser trips over broken ones
        return ""
    if "\ufffd" in value:  # not encoded, as the standard wants it, and not UTF-8
        written = next(words for key, words in message.raw_items() if key.lower() == name.lower())
        raw = str(written).encode("utf-8", "surrogateescape")
        return value if b"=?" in raw else raw.decode("cp1252", "replace")
    return value


def _bodies(message: EmailMessage) -> Iterator[tuple[str, EmailMessage]]:
    """(part number, part) of what is to be read; of alternatives the plain one, unless it is empty or a stub."""
    stack: list[tuple[str, EmailMessage]] = [("1", message)]
    while stack:
        number, part = stack.pop()
        kind = part.get_content_type()
        if kind == "message/rfc822" or _is_attachment(part):
            continue
        if part.is_multipart():
            inner = [
                (f"{number}.{index}" if number != "1" or part is not message else str(index), child)
                for index, child in enumerate(_children(part), start=1)
            ]
            stack += reversed(_alternative(inner) if kind == "multipart/alternative" else inner)
        elif part.get_content_maintype() == "text":
            yield number, part


def _children(part: EmailMessage) -> list[EmailMessage]:
    payload: Any = part.get_payload()
    return cast("list[EmailMessage]", payload) if isinstance(payload, list) else []


def _alternative(parts: list[tuple[str, EmailMessage]]) -> list[tuple[str, EmailMessage]]:
    """The plain one if it says something, else the best, which is the last; an invitation's calendar only for want of others."""
    texts = [
        (n, p) for n, p in parts if p.get_content_type() == "text/plain" and _words(p, html=False).strip()
    ]
    others = [(n, p) for n, p in parts if p.get_content_type() != "text/plain"]
    pages = [(n, p) for n, p in others if p.get_content_type() != _CALENDAR]
    if texts and pages and _is_stub(texts[0][1], pages[-1][1]):
        return pages[-1:]
    return texts[:1] or pages[-1:] or others[-1:]


def _is_stub(text: EmailMessage, page: EmailMessage) -> bool:
    """`Your program shows no HTML`: a plain part without most of the page's words, which are not just a few beside its own."""
    plain_words = _words(text, html=False)
    draft = Draft({})
    try:
        for part in page.walk():
            if part.get_content_type() == "text/html" and not _is_attachment(part):
                html = _words(part, html=True)
                if len(plain_words) > max(len(html), _LONGEST_STUB):
                    return False
                web.write(draft, html, paths=False)
    except TaskFailed:
        return False
    said = set(_WORD.findall(plain_words.lower()))
    shown = set(_WORD.findall(draft.finish().text.lower()))
    return len(shown - said) > len(shown) / 2 and len(shown) > len(said) / 2


def _is_attachment(part: EmailMessage) -> bool:
    if part.is_multipart() and part.get_content_maintype() == "multipart":
        return False
    disposition = _header(part, "Content-Disposition").lower()
    return disposition.startswith("attachment") or bool(_file_name(part))


def _file_name(part: EmailMessage) -> str:
    try:
        return part.get_filename() or ""
    except (LookupError, ValueError, AttributeError, IndexError, TypeError):
        return ""


def _attachments(message: EmailMessage) -> Iterator[Attachment]:
    stack: list[EmailMessage] = [message]
    while stack:
        part = stack.pop()
        kind = part.get_content_type()
        if kind == "message/rfc822" and part is not message:
            data = _inner_message(part)
            name = _file_name(part) or f"{_subject_of(data) or 'message'}.eml"
            yield Attachment(name, kind, data)
        elif part.is_multipart():
            stack += reversed(_children(part))
        elif kind in tnef.TYPES or (
            part is not message
            and (_is_attachment(part) or part.get_content_maintype() not in {"text", "image", "multipart"})
        ):
            yield Attachment(_file_name(part) or "attachment", kind, _bytes(part))


def _inner_message(part: EmailMessage) -> bytes:
    """The message inside; some programs encode it, which the standard forbids and the parser does not undo."""
    encoding = _header(part, "Content-Transfer-Encoding").strip().lower()
    inner = _children(part)
    if encoding in {"base64", "quoted-printable"} and inner:
        wrapped = Message()
        wrapped["Content-Transfer-Encoding"] = encoding
        wrapped.set_payload(inner[0].get_payload())
        decoded = wrapped.get_payload(decode=True)
        if isinstance(decoded, bytes):
            return decoded
    return b"".join(item.as_bytes(policy=email.policy.compat32) for item in inner[:1])


def _subject_of(data: bytes) -> str:
    return _header(email.message_from_bytes(data[:65536], policy=email.policy.default), "Subject")[:100]


def _bytes(part: EmailMessage) -> bytes:
    payload: Any = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _words(part: EmailMessage, *, html: bool) -> str:
    charset = part.get_content_charset()
    source = Source(_bytes(part), part.get_content_type(), None, charset)
    if html:
        return web.decode(source)
    words = plain.clean(plain.decode(source))
    return _joined(words, part) if _parameter(part, "format") == "flowed" else words


def _parameter(part: EmailMessage, name: str) -> str:
    try:
        return str(part.get_param(name) or "").lower()
    except (LookupError, ValueError, AttributeError, IndexError, TypeError):
        return ""


def _joined(flowed: str, part: EmailMessage) -> str:
    """Lines that end in a blank go on in the next (RFC 3676); with `delsp` the blank itself was put there, even in a word."""
    put_there = _parameter(part, "delsp") == "yes"
    lines: list[tuple[str, list[str]]] = []
    goes_on = False
    for line in flowed.split("\n"):
        words = line.lstrip(">")
        quoted = ">" * (len(line) - len(words))
        words = words.removeprefix(" ")
        flows = words.endswith(" ") and words != _SIGNATURE
        if not goes_on or words == _SIGNATURE or lines[-1][0] != quoted:
            lines.append((quoted, []))
        lines[-1][1].append(words[:-1] if flows and put_there else words)
        goes_on = flows
    return "\n".join(f"{quoted} {''.join(words)}" if quoted else "".join(words) for quoted, words in lines)
