"""What Outlook and Exchange put into a `winmail.dat` (TNEF): the attachments of the mail, and its body if the mail has no other."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import Source
from workers.pipeline.extracted import Attachment
from workers.pipeline.formats import rtf, web
from workers.pipeline.formats.draft import Draft
from workers.pipeline.formats.rtf_compressed import unpacked

TYPES, NAME = {"application/ms-tnef", "application/vnd.ms-tnef"}, "winmail.dat"
_SIGNATURE = 0x223E9F78
_ATTRIBUTE = struct.Struct("<BII")
_BEGINS, _TITLE, _DATA, _OF_ATTACHMENT = 0x00069002, 0x00018010, 0x0006800F, 0x00069005
_OF_MESSAGE, _BODY, _CODE_PAGE = 0x00069003, 0x0002800C, 0x00069007
_LONG_NAME, _MIME_TYPE, _TEXT, _HTML, _RTF = 0x3707, 0x370E, 0x1000, 0x1013, 0x1009
_STRING8, _UNICODE = 0x001E, 0x001F
_SIZES = {2: 4, 3: 4, 4: 4, 5: 8, 6: 8, 7: 8, 0x0A: 4, 0x0B: 4, 0x14: 8, 0x40: 8, 0x48: 16}
_VARIABLE = {0x000D, _STRING8, _UNICODE, 0x0102}
_NAMED, _MANY = 0x8000, 0x1000
_MOST = 10_000  # properties, and values of one

Properties = dict[int, str | bytes]


@dataclass(slots=True)
class _Attachment:
    title: bytes = b""
    data: bytes = b""
    properties: Properties = field(default_factory=dict[int, str | bytes])


class Winmail:
    """Raises TaskFailed("damaged") for what is none; what breaks off is read until there."""

    def __init__(self, data: bytes) -> None:
        if data[:4] != _SIGNATURE.to_bytes(4, "little"):
            raise TaskFailed("damaged", "not TNEF")
        self._attached: list[_Attachment] = []
        self._properties: Properties = {}
        self._body = b""
        self._charset = "cp1252"
        for kind, value in _attributes(data):
            self._take(kind, value)

    def attachments(self) -> Iterator[Attachment]:
        for attached in self._attached:
            name = attached.properties.get(_LONG_NAME) or self._decoded(attached.title)
            kind = attached.properties.get(_MIME_TYPE)
            if attached.data:
                yield Attachment(
                    str(name).rstrip("\0") or "attachment", str(kind) if kind else None, attached.data
                )

    def write_body(self, draft: Draft, **place: Any) -> None:
        text, html, packed = (self._properties.get(number, b"") for number in (_TEXT, _HTML, _RTF))
        plain = (text if isinstance(text, str) else "") or self._decoded(self._body)
        if plain.strip("\0 \r\n"):
            draft.block(plain.rstrip("\0"), **place)
        elif html:
            page = (
                html if isinstance(html, str) else web.decode(Source(html, "text/html", None, self._charset))
            )
            web.write(draft, page, paths=False, **place)
        elif isinstance(packed, bytes) and packed:
            try:
                rtf.write(draft, unpacked(packed), **place)
            except TaskFailed:
                draft.warnings.append("the body could not be read: its RTF is broken")

    def _take(self, kind: int, value: bytes) -> None:
        if kind == _CODE_PAGE:
            self._charset = f"cp{int.from_bytes(value[:4], 'little')}"
        elif kind == _BODY:
            self._body = value
        elif kind == _OF_MESSAGE:
            self._properties = _read(value, self._charset)
        elif kind == _BEGINS:
            self._attached.append(_Attachment())
        elif self._attached:
            last = self._attached[-1]
            if kind == _TITLE:
                last.title = value
            elif kind == _DATA:
                last.data = value
            elif kind == _OF_ATTACHMENT:
                last.properties = _read(value, self._charset)

    def _decoded(self, value: bytes) -> str:
        return _text(value, self._charset)


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 6
    while at + _ATTRIBUTE.size <= len(data):
        _, kind, length = _ATTRIBUTE.unpack_from(data, at)
        at += _ATTRIBUTE.size
        if at + length > len(data):
            return
        yield kind, data[at : at + length]
        at += length + 2  # and a checksum


def _read(data: bytes, charset: str) -> Properties:
    found: Properties = {}
    try:
        for number, kind, value in _values(data):
            found[number] = (
                value.decode("utf-16-le", "replace").rstrip("\0") if kind == _UNICODE
                else _text(value, charset) if kind == _STRING8 else value
            )  # fmt: skip
    except (struct.error, IndexError):
        pass  # what was whole stays
    return found


def _values(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Number, type and first value of each property that is of any length; the others are passed over."""
    (count,) = struct.unpack_from("<I", data)
    at = 4
    for _ in range(min(count, _MOST)):
        kind, number = struct.unpack_from("<HH", data, at)
        at += 4
        if number >= _NAMED:
            is_word, length = struct.unpack_from("<II", data, at + 16)
            at += 24 + (_padded(length) if is_word else 0)
        many, kind = kind & _MANY, kind & ~_MANY
        size = _SIZES.get(kind)
        if kind not in _VARIABLE and size is None:
            return
        values = 1
        if many or size is None:
            (values,) = struct.unpack_from("<I", data, at)
            at += 4
        for index in range(min(values, _MOST)):
            if size is not None:
                at += size
                continue
            (length,) = struct.unpack_from("<I", data, at)
            at += 4
            if index == 0 and at + length <= len(data):
                yield number, kind, data[at : at + length]
            at += _padded(length)


def _padded(length: int) -> int:
    return length + -length % 4


def _text(value: bytes, charset: str) -> str:
    try:
        return value.decode(charset, "replace").rstrip("\0")
    except LookupError:
        return value.decode("cp1252", "replace").rstrip("\0")
