"""Runs `sync` jobs: follows a surface page by page, each page and its cursor one transaction.

A job gives its place up after a few seconds and goes on from the cursor; so does whoever comes after a crash. It ends only
in the transaction that writes the next one down: the ledger is the schedule.
"""

import time
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from connectors.kit.contract import (
    CursorLost,
    ListingDue,
    Mode,
    Page,
    VendorUnavailable,
)
from connectors.kit.policy import SyncPolicy
from gateway.connections import sync_item_repository as items
from gateway.connections import sync_repository as repository
from gateway.connections.places import policy_of
from gateway.connections.sync_service import enqueue_next, request_fetch
from gateway.crashpoints import crash_point
from gateway.db import emit_on_commit
from workers.sync import errands, refusals, watching
from workers.sync.fence import Lost, fenced
from workers.sync.handover import Sender
from workers.sync.pages import PageWriter
from workers.sync.progress import Tally, count
from workers.sync.reconcile import PATIENCE_SECONDS, LeftOut, bury, close_listing, recount_held
from workers.sync.room import room_for
from workers.sync.slices import SurfaceSlice

SLICE_SECONDS = 5.0  # then others in the lane get their turn
MIXED = "mixed"  # the policy changed while a listing ran: not all of it was made under one
MOST_STANDING = 20  # pages in a row that lead to themselves; an empty one now and then is the vendors' way


class ListingBroke(VendorUnavailable):
    """The surface ended without a last page, or would never come to one."""


