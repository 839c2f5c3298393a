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
        ("application/json", "analysis.ipynb", "ipynb"),
        ("application/json", "data.json", "json"),
        ("text/plain", "notes.org", "org"),
        ("text/plain", "prices.csv", "csv"),
        (
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "a Google document",
            "docx",
        ),
        ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "a Google sheet", "xlsx"),
        (
            "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            "Google slides",
            "pptx",
        ),
        ("image/png", "drawing", "image"),
        ("image/svg+xml", "drawing.svg", "xml"),
    ],
)
def test_the_type_decides_and_the_name_helps_where_the_type_is_vague(mime_type, file_name, name):
    assert format_of(mime_type, file_name) is FORMATS[name]


@pytest.mark.parametrize(
    ("mime_type", "reason"),
    [
        ("application/x-unknown", "unsupported"),
        (None, "unsupported"),
        ("", "unsupported"),
        ("application/zip", "archive"),
        ("application/gzip", "archive"),
        ("video/mp4", "media"),
        ("audio/mpeg", "media"),
        ("application/x-dosexec", "executable"),
        ("application/x-executable-elf", "executable"),
    ],
)
def test_everything_else_is_left_out_for_a_reason(mime_type, reason):
    with pytest.raises(TaskFailed) as caught:
        format_of(mime_type, "file.py")
    assert caught.value.reason == reason


def test_the_policy_may_prefer_the_general_engine():
    own, general = (
        format_of("text/html", None, engines=engines) for engines in (None, {"html": "unstructured"})
    )
    assert (own.reader, own.isolated) == ("web", False)
    assert (general.reader, general.isolated) == ("general", True)
    assert format_of("text/html", None, engines={"docx": "unstructured"}) is own


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


def test_readers_with_a_history_get_a_child_for_each_file():
    isolated = {name for name, format_ in FORMATS.items() if format_.isolated}
    assert isolated == {"pdf", "image", "rst", "org", "doc", "ppt"}


def test_a_file_larger_than_its_reader_can_take_is_refused_before_it_is_read():
    with pytest.raises(TaskFailed) as caught:
        extract(Source(b"four", "text/plain"), Format("text", isolated=False, input_bytes=3))
    assert caught.value.reason == "too_large"


def test_the_charset_is_read_from_the_type():
    assert declared_charset('text/plain; format=flowed; charset="ISO-8859-1"') == "ISO-8859-1"
    assert declared_charset("text/plain") is None
