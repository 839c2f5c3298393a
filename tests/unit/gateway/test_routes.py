"""Every route says what it needs, or is on the short list of those open to everybody."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import SecretStr
from starlette.routing import Mount

from connectors.registry import AUTHORITIES
from gateway.app import create_app
from gateway.console.visits import Visiting
from gateway.settings import Settings
from gateway.tenancy.access import PROTECTED, VENDORS_DOORS, Needs

# Path → why anybody may ask.
PUBLIC = {
    "/healthz": "a process that answers says so",
    "/readyz": "load balancers have no key",
    "/metrics": "counts only; Prometheus has no key",
    "/language/{language}": "chooses what this browser is shown, and nothing else",
    "/login": "this is where one gets in",
    "/logout": "signing out twice is no error",
    "/static": "styles",
    "/v1/webhooks/{authority}": "a vendor's notification proves itself",
}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    return create_app(
        Settings(
            database_url=SecretStr("postgresql://nobody@localhost/none"),
            redis_url=SecretStr("redis://localhost"),
            data_dir=tmp_path_factory.mktemp("data"),
        )
    )


def _routes(routes: list[Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for route in routes:
        included = getattr(route, "original_router", None)
        if included is not None:
            yield from _routes(included.routes, prefix + route.include_context.prefix)
        else:
            yield prefix + route.path, route


def _demands(dependant: Dependant) -> list[Needs | Visiting]:
    found: list[Needs | Visiting] = [dependant.call] if isinstance(dependant.call, Needs | Visiting) else []
    return found + [need for inner in dependant.dependencies for need in _demands(inner)]


def test_every_route_declares_what_it_needs_or_is_public(app: FastAPI) -> None:
    undeclared: list[str] = []
    seen: set[str] = set()
    for path, route in _routes(app.routes):
        seen.add(path)
        if path in PUBLIC:
            continue
        if not isinstance(route, APIRoute) or len(_demands(route.dependant)) != 1:
            undeclared.append(path)
    assert undeclared == []
    assert len(seen) > 25
    assert set(PUBLIC) <= seen, "a public path that no longer exists"


def test_what_needs_a_principal_is_where_principals_are_found(app: FastAPI) -> None:
    """A demand outside the protected prefixes would find nobody; nothing protected is public."""
    for path, route in _routes(app.routes):
        protected = any(path == prefix or path.startswith(f"{prefix}/") for prefix in PROTECTED)
        protected &= path.replace("{authority}", "msft") not in VENDORS_DOORS
        if isinstance(route, APIRoute) and any(isinstance(n, Visiting) for n in _demands(route.dependant)):
            assert not protected, f"{path}: a page looks for its visitor itself"
            continue
        assert protected == (path not in PUBLIC), path
        assert not (protected and isinstance(route, Mount) and path != "/mcp")


def test_only_the_vendors_doors_are_open() -> None:
    assert {f"/v1/webhooks/{authority}" for authority in AUTHORITIES} == VENDORS_DOORS


def test_changing_something_needs_more_than_reading(app: FastAPI) -> None:
    """Searching and asking are questions, whatever their method."""
    questions = {"/v1/context", "/v1/answers", "/v1/search"}
    weak = [
        f"{sorted(route.methods)} {path}"
        for path, route in _routes(app.routes)
        if isinstance(route, APIRoute) and path.startswith("/v1/") and path not in questions
        for need in _demands(route.dependant)
        if isinstance(need, Needs)
        and route.methods & {"POST", "PATCH", "PUT", "DELETE"}
        and need.scope == "read"
    ]
    assert weak == []


def test_a_page_that_changes_something_checks_the_forms_token(app: FastAPI) -> None:
    pages = [
        (path, route, need)
        for path, route in _routes(app.routes)
        if isinstance(route, APIRoute)
        for need in _demands(route.dependant)
        if isinstance(need, Visiting)
    ]
    assert len(pages) > 20
    assert [path for path, route, need in pages if need.form != ("POST" in route.methods)] == []


def test_the_description_of_the_api_is_complete(app: FastAPI) -> None:
    described = app.openapi()["paths"]
    routes = {
        path for path, route in _routes(app.routes) if isinstance(route, APIRoute) and route.include_in_schema
    }
    assert {path for path in routes if path.startswith("/v1/")} - set(described) - {
        "/v1/openapi.json"
    } == set()


def test_the_description_says_who_may_ask_and_how_a_refusal_looks(app: FastAPI) -> None:
    described = app.openapi()
    components = described["components"]
    assert components["securitySchemes"]["key"]["scheme"] == "bearer"
    assert described["security"] == [{"key": []}, {"session": []}]
    assert {"code", "detail", "errors", "requestId"} <= set(components["schemas"]["Problem"]["properties"])
    assert "HTTPValidationError" not in str(described)
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            answers = operation["responses"]
            expected = {"400", "401", "403", "404", "422", "500", "503"}
            expected |= {"409"} if method != "get" else set()
            expected |= {"413", "415"} if "requestBody" in operation else set()
            assert expected <= set(answers), (method, path)
            for status in expected:
                answer = components["responses"][answers[status]["$ref"].rpartition("/")[2]]
                assert set(answer["content"]) == {"application/problem+json"}
            assert (operation.get("security") == []) == path.startswith("/v1/webhooks/")
    assert "application/octet-stream" in described["paths"]["/v1/blobs"]["post"]["requestBody"]["content"]


def test_the_description_holds_together(app: FastAPI) -> None:
    """Every reference leads somewhere, and nothing is described that nothing refers to."""
    text = json.dumps(app.openapi())
    referred = set(re.findall(r'"#/components/(\w+)/(\w+)"', text))
    components = app.openapi()["components"]
    there = {(kind, name) for kind in ("schemas", "responses") for name in components[kind]}
    assert referred == there


def test_the_pages_bring_their_files() -> None:
    console = Path(__file__).parents[3] / "gateway" / "console"
    for page in (console / "templates").glob("*.html"):
        text = page.read_text()
        scripts = re.findall("<script[^>]*>[^<]*", text)
        assert all(re.fullmatch(r'<script type="module" src="/static/[a-z]+\.js">', one) for one in scripts)
        assert re.findall(r"<[a-z]+[^>]*\son[a-z]+=", text) == []
        assert "style=" not in text
        assert "|safe" not in text
    assert (console / "static" / "console.css").exists()
