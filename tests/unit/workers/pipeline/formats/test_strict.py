"""Office files in the strict variant of their format."""

import io
import re
import zipfile

import pytest

from tests.fixtures import office_files
from workers.pipeline.extract import FORMATS, Source, extract


def strict(data: bytes) -> bytes:
    saved = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(saved, "w") as new:
        for name in old.namelist():
            usual = rb"http://schemas\.openxmlformats\.org/(wordprocessingml|presentationml|drawingml|officeDocument)/2006/(\w+)"
            new.writestr(name, re.sub(usual, rb"http://purl.oclc.org/ooxml/\1/\2", old.read(name)))
    return saved.getvalue()


@pytest.mark.parametrize(
    ("format_name", "data"),
    [
        ("docx", office_files.word(office_files.structured)),
        ("docx", office_files.word(office_files.with_text_box)),
        (
            "pptx",
            office_files.deck(
                office_files.with_slide_table, office_files.with_chart, office_files.with_group
            ),
        ),
    ],
)
def test_a_strict_file_reads_as_the_usual_one(format_name: str, data: bytes):
    usual = extract(Source(data, ""), FORMATS[format_name])
    assert extract(Source(strict(data), ""), FORMATS[format_name]).text == usual.text != ""
