"""How fast each format is read inside the limited child, against the same reader called bare in this process.

Both sides read the same documents to the same kept text; the child's side also hands the text back. Bare they are read one
after the other; the worker has as many in flight as it keeps children (`CATCHMENT_PARSER_CHILDREN`), and so has this. So
the ratio is documents per second with limits and isolation to those without. `pipeline` is the whole way: read, mask, cut,
count words, hand back.
`python -m workers.bench_extract [SECONDS]` prints JSON; it is also the handler its own children run.
"""

import asyncio
import json
import mmap
import random
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from gateway.corpus.child import ChildPool
from gateway.corpus.masking import placeholder_key
from gateway.db import new_id
from gateway.settings import get_settings
from workers.bench_documents import MAKERS
from workers.pipeline.extract import FORMATS, Format, Source, extract
from workers.pipeline.parsing import PRELOAD, parse_document

_DOCUMENTS = 4  # different ones of each format
_TIMES = 4  # that each is read in a row: a start and an end with idle children are no throughput
_ROUNDS = 3  # at least


def handle(task: dict[str, Any], payload: mmap.mmap) -> Iterator[dict[str, Any]]:
    """Inside the child: read and hand back the text, nothing else."""
    format_ = FORMATS[task["format"]]
    yield {"text": extract(Source(payload, task["mimeType"]), format_).text}


async def measure(seconds: float, names: list[str]) -> dict[str, dict[str, Any]]:
    figures: dict[str, dict[str, Any]] = {}
    policy = {"placeholder_key": placeholder_key("bench", new_id())}
    children = get_settings().parser_children
    async with (
        ChildPool("workers.bench_extract", preload=PRELOAD, size=children) as readers,
        ChildPool("workers.pipeline.parsing", preload=PRELOAD, size=children) as parsers,
    ):
        for name in names:
            mime_type, make = MAKERS[name]
            documents = [make(random.Random(seed)) for seed in range(_DOCUMENTS)]  # noqa: S311 - a benchmark's words
            figures[name] = await _compare(
                documents, mime_type, FORMATS[name], (readers, parsers), policy, seconds
            )
    return figures


async def _compare(
    documents: list[bytes],
    mime_type: str,
    format_: Format,
    pools: tuple[ChildPool, ChildPool],
    policy: dict[str, Any],
    seconds: float,
) -> dict[str, Any]:
    readers, parsers = pools

    async def bare(data: bytes) -> object:
        return extract(Source(data, mime_type), format_)

    async def child(data: bytes) -> object:
        return await readers.run(
            {"format": format_.name, "mimeType": mime_type}, data, isolated=format_.isolated
        )

    async def pipeline(data: bytes) -> object:
        return await parse_document(parsers, data=data, mime_type=mime_type, policy=policy)

    calls: dict[str, Callable[[bytes], Awaitable[object]]] = {
        "bare": bare,
        "child": child,
        "pipeline": pipeline,
    }
    rates = await _best_rates(calls, documents * _TIMES, seconds)
    size = sum(map(len, documents)) / len(documents)
    return {
        "kilobytes": round(size / 1000),
        "documentsPerSecond": round(rates["child"], 1),
        "megabytesPerSecond": round(rates["child"] * size / 1e6, 2),
        "bareDocumentsPerSecond": round(rates["bare"], 1),
        "ratio": round(rates["child"] / rates["bare"], 2),
        "pipelineDocumentsPerSecond": round(rates["pipeline"], 1),
    }


async def _best_rates(
    calls: dict[str, Callable[[bytes], Awaitable[object]]], documents: list[bytes], seconds: float
) -> dict[str, float]:
    """Documents per second, of the best round; the ways take turns, so that a busy machine is busy for all."""
    best = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        await asyncio.gather(*map(call, documents))  # whatever is loaded on first use
    began, rounds = time.perf_counter(), 0
    while rounds < _ROUNDS or time.perf_counter() - began < seconds:
        rounds += 1
        for key, call in calls.items():
            started = time.perf_counter()
            await asyncio.gather(*map(call, documents))  # a pool lets in as many as it has children
            best[key] = min(best[key], time.perf_counter() - started)
    return {key: len(documents) / spent for key, spent in best.items()}


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    names = [name for name in sys.argv[2:] if name in MAKERS] or list(MAKERS)
    sys.stdout.write(json.dumps(asyncio.run(measure(seconds, names))) + "\n")


if __name__ == "__main__":
    main()
