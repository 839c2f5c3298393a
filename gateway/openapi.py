"""The description of the API as it is: who may ask, and how every refusal looks. Said here once, for every route there is."""

from typing import Any

from fastapi import FastAPI

from gateway.errors import (
    CatchmentError,
    Conflict,
    FieldsInvalid,
    InvalidRequest,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    StoreUnavailable,
    TooLarge,
    UnsupportedContent,
)
from gateway.tenancy.access import SESSION_COOKIE, VENDORS_DOORS

_METHODS = {"get", "put", "post", "patch", "delete"}
_ALWAYS = (
    InvalidRequest,
    NotAuthenticated,
    NotAllowed,
    NotFound,
    FieldsInvalid,
    CatchmentError,
    StoreUnavailable,
)
_OF_CHANGES = (Conflict,)
_OF_BODIES = (TooLarge, UnsupportedContent)

_FIELD = {
    "type": "object",
    "required": ["field", "message", "type"],
    "properties": {
        "field": {"type": "string", "description": "where it stands, as body.metadata or query.limit"},
        "message": {"type": "string"},
        "type": {"type": "string"},
    },
}
_PROBLEM = {
    "type": "object",
    "description": "RFC 9457. Branch on `code`: it is stable. Some codes carry members of their own.",
    "required": ["type", "title", "status", "detail", "instance", "code", "requestId"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string", "description": "belongs to the code"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "what happened this time, and what to do about it"},
        "instance": {"type": "string"},
        "code": {"type": "string"},
        "requestId": {"type": "string"},
        "errors": {
            "type": "array",
            "items": _FIELD,
            "description": "with code request.invalid and status 422",
        },
    },
    "additionalProperties": True,
}
_SECURITY = {
    "key": {"type": "http", "scheme": "bearer", "description": "a key of a user or a service"},
    "session": {"type": "apiKey", "in": "cookie", "name": SESSION_COOKIE, "description": "the console's own"},
}


class Described(FastAPI):
    """An application whose description says what `gateway/http.py` and the access checks do around every route."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = _completed(super().openapi())
        return self.openapi_schema


def _completed(described: dict[str, Any]) -> dict[str, Any]:
    components = described["components"]
    for framework_own in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(framework_own, None)
    components["schemas"]["Problem"] = _PROBLEM
    components["securitySchemes"] = _SECURITY
    components["responses"] = {
        kind.__name__: {"description": kind.title(), "content": _problem()}
        for kind in (*_ALWAYS, *_OF_CHANGES, *_OF_BODIES)
    }
    described["security"] = [{name: []} for name in _SECURITY]
    for path, operations in described["paths"].items():
        for method in _METHODS & operations.keys():
            _complete(operations[method], method)
            if path.replace("{authority}", "msft") in VENDORS_DOORS:
                operations[method]["security"] = []
    return described


def _complete(operation: dict[str, Any], method: str) -> None:
    kinds = [*_ALWAYS]
    kinds += _OF_CHANGES if method != "get" else ()
    kinds += _OF_BODIES if "requestBody" in operation else ()
    for kind in sorted(kinds, key=lambda kind: kind.status):
        operation["responses"][str(kind.status)] = {"$ref": f"#/components/responses/{kind.__name__}"}


def _problem() -> dict[str, Any]:
    return {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
