"""The limited child: each limit turns a test red when it is taken away."""

import asyncio
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from gateway.corpus.child import ChildFailed, ChildPool, Limits, PoolUnavailable, launch
from gateway.corpus.child.frames import MESSAGE_BYTES
from tests.fixtures.run import RUN_DIR

MIB = 1 << 20
HANDLER = "tests.integration.corpus.hostile_handler"
WING = "tests.integration.corpus.slow_wing"
LIMITS = Limits(memory_bytes=400 * MIB, cpu_seconds=20, wall_seconds=20)
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
async def pool() -> AsyncIterator[ChildPool]:
    async with ChildPool(HANDLER, size=2, limits=LIMITS, resident_tasks=3) as shared:
        yield shared


@asynccontextmanager
async def limited(**limits: Any) -> AsyncIterator[ChildPool]:
    values = {name: getattr(LIMITS, name) for name in Limits.__dataclass_fields__} | limits
    async with ChildPool(HANDLER, size=1, limits=Limits(**values)) as own:
        yield own


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            yield port


async def failure(
    pool: ChildPool, do: str, *, isolated: bool = True, folder: bool = False, **task: Any
) -> ChildFailed:
    with pytest.raises(ChildFailed) as caught:
        await pool.run({"do": do, **task}, b"data", isolated=isolated, folder=folder)
    return caught.value


WHERE = f"""
import asyncio
from gateway.corpus.child import ChildPool
async def main():
    async with ChildPool({HANDLER!r}, size=1) as pool:
        (record,) = await pool.run({{"do": "say_where_code_is"}}, b"x", isolated=True)
    print(record["handler"], record["child"])
asyncio.run(main())
"""


async def test_records_come_back_in_order(pool):
    for isolated in (True, False):
        records = await pool.run({"do": "three_records"}, b"data", isolated=isolated)
        assert records == [{"number": 0}, {"number": 1}, {"number": 2}]


async def test_a_child_runs_the_same_code_as_the_worker(tmp_path):
    """Also where another version is installed: a copy of the package must use the copy."""
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / "gateway", copy / "gateway")
    shutil.copytree(ROOT / "tests/integration/corpus", copy / "tests/integration/corpus")
    shutil.copy(ROOT / "tests/__init__.py", copy / "tests")
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WHERE, cwd=copy, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await worker.communicate()
    assert [str(copy) in line for line in said.decode().split()] == [True, True]


async def test_content_may_be_bytes_a_path_or_a_descriptor(pool, tmp_path):
    path = tmp_path / "file"
    for length in (5, MESSAGE_BYTES - 100, MESSAGE_BYTES - 1, MESSAGE_BYTES, 3 * MIB):
        path.write_bytes(b"%PDF" + bytes(length - 4))
        with path.open("rb") as file:
            for payload in (path.read_bytes(), path, file.fileno()):
                (record,) = await pool.run({"do": "describe"}, payload, isolated=False)
                assert (record["length"], record["head"]) == (length, b"%PDF")


async def test_an_answer_of_any_length_comes_back_whole(pool):
    for length in (0, MESSAGE_BYTES - 20, MESSAGE_BYTES, 3 * MIB):
        (record,) = await pool.run({"do": "say_much", "bytes": length}, b"x", isolated=False)
        assert len(record["much"]) == length


async def test_an_isolated_task_gets_a_child_of_its_own_and_others_share_one_until_it_is_replaced(pool):
    async def pid(*, isolated: bool) -> int:
        return (await pool.run({"do": "describe"}, b"data", isolated=isolated))[0]["pid"]

    alone = [await pid(isolated=True) for _ in range(2)]
    assert alone[0] != alone[1]
    async with ChildPool(HANDLER, size=1, limits=LIMITS, resident_tasks=3) as fresh:
        shared = [(await fresh.run({"do": "describe"}, b"x", isolated=False))[0]["pid"] for _ in range(4)]
    assert shared[0] == shared[1] == shared[2] != shared[3]


async def test_memory_is_limited(pool):
    assert (await failure(pool, "take_memory", bytes=600 * MIB)).reason == "too_large"
    assert (await pool.run({"do": "take_memory", "bytes": 100 * MIB}, b"x", isolated=True)) == [
        {"taken": 100 * MIB}
    ]


