"""`catchment up`: stores, migrations, services, in one process tree with one beginning and one end."""

import asyncio
import base64
import http.client
import os
import secrets
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from gateway.embedded import gate, orphans
from gateway.embedded.instance import Instance
from gateway.embedded.lock import data_dir_lock
from gateway.embedded.output import Show
from gateway.embedded.postgres import EmbeddedPostgres
from gateway.embedded.preflight import StartupRefused, check_disk, check_folder, open_port
from gateway.embedded.private_files import kept_secret, private_folder
from gateway.embedded.redis import EmbeddedRedis
from gateway.embedded.service import Service
from gateway.embedded.supervisor import Emit, Supervisor
from gateway.settings import reachable, url_of

# Given owner URL, runtime URL and the gateway's URL, once the stores answer: migrates, seeds, and returns what instance.json
# says beyond url and pids. Runs in a thread; may raise StartupRefused.
Prepare = Callable[[str, str, str], Mapping[str, object]]
T = TypeVar("T")
OWNER_URL = "CATCHMENT_OWNER_DATABASE_URL"
_ANSWER_SECONDS = 1.0  # a gateway that gave up is noticed this late: its port goes on listening


@dataclass(frozen=True, kw_only=True)
class Plan:
    data_dir: Path
    port: int
    host: str = "127.0.0.1"
    # Given: that store is somebody else's and is not started.
    database_url: str | None = None
    owner_database_url: str | None = None
    redis_url: str | None = None
    # Kept in DATA_DIR/secrets when not given.
    secret_key: str | None = None
    # For gateway and worker, over the environment of this process.
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    # Started before worker and gateway; nobody waits for them.
    services: Sequence[Service] = ()
    gateway_command: Sequence[str] = (sys.executable, "-m", "gateway", "gateway")
    worker_command: Sequence[str] = (sys.executable, "-m", "workers")


@dataclass(frozen=True)
class StoreUrls:
    owner: str
    runtime: str
    redis: str


async def run_instance(
    plan: Plan, *, prepare: Prepare, on_ready: Callable[[Instance], None], show: Show, emit: Emit
) -> None:
    """Runs until SIGINT, SIGTERM or SIGHUP; a second one does not wait. Raises StartupRefused."""
    await asyncio.to_thread(check_folder, plan.data_dir)
    with data_dir_lock(plan.data_dir), await asyncio.to_thread(_clear_the_ground, plan) as listener:
        run = _Run(plan, listener, show, emit)
        stop = asyncio.Event()
        with _StopSignals(stop, run.supervisor.hurry):
            await run.until(stop, prepare, on_ready)


def _clear_the_ground(plan: Plan) -> socket.socket:
    left = orphans.marked(plan.data_dir)
    orphans.end(left, ask=left, with_signal=signal.SIGTERM, patience=2.0)
    Instance.path(plan.data_dir).unlink(missing_ok=True)
    check_disk(plan.data_dir)
    shutil.rmtree(plan.data_dir / "metrics", ignore_errors=True)
    private_folder(plan.data_dir / "metrics")
    return open_port(plan.host, plan.port)


class _StopSignals:
    """The first signal sets the event, every further one calls `again`."""

    def __init__(self, stop: asyncio.Event, again: Callable[[], None]) -> None:
        self._stop = stop
        self._again = again
        # Under nohup a hang-up is ignored, and should stay so.
        hang_up = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
        self._signals = (signal.SIGINT, signal.SIGTERM, *hang_up)

    def __enter__(self) -> None:
        for number in self._signals:
            asyncio.get_running_loop().add_signal_handler(number, self._handle)

    def __exit__(self, *_: object) -> None:
        for number in self._signals:
            asyncio.get_running_loop().remove_signal_handler(number)

    def _handle(self) -> None:
        if self._stop.is_set():
            self._again()
        self._stop.set()


