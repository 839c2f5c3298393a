"""Books (epub) by zipfile and lxml: the files of the spine in their order, each read as the web page it is."""

import io
import posixpath
import zipfile
from typing import Any
from urllib.parse import unquote

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import Source
from workers.pipeline.extracted import Extracted
from workers.pipeline.formats import web
from workers.pipeline.formats.draft import Draft
from workers.pipeline.formats.hardened import entry, parse_xml
from workers.pipeline.formats.web_tags import expanded
from workers.pipeline.zip_guard import check_zip

_CONTAINER = "META-INF/container.xml"
_MOST_FILES = 5_000


def read(source: Source) -> Extracted:
    check_zip(source.data)
    draft = Draft({"kind": "office"}, sections=True)
    with zipfile.ZipFile(io.BytesIO(source.data)) as archive:
        names = _spine(archive)[:_MOST_FILES]
        lost = sum(not _chapter(draft, archive, name) for name in names)
    if lost == len(names):
        raise TaskFailed("damaged", "none of the book's chapters can be read")
    if lost:
        draft.warnings.append(f"{lost} chapters were left out: missing or damaged")
    return draft.finish()


def _chapter(draft: Draft, archive: zipfile.ZipFile, name: str) -> bool:
    """False if it is missing or broken, which costs the book that chapter."""
    draft.part()
    try:
        page = expanded(web.decode(Source(entry(archive, name), "application/xhtml+xml")))
        web.write(draft, page, paths=False, part=name)
    except TaskFailed as error:
        if error.reason != "damaged":
            raise
        return False
    return True


def _spine(archive: zipfile.ZipFile) -> list[str]:
    container = parse_xml(entry(archive, _CONTAINER))
    package_name = next((str(e.get("full-path")) for e in container.iter() if _is(e, "rootfile")), "")
    package = parse_xml(entry(archive, package_name))
    folder = posixpath.dirname(package_name)
    files = {
        str(item.get("id")): posixpath.normpath(posixpath.join(folder, unquote(str(item.get("href")))))
        for item in package.iter()
        if _is(item, "item")
    }
    names = [
        files[str(item.get("idref"))]
        for item in package.iter()
        if _is(item, "itemref") and item.get("idref") in files
    ]
    if not names:
        raise TaskFailed("damaged", "a book without a spine")
    return names


def _is(element: Any, name: str) -> bool:
    return isinstance(element.tag, str) and element.tag.rpartition("}")[2] == name
