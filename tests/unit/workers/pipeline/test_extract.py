"""Which reader a document gets."""

import pytest

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import FORMATS, Format, Source, declared_charset, extract, format_of
from workers.pipeline.languages import language_of


@pytest.mark.parametrize(
    ("mime_type", "file_name", "name"),
    [
        ("application/pdf", "x.txt", "pdf"),
        ("text/plain", None, "text"),
        ("text/plain; charset=latin-1", "notes.txt", "text"),
        ("TEXT/Markdown", None, "markdown"),
        ("text/plain", "README.md", "markdown"),
        ("text/x-python", None, "code"),
        ("text/plain", "main.go", "code"),
        ("application/x-yaml", "values.yaml", "code"),
    ],
)
def test_the_type_decides_and_the_name_helps_where_the_type_is_vague(mime_type, file_name, name):
    assert format_of(mime_type, file_name) is FORMATS[name]


@pytest.mark.parametrize("mime_type", ["application/zip", "text/html", None, "", "video/mp4"])
def test_everything_else_is_unsupported(mime_type):
    with pytest.raises(TaskFailed) as caught:
        format_of(mime_type, "file.py")
    assert caught.value.reason == "unsupported"


@pytest.mark.parametrize(
    ("mime_type", "file_name", "language"),
    [
        ("text/x-c", "a.cpp", "cpp"),
        ("text/x-c", "a.c", "c"),
        ("text/x-typescript", "a.ts", "typescript"),
        ("text/x-typescript", "a.tsx", "tsx"),
        ("text/plain", "a.cs", "csharp"),
        ("text/plain", "a.txt", None),
        ("application/pdf", "a.py", None),
    ],
)
def test_the_file_name_tells_languages_of_one_family_apart(mime_type, file_name, language):
    assert language_of(mime_type, file_name) == language


def test_only_native_readers_get_a_child_for_each_file():
    assert {name for name, format_ in FORMATS.items() if format_.isolated} == {"pdf"}


def test_a_file_larger_than_its_reader_can_take_is_refused_before_it_is_read():
    with pytest.raises(TaskFailed) as caught:
        extract(Source(b"four", "text/plain"), Format("text", isolated=False, input_bytes=3))
    assert caught.value.reason == "too_large"


def test_the_charset_is_read_from_the_type():
    assert declared_charset('text/plain; format=flowed; charset="ISO-8859-1"') == "ISO-8859-1"
    assert declared_charset("text/plain") is None
