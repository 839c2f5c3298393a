"""What `catchment doctor` looks at: everything an installation stands on, and what to do about each finding."""

import asyncio
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import psycopg
from obstore.exceptions import BaseError as ObjectStoreError
from redis import Redis, RedisError, ResponseError

from gateway.commands.repository import DatabaseFacts, WorkFacts, inspect_database, inspect_work
from gateway.db import role_problems
from gateway.embedded.instance import Instance, NoInstance
from gateway.embedded.postgres import EmbeddedPostgres
from gateway.embedded.preflight import StartupRefused, check_folder, free_bytes
from gateway.embedded.redis import EmbeddedRedis
from gateway.errors import ConfigurationError
from gateway.settings import Settings, opened

LEAST_POSTGRES, LEAST_VECTOR, LEAST_REDIS = 16, (0, 8), (6, 2)
COMFORTABLE_BYTES = 2 * 1024**3
BLOB_SECONDS = 5.0  # the library itself would try again for three minutes
LARGEST_SKEW_SECONDS = 2.0  # leases and expiries compare clocks
LONGEST_SILENCE_SECONDS = 60.0  # a worker sweeps every second or so; /readyz says the same
LONGEST_WAIT_SECONDS = 300.0  # uploads go before everything else


@dataclass(frozen=True)
class Finding:
    what: str
    state: Literal["ok", "bad", "unknown"]
    detail: str
    advice: str = ""


def _good(what: str, detail: str) -> Finding:
    return Finding(what, "ok", detail)


def _judge(what: str, good: bool, detail: str, advice: str) -> Finding:
    return Finding(what, "ok", detail) if good else Finding(what, "bad", detail, advice)


def examine(settings: Settings, data_dir: Path) -> Iterator[Finding]:
    version = platform.python_version()
    yield _judge(
        "python",
        sys.version_info >= (3, 11),
        version,
        "Install Python 3.11 or newer and set Catchment up with it.",
    )
    yield from _folder(data_dir)
    yield _embedder(settings)
    if settings.reranker:
        yield _reranker(settings)
    if settings.scan_command:
        yield _scanner(settings.scan_command)
    yield from _stores(settings, data_dir)
    if settings.blob_url:
        yield _blobs(settings)
    if not settings.embedded:
        yield _judge(
            "secret key",
            settings.secret_key is not None,
            "is set" if settings.secret_key else "is not set",
            "Set CATCHMENT_SECRET_KEY to 32 random bytes in base64; tokens are sealed with it.",
        )


def _folder(data_dir: Path) -> Iterator[Finding]:
    """Looks without making anything: a folder that is not there yet is judged by where it would be."""
    there = _is_there(data_dir)
    if there:
        try:
            check_folder(data_dir)
        except StartupRefused as refusal:
            yield Finding("data folder", "bad", str(data_dir), str(refusal))
            return
    nearest = next(folder for folder in (data_dir, *data_dir.parents) if _is_there(folder))
    yield _judge(
        "data folder",
        os.access(nearest, os.W_OK | os.X_OK),
        str(data_dir) if there else f"{data_dir} (not made yet)",
        f"{nearest} cannot be written to: choose another folder with --data-dir or correct its permissions.",
    )
    free = free_bytes(nearest)
    yield _judge(
        "disk",
        free >= COMFORTABLE_BYTES,
        f"{free / 1024**3:.1f} GB free",
        "Free some space, or move the data folder with --data-dir.",
    )


def _is_there(folder: Path) -> bool:
    try:
        return folder.exists()
    except PermissionError:  # below a folder one may not look into
        return False


def _embedder(settings: Settings) -> Finding:
    from gateway.corpus.embedders import build_embedder  # noqa: PLC0415 - loads weights

    key = opened(settings.openai_api_key)
    try:
        build_embedder(settings.embedder, api_key=key, base_url=settings.openai_base_url)
    except ConfigurationError as error:
        return Finding("embedder", "bad", settings.embedder, error.detail)
    return _good("embedder", f"{settings.embedder} loads")


