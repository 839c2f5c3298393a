"""What a file really is: judged by its bytes (magika, its model ships in the wheel), never by its name alone.

The name only helps where bytes cannot tell: which language a piece of source code is in, which kind of text a short text is.
Containers (zip, OLE) say themselves what they contain; they are asked, since a small one looks like any other.
"""

import asyncio
import codecs
import mimetypes
import re
from functools import lru_cache
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from magika import Magika

UNKNOWN = "application/octet-stream"
# Text as far as bytes go; for these the file name may say which kind of text it is.
_VAGUE = {"text/plain", UNKNOWN, "application/x-empty", "inode/x-empty"}
_MARKDOWN = {".md", ".markdown", ".mdown"}
_TEXT_TYPES = (
    "text/",
    "application/json",
    "application/xml",
    "image/svg+xml",
    "message/rfc822",
    "application/rtf",
)
# Bytes do not tell these from each other: a log has columns too, and a page without a head looks like a template.
_LOOSE = {
    "text/csv",
    "text/tsv",
    "application/x-yaml",
    "text/x-twig",
    "application/x-mimearchive",
    "application/x-pem-file",
}
_MARKED_UP = {".org", ".rst"}  # with the same stars, dashes and underlines as Markdown
_NAMES = {
    ".txt": "text/plain",
    ".log": "text/plain",
    ".html": "text/html",
    ".htm": "text/html",
    ".eml": "message/rfc822",
    ".rtf": "text/rtf",
    ".rst": "text/x-rst",
    ".org": "text/x-org",
    ".tsv": "text/tab-separated-values",
    ".csv": "text/csv",
    ".ipynb": "application/json",
    ".svg": "image/svg+xml",
    ".xml": "application/xml",
    ".rss": "application/xml",
    ".atom": "application/xml",
    ".opml": "application/xml",
    ".kml": "application/xml",
    ".gpx": "application/xml",
}
_XML = b"<?xml"
_PAGE = re.compile(rb"<html[\s>]", re.IGNORECASE)

_OOXML = "application/vnd.openxmlformats-officedocument"
_OFFICE_PARTS = {
    b"word/document": f"{_OOXML}.wordprocessingml.document",
    b"ppt/presentation": f"{_OOXML}.presentationml.presentation",
    b"xl/workbook": f"{_OOXML}.spreadsheetml.sheet",
}
_SAMPLE = 64 * 1024
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_CONTROL_BYTES = re.compile(_CONTROLS.pattern.encode())
_LOCAL_HEADER = b"PK\x03\x04"
_NAME_AT = 30  # of the first entry
_LONGEST_TYPE = 200
_TYPE = re.compile(r"[a-zA-Z0-9.+-]+/[a-zA-Z0-9.+-]+")
_PICTURES = {b"heic", b"heix", b"mif1", b"msf1", b"avif", b"avis"}  # in the same box as films
_MAILBOX = re.compile(
    rb"^From [^\n]*\d\d:\d\d[^\n]*\n[\w-]+:", re.MULTILINE
)  # between messages one by one in a file
_COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_CERTAIN = (b"%PDF-", b"\x7fELF", b"MZ", _LOCAL_HEADER, _COMPOUND_FILE)
# Streams only one kind of file has.
_STREAMS = {
    "__properties_version1.0": "application/vnd.ms-outlook",
    "EncryptedPackage": f"{_OOXML}.wordprocessingml.document",  # which kind is behind the password nobody can see
}


@lru_cache(maxsize=1)
def _magika() -> "Magika":
    from magika import Magika  # noqa: PLC0415 - brings a neural network along; a start must not wait for it

    return Magika()