async def test_a_large_file_may_use_more_memory_than_a_small_one():
    async with limited(
        memory_bytes=900 * MIB, memory_bytes_at_first=200 * MIB, memory_bytes_per_byte=40
    ) as pool:
        task = {"do": "take_memory", "bytes": 400 * MIB}
        with pytest.raises(ChildFailed) as refused:
            await pool.run(task, b"small", isolated=False)
        assert refused.value.reason == "too_large"
        assert await pool.run(task, bytes(10 * MIB), isolated=False) == [{"taken": 400 * MIB}]


async def test_a_large_file_may_use_more_time_than_a_small_one():
    async with limited(
        cpu_seconds=20, cpu_seconds_at_first=1, cpu_seconds_per_mib=1.0, wall_seconds=200
    ) as pool:
        task = {"do": "spend", "seconds": 4}
        with pytest.raises(ChildFailed) as refused:
            await pool.run(task, b"small", isolated=True)
        assert refused.value.reason == "too_slow"
        assert await pool.run(task, bytes(8 * MIB), isolated=True)
        assert await pool.run(task, bytes(2 * MIB), isolated=True, seconds_per_mib=5.0)


async def test_a_child_without_memory_for_an_answer_is_too_large(pool):
    assert (await failure(pool, "take_all_memory")).reason == "too_large"
    assert (await failure(pool, "take_all_memory", isolated=False)).reason == "too_large"


async def test_native_code_that_aborts_for_want_of_memory_is_too_large(pool):
    assert (await failure(pool, "abort")).reason == "too_large"


async def test_processor_time_is_limited():
    async with limited(cpu_seconds=1, wall_seconds=120) as own:  # on a busy machine one second takes many
        for isolated in (True, False):
            ended = await failure(own, "loop", isolated=isolated)
            assert (ended.reason, ended.detail) == ("too_slow", "used up its processor time")


async def test_processor_time_is_counted_for_each_task_of_a_resident_child():
    async with limited(cpu_seconds=2) as own:
        task = {"do": "spend", "seconds": 1}
        pids = {(await own.run(task, b"x", isolated=False))[0]["pid"] for _ in range(3)}
        assert len(pids) == 1


async def test_what_earlier_tasks_used_grants_a_later_one_nothing():
    async with limited(cpu_seconds=2, wall_seconds=120) as own:
        for _ in range(8):
            await own.run({"do": "spend", "seconds": 1}, b"x", isolated=False)
        assert (await failure(own, "spend", isolated=False, seconds=5)).reason == "too_slow"


async def test_waiting_is_limited_by_the_clock():
    async with limited(wall_seconds=0.3) as own:
        for isolated in (True, False):
            assert (await failure(own, "wait", isolated=isolated)).reason == "too_slow"


@pytest.mark.parametrize("action", ["hang_up_and_stay", "say_nothing_at_length"])
async def test_a_child_that_hangs_up_and_lives_on_is_ended_by_the_clock_too(action):
    async with limited(wall_seconds=0.3) as own:
        for isolated in (True, False):
            assert (await failure(own, action, isolated=isolated)).reason == "too_slow"
        assert await own.run({"do": "three_records"}, b"x", isolated=False)


@pytest.mark.parametrize("action", ["flood", "promise_a_large_frame"])
async def test_output_is_limited(action):
    async with limited(output_bytes=MIB) as own:
        assert (await failure(own, action)).reason == "output_limit"


async def test_files_it_writes_are_limited():
    async with limited(file_bytes=MIB) as own:
        assert (await failure(own, "write_file", folder=True, bytes=2 * MIB)).reason == "output_limit"


async def test_open_files_are_limited_and_no_core_is_written(pool):
    (record,) = await pool.run({"do": "open_files"}, b"x", isolated=True)
    assert 10 < record["opened"] < LIMITS.open_files
    assert record["core"] == [0, 0]


async def test_input_is_limited():
    async with limited(input_bytes=10) as own:
        with pytest.raises(ChildFailed) as caught:
            await own.run({"do": "describe"}, b"eleven bytes", isolated=True)
        assert caught.value.reason == "too_large"


async def test_zero_bytes_are_empty(pool):
    with pytest.raises(ChildFailed) as caught:
        await pool.run({"do": "describe"}, b"", isolated=True)
    assert caught.value.reason == "empty"


async def test_a_native_fault_is_a_crash_and_costs_that_file_only(pool):
    for isolated in (True, False):
        ended = await failure(pool, "touch_nothing_mapped", isolated=isolated)
        assert (ended.reason, ended.detail) == ("crashed", "ended by signal 11")
        assert await pool.run({"do": "three_records"}, b"x", isolated=isolated)


