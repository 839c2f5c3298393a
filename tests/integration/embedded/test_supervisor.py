"""The parent of the tree, with the plainest possible children."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from gateway.embedded.preflight import StartupRefused
from gateway.embedded.service import Service
from gateway.embedded.supervisor import Backoff, Supervisor
from tests.integration.embedded.conftest import all_gone

ROOT = Path(__file__).parents[3]
QUICK = Backoff(first=0.01, longest=0.04)
WAITING = "import signal; print('up', flush=True); signal.pause()"


def python(name: str, code: str, **options: Any) -> Service:
    return Service(name=name, command=[sys.executable, "-c", textwrap.dedent(code)], **options)


class Witness:
    """Sees every line and every event, and lets a test wait until it has seen enough."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.events: list[dict[str, Any]] = []
        self._changed = threading.Condition()

    def show(self, name: str, line: str) -> None:
        with self._changed:
            self.lines.append((name, line))
            self._changed.notify_all()

    def emit(self, event: str, **fields: Any) -> None:
        with self._changed:
            self.events.append({"event": event, **fields})
            self._changed.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        def wait() -> bool:
            with self._changed:
                return self._changed.wait_for(condition, 10)

        assert await asyncio.to_thread(wait), (self.lines, self.events)

    def deaths(self) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == "house.child.died"]


@pytest.fixture
def witness() -> Witness:
    return Witness()


@pytest.fixture
async def supervisor(witness: Witness) -> AsyncIterator[Supervisor]:
    supervisor = Supervisor(show=witness.show, emit=witness.emit, backoff=QUICK)
    yield supervisor
    await supervisor.stop()


async def test_a_killed_child_is_replaced_and_it_is_said_once(
    supervisor: Supervisor, witness: Witness
) -> None:
    await supervisor.start(python("worker", WAITING))
    first = supervisor.pids["worker"]
    os.kill(first, signal.SIGKILL)
    await witness.until(
        lambda: Counter(witness.lines)["worker", "up"] >= 1 and supervisor.pids["worker"] != first
    )
    await witness.until(lambda: len([e for e in witness.events if e["event"] == "house.starting"]) == 2)
    assert psutil.pid_exists(supervisor.pids["worker"])
    assert witness.deaths() == [
        {"event": "house.child.died", "component": "worker", "exitCode": -signal.SIGKILL, "restartMs": 10}
    ]


async def test_a_child_that_keeps_dying_waits_longer_each_time_up_to_a_bound(
    supervisor: Supervisor, witness: Witness
) -> None:
    await supervisor.start(python("worker", "raise SystemExit(3)"))
    await witness.until(lambda: len(witness.deaths()) >= 5)
    assert [death["restartMs"] for death in witness.deaths()[:5]] == [10, 20, 40, 40, 40]
    assert {death["exitCode"] for death in witness.deaths()} == {3}


async def test_a_restart_the_system_refuses_is_tried_again(supervisor: Supervisor, witness: Witness) -> None:
    calls: list[int] = []

    def refuse_twice() -> None:
        calls.append(len(calls))
        if len(calls) in {2, 3}:
            raise OSError(12, "Cannot allocate memory")

    await supervisor.start(python("worker", WAITING, before_start=refuse_twice))
    os.kill(supervisor.pids["worker"], signal.SIGKILL)
    await witness.until(lambda: len([e for e in witness.events if e["event"] == "house.starting"]) == 2)
    assert [death.get("error") for death in witness.deaths()] == [
        None,
        *["[Errno 12] Cannot allocate memory"] * 2,
    ]


async def test_services_stop_in_reverse_order(witness: Witness) -> None:
    supervisor = Supervisor(show=witness.show, emit=witness.emit)
    code = "import signal, sys; signal.sigwait({signal.SIGTERM}) and print('bye')"
    block = (
        "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM}); print('up', flush=True); "
    )
    for name in ("postgres", "redis", "gateway"):
        await supervisor.start(python(name, block + code))
    await witness.until(lambda: len(witness.lines) == 3)
    processes = [psutil.Process(pid) for pid in supervisor.pids.values()]
    await supervisor.stop()
    assert witness.lines[3:] == [("gateway", "bye"), ("redis", "bye"), ("postgres", "bye")]
    assert all_gone(processes, timeout=0)
    assert supervisor.pids == {}
    assert witness.deaths() == []


STUBBORN = """
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print('up', flush=True)
    while True:
        signal.pause()
"""


async def test_a_child_that_will_not_stop_is_killed_when_its_time_is_over(
    supervisor: Supervisor, witness: Witness
) -> None:
    await supervisor.start(python("worker", STUBBORN, stop_timeout=0.2))
    await witness.until(lambda: len(witness.lines) == 1)
    process = psutil.Process(supervisor.pids["worker"])
    began = time.monotonic()
    await supervisor.stop()
    assert 0.2 <= time.monotonic() - began < 5
    assert all_gone([process], timeout=0)


