"""Containers that refuse to be read although the account still lists them: when such a word is believed.

One refusal ends nothing. Vendors refuse on bad days, and for reasons that are not the user's: an API that was switched off in
the registered application, an administrator's policy, a limit. Those keep everything and say so. A container that says for
`DOUBT`, and in more than one round, that this user may not read it, is lost: what it held ends as far as an absence would end
without a question. More than that is held for a person's word, and ends without it when the mandate's days of grace are over.

Kept in the data source's `listing`: `refused` of the running round, `doubted` since when, `lost` what was judged.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from connectors.kit.contract import FORBIDDEN, Page
from connectors.kit.policy import SyncPolicy
from gateway.connections import sync_absence_repository as absence
from gateway.connections import sync_repository as repository
from gateway.ingestion import repository as ingestion
from gateway.tenancy.schemas import Policy
from workers.sync.reconcile import Verdict, hold_loss, is_large

DOUBT = timedelta(minutes=10)
KEPT = ("doubted", "lost", "trouble")  # of a listing, for the rounds that follow


@dataclass(frozen=True)
class Judgement:
    listing: dict[str, Any]
    verdict: Verdict


def noted(listing: Mapping[str, Any], page: Page) -> dict[str, Any]:
    """With what a page says. Which containers refused counts when the round is over."""
    return {**listing, "refused": {**listing.get("refused", {}), **page.refusals}}


async def judge(
    session: AsyncSession, source: Row[Any], listing: dict[str, Any], policy: SyncPolicy, now: datetime
) -> Judgement:
    """Call in the transaction of a round's last page, before a listing is closed: what is lost leaves no gap in it."""
    refused: dict[str, str] = listing.pop("refused", {})
    began: dict[str, str] = listing.pop("doubted", {})
    known: set[str] = set(listing.pop("lost", ()))
    listing.pop("trouble", None)
    doubted = {
        one: began.get(one, now.isoformat())
        for one, word in refused.items()
        if word == FORBIDDEN or one in began
    }
    age = {one: now - datetime.fromisoformat(since) for one, since in doubted.items()}
    sure = {one for one in doubted if refused[one] == FORBIDDEN and age[one] >= DOUBT}
    lost = sure | (known & refused.keys())
    grace = timedelta(days=Policy.model_validate(await ingestion.mandate_policy(session)).grace_days)
    over = {one for one in sure & known if age[one] >= grace}
    verdict = await _end(session, source, sure - known, over, policy, now)
    if (
        known - refused.keys()
    ):  # it can be read again, or is gone for good: only a listing tells what is there
        listing["stale"] = True
    listing["failed"] = sorted(set(listing.get("failed", ())) - lost)
    trouble = await _trouble(session, source, refused)
    told = {"doubted": doubted, "lost": sorted(lost), "trouble": trouble}
    return Judgement(listing | {name: value for name, value in told.items() if value}, verdict)


async def _end(
    session: AsyncSession,
    source: Row[Any],
    fresh: Collection[str],
    over: Collection[str],
    policy: SyncPolicy,
    now: datetime,
) -> Verdict:
    """`fresh`: lost with this round; `over`: lost so long ago that whoever was asked need not answer any more."""
    deleted = await absence.mark_lost(session, source.id, sorted(over), state="deleted") if over else 0
    if not fresh:
        return Verdict(deleted, 0)
    known, gone = await absence.count_lost(session, source.id, sorted(fresh))
    hold = is_large(gone, known, policy)
    marked = await absence.mark_lost(session, source.id, sorted(fresh), state="held" if hold else "deleted")
    await repository.clear_ended_failures(session, source.id)
    if not hold:
        return Verdict(deleted + marked, 0)
    await hold_loss(session, source, gone, known, now, reason="access_lost")
    return Verdict(deleted + marked - gone, gone)


async def _trouble(session: AsyncSession, source: Row[Any], refused: Mapping[str, str]) -> str | None:
    """What somebody should hear of: a reason that can be mended, or access in doubt to what is indexed. Of what was never
    readable nobody needs to hear.
    """
    words = sorted({word for word in refused.values() if word != FORBIDDEN})
    if words:
        return words[0]
    _, held = await absence.count_lost(session, source.id, sorted(refused)) if refused else (0, 0)
    return FORBIDDEN if held else None
