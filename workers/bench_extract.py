"""How fast each format is read inside the limited children, against the same readers called bare.

Like against like: as many plain processes read bare as the worker keeps children (`CATCHMENT_PARSER_CHILDREN`), all at once,
from bytes they already hold, and keep nothing. The children get the same bytes from this process, read them behind their
walls and hand the whole text back to it. So `ratio` is documents per second with limits and isolation to those without, and
what this process spends on handing over counts against the children. `pipelineRatio` is the same for all that the worker
asks of a child: read, mask, cut into chunks, count words, and make the chunks from what came back.
`python -m workers.bench_extract [SECONDS]` prints JSON; it is also the handler its own children run.
"""

import asyncio
import json
import mmap
import random
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from typing import Any

from gateway.corpus.child import ChildPool
from gateway.corpus.masking import placeholder_key
from gateway.settings import get_settings
from workers.bench_documents import MAKERS
from workers.pipeline import parsing
from workers.pipeline.extract import FORMATS, Source, extract
from workers.pipeline.formats import pdf
from workers.pipeline.parsing import PRELOAD, parse_document

_DOCUMENTS = 4  # different ones of each format; one where there is less time than for a round
_ROUND_SECONDS = 0.3  # long enough that starting and ending a round with idle processes does not count
_ROUNDS = 3  # at least
_POLICY = {"placeholder_key": placeholder_key("bench", "mandate")}

prepare = pdf.prepare  # as the worker's children find it

Round = Callable[[int], Awaitable[object]]  # reads every document that many times in each process


@cache
def _documents(name: str, count: int) -> list[bytes]:
    return [MAKERS[name][1](random.Random(seed)) for seed in range(count)]  # noqa: S311 - a benchmark's words


def _source(name: str, data: bytes | mmap.mmap) -> Source:
    return Source(data, MAKERS[name][0])


def read_bare(name: str, count: int, times: int) -> None:
    """In a plain process: no limits, no walls, nothing handed over."""
    for _ in range(times):
        for data in _documents(name, count):
            extract(_source(name, data), FORMATS[name])


def parse_bare(name: str, count: int, times: int) -> None:
    """All of a child's work in a plain process."""
    task = dict.fromkeys(("fileName", "language", "uri", "withAttachments"))
    task |= {"mimeType": MAKERS[name][0], "contentForm": "bytes", "policy": _POLICY}
    for _ in range(times):
        for data in _documents(name, count):
            for _record in parsing.handle(task, data):
                pass


def handle(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    """Inside the child: read and hand back the text, nothing else."""
    name = task["format"]
    yield {"text": extract(_source(name, payload), FORMATS[name]).text}


async def measure(seconds: float, names: list[str]) -> dict[str, dict[str, Any]]:
    children = get_settings().parser_children
    with ProcessPoolExecutor(children, mp_context=get_context("spawn")) as plain:
        async with (
            ChildPool("workers.bench_extract", preload=PRELOAD, size=children) as readers,
            ChildPool("workers.pipeline.parsing", preload=PRELOAD, size=children) as parsers,
        ):
            return {name: await _compare(name, children, plain, readers, parsers, seconds) for name in names}


async def _compare(
    name: str, children: int, plain: Executor, readers: ChildPool, parsers: ChildPool, seconds: float
) -> dict[str, Any]:
    mime_type, count = MAKERS[name][0], _DOCUMENTS if seconds >= _ROUND_SECONDS else 1
    documents = _documents(name, count)
    loop = asyncio.get_running_loop()

    async def in_plain(work: Callable[[str, int, int], None], times: int) -> None:
        await asyncio.gather(
            *(loop.run_in_executor(plain, work, name, count, times) for _ in range(children))
        )

    async def read(data: bytes) -> None:
        await readers.run({"format": name}, data, **FORMATS[name].child)

    async def parse(data: bytes) -> None:
        await parse_document(parsers, data=data, mime_type=mime_type, policy=_POLICY)

    async def child(times: int) -> None:  # a pool lets in as many as it has children
        await asyncio.gather(*map(read, documents * times * children))

    async def pipeline(times: int) -> None:
        await asyncio.gather(*map(parse, documents * times * children))

    ways: dict[str, Round] = {
        "bare": partial(in_plain, read_bare),
        "child": child,
        "barePipeline": partial(in_plain, parse_bare),
        "pipeline": pipeline,
    }
    rates = await _best_rates(ways, seconds)
    per_turn = children * len(documents)
    size = sum(map(len, documents)) / len(documents)
    return {
        "kilobytes": round(size / 1000),
        "processes": children,
        "documentsPerSecond": round(rates["child"] * per_turn, 1),
        "megabytesPerSecond": round(rates["child"] * per_turn * size / 1e6, 2),
        "bareDocumentsPerSecond": round(rates["bare"] * per_turn, 1),
        "ratio": round(rates["child"] / rates["bare"], 2),
        "pipelineDocumentsPerSecond": round(rates["pipeline"] * per_turn, 1),
        "pipelineRatio": round(rates["pipeline"] / rates["barePipeline"], 2),
    }


async def _best_rates(ways: dict[str, Round], seconds: float) -> dict[str, float]:
    """Turns per second, of the best round; the ways take turns, so that a busy machine is busy for all. Who gives it less
    time than a round is long gets shorter rounds, and a coarser figure.
    """
    round_seconds = min(_ROUND_SECONDS, seconds)
    times: dict[str, int] = {}
    for key, way in ways.items():
        await way(1)  # whatever is loaded on first use
        times[key] = max(1, round(round_seconds / await _timed(way, 1)))
    best = dict.fromkeys(ways, 0.0)
    began, rounds = time.perf_counter(), 0
    while rounds < _ROUNDS or time.perf_counter() - began < seconds:
        rounds += 1
        for key, way in ways.items():
            best[key] = max(best[key], times[key] / await _timed(way, times[key]))
    return best


async def _timed(way: Round, times: int) -> float:
    started = time.perf_counter()
    await way(times)
    return time.perf_counter() - started


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    names = sys.argv[2:] or list(MAKERS)
    if unknown := set(names) - set(MAKERS):
        sys.exit(f"No such format to measure: {', '.join(sorted(unknown))}. There are {', '.join(MAKERS)}.")
    sys.stdout.write(json.dumps(asyncio.run(measure(seconds, names))) + "\n")


if __name__ == "__main__":
    main()
