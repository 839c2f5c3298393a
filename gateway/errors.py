"""Every way a request can go wrong, as one tree.

    CatchmentError                      500 internal
    ├── InvalidRequest                  400 request.invalid
    │   ├── FieldsInvalid               422 request.invalid
    │   ├── ContentInvalid              422 content.invalid
    │   ├── EventInvalid                422 event.invalid
    │   └── CursorInvalid               400 cursor.invalid
    ├── NotAuthenticated                401 auth.required
    ├── NotAllowed                      403 auth.forbidden
    │   ├── CsrfRefused                 403 auth.csrf
    │   └── LegalHold                   409 erasure.held
    ├── NotFound                        404 not_found
    ├── MethodNotAllowed                405 method_not_allowed
    ├── Conflict                        409 conflict
    ├── TooLarge                        413 content.too_large
    ├── UnsupportedContent              415 content.unsupported
    ├── StoreUnavailable                503 store.unavailable
    └── ConfigurationError              500 configuration.invalid

A class's docstring is its title; `detail` says what happened this time and what to do about it. `code` is stable:
clients branch on it. Everything is rendered as RFC 9457 problem+json by `gateway/app.py`.
"""

import re
from collections.abc import Sequence
from typing import Any, ClassVar


class CatchmentError(Exception):
    """Something went wrong on our side."""

    code: str = "internal"  # of the class; a client sets what the service said
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, detail: str = "", **extra: Any) -> None:
        self.detail = detail or self.title()
        self.extra = extra
        super().__init__(self.detail)

    @classmethod
    def title(cls) -> str:
        return (cls.__doc__ or cls.__name__).strip()

    def problem(self, instance: str, request_id: str) -> dict[str, Any]:
        return {
            "type": f"urn:catchment:error:{self.code}",
            "title": self.title(),
            "status": self.status,
            "detail": self.detail,
            "instance": instance,
            "code": self.code,
            "requestId": request_id,
            **self.extra,
        }


class InvalidRequest(CatchmentError):
    """The request is not understood."""

    code = "request.invalid"
    status = 400


class FieldsInvalid(InvalidRequest):
    """The request's fields are not valid."""

    status = 422


_FORMS: dict[str, str] = {}


def of_form(pattern: str, words: str) -> str:
    """A pattern, with what is said to people instead of it: `must be …`."""
    _FORMS[pattern] = words
    return pattern


def fields_invalid(errors: Any) -> FieldsInvalid:
    """Says which field and why; never repeats what was sent, because that may be a secret."""
    found = [{"field": _field(one["loc"]), "message": _message(one), "type": one["type"]} for one in errors]
    first = f"{found[0]['field']}: {found[0]['message']}" if found else ""
    return FieldsInvalid(first, errors=found)


_NAME = re.compile(r"[\w\-/\[\]]{1,60}")


def _field(loc: Sequence[Any]) -> str:
    """Which of several forms a field has is in its place twice: once as its name, once as the form's."""
    pairs = zip(loc, (None, *loc), strict=False)
    parts = [part for part, before in pairs if part != before or isinstance(part, int)]
    # A field that is not there is called what the caller called it, and that may be anything.
    return ".".join(str(part) if _NAME.fullmatch(str(part)) else "…" for part in parts)


def _message(error: Any) -> str:
    if error["type"] == "string_pattern_mismatch":
        return f"must be {_FORMS.get(error['ctx']['pattern'], 'of the form that this field takes')}"
    return str(error["msg"]).removeprefix("Value error, ")


class ContentInvalid(InvalidRequest):
    """The content cannot be accepted."""

    code = "content.invalid"
    status = 422


class EventInvalid(InvalidRequest):
    """The event cannot be accepted."""

    code = "event.invalid"
    status = 422


class CursorInvalid(InvalidRequest):
    """The cursor is not one of ours."""

    code = "cursor.invalid"


class NotAuthenticated(CatchmentError):
    """Sign in or send a key."""

    code = "auth.required"
    status = 401


class NotAllowed(CatchmentError):
    """The key or user may not do that."""

    code = "auth.forbidden"
    status = 403


class CsrfRefused(NotAllowed):
    """The form's token is missing or stale."""

    code = "auth.csrf"


class LegalHold(NotAllowed):
    """A legal hold forbids erasing this."""

    code = "erasure.held"
    status = 409


class NotFound(CatchmentError):
    """There is no such thing here."""

    code = "not_found"
    status = 404


class MethodNotAllowed(CatchmentError):
    """The address exists, but not for that method."""

    code = "method_not_allowed"
    status = 405


class Conflict(CatchmentError):
    """That collides with what is already here."""

    code = "conflict"
    status = 409


class TooLarge(CatchmentError):
    """The content is larger than allowed."""

    code = "content.too_large"
    status = 413


class UnsupportedContent(CatchmentError):
    """Content of that kind is not accepted."""

    code = "content.unsupported"
    status = 415


class StoreUnavailable(CatchmentError):
    """A store is not reachable; try again shortly."""

    code = "store.unavailable"
    status = 503
    retryable = True


class ConfigurationError(CatchmentError):
    """The settings do not allow a start."""

    code = "configuration.invalid"


def all_error_types() -> list[type[CatchmentError]]:
    found: list[type[CatchmentError]] = [CatchmentError]
    for error in found:
        found.extend(error.__subclasses__())
    return found
