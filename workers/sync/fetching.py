"""Runs `fetch` jobs: downloads what listings found, urgent first, then newest first, and hands it over.

Downloads happen outside any transaction, a few at a time; what they brought is handed over under the same fences as a
page. One bad item costs one item: its failure goes to the ledger and comes back by itself.
"""

import asyncio
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from connectors.kit.contract import (
    AuthRevoked,
    ContainerForbidden,
    Fetched,
    ItemFailed,
    ItemGone,
    Surface,
    Throttled,
    VendorUnavailable,
)
from gateway.connections import sync_item_repository as items
from gateway.connections import sync_repository as repository
from gateway.connections.places import policy_of
from gateway.connections.sync_service import enqueue_next
from gateway.crashpoints import crash_point
from gateway.db import emit_on_commit, new_id
from gateway.errors import StoreUnavailable
from gateway.ingestion import ledger_repository as ledger
from gateway.ingestion.facade import request_ingestions
from gateway.settings import get_settings
from workers.sync import errands
from workers.sync.fence import fenced
from workers.sync.handover import Sender, blob, cleaned, item_of, ledger_row, objects
from workers.sync.pages import rule, settled
from workers.sync.progress import Tally, count
from workers.sync.reconcile import bury
from workers.sync.room import room_for
from workers.sync.slices import SurfaceSlice

SLICE_SECONDS = 5.0
AT_ONCE = 4
GROUP = 16
GROUP_BYTES = (
    32 * 1024 * 1024
)  # what may lie in memory between download and hand-over, but for one large file
RETRY_SECONDS = 60.0  # first step of a failed item's own schedule; it doubles up to a day
OUTAGE = 3  # so many unavailable answers in one group are the vendor's trouble, not the items'

# A download that ends like this will end like this again until the item changes.
NOT_FOR_US = {
    "too_large",
    "unsupported",
    "filtered",
    "outside_window",
    "encrypted",
    "empty",
    "download_forbidden",
}


@dataclass
class Brought:
    """How one download ended: with bytes, with an end, or with a failure."""

    row: Row[Any]
    fetched: Fetched | None = None
    gone: bool = False
    reason: str | None = None
    detail: str = ""
    permanent: bool = False


