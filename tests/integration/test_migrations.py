"""Migrations are code: they go up, down and up again, match the models, give way to a lock and survive a crash."""

import os
import re
import signal
import subprocess
import sys
import time

import pgvector.sqlalchemy  # noqa: F401 - teaches reflection the vector types
import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

import gateway.app  # noqa: F401 - every noun's models are registered by its import
from gateway.db import Database, sqlalchemy_url
from gateway.errors import ConfigurationError
from gateway.migration import alembic_config, head_revision, migrate
from gateway.schema import Base, newest_revision
from tests.fixtures.stores import DatabaseUrls

# Everything a migration can leave behind, in one comparable list.
SCHEMA = """
SELECT 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull || ' '
       || coalesce(pg_get_expr(d.adbin, d.adrelid), '')
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
UNION ALL
SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL
SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'public'::regnamespace
UNION ALL
SELECT 'policy', tablename, policyname, concat(cmd, roles, qual, with_check) FROM pg_policies
UNION ALL
SELECT 'table', relname, relkind::text, concat(relrowsecurity, relforcerowsecurity, relacl::text, reloptions::text)
FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname NOT LIKE 'alembic_version%'
UNION ALL
SELECT 'function', p.proname, pg_get_function_identity_arguments(p.oid), md5(p.prosrc) FROM pg_proc p
WHERE p.pronamespace = 'public'::regnamespace
UNION ALL
SELECT 'trigger', tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
ORDER BY 1, 2, 3, 4
"""


def schema_of(urls: DatabaseUrls) -> list[tuple[object, ...]]:
    with psycopg.connect(urls.superuser_url) as connection:
        return connection.execute(SCHEMA).fetchall()


def revision_of(urls: DatabaseUrls) -> str | None:
    with psycopg.connect(urls.superuser_url) as connection:
        if connection.execute("SELECT to_regclass('alembic_version')").fetchone() == (None,):
            return None
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        return str(row[0]) if row else None


def test_up_down_up_ends_where_up_did(empty_database: DatabaseUrls) -> None:
    before = schema_of(empty_database)
    assert migrate(empty_database.owner_url) == head_revision()
    once = schema_of(empty_database)
    assert migrate(empty_database.owner_url, "base", down=True) == "base"
    assert [row for row in schema_of(empty_database) if row[1] != "alembic_version"] == before
    assert migrate(empty_database.owner_url) == head_revision()
    assert schema_of(empty_database) == once


def test_each_step_can_be_taken_back_and_forth(empty_database: DatabaseUrls) -> None:
    steps = [script.revision for script in ScriptDirectory.from_config(alembic_config()).walk_revisions()][
        ::-1
    ]
    for below, step in zip(["base", *steps], steps, strict=False):
        migrate(empty_database.owner_url, step)
        reached = schema_of(empty_database)
        migrate(empty_database.owner_url, below, down=True)
        migrate(empty_database.owner_url, step)
        assert schema_of(empty_database) == reached, step


def test_migrating_twice_changes_nothing(scratch: DatabaseUrls) -> None:
    before = schema_of(scratch)
    assert migrate(scratch.owner_url) == head_revision()
    assert schema_of(scratch) == before


def test_the_models_are_the_schema(database_urls: DatabaseUrls) -> None:
    engine = create_engine(sqlalchemy_url(database_urls.owner_url))
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "include_object": lambda thing, name, kind, _reflected, _other: (
                    kind != "table" or name in Base.metadata.tables
                ),
            },
        )
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_a_newer_schema_is_refused_and_left_alone(scratch: DatabaseUrls) -> None:
    with psycopg.connect(scratch.owner_url, autocommit=True) as owner:
        owner.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(ConfigurationError, match=r"schema 9999, which is newer than this Catchment"):
        migrate(scratch.owner_url)
    assert revision_of(scratch) == "9999"


def test_missing_roles_and_extension_are_named(empty_database: DatabaseUrls) -> None:
    with psycopg.connect(empty_database.superuser_url, autocommit=True) as admin:
        admin.execute("DROP EXTENSION vector")
    with pytest.raises(ConfigurationError, match="lacks extension vector"):
        migrate(empty_database.owner_url)


def test_what_the_database_refuses_is_one_sentence(empty_database: DatabaseUrls) -> None:
    with pytest.raises(
        ConfigurationError, match=r"could not be migrated: permission denied for schema public$"
    ):
        migrate(empty_database.runtime_url)
    with pytest.raises(ConfigurationError, match=r"could not be migrated: .*nowhere"):
        migrate(empty_database.owner_url, "nowhere", down=True)


def test_a_held_lock_makes_it_give_up_in_time_and_change_nothing(scratch: DatabaseUrls) -> None:
    migrate(scratch.owner_url, "0001", down=True)
    before = schema_of(scratch)
    with psycopg.connect(scratch.owner_url) as holder:
        holder.execute("LOCK TABLE mandate IN ACCESS SHARE MODE")
        began = time.monotonic()
        # Foreign keys to `mandate` need a lock that the reader's does not allow for.
        with pytest.raises(ConfigurationError, match="lock timeout"):
            migrate(scratch.owner_url, "base", down=True)
        took = time.monotonic() - began
    assert took <= 5
    assert schema_of(scratch) == before
    assert revision_of(scratch) == "0001"


def test_two_that_start_together_migrate_one_after_the_other(empty_database: DatabaseUrls) -> None:
    command = [
        sys.executable,
        "-c",
        "import sys; from gateway.migration import migrate; migrate(sys.argv[1])",
    ]
    both = [subprocess.Popen([*command, empty_database.owner_url]) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert revision_of(empty_database) == head_revision()


def test_a_crash_inside_leaves_the_old_schema(empty_database: DatabaseUrls) -> None:
    before = schema_of(empty_database)
    command = [
        sys.executable,
        "-c",
        "import sys; from gateway.migration import migrate; migrate(sys.argv[1])",
    ]
    done = subprocess.run(
        [*command, empty_database.owner_url],
        env={**os.environ, "CATCHMENT_CRASH_POINTS": "migrate.inside"},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert schema_of(empty_database) == before
    assert migrate(empty_database.owner_url) == head_revision()


async def test_a_runtime_role_that_row_security_would_not_bind_is_refused(scratch: DatabaseUrls) -> None:
    for url, problem in {scratch.superuser_url: "is a superuser", scratch.owner_url: "owns tables"}.items():
        db = Database(url, pool_size=1)
        with pytest.raises(ConfigurationError, match=problem):
            await db.check_role()
        await db.dispose()
    db = Database(scratch.runtime_url, pool_size=1)
    await db.check_role()
    await db.dispose()


async def test_a_runtime_role_with_bypassrls_is_refused(scratch: DatabaseUrls) -> None:
    with psycopg.connect(scratch.superuser_url, autocommit=True) as admin:
        admin.execute("CREATE ROLE bypasser LOGIN BYPASSRLS PASSWORD 'x'")
        admin.execute("GRANT catchment_runtime TO bypasser")
    db = Database(_as_role(scratch.superuser_url, "bypasser", "x"), pool_size=1)
    try:
        with pytest.raises(ConfigurationError, match="'bypasser' has BYPASSRLS"):
            await db.check_role()
    finally:
        await db.dispose()
        with psycopg.connect(scratch.superuser_url, autocommit=True) as admin:
            admin.execute("DROP ROLE bypasser")


def _as_role(url: str, role: str, password: str) -> str:
    return re.sub(r"//[^@]*@", f"//{role}:{password}@", url)


def test_the_newest_revision_by_name_is_alembics_head() -> None:
    assert newest_revision() == head_revision()
