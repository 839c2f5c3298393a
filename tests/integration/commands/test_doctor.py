"""Doctor finds what is wrong and says what to do; on a sound installation it finds nothing."""

from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr
from redis import Redis

from gateway.commands.checkup import Finding, examine
from gateway.settings import Settings
from tests.fixtures.stores import DatabaseUrls


@pytest.fixture
def sound(settings: Settings) -> Settings:
    return settings.model_copy(update={"embedder": "lookup:8"})


def _examined(settings: Settings, data_dir: Path, **changes: object) -> dict[str, Finding]:
    found = examine(settings.model_copy(update=changes), data_dir)
    return {finding.what: finding for finding in found}


@pytest.fixture
def working(scratch: DatabaseUrls) -> SecretStr:
    """A database on which a worker has just swept."""
    with psycopg.connect(scratch.superuser_url, autocommit=True) as admin:
        admin.execute("INSERT INTO heartbeat (name, beat_at) VALUES ('sweeper', now())")
    return SecretStr(scratch.runtime_url)


def test_a_sound_installation(sound: Settings, tmp_path: Path, working: SecretStr) -> None:
    findings = _examined(sound, tmp_path, database_url=working)
    assert {finding.state for finding in findings.values()} == {"ok"}
    assert set(findings) == {
        *(
            "python",
            "data folder",
            "disk",
            "embedder",
            "postgres",
            "pgvector",
            "runtime role",
            "sweeper role",
        ),
        *("migrations", "worker", "clock", "owner role", "redis", "redis memory", "secret key"),
    }


@pytest.mark.parametrize(
    ("role", "words"), [("superuser_url", "is a superuser"), ("owner_url", "owns tables")]
)
def test_a_role_that_row_security_does_not_bind(
    sound: Settings, tmp_path: Path, database_urls: DatabaseUrls, role: str, words: str
) -> None:
    url = database_urls.named(database_urls.name)
    findings = _examined(sound, tmp_path, database_url=SecretStr(getattr(url, role)))
    assert findings["runtime role"].state == "bad"
    assert words in findings["runtime role"].detail
    assert "catchment_runtime" in findings["runtime role"].advice
    assert findings["sweeper role"].state == "bad"


def test_a_worker_that_is_not_there_or_does_not_get_to_the_jobs(
    sound: Settings, tmp_path: Path, scratch: DatabaseUrls
) -> None:
    url = SecretStr(scratch.runtime_url)
    never = _examined(sound, tmp_path, database_url=url)["worker"]
    assert (never.state, never.detail) == ("unknown", "none has run on this database yet")
    with psycopg.connect(scratch.superuser_url, autocommit=True) as admin:
        admin.execute("INSERT INTO heartbeat (name, beat_at) VALUES ('sweeper', now() - interval '2 min')")
        dead = _examined(sound, tmp_path, database_url=url)["worker"]
        assert (dead.state, dead.detail) == ("bad", "silent for 120 s")
        admin.execute("UPDATE heartbeat SET beat_at = now()")
        assert _examined(sound, tmp_path, database_url=url)["worker"].state == "ok"
        admin.execute("INSERT INTO mandate (mandate_id, slug, name) VALUES (gen_random_uuid(), 'm', 'M')")
        admin.execute(
            "INSERT INTO job (mandate_id, id, kind, lane, status, run_after) "
            "SELECT mandate_id, gen_random_uuid(), 'ingest', 'interactive', 'pending', now() - interval '10 min' "
            "FROM mandate LIMIT 1"
        )
    hung = _examined(sound, tmp_path, database_url=url)["worker"]
    assert hung.state == "bad"
    assert "the oldest upload waits for 600 s" in hung.detail


def test_a_database_that_is_behind_or_lacks_the_extension(
    sound: Settings, tmp_path: Path, empty_database: DatabaseUrls
) -> None:
    with psycopg.connect(empty_database.superuser_url, autocommit=True) as admin:
        admin.execute("DROP EXTENSION vector")
    findings = _examined(sound, tmp_path, database_url=SecretStr(empty_database.runtime_url))
    assert (findings["pgvector"].state, findings["migrations"].state) == ("bad", "bad")
    assert "CREATE EXTENSION vector" in findings["pgvector"].advice
    assert findings["migrations"].advice == "Run catchment migrate."


