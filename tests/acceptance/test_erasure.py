"""Erasure, shown on real processes: a user is erased while what they brought is on its way in, wherever a process died.

Afterwards no table, blob, Redis key, file, log line or export holds a word of theirs. Figures are printed (`pytest -s`).
"""

import json
import os
import signal
import subprocess
import time
import zipfile
from collections import Counter
from typing import Any, NamedTuple
from uuid import UUID

import httpx
import pytest
from redis.asyncio import Redis

from gateway.crashpoints import CRASH_POINTS
from gateway.db import Database, new_id
from gateway.tenancy import repository as tenancy
from gateway.tenancy import service
from gateway.tenancy.principal import ROLE_SCOPES
from tests.fixtures import preloaded, traces
from tests.fixtures.corpus import Tenant, rows_of
from tests.fixtures.processes import Door, House, end, until
from tests.fixtures.stores import DatabaseUrls

FULL = os.environ.get("CATCHMENT_ACCEPTANCE") == "full"  # every point; otherwise every third
_SYNC = "only a connection's jobs pass it: tests/integration/sync/test_crashes.py and test_revocations.py"
ELSEWHERE = {
    "migrate.inside": "no user's content passes a migration",
    "token.after_rotation": "tokens only: tests/integration/connections/test_tokens.py",
    "sync.before_page_commit": _SYNC,
    "sync.inside_page": _SYNC,
    "sync.after_page_commit": _SYNC,
    "fetch.after_download": _SYNC,
}
IN_GATEWAY = {"request.before_commit", "request.after_commit"}
IN_ERASURE = {"erase.between_batches"}
WORD = "quaxolotl"


class Person(NamedTuple):
    user_id: UUID
    key: str


async def new_member(db: Database, mandate_id: UUID, email: str) -> Person:
    async with db.tenant_session(mandate_id) as session:
        user_id = await tenancy.insert_user(session, email=email, display_name="Member")
        assert user_id is not None
        await tenancy.insert_member(session, user_id, "member")
        _, key = await service.make_key(session, "key", tuple(ROLE_SCOPES["member"]), user_id=user_id)
    return Person(user_id, key)


@pytest.fixture
async def house(database_urls, redis_url, tmp_path):
    async with Redis.from_url(redis_url) as redis:
        await redis.flushdb()
    (tmp_path / "tmp").mkdir()
    house = House(
        database_urls.runtime_url,
        redis_url,
        tmp_path,
        TMPDIR=str(tmp_path / "tmp"),
        CATCHMENT_MAINTENANCE_SECONDS="1",
        CATCHMENT_RETRY_BASE_SECONDS="0.2",
    )
    yield house
    house.stop()


