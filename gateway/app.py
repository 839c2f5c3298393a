"""The gateway process: one FastAPI application in front of the whole house."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, cast

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from redis.exceptions import RedisError
from sqlalchemy.exc import DBAPIError
from starlette.middleware import Middleware

import gateway.connections.oauth_routes
import gateway.connections.routes
import gateway.connections.sync_routes
import gateway.connections.webhook_routes
import gateway.console.routes
import gateway.corpus.export_routes
import gateway.corpus.routes
import gateway.ingestion.routes
import gateway.mcp_routes
import gateway.tenancy.routes
from gateway import metrics, retrieval
from gateway.connections.vault import Vault
from gateway.corpus.blobs import BlobStore
from gateway.db import Database, answered_within, is_of_another_schema
from gateway.errors import ConfigurationError, StoreUnavailable
from gateway.http import API_PREFIX, EXCEPTION_HANDLERS, BodyLimit, Db, RequestContext
from gateway.ingestion import bell
from gateway.ingestion import repository as ledger
from gateway.logs import emit
from gateway.openapi import Described
from gateway.parameters import known_parameters
from gateway.schema import newest_revision
from gateway.settings import Settings
from gateway.tenancy import repository as tenancy
from gateway.tenancy.access import Authentication, Reader

# Everything under API_PREFIX. A noun that gets routes is added here.
API_ROUTERS: tuple[APIRouter, ...] = (
    gateway.tenancy.routes.router,
    gateway.ingestion.routes.router,
    gateway.corpus.routes.router,
    gateway.corpus.export_routes.router,
    gateway.connections.routes.router,
    gateway.connections.sync_routes.router,
    *retrieval.ROUTERS,
)
# The same, called by vendors and by browsers that vendors send here, with parameters of theirs.
VENDOR_ROUTERS: tuple[APIRouter, ...] = (
    gateway.connections.oauth_routes.router,
    gateway.connections.webhook_routes.router,
)
# A worker beats at every sweep, by default once a second; a minute of silence means that nobody sweeps. Where none ever ran
# we count from our own start: a fresh gateway need not wait for a worker, one that stays alone says so.
SWEEPER_SILENCE_SECONDS = 60
NO_WORKER_YET = "waiting for a first worker"
# Who asks how we are does not wait longer, whatever hangs.
PROBE_SECONDS = 3.0

house = APIRouter(include_in_schema=False)


@house.api_route("/healthz", methods=["GET", "HEAD"])
async def healthz() -> dict[str, str]:
    """The process answers. Whether its stores do is a matter of /readyz."""
    return {"status": "ok"}


@house.api_route("/readyz", methods=["GET", "HEAD"])
async def readyz(request: Request, db: Db) -> Response:
    database, redis = await asyncio.gather(_database_checks(request, db), _redis_check(request))
    checks = {**database, "redis": redis}
    ready = all(finding in {"ok", NO_WORKER_YET} for finding in checks.values())
    return JSONResponse(
        {"status": "ready" if ready else "not ready", "checks": checks}, status_code=200 if ready else 503
    )


async def _database_checks(request: Request, db: Database) -> dict[str, str]:
    try:
        revision, age = await answered_within(PROBE_SECONDS, _schema_and_sweeper(db))
    except (StoreUnavailable, DBAPIError) as error:
        return {"database": f"does not answer ({type(error).__name__})"}
    return {
        "database": "ok",
        "migrations": _judge_schema(revision),
        "sweeper": _judge_sweeper(age, time.monotonic() - request.app.state.began),
    }


def _judge_sweeper(age: float | None, uptime: float) -> str:
    silence = uptime if age is None else age
    if silence > SWEEPER_SILENCE_SECONDS:
        return f"silent for {silence:.0f} s: is a worker running?"
    return NO_WORKER_YET if age is None else "ok"


def _judge_schema(revision: str | None) -> str:
    head = newest_revision()
    if revision == head:
        return "ok"
    if revision is not None and revision > head:  # they are numbered
        return f"at {revision}, and this version knows {head}: start a newer Catchment"
    return f"{f'at {revision}' if revision else 'none yet'}, this version needs {head}: catchment migrate"


async def _schema_and_sweeper(db: Database) -> tuple[str | None, float | None]:
    try:
        async with db.routing_session() as session:
            return await tenancy.schema_revision(session), await tenancy.sweeper_age_seconds(session)
    except DBAPIError as error:
        if not is_of_another_schema(error):
            raise
        return None, None


async def _redis_check(request: Request) -> str:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            await request.app.state.redis.ping()
    except (RedisError, OSError) as error:  # a TimeoutError is an OSError
        return f"does not answer ({type(error).__name__})"
    return "ok"


@house.get("/metrics")
async def show_metrics(db: Db) -> Response:
    """What the processes counted is there without the database too; only the ledger's gauges are missing then."""
    try:
        counted = await answered_within(PROBE_SECONDS, _ledger_counts(db))
    except (StoreUnavailable, DBAPIError):
        counted = None
    return Response(metrics.render(counted), media_type="text/plain; version=0.0.4; charset=utf-8")


async def _ledger_counts(db: Database) -> metrics.LedgerCounts:
    async with db.sweeper_session() as session:
        return await ledger.count_jobs(session)


@house.get("/v1/openapi.json")
async def openapi(request: Request, _principal: Reader) -> dict[str, Any]:
    return cast("FastAPI", request.app).openapi()


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncGenerator[None]:
    try:
        app.state.vault = Vault.of(app.state.settings)
        await app.state.db.check_role()
        async with retrieval.running(app):
            emit("house.ready", component="gateway")
            yield
            emit("house.stopping", component="gateway")
    except Exception as error:
        app.state.refusal = error  # the server would only log it; `catchment gateway` raises it again
        raise
    finally:
        await app.state.redis.aclose()
        await app.state.db.dispose()


def _body_limit(settings: Settings) -> int:
    """The largest upload as base64, and a mebibyte for what describes it."""
    return settings.upload_limit_bytes * 4 // 3 + 1024 * 1024


def create_app(settings: Settings) -> FastAPI:
    """Everything is put together here and opened by the first use; only the lifespan talks to the stores."""
    if settings.database_url is None or settings.redis_url is None:
        raise ConfigurationError(
            "Set CATCHMENT_DATABASE_URL and CATCHMENT_REDIS_URL, or start everything with `catchment up`."
        )
    app = Described(
        title="Catchment",
        version=version("catchment"),
        description="One door through which everything an organisation knows enters one searchable corpus.",
        openapi_url=None,
        redirect_slashes=False,  # a path has one spelling
        lifespan=_lifespan,
        middleware=[
            Middleware(RequestContext),
            Middleware(Authentication),
            Middleware(BodyLimit, limit=_body_limit(settings)),
        ],
        exception_handlers=cast("Any", EXCEPTION_HANDLERS),
    )
    app.state.settings = settings
    app.state.began = time.monotonic()
    app.state.db = Database(settings.database_url.get_secret_value(), pool_size=settings.database_pool_size)
    app.state.redis = bell.connect(settings.redis_url.get_secret_value())
    app.state.blobs = BlobStore.of(settings)
    app.include_router(house)
    for router in API_ROUTERS:
        app.include_router(router, prefix=API_PREFIX, dependencies=[Depends(known_parameters)])
    for router in VENDOR_ROUTERS:
        app.include_router(router, prefix=API_PREFIX)
    app.include_router(gateway.mcp_routes.router)
    app.include_router(gateway.console.routes.router)
    gateway.console.routes.furnish(app)
    return app
