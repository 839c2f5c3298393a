"""A slice of `sync` or `fetch` jobs of one mandate: each runs beside the others, and however it ends its schedule lives on."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import Row

from connectors.kit.contract import AuthRevoked, Throttled
from gateway.connections.places import Places
from gateway.corpus.blobs import BlobStore
from gateway.db import Database
from gateway.ingestion import ledger_repository as ledger
from gateway.settings import Settings
from workers.sync import errands
from workers.sync.fence import Lost
from workers.sync.progress import Bulletin


class Errand(Protocol):
    """One job's work at its surface."""

    @property
    def progressed(self) -> bool:
        """Whether anything was committed; then the trouble that ended it is not the same as last time."""
        ...

    async def run(self) -> None: ...


class SurfaceSlice:
    def __init__(
        self,
        errand: "Callable[[SurfaceSlice, Row[Any]], Errand]",
        db: Database,
        settings: Settings,
        blobs: BlobStore,
        places: Places,
        bulletin: Bulletin,
        mandate_id: UUID,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.db, self.settings, self.blobs, self.places, self.bulletin = db, settings, blobs, places, bulletin
        self.mandate_id, self.clock, self._errand = mandate_id, clock, errand

    async def run(self, jobs: Sequence[Row[Any]]) -> None:
        await errands.side_by_side(self._run_one, jobs)

    async def renew(self, claims: Sequence[tuple[UUID, int]]) -> None:
        async with self.db.tenant_session(self.mandate_id) as session:
            await ledger.renew(session, claims, lease_seconds=self.settings.lease_seconds)

    async def _run_one(self, job: Row[Any]) -> None:
        errand = self._errand(self, job)
        try:
            await errand.run()
        except Lost as lost:
            await errands.end_lost(self.db, self.mandate_id, job, lost)
        except Throttled as throttled:
            await errands.wait(self.db, self.mandate_id, job, throttled.after)
        except AuthRevoked as error:
            await errands.give_up_grant(self.db, self.mandate_id, job, str(error))
        except Exception as error:  # noqa: BLE001 - a surface's trouble must not end its schedule
            await errands.trouble(
                self.db, self.mandate_id, job, error, self.settings, progressed=errand.progressed
            )
        finally:
            await self.bulletin.ring(self.mandate_id, job.connection_id)
