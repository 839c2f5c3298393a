"""The gateway around its routes: health, readiness, metrics, ids, headers, and errors nobody foresaw."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
import structlog
from fastapi import FastAPI, Request
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr
from sqlalchemy import text

from gateway.app import create_app
from gateway.db import Database
from gateway.errors import ConfigurationError, StoreUnavailable
from gateway.http import Db
from gateway.logs import configure_logs
from gateway.metrics import METRICS
from gateway.settings import Settings
from tests.fixtures.stores import DatabaseUrls
from tests.fixtures.tenants import TestMandate


@pytest.fixture
def lines() -> Iterator[list[str]]:
    shown: list[str] = []
    configure_logs(show=shown.append)
    yield shown
    structlog.reset_defaults()


@pytest.fixture
async def broken(settings: Settings, database_urls: DatabaseUrls) -> AsyncIterator[httpx.AsyncClient]:
    """A gateway whose database refuses connections."""
    nowhere = SecretStr("postgresql://catchment_runtime@127.0.0.1:1/none")
    app = create_app(settings.model_copy(update={"database_url": nowhere}))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        yield client
    await app.state.db.dispose()
    await app.state.redis.aclose()


async def test_health_and_readiness(client: httpx.AsyncClient, db: Database) -> None:
    assert (await client.get("/healthz")).json() == {"status": "ok"}
    ready = await client.get("/readyz")
    assert ready.status_code == 200
    checks = {"database": "ok", "migrations": "ok", "sweeper": "waiting for a first worker", "redis": "ok"}
    assert ready.json() == {"status": "ready", "checks": checks}
    for probe in ("/healthz", "/readyz"):  # who asks for the status alone
        head = await client.head(probe)
        assert (head.status_code, head.content) == (200, b"")


async def test_a_silent_sweeper_is_not_ready_once_a_worker_has_run(
    client: httpx.AsyncClient, db: Database
) -> None:
    beat = "INSERT INTO heartbeat VALUES ('sweeper', now() - make_interval(secs => :age))"
    for age, status in ((30, 200), (61, 503)):
        async with db.routing_session() as session:
            await session.execute(text("DELETE FROM heartbeat"))
            await session.execute(text(beat), {"age": age})
        answer = await client.get("/readyz")
        assert answer.status_code == status
        assert (answer.json()["checks"]["sweeper"] == "ok") is (status == 200)
    assert "silent" in (await client.get("/readyz")).json()["checks"]["sweeper"]
    async with db.routing_session() as session:
        await session.execute(text("DELETE FROM heartbeat"))


async def test_without_any_worker_it_is_ready_for_as_long_as_one_may_take_to_come(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["checks"]["sweeper"]) == (200, "waiting for a first worker")
    monkeypatch.setattr("gateway.app.SWEEPER_SILENCE_SECONDS", 0)
    answer = await client.get("/readyz")
    assert answer.status_code == 503
    assert "is a worker running?" in answer.json()["checks"]["sweeper"]


@pytest.mark.parametrize(
    ("revision", "advice"), [("0001", "catchment migrate"), ("9999", "a newer Catchment")]
)
async def test_another_schema_is_not_ready(
    settings: Settings, scratch: DatabaseUrls, revision: str, advice: str
) -> None:
    with psycopg.connect(scratch.owner_url, autocommit=True) as owner:
        owner.execute("UPDATE alembic_version SET version_num = %s", (revision,))
    app = create_app(settings.model_copy(update={"database_url": SecretStr(scratch.runtime_url)}))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        answer = await client.get("/readyz")
    await app.state.db.dispose()
    assert answer.status_code == 503
    assert advice in answer.json()["checks"]["migrations"]


async def test_before_the_first_migration_one_is_asked_to_come_again(
    settings: Settings, empty_database: DatabaseUrls
) -> None:
    app = create_app(settings.model_copy(update={"database_url": SecretStr(empty_database.runtime_url)}))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        ready = await client.get("/readyz")
        asked = await client.get("/v1/whoami", headers={"Authorization": "Bearer ck_some"})
    await app.state.db.dispose()
    assert ready.status_code == 503
    assert ready.json()["checks"]["database"] == "ok"
    assert "catchment migrate" in ready.json()["checks"]["migrations"]
    assert (asked.status_code, asked.json()["code"]) == (503, "store.unavailable")
    assert "catchment migrate" in asked.json()["detail"]


async def test_readiness_names_the_store_that_does_not_answer(
    broken: httpx.AsyncClient, settings: Settings
) -> None:
    answer = await broken.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"] == {"database": "does not answer (StoreUnavailable)", "redis": "ok"}
    app = create_app(settings.model_copy(update={"redis_url": SecretStr("redis://127.0.0.1:1")}))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        answer = await client.get("/readyz")
    await app.state.db.dispose()
    assert answer.status_code == 503
    assert answer.json()["checks"]["redis"].startswith("does not answer")


async def test_a_database_that_is_away_is_a_503_that_asks_to_come_again(
    broken: httpx.AsyncClient, mandate: TestMandate
) -> None:
    answer = await broken.get("/v1/users", headers=mandate.auth())
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "2"
    assert answer.json()["code"] == "store.unavailable"
    assert "127.0.0.1" not in answer.text
    broken.cookies.set("catchment_session", "cs_any")
    page = await broken.get("/", headers={"Accept": "text/html"})
    assert (page.status_code, page.headers["retry-after"]) == (503, "2")
    assert "<h1>A store is not reachable; try again shortly.</h1>" in page.text


async def test_a_database_that_hangs_is_away_too(
    settings: Settings, scratch: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that somebody locks stands for a server that takes a question and never answers."""
    monkeypatch.setattr("gateway.app.PROBE_SECONDS", 0.5)
    monkeypatch.setattr("gateway.tenancy.access.ANSWER_SECONDS", 0.5)
    app = create_app(settings.model_copy(update={"database_url": SecretStr(scratch.runtime_url)}))
    with psycopg.connect(scratch.owner_url) as holder:
        holder.execute("LOCK TABLE heartbeat, key_route, job IN ACCESS EXCLUSIVE MODE")
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            asked = {"Authorization": "Bearer ck_of_this_database"}
            answers = [
                await client.get(path, headers=asked) for path in ("/readyz", "/v1/whoami", "/metrics")
            ]
    await app.state.db.dispose()
    await app.state.redis.aclose()
    assert [answer.status_code for answer in answers] == [503, 503, 200]
    assert answers[0].json()["checks"]["database"].startswith("does not answer")
    assert (answers[1].json()["code"], answers[1].headers["retry-after"]) == ("store.unavailable", "2")


