"""The error tree is what its docstring draws, and what clients branch on stays stable."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr, ValidationError

import gateway.errors
from gateway.app import create_app
from gateway.errors import CatchmentError, NotFound, _message, all_error_types, fields_invalid
from gateway.ingestion.schemas import IngestionRequest
from gateway.settings import Settings
from gateway.tenancy.schemas import UserIn

OURS = [kind for kind in all_error_types() if kind.__module__ == "gateway.errors"]


def test_the_drawn_tree_is_the_real_one() -> None:
    drawn: list[tuple[str, int, int, str]] = []
    for line in (gateway.errors.__doc__ or "").splitlines():
        found = re.match(r"^([ │├└─]*)(\w+)\s+(\d{3}) (\S+)$", line)
        if found:
            depth = (len(found.group(1)) - 4) // 4
            drawn.append((found.group(2), depth, int(found.group(3)), found.group(4)))
    real = {kind.__name__: (len(kind.__mro__) - 4, kind.status, kind.code) for kind in OURS}
    assert {name: (depth, status, code) for name, depth, status, code in drawn} == real
    parents: list[str] = []
    for name, depth, _, _ in drawn:
        parents[depth:] = [name]
        kind = getattr(gateway.errors, name)
        assert depth == 0 or kind.__base__.__name__ == parents[depth - 1], name


def test_a_code_means_one_thing() -> None:
    """Two classes share a code only when one is a kind of the other."""
    for one in OURS:
        for other in OURS:
            if one is not other and one.code == other.code:
                assert issubclass(one, other) or issubclass(other, one), (one, other)


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.__name__)
def test_every_error_has_a_sentence_and_renders_as_a_problem(kind: type[CatchmentError]) -> None:
    assert kind.title().endswith(".")
    problem = kind("It was Tuesday.", field="x").problem("/v1/x", "r-1")
    assert problem == {
        "type": f"urn:catchment:error:{kind.code}",
        "title": kind.title(),
        "status": kind.status,
        "detail": "It was Tuesday.",
        "instance": "/v1/x",
        "code": kind.code,
        "requestId": "r-1",
        "field": "x",
    }


def test_without_a_detail_the_title_speaks() -> None:
    assert NotFound().detail == NotFound.title()


def _refused(model: type[BaseModel], **fields: Any) -> dict[str, str]:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(fields)
    return {one["field"]: one["message"] for one in fields_invalid(caught.value.errors()).extra["errors"]}


def test_a_field_that_is_not_there_is_not_named_when_its_name_is_no_name() -> None:
    class Strict(BaseModel, extra="forbid"):
        pass

    assert list(_refused(Strict, **{"password: Winter!Sun42": 1})) == ["…"]
    assert list(_refused(Strict, titel=1)) == ["titel"]


def test_people_are_told_what_a_field_takes_and_not_how_we_look() -> None:
    user = _refused(UserIn, email="ada", displayName="Ada", locale="English", timezone="Mars")
    assert user == {
        "email": "must be an address such as ada@example.org",
        "locale": "must be a language such as en or de-CH",
        "timezone": "must be a time zone such as Europe/Zurich",
    }
    assert _refused(IngestionRequest, sourceKind="paste", sourceId="a", content={"base64": "%"}) == {
        "content.base64": "base64 does not decode"
    }


def test_every_pattern_of_the_api_has_its_words(tmp_path: Path) -> None:
    """A new one is told in words too."""
    described = create_app(
        Settings(
            database_url=SecretStr("postgresql://nobody@localhost/none"),
            redis_url=SecretStr("redis://localhost"),
            data_dir=tmp_path,
        )
    ).openapi()
    patterns = set(re.findall(r'"pattern": ("(?:[^"\\\\]|\\\\.)*")', json.dumps(described)))
    assert len(patterns) >= 5
    told = [
        _message({"type": "string_pattern_mismatch", "ctx": {"pattern": json.loads(one)}}) for one in patterns
    ]
    assert "must be of the form that this field takes" not in told
