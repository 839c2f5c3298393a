"""Bytes to kept text and units, by the format's own small reader in `formats/`.

A reader module has `read(source) -> Extracted`; one that works on text also has `units(text, source)`, so that the
parts of an objects document can use it. The table below is the whole list: what is not in it is unsupported. Formats
whose readers are native code or have a history of hostile files are `isolated`: each file gets a child of its own.
"""

import importlib
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Protocol, cast

from gateway.corpus.child import TaskFailed
from workers.pipeline.extracted import Extracted, Unit
from workers.pipeline.languages import language_of

MIB = 1 << 20
READERS = "workers.pipeline.formats"
OWN, UNSTRUCTURED = "own", "unstructured"
_OF_TEXT = 1.5  # measured: 0.6 in logs and tables, 1.1 with personal data masked
GENERAL = "general"  # the reader that hands everything to `unstructured`


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    isolated: bool
    input_bytes: int  # more than this no longer fits the child's limits
    reader: str = ""  # its module, if that has another name
    engine: str = ""  # the package that does the work; empty: the standard library
    seconds_per_mib: float | None = None  # of processor time, where nearly all of it is text to mask

    @property
    def module(self) -> str:
        return f"{READERS}.{self.reader or self.name}"

    @property
    def child(self) -> dict[str, Any]:
        """What reads it must be, for `ChildPool.run`."""
        general = self.reader == GENERAL
        office = self.name in OFFICE_FORMATS
        return {
            "isolated": self.isolated,
            "folder": general,
            "office": office,
            "wing": self.module if general else "",
        }

    def by(self, engine: str) -> "Format":
        """The same format, read by another engine."""
        if engine != UNSTRUCTURED or self.reader == GENERAL:
            return self
        return Format(self.name, isolated=True, input_bytes=self.input_bytes, reader=GENERAL, engine=engine)


FORMATS: dict[str, Format] = {
    format_.name: format_
    for format_ in (
        Format("pdf", isolated=True, input_bytes=400 * MIB, engine="pypdfium2"),
        Format("docx", isolated=False, input_bytes=100 * MIB, reader="word", engine="python-docx"),
        Format("pptx", isolated=False, input_bytes=200 * MIB, reader="slides", engine="python-pptx"),
        Format("xlsx", isolated=False, input_bytes=100 * MIB, reader="sheets", engine="python-calamine"),
        Format("xls", isolated=False, input_bytes=50 * MIB, reader="sheets", engine="python-calamine"),
        Format("ods", isolated=False, input_bytes=50 * MIB, reader="sheets", engine="python-calamine"),
        Format("csv", isolated=False, input_bytes=50 * MIB, reader="csv_rows", seconds_per_mib=_OF_TEXT),
        Format("tsv", isolated=False, input_bytes=50 * MIB, reader="csv_rows", seconds_per_mib=_OF_TEXT),
        Format("html", isolated=False, input_bytes=10 * MIB, reader="web", engine="selectolax"),
        Format("eml", isolated=False, input_bytes=50 * MIB, reader="mail"),
        Format("msg", isolated=False, input_bytes=50 * MIB, reader="outlook", engine="python-oxmsg"),
        Format("rtf", isolated=False, input_bytes=10 * MIB, engine="striprtf"),
        Format("odt", isolated=False, input_bytes=100 * MIB, reader="opendocument", engine="lxml"),
        Format("odp", isolated=False, input_bytes=200 * MIB, reader="opendocument", engine="lxml"),
        Format("epub", isolated=False, input_bytes=100 * MIB, reader="book", engine="lxml"),
        Format("json", isolated=False, input_bytes=10 * MIB, reader="json_values", seconds_per_mib=_OF_TEXT),
        Format("xml", isolated=False, input_bytes=10 * MIB, reader="xml_elements", engine="lxml"),
        Format("ipynb", isolated=False, input_bytes=20 * MIB, reader="notebook", engine="markdown-it-py"),
        Format("text", isolated=False, input_bytes=100 * MIB, seconds_per_mib=_OF_TEXT),
        Format("markdown", isolated=False, input_bytes=20 * MIB, engine="markdown-it-py"),
        Format("code", isolated=False, input_bytes=20 * MIB, engine="tree-sitter"),
        Format("objects", isolated=False, input_bytes=100 * MIB, seconds_per_mib=_OF_TEXT),
        Format("image", isolated=True, input_bytes=50 * MIB, reader="picture", engine="tesseract"),
        Format("rst", isolated=True, input_bytes=10 * MIB, reader=GENERAL, engine=UNSTRUCTURED),
        Format("org", isolated=True, input_bytes=10 * MIB, reader=GENERAL, engine=UNSTRUCTURED),
        Format("doc", isolated=True, input_bytes=50 * MIB, reader=GENERAL, engine=UNSTRUCTURED),
        Format("ppt", isolated=True, input_bytes=50 * MIB, reader=GENERAL, engine=UNSTRUCTURED),
    )
}

OFFICE_FORMATS = frozenset({"doc", "ppt"})  # read where LibreOffice is installed

