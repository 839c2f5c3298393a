"""Source code by its definitions."""

import random

import pytest

from workers.pipeline import code_chunks
from workers.pipeline.chunk import chunk
from workers.pipeline.code_chunks import definitions
from workers.pipeline.extract import Source
from workers.pipeline.extracted import Extracted
from workers.pipeline.formats import code
from workers.pipeline.languages import GRAMMARS

PYTHON = '''"""Module words."""

import os

LIMIT = 3


# Explains the helper.
def helper(x):
    def inner():
        return x
    return inner


@decorated(
    "twice")
class Basket(list):
    """A basket."""

    size = 0

    def add(self, item):
        self.append(item)

    @property
    def weight(self):
        return sum(self)

    class Label:
        def text(self):
            return "é"


async def main():
    helper(LIMIT)


if __name__ == "__main__":
    main()
'''

TYPESCRIPT = """import { x } from "y";

export interface Shape { area(): number }

export class Circle implements Shape {
  constructor(private r: number) {}

  area(): number {
    return Math.PI * this.r ** 2;
  }
}

export const twice = (n: number) => {
  return n * 2;
};

export default function main() {
  return twice(2);
}
"""

GO = """package store

import "fmt"

// Store keeps things.
type Store struct {
	items map[string]string
}

// Get returns one.
func (s *Store) Get(key string) string {
	return s.items[key]
}

func New() *Store {
	fmt.Println("new")
	return &Store{}
}
"""

OTHERS = {
    "javascript": ("class A {\n  run() {\n    return 1;\n  }\n}\nfunction b() {}\n", {"A", "A.run", "b"}),
    "tsx": ("export function View() {\n  return <p>hi</p>;\n}\n", {"View"}),
    "rust": (
        "struct P;\n\nimpl P {\n    /// Doc.\n    fn new() -> P {\n        P\n    }\n}\n\nfn main() {}\n",
        {"P", "P.new", "main"},
    ),
    "java": (
        "package a;\n\npublic class Box {\n    int n;\n    public int get() {\n        return n;\n    }\n}\n",
        {"Box", "Box.get"},
    ),
    "c": ("#include <x.h>\n\nstatic int add(int a, int b)\n{\n    return a + b;\n}\n", {"add"}),
    "cpp": (
        "namespace n {\nclass T {\n public:\n  int go() {\n    return 1;\n  }\n};\n}\n\nint n::T::stop() {\n  return 0;\n}\n",
        {"n", "n.T", "n.T.go", "n::T::stop"},
    ),
    "csharp": (
        "namespace N\n{\n    class C\n    {\n        void M()\n        {\n        }\n    }\n}\n",
        {"N", "N.C", "N.C.M"},
    ),
    "ruby": ("module M\n  class C\n    def go\n      1\n    end\n  end\nend\n", {"M", "M.C", "M.C.go"}),
    "php": ("<?php\nclass C {\n    public function go() {\n        return 1;\n    }\n}\n", {"C", "C.go"}),
    "bash": ("set -e\n\ngo() {\n  echo hi\n}\n\ngo\n", {"go"}),
    "sql": ("CREATE TABLE t (id int);\n\nSELECT 1;\n", {"t"}),
}


def symbols(text: str, language: str) -> list[tuple[str | None, str]]:
    return [(d.symbol, text[d.start : d.end].strip().split("\n")[0]) for d in definitions(text, language)]


def test_python_functions_classes_and_methods():
    assert symbols(PYTHON, "python") == [
        (None, '"""Module words."""'),
        ("helper", "# Explains the helper."),
        ("Basket", "@decorated("),
        ("Basket.add", "def add(self, item):"),
        ("Basket.weight", "@property"),
        ("Basket.Label", "class Label:"),
        ("Basket.Label.text", "def text(self):"),
        ("main", "async def main():"),
        (None, 'if __name__ == "__main__":'),
    ]
    paths = {d.symbol: d.ast_path for d in definitions(PYTHON, "python")}
    assert (
        paths["Basket.Label.text"]
        == "class_definition:Basket/class_definition:Label/function_definition:text"
    )


def test_typescript_classes_methods_and_exported_functions():
    assert symbols(TYPESCRIPT, "typescript") == [
        (None, 'import { x } from "y";'),
        ("Shape", "export interface Shape { area(): number }"),
        ("Circle", "export class Circle implements Shape {"),
        ("Circle.constructor", "constructor(private r: number) {}"),
        ("Circle.area", "area(): number {"),
        ("twice", "export const twice = (n: number) => {"),
        ("main", "export default function main() {"),
    ]


