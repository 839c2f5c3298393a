"""Makes, renews and removes snapshots. What a snapshot says is looked up when it is made, under the mandate's lock, so
however many events come and in whatever order, the last one made says what is true.

Whether there are any is the policy's word (`snapshots.enabled`), which not is `refusedSourceKinds`. A subject that is gone,
or a policy that says no, takes the snapshot away, except under legal hold: lifting that looks at all of them again.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus import erasure_repository
from gateway.corpus.blobs import BlobStore, default_blob_store
from gateway.corpus.descriptions import Descriptions
from gateway.corpus.erasure import erase_families
from gateway.corpus.masking import placeholder_key
from gateway.db import Database, new_id, tenant_of
from gateway.ingestion import repository as ingestion
from gateway.ingestion import snapshot_repository as repository
from gateway.ingestion import snapshots
from gateway.ingestion.event_schemas import FeatureWords, Preferences
from gateway.ingestion.facade import request_ingestions
from gateway.ingestion.schemas import LIVE_STATUSES, IngestionRequest, Lane
from gateway.ingestion.snapshots import Fact, Kind
from gateway.settings import get_settings
from gateway.tenancy.schemas import Policy

BATCH = 100

Said = Preferences | FeatureWords


async def refresh(
    session: AsyncSession,
    kind: Kind,
    subjects: Sequence[UUID],
    said: Said | None = None,
    *,
    lane: Lane = "delta",
    unchanged_too: bool = True,
    blobs: BlobStore | None = None,
) -> bool:
    """Brings the snapshots of these up to date. False when there is nobody of them here and never was a snapshot."""
    mandate = await repository.lock_mandate(session)
    if mandate is None:
        return False
    policy = Policy.model_validate(mandate.policy)
    names = {snapshots.source_id(subject): subject for subject in subjects}
    there = {names[row.source_id]: row for row in await repository.snapshots(session, kind, list(names))}
    known = await _known(session, kind, subjects, mandate.name, policy)
    wanted = policy.snapshots.enabled and kind not in policy.refused_source_kinds
    store = blobs or default_blob_store()
    doomed = [row.id for subject, row in there.items() if not (wanted and subject in known)]
    if doomed and not policy.legal_hold:
        families = await erasure_repository.lock_families(session, doomed)
        await erase_families(session, store, families)
    if wanted and known:
        secret = get_settings().secret_key
        key = placeholder_key(secret.get_secret_value() if secret else "", tenant_of(session))
        # Not on the loop: looking for secrets and addresses takes its time.
        written = await asyncio.to_thread(_written, kind, known, there, said, key, lane)
        fresh = [
            one for subject, one in written.items() if unchanged_too or _differs(one, there.get(subject))
        ]
        if fresh:
            await request_ingestions(session, fresh, blobs=store)
    return bool(there or known)


async def refresh_all(db: Database, blobs: BlobStore, mandate_id: UUID) -> None:
    """Every snapshot that should be there or is, a batch to a transaction; safe to begin again."""
    for kind in snapshots.KINDS:
        after = ""
        while True:
            async with db.tenant_session(mandate_id) as session:
                subjects = await repository.subjects_after(session, kind, after, BATCH)
                if not subjects:
                    break
                await refresh(
                    session, kind, [*map(UUID, subjects)], lane="backfill", unchanged_too=False, blobs=blobs
                )
            after = subjects[-1]


async def enqueue_all(session: AsyncSession) -> None:
    """Has a worker look at every snapshot: there may be as many as members, too many for whoever brings an event."""
    if await repository.round_waits(session):
        return
    await ingestion.insert_jobs(session, [{"id": new_id(), "kind": "snapshots", "lane": "backfill"}])
    await ingestion.ring_on_commit(session, [{"id": new_id(), "topic": "bell", "lane": "backfill"}])


# What our tables say of each that is there; what events may add comes on top.
Known = dict[UUID, Callable[[Any], list[Fact]]]


async def _known(
    session: AsyncSession, kind: Kind, subjects: Sequence[UUID], name: str, policy: Policy
) -> Known:
    if kind == "profile_snapshot":
        rows = await repository.members(session, subjects)
        return {row.id: partial(snapshots.about_user, row) for row in rows}
    if kind == "feature_snapshot":
        rows = await repository.instances(session, subjects)
        return {row.id: partial(snapshots.about_feature, row) for row in rows}
    mandate_id = tenant_of(session)
    if mandate_id not in subjects:
        return {}
    roles, labels = await repository.members_per_role(session), await repository.instance_labels(session)
    return {mandate_id: lambda _said: snapshots.about_mandate(name, roles, labels, policy)}


def _written(
    kind: Kind, known: Known, there: Mapping[UUID, Row[Any]], said: Said | None, key: bytes, lane: Lane
) -> dict[UUID, IngestionRequest]:
    words = snapshots.masks(key)
    written: dict[UUID, IngestionRequest] = {}
    for subject, facts in known.items():
        kept = there[subject].metadata.get("said", {}) if subject in there else {}
        added = _added(kind, kept, said, words)
        written[subject] = snapshots.request(kind, subject, facts(added), added, words, lane)
    return written


def _added(kind: Kind, kept: Any, said: Said | None, words: Descriptions) -> Said | None:
    """What events said so far, and this one on top. Whoever may describe a document may have written there too."""
    shape = snapshots.SAID.get(kind)
    if shape is None:
        return None
    try:
        added = shape.model_validate(kept)
    except ValidationError:
        added = shape()
    if said is not None:
        added = added.model_copy(update={name: getattr(said, name) for name in said.model_fields_set})
    plain = added.model_dump(by_alias=True, exclude_none=True)
    return shape.model_validate(words.masked({"metadata": plain}).get("metadata", plain))


def _differs(request: IngestionRequest, row: Row[Any] | None) -> bool:
    settled = row is not None and row.status in {*LIVE_STATUSES, "indexed", "skipped"}
    return not settled or row is None or row.content_version != request.content_version