async def test_a_readers_exception_is_named_without_quoting_the_document(pool):
    ended = await failure(pool, "raise")
    assert ended.reason == "crashed"
    assert ended.detail.startswith("ValueError at hostile_handler.py:")
    assert "canary" not in str(ended)


async def test_endless_recursion_is_damage(pool):
    assert (await failure(pool, "recurse")).reason == "damaged"


async def test_a_reason_given_by_the_handler_is_passed_on(pool):
    for reason in ("encrypted", "no_text", "unsupported"):
        assert (await failure(pool, "fail", reason=reason, isolated=False)).reason == reason


async def test_an_answer_that_is_not_ours_is_refused(pool):
    ended = await failure(pool, "babble")
    assert (ended.reason, ended.detail) == ("crashed", "answered with something unreadable")


@pytest.mark.parametrize(("isolated", "tasks"), [(True, 1), (False, 3)])
async def test_a_child_that_pretends_to_stay_gets_no_more_files_than_it_was_meant_to(isolated, tasks):
    async with ChildPool(HANDLER, size=1, limits=LIMITS, resident_tasks=3) as pool:
        (liar,) = await pool.run({"do": "pretend_to_stay"}, b"data", isolated=isolated)
        pids = [(await pool.run({"do": "describe"}, b"data", isolated=False))[0]["pid"] for _ in range(5)]
    assert [liar["pid"], *pids].count(liar["pid"]) == tasks


async def test_a_child_cannot_speak_to_the_network(listener, pool):
    assert pool.protections["network"] == "namespace"
    for action in ("connect", "connect_in_native_code"):
        (record,) = await pool.run({"do": action, "port": listener}, b"x", isolated=True)
        assert not record["connected"], action


async def test_without_namespaces_tcp_is_still_refused_by_the_kernel_and_sockets_by_python(listener):
    async with ChildPool(HANDLER, size=1, limits=LIMITS, namespaces=False) as own:
        assert own.protections["network"] == "landlock"
        (record,) = await own.run({"do": "connect", "port": listener}, b"x", isolated=True)
        assert record == {"connected": False, "error": "PermissionError"}
        (record,) = await own.run({"do": "connect_in_native_code", "port": listener}, b"x", isolated=True)
        assert not record["connected"]
        (record,) = await own.run({"do": "send_a_datagram"}, b"x", isolated=True)
        assert record == {"sent": False, "error": "PermissionError"}


async def test_nothing_of_the_workers_environment_reaches_a_child(monkeypatch):
    monkeypatch.setenv("CATCHMENT_SECRET_KEY", "canary")
    async with limited() as own:
        (record,) = await own.run({"do": "describe"}, b"x", isolated=True)
    assert set(record["environment"]) == {
        "LANG", "HOME", "TMPDIR", "MALLOC_ARENA_MAX", "MALLOC_TOP_PAD_", "MALLOC_MMAP_THRESHOLD_", "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "TOKIO_WORKER_THREADS", "DO_NOT_TRACK", "SCARF_NO_ANALYTICS",
    }  # fmt: skip


async def test_a_child_reads_neither_the_workers_files_nor_its_environment(pool, tmp_path):
    assert pool.protections["files"] == "landlock"
    secret = tmp_path / "secret"
    secret.write_text("canary")
    for path in (secret, Path(f"/proc/{os.getpid()}/environ"), ROOT / "pyproject.toml"):
        assert await pool.run({"do": "read_file", "path": str(path)}, b"x", isolated=True) == [{"read": None}]


async def test_a_child_cannot_signal_the_worker():
    async with ChildPool(HANDLER, size=1, limits=LIMITS, namespaces=False) as own:
        (record,) = await own.run({"do": "signal", "pid": os.getpid()}, b"x", isolated=True)
        assert record == {"reached": False, "error": "PermissionError"}


async def test_private_folders_are_deleted_and_a_littering_child_is_not_used_again(pool):
    pids = set[int]()
    for isolated in (True, False, False):
        (record,) = await pool.run({"do": "write_file", "bytes": 10}, b"x", isolated=isolated, folder=True)
        assert not exists(record["path"])
        pids.add(record["pid"])
    assert len(pids) == 3


async def test_a_child_of_its_own_can_write_nowhere_unless_a_folder_was_asked_for(pool):
    (record,) = await pool.run({"do": "write_where_it_can"}, b"x", isolated=True)
    assert record["written"] == []
    (record,) = await pool.run({"do": "write_where_it_can"}, b"x", isolated=True, folder=True)
    assert record["written"] == [record["home"]]
    assert not exists(record["home"])


