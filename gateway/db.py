"""The way to the rows. `tenant_session()` is the only way to a tenant's.

One block is one transaction: it commits at the end or rolls back whole. The tenant is set for that transaction alone, by
a real `SET LOCAL` (a `set_config()` call would not reach Citus shards), and row-level security does the rest.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar, cast
from uuid import UUID

import uuid_utils.compat as uuid_utils
from psycopg import AsyncConnection
from psycopg import Error as PsycopgError
from psycopg.errors import OperationalError as PsycopgOperationalError
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine

from gateway.errors import ConfigurationError, StoreUnavailable
from gateway.logs import emit
from gateway.readers import Connection, Readers
from gateway.settings import get_settings

# The reserved commons: documents of scope `global` live here, written by operators, searched by a second query.
COMMONS = UUID("00000000-0000-7000-8000-000000000000")


_AWAY = "The database does not answer; try again in a few seconds."
# It answers, and says what it lacks.
_SHORTAGES = {
    "53100": (
        "disk full",
        "The database's disk is full: nothing can be written until somebody makes room on it.",
    ),
    "53200": ("out of memory", "The database is out of memory; try again in a few seconds."),
    "53300": ("too many connections", "The database takes no more connections; try again in a few seconds."),
}
_CONNECTING: dict[str, Any] = {"connect_timeout": 3, "application_name": "catchment"}
T = TypeVar("T")


def new_id() -> UUID:
    """Time-ordered, so that fresh rows land side by side in every index."""
    return uuid_utils.uuid7()


def driver_url(url: str) -> str:
    """As psycopg reads it, for who speaks to the driver alone."""
    scheme, separator, rest = url.partition("://")
    if scheme.split("+")[0] not in {"postgresql", "postgres"} or not separator:
        raise ConfigurationError("The database URL must start with postgresql://")
    return f"postgresql://{rest}"


def sqlalchemy_url(url: str) -> str:
    return driver_url(url).replace("postgresql", "postgresql+psycopg", 1)


class Database:
    """A pool of connections as the runtime role."""

    def __init__(self, url: str, *, pool_size: int = 10) -> None:
        self.engine: AsyncEngine = create_async_engine(
            sqlalchemy_url(url),
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=10,
            pool_pre_ping=False,
            pool_use_lifo=True,  # the connection used last has its plans and caches warm
            connect_args=_CONNECTING,
        )
        self._sessions = async_sessionmaker(self.engine, expire_on_commit=False, autoflush=False)
        # Who reads may have a second look beside it. Two rows, so that nobody holds what another needs while waiting for more.
        seats = (pool_size + 1) // 2
        self._readers, self._beside = (Readers(driver_url(url), seats, **_CONNECTING) for _ in range(2))

    @asynccontextmanager
    async def tenant_session(self, mandate_id: UUID) -> AsyncGenerator[AsyncSession]:
        """A transaction that sees and writes this mandate's rows and no others."""
        async with self._transaction() as session:
            await enter_tenant(session, mandate_id)
            yield session

    @asynccontextmanager
    async def tenant_connection(self, mandate_id: UUID) -> AsyncGenerator[AsyncConnection[Any]]:
        """Such a transaction for who speaks to the driver: around one small statement the layers above cost more than it does."""
        async with self._answering(), self.engine.connect() as pooled:
            raw = await pooled.get_raw_connection()
            connection = cast("AsyncConnection[Any]", raw.driver_connection)
            try:
                await connection.set_autocommit(True)  # the driver would send BEGIN alone and wait for it
                await connection.execute(f"BEGIN; {entering(mandate_id)}".encode())
                yield connection
                await connection.commit()
            finally:
                await _hand_back(connection)

    async def read(
        self,
        mandate_id: UUID,
        work: Callable[[Connection], T],
        settings: Mapping[str, str | int] | None = None,
    ) -> T:
        """What `work` reads in a transaction of this mandate, in a thread that has nothing else to do (`readers`).

        `settings` are set for the transaction alone, in the same message as the tenant.
        """
        async with self._answering():
            return await self._readers.run(_opening(mandate_id, settings), work)

    def read_beside(
        self,
        mandate_id: UUID,
        work: Callable[[Connection], T],
        settings: Mapping[str, str | int] | None = None,
    ) -> Future[T]:
        """The same for who is reading already and goes on meanwhile."""
        return self._beside.begin(_opening(mandate_id, settings), work)

    @asynccontextmanager
    async def routing_session(self) -> AsyncGenerator[AsyncSession]:
        """A transaction without a tenant: only the tenant-free routing tables answer."""
        async with self._transaction() as session:
            yield session

    @asynccontextmanager
    async def sweeper_session(self) -> AsyncGenerator[AsyncSession]:
        """Reads ids, lanes and times of jobs and outbox across tenants, and nothing else."""
        async with self._transaction() as session:
            await session.execute(text("SET LOCAL ROLE catchment_sweeper"))
            yield session

    @asynccontextmanager
    async def _transaction(self) -> AsyncGenerator[AsyncSession]:
        async with self._answering(), self._sessions() as session:
            async with session.begin():
                yield session
            for announce in session.info.pop("on_commit", ()):
                announce()

    @asynccontextmanager
    async def _answering(self) -> AsyncGenerator[None]:
        try:
            yield
        except PoolTimeout as error:
            raise StoreUnavailable(
                "Every database connection is busy; try again in a few seconds."
            ) from error
        except (OperationalError, InterfaceError, PsycopgOperationalError) as error:
            # The driver's own error comes from what goes past SQLAlchemy.
            if not _is_connection_trouble(error):
                raise
            raise StoreUnavailable(_short_of(error) or _AWAY) from error

    async def check_role(self) -> None:
        """Refuses a runtime role that row-level security would not bind. Asked at every start, so it says what is in the way."""
        try:
            async with self.routing_session() as session:
                row = (await session.execute(text(ROLE_FINDINGS))).one()
        except StoreUnavailable as error:
            cause = getattr(error.__cause__, "orig", None) or error
            raise StoreUnavailable(
                f"The database does not answer: {str(cause).strip().splitlines()[0]}"
            ) from error
        if problems := role_problems(row.rolsuper, row.rolbypassrls, row.owns_tables):
            raise ConfigurationError(
                f"The runtime role {row.rolname!r} {' and '.join(problems)}: row-level security would not hold. "
                "Point CATCHMENT_DATABASE_URL at a plain role such as catchment_runtime."
            )

    async def dispose(self) -> None:
        await self.engine.dispose()
        for readers in (self._readers, self._beside):
            await asyncio.to_thread(readers.close)