class Walk:
    """One job's way through its surface."""

    def __init__(self, desk: SurfaceSlice, job: Row[Any]) -> None:
        self.desk, self.job, self.pages, self.listed = desk, job, 0, False
        self.db, self.mandate_id = desk.db, desk.mandate_id
        self._left_out: LeftOut = lambda _: None

    @property
    def progressed(self) -> bool:
        return self.pages > 0

    async def run(self) -> None:
        began, standing = time.monotonic(), 0
        source = await self._begin()
        await bury(self.db, self.desk.blobs, self.mandate_id, self.job, older_than_seconds=PATIENCE_SECONDS)
        cursor: str | None = source.cursor
        async with self.desk.places.surface(self.mandate_id, source) as surface:
            self._left_out = surface.left_out
            try:
                async with aclosing(surface.pages(cursor, _mode(source))) as pages:  # pyright: ignore[reportArgumentType]
                    async for page in pages:
                        crash_point("sync.before_page_commit")
                        await self._commit(page, cursor)
                        crash_point("sync.after_page_commit")
                        standing = standing + 1 if page.next_cursor == cursor else 0
                        cursor, self.pages = page.next_cursor, self.pages + (not standing)
                        await self.desk.bulletin.ring(self.mandate_id, self.job.connection_id)
                        if page.last:
                            await watching.renew(
                                self.db,
                                self.desk.settings,
                                self.mandate_id,
                                self.job,
                                source,
                                surface,
                                self.desk.clock(),
                            )
                            await self._finish()
                            return
                        if standing >= MOST_STANDING:
                            raise ListingBroke("the vendor leads in a circle")
                        if time.monotonic() - began > SLICE_SECONDS:
                            await errands.step_aside(self.db, self.mandate_id, self.job)
                            return
            except CursorLost as lost:
                await self._lose(cursor, lost)
                return
        raise ListingBroke("the listing ended without a last page")

    async def _begin(self) -> Row[Any]:
        """Opens a listing where one is due, and gives back what has room again."""
        async with fenced(self.db, self.mandate_id, self.job) as (session, source):
            live = await repository.lock_live_job(session, f"sync:{source.id}")
            wants_all = live is not None and live.payload.get("mode") == "bootstrap"
            if live is not None and wants_all:
                await repository.change_job(
                    session,
                    live.id,
                    lane=live.lane,
                    payload=live.payload | {"mode": "delta"},
                    delay_seconds=None,
                )
            unlisted = await repository.unlisted_failures_due(session, source.id, self.desk.clock())
            admits = await self._let_in(session, source)
            ruled = (await policy_of(session, source)).fingerprint()
            due = (
                wants_all or unlisted or admits or source.listing.get("stale") or _is_outruled(source, ruled)
            )
            if source.phase == "new" or (source.phase == "delta" and due):
                await self._open_listing(session, source, None, full=True, phase="listing")
                await repository.note_listing(session, source.id, policy=ruled)
            elif source.listing.get("policy") != ruled:
                await repository.note_listing(
                    session, source.id, policy=ruled if source.phase == "delta" else MIXED
                )
            begun = await repository.find_source(session, source.id)
            assert begun is not None  # noqa: S101 - locked above
            return begun

    async def _let_in(self, session: AsyncSession, source: Row[Any]) -> bool:
        """What a quota kept out comes in as far as there is room. Whether a listing is due for it: mail and the like bring
        their content along, and cannot be fetched one by one.
        """
        room = await room_for(session, source)
        await items.release_quota(session, source.id, room.places)
        grown = room.has_grown(source.listing.get("room", (0, 0)))
        return grown and await items.quota_awaits_listing(session, source.id)

    async def _note_room(self, session: AsyncSession, source: Row[Any]) -> None:
        """What a listing left; after that the least there was, so that room which comes back little by little counts too."""
        room, known = await room_for(session, source), source.listing.get("room")
        lowest = [room.documents, room.size] if self.listed or known is None else room.lowest(known)
        if known != lowest:
            await repository.note_listing(session, source.id, room=lowest)

    async def _open_listing(
        self,
        session: AsyncSession,
        source: Row[Any],
        cursor: str | None,
        *,
        full: bool,
        phase: str,
        due: bool = False,
    ) -> None:
        """`due`: the ordinary way to learn what ended, at vendors whose changes do not tell. It passes for a delta."""
        await repository.save_progress(
            session,
            source.id,
            cursor=cursor,
            phase=phase,
            generation=source.listing_generation + 1,
            listing=_kept(source.listing)
            | {"full": full, "complete": [], "failed": []}
            | ({"due": True} if due else {}),
            synced=False,
        )

    async def _lose(self, cursor: str | None, lost: CursorLost) -> None:
        """The vendor forgot the cursor: a named state, and a listing that ends in a comparison."""
        async with fenced(self.db, self.mandate_id, self.job) as (session, source):
            if source.cursor != cursor:
                raise Lost("taken")
            if source.phase == "lost" and self.pages == 0:
                raise VendorUnavailable("the vendor forgets the cursor of a listing that has just begun")
            due = isinstance(lost, ListingDue)
            await self._open_listing(
                session, source, lost.cursor, full=lost.cursor is None, phase="lost", due=due
            )
            if not due:
                emit_on_commit(
                    session,
                    "ingestion.connection.cursor.lost",
                    connectionId=str(source.connection_id),
                    part=source.surface,
                    container=lost.container_id,
                    generation=source.listing_generation + 1,
                )
        await errands.step_aside(self.db, self.mandate_id, self.job)

    async def _commit(self, page: Page, cursor: str | None) -> None:
        async with fenced(self.db, self.mandate_id, self.job) as (session, source):
            if source.cursor != cursor:
                raise Lost("taken")  # compare and set: this page does not follow what is stored
            mode = _run_mode(source)
            now = self.desk.clock()
            sender = Sender(source, await policy_of(session, source))
            writer = PageWriter(
                session,
                source,
                sender,
                self.desk.blobs,
                now=now,
                urgent=mode == "delta",
                quiet=bool(source.listing.get("due")),
            )
            applied = await writer.apply(page, source.listing_generation)
            crash_point("sync.inside_page")
            listing = _noted(source, page) | ({"stale": True} if applied.stale else {})
            if page.last:
                listing = await self._judge(session, source, listing, sender.policy, applied.tally)
            await self._save(session, source, page, listing)
            if applied.pending or page.last:
                await self._ask_for_downloads(session, source, urgent=mode == "delta" and applied.pending > 0)
            await count(session, source, dict(source.run), mode, applied.tally, now, listed=page.last)
            if not page.last:
                return
            self.listed = mode == "bootstrap"
        await bury(self.db, self.desk.blobs, self.mandate_id, self.job)

    async def _judge(
        self,
        session: AsyncSession,
        source: Row[Any],
        listing: dict[str, Any],
        policy: SyncPolicy,
        tally: Tally,
    ) -> dict[str, Any]:
        """What a round that is over means for what it did not bring."""
        now = self.desk.clock()
        found = await refusals.judge(session, source, listing, policy, now)
        verdicts = [found.verdict]
        if source.phase != "delta":
            verdicts.append(await close_listing(session, source, found.listing, self._left_out, policy, now))
        tally.deleted += sum(one.deleted for one in verdicts)
        tally.held += sum(one.held for one in verdicts)
        await recount_held(session, source.id)
        return found.listing

    async def _save(
        self, session: AsyncSession, source: Row[Any], page: Page, listing: dict[str, Any]
    ) -> None:
        phase = "delta" if page.last else "listing" if source.phase == "lost" else source.phase
        await repository.save_progress(
            session,
            source.id,
            cursor=page.next_cursor,
            phase=phase,
            generation=source.listing_generation,
            listing=_closed(source, listing) if page.last else listing,
            synced=page.last,
        )

    async def _ask_for_downloads(self, session: AsyncSession, source: Row[Any], *, urgent: bool) -> None:
        pending = await items.count_pending(session, source.id)
        if pending:
            await request_fetch(session, source, urgent=urgent or pending.get(True, 0) > 0)

    async def _finish(self) -> None:
        """The round is over; the next one is written down with its end."""
        async with fenced(self.db, self.mandate_id, self.job) as (session, source):
            await self._note_room(session, source)
            policy = await policy_of(session, source)
            incomplete = source.listing.get("incomplete", 0)
            interval = float(policy.interval_seconds)
            if incomplete and self.listed:
                # What a container hid may have ended meanwhile: only another listing can tell. Ever more rarely.
                interval = min(86400.0, interval * 2 ** (incomplete - 1))
            if source.listing.get("stale"):
                interval = 0
            await enqueue_next(
                session,
                source,
                self.job,
                status="indexed",
                reason="synced",
                interval=interval if incomplete or not self.listed else 0,
                mode="bootstrap" if incomplete and self.listed else "delta",
            )


