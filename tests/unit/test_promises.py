"""wiki/promises.md names a test for every promise that is built, and the test exists."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEPT, _, LATER = (ROOT / "wiki" / "promises.md").read_text().partition("\n## Not built yet\n")
REFERENCE = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def _sections(text: str) -> dict[int, str]:
    """Promise number → what the page says about it."""
    parts = re.split(r"^### (\d+)\. ", text, flags=re.MULTILINE)
    return {int(number): body for number, body in zip(parts[1::2], parts[2::2], strict=True)}


@cache
def _tests(path: str) -> set[str]:
    file = ROOT / path
    if not file.exists():
        return set()
    tree = ast.parse(file.read_text())
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def test_every_promise_of_the_design_is_listed_once() -> None:
    kept, later = _sections(KEPT), _sections(LATER)
    assert sorted([*kept, *later]) == list(range(1, 13))
    assert list(kept) == sorted(kept)
    assert list(later) == sorted(later)


def test_every_built_promise_has_a_test() -> None:
    assert [number for number, body in _sections(KEPT).items() if not REFERENCE.search(body)] == []


def test_every_named_test_exists() -> None:
    named = REFERENCE.findall(KEPT)
    assert named
    assert [f"{path}::{name}" for path, name in named if name not in _tests(path)] == []


def test_a_promise_that_is_not_built_names_no_test() -> None:
    assert REFERENCE.findall(LATER) == []
