"""Cross-tenant probes: every function of every repository, called in tenant A's session with tenant B's ids.

To A, an id of B must be indistinguishable from one that exists nowhere: each call is made once with invented ids and
once with B's, and both must end alike, no result may hold a value of B's, and B's rows must stay what they were. A
repository joins with one line in `PROBED`; a parameter whose name is not known yet fails with the question what to put
there.
"""

import inspect
import os
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import date, datetime, timedelta
from functools import partial
from types import ModuleType
from typing import Any
from uuid import UUID, uuid4

import psycopg
from sqlalchemy import Row, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import DeclarativeBase

from gateway.db import Database, raw_connection
from gateway.errors import CatchmentError
from gateway.readers import Connection
from tests.integration.probe_world import tenant_tables

ROUTES = ("mandate_route", "key_route", "session_route", "oauth_state", "webhook_route")

# How a call with these arguments ended, and what it saw or did of B's.
Outcome = Callable[[dict[str, Any], "Watch"], Awaitable[tuple[object, str | None]]]
Value = Callable[["World", random.Random], tuple[Any, Any]]  # (one of B's, an invented one)


@dataclass
class World:
    """What tenant B has, by table."""

    mandate_id: UUID
    rows: dict[str, list[Row[Any]]] = field(default_factory=dict)


