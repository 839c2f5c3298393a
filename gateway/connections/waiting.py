"""Why nothing moves at a surface although nothing is wrong with us: somebody outside has to act first."""

from collections.abc import Mapping
from typing import Any, Literal

from sqlalchemy import Row

# `consent`: its user did not allow it when the account was connected. `acceptance`: somebody wanted to see an estimate first.
# `vendor`: it asked for patience.
WaitsFor = Literal["consent", "acceptance", "vendor"]
WAITS_FOR = (
    "`consent`: its user did not allow it; `acceptance`: of the estimate, by a sync of mode `bootstrap`; "
    "`vendor`: it wants no request before `waitsUntil`"
)


def is_granted(account: Mapping[str, Any], surface: str) -> bool:
    """Whether the last consent covers it. Where the vendor did not say what was granted, all of it was."""
    granted = account.get("granted")
    return granted is None or surface in granted


def waits_for(source: Row[Any], *, account: Mapping[str, Any], auto_start: bool) -> WaitsFor | None:
    """Of an active connection's surface, as `sources_of` finds it; the rest is the connection's."""
    if not is_granted(account, source.surface):
        return "consent"
    if source.phase == "new" and not auto_start and not source.asked_for:
        return "acceptance"
    return "vendor" if source.waits_until is not None else None
