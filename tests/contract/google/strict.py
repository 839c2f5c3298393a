"""The discovery documents of the installed client as strict JSON Schema: nothing unknown, and numbers as Google sends them."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import googleapiclient
from jsonschema import Draft202012Validator

DOCUMENTS = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
# 64-bit numbers travel as strings.
FORMATS = {
    "int64": r"^-?\d{1,19}$",
    "uint64": r"^\d{1,20}$",
    "date-time": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$",
    "date": r"^\d{4}-\d\d-\d\d$",
}


@cache
def document(api: str) -> dict[str, Any]:
    return json.loads((DOCUMENTS / f"{api}.json").read_text())


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return {"$ref": f"#/$defs/{schema['$ref']}"}
    kind = schema.get("type", "any")
    if kind == "any":
        return {}
    if kind == "array":
        return {"type": "array", "items": _strict(schema["items"])}
    if kind == "object":
        extra = schema.get("additionalProperties")
        return {
            "type": "object",
            "properties": {name: _strict(value) for name, value in schema.get("properties", {}).items()},
            "additionalProperties": _strict(extra) if isinstance(extra, dict) else False,
        }
    found: dict[str, Any] = {"type": kind}
    if kind == "string" and schema.get("format") in FORMATS:
        found["pattern"] = FORMATS[schema["format"]]
    if "enum" in schema:
        found["enum"] = schema["enum"]
    return found


def methods(node: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every method by its id, however deep its resource lies."""
    found = {method["id"]: method for method in node.get("methods", {}).values()}
    for resource in node.get("resources", {}).values():
        found |= methods(resource)
    return found


def problems(api: str, method_id: str, answer: Any) -> list[str]:
    told = document(api)
    method = methods(told)[method_id]
    if "response" not in method:
        return [] if answer in ("", b"", None) else [f"{method_id} should answer nothing"]
    schema = {
        **_strict(method["response"]),
        "$defs": {name: _strict(each) for name, each in told["schemas"].items()},
    }
    return [
        f"{method_id} at {'/'.join(map(str, error.absolute_path))}: {error.message[:200]}"
        for error in Draft202012Validator(schema).iter_errors(answer)
    ]