async def test_metrics_are_prometheus_text(client: httpx.AsyncClient) -> None:
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    assert "# TYPE catchment_ingestions_total counter" in answer.text
    assert "# TYPE catchment_jobs gauge" in answer.text


async def test_every_metric_is_there_from_the_start_and_idle_lanes_say_zero(
    client: httpx.AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for shared_folder in (None, str(tmp_path)):  # one process alone, and many that share a folder
        if shared_folder:
            monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", shared_folder)
        shown = (await client.get("/metrics")).text
        families = {family.name for family in text_string_to_metric_families(shown)}
        assert {name.removesuffix("_total") for name in METRICS} <= families
        for lane in ("interactive", "delta", "backfill"):
            assert f'catchment_oldest_job_seconds{{lane="{lane}"}} 0.0' in shown
            assert f'catchment_jobs{{lane="{lane}",status="pending"}} 0.0' in shown


def test_counters_have_their_place_on_the_disk_before_they_count(tmp_path: Path) -> None:
    """On a full disk a process that counts into a hole of its file would be killed."""
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", "import gateway.metrics"], env=environment, check=True)
    files = list(tmp_path.iterdir())
    assert {file.name.split("_")[0] for file in files} == {"counter", "histogram"}
    assert all(file.stat().st_blocks * 512 >= file.stat().st_size for file in files)


def test_no_metric_is_said_twice_however_often_one_asks(tmp_path: Path) -> None:
    """In a process that shares a folder with others, as `catchment up` starts it."""
    ask = "from gateway import metrics; [metrics.render(({}, {})) for _ in range(2)]; print(metrics.render(({}, {})).decode())"
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", ask], env=environment, check=True, capture_output=True, text=True
    )
    types = [line for line in done.stdout.splitlines() if line.startswith("# TYPE ")]
    assert len(types) == len(set(types)) == len(METRICS)
    assert "pid=" not in done.stdout


async def test_what_was_counted_is_shown_while_the_database_is_away(broken: httpx.AsyncClient) -> None:
    answer = await broken.get("/metrics")
    assert answer.status_code == 200
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    assert families["catchment_searches"].type == "counter"
    assert (families["catchment_jobs"].type, families["catchment_jobs"].samples) == ("gauge", [])


async def test_a_request_is_logged_once_by_template_with_its_id(
    client: httpx.AsyncClient, mandate: TestMandate, lines: list[str]
) -> None:
    path = f"/v1/users/{mandate.users['member']}?secret=hush"
    answer = await client.get(path, headers={**mandate.auth(), "X-Request-Id": "trace-42"})
    assert answer.headers["x-request-id"] == "trace-42"
    [line] = [json.loads(line) for line in lines]
    assert (line["event"], line["method"], line["path"]) == ("http.request", "GET", "/v1/users/{user_id}")
    assert (line["status"], line["requestId"]) == (422, "trace-42")  # there is no such parameter
    assert isinstance(line["durationMs"], int)
    assert "hush" not in "".join(lines)


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "<script>", "é"])
async def test_a_strange_request_id_is_replaced(client: httpx.AsyncClient, given: str) -> None:
    answer = await client.get("/v1/users", headers=[(b"x-request-id", given.encode())])
    assert answer.headers["x-request-id"] != given
    assert answer.json()["requestId"] == answer.headers["x-request-id"]


