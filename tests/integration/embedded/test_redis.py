"""The embedded Redis: private, append-only, unprivileged, and back after a kill."""

import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis
import redis.asyncio

from gateway.embedded.redis import EmbeddedRedis
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
