"""How Google words things: errors with their reasons, times, partial answers."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.responses import JSONResponse

Json = dict[str, Any]


class GoogleError(Exception):
    """An answer in the envelope of `vendors.md` B3. The `errors` array is what clients look into."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        *,
        domain: str = "global",
        location: str | None = None,
        headers: Mapping[str, str] | None = None,
        detail: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message
        self.domain, self.location = domain, location
        self.headers = dict(headers or {})
        self.detail = detail  # the reason newer back ends give beside it

    def answer(self) -> JSONResponse:
        entry: Json = {"domain": self.domain, "reason": self.reason, "message": self.message}
        if self.location is not None:
            header = self.location == "Authorization"
            entry |= {"locationType": "header" if header else "parameter", "location": self.location}
        body: Json = {"code": self.status, "message": self.message, "errors": [entry]}
        if self.detail is not None:
            told = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": self.detail}
            body |= {"status": "PERMISSION_DENIED", "details": [told]}
        return JSONResponse({"error": body}, status_code=self.status, headers=self.headers)


def not_found(message: str, *, location: str | None = None) -> GoogleError:
    return GoogleError(404, "notFound", message, location=location)


def bad_request(message: str, *, location: str | None = None) -> GoogleError:
    return GoogleError(400, "invalid", message, location=location)


def rate_limited(status: int, retry_after: float | None) -> GoogleError:
    headers = {} if retry_after is None else {"Retry-After": f"{max(1, round(retry_after))}"}
    if status == 403:
        return GoogleError(
            403, "userRateLimitExceeded", "User Rate Limit Exceeded", domain="usageLimits", headers=headers
        )
    return GoogleError(
        status, "rateLimitExceeded", "Rate Limit Exceeded", domain="usageLimits", headers=headers
    )


def stamp(at: datetime) -> str:
    """RFC 3339 in UTC, to the millisecond."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)


# -- partial answers: `a,b(c,d),e/f,*`

_WORD = re.compile(r"[A-Za-z0-9_*-]+|[(),/]")


def chosen(answer: Json, fields: str) -> Json:
    """What of an answer a `fields` parameter asks for."""
    words = _WORD.findall(fields)
    if "".join(words) != fields.replace(" ", ""):
        raise bad_request(f"Invalid field selection {fields}", location="fields")
    mask, rest = _mask(words)
    if rest:
        raise bad_request(f"Invalid field selection {fields}", location="fields")
    return _masked(answer, mask)


def _mask(words: list[str]) -> tuple[Json, list[str]]:
    mask: Json = {}
    while words and words[0] != ")":
        node = mask
        name, words = words[0], words[1:]
        while words and words[0] == "/":
            node = node.setdefault(name, {})
            name, words = words[1], words[2:]
        inner: Json = {}
        if words and words[0] == "(":
            inner, words = _mask(words[1:])
            words = words[1:]
        node.setdefault(name, {}).update(inner)
        if words and words[0] == ",":
            words = words[1:]
    return mask, words


def _masked(value: Any, mask: Json) -> Any:
    if not mask or (set(mask) == {"*"} and not mask["*"]):
        return value
    if isinstance(value, list):
        return [_masked(each, mask) for each in value]
    if not isinstance(value, dict):
        return value
    found: Json = {}
    for name, each in value.items():
        if name in mask:
            found[name] = _masked(each, mask[name])
        elif "*" in mask:
            found[name] = _masked(each, mask["*"])
    return found
