"""Both stores without the rest of the house, for tests and for commands with a throw-away instance."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.embedded.lock import data_dir_lock
from gateway.embedded.postgres import EmbeddedPostgres
from gateway.embedded.preflight import check_disk, check_folder
from gateway.embedded.redis import EmbeddedRedis


@dataclass(frozen=True)
class Stores:
    postgres: EmbeddedPostgres
    redis: EmbeddedRedis


@contextmanager
def running_stores(data_dir: Path, settings: Mapping[str, str] | None = None) -> Generator[Stores]:
    """`settings` go over our Postgres settings; a throw-away instance may turn fsync off."""
    check_folder(data_dir)
    check_disk(data_dir)
    with (
        data_dir_lock(data_dir),
        EmbeddedPostgres(data_dir, settings).running() as postgres,
        EmbeddedRedis(data_dir).running() as redis,
    ):
        yield Stores(postgres, redis)
