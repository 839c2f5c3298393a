"""What a first sync would bring: the vendor's own count, and a guess at what that means here."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from connectors.kit.contract import AuthRevoked, ConnectorError, Throttled
from gateway.connections.places import Places
from gateway.connections.sync_schemas import EstimateOut, SurfaceEstimate
from gateway.connections.waiting import is_granted

# Until a mandate has documents of its own: files are mostly not text, mails are. Measured on the demo's seed.
TOKENS_PER_BYTE = 0.02
# A first sync of the demo's seed on two cores: downloads, parsing and embedding together.
ITEMS_PER_SECOND = 8.0
VENDOR_SECONDS = 30.0  # somebody waits for the answer


async def estimate_surface(
    places: Places, mandate_id: UUID, source: Row[Any], tokens_per_byte: float | None
) -> SurfaceEstimate:
    if not is_granted(source.account, source.surface):
        return _unknown(source, "consent")
    try:
        async with asyncio.timeout(VENDOR_SECONDS), places.surface(mandate_id, source) as surface:
            found = await surface.estimate()
    except (ConnectorError, TimeoutError) as error:
        word = "throttled" if isinstance(error, Throttled) else "unavailable"
        word = "reauth" if isinstance(error, AuthRevoked) else word
        return _unknown(source, word)
    return SurfaceEstimate(
        surface=source.surface,
        items=found.items,
        bytes=found.size,
        tokens=round(found.size * (tokens_per_byte or TOKENS_PER_BYTE)),
        seconds=round(found.items / _rate(source)),
        exact=found.exact,
        containers=list(found.containers)[:200],
    )


def _unknown(source: Row[Any], why: str) -> SurfaceEstimate:
    return SurfaceEstimate(
        surface=source.surface, items=0, bytes=0, tokens=0, seconds=0, exact=False, error=why
    )


def _rate(source: Row[Any]) -> float:
    """Measured at this source's last full run, if there was one."""
    run = source.run.get("bootstrap")
    if run is None or "doneAt" not in run or run["processed"] < 10:
        return ITEMS_PER_SECOND
    return max(0.1, run["processed"] / max(0.1, run.get("seconds", run["processed"] / ITEMS_PER_SECOND)))


def total(surfaces: Sequence[SurfaceEstimate]) -> EstimateOut:
    return EstimateOut(
        items=sum(one.items for one in surfaces),
        bytes=sum(one.bytes for one in surfaces),
        tokens=sum(one.tokens for one in surfaces),
        seconds=sum(one.seconds for one in surfaces),
        surfaces=list(surfaces),
    )
