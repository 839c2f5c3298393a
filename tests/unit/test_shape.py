"""The house keeps its shape: sizes, names, and who may do what. Everything here is read from the source."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from gateway.corpus.schemas import DocumentPatch

ROOT = Path(__file__).parents[2]
PACKAGES = ("gateway", "workers", "connectors")
IDEMPOTENCY_COLUMNS = {"content_hash", "fingerprint", "revision", "blob_sha256"}

LONGEST_FILE = 700
LONGEST_FUNCTION = 60
# Longer, and better so: each with its reason.
LONG_FUNCTIONS: dict[str, str] = {}

# What a room may hold beyond models, schemas, repository, service, routes and errors, and why it is a file of its own.
ROOMS: dict[str, dict[str, str]] = {
    "ingestion": {
        "facade": "the one door",
        "hashing": "content hash and fingerprint",
        "bell": "the doorbell",
        "events": "domain events",
        "consumer": "the one consumer of them",
        "snapshots": "a user, a mandate, a feature in a few words",
        "benchmark": "the rate of the whole path",
    },
    "corpus": {
        "blobs": "original bytes",
        "sniffing": "what bytes are",
        "erasure": "removing everything of a subject",
        "export": "everything about a user as an archive",
        "lexicon": "the lexical index of a mandate",
        "lexical": "its packed form and its scores",
        "fusion": "one ranking from two legs",
        "evaluation": "how good a ranking is",
        "search": "both legs, fused and shown with their sources",
        "shelves": "what of the lexical index is kept in memory",
        "citations": "where a passage came from",
        "highlights": "the words asked for and the place of a passage, as people see them",
        "context": "a ready block for a model",
        "candidates": "what a mandate offers for a query",
        "phrases": "words between quotation marks",
        "relevance": "whether a passage is about the question at all",
        "calibration": "the scale of an embedder",
        "boundary": "the line between our words and a document's",
        "chat": "a model that answers",
        "answers": "answers with their citations",
        "entries": "what people write by hand",
        "masking": "spans and placeholders",
        "needles": "which of many strings can stand in a text",
        "field_names": "what fields of forms and tables are called",
        "originals": "who may have the bytes as they came",
        "descriptions": "titles, tags and metadata without secrets",
        "secrets": "the secret detector",
        "embedders": "text to vectors",
        "personal_data": "personal data in four languages",
        "pictures": "PDF pages with the cited region",
        "synthetic": "made-up passages for benchmarks",
        "benchmarks": "how good and how fast search is",
        "rerankers": "a second opinion on the order of hits",
        "loading": "passages for benchmarks",
        "child": "the limited parser child",
    },
    "tenancy": {"access": "who is asking", "principal": "what they may"},
    "connections": {
        "vault": "sealed values, bound to their place",
        "vendors": "our applications at the vendors",
        "tokens": "access tokens, renewed once per expiry",
        "places": "where a surface works",
        "rate_window": "a vendor's limits, shared by every process",
        "waiting": "who must act before a surface moves",
    },
    "sources": {},
    "knowledge": {},
    "insights": {"query_log": "notes of searches, written behind them"},
    "console": {
        "templates": "pages",
        "static": "styles and scripts",
        "visits": "who is looking, and what a refusal looks like",
        "words": "two languages",
        "english": "names of our vocabulary",
        "german": "the German dictionary",
        "charts": "pictures of numbers",
        "passages": "passages as people read them",
        "activity": "the log of one mandate",
        "rules": "what a connection brings in, as a form",
    },
}
SHAPE = {"__init__", "models", "schemas", "repository", "service", "routes", "errors"}
# A large room has several of one shape, each with its subject in front.
PART = re.compile(r"\w+_(models|schemas|repository|service|routes)\.py|\w+\.sql")
# Rooms that are no noun of the domain.
OTHER_ROOMS = {"commands", "embedded"}
VAGUE = re.compile(r"(^|_)(utils?|helpers?|common|misc|manager|base|core|shared)(_|$)")

# SQL outside a repository, and why.
SQL_ELSEWHERE = {
    "gateway/db.py": "sets up the session: tenant, role, the check of the role",
    "gateway/migration.py": "looks for roles and extension before there is a schema",
}
# A commit that is its own edge.
COMMITS = {
    "gateway/migration.py": "the migration run is the transaction",
    "gateway/db.py": "a `tenant_connection` block is one, like a session's",
}

_STATEMENT = re.compile(
    r"""\s*(?:--[^\n]*\n\s*)*(?:
    SELECT\s | INSERT\ INTO\s | UPDATE\s+\S+(?:\s+\w+)?\s+SET\s | DELETE\ FROM\s | TRUNCATE\s | MERGE\ INTO\s
    | WITH\s+(?:RECURSIVE\s+)?\w+(?:\s*\([^)]*\))?\s+AS\s
    | COPY\s+\S+\s | SET\ LOCAL\s
    | (?:CREATE|ALTER|DROP)\s+(?:TEMP\s|UNIQUE\s|OR\ REPLACE\s)*
      (?:TABLE|INDEX|ROLE|POLICY|DATABASE|EXTENSION|SEQUENCE|VIEW|FUNCTION|TYPE|SCHEMA|TRIGGER)\b
    )""",
    re.VERBOSE,
)


def _files(*folders: str) -> list[Path]:
    return sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py"))


def _name(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


@cache
def _nodes(file: Path) -> list[ast.AST]:
    return list(ast.walk(_tree(file)))


# -- sizes


def test_no_file_is_over_700_lines() -> None:
    files = _files(*PACKAGES, "migrations", "tests", "wiki")
    assert [_name(file) for file in files if len(file.read_text().splitlines()) > LONGEST_FILE] == []


def _functions(file: Path) -> Iterator[tuple[str, int]]:
    for node in _nodes(file):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{_name(file)}::{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def test_no_function_is_over_60_lines() -> None:
    long = {
        name for file in _files(*PACKAGES) for name, lines in _functions(file) if lines > LONGEST_FUNCTION
    }
    assert long == set(LONG_FUNCTIONS)


# -- names


def test_every_noun_has_the_same_shape() -> None:
    rooms = {
        path.name for path in (ROOT / "gateway").iterdir() if path.is_dir() and path.name != "__pycache__"
    }
    assert rooms - OTHER_ROOMS <= set(ROOMS)
    stray = [
        f"{room}/{path.name}"
        for room in rooms - OTHER_ROOMS
        for path in (ROOT / "gateway" / room).iterdir()
        if path.name != "__pycache__"
        and path.stem not in SHAPE | set(ROOMS[room])
        and not PART.fullmatch(path.name)
    ]
    assert stray == []


def test_no_file_has_a_vague_name() -> None:
    assert [_name(file) for file in _files(*PACKAGES, "migrations", "tests") if VAGUE.search(file.stem)] == []


def test_every_module_says_why_it_exists() -> None:
    silent = [
        _name(file)
        for file in _files(*PACKAGES, "migrations", "tests")
        if _tree(file).body and not ast.get_docstring(_tree(file))
    ]
    assert silent == []


# -- SQL


def _docstrings(file: Path) -> set[int]:
    return {
        id(node.body[0].value)
        for node in _nodes(file)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }


@cache
def _texts(file: Path) -> list[str]:
    """String literals that are not docstrings; the holes of f-strings show as `{}`."""
    found: list[str] = []
    left_out = _docstrings(file)
    for node in _nodes(file):
        if isinstance(node, ast.JoinedStr):
            left_out |= {id(part) for part in node.values}
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            found.append("".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            found.append(node.value)
    return found


def _holds_sql(file: Path) -> bool:
    return file.name.endswith("repository.py") or _name(file) in SQL_ELSEWHERE


@pytest.mark.parametrize(
    ("text", "is_sql"),
    [
        ("SELECT 1", True),
        ("\n  WITH due AS (SELECT 1)", True),
        ("UPDATE document d SET x = 1", True),
        ('UPDATE "user" SET x = 1', True),
        ("INSERT INTO {} (a)", True),
        ("CREATE TEMP TABLE x ()", True),
        ("-- why\nDELETE FROM x", True),
        ("SET LOCAL ROLE x", True),
        ("Select a mandate first.", False),
        ("Create a key", False),
        ("With a key", False),
        ("DELETE", False),
        ("UPDATE of a row", False),
    ],
)
def test_sql_is_told_from_prose(text: str, is_sql: bool) -> None:
    assert bool(_STATEMENT.match(text)) == is_sql


def test_sql_lives_in_repositories() -> None:
    found = [
        f"{_name(file)}: {text.strip()[:60]}"
        for file in _files(*PACKAGES)
        if not _holds_sql(file)
        for text in _texts(file)
        if _STATEMENT.match(text)
    ]
    assert found == []


def test_queries_are_built_in_repositories() -> None:
    builders = {"select", "insert", "update", "delete", "text"}
    found = [
        f"{_name(file)}: from {node.module} import {alias.name}"
        for file in _files(*PACKAGES)
        if not _holds_sql(file)
        for node in _nodes(file)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sqlalchemy")
        for alias in node.names
        if alias.name in builders
    ]
    assert found == []


def test_the_exceptions_still_hold_sql() -> None:
    assert all(any(map(_STATEMENT.match, _texts(ROOT / name))) for name in SQL_ELSEWHERE)


# -- who may do what


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def test_commits_happen_at_the_edge() -> None:
    found = {_name(file) for file in _files(*PACKAGES) for node in _nodes(file) if _called(node) == "commit"}
    assert found == set(COMMITS)


def test_only_the_facade_writes_documents() -> None:
    """Callers of the functions that write the idempotency columns; the exact list is the point."""
    writers = {"insert_documents", "renew_documents", "renew_revisions"}
    callers = {
        _name(file)
        for file in _files(*PACKAGES)
        for node in _nodes(file)
        if (isinstance(node, ast.Attribute) and node.attr in writers)
        or (isinstance(node, ast.Name) and node.id in writers)
        or (isinstance(node, ast.ImportFrom) and {alias.name for alias in node.names} & writers)
    }
    assert callers == {"gateway/ingestion/facade.py"}


def _written_columns(sql: str) -> set[str]:
    """Columns of `document` a statement writes."""
    found: set[str] = set()
    for columns in re.findall(r"INSERT INTO document \(([^)]*)\)", sql):
        found |= set(re.findall(r"\w+", columns))
    for assignments in re.findall(
        r"UPDATE document(?: \w+)? SET (.*?)(?:\bFROM\b|\bWHERE\b|$)", sql, re.DOTALL
    ):
        found |= set(re.findall(r"(?:^|,)\s*(\w+)\s*=", assignments))
    return found


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("UPDATE document d SET status = r.status, revision = d.revision + 1 FROM r", {"status", "revision"}),
        ("UPDATE document SET indexed_hash = content_hash WHERE revision = 1", {"indexed_hash"}),
        ("INSERT INTO document (mandate_id, content_hash) SELECT", {"mandate_id", "content_hash"}),
        ("UPDATE document_text SET fingerprint = 1", set()),
    ],
)
def test_written_columns_are_recognised(sql: str, columns: set[str]) -> None:
    assert _written_columns(sql) == columns


def test_idempotency_columns_are_written_by_the_facades_sql_alone() -> None:
    writers = {
        _name(file)
        for file in _files(*PACKAGES)
        for text in _texts(file)
        if _written_columns(text) & IDEMPOTENCY_COLUMNS
    }
    assert writers == {"gateway/ingestion/repository.py"}
    assert not set(DocumentPatch.model_fields) & IDEMPOTENCY_COLUMNS


# -- tests


def _is_zero(arguments: list[ast.expr]) -> bool:
    return len(arguments) == 1 and isinstance(arguments[0], ast.Constant) and arguments[0].value == 0


def test_no_test_sleeps_without_saying_why() -> None:
    """On the same line or the one above; `noqa` is not a reason. `sleep(0)` only gives the loop a turn."""

    def has_reason(line: str) -> bool:
        comment = line.partition("#")[2].strip()
        return bool(comment) and not comment.startswith(("noqa", "type:", "pyright:"))

    found: list[str] = []
    for file in _files("tests"):
        lines = file.read_text().splitlines()
        for node in _nodes(file):
            if _called(node) == "sleep" and isinstance(node, ast.Call) and not _is_zero(node.args):
                above = lines[node.lineno - 2].strip() if node.lineno > 1 else ""
                if not has_reason(lines[node.lineno - 1]) and not (
                    above.startswith("#") and has_reason(above)
                ):
                    found.append(f"{_name(file)}:{node.lineno}")
    assert found == []


def test_no_test_is_skipped() -> None:
    skips = re.compile(r"pytest\.(mark\.(skip|xfail)|skip\(|importorskip|xfail\()")
    own = Path(__file__).with_name(
        "test_packaging.py"
    )  # its samples are skipped on purpose, in a run of their own
    files = [file for file in _files("tests") if file not in {Path(__file__), own}]
    assert [_name(file) for file in files if skips.search(file.read_text())] == []