def _reranker(settings: Settings) -> Finding:
    from gateway.corpus.rerankers import build_reranker  # noqa: PLC0415 - may load a model

    spec = settings.reranker or ""
    try:
        build_reranker(spec, api_key=opened(settings.openai_api_key), base_url=settings.openai_base_url)
    except ConfigurationError as error:
        return Finding("reranker", "bad", spec, error.detail)
    return _good("reranker", f"{spec} loads")


def _scanner(command: str) -> Finding:
    program = shlex.split(command)[0]
    return _judge(
        "scanner",
        shutil.which(program) is not None,
        program,
        "No such program can be run here. Without it no document is parsed: install it or correct CATCHMENT_SCAN_COMMAND.",
    )


def _blobs(settings: Settings) -> Finding:
    from gateway.corpus.blobs import BlobStore, words_of  # noqa: PLC0415 - only where they are elsewhere

    try:
        asyncio.run(asyncio.wait_for(BlobStore.of(settings).check(), BLOB_SECONDS))
    except ConfigurationError as error:
        return Finding("blobs", "bad", "cannot be reached", error.detail)
    except (ObjectStoreError, OSError) as error:
        return Finding(
            "blobs",
            "bad",
            f"does not answer ({words_of(error)})",
            "Check CATCHMENT_BLOB_URL, the way there and the credentials in the environment.",
        )
    return _good("blobs", "the store of the originals answers")


def _stores(settings: Settings, data_dir: Path) -> Iterator[Finding]:
    """Those of the settings; else the embedded ones, if they run."""
    database_url, redis_url = opened(settings.database_url), opened(settings.redis_url)
    if database_url is None or redis_url is None:
        try:
            Instance.read(data_dir)
        except NoInstance as absent:
            advice = f"{absent} Then ask again."
            if database_url is None:
                yield Finding("database", "unknown", "the embedded one is not running", advice)
            if redis_url is None:
                yield Finding("redis", "unknown", "the embedded one is not running", advice)
        else:
            database_url = database_url or EmbeddedPostgres(data_dir).runtime_url
            redis_url = redis_url or EmbeddedRedis(data_dir).url
    if database_url:
        yield from _database(database_url)
    if settings.owner_database_url:
        yield _owner(settings.owner_database_url.get_secret_value())
    if redis_url:
        yield from _redis(redis_url)


def _database(url: str) -> Iterator[Finding]:
    try:
        facts = inspect_database(url)
    except (psycopg.Error, ConfigurationError) as error:
        yield Finding(
            "database",
            "bad",
            f"does not answer ({_cause(error)})",
            "Start it, and check host, port, name and password in CATCHMENT_DATABASE_URL.",
        )
        return
    yield _judge(
        "postgres",
        facts.major >= LEAST_POSTGRES,
        f"version {facts.major}",
        f"Upgrade to Postgres {LEAST_POSTGRES} or newer.",
    )
    yield _judge(
        "pgvector",
        facts.vector is not None and _parts(facts.vector) >= LEAST_VECTOR,
        f"version {facts.vector}" if facts.vector else "is not installed in this database",
        "Install pgvector 0.8 or newer and run CREATE EXTENSION vector (or ALTER EXTENSION vector UPDATE).",
    )
    yield from _roles(facts)
    migrations = _migrations(facts)
    yield migrations
    if migrations.state == "ok" and facts.may_sweep:
        yield _worker(inspect_work(url))
    yield _judge(
        "clock",
        facts.clock_skew_seconds <= LARGEST_SKEW_SECONDS,
        f"{facts.clock_skew_seconds:.1f} s between here and Postgres",
        "Let both machines keep time by NTP.",
    )


