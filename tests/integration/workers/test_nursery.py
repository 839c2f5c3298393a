"""A worker that is killed is there again at once, and nobody is left behind when the nursery goes."""

import signal
import time
from contextlib import suppress

import psutil
import pytest

from gateway.corpus.blobs import BlobStore
from gateway.ingestion import facade
from gateway.settings import Settings
from tests.fixtures.corpus import ask, rows_of
from tests.fixtures.processes import House, until


@pytest.fixture
async def house(database_urls, redis_url, tmp_path):
    house = House(database_urls.runtime_url, redis_url, tmp_path)
    yield house
    house.stop()


def worker_of(nursery: psutil.Process) -> psutil.Process | None:
    """The one child that is the same program; the fork server's parsers are another."""
    for child in nursery.children():
        with suppress(psutil.NoSuchProcess):  # or a zombie, which is the same here
            if child.cmdline() == nursery.cmdline():
                return child
    return None


async def start(house):
    nursery = psutil.Process(house.start_worker().pid)

    async def serves():
        return "house.ready" in house.output() and worker_of(nursery)

    return nursery, await until(serves, 30, f"the worker: {house.output()[-2000:]}")


async def index(db, house, tenant, name):
    async with db.tenant_session(tenant.mandate_id) as session:
        blobs = BlobStore.of(Settings(data_dir=house.data_dir))
        await facade.request_ingestion(session, ask(tenant, name, f"The text of {name}."), blobs=blobs)

    async def indexed():
        return await rows_of(
            db, tenant, "SELECT FROM document WHERE source_id = :name AND status = 'indexed'", name=name
        )

    await until(indexed, 30, f"{name} to be indexed: {house.output()[-2000:]}")


async def test_a_killed_worker_is_replaced_and_its_parsers_stay(db, tenant, house):
    nursery, first = await start(house)
    await index(db, house, tenant, "one")
    parsers = {child.pid for child in nursery.children()} - {first.pid}
    first.kill()

    async def replaced():
        following = worker_of(nursery)
        return following and following != first and house.output().count("house.ready") == 2

    began = time.monotonic()
    await until(replaced, 10, "the next worker")
    took = time.monotonic() - began
    await index(db, house, tenant, "two")
    print(f"\nafter a kill the next worker served within {took:.2f} s")
    assert parsers
    assert parsers < {child.pid for child in nursery.children()}
    assert "house.child.died" in house.output()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_whoever_ends_the_nursery_ends_the_worker(db, tenant, house, how):
    nursery, _ = await start(house)
    await index(db, house, tenant, "one")
    family = nursery.children(recursive=True)
    nursery.send_signal(how)
    house.processes[0].wait(20)
    assert psutil.wait_procs(family, timeout=20)[1] == []
    assert house.output().count("house.stopping") == 1
    assert house.processes[0].returncode == (0 if how == signal.SIGTERM else -9)


async def test_a_worker_that_ends_by_itself_is_not_started_again(house):
    house.env["CATCHMENT_EMBEDDER"] = "nobody"
    process = house.start_worker()
    assert process.wait(30) == 1
    assert "no embedder is called" in house.output()
