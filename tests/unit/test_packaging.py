"""What a fresh machine needs is declared, pinned and printed."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
OURS = {"gateway", "connectors", "workers", "migrations", "tests", "wiki"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _names(requirements: list[str]) -> set[str]:
    found = (re.match(r"[A-Za-z0-9._-]+", requirement) for requirement in requirements)
    return {_normal(match.group()) for match in found if match}


def _pins() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    return {_normal(name): version for name, _, version in (line.partition("==") for line in lines)}


def test_constraints_are_exact_pins_and_name_no_index() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert [
        line for line in lines if not re.fullmatch(r"#.*|[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.+!]*", line)
    ] == []
    assert not re.search(r"https?://|file:|--", "".join(lines))


def test_every_declared_dependency_is_pinned() -> None:
    assert (_names(PROJECT["dependencies"]) | _names(EXTRAS["dev"])) - set(_pins()) == set()


RIVALS = ROOT / "tests" / "bench"  # measured beside us, by hand, in an environment of their own


def _imports(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found - OURS - set(sys.stdlib_module_names)


@pytest.mark.parametrize(
    ("folder", "extras"),
    [
        ("gateway", ["minilm"]),
        ("connectors", []),
        ("workers", []),
        ("migrations", []),
        ("tests", ["dev", "minilm"]),
    ],
)
def test_every_import_is_a_declared_dependency(folder: str, extras: list[str]) -> None:
    declared = _names(PROJECT["dependencies"] + [item for extra in extras for item in EXTRAS[extra]])
    provided = packages_distributions()
    undeclared = {
        f"{file.relative_to(ROOT)}: {module}"
        for file in (ROOT / folder).rglob("*.py")
        if file.parent != RIVALS
        for module in _imports(file)
        if not declared & {_normal(name) for name in provided.get(module, [])}
    }
    assert undeclared == set()


def _make(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)


def test_make_alone_prints_every_target_with_its_purpose() -> None:
    targets = re.findall(r"^\.PHONY: (\S+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    printed = dict(line.split(maxsplit=1) for line in _make().stdout.splitlines())
    assert list(printed) == targets
    assert {"setup", "up", "test", "acceptance", "acceptance-full", "lint", "types", "bench", "clean"} <= set(
        printed
    )


def test_make_test_runs_lint_types_contracts_and_every_test() -> None:
    commands = _make("--dry-run", "--always-make", "test").stdout
    for command in (
        'pip install --disable-pip-version-check --quiet --no-compile -c constraints.txt -e ".[dev]"',
        "ruff check .",
        "ruff format --check .",
        "lint-imports",
        "basedpyright",
        "pytest -p tests.fixtures.no_skips -n 2 --dist loadfile",
    ):
        assert command in commands


def test_continuous_integration_runs_what_a_developer_runs() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    commands = [line for line in script.read_text().splitlines() if not line.startswith("#")]
    assert commands == ["set -euo pipefail", 'cd "$(dirname "$0")/.."', "make test"]


SKIPPED = "import pytest\n@pytest.mark.skip\ndef test_it(): pass\ndef test_other(): pass"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("def test_it(): pass", pytest.ExitCode.OK),
        (SKIPPED, pytest.ExitCode.TESTS_FAILED),
        ("import pytest\npytest.skip(allow_module_level=True)", pytest.ExitCode.TESTS_FAILED),
        ("import pytest\n@pytest.mark.xfail\ndef test_it(): assert False", pytest.ExitCode.TESTS_FAILED),
    ],
)
def test_a_run_that_leaves_a_test_out_is_red(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, body: str, code: pytest.ExitCode
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(body)
    done = pytester.runpytest_inprocess("-p", "tests.fixtures.no_skips")
    assert done.ret == code
    assert ("nothing may be left out" in str(done.stdout)) == (code != pytest.ExitCode.OK)


def test_a_run_over_several_processes_notices_it_too(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(SKIPPED)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    done = pytester.runpytest_subprocess("-p", "tests.fixtures.no_skips", "-p", "xdist", "-n", "1")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    assert "1 skipped: nothing may be left out" in str(done.stdout)
