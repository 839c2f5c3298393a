"""A query parameter nobody knows is refused, not ignored: who misspells a filter would take everything for what they asked."""

from collections.abc import Iterator
from typing import Any, cast

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel

from gateway.errors import fields_invalid


async def known_parameters(request: Request) -> None:
    """For every route that only our own callers use; what vendors call carries parameters of theirs."""
    if not request.scope["query_string"]:
        return
    known = _declared(cast("APIRoute", request.scope["route"]))
    unknown = [] if known is None else [name for name in request.query_params if name not in known]
    if unknown:
        message = f"There is no such parameter here; known are {', '.join(sorted(known or ())) or 'none'}"
        raise fields_invalid(
            {"loc": ("query", name), "msg": message, "type": "extra_forbidden"} for name in unknown
        )


def _declared(route: APIRoute) -> frozenset[str] | None:
    """The names a route takes; None where a model takes them, which refuses others itself."""
    fields = list(_fields(route.dependant))
    if any(_is_model(field.field_info.annotation) for field in fields):
        return None
    return frozenset(field.alias for field in fields)


def _fields(dependant: Dependant) -> Iterator[Any]:
    yield from dependant.query_params
    for inner in dependant.dependencies:
        yield from _fields(inner)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
