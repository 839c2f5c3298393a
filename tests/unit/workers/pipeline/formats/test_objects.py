"""Objects: each its own unit, its locator kept."""

import json

import pytest

from gateway.corpus.child import TaskFailed
from workers.pipeline.chunk import chunk
from workers.pipeline.extract import Source, extract, format_of

OBJECTS = [
    {"text": "First comment.", "mimeType": "text/plain", "locator": {"kind": "ticket", "ticketId": "T1", "commentId": "c1"}},
    {"text": "  ", "mimeType": "text/plain", "locator": {"kind": "ticket", "ticketId": "T1", "commentId": "c2"}},
    {"text": "# Title\r\n\r\nBody.", "mimeType": "text/markdown", "locator": {"kind": "ticket", "ticketId": "T1", "commentId": "c3"}},
    {"text": "def f():\n    return 1\n\n\ndef g():\n    return 2\n", "mimeType": "text/x-python",
     "locator": {"kind": "code", "path": "a.py", "lineStart": 41}},
    {"text": "No locator."},
]  # fmt: skip


def read(content: object):
    source = Source(json.dumps(content).encode(), "application/x-catchment-objects")
    return extract(source, format_of(None, None, "objects"))


@pytest.mark.parametrize("content", [OBJECTS, {"objects": OBJECTS}])
def test_every_object_keeps_its_locator_and_is_never_merged(content):
    extracted = read(content)
    chunks = list(chunk(extracted, language="en"))
    assert [item.text for item in chunks] == [
        "First comment.", "# Title\n\nBody.", "def f():\n    return 1", "def g():\n    return 2", "No locator.",
    ]  # fmt: skip
    for item in chunks:
        assert extracted.text[item.locator["charStart"] : item.locator["charEnd"]] == item.text
    assert chunks[0].locator == {
        "kind": "ticket", "ticketId": "T1", "commentId": "c1", "charStart": 0, "charEnd": 14,
    }  # fmt: skip
    assert "lineStart" not in chunks[1].locator
    assert chunks[1].heading_path == "Title"
    code = [
        (item.locator["symbol"], item.locator["lineStart"], item.locator["lineEnd"]) for item in chunks[2:4]
    ]
    assert code == [("f", 41, 42), ("g", 45, 46)]
    assert chunks[4].locator["kind"] == "text"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"not json", "damaged"),
        (b'{"objects": 7}', "damaged"),
        (b'[{"text": " "}]', "no_text"),
        (b'[{"text": "x", "mimeType": "application/pdf"}]', "unsupported"),
    ],
)
def test_objects_that_cannot_be_read_say_why(data, reason):
    with pytest.raises(TaskFailed) as caught:
        extract(Source(data, ""), format_of(None, None, "objects"))
    assert caught.value.reason == reason
