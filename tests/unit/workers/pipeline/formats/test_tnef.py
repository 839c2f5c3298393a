"""Mails of Outlook whose attachments, and sometimes body, are in a winmail.dat."""

import struct
from email.message import EmailMessage

import pytest

from tests.fixtures.mail_files import as_bytes, mail
from workers.pipeline.extract import FORMATS, Source, extract
from workers.pipeline.extracted import Extracted

_STRING8, _UNICODE, _BINARY, _NUMBER = 0x1E, 0x1F, 0x102, 3
_PACKED_RTF = bytes.fromhex(
    "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
)


def attribute(kind: int, data: bytes, level: int = 2) -> bytes:
    return struct.pack("<BII", level, kind, len(data)) + data + struct.pack("<H", sum(data) & 0xFFFF)


def properties(*values: tuple[int, int, bytes], named: bool = False) -> bytes:
    """Each with its number and type; before them a named one and one of several values, if wanted."""
    odd = b""
    if named:
        odd += (
            struct.pack("<HH16xII", _NUMBER, 0x8001, 1, 6)
            + "abc".encode("utf-16-le")
            + b"\0\0"
            + struct.pack("<I", 7)
        )
        odd += struct.pack("<HHIII", 0x1003, 0x6001, 2, 1, 2)
    said = b"".join(
        struct.pack("<HHII", kind, number, 1, len(data)) + data.ljust(len(data) + -len(data) % 4, b"\0")
        for number, kind, data in values
    )
    return struct.pack("<I", len(values) + 2 * named) + odd + said


def attached(title: str, data: bytes, *values: tuple[int, int, bytes]) -> bytes:
    return (
        attribute(0x00069002, bytes(14))
        + attribute(0x00018010, title.encode("cp1252") + b"\0")
        + attribute(0x0006800F, data)
        + (attribute(0x00069005, properties(*values, named=True)) if values else b"")
    )


def winmail(*attributes: bytes) -> bytes:
    return (
        struct.pack("<IH", 0x223E9F78, 1)
        + attribute(0x00069007, struct.pack("<II", 1252, 0), 1)
        + b"".join(attributes)
    )


def read(body: str, data: bytes, *, alone: bool = False) -> Extracted:
    message = mail("Plan", body)
    if alone:
        message = EmailMessage()
        message["Subject"] = "Plan"
        message.set_content(data, maintype="application", subtype="ms-tnef")
    else:
        message.add_attachment(data, maintype="application", subtype="ms-tnef", filename="winmail.dat")
    return extract(Source(as_bytes(message), "message/rfc822"), FORMATS["eml"])


def test_attachments_in_a_winmail_are_attachments_of_the_mail():
    name = "Prüfung der Brücken.pdf".encode("utf-16-le") + b"\0\0"
    data = winmail(
        attached("PRFUNG~1.PDF", b"%PDF", (0x3707, _UNICODE, name), (0x370E, _STRING8, b"application/pdf\0")),
        attached("Übersicht.txt", b"words"),
    )
    extracted = read("See below.", data)
    assert [(a.name, a.mime_type, a.data) for a in extracted.attachments] == [
        ("Prüfung der Brücken.pdf", "application/pdf", b"%PDF"),
        ("Übersicht.txt", None, b"words"),
    ]
    assert extracted.text.endswith("\fSee below.")


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        (attribute(0x0002800C, b"Gr\xfc\xdfe\0", 1), "Grüße"),
        (attribute(0x00069003, properties((0x1000, _UNICODE, "Grüße".encode("utf-16-le"))), 1), "Grüße"),
        (attribute(0x00069003, properties((0x1013, _BINARY, b"<p>A <b>page</b>"), named=True), 1), "A page"),
        (attribute(0x00069003, properties((0x1009, _BINARY, _PACKED_RTF)), 1), "hello world"),
    ],
    ids=["body", "text", "page", "rtf"],
)
@pytest.mark.parametrize("alone", [False, True])
def test_a_body_that_is_only_in_the_winmail_is_read(attributes: bytes, text: str, alone: bool):
    extracted = read("", winmail(attributes), alone=alone)
    assert extracted.text.partition("\f")[2] == text
    assert read("Hello.", winmail(attributes)).text.endswith("\fHello.")


def test_a_winmail_that_breaks_off_or_is_none_keeps_what_there_is():
    whole = winmail(attached("a.txt", b"words", (0x3707, _UNICODE, b"b\0")), attached("c.txt", b"more"))
    assert [a.name for a in read("Hello.", whole[:-30]).attachments] == ["b"]
    (kept,) = read("Hello.", b"no such thing").attachments
    assert (kept.name, kept.data) == ("winmail.dat", b"no such thing")
