"""`catchment up --demo` brings its vendors along: supervised, found by environment, gone with the tree."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from connectors.sandbox.address import available
from gateway.embedded.orphans import MARK
from gateway.embedded.sandboxes import Sandboxes
from gateway.settings import Settings
from tests.integration.embedded.conftest import all_gone

ROOT = Path(__file__).parents[3]


class Demo:
    """The real thing, in a process of its own."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CATCHMENT_")}
        begun = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gateway", "up", "--demo", "--data-dir", str(data_dir), "--port", "0"],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line.startswith("Catchment is ready"), line + self.process.stdout.read()
        print(f"\nready with vendors after {time.monotonic() - begun:.1f} s")

    @property
    def instance(self) -> dict[str, Any]:
        return json.loads((self.data_dir / "instance.json").read_text())

    def stop(self) -> None:
        tree = [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]
        os.killpg(self.process.pid, signal.SIGINT)
        self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        assert all_gone(tree)


@pytest.fixture
def demo(data_dir: Path) -> Iterator[Callable[[], Demo]]:
    started: list[Demo] = []

    def start() -> Demo:
        started.append(Demo(data_dir))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


def ask(url: str) -> dict[str, Any]:
    """The sandbox listens before it can answer, and may just be starting again."""
    deadline = time.monotonic() + 30
    with httpx.Client(verify=False, trust_env=False, timeout=30) as client:
        while True:
            try:
                return client.get(url).raise_for_status().json()
            except httpx.HTTPError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)  # looking again is the signal other processes give


def environment_of(pid: int) -> dict[str, str]:
    return psutil.Process(pid).environ()


def test_a_demo_has_its_vendors(demo: Callable[[], Demo]) -> None:
    first = demo()
    instance = first.instance
    assert set(instance["sandbox"]) == set(available())
    assert "sandbox" in instance["pids"]
    assert environment_of(instance["pids"]["worker"])["CATCHMENT_PUSH_URL"] == instance["url"]
    for name, place in instance["sandbox"].items():
        assert place["controlUrl"] == f"{place['url']}/_control"
        assert ask(f"{place['controlUrl']}/state")
        for service in ("gateway", "worker"):
            environment = environment_of(instance["pids"][service])
            endpoints = json.loads(environment[f"CATCHMENT_{name.upper()}_ENDPOINTS"])
            assert any(value.startswith(place["url"]) for value in endpoints.values())
            assert environment[f"CATCHMENT_{name.upper()}_CLIENT_ID"]
            assert environment[f"CATCHMENT_{name.upper()}_CLIENT_SECRET"]
    own = environment_of(instance["pids"]["sandbox"])
    assert {name for name in own if name.startswith("CATCHMENT_")} == {MARK}

    # One that dies comes back where it was.
    os.kill(instance["pids"]["sandbox"], signal.SIGKILL)
    for place in instance["sandbox"].values():
        assert ask(f"{place['controlUrl']}/state")

    # Another start is refused and leaves their ports alone.
    kept = (first.data_dir / "sandbox.json").read_text()
    command = [
        sys.executable,
        "-m",
        "gateway",
        "up",
        "--demo",
        "--data-dir",
        str(first.data_dir),
        "--port",
        "0",
    ]
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert again.returncode == 1
    assert "already running" in again.stderr
    assert (first.data_dir / "sandbox.json").read_text() == kept

    memory = psutil.Process(first.instance["pids"]["sandbox"]).memory_full_info().pss / 1024**2
    print(f"all vendors in one process: {memory:.0f} MB PSS")
    assert memory < 200
    first.stop()

    # Stored delta links name the ports: the next life has the same.
    second = demo()
    assert second.instance["sandbox"] == instance["sandbox"]
    second.stop()


def chosen(data_dir: Path, configured: Sequence[str] = ()) -> Sandboxes:
    """As one start chooses them, and lets go of them at its end."""
    sandboxes = Sandboxes.kept(data_dir, configured)
    for listener in sandboxes.service().sockets:
        assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        listener.close()
    return sandboxes


def test_ports_are_kept_and_a_taken_one_is_replaced(tmp_path: Path) -> None:
    first = chosen(tmp_path)
    assert stat.S_IMODE((tmp_path / "sandbox.json").stat().st_mode) == 0o600
    assert chosen(tmp_path).addresses == first.addresses
    numbers = [port for each in first.addresses for port in (each.port, each.second_port)]
    assert len(set(numbers)) == len(numbers)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first.addresses[0].port))
        taken.listen()
        other = chosen(tmp_path)
    assert other.addresses[0].port != first.addresses[0].port
    assert other.addresses[0].second_port == first.addresses[0].second_port
    assert other.addresses[1:] == first.addresses[1:]


@pytest.mark.parametrize("spoilt", ["{", '{"msft": [70000]}', "[1]", '{"msft": ["a"]}', '{"msft": 1}'])
def test_a_spoilt_file_is_no_reason_not_to_start(tmp_path: Path, spoilt: str) -> None:
    (tmp_path / "sandbox.json").write_text(spoilt)
    assert chosen(tmp_path).addresses


def test_an_operators_own_application_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "msft" not in {each.authority for each in chosen(tmp_path, ["msft"]).addresses}
    ours = chosen(tmp_path)
    for name, value in ours.environment.items():
        monkeypatch.setenv(name, value)
    settings = Settings(data_dir=tmp_path)
    assert settings.msft_endpoints["graph"] == f"{ours.addresses[0].url}/v1.0"
    assert settings.msft_client_id == ours.addresses[0].client_id
