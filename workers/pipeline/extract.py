"""Bytes to kept text and units, by the format's own small reader in `formats/`.

A reader module has `read(source) -> Extracted`; one that works on text also has `units(text, source)`, so that the
parts of an objects document can use it. The table below is the whole list: what is not in it is unsupported. Formats
whose readers are native code or have a history of hostile files are `isolated`: each file gets a child of its own.
"""

import importlib
import mmap
from dataclasses import dataclass
from typing import Protocol, cast

from gateway.corpus.child import TaskFailed
from workers.pipeline.extracted import Extracted, Unit
from workers.pipeline.languages import language_of

MIB = 1 << 20
READERS = "workers.pipeline.formats"


@dataclass(frozen=True, slots=True)
class Format:
    name: str  # of its module
    isolated: bool
    input_bytes: int  # more than this no longer fits the child's limits


FORMATS: dict[str, Format] = {
    format_.name: format_
    for format_ in (
        Format("pdf", isolated=True, input_bytes=400 * MIB),
        Format("text", isolated=False, input_bytes=100 * MIB),
        Format("markdown", isolated=False, input_bytes=20 * MIB),
        Format("code", isolated=False, input_bytes=20 * MIB),
        Format("objects", isolated=False, input_bytes=100 * MIB),
    )
}
_BY_MIME = {
    "application/pdf": "pdf",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "text/plain": "text",
}
_MARKDOWN_SUFFIXES = (".md", ".markdown", ".mdown")


@dataclass(frozen=True, slots=True)
class Source:
    """A document as it came, and what is said about it."""

    data: bytes | mmap.mmap
    mime_type: str
    file_name: str | None = None
    charset: str | None = None


class Reader(Protocol):
    def read(self, source: Source) -> Extracted: ...


class TextReader(Reader, Protocol):
    def units(self, text: str, source: Source) -> list[Unit]: ...


def format_of(mime_type: str | None, file_name: str | None, content_form: str = "bytes") -> Format:
    """Which reader; raises TaskFailed("unsupported") if there is none."""
    if content_form == "objects":
        return FORMATS["objects"]
    mime = base_type(mime_type)
    name = _BY_MIME.get(mime)
    if name in {None, "text"}:
        if mime == "text/plain" and (file_name or "").lower().endswith(_MARKDOWN_SUFFIXES):
            name = "markdown"
        elif language_of(mime, file_name):
            name = "code"
    if name is None:
        raise TaskFailed("unsupported", f"no reader for {mime or 'content without a type'}"[:120])
    return FORMATS[name]


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
    reader = cast("Reader", importlib.import_module(f"{READERS}.{format_.name}"))
    extracted = reader.read(source)
    if not any(extracted.text[unit.text_start : unit.text_end].strip() for unit in extracted.units):
        raise TaskFailed("no_text", "the file holds no text")
    return extracted
