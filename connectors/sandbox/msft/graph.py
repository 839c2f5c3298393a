"""How Graph is called and answers: paths in all their spellings, preferences, envelopes, errors."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from connectors.sandbox.msft.directory import User
    from connectors.sandbox.msft.world import MicrosoftWorld

Json = dict[str, Any]
JSON_TYPE = (
    "application/json;odata.metadata=minimal;odata.streaming=true;IEEE754Compatible=false;charset=utf-8"
)


class GraphError(Exception):
    def __init__(
        self,
        status: int,
        code: str,
        message: str = "",
        *,
        inner: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status, self.code, self.message = status, code, message or code
        self.inner, self.headers = inner, dict(headers or {})
        super().__init__(code)


@dataclass(kw_only=True)
class Reply:
    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(kw_only=True)
class Call:
    """One request, alone or out of a $batch. `path` is below the version, in its one normal spelling."""

    world: "MicrosoftWorld"
    user: "User"
    scopes: frozenset[str]
    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: Any = None

    @property
    def where(self) -> str:
        return f"{self.path}?{json.dumps(self.query)}"

    @cached_property
    def preferences(self) -> dict[str, str]:
        """Of all Prefer headers, joined with commas: names in lower case, values without quotation marks."""
        found: dict[str, str] = {}
        for part in self.headers.get("prefer", "").split(","):
            name, _, value = part.strip().partition("=")
            found[name.strip().lower()] = value.strip().strip('"')
        return found

    @property
    def immutable(self) -> bool:
        return self.preferences.get("idtype", "").lower() == "immutableid"

    def page_size(self, default: int, largest: int) -> int:
        asked = self.query.get("$top") or self.preferences.get("odata.maxpagesize") or default
        try:
            return max(1, min(int(asked), largest))
        except ValueError:
            raise GraphError(400, "BadRequest", "Invalid value for $top.") from None

    def struck(self, kind: str) -> bool:
        return self.world.faults.take(kind, path=self.where, method=self.method) is not None

    def link(self, path: str, query: Mapping[str, str]) -> str:
        pairs = "&".join(f"{name}={quote(value, safe='*')}" for name, value in query.items())
        return f"{self.world.url}/v1.0{path}" + (f"?{pairs}" if pairs else "")


_FUNCTION = re.compile(r"^(?:microsoft\.graph\.|oneDrive\.)?(\w+)(?:\((.*)\))?$")
_KEY = re.compile(r"^([A-Za-z]\w*)\('?(.+?)'?\)$")
_FUNCTIONS = {"delta", "getAllSites", "getAllMessages"}


def normal(raw_path: str, query: dict[str, str]) -> str:
    """One spelling for every path; the argument of a function lands in the query.

    Split before it is unquoted, so that an id may hold a slash.
    """
    parts: list[str] = []
    for raw in raw_path.strip("/").split("/"):
        segment = unquote(raw)
        function = _FUNCTION.match(segment)
        if function and function[1] in _FUNCTIONS:
            if argument := re.match(r"(\w+)='(.*)'$", function[2] or ""):
                query.setdefault(argument[1], argument[2])
            parts.append(function[1])
        elif key := _KEY.match(segment):
            parts += [key[1], key[2]]
        else:
            parts.append(segment)
    if parts and parts[0] == "me":
        parts[:1] = ["users", "me"]
    return "/" + "/".join(part.replace("/", "%2F") for part in parts)


def iso(when: datetime, number: int = 0) -> str:
    """Dates come in three precisions on the wire; which one depends on nothing a client may know."""
    when = when.astimezone(UTC)
    plain = when.strftime("%Y-%m-%dT%H:%M:%S")
    if number % 3 == 0:
        return f"{plain}Z"
    if number % 3 == 1:
        return f"{plain}.{when.microsecond // 1000:03d}Z"
    return f"{plain}.{when.microsecond:06d}0Z"


def parsed_time(text: str) -> datetime:
    """Any precision, with Z or an offset or none."""
    try:
        when = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text))
    except ValueError:
        raise GraphError(400, "BadRequest", f"Invalid time: {text}") from None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def selected(body: Json, query: Mapping[str, str]) -> Json:
    """`$select` keeps ids and annotations, as Graph does."""
    wanted = {name.strip() for name in query.get("$select", "").split(",") if name.strip()}
    if not wanted:
        return body
    return {name: value for name, value in body.items() if name == "id" or "@" in name or name in wanted}


def collection(call: Call, context: str, value: list[Any], next_link: str | None = None) -> Reply:
    body: Json = {"@odata.context": f"{call.world.url}/v1.0/$metadata#{context}", "value": value}
    if next_link:
        body["@odata.nextLink"] = next_link
    return Reply(body=body)


def listed(call: Call, context: str, rows: list[Any], *, size: int, path: str | None = None) -> Reply:
    """A plain paged collection: `$skiptoken` is a position, as opaque as the vendor's."""
    token = call.query.get("$skiptoken", "")
    start = int(token.removeprefix("s!")) if token else 0
    page = rows[start : start + size]
    if call.struck("empty_page"):
        page, size = [], 0
    more = None
    if start + size < len(rows) or (not size and rows):
        kept = {name: value for name, value in call.query.items() if name not in {"$skiptoken", "$skip"}}
        more = call.link(quote(path or call.path, safe="/:,!"), {**kept, "$skiptoken": f"s!{start + size}"})
    return collection(call, context, page, more)


def error_body(call_headers: Mapping[str, str], error: GraphError, *, request_id: str, now: datetime) -> Json:
    inner: Json = {
        "date": now.strftime("%Y-%m-%dT%H:%M:%S"),
        "request-id": request_id,
        "client-request-id": call_headers.get("client-request-id", request_id),
    }
    if error.inner:
        inner = {"code": error.inner, **inner}
    return {"error": {"code": error.code, "message": error.message, "innerError": inner}}
