"""JSON and notebooks, also those that are not quite what they claim."""

import json

import pytest

from workers.pipeline.extract import Source, extract, format_of
from workers.pipeline.extracted import Extracted
from workers.pipeline.neutralise import neutralise


def read(data: bytes, mime_type: str) -> Extracted:
    return extract(Source(data, mime_type), format_of(mime_type, None))


def seen(data: str, mime_type: str) -> str:
    return read(data.encode(), mime_type).text


def test_a_notebook_of_the_third_version_is_read():
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Rivers"]},
        {"cell_type": "markdown", "source": "They flow."},
        {
            "cell_type": "code",
            "input": ["x = 1\n", "x"],
            "outputs": [{"output_type": "pyout", "text": ["1"]}],
        },
        {
            "cell_type": "code",
            "input": "y",
            "outputs": [{"output_type": "pyerr", "ename": "E", "evalue": "y"}],
        },
    ]
    found = read(
        json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]}).encode(), "application/x-ipynb+json"
    )
    assert found.text.split("\f") == ["## Rivers", "They flow.", "x = 1\nx", "1", "y", "E: y"]
    assert [unit.locator["cell"] for unit in found.units] == [1, 2, 3, 3, 4, 4]


def test_what_colours_a_terminal_is_no_word_of_an_output():
    coloured = {"output_type": "stream", "text": ["\x1b[0;31mred\x1b[0m and \x1b]0;title\x07plain\x1b[2K"]}
    cell = {"cell_type": "code", "source": "x", "outputs": [coloured]}
    assert seen(json.dumps({"cells": [cell]}), "application/x-ipynb+json") == "x\fred and plain"


@pytest.mark.parametrize("content", ['{"a": "one"}', '["a", "one"]'])
def test_a_notebook_that_is_none_is_read_as_json(content: str):
    found = read(content.encode(), "application/x-ipynb+json")
    assert found.text in {"a: one", "a\n\none"}
    assert found.warnings == ["no cells of a notebook: read as JSON"]


@pytest.mark.parametrize(
    "written", ["19.90", "1.10", "0.000001", "1E5", "12345.678901234567890", "1e400", "9" * 5000, "true"]
)
def test_a_number_of_a_json_file_is_as_it_was_written(written: str):
    assert seen(f'{{"n": {written}}}', "application/json") == f"n: {written}"


def test_a_line_that_is_no_json_costs_neither_itself_nor_the_others():
    found = read(b'{"a": "one"}\n{bad\n\n{"a": "three"}\n', "application/json")
    assert found.text == "a: one\n\n{bad\n\na: three"
    assert found.warnings == ["1 lines are not JSON and were kept as they are, the first is line 2"]
    (unit,) = found.units
    assert unit.region is not None
    assert unit.region.locate(found.text.index("three"), len(found.text)) == {"pointer": "/2/a"}


@pytest.mark.parametrize(
    "mime_type", ["application/json", "application/x-ndjson", "application/x-ipynb+json"]
)
@pytest.mark.parametrize(
    "text", ['{\n  // how strict\n  "strict": true,\n}\n', '{"a": "one"}{"a": "two"}', '{"a": ["one", "tw']
)
def test_what_is_no_json_is_kept_as_the_text_it_is(text: str, mime_type: str):
    found = read(text.encode(), mime_type)
    assert found.text == text
    assert found.units[0].locator == {"kind": "text"}
    assert found.warnings[0].startswith("kept as plain text: it is not JSON in line ")


def test_what_is_kept_as_text_is_masked_as_any_other():
    found = read(b'{\n  // of the database\n  "password": "Kx9mmQ2zT",\n}\n', "application/json")
    masked = neutralise(found, policy={"placeholder_key": b"k" * 32})
    assert masked.secrets == {"password": 1}
    assert "Kx9mmQ2zT" not in masked.text