async def test_probes_are_not_logged_while_all_is_well(client: httpx.AsyncClient, lines: list[str]) -> None:
    await client.get("/healthz")
    await client.get("/readyz")
    assert lines == []


async def test_the_unforeseen_is_a_500_without_details_and_a_log_line_without_contents(
    settings: Settings, mandate: TestMandate, lines: list[str]
) -> None:
    app = create_app(settings)

    @app.get("/boom")
    async def boom(request: Request) -> None:
        raise RuntimeError("the canary sang")

    @app.get("/sql")
    async def bad_sql(db: Db) -> None:
        async with db.routing_session() as session:
            await session.execute(
                text("SELECT 1 / (SELECT length(:canary) - length(:canary))"), {"canary": "canary"}
            )

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        for path in ("/boom", "/sql"):
            answer = await client.get(path)
            assert answer.status_code == 500
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["code"] == "internal"
            assert answer.json()["requestId"] == answer.headers["x-request-id"]
            assert "canary" not in answer.text
    await app.state.db.dispose()
    events = [json.loads(line) for line in lines]
    assert [event["event"] for event in events] == ["http.failed", "http.request"] * 2
    assert events[0]["error"].startswith("RuntimeError at boom:")
    assert "canary" not in "".join(lines)


async def test_constraint_violations_are_conflicts(settings: Settings, mandate: TestMandate) -> None:
    app = create_app(settings)

    @app.get("/twice")
    async def twice(db: Db) -> None:
        async with db.tenant_session(mandate.id) as session:
            await session.execute(
                text("INSERT INTO membership VALUES (:m, gen_random_uuid(), 'member')"), {"m": mandate.id}
            )

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        answer = await client.get("/twice")
    await app.state.db.dispose()
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


async def test_of_two_that_wait_for_each_other_one_is_asked_to_come_again(settings: Settings) -> None:
    app = create_app(settings)
    meeting = asyncio.Barrier(2)

    @app.post("/{first}/{second}")
    async def tangle(db: Db, first: int, second: int) -> None:
        async with db.routing_session() as session:
            await session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": first})
            await meeting.wait()
            await session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": second})

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        answers = await asyncio.gather(client.post("/1/2"), client.post("/2/1"))
    await app.state.db.dispose()
    gone, refused = sorted(answers, key=lambda answer: answer.status_code)
    assert (gone.status_code, refused.status_code) == (200, 503)
    assert (refused.json()["code"], refused.headers["retry-after"]) == ("store.unavailable", "2")


@pytest.mark.parametrize("path", ["/", "/healthz", "/v1/users", "/static/console.css", "/no/such/page"])
async def test_every_answer_carries_the_security_headers(client: httpx.AsyncClient, path: str) -> None:
    headers = (await client.get(path)).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]


async def test_a_runtime_role_that_is_not_bound_is_refused_at_the_start(
    settings: Settings, database_urls: DatabaseUrls
) -> None:
    app = create_app(settings.model_copy(update={"database_url": SecretStr(database_urls.owner_url)}))
    with pytest.raises(ConfigurationError, match="owns tables"):
        async with app.router.lifespan_context(app):
            pass
    assert "owns tables" in app.state.refusal.detail


async def test_a_wrong_password_is_said_at_the_start(settings: Settings, database_urls: DatabaseUrls) -> None:
    url = database_urls.runtime_url.replace("@", "-not-it@", 1)
    app = create_app(settings.model_copy(update={"database_url": SecretStr(url)}))
    with pytest.raises(StoreUnavailable, match="password authentication failed") as refused:
        async with app.router.lifespan_context(app):
            pass
    assert "not-it" not in refused.value.detail


def test_without_stores_there_is_no_gateway(settings: Settings) -> None:
    with pytest.raises(ConfigurationError, match="CATCHMENT_DATABASE_URL"):
        create_app(settings.model_copy(update={"database_url": None}))


async def test_the_api_is_described_to_those_who_may_ask(
    client: httpx.AsyncClient, mandate: TestMandate, app: FastAPI
) -> None:
    described = (await client.get("/v1/openapi.json", headers=mandate.auth())).json()
    assert described["info"]["title"] == "Catchment"
    assert "/v1/members/{user_id}" in described["paths"]
