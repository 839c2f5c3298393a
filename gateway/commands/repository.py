"""What `catchment doctor` asks a Postgres about itself, as the role it was given."""

import time
from dataclasses import dataclass

import psycopg

from gateway.db import driver_url

_FACTS = """
SELECT current_setting('server_version_num')::int / 10000 AS major,
       (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS vector,
       r.rolname, r.rolsuper, r.rolbypassrls,
       EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
               AND pg_has_role(r.oid, c.relowner, 'MEMBER')) AS owns_tables,
       (SELECT count(*) FROM pg_roles s WHERE s.rolname = 'catchment_sweeper'
        -- before 16 nobody knew 'SET', and doctor must be able to say that such a server is too old
        AND CASE WHEN current_setting('server_version_num')::int >= 160000 THEN pg_has_role(r.oid, s.oid, 'SET') END
        AND NOT pg_has_role(r.oid, s.oid, 'USAGE')) = 1 AS may_sweep,
       to_regclass('public.alembic_version') IS NOT NULL AS is_migrated
FROM pg_roles r WHERE r.rolname = current_user
"""


@dataclass(frozen=True)
class DatabaseFacts:
    major: int
    vector: str | None
    role: str
    is_superuser: bool
    bypasses_row_security: bool
    owns_tables: bool
    may_sweep: bool
    revision: str | None
    clock_skew_seconds: float


_SILENCE = "SELECT extract(epoch FROM now() - beat_at)::float FROM heartbeat WHERE name = 'sweeper'"
_WAITING = """
SELECT extract(epoch FROM now() - min(run_after))::float FROM job
WHERE status IN ('pending', 'extracted', 'embedding') AND lane = 'interactive'
  AND (lease_until IS NULL OR lease_until < now()) AND run_after <= now()
"""


@dataclass(frozen=True)
class WorkFacts:
    """How long no worker has swept, None where none ever did; how long the oldest job of a person has waited to be taken."""

    silent_seconds: float | None
    waiting_seconds: float | None


def inspect_work(url: str) -> WorkFacts:
    """Across mandates, as the sweeper: the role must be one that may, and the schema this version's."""
    with psycopg.connect(driver_url(url), connect_timeout=5) as connection:
        beat = connection.execute(_SILENCE).fetchone()
        connection.execute("SET LOCAL ROLE catchment_sweeper")
        oldest = connection.execute(_WAITING).fetchone()
    return WorkFacts(beat[0] if beat else None, oldest[0] if oldest else None)


def inspect_database(url: str) -> DatabaseFacts:
    with psycopg.connect(driver_url(url), connect_timeout=5, autocommit=True) as connection:
        facts = connection.execute(_FACTS).fetchone()
        revision = None
        if facts is not None and facts[7]:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            revision = str(row[0]) if row else None
        asked = time.time()
        clock = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float").fetchone()
        answered = time.time()
    assert facts is not None, "the role one is connected as exists"  # noqa: S101
    assert clock is not None, "a SELECT without FROM has a row"  # noqa: S101
    # The answer was true at some moment between asking and hearing it.
    skew = max(asked - clock[0], clock[0] - answered, 0.0)
    return DatabaseFacts(*facts[:7], revision=revision, clock_skew_seconds=skew)
