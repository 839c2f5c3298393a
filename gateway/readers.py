"""Threads that read, for who asks many small questions one after the other.

A search is seven short statements with arithmetic in between. On the event loop each of them costs more to wait for than to
run; a thread waits in the driver, and the loop is free for others. Nothing can be written here: the transactions are READ ONLY.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar, cast

import psycopg
from sqlalchemy.pool import PoolProxiedConnection, QueuePool

from gateway.errors import StoreUnavailable

Connection = psycopg.Connection[Any]
T = TypeVar("T")

_WAIT_SECONDS = 10.0


class _CutOff(psycopg.OperationalError):
    """A connection that the pool had is not one any more."""


class Readers:
    """As many threads as connections. Both come to be when they are first needed."""

    def __init__(self, url: str, size: int, **options: Any) -> None:
        self._pool = QueuePool(
            lambda: cast("Any", psycopg.connect(url, autocommit=True, **options)),
            pool_size=size,
            max_overflow=0,
            use_lifo=True,  # the connection used last has its plans and caches warm
            reset_on_return=None,  # every transaction is ended here
        )
        self._threads = ThreadPoolExecutor(size, "reader")
        self._places = asyncio.Semaphore(size)

    async def run(self, opening: str, work: Callable[[Connection], T]) -> T:
        """What `work` returns, in a transaction that begins with `opening`."""
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._places.acquire()
        except TimeoutError:
            raise StoreUnavailable("Every database connection is busy; try again in a few seconds.") from None
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self._read, opening, work)
        finally:
            self._places.release()

    def begin(self, opening: str, work: Callable[[Connection], T]) -> Future[T]:
        """The same for who is no coroutine: waits for a place as long as it takes, and not for the end of the transaction."""
        answer: Future[T] = Future()
        self._threads.submit(self._answer, opening, work, answer)
        return answer

    def close(self) -> None:
        self._threads.shutdown()
        self._pool.dispose()

    def _answer(self, opening: str, work: Callable[[Connection], T], answer: Future[T]) -> None:
        try:
            self._read(opening, lambda connection: answer.set_result(work(connection)))
        except BaseException as error:  # noqa: BLE001 - it belongs to who asked
            if not answer.done():
                answer.set_exception(error)

    def _read(self, opening: str, work: Callable[[Connection], T]) -> T:
        pooled = self._opened(f"BEGIN READ ONLY; {opening}".encode())
        try:
            result = work(cast("Connection", pooled.driver_connection))
        except BaseException:
            _end(pooled, b"ROLLBACK")
            raise
        _end(pooled, b"COMMIT")  # the driver forgets what it prepared when it sees a rollback
        return result

    def _opened(self, begin: bytes) -> PoolProxiedConnection:
        """A connection that lay idle may have been cut off since, and all others with it: then one is made anew."""
        try:
            return self._begun(begin)
        except _CutOff:
            self._pool.dispose()
            return self._begun(begin)

    def _begun(self, begin: bytes) -> PoolProxiedConnection:
        pooled = self._pool.connect()
        try:
            cast("Connection", pooled.driver_connection).execute(begin)
        except BaseException as error:
            pooled.invalidate()
            if isinstance(error, psycopg.OperationalError):
                raise _CutOff(*error.args) from error
            raise
        return pooled


def _end(pooled: PoolProxiedConnection, how: bytes) -> None:
    try:
        cast("Connection", pooled.driver_connection).execute(how)
    except psycopg.Error:
        pooled.invalidate()
    else:
        pooled.close()
