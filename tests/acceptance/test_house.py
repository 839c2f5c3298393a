"""The house, shown on real processes started the way a person starts them. Figures are printed (`pytest -s`).

`CATCHMENT_ACCEPTANCE=full` repeats the kill five times.
"""

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import pytest

from gateway.embedded.postgres import EmbeddedPostgres
from gateway.embedded.run_folder import RunFolder
from tests.fixtures.preloaded import run
from tests.fixtures.processes import REPOSITORY, free_port

FULL = os.environ.get("CATCHMENT_ACCEPTANCE") == "full"
KILLS = 5 if FULL else 1


def allowed(seconds: float) -> float:
    """The full profile holds the promise of two idle cores; beside other tests the bound only catches a hang."""
    return seconds if FULL else seconds * max(3.0, os.getloadavg()[0])


class Up:
    """`catchment up` in a session of its own."""

    def __init__(self, data_dir: Path, *options: str) -> None:
        self.data_dir = data_dir
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self.began = time.monotonic()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CATCHMENT_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gateway", "up", "--data-dir", str(data_dir), "--port", "0", *options],
            cwd=REPOSITORY,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
        )

    def ready(self, seconds: float = 60) -> float:
        """Waits for the one line; the time it took."""
        assert self.process.stdout
        self.line = self.process.stdout.readline()
        took = time.monotonic() - self.began
        assert self.line.startswith("Catchment is ready: http://"), self.line + self.errors()
        assert took < seconds
        assert httpx.get(f"{self.instance['url']}/readyz", verify=False).status_code == 200
        return took

    def errors(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode()

    @property
    def instance(self) -> dict[str, Any]:
        return json.loads((self.data_dir / "instance.json").read_text())

    def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        key = self.instance["apiKey"]
        return httpx.request(
            method,
            f"{self.instance['url']}/v1{path}",
            headers={"Authorization": f"Bearer {key}"},
            timeout=30,
            **options,
            verify=False,
        )

    def tree(self) -> list[psutil.Process]:
        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children(recursive=True)]

    def kill(self) -> None:
        """The whole tree at once, as a power cut would."""
        tree = self.tree()
        for how in (signal.SIGSTOP, signal.SIGKILL):
            for process in tree:
                with suppress(psutil.NoSuchProcess):  # the death of one may have taken another along
                    process.send_signal(how)
        self.process.wait(10)
        assert not psutil.wait_procs(tree, timeout=10)[1]

    def interrupt(self) -> tuple[int, list[psutil.Process]]:
        """Ctrl-C; exit code and whatever is left of the tree. What was printed meanwhile is in `output`."""
        assert self.process.stdout
        tree = self.tree()
        os.killpg(self.process.pid, signal.SIGINT)
        self.output = self.process.stdout.read()
        return self.process.wait(60), psutil.wait_procs(tree, timeout=5)[1]


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "a folder with spaces"


@pytest.fixture
def up() -> Iterator[Callable[..., Up]]:
    started: list[Up] = []

    def start(data_dir: Path, *options: str) -> Up:
        started.append(Up(data_dir, *options))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.kill()
        shutil.rmtree(
            RunFolder(one.data_dir).path, ignore_errors=True
        )  # a killed tree leaves its sockets behind


