"""Word files and slides saved as "Strict Open XML": the same, with other names for everything, which our engines do not know."""

import io
import re
import zipfile

from workers.pipeline.extract import Source

_ROOT = "_rels/.rels"
_MARK = b"http://purl.oclc.org/ooxml/"
_NAME = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/(\w+)")
_USUAL = rb"http://schemas.openxmlformats.org/\1/2006/\2"


def as_usual(source: Source) -> io.BytesIO:
    """The file, with the usual names. What is no archive, or has no root, is its reader's to refuse."""
    data = bytes(source.data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if _MARK in archive.read(_ROOT):
                return _rewritten(archive)
    except (KeyError, zipfile.BadZipFile):
        pass
    return io.BytesIO(data)


def _rewritten(archive: zipfile.ZipFile) -> io.BytesIO:
    usual = io.BytesIO()
    with zipfile.ZipFile(usual, "w", zipfile.ZIP_STORED) as new:
        for name in archive.namelist():
            part = archive.read(name)
            new.writestr(name, _NAME.sub(_USUAL, part) if name.endswith((".xml", ".rels")) else part)
    usual.seek(0)
    return usual
