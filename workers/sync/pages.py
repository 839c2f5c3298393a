"""One page of a vendor's listing, applied in one transaction: what to fetch, what to hand over, what ended, what failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from connectors.kit.contract import Item, Page
from gateway.connections import sync_item_repository as items
from gateway.connections import sync_repository as repository
from gateway.corpus import chunk_repository
from gateway.corpus.blobs import BlobStore
from gateway.db import emit_on_commit, new_id, tenant_of
from gateway.ingestion import repository as ingestion
from gateway.ingestion.facade import request_ingestions
from gateway.ingestion.schemas import IngestionHandle
from gateway.settings import get_settings
from workers.sync.handover import Sender, cleaned, ledger_row, objects
from workers.sync.progress import Tally

# An item that could not even be listed comes back with a listing of everything, so not too often.
UNLISTED_RETRY_SECONDS = 900.0
DEPTH = 8  # attachments of attachments of …; deeper ones wait for their next listing


@dataclass
class Applied:
    tally: Tally = field(default_factory=Tally)
    pending: int = 0
    stale: bool = False  # a folder got another name or place, and nobody told what lies in it


class PageWriter:
    """Applies pages of one data source; lives as long as one transaction."""

    def __init__(
        self,
        session: AsyncSession,
        source: Row[Any],
        sender: Sender,
        blobs: BlobStore,
        *,
        now: datetime,
        urgent: bool,
        quiet: bool = False,
    ) -> None:
        """`quiet`: the listing is made only to learn what ended, and has nothing to say about the rest."""
        self._quiet = quiet
        self._session, self._source, self._sender, self._blobs = session, source, sender, blobs
        self._now, self._urgent = now, urgent
        self._applied = Applied()

    async def apply(self, page: Page, generation: int) -> Applied:
        listed = {item.external_id: item for item in page.upserts}  # named twice: the last word counts
        failed = {
            failure.external_id: failure for failure in page.failures if failure.external_id not in listed
        }
        known = await items.lock_known(self._session, self._source.id, sorted({*listed, *failed}))
        masked = self._sender.policy.neutralize
        rulings = {
            item.external_id: rule(item, known.get(item.external_id), masked=masked)
            for item in listed.values()
        }
        rows = [self._row(item, rulings[item.external_id], generation) for item in listed.values()]
        await items.upsert_items(self._session, self._source.id, self._source.connection_id, rows)
        if page.listing and listed:
            await items.keep_children(self._session, self._source.id, sorted(listed), generation)
        elif moved := _moved_folders(rows, known):
            self._applied.stale = await items.have_stale_paths(self._session, self._source.id, moved)
        await self._tell_gated([item for item in listed.values() if rulings[item.external_id].gated], known)
        await self._hand_over(
            [item for item in listed.values() if rulings[item.external_id].hand_over], known
        )
        await self._count_rest(listed, rulings)
        await self._end(page, listed)
        await self._fail(failed, known, generation)
        return self._applied

    def _row(self, item: Item, ruling: "Ruling", generation: int) -> dict[str, Any]:
        row = ledger_row(
            item, state=ruling.state, reason=ruling.reason, urgent=self._urgent, generation=generation
        )
        if ruling.reason == "erased":
            # A person had it erased: that there is something is all we keep of it.
            row |= {"name": "", "path": "", "uri": None, "metadata": {}, "handle": {}}
        return row

    async def _tell_gated(self, gated: Sequence[Item], known: Mapping[str, Row[Any]]) -> None:
        """Unchanged by the vendor's own word: nothing is downloaded, but a new name or place is applied."""
        if not gated:
            return
        parents = await self._parents(gated)
        documents = {item.external_id: known[item.external_id].document_id for item in gated}
        await chunk_repository.lock_documents(self._session, sorted(documents.values()))
        rows = [
            self._sender.description_row(item, documents[item.external_id], parents.get(item.parent_id or ""))
            for item in gated
        ]
        changed = await ingestion.describe_documents(self._session, rows)
        await ingestion.add_timeline(
            self._session,
            [{"id": new_id(), "document_id": one, "status": "described"} for one in sorted(changed)],
        )
        for item in gated if not self._quiet else ():
            self._say_duplicate(documents[item.external_id], item)
        self._applied.tally.skipped_dup += len(gated)
        self._applied.tally.processed += len(gated)
        await repository.clear_failures(self._session, self._source.id, sorted(documents))

    def _say_duplicate(self, document_id: UUID, item: Item) -> None:
        emit_on_commit(
            self._session,
            "ingestion.skipped.duplicate",
            mandateId=str(tenant_of(self._session)),
            documentId=str(document_id),
            jobId=None,
            sourceKind=item.source_kind,
        )

    async def _hand_over(self, came: Sequence[Item], known: Mapping[str, Row[Any]]) -> None:
        """What came with its content goes through the door in this transaction, parents before what hangs on them."""
        waiting = await self._within_quota(came, known)
        for _ in range(DEPTH):
            if not waiting:
                return
            ids = {item.external_id for item in waiting}
            now = [
                item for item in waiting if item.parent_id not in ids or item.parent_id == item.external_id
            ]
            if not now:  # a circle of parents is nobody's child
                now = waiting
            waiting = [item for item in waiting if item not in now]
            await self._hand_over_level(now)

    async def _within_quota(self, came: Sequence[Item], known: Mapping[str, Row[Any]]) -> list[Item]:
        limit = self._sender.policy.max_items
        if limit is None or not came:
            return list(came)
        room = limit - await items.count_documents(self._session, self._source.connection_id)
        inside: list[Item] = []
        outside: list[Item] = []
        for item in came:
            has_document = item.external_id in known and known[item.external_id].document_status is not None
            if has_document or room > 0:
                inside.append(item)
                room -= not has_document
            else:
                outside.append(item)
        await self._settle_skipped(outside, "quota")
        return inside

    async def _settle_skipped(self, skipped: Sequence[Item], reason: str) -> None:
        rows = [{"external_id": item.external_id, "state": "skipped", "reason": reason} for item in skipped]
        await items.settle_items(self._session, self._source.id, cleaned(rows))
        self._applied.tally.skipped_policy += len(rows)
        self._applied.tally.processed += len(rows)

    async def _hand_over_level(self, level: Sequence[Item]) -> None:
        parents = await self._parents(level)
        limit = get_settings().upload_limit_bytes
        requests: dict[str, Any] = {}
        refused: list[Item] = []
        for item in level:
            content = objects(item.parts or ())
            fits = sum(len(part.text) for part in content.objects) * 4 <= limit
            request = (
                self._sender.request(
                    item, content, parent=parents.get(item.parent_id or ""), urgent=self._urgent
                )
                if fits
                else None
            )
            if request is None:
                refused.append(item)
            else:
                requests[item.external_id] = request
        await self._settle_skipped(refused, "too_large")
        if not requests:
            return
        handles = await request_ingestions(self._session, list(requests.values()), blobs=self._blobs)
        versions = {item.external_id: item.version for item in level}
        rows = [
            settled(external_id, handle, versions[external_id], self._applied.tally)
            for external_id, handle in zip(requests, handles, strict=True)
        ]
        await items.settle_items(self._session, self._source.id, cleaned(rows))
        await repository.clear_failures(self._session, self._source.id, list(requests))

    async def _parents(self, children: Sequence[Item]) -> dict[str, UUID]:
        named = sorted({item.parent_id for item in children if item.parent_id})
        return await items.documents_of(self._session, self._source.id, named) if named else {}

    async def _count_rest(self, listed: Mapping[str, Item], rulings: Mapping[str, "Ruling"]) -> None:
        states = [rulings[external_id] for external_id in listed]
        tally = self._applied.tally
        skipped = sum(1 for one in states if one.state == "skipped")
        tally.skipped_policy += skipped
        tally.processed += skipped
        self._applied.pending = sum(1 for one in states if one.state == "pending" and not one.hand_over)
        # Whatever failed before and is not what failed: its story begins anew.
        renewed = [
            external_id
            for external_id, one in rulings.items()
            if one.state not in {"failed", "handed"} and not one.hand_over
        ]
        await repository.clear_failures(self._session, self._source.id, renewed)

    async def _end(self, page: Page, listed: Mapping[str, Item]) -> None:
        # Named and buried on one page: it lives. If it does not, the download finds out.
        rows = [
            {"external_id": stone.external_id, "container_id": stone.container_id, "reason": stone.reason}
            for stone in page.tombstones
            if stone.external_id not in listed
        ]
        rows += await self._taken_off(listed)
        if rows or page.containers_gone:
            ended = await items.entomb(
                self._session, self._source.id, cleaned(rows), list(page.containers_gone), state="deleted"
            )
            self._applied.tally.deleted += ended
            await repository.clear_ended_failures(self._session, self._source.id)
        if page.containers_left_out:
            await items.leave_out_containers(self._session, self._source.id, page.containers_left_out)

    async def _taken_off(self, listed: Mapping[str, Item]) -> list[dict[str, Any]]:
        """What hung on a listed item, such as an attachment of a mail that stays, and does not any more."""
        told = {item.external_id: set(item.children) for item in listed.values() if item.children is not None}
        if not told:
            return []
        known = await items.children_of(self._session, self._source.id, sorted(told), with_parent=False)
        return [
            {"external_id": child, "container_id": None, "reason": "deleted"}
            for parent, child in known
            if child not in told[parent]
        ]

    async def _fail(self, failed: Mapping[str, Any], known: Mapping[str, Row[Any]], generation: int) -> None:
        if not failed:
            return
        unknown = [failure for failure in failed.values() if failure.external_id not in known]
        rows = [
            ledger_row(
                Item(
                    external_id=failure.external_id,
                    source_kind="",  # nobody knows yet what it is
                    name=failure.name,
                    container_id=failure.container_id or "",
                ),
                state="failed",
                reason=failure.reason,
                urgent=False,
                generation=generation,
            )
            for failure in unknown
        ]
        await items.upsert_items(self._session, self._source.id, self._source.connection_id, rows)
        await items.mark_failed(
            self._session,
            self._source.id,
            generation,
            cleaned([{"external_id": one.external_id, "reason": one.reason} for one in failed.values()]),
        )
        await repository.record_failures(
            self._session,
            self._source.id,
            cleaned(
                [
                    {
                        "id": str(new_id()),
                        "external_id": one.external_id,
                        "name": one.name,
                        "reason": one.reason,
                        "detail": one.detail[:500],
                        "retry_seconds": UNLISTED_RETRY_SECONDS,
                        "now": self._now.isoformat(),
                    }
                    for one in failed.values()
                ]
            ),
        )
        self._applied.tally.failed += len(failed)
        self._applied.tally.processed += len(failed)


