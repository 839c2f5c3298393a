"""Every format without a reader of ours, by `unstructured`; also ours, where a mandate's policy prefers it.

It takes seconds and 300 MB to load, so the children that need it are forked by a server of their own (a wing of the pool). Its
sentence splitter wants to fetch a model, so a blank one stands in; and an empty answer is how it reports damage, so that
counts as damage.
"""

import contextlib
import importlib
import io
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import FORMATS, GENERAL, OFFICE_FORMATS, Source, format_of
from workers.pipeline.extracted import Extracted
from workers.pipeline.formats import text as plain
from workers.pipeline.formats.draft import Draft
from workers.pipeline.formats.tables import lines_of

# Format → name of the partitioner; what it needs beyond wheels is in NEEDS.
PARTITIONERS = {
    "rst": "rst", "org": "org", "tsv": "tsv", "doc": "doc", "ppt": "ppt",
    "docx": "docx", "pptx": "pptx", "csv": "csv", "html": "html", "eml": "email", "msg": "msg", "xml": "xml",
    "odt": "odt", "rtf": "rtf", "epub": "epub", "text": "text",
}  # fmt: skip
NEEDS = dict.fromkeys(OFFICE_FORMATS, "soffice")
# What LibreOffice makes of an old format; the new one has a partitioner.
_CONVERTED = {"doc": "docx", "ppt": "pptx"}
_CONVERSION_SECONDS = 25
_FOLDERS = "/usr/local/bin:/usr/bin:/bin"
_TEXT_BASED = frozenset({"rst", "org"})
_PLAIN = frozenset({"rst", "org", "text", "xml", "rtf"})
_UNTOLD = [""]  # it would load tables for a second, to say what we find out ourselves


def prepare() -> None:
    """Once in the fork server, so that no child loads the engine again. What a policy may ask for besides is loaded when it
    does: what everything takes is missing from the memory that a file may use.
    """
    _stay_offline()
    for name, partitioner in PARTITIONERS.items():
        if FORMATS[name].reader == GENERAL:
            with contextlib.suppress(ImportError):  # whoever needs it is told so
                importlib.import_module(f"unstructured.partition.{partitioner}")


def read(source: Source) -> Extracted:
    format_ = format_of(source.mime_type, source.file_name)
    if not available(format_.name):
        raise TaskFailed("unsupported", f"{format_.name} needs {NEEDS.get(format_.name, 'another engine')}")
    elements = _elements(format_.name, source)
    draft = Draft(_locator(format_.name, source))
    items: list[str] = []
    for element in elements:
        if element.category != "ListItem" and items:
            draft.lines(items)
            items = []
        if element.category == "ListItem":
            items.append(f"- {' '.join(element.text.split())}")
        else:
            _write(draft, element)
    draft.lines(items)
    return draft.finish()


def _locator(format_name: str, source: Source) -> dict[str, Any]:
    """Of the same kind as our own reader's, with what this engine knows of the place."""
    if format_name == "html":
        return {"kind": "web", "url": source.uri}
    kind = "mail" if format_name in {"eml", "msg"} else "office" if format_name not in _PLAIN else "text"
    return {"kind": kind}


def available(format_name: str) -> bool:
    needed = NEEDS.get(format_name)
    return format_name in PARTITIONERS and (needed is None or shutil.which(needed, path=_FOLDERS) is not None)


def _elements(name: str, source: Source) -> Sequence[Any]:
    _stay_offline()
    data = bytes(source.data)
    if name in _CONVERTED:
        data, name = _convert(data, name), _CONVERTED[name]
    try:
        elements = _partition(PARTITIONERS[name], data, source)
    except ImportError as error:
        raise TaskFailed("unsupported", f"unstructured lacks what {name} needs") from error
    except (OSError, RuntimeError) as error:
        if name not in _TEXT_BASED:
            raise TaskFailed("damaged", f"unstructured could not read it ({type(error).__name__})") from error
        elements = _partition("text", data, source)  # pandoc could not be run: its source reads well as text
    if not elements:
        raise TaskFailed("damaged", "unstructured found nothing in it")
    return elements


def _convert(data: bytes, name: str) -> bytes:
    """By LibreOffice, in the child's own folder: what it writes for itself goes there too."""
    program = shutil.which(NEEDS[name], path=_FOLDERS)
    with tempfile.TemporaryDirectory() as folder:
        original = Path(folder) / f"file.{name}"
        original.write_bytes(data)
        profile = f"-env:UserInstallation={(Path(folder) / 'profile').as_uri()}"
        command = [str(program), profile, "--headless", "--convert-to", _CONVERTED[name], "--outdir", folder]
        own = {**os.environ, "HOME": folder, "TMPDIR": folder}
        try:
            subprocess.run(  # noqa: S603 - a fixed program on a file of ours
                [*command, str(original)],
                env=own,
                check=False,
                capture_output=True,
                timeout=_CONVERSION_SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            raise TaskFailed("too_slow", "LibreOffice took too long") from error
        result = original.with_suffix(f".{_CONVERTED[name]}")
        if not result.exists():
            raise TaskFailed("damaged", "LibreOffice could not read it")
        return result.read_bytes()


def _partition(partitioner: str, data: bytes, source: Source) -> Sequence[Any]:
    module = importlib.import_module(f"unstructured.partition.{partitioner}")
    partition = cast("Callable[..., Sequence[Any]]", getattr(module, f"partition_{partitioner}"))
    if partitioner == "text":
        return partition(text=plain.decode(source), languages=_UNTOLD)
    return partition(file=io.BytesIO(data), languages=_UNTOLD)


def _write(draft: Draft, element: Any) -> None:
    place: dict[str, Any] = {}
    metadata = element.metadata
    if getattr(metadata, "page_name", None):
        place["sheet"] = metadata.page_name
    elif getattr(metadata, "page_number", None):
        place["slide"] = metadata.page_number
    if element.category == "Title":
        draft.heading((getattr(metadata, "category_depth", None) or 0) + 1, element.text, **place)
    elif element.category == "Table" and getattr(metadata, "text_as_html", None):
        draft.lines(_table(metadata.text_as_html) or [element.text], **place)
    else:
        draft.block(element.text, **place)


def _table(html: str) -> list[str]:
    from selectolax.lexbor import LexborHTMLParser  # noqa: PLC0415 - with the rest of what this engine needs

    rows = [
        [" ".join(cell.text(separator=" ").split()) for cell in row.css("td, th")]
        for row in LexborHTMLParser(html).css("tr")
    ]
    return lines_of(rows)


@lru_cache(maxsize=1)
def _stay_offline() -> None:
    """Neither phoning home, nor advertising, nor fetching a model."""
    os.environ.update(DO_NOT_TRACK="1", UNSTRUCTURED_DISABLE_NOTICE="1")
    import spacy  # noqa: PLC0415
    from unstructured.nlp import tokenize  # noqa: PLC0415

    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    tokenize._get_nlp = lambda: pipeline  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