@pytest.mark.parametrize("namespaces", [True, False])
@pytest.mark.parametrize("apart", [True, False], ids=["in a session of its own", "in its group"])
async def test_a_helper_that_a_child_started_dies_with_it(namespaces, apart):
    async with ChildPool(HANDLER, size=2, limits=LIMITS, namespaces=namespaces) as own:
        before = _offspring()
        other = asyncio.create_task(own.run({"do": "spend", "seconds": 1.0}, b"x", isolated=True))
        await own.run({"do": "start_helper", "apart": apart}, b"x", isolated=True)
        gone, alive = psutil.wait_procs(_offspring() - before, timeout=0)
        assert len(alive) == 1, gone  # the other child, which has nothing to do with it
        assert await other


async def test_a_cancelled_task_ends_its_child():
    async with limited() as own:
        before = _offspring()
        task = asyncio.create_task(own.run({"do": "wait"}, b"x", isolated=True))
        begun = await a_child_since(before)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not psutil.wait_procs(begun, timeout=5)[1]
        assert await own.run({"do": "three_records"}, b"x", isolated=True)


async def test_no_more_than_size_children_are_alive():
    async with ChildPool(HANDLER, size=2, limits=LIMITS) as own:
        before = _offspring()
        tasks = [
            asyncio.create_task(own.run({"do": "spend", "seconds": 0.05}, b"x", isolated=True))
            for _ in range(6)
        ]
        most = 0
        while not all(task.done() for task in tasks):
            most = max(most, len(_offspring() - before))
            await asyncio.sleep(0)  # the tasks' turn
        assert 1 <= most <= 2
        await asyncio.gather(*tasks)


async def test_closing_leaves_no_process_and_no_file():
    own = ChildPool(HANDLER, size=1, limits=LIMITS)
    before = _offspring()
    await own.start()
    (record,) = await own.run({"do": "describe"}, b"x", isolated=False)
    home = Path(record["environment"]["HOME"])
    assert exists(home)
    mine = _offspring() - before
    assert mine
    await own.aclose()
    assert not psutil.wait_procs(mine, timeout=5)[1]
    assert not exists(home.parent)
    with pytest.raises(PoolUnavailable):
        await own.run({"do": "describe"}, b"x", isolated=False)


async def test_the_next_worker_finds_the_fork_server_empty():
    """Greeted again, by one whose predecessor said no goodbye, it ends what that one had begun."""
    launched = launch()
    first = ChildPool(HANDLER, size=2, limits=LIMITS, launched=launched)
    (record,) = await first.run({"do": "describe"}, b"x", isolated=False)
    before = _offspring()
    task = asyncio.create_task(first.run({"do": "loop"}, b"x", isolated=True))
    busy = await a_child_since(before)
    task.cancel()
    asyncio.get_running_loop().remove_reader(launched.control)  # the first is dead and reads nothing any more
    async with ChildPool(HANDLER, size=2, limits=LIMITS, launched=launched) as second:
        assert not psutil.wait_procs(busy, timeout=5)[1]
        assert not exists(Path(record["environment"]["HOME"]))
        assert await second.run({"do": "three_records"}, b"x", isolated=True)
        assert await second.run({"do": "three_records"}, b"x", isolated=False)


async def test_a_kill_from_outside_is_not_blamed_on_the_file():
    async with limited() as own:
        with pytest.raises(PoolUnavailable):
            await own.run({"do": "die"}, b"x", isolated=True)
        assert await own.run({"do": "three_records"}, b"x", isolated=True)


@pytest.mark.parametrize("namespaces", [True, False])
async def test_a_dead_fork_server_takes_its_children_along_and_is_replaced(namespaces):
    others = _offspring()
    async with ChildPool(HANDLER, size=1, limits=LIMITS, namespaces=namespaces) as own:
        servers = _offspring() - others
        assert len(servers) == (2 if namespaces else 1)
        before = _offspring()
        task = asyncio.create_task(own.run({"do": "loop"}, b"x", isolated=True))
        children = await a_child_since(before)
        for process in servers:
            with suppress(psutil.NoSuchProcess):  # the death of one may have taken the other along
                process.kill()
        with pytest.raises(PoolUnavailable):
            await task
        assert not psutil.wait_procs(children, timeout=5)[1]
        assert await own.run({"do": "three_records"}, b"x", isolated=True)