async def _hand_back(connection: AsyncConnection[Any]) -> None:
    """As the pool gave it out: idle, and never in autocommit, where a session's `SET LOCAL` would mean nothing."""
    try:
        await connection.rollback()  # does nothing after a commit
        await connection.set_autocommit(False)
    except BaseException as error:
        await connection.close()
        if not isinstance(error, PsycopgError):
            raise


ROLE_FINDINGS = """
SELECT r.rolname, r.rolsuper, r.rolbypassrls,
       EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = 'public' AND c.relkind = 'r' AND pg_has_role(r.oid, c.relowner, 'MEMBER')) AS owns_tables
FROM pg_roles r WHERE r.rolname = current_user
"""


async def answered_within(seconds: float, asking: Coroutine[Any, Any, T]) -> T:
    """A database that takes a question and never answers is away too.

    The question is let go of, not waited for: the driver takes ten seconds to give a connection up.
    """
    task = asyncio.create_task(asking)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    finally:
        if not task.done():
            task.cancel()
            task.add_done_callback(lambda gone: gone.cancelled() or gone.exception())
    if not done:
        raise StoreUnavailable(_AWAY)
    return task.result()


def role_problems(is_superuser: bool, bypasses_row_security: bool, owns_tables: bool) -> list[str]:
    """Why row-level security would not bind a role."""
    found = {
        "is a superuser": is_superuser,
        "has BYPASSRLS": bypasses_row_security,
        "owns tables": owns_tables,
    }
    return [words for words, holds in found.items() if holds]