def test_go_functions_types_and_methods_by_their_receiver():
    assert symbols(GO, "go") == [
        (None, "package store"),
        ("Store", "// Store keeps things."),
        ("Store.Get", "// Get returns one."),
        ("New", "func New() *Store {"),
    ]


@pytest.mark.parametrize("language", sorted(OTHERS))
def test_the_other_grammars_find_their_definitions(language):
    text, expected = OTHERS[language]
    assert {symbol for symbol, _ in symbols(text, language) if symbol} == expected


def test_every_grammar_is_tried_here():
    assert set(GRAMMARS) == {"python", "typescript", "go", *OTHERS}


def chunked(text: str, mime_type: str, name: str):
    units = code.units(text, Source(b"", mime_type, name))
    return list(chunk(Extracted(text, units), language="en"))


def test_a_chunk_of_code_says_file_lines_symbol_and_path():
    chunks = {item.locator["symbol"]: item for item in chunked(PYTHON, "text/x-python", "shop/basket.py")}
    weight = chunks["Basket.weight"]
    assert weight.text == "    @property\n    def weight(self):\n        return sum(self)"
    assert weight.heading_path == "Basket > weight"
    assert weight.locator == {
        "kind": "code", "path": "shop/basket.py", "lineStart": 25, "lineEnd": 27, "symbol": "Basket.weight",
        "astPath": "class_definition:Basket/function_definition:weight",
        "charStart": PYTHON.index("    @property"), "charEnd": PYTHON.index("sum(self)") + 9,
    }  # fmt: skip
    for item in chunks.values():
        lines = PYTHON.split("\n")[item.locator["lineStart"] - 1 : item.locator["lineEnd"]]
        assert "\n".join(lines).strip() == item.text.strip()


def test_a_long_function_is_cut_by_its_lines_and_keeps_its_symbol():
    rng = random.Random(1)
    body = "\n".join(f"    total_{n} = compute({rng.randrange(999)}, 'step {n}')" for n in range(300))
    chunks = chunked(f"def long():\n{body}\n", "text/x-python", "a.py")
    assert len(chunks) > 5
    assert {item.locator["symbol"] for item in chunks} == {"long"}


def test_an_edit_in_one_method_changes_that_method_only():
    methods = "\n\n".join(f"    def method_{n}(self):\n        return {n}" for n in range(200))
    text = f"class Wide:\n{methods}\n"
    before = {item.text_hash for item in chunked(text, "text/x-python", "a.py")}
    after = {
        item.text_hash for item in chunked(text.replace("return 77", "return -1"), "text/x-python", "a.py")
    }
    assert len(before) > 190
    assert len(after - before) == 1


@pytest.mark.parametrize(("mime_type", "name"), [("text/plain", "a.kt"), ("application/x-yaml", "a.yaml")])
def test_a_language_without_a_grammar_is_cut_by_its_lines(mime_type, name):
    text = "\n".join(f"key_{n}: value {n * n}" for n in range(500))
    chunks = chunked(text, mime_type, name)
    assert len(chunks) > 5
    assert all(item.locator["symbol"] is None and item.locator["lineStart"] for item in chunks)


def test_code_without_line_breaks_is_not_taken_apart():
    minified = "".join(f"function f{n}(a){{return a+{n}}}" for n in range(2000))
    assert len(definitions(minified, "javascript")) == 1


def test_half_a_file_still_gives_what_is_whole():
    for text, language in ((PYTHON, "python"), (TYPESCRIPT, "typescript"), (GO, "go")):
        for end in range(0, len(text), 7):
            found = definitions(text[:end], language)
            assert "".join(text[d.start : d.end] for d in found) == text[:end]


@pytest.mark.parametrize("unit", ["(", "f(", "`"])
def test_brackets_without_end_are_no_code_and_cost_the_parser_nothing(monkeypatch, unit):
    monkeypatch.setattr(code_chunks, "_parser", None)  # whoever asks for it fails
    text = unit * (60_000 if "(" in unit else 700_000)
    assert [(found.start, found.end, found.symbol) for found in definitions(text, "python")] == [
        (0, len(text), None)
    ]
