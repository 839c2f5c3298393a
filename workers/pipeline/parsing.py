"""One document through the limited child: extract, neutralise, chunk and count terms there; take the result here.

`handle` runs inside the child (`gateway.corpus.child`), `parse_document` in the worker. Between them go one header record
with the kept text and batches of chunks, which are offsets into it; texts and hashes are made from it on this side, so a
child cannot claim that a text is one it is not.
"""

import asyncio
import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from gateway.corpus.child import ChildFailed, ChildPool, TaskFailed
from gateway.corpus.lexical.language import detect_language
from gateway.corpus.lexical.terms import count_terms
from workers.pipeline import code_chunks, tokens
from workers.pipeline.chunk import Chunk, chunk, text_hash
from workers.pipeline.extract import (
    FORMATS,
    GENERAL,
    Source,
    base_type,
    declared_charset,
    extract,
    format_of,
)
from workers.pipeline.extracted import Attachment, Extracted
from workers.pipeline.neutralise import neutralise
from workers.pipeline.neutralise import prepare as prepare_masking

# Readers a child of its own must find loaded, and those of most files; the others are loaded where they are first used, by
# children that stay. `general` brings hundreds of megabytes along and has a fork server to itself, while it is needed.
_USUAL = frozenset({"text", "markdown", "code", "objects"})
PRELOAD = tuple(
    dict.fromkeys(
        format_.module
        for format_ in FORMATS.values()
        if (format_.isolated or format_.name in _USUAL) and format_.reader != GENERAL
    )
)
_BATCH = 128  # chunks per record; the worker's loop gets a turn after each

_LANGUAGE_SAMPLE = 150  # characters; an eighth of a millisecond each


@dataclass(slots=True)
class ParsedDocument:
    text: str
    language: str
    mime_type: str | None
    page_count: int | None
    warnings: list[str]
    secrets: dict[str, int]  # kind → how many were masked
    chunks: list[Chunk] = field(default_factory=list[Chunk])
    terms: list[dict[str, int]] = field(
        default_factory=list[dict[str, int]]
    )  # of the chunk at the same place
    attachments: list[Attachment] = field(default_factory=list[Attachment])


async def parse_document(
    pool: ChildPool,
    *,
    data: bytes | Path,
    mime_type: str | None,
    file_name: str | None = None,
    content_form: str = "bytes",
    language: str | None = None,
    policy: dict[str, Any] | None = None,
    uri: str | None = None,
    with_attachments: bool = False,
) -> ParsedDocument:
    """Raises ChildFailed with the file's reason, or PoolUnavailable when no child could be had.

    `content_form` is `bytes`, `text` (UTF-8) or `objects` (JSON); `policy` is what `neutralise` goes by, and which engine the
    mandate wants for which format (`extraction`).
    """
    try:
        format_ = format_of(mime_type, file_name, content_form, (policy or {}).get("extraction"))
    except TaskFailed as failure:
        raise ChildFailed(failure.reason, failure.detail) from failure
    task = {
        "mimeType": mime_type,
        "fileName": file_name,
        "contentForm": content_form,
        "language": language,
        "policy": policy or {},
        "uri": uri,
        "withAttachments": with_attachments,
    }
    header, *batches = await pool.run(task, data, **format_.child)
    try:
        document = ParsedDocument(
            text=header["text"],
            language=str(header["language"]),
            mime_type=mime_type,
            page_count=header["pageCount"],
            warnings=[str(warning) for warning in header["warnings"]],
            secrets={str(kind): int(count) for kind, count in header["secrets"].items()},
            attachments=[
                Attachment(str(name), mime and str(mime), bytes(content), str(title))
                for name, mime, content, title in header.get("attachments", ())
            ],
        )
        for batch in batches:
            _add_chunks(document, batch["chunks"])
            await asyncio.sleep(0)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ChildFailed("crashed", "answered with records of another shape") from error
    return document


def _add_chunks(document: ParsedDocument, rows: list[Any]) -> None:
    for locator, heading_path, token_count, terms in rows:
        start, end = locator["charStart"], locator["charEnd"]
        if not 0 <= start < end <= len(document.text):
            raise ValueError("a chunk outside the text")
        text = document.text[start:end]
        document.chunks.append(
            Chunk(
                len(document.chunks),
                text,
                text_hash(text),
                locator,
                heading_path,
                token_count,
                document.language,
            )
        )
        document.terms.append(terms)


def prepare() -> None:
    """Once in the fork server, so that no child loads a model or a grammar again."""
    from workers.pipeline.formats import pdf  # noqa: PLC0415 - the worker itself loads no reader

    tokens.prepare()
    code_chunks.prepare()
    pdf.prepare()
    prepare_masking()
    count_terms("", detect_language("warm"))


def handle(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    """Inside the child: a header, then the chunks in batches."""
    form = task["contentForm"]
    format_ = format_of(task["mimeType"], task["fileName"], form, task["policy"].get("extraction"))
    charset = "utf-8" if form == "text" else declared_charset(task["mimeType"])
    source = Source(payload, base_type(task["mimeType"]), task["fileName"], charset, task["uri"])
    read = extract(source, format_)
    extracted = neutralise(read, policy=task["policy"])
    language = task["language"] or _language(extracted)
    yield {
        "text": extracted.text,
        "language": language,
        "pageCount": extracted.page_count,
        "warnings": extracted.warnings[:100],
        "secrets": extracted.secrets,
        "attachments": [(item.name, item.mime_type, item.data, item.title) for item in extracted.attachments]
        if task["withAttachments"]
        else [],
    }
    chunks = chunk(extracted, language=language)
    while batch := list(islice(chunks, _BATCH)):
        yield {"chunks": [_row(item) for item in batch]}


def _row(item: Chunk) -> tuple[dict[str, Any], str, int, dict[str, int]]:
    findable = f"{item.heading_path}\n{item.text}" if item.heading_path else item.text
    return item.locator, item.heading_path, item.token_count, count_terms(findable, item.language)


def _language(extracted: Extracted) -> str:
    """From a few lines at the beginning and in the middle, which are enough: first pages are often names and numbers."""
    if extracted.units[0].code_language is not None:
        return "en"  # what little prose code has is English more often than its identifiers suggest
    text = extracted.text
    middle = len(text) // 2
    if len(text) > 3 * _LANGUAGE_SAMPLE:
        text = f"{text[:_LANGUAGE_SAMPLE]} {text[middle : middle + _LANGUAGE_SAMPLE]}"
    return detect_language(text)