def _is_connection_trouble(error: DBAPIError | PsycopgOperationalError) -> bool:
    original = error.orig if isinstance(error, DBAPIError) else error
    return (isinstance(error, DBAPIError) and error.connection_invalidated) or (
        isinstance(original, PsycopgOperationalError)
        and (original.sqlstate is None or original.sqlstate[:2] in {"08", "57", "53"})
    )


def _short_of(error: DBAPIError | PsycopgOperationalError) -> str | None:
    """In words, and in the log: what waits for a full disk waits for ever, so who looks there must find it."""
    original = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(original, "sqlstate", None)
    if code not in _SHORTAGES:
        return None
    name, words = _SHORTAGES[code]
    emit("house.store.unavailable", component="database", error=name, sqlState=code)
    return words


def is_of_another_schema(error: BaseException) -> bool:
    """About a table or a column that is not there: nobody migrated yet, or not far enough."""
    original = error.orig if isinstance(error, DBAPIError) else error
    return isinstance(original, PsycopgError) and original.sqlstate in {"42P01", "42703"}


async def raw_connection(session: AsyncSession) -> AsyncConnection[Any]:
    """The psycopg connection behind a session, for COPY."""
    connection = await session.connection()
    raw = await connection.get_raw_connection()
    return cast("AsyncConnection[Any]", raw.driver_connection)


def on_commit(session: AsyncSession, announce: Callable[[], None]) -> None:
    """Logs and counters speak of what is committed; a rolled-back transaction leaves no word of itself."""
    session.info.setdefault("on_commit", []).append(announce)


def emit_on_commit(session: AsyncSession, event: str, /, **fields: Any) -> None:
    on_commit(session, lambda: emit(event, **fields))


async def enter_tenant(session: AsyncSession, mandate_id: UUID) -> None:
    """From here on the transaction sees this mandate alone: how a routing session follows a route it just read."""
    await session.execute(text(entering(mandate_id)))
    session.info["mandate_id"] = mandate_id


def switch_tenant(connection: Connection, mandate_id: UUID) -> None:
    """The same for who reads in a thread."""
    connection.execute(entering(mandate_id).encode())


def entering(mandate_id: UUID) -> str:
    """The statement that does it."""
    if not isinstance(cast("object", mandate_id), UUID):
        raise TypeError("mandate_id must be a UUID")
    return f"SET LOCAL app.mandate_id = '{mandate_id}'"


def _opening(mandate_id: UUID, settings: Mapping[str, str | int] | None) -> str:
    assignments = (f"SET LOCAL {name} = '{value}'" for name, value in (settings or {}).items())
    return "; ".join([entering(mandate_id), *assignments])


def tenant_of(session: AsyncSession) -> UUID:
    """The mandate this session was opened for."""
    return cast("UUID", session.info["mandate_id"])


_default: Database | None = None


def default_database() -> Database:
    """The database of the settings, for feature modules that call the façade in-process."""
    global _default  # noqa: PLW0603 - one pool per process
    if _default is None:
        settings = get_settings()
        if settings.database_url is None:
            raise ConfigurationError("Set CATCHMENT_DATABASE_URL, or run inside `catchment up`.")
        _default = Database(settings.database_url.get_secret_value(), pool_size=settings.database_pool_size)
    return _default


def tenant_session(mandate_id: UUID) -> AbstractAsyncContextManager[AsyncSession]:
    """A transaction of this mandate on the default database, for feature modules that call the façade in-process."""
    return default_database().tenant_session(mandate_id)
