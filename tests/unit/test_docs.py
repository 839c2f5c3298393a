"""The wiki and the README say what the code does, or the build is red."""

import ast
import importlib.util
import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.routing import Match

from gateway.crashpoints import CRASH_POINTS
from gateway.ingestion.schemas import IngestionRequest
from gateway.logs import CATALOGUE
from gateway.metrics import METRICS
from gateway.settings import Settings

ROOT = Path(__file__).parents[2]
WIKI = ROOT / "wiki"
PAGES = sorted([*ROOT.glob("*.md"), *WIKI.rglob("*.md")])


def _load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("wiki_generate", WIKI / "generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATE = _load_generator()


@cache
def _commands() -> dict[str, Any]:
    import typer.main

    from gateway.commands.tree import app

    return dict(GENERATE.walk_commands(typer.main.get_command(app), "catchment"))


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


# -- the reference pages


@pytest.mark.parametrize("page", sorted(GENERATE.PAGES))
def test_generated_tables_are_up_to_date(page: str) -> None:
    assert (WIKI / f"{page}.md").read_text() == GENERATE.renewed(page), "run `make docs`"


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("settings", [f"CATCHMENT_{name.upper()}" for name in Settings.model_fields]),
        ("events", list(CATALOGUE)),
        ("metrics", list(METRICS)),
        ("crashpoints", list(CRASH_POINTS)),
    ],
)
def test_every_name_of_the_code_is_on_its_page(page: str, names: list[str]) -> None:
    text = (WIKI / f"{page}.md").read_text()
    assert [name for name in names if f"| `{name}` |" not in text] == []


def test_every_error_code_is_documented() -> None:
    text = (WIKI / "errors.md").read_text()
    errors = GENERATE.error_types()
    assert {"StoreUnavailable", "EmbedderUnavailable"} <= {error.__name__ for error in errors}
    assert [error.code for error in errors if f"| `{error.code}` | {error.status} |" not in text] == []


def test_every_command_is_documented() -> None:
    text = (WIKI / "commands.md").read_text()
    assert [command for command in _commands() if f"| `{command}` |" not in text] == []


def test_every_crash_point_is_used() -> None:
    used = {
        name
        for folder in ("gateway", "workers", "migrations")
        for file in (ROOT / folder).rglob("*.py")
        for name in re.findall(r"""\bcrash_point\(["']([\w.]+)["']\)""", file.read_text())
    }
    assert used == set(CRASH_POINTS)


# -- links


