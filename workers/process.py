"""One worker: answers bells in every lane, relays the outbox and sweeps."""

import asyncio
import gc
import signal
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from arq.worker import Worker, func
from redis.exceptions import RedisError

from gateway.connections.places import VendorPlaces
from gateway.connections.vault import Vault
from gateway.corpus.blobs import BlobStore
from gateway.corpus.child import ChildPool, Launched
from gateway.corpus.embedders import Embedder, build_embedder
from gateway.db import Database
from gateway.embedded.gate import wait_until_open
from gateway.errors import ConfigurationError, StoreUnavailable
from gateway.ingestion import bell
from gateway.logs import configure_logs, emit, place_of
from gateway.settings import Settings, get_settings
from workers import nursery
from workers.maintenance import Maintenance
from workers.pipeline.parsing import PRELOAD
from workers.relay import Relay
from workers.runner import Runner
from workers.settle import Settler
from workers.sync.progress import Bulletin

# Answering a bell is one slice. A slice that takes longer than this is cancelled and handed back.
ANSWER_SECONDS = 900
# Many mandates ring at once; a free worker must see past those that are just being taken.
QUEUE_READ_LIMIT = 10_000
STOP_AGAIN_SECONDS = 5.0  # longer than handing claimed jobs back takes


class WorkerProcess:
    def __init__(
        self, settings: Settings, database_url: str, redis_url: str, embedder: Embedder, parsers: Launched
    ) -> None:
        self.settings, self.embedder = settings, embedder
        self.db = Database(database_url, pool_size=settings.database_pool_size)
        self.redis = bell.connect(redis_url)
        self._redis_url = redis_url
        self.pool = ChildPool(
            handler="workers.pipeline.parsing",
            preload=PRELOAD,
            size=settings.parser_children,
            launched=parsers,
        )
        self.places = VendorPlaces(self.db, settings, self.redis)
        self.runner = Runner(
            self.db,
            settings,
            self.embedder,
            self.pool,
            BlobStore.of(settings),
            self._ring,
            places=self.places,
            bulletin=Bulletin(self.redis),
        )
        self.relay = Relay(self.db, database_url, self.redis, settings.sweep_seconds)
        self.maintenance = Maintenance(self.db, settings)
        self.settler = Settler(self.db, settings)

    async def run(self) -> None:
        emit("house.starting", component="worker")
        await self.db.check_role()
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(name, stop.set)
        services = [
            asyncio.create_task(self.relay.run()),
            asyncio.create_task(self.maintenance.run()),
            *([asyncio.create_task(self.settler.run())] if self.settings.owner_database_url else []),
            *(asyncio.create_task(self._answer_bells(lane)) for lane in bell.LANES),
        ]
        emit("house.ready", component="worker")
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([stopped, *services], return_when=asyncio.FIRST_COMPLETED)
            for service in services:
                if service.done():
                    service.result()
        finally:
            emit("house.stopping", component="worker")
            stopped.cancel()
            await _end(services)
            await self.pool.aclose()
            await self.embedder.aclose()
            await self.places.aclose()
            await self.redis.aclose()
            await self.db.dispose()

    async def _ring(self, lane: str, mandate_id: UUID) -> None:
        try:
            await bell.ring(self.redis, lane, mandate_id)
        except RedisError as error:
            # The sweep rings when Redis is back.
            emit("house.store.unavailable", component="bell", error=type(error).__name__)

    async def _answer_bells(self, lane: str) -> None:
        """ARQ ends its worker when Redis goes away; this one comes back."""

        async def answer(ctx: dict[Any, Any], lane: str, mandate: str) -> None:
            await bell.hear(self.redis, lane, UUID(mandate), ctx["job_id"])
            await answered(self.runner, lane, UUID(mandate))

        while True:
            redis = bell.connect(self._redis_url)
            worker = Worker(
                functions=[
                    func(answer, name="answer", keep_result=0, timeout=ANSWER_SECONDS, max_tries=1_000_000)
                ],  # pyright: ignore[reportArgumentType]
                redis_pool=redis,
                queue_name=bell.queue_name(lane),
                max_jobs=self.settings.worker_slots,
                job_serializer=bell.pack,
                job_deserializer=bell.unpack,
                poll_delay=0.05,
                queue_read_limit=QUEUE_READ_LIMIT,
                health_check_interval=15,
                handle_signals=False,
                keep_result=0,
                log_results=False,
            )
            try:
                await worker.async_run()
            except (RedisError, OSError) as error:
                _raise_if_cancelled()
                emit("house.store.unavailable", component=f"bell.{lane}", error=type(error).__name__)
                await asyncio.sleep(0.5)
            finally:
                for task in worker.tasks.values():
                    task.cancel()
                await asyncio.gather(*worker.tasks.values(), return_exceptions=True)
                await redis.aclose()


async def answered(runner: Runner, lane: str, mandate_id: UUID) -> None:
    """What nobody foresaw is said in our log, not in ARQ's words alone; the sweep rings for the jobs again."""
    try:
        await runner.answer(lane, mandate_id)
    except StoreUnavailable as error:
        emit("house.store.unavailable", component="worker", error=error.detail)
    except Exception as error:  # noqa: BLE001 - the edge of the worker; a job's own trouble is the runner's
        emit("ledger.answer.failed", lane=lane, mandateId=str(mandate_id), error=place_of(error))


async def _end(services: Sequence[asyncio.Task[None]]) -> None:
    """Cancelled until they are done: on its way through a client library a cancellation can become a lost connection, and a
    service that goes on after lost connections would never hear of it.
    """
    left = set(services)
    while left:
        for service in left:
            service.cancel()
        _, left = await asyncio.wait(left, timeout=STOP_AGAIN_SECONDS)


def _raise_if_cancelled() -> None:
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def run() -> str | None:
    """Until it is told to stop; a reason when it cannot serve."""
    settings = get_settings()
    configure_logs(log_format=settings.log_format, level=settings.log_level, data_dir=settings.data_dir)
    if settings.database_url is None or settings.redis_url is None:
        return "Set CATCHMENT_DATABASE_URL and CATCHMENT_REDIS_URL, or start everything with `catchment up`."
    try:
        Vault.of(settings)
        embedder = build_embedder(
            settings.embedder,
            api_key=settings.openai_api_key.get_secret_value() if settings.openai_api_key else None,
            base_url=settings.openai_base_url,
        )
        wait_until_open()
        gc.freeze()  # what is loaded by now stays; the collector need not look through it with every slice
        gc.enable()
        parsers = nursery.worker()
        process = WorkerProcess(
            settings,
            settings.database_url.get_secret_value(),
            settings.redis_url.get_secret_value(),
            embedder,
            parsers,
        )
        asyncio.run(process.run())
    except (ConfigurationError, StoreUnavailable) as error:
        return error.detail
    return None