def _mode(source: Row[Any]) -> Mode:
    """A listing of everything is a bootstrap, whatever began it; one container that lost its place is not."""
    return "bootstrap" if _run_mode(source) == "bootstrap" and source.listing.get("full") else "delta"


def _run_mode(source: Row[Any]) -> Mode:
    return "delta" if source.phase == "delta" or source.listing.get("due") else "bootstrap"


def _noted(source: Row[Any], page: Page) -> dict[str, Any]:
    """What the running listing has completed so far; `open` while any round is under way."""
    listing = dict(source.listing) | {"open": True}
    for key, names in (("complete", page.container_complete), ("failed", page.containers_failed)):
        listing[key] = sorted({*listing.get(key, ()), *names})
    return refusals.noted(listing, page)


def _is_outruled(source: Row[Any], ruled: str) -> bool:
    """Whether the policy is another one than the last listing was made under."""
    return source.listing.get("policy") not in {None, ruled}


def _kept(listing: Mapping[str, Any]) -> dict[str, Any]:
    """How many listings in a row were not complete, how little room there was, under which policy they were made, and who
    refused to be read.
    """
    kept = ("incomplete", "room", "policy", *refusals.KEPT)
    return {key: listing[key] for key in kept if listing.get(key)}


def _closed(source: Row[Any], listing: dict[str, Any]) -> dict[str, Any]:
    kept = _kept(listing) | ({"stale": True} if listing.get("stale") else {})
    if source.phase != "delta":
        kept.pop("incomplete", None)
        if listing.get("failed"):
            kept["incomplete"] = listing.get("incomplete", 0) + 1
    return kept