async def test_a_crash_point_reaches_into_the_child(monkeypatch):
    monkeypatch.setenv("CATCHMENT_CRASH_POINTS", "parser.child")
    async with limited() as own:
        with pytest.raises(PoolUnavailable):
            await own.run({"do": "three_records"}, b"x", isolated=True)


async def test_a_wing_is_loaded_beside_the_house_and_left_when_nobody_needs_it_any_more():
    async def in_wing(own: ChildPool) -> str:
        (record,) = await own.run({"do": "say_wing"}, b"x", isolated=True, wing=WING)
        return record["loaded"]

    async with ChildPool(HANDLER, size=3, limits=LIMITS, namespaces=False, wing_seconds=3) as own:
        before = _offspring()
        first = asyncio.create_task(in_wing(own))
        server = await stopped_since(before)
        assert await own.run({"do": "say_wing"}, b"x", isolated=True) == [{"loaded": None}]  # does not wait
        server.resume()
        assert await first
        assert await asyncio.gather(in_wing(own), in_wing(own)) == [first.result(), first.result()]
        _gone, alive = await asyncio.to_thread(psutil.wait_procs, [server], 20)
        assert not alive
        again = asyncio.create_task(in_wing(own))
        (await stopped_since(before)).resume()
        assert await again not in {"", first.result()}


async def test_a_handler_that_starts_threads_is_refused():
    with pytest.raises(PoolUnavailable, match="threads"):
        await ChildPool("tests.integration.corpus.threaded_handler", limits=LIMITS).start()


WORKER = f"""
import asyncio, sys
from gateway.corpus.child import ChildPool, Limits
async def main():
    pool = ChildPool({HANDLER!r}, size=2, limits=Limits())
    (record,) = await pool.run({{"do": "write_file", "bytes": 5}}, b"x", isolated=False)
    (record,) = await pool.run({{"do": "describe"}}, b"x", isolated=False)
    print(record["environment"]["HOME"], flush=True)
    await pool.run({{"do": "loop"}}, b"x", isolated=True)
asyncio.run(main())
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_a_killed_worker_leaves_no_child_and_no_file(how):
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WORKER, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert worker.stdout is not None
    home = Path((await worker.stdout.readline()).decode().strip())
    family = psutil.Process(worker.pid).children(recursive=True)
    assert len(family) >= 3
    assert exists(home)
    worker.send_signal(how)
    await worker.wait()
    assert not psutil.wait_procs(family, timeout=10)[1]
    assert not exists(home.parent)


async def test_what_was_left_when_all_were_killed_at_once_is_swept_and_what_is_in_use_is_not(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left_behind = tmp_path / "catchment-parser-left"
    (left_behind / "7").mkdir(parents=True)
    (left_behind / "7" / "piece-of-a-document").write_text("canary")
    an_hour_ago = time.time() - 3600
    os.utime(left_behind, (an_hour_ago, an_hour_ago))
    async with ChildPool(HANDLER, size=1, limits=LIMITS) as first:
        assert not exists(left_behind)
        (in_use,) = tmp_path.iterdir()
        os.utime(in_use, (an_hour_ago, an_hour_ago))
        async with ChildPool(HANDLER, size=1, limits=LIMITS):
            assert await first.run({"do": "three_records"}, b"x", isolated=True)
            assert exists(in_use)
    assert list(tmp_path.iterdir()) == []


def exists(path: str | Path) -> bool:
    return Path(path).exists()


async def stopped_since(before: set[psutil.Process]) -> psutil.Process:
    while True:
        for process in _offspring() - before:
            with suppress(psutil.NoSuchProcess):
                if process.status() == psutil.STATUS_STOPPED:
                    return process
        await asyncio.sleep(0)  # the loop's turn


async def a_child_since(before: set[psutil.Process]) -> set[psutil.Process]:
    while not (begun := _offspring() - before):  # noqa: ASYNC110 - a fork in another process raises no event here
        await asyncio.sleep(0)  # the loop's turn
    return begun


def _offspring() -> set[psutil.Process]:
    """What descends from this process, but for the run's stores: with every connection of any test a backend comes and goes."""
    holder = Path(os.environ[RUN_DIR]) / "holder.pid"
    stores = int(holder.read_text()) if holder.exists() else None
    found = set[psutil.Process]()
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):  # ended while we looked
            found |= {child, *child.children(recursive=True)} if child.pid != stores else set()
    return found