@dataclass(frozen=True)
class Ruling:
    """What is to become of a listed item."""

    state: str
    reason: str | None = None
    gated: bool = False  # the same version is in the corpus already
    hand_over: bool = False  # its content came along


def _moved_folders(rows: Sequence[Mapping[str, Any]], known: Mapping[str, Row[Any]]) -> list[str]:
    def differs(row: Mapping[str, Any], before: Row[Any]) -> bool:
        return any(row[name] != getattr(before, name) for name in ("name", "path", "parent_id"))

    folders = [row for row in rows if row["state"] == "folder" and row["external_id"] in known]
    return [row["external_id"] for row in folders if differs(row, known[row["external_id"]])]


def rule(item: Item, known: Row[Any] | None, *, masked: bool = False) -> Ruling:
    """`masked`: personal data must be masked, so what was taken in without that is taken in again."""
    if item.is_folder:
        return Ruling("folder")
    if known is not None and known.reason == "erased":
        # Somebody had it erased here although it is still there: it does not come back by itself.
        return Ruling("skipped", "erased")
    if item.skip:
        return Ruling("skipped", item.skip)
    if item.parts is not None:
        return Ruling("pending", hand_over=True)
    if known is not None and item.version is not None:
        if item.version == known.fetched_version:
            bare = masked and not known.document_masked
            if known.document_status not in {None, "cancelled"} and not bare:
                return Ruling("handed", gated=True)
            if known.state == "skipped" and known.reason not in {"quota", "policy"}:
                return Ruling("skipped", known.reason)  # its download said so, and it is the same download
        if known.state == "failed" and item.version == known.version:
            return Ruling("failed", known.reason)  # it has a retry schedule of its own
    return Ruling("pending")


def settled(
    external_id: str, handle: IngestionHandle, version: str | None, tally: Tally, *, attachment: bool = False
) -> dict[str, Any]:
    """The ledger's row after the façade's answer, counted."""
    tally.processed += 1
    kept_out = handle.document_id is None
    if kept_out:
        tally.skipped_policy += 1
    elif handle.outcome == "queued":
        tally.indexed += 1
        tally.attachments_indexed += attachment
    else:
        tally.skipped_dup += 1
    return {
        "external_id": external_id,
        "state": "skipped" if kept_out else "handed",
        "reason": handle.reason if kept_out else None,
        "document_id": None if kept_out else str(handle.document_id),
        "fetched_version": None if kept_out else version,
    }
