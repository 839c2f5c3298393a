"""Whole lives of an instance: real stores under a real parent, with stand-ins for gateway and worker."""

import json
import os
import queue
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from gateway.embedded.lock import data_dir_lock
from gateway.embedded.orphans import mark
from gateway.embedded.postgres import EmbeddedPostgres
from gateway.embedded.preflight import StartupRefused
from gateway.embedded.up import Plan, run_instance
from tests.integration.embedded.conftest import all_gone

ROOT = Path(__file__).parents[3]


class Up:
    """One `up` in a process of its own."""

    def __init__(self, data_dir: Path, *options: str, port: int = 0) -> None:
        self.data_dir = data_dir
        driver = str(Path(__file__).with_name("driver.py"))
        self.process = subprocess.Popen(
            [sys.executable, driver, str(data_dir), str(port), *options],
            env={**os.environ, "PYTHONPATH": str(ROOT), "CATCHMENT_OWNER_DATABASE_URL": "inherited"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.seen: list[dict[str, Any]] = []
        self._said: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._said.put(line)

    def until(self, event: str, **fields: object) -> dict[str, Any]:
        wanted = {"event": event, **fields}
        while True:
            try:
                said = json.loads(self._said.get(timeout=20))
            except queue.Empty:
                pytest.fail(f"{wanted} was not said, but {self.seen}")
            self.seen.append(said)
            if said.items() >= wanted.items():
                return said

    def ready(self) -> dict[str, Any]:
        return self.until("ready")["instance"]

    def recorded(self) -> dict[str, Any]:
        return json.loads((self.data_dir / "instance.json").read_text())

    def tree(self) -> list[psutil.Process]:
        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children(recursive=True)]

    def stop(self) -> tuple[int, str]:
        """As Ctrl-C at a terminal does it: to everything in the foreground."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.ended()

    def ended(self) -> tuple[int, str]:
        code = self.process.wait(30)
        self._reader.join(10)
        assert self.process.stdout
        assert self.process.stderr
        while not self._said.empty():
            self.seen.append(json.loads(self._said.get()))
        said = self.process.stderr.read()
        self.process.stderr.close()
        self.process.stdout.close()
        return code, said


@pytest.fixture
def up() -> Iterator[Callable[..., Up]]:
    started: list[Up] = []

    def start(data_dir: Path, *options: str, port: int = 0) -> Up:
        started.append(Up(data_dir, *options, port=port))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def ask(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/readyz", timeout=5) as answer:
        return json.loads(answer.read())


def test_a_whole_life(data_dir: Path, up: Callable[..., Up]) -> None:
    first = up(data_dir)
    instance = first.ready()
    assert (instance["loginUrl"], instance["apiKey"]) == ("http://login/1", "ck_local")
    assert set(instance["pids"]) == {"up", "redis", "postgres", "worker", "gateway"}
    assert first.recorded() == instance
    assert stat.S_IMODE((data_dir / "instance.json").stat().st_mode) == 0o600
    gateway = ask(instance["url"])
    assert gateway["early"]["loginUrl"] == "http://login/1"  # there before the gateway could answer
    assert gateway["early"]["pids"]["gateway"] == gateway["pid"] == instance["pids"]["gateway"]
    tree = first.tree()
    assert {process.pid for process in tree} >= set(instance["pids"].values())
    # Each a session of its own: Ctrl-C at the terminal must not stop the database before its clients.
    assert [os.getsid(pid) for pid in instance["pids"].values()] == list(instance["pids"].values())

    assert first.stop() == (0, "")
    assert all_gone(tree, timeout=0)
    stopped = [said["component"] for said in first.seen if said["event"] == "house.stopping"]
    assert stopped == ["gateway", "worker", "postgres", "redis"]
    assert not [said for said in first.seen if said["event"] == "house.child.died"]
    assert not (data_dir / "instance.json").exists()
    assert not EmbeddedPostgres(data_dir).run_folder.path.exists()


def test_gateway_and_worker_get_what_they_need_and_no_more(data_dir: Path, up: Callable[..., Up]) -> None:
    leftover = data_dir / "metrics" / "counter_1.db"
    leftover.parent.mkdir()
    leftover.touch()
    first = up(data_dir)
    gateway = ask(first.ready()["url"])["environment"]
    said = [e for e in first.seen if e["event"] == "line" and e["service"] == "worker"]
    worker = json.loads((said or [first.until("line", service="worker")])[0]["line"])
    postgres = EmbeddedPostgres(data_dir)
    assert gateway["CATCHMENT_DATABASE_URL"] == worker["CATCHMENT_DATABASE_URL"] == postgres.runtime_url
    assert "CATCHMENT_OWNER_DATABASE_URL" not in gateway
    assert worker["CATCHMENT_OWNER_DATABASE_URL"] == postgres.owner_url
    assert gateway["CATCHMENT_REDIS_URL"].startswith("unix://")
    assert gateway["CATCHMENT_DATA_DIR"] == str(data_dir)
    assert gateway["PROMETHEUS_MULTIPROC_DIR"] == str(data_dir / "metrics")
    assert not leftover.exists()
    assert len(gateway["CATCHMENT_SECRET_KEY"]) == 44
    kept = data_dir / "secrets" / "secret_key"
    assert kept.read_text() == gateway["CATCHMENT_SECRET_KEY"]
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    first.stop()


def test_after_kill_9_of_the_whole_tree_everything_is_back(data_dir: Path, up: Callable[..., Up]) -> None:
    first = up(data_dir)
    first.ready()
    tree = first.tree()
    for process in tree:
        with suppress(psutil.NoSuchProcess):  # the death of one may have taken another along
            process.kill()
    first.process.wait()
    assert all_gone(tree)
    second = up(data_dir)
    assert second.ready()["loginUrl"] == "http://login/2"
    assert second.stop() == (0, "")


def test_after_kill_9_of_the_parent_alone_everything_is_back(data_dir: Path, up: Callable[..., Up]) -> None:
    first = up(data_dir)
    instance = first.ready()
    tree = first.tree()
    first.process.kill()
    first.process.wait()
    port = int(instance["url"].rpartition(":")[2])
    second = up(data_dir, port=port)  # at once, while the first tree may still be dying
    assert second.ready()["loginUrl"] == "http://login/2"
    assert all_gone(tree)


def test_nothing_outlives_a_killed_parent(data_dir: Path, up: Callable[..., Up]) -> None:
    first = up(data_dir)
    first.ready()
    tree = first.tree()
    first.process.kill()
    first.process.wait()
    assert all_gone(tree)


def test_two_instances_live_side_by_side(make_data_dir: Callable[[str], Path], up: Callable[..., Up]) -> None:
    one, two = up(make_data_dir("one")), up(make_data_dir("two"))
    urls = {ask(each.ready()["url"])["environment"]["CATCHMENT_DATABASE_URL"] for each in (one, two)}
    assert len(urls) == 2
    assert one.stop() == (0, "")
    assert ask(two.recorded()["url"])["pid"] == two.recorded()["pids"]["gateway"]
    assert two.stop() == (0, "")


def test_a_second_up_on_the_same_folder_is_refused_and_disturbs_nothing(
    data_dir: Path, up: Callable[..., Up]
) -> None:
    first = up(data_dir)
    before = first.ready()
    code, said = up(data_dir).ended()
    assert code == 1
    assert said == (
        f"Catchment is already running on {data_dir} (process {first.process.pid}): "
        "stop it first, or choose another --data-dir.\n"
    )
    assert first.recorded() == before
    assert ask(before["url"])["pid"] == before["pids"]["gateway"]
    first.stop()


def test_the_lock_is_free_again_after_use(tmp_path: Path) -> None:
    with data_dir_lock(tmp_path), pytest.raises(StartupRefused), data_dir_lock(tmp_path):
        pass
    with data_dir_lock(tmp_path):
        pass


def test_a_taken_port_is_refused_before_anything_is_started(tmp_path: Path, up: Callable[..., Up]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = up(tmp_path, port=port).ended()
    assert (code, said.count("\n")) == (1, 1)
    assert f"Port {port} on 127.0.0.1 is already taken" in said
    assert not (tmp_path / "postgres").exists()


def test_a_refusal_while_preparing_stops_the_stores(data_dir: Path, up: Callable[..., Up]) -> None:
    refused = up(data_dir, "--refuse")
    pids = [refused.until("house.starting", component=name)["pid"] for name in ("redis", "postgres")]
    assert refused.ended() == (1, "The database is of a newer schema.\n")
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert not (data_dir / "instance.json").exists()


def test_asked_to_stop_while_preparing_it_stops(data_dir: Path, up: Callable[..., Up]) -> None:
    (data_dir / "instance.json").write_text("left by a killed instance")
    hanging = up(data_dir, "--hang")
    hanging.until("preparing")
    assert not (data_dir / "instance.json").exists()
    tree = hanging.tree()
    hanging.process.send_signal(signal.SIGTERM)
    assert hanging.ended()[0] == 0
    assert all_gone(tree, timeout=0)


def test_whatever_is_killed_comes_back_and_instance_json_says_so(
    data_dir: Path, up: Callable[..., Up]
) -> None:
    first = up(data_dir)
    instance = first.ready()
    for name in ("gateway", "redis", "postgres"):
        os.kill(instance["pids"][name], signal.SIGKILL)
        assert first.until("house.child.died", component=name)["exitCode"] == -signal.SIGKILL
        answer = ask(instance["url"])  # the port is the supervisor's: who asks meanwhile only waits
        instance["pids"][name] = first.until("house.starting", component=name)["pid"]
        assert answer["pid"] == instance["pids"]["gateway"]
        assert first.recorded() == instance
    first.until("line", service="postgres", line="LOG:  database system is ready to accept connections")
    with psycopg.connect(EmbeddedPostgres(data_dir).owner_url) as connection:
        assert connection.execute("SELECT count(*) FROM life").fetchone() == (1,)
    assert first.stop() == (0, "")


def test_a_service_comes_back_once_though_instance_json_cannot_be_written(
    data_dir: Path, up: Callable[..., Up]
) -> None:
    """As on a full disk: what is told about a service must not count as its failure to start."""
    first = up(data_dir)
    instance = first.ready()
    file = data_dir / "instance.json"
    file.unlink()
    file.mkdir()
    os.kill(instance["pids"]["worker"], signal.SIGKILL)
    assert psutil.pid_exists(first.until("house.starting", component="worker")["pid"])
    file.rmdir()
    assert first.stop() == (0, "")
    died = [said for said in first.seen if said["event"] == "house.child.died"]
    assert [said["component"] for said in died] == ["worker"]


def test_stores_given_from_outside_are_not_started(tmp_path: Path, up: Callable[..., Up]) -> None:
    first = up(tmp_path, "--external")
    instance = first.ready()
    assert set(instance["pids"]) == {"up", "worker", "gateway"}
    gateway = ask(instance["url"])["environment"]
    assert gateway["CATCHMENT_DATABASE_URL"] == "postgresql://runtime@/elsewhere"
    assert gateway["CATCHMENT_REDIS_URL"] == "redis://elsewhere"
    assert not (tmp_path / "postgres").exists()
    assert not (tmp_path / "redis").exists()
    assert first.stop() == (0, "")


@pytest.mark.parametrize("given", ["database_url", "owner_database_url"])
async def test_an_outside_database_needs_both_of_its_urls(tmp_path: Path, given: str) -> None:
    urls = {given: "postgresql://somebody@/elsewhere", "redis_url": "redis://x"}
    plan = Plan(data_dir=tmp_path, port=0, **urls)  # pyright: ignore[reportArgumentType]
    with pytest.raises(StartupRefused, match="set both or none"):
        await run_instance(plan, prepare=lambda *_: {}, on_ready=print, show=print, emit=print)


def test_a_service_left_by_an_earlier_tree_is_ended_first(data_dir: Path, up: Callable[..., Up]) -> None:
    sleep = shutil.which("sleep") or "sleep"
    left = subprocess.Popen([sleep, "600"], env={**os.environ, **mark(data_dir)})
    stranger = subprocess.Popen([sleep, "600"], env={**os.environ, **mark(data_dir.parent)})
    try:
        first = up(data_dir)
        first.ready()
        assert left.wait(5) == -signal.SIGTERM
        assert stranger.poll() is None
        first.stop()
    finally:
        for process in (left, stranger):
            process.kill()
            process.wait()