def _identify(data: bytes, file_name: str | None) -> str:
    if contained := _container(data):
        return contained
    if data.removeprefix(codecs.BOM_UTF8).lstrip().startswith(_XML):
        return "text/html" if _PAGE.search(data, 0, _SAMPLE) else "application/xml"
    found = _magika().identify_bytes(data).output
    mime_type = found.mime_type or UNKNOWN
    suffix = PurePosixPath(file_name or "").suffix.lower()
    if not found.is_text and (_is_written(data) or (mime_type == UNKNOWN and _may_be_written(data, suffix))):
        mime_type = "text/plain"  # nothing but letters: whatever it resembles, it is a text
    is_text = found.is_text or mime_type == "text/plain"
    if is_text and data.startswith(_LOCAL_HEADER):
        return "application/zip"  # cut off so early that the rest resembles a text
    if suffix in _MARKDOWN and (is_text or mime_type in _VAGUE):
        return "text/markdown"
    if (
        is_text
        and suffix in _NAMES
        and (mime_type in _LOOSE or (suffix in _MARKED_UP and mime_type == "text/markdown"))
    ):
        return _NAMES[suffix]
    if mime_type in _VAGUE and is_text:
        guessed = _NAMES.get(suffix) or mimetypes.guess_type(file_name or "", strict=False)[0]
        return guessed if guessed and guessed.startswith(_TEXT_TYPES) else "text/plain"
    return mime_type


def _container(data: bytes) -> str | None:
    """What a zip or OLE file is for, by what it holds; None for those that are just containers."""
    if data.startswith(b"%PDF-"):  # nothing else begins so; a short or damaged one looks like text
        return "application/pdf"
    if signed := _signed(data):
        return signed
    if data.startswith(b"From ") and len(list(islice(_MAILBOX.finditer(data), 2))) > 1:
        return "application/mbox"
    if data.startswith(_COMPOUND_FILE):
        return next((mime for name, mime in _STREAMS.items() if name.encode("utf-16-le") in data), None)
    if not data.startswith(_LOCAL_HEADER):
        return None
    # Names stand in clear in a zip file. It is not opened here: that is for a child with limits.
    if data[_NAME_AT : _NAME_AT + 8] == b"mimetype":
        end = data.find(b"PK", _NAME_AT)
        claimed = data[_NAME_AT + 8 : min(end, _NAME_AT + _LONGEST_TYPE)].decode("ascii", "replace").strip()
        return claimed.lower() if _TYPE.fullmatch(claimed) else None
    last, mime = max(
        (data.rfind(name), mime) for name, mime in _OFFICE_PARTS.items()
    )  # the file's own list is at its end
    return mime if last >= 0 else None


def _is_written(data: bytes) -> bool:
    """UTF-8 without a control character but blanks, as far as one looks."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        sample = decoder.decode(data[:_SAMPLE], final=len(data) <= _SAMPLE)
    except UnicodeDecodeError:
        return False
    return not _CONTROLS.search(sample)


def _may_be_written(data: bytes, suffix: str) -> bool:
    """Called a text, and without a control character: an encoding of another script, which bytes alone do not tell."""
    return suffix in _NAMES and not _CONTROL_BYTES.search(data, 0, _SAMPLE)


def _signed(data: bytes) -> str | None:
    """Programs and films say what they are in their first bytes, however little of them is there."""
    if data.startswith(b"\x7fELF"):
        return "application/x-executable"
    if data.startswith(b"MZ") and b"\x00" in data[:512]:  # without a zero it is a text that begins so
        return "application/x-dosexec"
    if data[4:8] == b"ftyp":
        return "image/heic" if data[8:12] in _PICTURES else "video/mp4"
    return None


async def sniff(data: bytes, file_name: str | None = None) -> str:
    """The MIME type of these bytes."""
    if not data:
        return "application/x-empty"
    return await asyncio.to_thread(_identify, data, file_name)


async def checked_type(data: bytes, declared: str) -> str:
    """What somebody said these bytes are, unless they begin like something else for certain."""
    if not data.startswith(_CERTAIN) and data[4:8] != b"ftyp":
        return declared
    return await asyncio.to_thread(_container, data) or declared
