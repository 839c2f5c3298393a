"""What a connection brings in, as the form on its page says it.

A field that is left empty falls back to the mandate's word. Here a form becomes the patch that programs send, too; the
service judges it.
"""

import math
from collections.abc import Mapping
from typing import Any

from connectors.registry import SURFACES
from gateway.connections.schemas import ConnectionOut, effective_policy
from gateway.console.visits import Visit
from gateway.tenancy.schemas import Policy

MEGABYTE = 1024 * 1024
MOST_CHARACTERS = 10_000  # of a list
MOST = 10**12  # of anything that is counted

_MAIL = {"outlook", "gmail"}
_FILES = {"sharepoint", "onedrive", "drive"}
# The policy's names for what the form offers, and the surfaces it says something to; an empty set: all of them.
FIELDS: dict[str, set[str]] = {
    "mailTier": _MAIL,
    "mailWindowDays": _MAIL,
    "sites": {"sharepoint"},
    "libraries": {"sharepoint", "drive", "clickup"},
    "folders": _FILES,
    "fileTypes": _FILES,
    "maxFileBytes": _FILES,
    "maxItems": set(),
}
_LISTS = {"sites", "libraries", "folders", "fileTypes"}


def offered(connection: ConnectionOut) -> list[str]:
    return [name for name, parts in FIELDS.items() if not parts or parts & set(connection.surfaces)]


def shown(visit: Visit, connection: ConnectionOut) -> dict[str, Any]:
    """What the page needs for the form, or nothing for those who may not change the connection."""
    mine = visit.principal.is_admin or connection.user_id == visit.person.id
    if connection.status == "revoked" or not mine:
        return {"offered": [], "parts": []}
    policy = Policy.model_validate(visit.mandate.policy)
    return {
        "parts": list(SURFACES[connection.authority]),
        "offered": offered(connection),
        "rules": written(connection.policy),
        "in_force": effective_policy(connection.policy, policy),
        "mandate_tier": policy.mail.tier,
        "megabyte": MEGABYTE,
        "wrong": set[str](),
    }


def written(policy: Mapping[str, Any]) -> dict[str, str]:
    """The connection's own word as the form shows it."""
    return {name: _text(name, policy.get(name)) for name in FIELDS}


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name in _LISTS:
        return "\n".join(value)
    return f"{value / MEGABYTE:g}" if name == "maxFileBytes" else str(value)


def typed(connection: ConnectionOut, form: Mapping[str, Any]) -> dict[str, str]:
    """The form's fields as they would be shown again; what it does not hold stays as it is."""
    return {name: _tidy(name, str(form[name])) for name in offered(connection) if name in form}


def _tidy(name: str, text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    return "\n".join(line for line in lines if line) if name in _LISTS else text.strip()


def read(sent: Mapping[str, str], before: Mapping[str, str]) -> tuple[dict[str, Any], set[str]]:
    """What changed, as the patch the service takes, and the fields that cannot be read at all."""
    patch: dict[str, Any] = {}
    wrong: set[str] = set()
    for name, text in sent.items():
        if text == before[name]:
            continue
        try:
            patch[name] = _value(name, text) if text else None
        except ValueError:
            wrong.add(name)
    return patch, wrong


def _value(name: str, text: str) -> Any:
    if name in _LISTS:
        if len(text) > MOST_CHARACTERS:
            raise ValueError(name)
        return text.split("\n")
    if name == "mailTier":
        return text
    size = float(text.replace(",", ".")) * (MEGABYTE if name == "maxFileBytes" else 1)
    if not math.isfinite(size) or abs(size) > MOST:
        raise ValueError(name)
    return round(size) if name == "maxFileBytes" else int(text)