def one_sentence(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode != 0
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    return done.stderr.strip()


def test_a_kill_of_the_whole_tree_loses_nothing(up: Callable[..., Up], data_dir: Path) -> None:
    first = up(data_dir)
    took = first.ready()
    print(f"\nfirst start, with an empty folder: {took:.1f} s")
    assert stat.S_IMODE((data_dir / "instance.json").stat().st_mode) == 0o600
    key = first.instance["apiKey"]
    made = first.call("POST", "/mandates", json={"slug": "acme", "name": "Acme"})
    assert made.status_code == 201, made.text
    owner_key = made.json()["ownerKey"]
    house = first
    for _ in range(KILLS):
        house.kill()
        house = up(data_dir)
        took = house.ready()
        print(f"ready again after kill -9 of the whole tree: {took:.1f} s (load {os.getloadavg()[0]:.1f})")
        assert took <= allowed(10)
        assert house.instance["apiKey"] == key, "the local owner's key is kept"
        slugs = {item["slug"] for item in house.call("GET", "/mandates").json()["items"]}
        assert slugs == {"commons", "local", "acme"}
        me = httpx.get(
            f"{house.instance['url']}/v1/whoami",
            headers={"Authorization": f"Bearer {owner_key}"},
            verify=False,
        )
        assert me.json()["mandateId"] == made.json()["mandateId"]
    code, left = house.interrupt()
    assert (code, left) == (0, [])
    again = up(data_dir)
    took = again.ready()
    print(f"second clean start: {took:.1f} s (load {os.getloadavg()[0]:.1f})")
    assert took <= allowed(5)
    assert again.interrupt() == (0, [])
    assert not (data_dir / "instance.json").exists()


def test_one_line_with_the_way_in_then_the_logs(up: Callable[..., Up], data_dir: Path) -> None:
    house = up(data_dir)
    house.ready()
    instance = house.instance
    assert house.line.strip() == f"Catchment is ready: {instance['loginUrl']}"
    assert set(instance["pids"]) == {"up", "postgres", "redis", "worker", "gateway"}
    with httpx.Client(verify=False) as browser:
        arrived = browser.get(instance["loginUrl"], follow_redirects=True)
        assert "owner@localhost" in arrived.text
        assert "Local" in arrived.text
    assert httpx.get(instance["loginUrl"], verify=False).status_code == 401, "a link works once"
    tree = house.tree()
    names = {pid: name for name, pid in instance["pids"].items()}
    memory: Counter[str] = Counter()
    for process in tree:
        # A child counts for the nearest of its parents that has a name.
        line = [process, *process.parents()]
        name = next(names[one.pid] for one in line if one.pid in names)
        memory[name] += process.memory_full_info().pss / 1024**2
    print(f"\nidle memory of the tree: {sum(memory.values()):.0f} MB PSS in {len(tree)} processes", end=" (")
    print(", ".join(f"{name} {megabytes:.0f}" for name, megabytes in sorted(memory.items())) + ")")
    assert house.interrupt() == (0, [])
    assert house.errors() == ""
    logged = [json.loads(line) for line in house.output.splitlines() if line.startswith("{")]
    assert {"house.starting", "house.ready", "house.stopping", "http.request"} <= {
        line["event"] for line in logged
    }
    kept = (data_dir / "logs" / "catchment.jsonl").read_text()
    for secret in (instance["apiKey"], instance["loginUrl"].partition("token=")[2]):
        assert secret not in house.output
        assert secret not in kept


def test_two_instances_side_by_side(up: Callable[..., Up], tmp_path: Path) -> None:
    one, other = up(tmp_path / "one"), up(tmp_path / "other", "--demo")
    one.ready(90)
    other.ready(90)
    assert one.instance["url"] != other.instance["url"]
    assert one.call("POST", "/mandates", json={"slug": "only-here", "name": "X"}).status_code == 201
    assert {item["slug"] for item in other.call("GET", "/mandates").json()["items"]} == {"commons", "demo"}
    assert len(other.call("GET", "/members").json()["items"]) == 4
    assert one.interrupt() == (0, [])
    assert other.call("GET", "/whoami").status_code == 200, "the other one stays"
    assert other.interrupt() == (0, [])


def test_a_taken_port_is_said_in_one_sentence(data_dir: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = one_sentence(run("up", "--data-dir", str(data_dir), "--port", str(taken.getsockname()[1])))
    assert "already taken" in said


def test_a_folder_that_cannot_be_used_is_said_in_one_sentence(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("here first")
    said = one_sentence(run("up", "--data-dir", str(in_the_way / "data"), "--port", "0"))
    assert "cannot be used because a file is in its place" in said
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "logs").write_text("here first")
    assert "d/logs: File exists" in one_sentence(run("up", "--data-dir", str(tmp_path / "d"), "--port", "0"))
    # Even root may not write there.
    said = one_sentence(run("up", "--data-dir", "/proc/catchment", "--port", "0"))
    assert "cannot be written to" in said


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_bad_settings_are_said_in_one_sentence(tmp_path: Path) -> None:
    said = one_sentence(run("up", "--data-dir", str(tmp_path / "d"), CATCHMENT_WORKER_SLOTS="none"))
    assert "CATCHMENT_WORKER_SLOTS" in said
    assert "CATCHMENT_WORKER_SLOTS" in one_sentence(run("worker", CATCHMENT_WORKER_SLOTS="none"))
    said = one_sentence(run("doctor", CATCHMENT_MSFT_ENDPOINTS="hush"))
    assert said == "The setting CATCHMENT_MSFT_ENDPOINTS is not valid: it must be JSON."
    said = one_sentence(run("gateway", CATCHMENT_DATA_DIR=str(tmp_path)))
    assert "catchment up" in said
    where = {
        "CATCHMENT_DATABASE_URL": "postgresql://x@127.0.0.1:1/x",
        "CATCHMENT_REDIS_URL": "redis://127.0.0.1:1",
        "CATCHMENT_SECRET_KEY": "0" * 43 + "=",
    }
    done = run("gateway", "--port", str(free_port()), CATCHMENT_DATA_DIR=str(tmp_path), **where)
    assert done.returncode == 1
    assert done.stderr.startswith("The database does not answer: connection failed: ")
    assert "Connection refused" in done.stderr


def test_the_commands_find_the_instance_and_work_on_it(up: Callable[..., Up], data_dir: Path) -> None:
    house = up(data_dir)
    house.ready()
    here = ("--data-dir", str(data_dir))
    assert "already running" in one_sentence(run("up", *here, "--port", "0"))

    def told(*arguments: str) -> Any:
        done = run(*arguments, *here, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    findings = {finding["what"]: finding["state"] for finding in told("doctor")}
    assert set(findings.values()) == {"ok"}, findings
    assert {
        "python",
        "disk",
        "postgres",
        "pgvector",
        "redis",
        "runtime role",
        "sweeper role",
        "clock",
        "embedder",
    } <= set(findings)
    told("users", "create", "ada@example.org", "--name", "Ada", "--role", "admin")
    made = told("keys", "create", "laptop", "--user", "ada@example.org", "--scope", "read", "--days", "7")
    assert made["key"].startswith("ck_")
    assert [user["email"] for user in told("users", "list")] == ["owner@localhost", "ada@example.org"]
    acme = told("mandates", "create", "acme", "--name", "Acme", "--owner", "ann@acme.example")
    assert {item["slug"] for item in told("mandates", "list")} == {"commons", "local", "acme"}
    link = told("login", "--user", "ada@example.org")["url"]
    with httpx.Client(verify=False) as browser:
        assert "ada@example.org" in browser.get(link, follow_redirects=True).text

    as_ada = run("keys", "list", "--url", house.instance["url"], "--api-key", made["key"], "--json")
    assert [key["name"] for key in json.loads(as_ada.stdout)] == ["laptop"]
    by_environment = run(
        "mandates", "list", "--json", CATCHMENT_URL=house.instance["url"], CATCHMENT_API_KEY=acme["ownerKey"]
    )
    assert [item["slug"] for item in json.loads(by_environment.stdout)] == ["acme"]

    assert "laptop" in run("keys", "list", *here).stdout
    team = told("features", "create", "crm", "Sales north", "--member", "ada@example.org")
    assert [item["label"] for item in told("features", "list")] == ["Sales north"]
    assert told("features", "members", team["id"])["memberIds"] == []
    assert told("policy", "set", "budget.monthlyTokens=5000", "graceDays=14")["graceDays"] == 14
    assert "budget.monthlyTokens" in run("policy", "show", *here).stdout
    assert "legalHold" in one_sentence(run("policy", "set", "legalHold=perhaps", *here))
    run("users", "remove", "ada@example.org", *here)
    refused = run("keys", "list", "--url", house.instance["url"], "--api-key", made["key"])
    assert "unknown, expired or revoked" in one_sentence(refused)
    assert "last owner" in one_sentence(run("users", "remove", "owner@localhost", *here))
    assert "is no member" in one_sentence(run("users", "role", "ada@example.org", "owner", *here))

    events = [
        line["event"]
        for line in map(json.loads, run("logs", "--json", "--event", "tenancy.*", *here).stdout.splitlines())
    ]
    assert events
    assert set(events) <= {"tenancy.key.created", "tenancy.member.left"}
    assert run("migrate", *here).stdout.startswith("The schema is at ")
    with psycopg.connect(EmbeddedPostgres(data_dir).owner_url, autocommit=True) as owner:
        owner.execute("UPDATE alembic_version SET version_num = '9999'")
    assert house.interrupt() == (0, [])
    assert "start one with `catchment up`" in one_sentence(run("keys", "list", *here))
    assert "newer than this Catchment" in one_sentence(run("up", *here, "--port", "0"))
    left = [process for process in psutil.process_iter() if str(data_dir) in " ".join(_command(process))]
    assert left == []


def test_settings_are_printed_without_secrets(tmp_path: Path) -> None:
    done = run("doctor", "--settings", CATCHMENT_DATA_DIR=str(tmp_path), CATCHMENT_SECRET_KEY="canary")
    assert done.returncode == 0
    assert "CATCHMENT_SECRET_KEY=**********" in done.stdout
    assert "canary" not in done.stdout


def test_the_command_is_installed_under_its_name() -> None:
    assert shutil.which("catchment", path=str(Path(sys.executable).parent))