async def test_asked_twice_it_does_not_wait(supervisor: Supervisor, witness: Witness) -> None:
    await supervisor.start(python("worker", STUBBORN, stop_timeout=60))
    await witness.until(lambda: len(witness.lines) == 1)
    stopping = asyncio.create_task(supervisor.stop())
    await witness.until(lambda: witness.events[-1]["event"] == "house.stopping")
    supervisor.hurry()
    await asyncio.wait_for(stopping, 5)


GRANDPARENT = """
    import subprocess, sys, signal
    print(subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()']).pid, flush=True)
    signal.pause()
"""


async def test_what_a_child_started_ends_with_it(supervisor: Supervisor, witness: Witness) -> None:
    await supervisor.start(python("worker", GRANDPARENT))
    await witness.until(lambda: len(witness.lines) == 1)
    first = psutil.Process(int(witness.lines[0][1]))
    os.kill(supervisor.pids["worker"], signal.SIGKILL)
    await witness.until(lambda: len(witness.lines) == 2)
    assert all_gone([first])
    second = psutil.Process(int(witness.lines[1][1]))
    await supervisor.stop()
    assert all_gone([second])


async def test_a_reader_that_hangs_costs_lines_and_never_the_child(witness: Witness, tmp_path: Path) -> None:
    resume = threading.Event()

    def show(name: str, line: str) -> None:
        resume.wait(20)
        witness.show(name, line)

    supervisor = Supervisor(show=show, emit=lambda *_, **__: None)
    fifo = tmp_path / "done"
    os.mkfifo(fifo)
    code = f"""
        for number in range(200_000):
            print('line', number)
        print('x' * 1_000_000, flush=True)
        open({str(fifo)!r}, 'w').close()
        import signal; signal.pause()
    """
    await supervisor.start(python("gateway", code))
    await asyncio.wait_for(
        asyncio.to_thread(fifo.read_bytes), 20
    )  # it printed everything although nobody read
    resume.set()
    await supervisor.stop()
    assert witness.lines[0] == ("gateway", "line 0")
    assert any(name == "output" and "lines were dropped" in line for name, line in witness.lines)
    assert len(witness.lines) < 12_000
    assert max(len(line) for _, line in witness.lines) <= 128 * 1024


async def test_a_closed_terminal_ends_the_showing_not_the_work(witness: Witness) -> None:
    def show(name: str, line: str) -> None:
        witness.show(name, line)
        raise BrokenPipeError

    supervisor = Supervisor(show=show, emit=witness.emit, backoff=QUICK)
    await supervisor.start(python("worker", "print('one'); print('two')"))
    await witness.until(lambda: len(witness.lines) >= 4)
    await supervisor.stop()


async def test_bytes_that_are_not_text_are_shown_as_far_as_they_are(
    supervisor: Supervisor, witness: Witness
) -> None:
    await supervisor.start(
        python("worker", r"import os; os.write(1, b'caf\xe9 \xc3\xa9\nno end'); os.read(0, 1)")
    )
    await witness.until(lambda: len(witness.lines) >= 2)
    assert witness.lines[:2] == [("worker", "caf� é"), ("worker", "no end")]


async def test_a_child_that_dies_before_it_is_ready_refuses_the_start(supervisor: Supervisor) -> None:
    service = python("gateway", "raise RuntimeError('no such table')", ready=lambda _: False)
    with pytest.raises(
        StartupRefused, match=r"^Gateway stopped while starting: RuntimeError: no such table$"
    ):
        await supervisor.start(service)


async def test_a_child_that_never_becomes_ready_refuses_the_start(supervisor: Supervisor) -> None:
    service = python("gateway", WAITING, ready=lambda _: False, ready_timeout=0.2)
    with pytest.raises(StartupRefused, match=r"^Gateway was not ready within 0 s: "):
        await supervisor.start(service)


async def test_a_program_that_is_not_there_is_named(supervisor: Supervisor) -> None:
    service = Service(name="gateway", command=["/no/such/program"], ready=lambda _: False)
    with pytest.raises(StartupRefused, match="/no/such/program cannot be run: No such file"):
        await supervisor.start(service)


def test_children_die_with_a_killed_parent() -> None:
    code = f"""
        import asyncio, sys
        from gateway.embedded.service import Service
        from gateway.embedded.supervisor import Supervisor

        async def main():
            supervisor = Supervisor(show=lambda name, _: print(supervisor.pids[name], flush=True), emit=lambda *_, **__: None)
            for name in ("one", "two"):
                await supervisor.start(Service(name=name, command=[sys.executable, "-c", {WAITING!r}]))
            await asyncio.Event().wait()

        asyncio.run(main())
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout
    children = [psutil.Process(int(parent.stdout.readline())) for _ in range(2)]  # they are up and running
    parent.kill()
    parent.communicate()
    assert all_gone(children)


def test_a_child_whose_parent_is_already_gone_does_not_start() -> None:
    service = python("late", "print('started')")
    argv = service.argv()
    argv[argv.index(str(os.getpid()))] = "1"
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