_OOXML = "application/vnd.openxmlformats-officedocument"
_ODF = "application/vnd.oasis.opendocument"
MIME_TYPES: dict[str, str] = {
    "application/pdf": "pdf",
    f"{_OOXML}.wordprocessingml.document": "docx",
    f"{_OOXML}.wordprocessingml.template": "docx",
    "application/vnd.ms-word.document.macroenabled.12": "docx",
    f"{_OOXML}.presentationml.presentation": "pptx",
    f"{_OOXML}.presentationml.slideshow": "pptx",
    f"{_OOXML}.presentationml.template": "pptx",
    "application/vnd.ms-powerpoint.presentation.macroenabled.12": "pptx",
    f"{_OOXML}.spreadsheetml.sheet": "xlsx",
    f"{_OOXML}.spreadsheetml.template": "xlsx",
    "application/vnd.ms-excel.sheet.macroenabled.12": "xlsx",
    "application/vnd.ms-excel.sheet.binary.macroenabled.12": "xlsx",
    "application/vnd.ms-excel": "xls",
    f"{_ODF}.spreadsheet": "ods",
    f"{_ODF}.text": "odt",
    f"{_ODF}.text-template": "odt",
    f"{_ODF}.presentation": "odp",
    "text/csv": "csv",
    "application/csv": "csv",
    "text/tsv": "tsv",
    "text/tab-separated-values": "tsv",
    "text/html": "html",
    "application/xhtml+xml": "html",
    "message/rfc822": "eml",
    "application/x-mimearchive": "eml",
    "multipart/related": "eml",
    "application/vnd.ms-outlook": "msg",
    "text/rtf": "rtf",
    "application/rtf": "rtf",
    "application/epub+zip": "epub",
    "application/json": "json",
    "application/x-ndjson": "json",
    "application/jsonl": "json",
    "application/ld+json": "json",
    "application/geo+json": "json",
    "application/xml": "xml",
    "text/xml": "xml",
    "application/rss+xml": "xml",
    "application/atom+xml": "xml",
    "image/svg+xml": "xml",
    "application/x-ipynb+json": "ipynb",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "text/plain": "text",
    "text/calendar": "text",
    "text/vcard": "text",
    "text/x-tex": "text",
    "text/srt": "text",
    "text/vtt": "text",
    "text/x-rst": "rst",
    "text/x-org": "org",
    "text/org": "org",
    "application/msword": "doc",
    "application/vnd.ms-powerpoint": "ppt",
}
# Where the type says only a family, the file name says which of it.
_BY_SUFFIX = {
    ("text", ".md"): "markdown", ("text", ".markdown"): "markdown", ("text", ".mdown"): "markdown",
    ("text", ".org"): "org", ("text", ".rst"): "rst", ("text", ".csv"): "csv", ("text", ".tsv"): "tsv",
    ("text", ".eml"): "eml", ("json", ".ipynb"): "ipynb",
}  # fmt: skip

# What is left out on purpose: the reason a person reads, and the types it stands for.
POLICY_SKIPS = {
    "media": ("audio/", "video/"),
    "archive": (
        "application/zip", "application/gzip", "application/x-gzip", "application/x-tar", "application/x-7z-compressed",
        "application/x-rar", "application/vnd.rar", "application/x-bzip", "application/x-bzip2", "application/x-xz",
        "application/zstd", "application/x-iso9660-image", "application/x-apple-diskimage", "application/java-archive",
        "application/x-msi", "application/vnd.ms-cab-compressed", "application/x-lzip", "application/x-lha",
        "application/x-cpio", "application/x-archive", "application/mbox",
    ),
    "executable": (
        "application/x-executable", "application/x-dosexec", "application/x-mach-o", "application/x-android-dex",
        "application/vnd.android.package-archive", "application/wasm", "application/x-sharedlib",
        "application/vnd.microsoft.portable-executable", "application/x-msdownload", "application/x-java-applet",
        "application/x-object",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Source:
    """A document as it came, and what is said about it."""

    data: bytes | mmap.mmap
    mime_type: str
    file_name: str | None = None
    charset: str | None = None
    uri: str | None = None


class Reader(Protocol):
    def read(self, source: Source) -> Extracted: ...


class TextReader(Reader, Protocol):
    def units(self, text: str, source: Source) -> list[Unit]: ...


def format_of(
    mime_type: str | None,
    file_name: str | None,
    content_form: str = "bytes",
    engines: Mapping[str, str] | None = None,
) -> Format:
    """Which reader; raises TaskFailed if there is none: "unsupported", or why such files are left out.

    `engines` is the mandate's word on formats it wants read by another engine than ours.
    """
    if content_form == "objects":
        return FORMATS["objects"]
    mime = base_type(mime_type)
    name = MIME_TYPES.get(mime)
    if mime.startswith("image/") and name is None:
        name = "image"
    suffix = PurePosixPath(file_name or "").suffix.lower()
    name = _BY_SUFFIX.get((name or "", suffix), name)
    if name in {None, "text"} and language_of(mime, file_name):
        name = "code"
    if name is None:
        for reason, types in POLICY_SKIPS.items():
            if mime.startswith(types):
                raise TaskFailed(reason, f"files of type {mime} are left out"[:120])
        if mime.startswith("text/"):
            return FORMATS["text"]  # some kind of text nobody here knows more about
        raise TaskFailed("unsupported", f"no reader for {mime or 'content without a type'}"[:120])
    return FORMATS[name].by((engines or {}).get(name, OWN))


def base_type(mime_type: str | None) -> str:
    return (mime_type or "").partition(";")[0].strip().lower()


def declared_charset(mime_type: str | None) -> str | None:
    for parameter in (mime_type or "").split(";")[1:]:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "charset":
            return value.strip().strip("\"'") or None
    return None


def extract(source: Source, format_: Format) -> Extracted:
    """Raises TaskFailed with the reason that lies in the file."""
    if len(source.data) > format_.input_bytes:
        raise TaskFailed("too_large", f"{len(source.data)} bytes of {format_.name}")
    reader = cast("Reader", importlib.import_module(format_.module))
    extracted = reader.read(source)
    if not any(extracted.text[unit.text_start : unit.text_end].strip() for unit in extracted.units):
        raise TaskFailed("no_text", "the file holds no text")
    return extracted
