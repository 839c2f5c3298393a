"""What a file is, by its bytes; its name only where bytes cannot tell."""

import pytest

from gateway.corpus.sniffing import UNKNOWN, sniff

_MESSAGE = (
    b"From anna@example.org Mon Jan  1 10:00:00 2024\nFrom: anna@example.org\nTo: bob@example.org\nSubject: One\n"
    b"Date: Mon, 1 Jan 2024 10:00:00 +0000\n\nThe text of the message.\n\n"
)


@pytest.mark.parametrize(
    ("data", "name", "mime_type"),
    [
        (b"%PDF-1.4 cut off", "report.txt", "application/pdf"),
        (b"%PDF-1.7\n" + bytes(range(256)) * 20, None, "application/pdf"),
        (b"\x89PNG\r\n\x1a\n" + bytes(200), "picture.pdf", "image/png"),
        (b"# Title\n\nSome words.\n", "notes.md", "text/markdown"),
        (b"just a few words of plain text, and then some more of them\n", "report.pdf", "text/plain"),
        (
            b'<?xml version="1.0"?>\n<r xmlns="urn:x"><a id="7">x</a><b>mixed <i>in</i></b></r>',
            None,
            "application/xml",
        ),
        (b'\xef\xbb\xbf<?xml version="1.0"?><!DOCTYPE html><html><p>x</p></html>', "a.xml", "text/html"),
        (
            b'<svg xmlns="http://www.w3.org/2000/svg"><text>Label</text><script>a(1)</script><style>p{}</style></svg>',
            "plan.svg",
            "image/svg+xml",
        ),
        (b"PK\x03\x04garbage", "letter.docx", "application/zip"),
        (b"", "empty.pdf", "application/x-empty"),
        (
            b'<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title></feed>',
            "news.atom",
            "application/xml",
        ),
        (_MESSAGE + _MESSAGE, "Inbox", "application/mbox"),
        (_MESSAGE, "Inbox", "message/rfc822"),
    ],
)
async def test_bytes_decide(data: bytes, name: str | None, mime_type: str) -> None:
    assert await sniff(data, name) == mime_type


async def test_noise_is_unknown_whatever_it_is_called() -> None:
    noise = bytes((n * 7919 + n * n) % 256 for n in range(4000))
    assert await sniff(noise, "report.pdf") == UNKNOWN
