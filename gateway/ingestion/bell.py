"""The doorbell: Redis says "there is work behind this door", nothing more.

A bell is `(lane, mandate)` and at most one of each is outstanding: a flag with a short life is set with the ring and
cleared when a worker answers. Losing Redis loses a ring, never a job – the sweeper finds every job in Postgres and
rings again. ARQ carries the ring: JSON only, no results, an id of its own for every ring.
"""

from typing import Any
from uuid import UUID

import orjson
from arq.connections import ArqRedis
from arq.constants import default_queue_name
from redis.asyncio import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from gateway.db import new_id
from gateway.logs import emit

LANES = ("interactive", "delta", "backfill")
FLAG_SECONDS = 5  # a ring whose answer never came is not waited for longer than this


def queue_name(lane: str) -> str:
    return f"catchment:bell:{lane}"


def pack(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value, default=str)


def unpack(value: bytes) -> dict[str, Any]:
    return orjson.loads(value)


def connect(redis_url: str) -> ArqRedis:
    """A client that fails fast: the ledger, not the bell, is what must not be lost."""
    pool = ConnectionPool.from_url(
        redis_url, socket_timeout=5, socket_connect_timeout=2, retry=Retry(NoBackoff(), 0)
    )
    return ArqRedis(
        pool_or_conn=pool,
        job_serializer=pack,
        job_deserializer=unpack,
        default_queue_name=default_queue_name,
        expires_extra_ms=60_000,
    )


async def ring(redis: ArqRedis, lane: str, mandate_id: UUID) -> bool:
    """Rings unless a ring is already outstanding; says whether it rang."""
    if not await redis.set(_flag(lane, mandate_id), 1, ex=FLAG_SECONDS, nx=True):
        return False
    await redis.enqueue_job(
        "answer", lane, str(mandate_id), _job_id=new_id().hex, _queue_name=queue_name(lane), _expires=60
    )
    emit("ledger.rang", lane=lane, mandateId=str(mandate_id))
    return True


async def hear(redis: ArqRedis, lane: str, mandate_id: UUID, ring_id: str) -> None:
    """A worker is at the door: from here on the next ring counts again.

    The ring leaves the queue here, not when it has been answered: every free worker looks at every ring in the queue
    twenty times a second, and those of killed workers would stay there for a quarter of an hour.
    """
    async with redis.pipeline(transaction=False) as pipe:
        pipe.delete(_flag(lane, mandate_id))
        pipe.zrem(queue_name(lane), ring_id)
        await pipe.execute()


def _flag(lane: str, mandate_id: UUID) -> str:
    return f"catchment:rung:{lane}:{mandate_id}"