class World:
    """One mandate behind one gateway; a member to be erased and an owner who stays."""

    def __init__(self, db: Database, house: House, door: Door, tenant: Tenant, urls: DatabaseUrls) -> None:
        self.db, self.house, self.door, self.tenant, self.urls = db, house, door, tenant, urls

    async def post(self, person: Person, name: str, text: str, door: Door | None = None) -> dict[str, Any]:
        body = {
            "sourceKind": "paste",
            "sourceId": f"{name} of {WORD}",
            "title": f"{WORD} {name}",
            "tags": [WORD],
            "metadata": {"about": WORD},
            "uri": f"https://host.example/{WORD}/{name}",
            "content": {"text": text},
            "scope": "mandate",
        }
        async with (door or self.door).client(person.key) as client:
            answer = await client.post("/v1/ingestions", json=body)
        assert answer.status_code in {200, 202}, answer.text
        return answer.json()

    async def indexed(self, person: Person) -> bool:
        rows = await rows_of(
            self.db, self.tenant, "SELECT status FROM document WHERE user_id = :id", id=person.user_id
        )
        return bool(rows) and all(row.status == "indexed" for row in rows)

    async def search(self, key: str) -> int:
        async with self.door.client(key) as client:
            answer = await client.get("/v1/search", params={"q": f"what about {WORD}"})
        assert answer.status_code == 200, answer.text
        return len(answer.json()["hits"])

    async def counted(self, person: Person) -> Counter[str]:
        counts: Counter[str] = Counter()
        for table in ("job", "chunk", "document_text"):
            [row] = await rows_of(
                self.db,
                self.tenant,
                f"SELECT count(*) AS n FROM {table} t JOIN document d ON d.id = t.document_id WHERE d.user_id = :id",
                id=person.user_id,
            )
            counts[table] = row.n
        [row] = await rows_of(
            self.db,
            self.tenant,
            "SELECT count(*) AS n, count(DISTINCT blob_sha256) AS b FROM document WHERE user_id = :id",
            id=person.user_id,
        )
        return counts | Counter(document=row.n, blob=row.b)

    async def erase(self, person: Person) -> str:
        async with self.door.client(self.tenant.key) as client:
            answer = await client.post("/v1/erasures", json={"userId": str(person.user_id)})
        assert answer.status_code in {200, 202}, answer.text
        return answer.json()["id"]

    async def receipt(self, receipt_id: str) -> dict[str, Any] | None:
        async with self.door.client(self.tenant.key) as client:
            found = (await client.get(f"/v1/receipts/{receipt_id}")).json()
        return found if found["status"] == "done" else None

    async def export(self, person: Person) -> bytes:
        async with self.door.client(self.tenant.key) as client:
            answer = await client.get(f"/v1/users/{person.user_id}/export")
        assert answer.status_code == 200, answer.text
        return answer.content

    async def traces(self, person: Person) -> list[str]:
        return [
            *traces.in_database(self.urls.superuser_url, WORD),
            *await traces.in_redis(self.house.env["CATCHMENT_REDIS_URL"], WORD),
            *traces.in_files(self.house.data_dir, WORD),
            *traces.in_archive(await self.export(person), WORD),
        ]


async def crash(world: World, point: str, person: Person) -> None:
    """Hands something in and lets the process that comes to the point die there."""
    small, large = f"A note on the {WORD} trade.", f"About the {WORD}, at length. " * 9000
    house = world.house
    if point in IN_GATEWAY:
        armed = await house.start_gateway(CATCHMENT_CRASH_POINTS=point)
        with pytest.raises(httpx.TransportError):
            await world.post(person, "large", large, armed)
        await died(house, armed.process, point, 0)
        return
    written = len(house.output())
    await world.post(person, "small", small)
    await world.post(person, "large", large)
    worker = house.start_worker(CATCHMENT_CRASH_POINTS=point)
    if point in IN_ERASURE:
        return  # it is reached by the erasure itself
    if point == "parser.child":  # the child dies, not its worker
        await until(lambda: _retried(house, written), 60, "the worker to notice its child's death")
        end(worker, signal.SIGKILL)
        worker.wait()
    else:
        await died(house, worker, point, written)


async def died(house: House, process: subprocess.Popen[bytes], point: str, written: int) -> None:
    """Waits for the last word of whoever came to the point; then nobody is left who would begin again."""

    async def said() -> bool:
        return f"crash point {point}\n" in house.output()[written:]

    await until(said, 60, f"a process to die at {point}")
    end(process, signal.SIGKILL)
    process.wait()


async def _retried(house: House, since: int) -> bool:
    return "ingestion.retry" in house.output()[since:]


async def no_vectors_left(world: World) -> bool:
    [row] = await rows_of(world.db, world.tenant, "SELECT count(*) AS n FROM text_vector")
    return row.n == 0