class _Run:
    """One life of an instance."""

    def __init__(self, plan: Plan, listener: socket.socket, show: Show, emit: Emit) -> None:
        self._plan = plan
        self._listener = listener
        self._port: int = listener.getsockname()[1]
        self.supervisor = Supervisor(show=show, emit=emit, on_started=self._on_started)
        self._instance: Instance | None = None
        self._writing = threading.Lock()
        self._postgres = EmbeddedPostgres(plan.data_dir)
        self._redis = EmbeddedRedis(plan.data_dir)

    async def until(
        self, stop: asyncio.Event, prepare: Prepare, on_ready: Callable[[Instance], None]
    ) -> None:
        asked = asyncio.create_task(stop.wait())
        work = asyncio.create_task(self._start(prepare, on_ready))
        try:
            await asyncio.wait({asked, work}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                await work
        finally:
            asked.cancel()
            work.cancel()
            await asyncio.wait({work})
            await self.supervisor.stop()
            await asyncio.to_thread(self._leave)

    async def _start(self, prepare: Prepare, on_ready: Callable[[Instance], None]) -> None:
        """Everything is begun at once, in the order in which it must end, and the services wait at the gate for the stores."""
        begin, ready = self.supervisor.begin, self.supervisor.ready
        with gate.closed(self._plan.data_dir):
            stores = [await begin(store) for store in await _finished(self._stores)]
            urls = self._urls()
            services = [await begin(service) for service in await asyncio.to_thread(self._services, urls)]
            for store in stores:
                await ready(store)
            if self._plan.database_url is None:
                await _finished(self._postgres.bootstrap)
            prepared = await asyncio.to_thread(prepare, urls.owner, urls.runtime, self._url)
            self._instance = Instance.model_validate({"url": self._url, **prepared})
            await asyncio.to_thread(self._write_instance)
        for service in services:
            await ready(service)
        await asyncio.to_thread(on_ready, self._instance)
        await self.supervisor.watch()

    def _stores(self) -> list[Service]:
        """Those that are ours, with all they need to start."""
        plan, ours = self._plan, list[Service]()
        if (plan.database_url is None) != (plan.owner_database_url is None):
            raise StartupRefused(
                f"CATCHMENT_DATABASE_URL and {OWNER_URL} are two roles of one database: set both or none."
            )
        for store, elsewhere in ((self._redis, plan.redis_url), (self._postgres, plan.database_url)):
            if elsewhere is None:
                store.prepare()
                ours.append(store.service())
        return ours

    def _urls(self) -> StoreUrls:
        plan = self._plan
        return StoreUrls(
            owner=plan.owner_database_url or self._postgres.owner_url,
            runtime=plan.database_url or self._postgres.runtime_url,
            redis=plan.redis_url or self._redis.url,
        )

    def _services(self, urls: StoreUrls) -> list[Service]:
        plan = self._plan
        secret_key = plan.secret_key or kept_secret(
            plan.data_dir / "secrets",
            "secret_key",
            lambda: base64.b64encode(secrets.token_bytes(32)).decode(),
        )
        environment = {
            # Vendors that live beside the gateway can reach it; who says where they should is believed.
            **({"CATCHMENT_PUSH_URL": self._url} if plan.services else {}),
            **{name: value for name, value in os.environ.items() if name != OWNER_URL},
            **plan.environment,
            "CATCHMENT_DATABASE_URL": urls.runtime,
            "CATCHMENT_REDIS_URL": urls.redis,
            "CATCHMENT_DATA_DIR": str(plan.data_dir),
            "CATCHMENT_SECRET_KEY": secret_key,
            "PROMETHEUS_MULTIPROC_DIR": str(plan.data_dir / "metrics"),
        }
        # Index builds are the worker's; the gateway never holds the owner's key.
        worker = Service(
            name="worker",
            command=plan.worker_command,
            environment={**environment, OWNER_URL: urls.owner},
        )
        gateway = Service(
            name="gateway",
            command=[*plan.gateway_command, "--fd", str(self._listener.fileno())],
            environment=environment,
            sockets=[self._listener],
            ready=self._answers,
        )
        marked = gate.mark(plan.data_dir)
        return [
            replace(service, environment={**service.environment, **marked})
            for service in (*plan.services, worker, gateway)
        ]

    def _answers(self, _pid: int) -> bool:
        host = reachable(self._plan.host)
        connection = http.client.HTTPConnection(host, self._port, timeout=_ANSWER_SECONDS)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    @property
    def _url(self) -> str:
        return url_of(self._plan.host, self._port)

    def _on_started(self, _name: str, _pid: int) -> None:
        with suppress(OSError):  # on a full disk the file keeps the old pids; the service runs all the same
            self._write_instance()

    def _write_instance(self) -> None:
        """Whole before the gateway can answer, and true again after every restart."""
        with self._writing:
            if self._instance:
                self._instance.pids = {"up": os.getpid(), **self.supervisor.pids}
                self._instance.write(self._plan.data_dir)

    def _leave(self) -> None:
        Instance.path(self._plan.data_dir).unlink(missing_ok=True)
        self._redis.run_folder.tidy()
        self._postgres.run_folder.tidy()


async def _finished(call: Callable[[], T]) -> T:
    """In a thread, and not left half done when we are asked to stop meanwhile."""
    task = asyncio.create_task(asyncio.to_thread(call))
    try:
        return await asyncio.shield(task)
    finally:
        await asyncio.wait({task})
        task.exception()