def test_a_database_of_a_newer_version(sound: Settings, tmp_path: Path, scratch: DatabaseUrls) -> None:
    with psycopg.connect(scratch.owner_url, autocommit=True) as owner:
        owner.execute("UPDATE alembic_version SET version_num = '9999'")
    finding = _examined(sound, tmp_path, database_url=SecretStr(scratch.runtime_url))["migrations"]
    assert (finding.state, finding.advice) == ("bad", "Start the newer Catchment that made it.")


def test_stores_that_do_not_answer(sound: Settings, tmp_path: Path) -> None:
    nowhere = SecretStr("postgresql://someone:hush@127.0.0.1:1/none")
    findings = _examined(
        sound,
        tmp_path,
        database_url=nowhere,
        owner_database_url=nowhere,
        redis_url=SecretStr("redis://:hush@127.0.0.1:1"),
    )
    for what in ("database", "owner role", "redis"):
        assert findings[what].state == "bad"
        assert findings[what].advice
    for what in ("database", "owner role"):
        assert "Connection refused" in findings[what].detail
    assert "hush" not in str(findings)


def test_a_store_of_originals_elsewhere(sound: Settings, tmp_path: Path) -> None:
    assert _examined(sound, tmp_path, blob_url=tmp_path.as_uri())["blobs"].state == "ok"
    nowhere = "az://container", "s3://", "cloud://someone:hush@host/path", "https://someone:hush@127.0.0.1:1/"
    for url in nowhere:
        found = _examined(sound, tmp_path, blob_url=url)["blobs"]
        assert (found.state, "CATCHMENT_BLOB_URL" in found.advice) == ("bad", True), url
        assert "hush" not in str(found)
        assert "\n" not in found.detail + found.advice


def test_addresses_that_are_none(sound: Settings, tmp_path: Path) -> None:
    for address in ("postgresql://someone:hush@[::1/none", "mysql://someone:hush@localhost/none", "hush"):
        findings = _examined(
            sound,
            tmp_path,
            database_url=SecretStr(address),
            owner_database_url=SecretStr(address),
            redis_url=SecretStr(address),
        )
        for what in ("database", "owner role", "redis"):
            assert findings[what].state == "bad"
        assert "hush" not in str(findings)


def test_the_address_may_name_the_driver(
    sound: Settings, tmp_path: Path, database_urls: DatabaseUrls
) -> None:
    url = database_urls.runtime_url.replace("postgresql://", "postgresql+psycopg://")
    assert _examined(sound, tmp_path, database_url=SecretStr(url))["postgres"].state == "ok"


def test_a_redis_that_keeps_its_configuration_to_itself(
    sound: Settings, tmp_path: Path, redis_url: str
) -> None:
    """As hosted ones do."""
    admin = Redis.from_url(redis_url)
    admin.execute_command("ACL", "SETUSER", "guest", "on", ">hush", "~*", "+@all", "-config")
    separator = "&" if "?" in redis_url else "?"
    guest = f"{redis_url}{separator}username=guest&password=hush"
    try:
        findings = _examined(sound, tmp_path, redis_url=SecretStr(guest))
    finally:
        admin.execute_command("ACL", "DELUSER", "guest")
        admin.close()
    assert findings["redis"].state == "ok"
    assert findings["redis memory"].state == "unknown"


def test_a_scanner_that_is_not_there(sound: Settings, tmp_path: Path) -> None:
    for command, state in (
        ("/no/such/scanner --token hush", "bad"),
        ("no-such-scanner", "bad"),
        ("cat -", "ok"),
    ):
        found = _examined(sound, tmp_path, scan_command=command)["scanner"]
        assert found.state == state
        assert "hush" not in str(found)


def test_what_else_can_be_wrong(sound: Settings, tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("x")
    findings = _examined(sound, in_the_way, embedder="no such thing", secret_key=None)
    for what in ("data folder", "embedder", "secret key"):
        assert findings[what].state == "bad", what
        assert findings[what].advice


def test_it_looks_and_makes_nothing(sound: Settings, tmp_path: Path) -> None:
    missing = tmp_path / "not" / "yet"
    assert _examined(sound, missing)["data folder"].state == "ok"
    assert list(tmp_path.iterdir()) == []


def test_embedded_stores_that_do_not_run_are_no_fault(sound: Settings, tmp_path: Path) -> None:
    findings = _examined(sound, tmp_path, database_url=None, redis_url=None, owner_database_url=None)
    assert findings["database"].state == findings["redis"].state == "unknown"
    assert "catchment up" in findings["database"].advice
