"""Original bytes, content-addressed per mandate.

Small originals live in the `blob` row, so a caller's transaction carries them; large ones go to an object store first,
under `mandateId/sha256`. Whoever writes or collects bytes holds an advisory lock on their hash until commit, so a
collector never deletes what a new upload just brought.
"""

import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import IO
from uuid import UUID

import obstore
from obstore.exceptions import BaseError as ObjectStoreError
from obstore.store import LocalStore, ObjectStore
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus import blob_repository as repository
from gateway.db import Database, tenant_of
from gateway.errors import ConfigurationError, NotFound, TooLarge
from gateway.settings import Settings, get_settings

# Up to here a row is cheaper than an object: one commit, no second store to keep in step.
INLINE_LIMIT = 128 * 1024
_PIECE_BYTES = 1024 * 1024
_CREDENTIALS = re.compile(r"//\S*@")


class BlobStore:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @classmethod
    def of(cls, settings: Settings) -> "BlobStore":
        if settings.blob_url is None:
            folder = settings.data_dir / "blobs"
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            return cls(LocalStore(prefix=folder))
        try:
            return cls(obstore.store.from_url(settings.blob_url))
        except (ValueError, OSError, ObjectStoreError) as error:
            raise ConfigurationError(f"CATCHMENT_BLOB_URL cannot be used: {words_of(error)}") from error

    async def check(self) -> None:
        """Raises what keeps the store from answering. That it holds nothing of that name is an answer."""
        with suppress(FileNotFoundError):
            await obstore.head_async(self._store, "is-anybody-there")

    async def add(self, session: AsyncSession, contents: Sequence[tuple[bytes, bytes]]) -> None:
        """Keeps `(sha256, data)` pairs within the session's transaction; what is already there is not written again."""
        mandate_id = tenant_of(session)
        large = sorted({digest for digest, data in contents if len(data) > INLINE_LIMIT})
        if large:
            await repository.lock_hashes(session, large)
        known = await repository.known_hashes(session, large)
        for digest, data in contents:
            if len(data) > INLINE_LIMIT and digest not in known:
                await obstore.put_async(self._store, _path(mandate_id, digest), data)
        await repository.insert_blobs(
            session,
            [(digest, len(data), data if len(data) <= INLINE_LIMIT else None) for digest, data in contents],
        )

    async def read(self, session: AsyncSession, digest: bytes) -> bytes:
        row = await repository.find_blob(session, digest)
        if row is None:
            raise NotFound("The original bytes are not here any more.")
        return row.data if row.data is not None else await self.read_object(tenant_of(session), digest)

    async def read_object(self, mandate_id: UUID, digest: bytes) -> bytes:
        try:
            result = await obstore.get_async(self._store, _path(mandate_id, digest))
            return bytes(await result.bytes_async())
        except FileNotFoundError as error:
            raise NotFound("The original bytes are not here any more.") from error

    async def pieces(self, db: Database, mandate_id: UUID, digest: bytes) -> AsyncIterator[bytes]:
        """The bytes a piece at a time, without a transaction meanwhile; none if they are not here any more."""
        async with db.tenant_session(mandate_id) as session:
            row = await repository.find_blob(session, digest)
        if row is not None and row.data is not None:
            yield row.data
        elif row is not None:
            try:
                result = await obstore.get_async(self._store, _path(mandate_id, digest))
                async for piece in result.stream(min_chunk_size=_PIECE_BYTES):
                    yield bytes(piece)
            except FileNotFoundError:
                return

    async def delete_objects(self, mandate_id: UUID, digests: Sequence[bytes]) -> None:
        """Call inside the transaction that deleted the rows: its locks keep a new upload of the same bytes waiting."""
        for digest in digests:
            try:
                await obstore.delete_async(self._store, _path(mandate_id, digest))
            except FileNotFoundError:
                continue

    async def collect_orphans(self, session: AsyncSession) -> int:
        """Deletes objects without a row: whoever wrote them died before its commit. A living writer holds the lock."""
        mandate_id, gone = tenant_of(session), 0
        async for listed in obstore.list(self._store, prefix=f"{mandate_id}/"):
            digests = {digest for entry in listed if (digest := _digest(entry["path"])) is not None}
            suspects = sorted(digests - await repository.known_hashes(session, sorted(digests)))
            if suspects:
                await repository.lock_hashes(session, suspects)
                orphans = sorted(set(suspects) - await repository.known_hashes(session, suspects))
                await self.delete_objects(mandate_id, orphans)
                gone += len(orphans)
        return gone


def words_of(error: Exception) -> str:
    """What the store says, without credentials; what follows its first line is for the library's own authors."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return _CREDENTIALS.sub("//", lines[0])


def _digest(path: str) -> bytes | None:
    try:
        return bytes.fromhex(path.rpartition("/")[2])
    except ValueError:  # not one of ours
        return None


def _path(mandate_id: UUID, digest: bytes) -> str:
    return f"{mandate_id}/{digest.hex()}"


async def spool(chunks: AsyncIterator[bytes], target: IO[bytes], limit: int) -> tuple[bytes, int]:
    """Streams an upload into a file, refusing it at the first byte too many; returns its hash and size."""
    digest, size = hashlib.sha256(), 0
    async for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise TooLarge(f"The upload is larger than the limit of {limit:,} bytes.")
        digest.update(chunk)
        target.write(chunk)
    return digest.digest(), size


_default: BlobStore | None = None


def default_blob_store() -> BlobStore:
    global _default  # noqa: PLW0603 - one client per process
    if _default is None:
        _default = BlobStore.of(get_settings())
    return _default