@pytest.mark.timeout(1200)
async def test_a_user_erased_at_any_crash_point_leaves_nothing(db, tenant, house, database_urls):
    door = await house.start_gateway()
    world = World(db, house, door, tenant, database_urls)
    sound = house.start_worker()
    figures: list[str] = []
    points = sorted(set(CRASH_POINTS) - set(ELSEWHERE))
    for number, point in enumerate(points if FULL else points[1::3]):
        began = time.monotonic()
        person = await new_member(db, tenant.mandate_id, f"member{number}@example.org")
        await world.post(person, "old", f"The {WORD} was here long before.")
        await until(lambda person=person: world.indexed(person), 60, "the first document")
        assert await world.search(person.key) >= 1
        assert await world.search(tenant.key) >= 1  # a question of somebody who stays
        end(sound, signal.SIGKILL)
        sound.wait()
        await crash(world, point, person)
        assert traces.in_database(database_urls.superuser_url, WORD) != []
        before = await world.counted(person)
        receipt_id = await world.erase(person)
        if point in IN_ERASURE:
            await died(house, house.processes[-1], point, 0)
        sound = house.start_worker()
        receipt = await until(
            lambda receipt_id=receipt_id: world.receipt(receipt_id), 90, f"the receipt ({point})"
        )
        counts = Counter(receipt["counts"])
        # A worker may go on with the ingestion before it comes to the erasure: what it makes is counted, too.
        if point not in IN_ERASURE:
            assert {name: counts[name] for name in ("document", "blob")} == {
                name: before[name] for name in ("document", "blob")
            }, point
            assert counts["chunk"] >= before["chunk"], point
        assert counts["document"] == (3 if point not in IN_GATEWAY else before["document"]), point
        assert counts["job"] == counts["document"], point
        await until(lambda: no_vectors_left(world), 60, f"vectors to be collected ({point})")
        assert await world.traces(person) == [], point
        figures.append(f"{point}: {dict(sorted(counts.items()))}, {time.monotonic() - began:.1f} s")
    print("\nerased at every crash point, 0 hits each:\n  " + "\n  ".join(figures))


async def test_the_command_line_erases_and_takes_out(db, tenant, house, database_urls, tmp_path):
    door = await house.start_gateway()
    house.start_worker()
    world = World(db, house, door, tenant, database_urls)
    person = await new_member(db, tenant.mandate_id, "ada@example.org")
    await world.post(person, "note", f"A note on the {WORD}.")
    await until(lambda: world.indexed(person), 60, "the document")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return preloaded.run(*arguments, "--url", door.url, "--api-key", tenant.key)

    target = tmp_path / "outside" / "ada.zip"
    target.parent.mkdir()
    taken = run("users", "export", "ada@example.org", "--to", str(target))
    assert taken.returncode == 0, taken.stderr
    assert target.stat().st_mode & 0o077 == 0
    assert traces.in_archive(target.read_bytes(), WORD) != []
    assert zipfile.ZipFile(target).testzip() is None
    assert "already there" in run("users", "export", "ada@example.org", "--to", str(target)).stderr
    target.unlink()
    refused = run("erase", "--user", "ada@example.org")
    assert (refused.returncode, "--yes" in refused.stderr) == (1, True)
    assert run("erase", "--user", "ada@example.org", "--mandate", "--yes").returncode == 1
    await rows_of(db, tenant, """UPDATE mandate SET policy = '{"legalHold": true}' RETURNING 1""")
    held = run("erase", "--user", "ada@example.org", "--yes")
    assert (held.returncode, "legal hold" in held.stderr) == (1, True)
    await rows_of(db, tenant, "UPDATE mandate SET policy = '{}' RETURNING 1")
    erased = run("erase", "--user", "ada@example.org", "--yes")
    assert erased.returncode == 0, erased.stderr
    assert "document       1" in erased.stdout
    assert await world.traces(person) == []
    nobody = run("erase", "--document", str(new_id()), "--yes")
    assert (nobody.returncode, nobody.stdout, "nothing was there" in nobody.stderr) == (3, "", True)
    asked = run("erase", "--document", str(new_id()), "--yes", "--json")
    assert (asked.returncode, json.loads(asked.stdout)["found"]) == (3, False)


def test_every_crash_point_is_in_the_loop_or_has_a_reason() -> None:
    assert set(ELSEWHERE) <= set(CRASH_POINTS)
    assert set(CRASH_POINTS) - set(ELSEWHERE) >= IN_GATEWAY | IN_ERASURE