def _roles(facts: DatabaseFacts) -> Iterator[Finding]:
    problems = role_problems(facts.is_superuser, facts.bypasses_row_security, facts.owns_tables)
    yield _judge(
        "runtime role",
        not problems,
        f"{facts.role} {' and '.join(problems) or 'is bound by row-level security'}",
        "Point CATCHMENT_DATABASE_URL at a plain role such as catchment_runtime.",
    )
    yield _judge(
        "sweeper role",
        facts.may_sweep,
        "may be taken on, and is not inherited" if facts.may_sweep else "cannot be taken on, or is inherited",
        f"GRANT catchment_sweeper TO {facts.role} WITH INHERIT FALSE, SET TRUE;",
    )


def _migrations(facts: DatabaseFacts) -> Finding:
    from gateway.migration import head_revision  # noqa: PLC0415 - Alembic is slow to load

    head = head_revision()
    newer = facts.revision is not None and facts.revision > head  # they are numbered
    return _judge(
        "migrations",
        facts.revision == head,
        f"schema {facts.revision or 'is empty'}, this version brings {head}",
        "Start the newer Catchment that made it." if newer else "Run catchment migrate.",
    )


def _worker(facts: WorkFacts) -> Finding:
    silent, waiting = facts.silent_seconds, facts.waiting_seconds or 0.0
    if silent is None:
        return Finding(
            "worker", "unknown", "none has run on this database yet", "Start one: catchment worker."
        )
    if silent > LONGEST_SILENCE_SECONDS:
        return Finding(
            "worker",
            "bad",
            f"silent for {silent:.0f} s",
            "What is handed in waits. Start one with catchment worker, or look for house.child.died in its log.",
        )
    return _judge(
        "worker",
        waiting <= LONGEST_WAIT_SECONDS,
        f"swept {silent:.0f} s ago, the oldest upload waits for {waiting:.0f} s",
        "It sweeps and does not get to the jobs: look for errors with catchment logs, or start more workers.",
    )


def _owner(url: str) -> Finding:
    try:
        facts = inspect_database(url)
    except (psycopg.Error, ConfigurationError) as error:
        return Finding(
            "owner role",
            "bad",
            f"cannot connect ({_cause(error)})",
            "Check CATCHMENT_OWNER_DATABASE_URL; migrations need it.",
        )
    return _good("owner role", f"{facts.role} can connect")


def _cause(error: psycopg.Error | ConfigurationError) -> str:
    if isinstance(error, psycopg.OperationalError | ConfigurationError):
        # Of several attempts the last; what is set in below it is a question to who asks.
        return [line for line in str(error).strip().splitlines() if not line.startswith("\t")][-1]
    return type(error).__name__  # what libpq cannot read it quotes, and that may be a password


def _redis(url: str) -> Iterator[Finding]:
    try:
        client = Redis.from_url(url, socket_connect_timeout=5, socket_timeout=5)
        with closing(client):
            about = cast("dict[str, Any]", client.info("server"))
            policy = _memory_policy(client)
    except (RedisError, ValueError) as error:  # the latter for a URL that is none
        yield Finding(
            "redis",
            "bad",
            f"does not answer ({type(error).__name__})",
            "Start it, and check CATCHMENT_REDIS_URL.",
        )
        return
    version = str(about["redis_version"])
    yield _judge(
        "redis", _parts(version) >= LEAST_REDIS, f"version {version}", "Upgrade to Redis 6.2 or newer."
    )
    advice = "CONFIG SET maxmemory-policy noeviction."
    if policy is None:
        yield Finding("redis memory", "unknown", "the server does not say its policy", f"See to it: {advice}")
    else:
        yield _judge("redis memory", policy == "noeviction", f"policy {policy}", advice)


def _memory_policy(client: Redis) -> str | None:
    """None where CONFIG is kept from its users, as hosted servers do."""
    try:
        return str(cast("dict[str, Any]", client.config_get("maxmemory-policy")).get("maxmemory-policy"))
    except ResponseError:
        return None


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
