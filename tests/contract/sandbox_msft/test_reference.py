"""wiki/sandbox.md names everything one can order."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "wiki" / "sandbox.md").read_text()


def _source() -> str:
    files = [
        *(ROOT / "connectors" / "sandbox").glob("*.py"),
        *(ROOT / "connectors" / "sandbox" / "msft").glob("*.py"),
    ]
    return "\n".join(file.read_text() for file in files)


def test_every_fault_is_in_the_wiki() -> None:
    source = _source()
    kinds = set(re.findall(r'(?:struck|take)\(\s*"([a-z_]+)"', source))
    for group in re.findall(r"^(?:ANSWERED|BENT) = \((.*)\)", source, re.MULTILINE):
        kinds |= set(re.findall(r'"([a-z_]+)"', group))
    assert len(kinds) > 20
    assert {kind for kind in kinds if f"`{kind}`" not in PAGE} == set()


def test_every_route_is_in_the_wiki() -> None:
    routes = set(re.findall(r'\*route\("(/\w+)', _source()))
    assert len(routes) == 8
    assert {route for route in routes if not re.search(rf"`\w+ {route}[?` /]", PAGE)} == set()
