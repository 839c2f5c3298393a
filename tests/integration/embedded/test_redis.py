"""The embedded Redis: private, append-only, unprivileged, and back after a kill."""

import asyncio
import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis
import redis.asyncio

from gateway.embedded.redis import EmbeddedRedis
from gateway.embedded.supervisor import Backoff, Supervisor
from tests.fixtures.processes import until
from tests.integration.embedded.conftest import AWKWARD, all_gone


def server_process(client: redis.Redis) -> psutil.Process:
    return psutil.Process(client.info("server")["process_id"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    data_dir = tmp_path_factory.mktemp("redis") / AWKWARD / "data"
    data_dir.mkdir(parents=True)
    with EmbeddedRedis(data_dir).running() as running:
        yield running


@pytest.fixture
def client(server: EmbeddedRedis) -> Iterator[redis.Redis]:
    with redis.from_url(server.url, decode_responses=True) as client:
        yield client


async def test_the_url_serves_blocking_and_asynchronous_clients(
    server: EmbeddedRedis, client: redis.Redis
) -> None:
    client.set("bell", "rung")
    async with redis.asyncio.from_url(server.url) as other:
        assert await other.get("bell") == b"rung"


def test_it_listens_on_no_network_and_runs_unprivileged(client: redis.Redis, store_uid: int) -> None:
    process = server_process(client)
    assert process.net_connections("inet") == []
    assert set(process.uids()) == {store_uid}


def test_the_socket_is_for_its_user_only(server: EmbeddedRedis, store_uid: int) -> None:
    sockets = server.run_folder.sockets
    assert (sockets.stat().st_uid, stat.S_IMODE(sockets.stat().st_mode)) == (store_uid, 0o700)


def test_nothing_is_evicted_and_everything_is_appended(client: redis.Redis) -> None:
    wanted = {"appendonly": "yes", "appendfsync": "everysec", "maxmemory-policy": "noeviction", "port": "0"}
    assert {name: client.config_get(name)[name] for name in wanted} == wanted


def test_values_survive_kill_9_and_the_socket_left_behind(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path).running() as server, redis.from_url(server.url) as client:
        client.set("window", "17")
        process = server_process(client)
        process.kill()
        assert all_gone([process])
        assert (server.run_folder.sockets / "redis.sock").exists()
    with EmbeddedRedis(tmp_path).running() as server, redis.from_url(server.url) as client:
        assert client.get("window") == b"17"


def test_a_server_left_running_is_stopped_first(tmp_path: Path) -> None:
    left = EmbeddedRedis(tmp_path)
    left.prepare()
    service = left.service()
    orphan = subprocess.Popen(service.argv(), env=service.environment, stdout=subprocess.DEVNULL)
    until_it_listens = redis.retry.Retry(redis.backoff.ConstantBackoff(0.02), 500, (OSError,))
    with redis.from_url(left.url, retry=until_it_listens) as client:
        client.set("window", "18")
    with EmbeddedRedis(tmp_path).running() as server, redis.from_url(server.url) as client:
        assert orphan.wait(10) == 0
        assert client.get("window") == b"18"


async def test_a_file_that_cannot_be_read_any_more_does_not_keep_it_from_starting(tmp_path: Path) -> None:
    """At the first start and at a restart; what was in it is only what the sweep rings again."""
    server = EmbeddedRedis(tmp_path)
    server.prepare()
    file, damage = server.folder / "appendonly.aof", b"\0" * 4096
    file.write_bytes(damage)
    shutil.chown(file, server.folder.owner(), server.folder.group())
    supervisor = Supervisor(show=lambda *_: None, emit=lambda *_, **__: None, backoff=Backoff(first=0.01))
    try:
        await supervisor.start(server.service())
        assert file.with_suffix(".aof.damaged").read_bytes() == damage
        file.with_suffix(".aof.damaged").unlink()
        file.write_bytes(damage)
        os.kill(supervisor.pids["redis"], signal.SIGKILL)

        async def is_back() -> bool:
            ready = server.service().ready
            assert ready is not None
            return file.with_suffix(".aof.damaged").exists() and await asyncio.to_thread(ready, 0)

        await until(is_back, 10, "a Redis that starts again")
    finally:
        await supervisor.stop()