class Load:
    """One job's downloads."""

    def __init__(self, desk: SurfaceSlice, job: Row[Any]) -> None:
        self.desk, self.job, self.handed = desk, job, 0
        self.db, self.mandate_id = desk.db, desk.mandate_id
        self._interruption: Exception | None = None

    @property
    def progressed(self) -> bool:
        return self.handed > 0

    async def run(self) -> None:
        began = time.monotonic()
        source, group = await self._next_group()
        if not group:
            await self._finish()
            return
        async with self.desk.places.surface(self.mandate_id, source) as surface:
            while group:
                brought = await self._download(surface, group)
                crash_point("fetch.after_download")
                await self._hand_over(brought)
                await self.desk.bulletin.ring(self.mandate_id, self.job.connection_id)
                if self._interruption is not None:
                    raise self._interruption
                if time.monotonic() - began > SLICE_SECONDS:
                    await errands.step_aside(self.db, self.mandate_id, self.job)
                    return
                source, group = await self._next_group()
        await self._finish()

    async def _next_group(self) -> tuple[Row[Any], list[Row[Any]]]:
        async with fenced(self.db, self.mandate_id, self.job) as (session, source):
            await repository.revive_failures(session, source.id, self.desk.clock())
            room = (await room_for(session, source)).places
            if room <= 0:
                await self._keep_out(session, source)
            waiting = await items.pending_items(session, source.id, GROUP)
        group: list[Row[Any]] = []
        size = 0
        for row in waiting:
            size += row.size or 0
            if group and size > GROUP_BYTES:
                break
            if row.document_id is None:
                room -= 1
            if room >= 0 or row.document_id is not None:
                group.append(row)
        return source, group

    async def _keep_out(self, session: AsyncSession, source: Row[Any]) -> None:
        kept_out = await items.skip_for_quota(session, source.id)
        if kept_out:
            tally = Tally(kept_out, skipped_policy=kept_out)
            await count(session, source, dict(source.run), "bootstrap", tally, self.desk.clock())
            emit_on_commit(
                session,
                "ingestion.quota.reached",
                mandateId=str(self.mandate_id),
                reason="documents or bytes",
                connectionId=str(source.connection_id),
            )

    async def _download(self, surface: Surface, group: Sequence[Row[Any]]) -> list[Brought]:
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(row: Row[Any]) -> Brought | None:
            async with gate:
                if self._interruption is not None:
                    return None
                try:
                    return await self._fetch(surface, row)
                except (Throttled, AuthRevoked, StoreUnavailable) as stop:
                    self._interruption = stop
                    return None

        ends = await asyncio.gather(*(one(row) for row in group))
        brought = [end for end in ends if end is not None]
        outage = [one for one in brought if one.reason == "unavailable"]
        if len(outage) >= OUTAGE and len(outage) == len(brought) and self._interruption is None:
            self._interruption = VendorUnavailable("every download failed")
            return []
        return brought

    async def _fetch(self, surface: Surface, row: Row[Any]) -> Brought:
        try:
            fetched = await surface.fetch(item_of(row))
        except (Throttled, AuthRevoked, StoreUnavailable):
            raise
        except ItemGone:
            return Brought(row, gone=True)
        except ItemFailed as failed:
            return Brought(row, reason=failed.reason, detail=failed.detail, permanent=failed.permanent)
        except ContainerForbidden:
            return Brought(row, reason="forbidden", detail="the container may no longer be read")
        except VendorUnavailable:
            return Brought(row, reason="unavailable", detail="the vendor did not answer as it should")
        except Exception as error:  # noqa: BLE001 - one bad item costs one item
            return Brought(row, reason="error", detail=type(error).__name__)
        size = len(fetched.data) + 4 * sum(len(part.text) for part in fetched.parts or ())
        if size > get_settings().upload_limit_bytes:
            return Brought(row, reason="too_large", permanent=True)
        return Brought(row, fetched)

    async def _hand_over(self, brought: Sequence[Brought]) -> None:
        if not brought:
            return
        async with fenced(self.db, self.mandate_id, self.job) as (session, source):
            known = await items.lock_known(session, source.id, [one.row.external_id for one in brought])
            # Whatever was listed anew, ended or erased while we downloaded is not what we hold.
            current = [one for one in brought if _unchanged(one.row, known.get(one.row.external_id))]
            tally = {True: Tally(), False: Tally()}
            sender = Sender(source, await policy_of(session, source))
            await self._hand_in(session, sender, [one for one in current if one.fetched], tally)
            await self._end(session, source, [one for one in current if one.gone], tally)
            await self._fail(session, source, [one for one in current if one.reason], tally)
            run = dict(source.run)
            for urgent, mode in ((False, "bootstrap"), (True, "delta")):
                if tally[urgent] != Tally():
                    run = await count(session, source, run, mode, tally[urgent], self.desk.clock())
        self.handed += len(brought)

    async def _hand_in(
        self, session: AsyncSession, sender: Sender, came: Sequence[Brought], tally: dict[bool, Tally]
    ) -> None:
        source = sender.source
        parents = await items.documents_of(
            session, source.id, sorted({one.row.parent_id for one in came if one.row.parent_id})
        )
        ready: list[tuple[Brought, Any, bytes | None]] = []
        for one in came:
            assert one.fetched is not None  # noqa: S101 - chosen by the caller
            parts = one.fetched.parts
            digest = hashlib.sha256(one.fetched.data).digest() if parts is None else None
            item = item_of(one.row)
            content = blob(digest) if digest is not None else objects(parts or ())
            request = sender.request(
                item, content, parent=parents.get(one.row.parent_id or ""), urgent=one.row.urgent
            )
            if request is None:
                one.reason, one.permanent, one.fetched = "invalid", True, None
                continue
            if one.fetched.mime_type:  # what came may be an export of what was listed
                request = request.model_copy(update={"mime_type": one.fetched.mime_type.lower()})
            ready.append((one, request, digest))
        if not ready:
            return
        contents = {digest: one.fetched.data for one, _, digest in ready if one.fetched and digest}
        if contents:
            await self.desk.blobs.add(session, sorted(contents.items()))
        handles = await request_ingestions(
            session, [request for _, request, _ in ready], blobs=self.desk.blobs
        )
        rows = [
            settled(
                one.row.external_id,
                handle,
                (one.fetched.version if one.fetched else None) or one.row.version,
                tally[one.row.urgent],
                attachment=one.row.source_kind.endswith("_attachment"),
            )
            for (one, _, _), handle in zip(ready, handles, strict=True)
        ]
        await items.settle_items(session, source.id, cleaned(rows))
        await repository.clear_failures(session, source.id, [row["external_id"] for row in rows])
        await self._note_children(session, sender, [one for one, _, _ in ready], tally)

    async def _note_children(
        self, session: AsyncSession, sender: Sender, came: Sequence[Brought], tally: dict[bool, Tally]
    ) -> None:
        """What hangs on an item and was found with it: listed now, or gone if it was there before."""
        source = sender.source
        told = {one.row.external_id: one for one in came if one.fetched and one.fetched.children is not None}
        if not told:
            return
        children = {
            child.external_id: (child, one)
            for one in told.values()
            for child in (one.fetched.children if one.fetched else None) or ()
        }
        known = await items.lock_known(session, source.id, sorted(children))
        rows: list[dict[str, Any]] = []
        for child, one in children.values():
            ruling = rule(child, known.get(child.external_id), masked=sender.policy.neutralize)
            rows.append(
                ledger_row(
                    child,
                    state=ruling.state,
                    reason=ruling.reason,
                    urgent=one.row.urgent,
                    generation=source.listing_generation,
                    with_parent=True,
                )
            )
        await items.upsert_items(session, source.id, source.connection_id, rows)
        gone = [
            {"external_id": child, "container_id": None, "reason": "deleted"}
            for _, child in await items.children_of(session, source.id, sorted(told), with_parent=True)
            if child not in children
        ]
        if gone:
            await items.entomb(session, source.id, gone, [], state="deleted")
            tally[False].deleted += len(gone)

    async def _end(
        self, session: AsyncSession, source: Row[Any], gone: Sequence[Brought], tally: dict[bool, Tally]
    ) -> None:
        if not gone:
            return
        stones = [
            {"external_id": one.row.external_id, "container_id": None, "reason": "deleted"} for one in gone
        ]
        await items.entomb(session, source.id, stones, [], state="deleted")
        await repository.clear_ended_failures(session, source.id)
        for one in gone:
            tally[one.row.urgent].deleted += 1

    async def _fail(
        self, session: AsyncSession, source: Row[Any], failed: Sequence[Brought], tally: dict[bool, Tally]
    ) -> None:
        kept_out = [one for one in failed if one.permanent and one.reason in NOT_FOR_US]
        failures = [one for one in failed if one not in kept_out]
        await items.settle_items(
            session,
            source.id,
            cleaned(
                [
                    {
                        "external_id": one.row.external_id,
                        "state": "skipped" if one in kept_out else "failed",
                        "reason": one.reason,
                        "fetched_version": one.row.version if one in kept_out else None,
                    }
                    for one in failed
                ]
            ),
        )
        await repository.record_failures(
            session, source.id, cleaned([self._failure_row(one) for one in failures])
        )
        for one in kept_out:
            tally[one.row.urgent].skipped_policy += 1
        for one in failures:
            tally[one.row.urgent].failed += 1
        for one in failed:
            tally[one.row.urgent].processed += 1

    def _failure_row(self, one: Brought) -> dict[str, Any]:
        return {
            "id": str(new_id()),
            "external_id": one.row.external_id,
            "name": one.row.name,
            "reason": one.reason,
            "detail": one.detail[:500],
            "retry_seconds": None if one.permanent else RETRY_SECONDS,
            "now": self.desk.clock().isoformat(),
        }

    async def _finish(self) -> None:
        """Nothing waits any more; if something failed, the next look is when its time comes."""
        await bury_if_idle(self)
        async with fenced(self.db, self.mandate_id, self.job) as (session, source):
            run = dict(source.run)
            for mode in ("bootstrap", "delta"):
                if mode in run and "doneAt" not in run[mode]:
                    run = await count(session, source, run, mode, Tally(), self.desk.clock())
            retry_at = await repository.next_retry(session, source.id)
            live = await repository.lock_live_job(session, f"fetch:{source.id}")
            again = live is not None and "again" in live.payload
            if retry_at is None and not again:
                await ledger.finish(session, [{"id": self.job.id, "status": "indexed", "reason": "fetched"}])
                return
            delay = 0.0 if retry_at is None else (retry_at - self.desk.clock()).total_seconds()
            urgent = (await items.count_pending(session, source.id)).get(True)
            await enqueue_next(
                session,
                source,
                self.job,
                status="indexed",
                reason="fetched",
                interval=max(0.0, delay),
                lane="delta" if urgent else "backfill",
            )


async def bury_if_idle(load: Load) -> None:
    """Downloads that found their item gone leave documents behind; a running round ends its own."""
    async with fenced(load.db, load.mandate_id, load.job) as (_, source):
        between_rounds = source.phase == "delta" and not source.listing.get("open")
    if between_rounds:
        await bury(load.db, load.desk.blobs, load.mandate_id, load.job)


def _unchanged(downloaded: Row[Any], now: Row[Any] | None) -> bool:
    return now is not None and now.state == "pending" and now.version == downloaded.version