def invent(value: Any) -> Any:
    """Something of the same kind that exists nowhere; what is nobody's in particular stays."""
    if isinstance(value, UUID):
        return uuid4()
    if isinstance(value, bytes):
        return os.urandom(len(value))
    if isinstance(value, str) and len(value) >= 32:
        return f"canary-{uuid4().hex}"
    if isinstance(value, dict):
        return {key: invent(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(invent(item) for item in value)
    return value


def made_of(build: Callable[[dict[str, Any]], Any], table: str) -> Value:
    """Anything built from a row of B's; the invented one is built from a row like it."""

    def value(world: World, chance: random.Random) -> tuple[Any, Any]:
        row = dict(chance.choice(world.rows[table])._mapping)
        return build(row), build(invent(row))

    return value


def existing(table: str, column: str = "id") -> Value:
    return made_of(lambda row: row[column], table)


def listed(table: str, column: str = "id") -> Value:
    return made_of(lambda row: [row[column]], table)


def row_of(table: str) -> Value:
    """A list with one row, as the batch functions take it: no tenant, and plain JSON."""

    def plain(value: Any) -> Any:
        if isinstance(value, UUID | datetime | date):
            return str(value)
        return value.hex() if isinstance(value, bytes) else value

    return made_of(
        lambda row: [{name: plain(value) for name, value in row.items() if name != "mandate_id"}], table
    )


def either(*choices: Any) -> Value:
    """Anything that names no row: the same in both calls."""

    def value(_world: World, chance: random.Random) -> tuple[Any, Any]:
        chosen = chance.choice(choices)
        return chosen, chosen

    return value


def new(make: Callable[[], Any]) -> Value:
    """A value that must be new in each call."""
    return lambda _world, _chance: (make(), make())


def victim() -> Value:
    """B itself."""
    return lambda world, _chance: (world.mandate_id, uuid4())


def together(**parts: Value) -> Value:
    """A mapping, for `**values`."""

    def value(world: World, chance: random.Random) -> tuple[Any, Any]:
        pairs = {name: part(world, chance) for name, part in parts.items()}
        return {name: pair[0] for name, pair in pairs.items()}, {
            name: pair[1] for name, pair in pairs.items()
        }

    return value


@dataclass(frozen=True)
class Probed:
    """One repository. `exempt` names the functions that are meant to look beyond a tenant, and says why."""

    repository: ModuleType
    exempt: Mapping[str, str] = field(default_factory=dict)

    def functions(self) -> list[tuple[str, Callable[..., Any]]]:
        """Coroutines that are given a session or a connection, and what reads in a thread."""
        return [
            (name, function)
            for name, function in inspect.getmembers(self.repository, inspect.isfunction)
            if function.__module__ == self.repository.__name__
            and (inspect.iscoroutinefunction(function) or _reads(function))
            and not name.startswith("_")
            and name not in self.exempt
        ]

    def arguments(
        self,
        name: str,
        function: Callable[..., Any],
        parameters: Mapping[str, Value],
        world: World,
        chance: random.Random,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """By `repository.function.parameter`, `function.parameter` or `parameter`."""
        real: dict[str, Any] = {}
        made_up: dict[str, Any] = {}
        short = self.repository.__name__.rpartition(".")[2]
        for parameter in list(inspect.signature(function).parameters.values())[1:]:
            keys = (f"{short}.{name}.{parameter.name}", f"{name}.{parameter.name}", parameter.name)
            value = next((parameters[key] for key in keys if key in parameters), None)
            assert value is not None, (
                f"{self.repository.__name__}.{name} has a parameter {parameter.name!r} the probes do not know: "
                "say in tests/integration/test_tenant_isolation.py what tenant B would put there"
            )
            for target, chosen in zip((real, made_up), value(world, chance), strict=True):
                if parameter.kind is parameter.VAR_KEYWORD:
                    target.update(chosen)
                else:
                    target[parameter.name] = chosen
        return real, made_up


async def read_world(session: AsyncSession, mandate_id: UUID) -> World:
    """B's rows as B sees them, and the routes that lead to B. The session is B's."""
    world = World(mandate_id)
    for table in (*await tenant_tables(session), *ROUTES):
        rows = await session.execute(
            text(f'SELECT * FROM "{table}" WHERE mandate_id = :mandate'), {"mandate": mandate_id}
        )
        world.rows[table] = list(rows)
    return world


async def probe(
    db: Database,
    intruder: UUID,
    victim_id: UUID,
    probed: Sequence[Probed],
    parameters: Mapping[str, Value],
    *,
    count: int,
    seed: int,
) -> list[str]:
    """Makes at least `count` random probes and says what leaked or changed; empty is good."""
    async with db.tenant_session(victim_id) as session:
        world = await read_world(session, victim_id)
        watch = Watch(victim_id, sorted(world.rows))
        await watch.begin(session, world)
    empty = [table for table, rows in world.rows.items() if not rows]
    if empty:
        return [f"tenant B does not see its own rows in {', '.join(empty)}"]
    calls = [(one, name, function) for one in probed for name, function in one.functions()]
    found: list[str] = []
    for one, name, function in calls:
        chance = random.Random(f"{seed} {name}")
        rounds = -(-count // len(calls))
        probes = [one.arguments(name, function, parameters, world, chance) for _ in range(rounds)]
        if _reads(function):
            finding = await _probe_function(partial(_read, db, intruder, function), probes, watch)
        else:
            async with db.tenant_session(intruder) as session:
                finding = await _probe_function(partial(_outcome, session, function), probes, watch)
                await session.rollback()
        if finding:
            found.append(f"{one.repository.__name__}.{name}: {finding}"[:400])
    return found


def _reads(function: Callable[..., Any]) -> bool:
    """Whether it is called in a thread, with the connection of a reader (`gateway.readers`)."""
    parameters = inspect.signature(function).parameters.values()
    return any(parameter.annotation is Connection for parameter in parameters)


async def _probe_function(
    outcome: Outcome,
    probes: list[tuple[dict[str, Any], dict[str, Any]]],
    watch: "Watch",
) -> str | None:
    """Every probe leaves A as it was, so one call with invented ids says what the others must look like."""
    expected: dict[str, object] = {}
    for real, made_up in probes:
        same = repr({name: value for name, value in made_up.items() if _same(value, real[name])})
        if same not in expected:
            expected[same], _ = await outcome(made_up, watch)
        actual, finding = await outcome(real, watch)
        if finding or actual != expected[same]:
            return finding or f"{expected[same]} became {actual}"
    return None


def _same(one: Any, other: Any) -> bool:
    return one is other or (not hasattr(one, "shape") and bool(one == other))


@dataclass
class Watch:
    """Notices any change to B's rows, from inside the transaction that made it."""

    victim: UUID
    tables: Sequence[str]
    canaries: set[Any] = field(default_factory=set)
    digest: str = ""

    async def begin(self, session: AsyncSession, world: World) -> None:
        self.digest = await self._digest(session)
        values = {atom for rows in world.rows.values() for atom in _atoms(rows)}
        # Long enough to be B's alone: ids, hashes, canary texts.
        self.canaries = {value for value in values if isinstance(value, UUID) or len(value) >= 32}

    async def is_untouched(self, session: AsyncSession) -> bool:
        """As B, until the caller's savepoint is rolled back."""
        await session.execute(text(f"SET LOCAL app.mandate_id = '{self.victim}'"))
        return await self._digest(session) == self.digest

    async def _digest(self, session: AsyncSession) -> str:
        rows = " UNION ALL ".join(
            f"SELECT '{table}' || t::text AS row FROM \"{table}\" t WHERE mandate_id = :victim"
            for table in self.tables
        )
        statement = text(f"SELECT md5(string_agg(row, '|' ORDER BY row)) FROM ({rows})")
        return str(await session.scalar(statement, {"victim": self.victim}))


async def _read(
    db: Database, intruder: UUID, function: Callable[..., Any], arguments: dict[str, Any], watch: Watch
) -> tuple[object, str | None]:
    """The same for what reads in a thread; that it cannot write is held by `tests/integration/test_db.py`."""
    try:
        answer = await db.read(intruder, lambda connection: function(connection, **arguments))
    except psycopg.Error as error:
        return f"{type(error).__name__} {error.sqlstate}", None
    leaked = set(_atoms(answer)) & watch.canaries - set(_atoms(arguments))
    return _shape(answer, arguments), f"the answer holds B's {leaked}" if leaked else None


async def _outcome(
    session: AsyncSession, function: Callable[..., Awaitable[Any]], arguments: dict[str, Any], watch: Watch
) -> tuple[object, str | None]:
    """How the call ended, and what it saw or did of B's. Afterwards nothing has happened."""
    connection = await raw_connection(session)
    first = next(iter(inspect.signature(function).parameters))
    await connection.execute("SAVEPOINT probe")
    finding = None
    try:
        answer = await function(connection if first == "connection" else session, **arguments)
        result = _shape(answer, arguments)
        if leaked := set(_atoms(answer)) & watch.canaries - set(_atoms(arguments)):
            finding = f"the answer holds B's {leaked}"
        # Only a statement that wrote or locked a row gives the transaction an id.
        written = await connection.execute("SELECT pg_current_xact_id_if_assigned() IS NOT NULL")
        if await written.fetchone() == (True,) and not await watch.is_untouched(session):
            finding = "tenant B's rows changed"
    except (DBAPIError, psycopg.Error) as error:
        original = error.orig if isinstance(error, DBAPIError) else error
        result = f"{type(original).__name__} {getattr(original, 'sqlstate', '')}"
    except CatchmentError as error:
        result = error.code
    session.expunge_all()
    await connection.execute("ROLLBACK TO SAVEPOINT probe")
    return result, finding


def _parts(value: Any) -> Any:
    """Objects as the values they hold."""
    if isinstance(value, DeclarativeBase):
        return {column.key: getattr(value, column.key) for column in type(value).__table__.columns}
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _atoms(value: Any) -> Iterator[Any]:
    """Every single value in a result."""
    value = _parts(value)
    if isinstance(value, Mapping):
        for item in value.items():
            yield from _atoms(item)
    elif isinstance(value, list | tuple | set | frozenset | Row):
        for item in value:
            yield from _atoms(item)
    elif isinstance(value, UUID | bytes | str):
        yield value


def _shape(value: Any, arguments: Mapping[str, Any]) -> object:
    """A result without the values that differ in every call."""
    value = _parts(value)
    if isinstance(value, UUID):
        return "an id"
    if isinstance(value, bytes):
        return "bytes"
    if isinstance(value, datetime | timedelta):
        return "a time"
    if isinstance(value, Mapping):
        return sorted(repr((_shape(k, arguments), _shape(v, arguments))) for k, v in value.items())
    if isinstance(value, set | frozenset):
        return sorted(repr(_shape(item, arguments)) for item in value)
    if isinstance(value, list | tuple | Row):
        return [_shape(item, arguments) for item in value]
    if isinstance(value, str) and value in _atoms(arguments):
        return "as asked"
    return repr(value)