def _slug(heading: str) -> str:
    plain = re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def _prose(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def _links(page: Path) -> Iterator[tuple[str, str]]:
    for text, target in re.findall(r"\[([^]]*)\]\(([^)\s]+)\)", _prose(page)):
        if not re.match(r"[a-z]+:", target):
            yield text, target


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    def leads_somewhere(target: str) -> bool:
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.is_relative_to(ROOT) or not file.exists():
            return False
        return not anchor or anchor in {
            _slug(h) for h in re.findall(r"^#+ (.+)$", _prose(file), re.MULTILINE)
        }

    assert [target for _, target in _links(page) if not leads_somewhere(target)] == []


def _defined(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_names_that_link_to_code_are_defined_there(page: Path) -> None:
    wrong = [
        f"{text} in {target}"
        for text, target in _links(page)
        if target.endswith(".py")
        and (name := re.fullmatch(r"`(\w+)`", text))
        and name.group(1) not in _defined((page.parent / target).resolve())
    ]
    assert wrong == []


def test_every_page_is_reachable_from_the_readme() -> None:
    seen, waiting = set[Path](), [ROOT / "README.md", WIKI / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in seen:
            seen.add(page)
            targets = [(page.parent / target.partition("#")[0]).resolve() for _, target in _links(page)]
            waiting += [target for target in targets if target.suffix == ".md"]
    assert [_name(page) for page in PAGES if page not in seen] == []


# -- decisions


@pytest.mark.parametrize("page", sorted((WIKI / "decisions").glob("[0-9]*.md")), ids=lambda page: page.stem)
def test_a_decision_has_its_number_and_four_headings(page: Path) -> None:
    text = page.read_text()
    assert text.startswith(f"# {page.stem[:4]} ")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings == ["Context", "Decision", "Consequences", "Alternatives"]
    title = text.partition("\n")[0].removeprefix(f"# {page.stem[:4]} ")
    index = (WIKI / "decisions" / "README.md").read_text()
    assert re.search(rf"\[{page.stem[:4]}\]\({page.name}\) \| {re.escape(title)}", index)


# -- what readers type


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def _typed(page: Path) -> list[str]:
    lines = "\n".join(_blocks(page, "sh")).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def test_make_targets_in_the_pages_exist() -> None:
    targets = set(re.findall(r"^\.PHONY: (\S+)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        word
        for page in PAGES
        for line in _typed(page)
        if line.startswith("make ")
        for word in line.split()[1:]
        if "=" not in word
    }
    named |= {name for page in PAGES for name in re.findall(r"`make ([a-z-]+)", _prose(page))}
    assert {"up", "test"} <= named
    assert named <= targets


def _check_command(words: list[str]) -> str | None:
    """What is wrong with a command line, or None."""
    known = _commands()
    for length in range(len(words), 0, -1):
        command = known.get(" ".join(["catchment", *words[:length]]))
        if command is not None:
            options = {option for parameter in command.params for option in parameter.opts}
            unknown = [w for w in words[length:] if w.startswith("--") and w.partition("=")[0] not in options]
            return f"{' '.join(words)}: no option {unknown}" if unknown else None
    return f"there is no command {' '.join(words)}"


def test_catchment_commands_in_the_pages_exist() -> None:
    typed = [
        shlex.split(line)[1:]
        for page in PAGES
        for line in _typed(page)
        if re.match(r"(\.venv/bin/)?catchment ", line)
    ]
    mentioned = [
        shlex.split(mention)
        for page in PAGES
        for mention in re.findall(r"`catchment ([a-z][^`]*)`", _prose(page))
    ]
    assert any(words[0] == "ingest" for words in typed)
    assert [problem for words in [*typed, *mentioned] if (problem := _check_command(words))] == []


def test_the_readmes_requests_are_understood() -> None:
    from gateway.app import create_app

    somewhere = Settings(
        database_url=SecretStr("postgresql://nobody@/none"), redis_url=SecretStr("redis://none")
    )
    routes = create_app(somewhere).routes
    requests = [shlex.split(line) for line in _typed(ROOT / "README.md") if line.startswith("curl ")]
    assert len(requests) >= 2
    for words in requests:
        path = next(word for word in words if word.startswith("$URL")).removeprefix("$URL").partition("?")[0]
        body = words[words.index("-d") + 1] if "-d" in words else None
        scope = {"type": "http", "path": path, "root_path": "", "method": "POST" if body else "GET"}
        assert any(route.matches(scope)[0] is Match.FULL for route in routes), path
        if body:
            IngestionRequest.model_validate(json.loads(body))


def test_the_readmes_python_imports_what_is_public() -> None:
    import gateway

    blocks = _blocks(ROOT / "README.md", "python")
    assert blocks
    for block in blocks:
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom):
                assert node.module == "gateway"
                assert {alias.name for alias in node.names} <= set(gateway.__all__)
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "IngestionRequest":
                assert {keyword.arg for keyword in node.keywords} <= set(IngestionRequest.model_fields)


def test_no_page_names_a_machine() -> None:
    private = re.compile(r"(?<![\w.])/(?:root|home|work|Users)/|https?://(?:\d+\.){3}\d+")
    allowed = ("http://127.0.0.1", "http://localhost")
    found = [
        f"{_name(page)}: {match.group()}"
        for page in PAGES
        for match in private.finditer(page.read_text())
        if not match.group().startswith(allowed)
    ]
    assert found == []
