"""`catchment bench …`: measured on a throw-away instance, so that a figure can be had anywhere and compared."""

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.commands.api import AsJson, show_one

bench = typer.Typer(help="Measure this machine, on a throw-away instance.", no_args_is_help=True)


@bench.command("ingest", epilog="Example: catchment bench ingest --documents 500 --json")
def bench_ingest(
    documents: Annotated[int, typer.Option(min=2, help="how many documents")] = 500,
    chunks: Annotated[int, typer.Option(min=1, help="size of each in kilobytes")] = 18,
    embedder: Annotated[str, typer.Option(help="as CATCHMENT_EMBEDDER")] = "lookup:384",
    as_json: AsJson = False,
) -> None:
    """Chunks per second through the whole path: façade, worker, parser, embedder, every index."""
    from gateway.ingestion import benchmark  # noqa: PLC0415 - loads the stores

    _quiet()
    figures = asyncio.run(benchmark.bench_ingest(documents, chunks, embedder))
    show_one(figures.as_dict(), as_json=as_json)


@bench.command("retrieval", epilog="Example: catchment bench retrieval --collection ./cranfield --json")
def bench_retrieval(
    collection: Annotated[Path, typer.Option(help="folder with corpus.jsonl, queries.jsonl, qrels.tsv")],
    embedder: Annotated[str | None, typer.Option(help="as CATCHMENT_EMBEDDER; default the setting")] = None,
    as_json: AsJson = False,
) -> None:
    """How good search is on a labelled collection: dense leg, lexical leg and both."""
    from gateway.corpus import benchmarks  # noqa: PLC0415 - loads the stores

    _quiet()
    _show(asyncio.run(benchmarks.bench_retrieval(collection, embedder=embedder, tell=_tell)), as_json=as_json)


@bench.command("search", epilog="Example: catchment bench search --chunks 100000")
def bench_search(
    chunks: Annotated[int, typer.Option(min=1, help="size of the corpus")] = 100_000,
    queries: Annotated[int, typer.Option(min=1, help="how many of each kind are measured")] = 150,
    as_json: AsJson = False,
) -> None:
    """How fast search is, per kind of query, beside the bare statements of the same run (milliseconds)."""
    import uvloop  # noqa: PLC0415 - the loop that serves a gateway, and nothing else here

    from gateway.corpus import benchmarks  # noqa: PLC0415 - loads the stores

    _quiet()
    _show(uvloop.run(benchmarks.bench_search(chunks, measured=queries, tell=_tell)), as_json=as_json)


@bench.command("extract", epilog="Example: catchment bench extract --seconds 5 --format docx --json")
def bench_extract(
    seconds: Annotated[float, typer.Option(min=0.1, help="how long to measure each format")] = 3.0,
    only: Annotated[list[str] | None, typer.Option("--format", help="only this one; may be repeated")] = None,
    as_json: AsJson = False,
) -> None:
    """Documents and megabytes per second of every format inside the limited child, against its reader called bare."""
    from gateway.commands.formats import ask_workers  # noqa: PLC0415 - with what it starts

    _show(ask_workers("workers.bench_extract", str(seconds), *(only or [])), as_json=as_json)


def _quiet() -> None:
    from gateway.logs import configure_logs  # noqa: PLC0415 - structlog brings rich along

    configure_logs(level="error")


def _tell(line: str) -> None:
    typer.echo(line, err=True)


def _show(figures: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(figures))
        return
    for name, values in figures.items():
        shown = values if not isinstance(values, dict) else "  ".join(f"{k} {v}" for k, v in values.items())
        typer.echo(f"{name:<12} {shown}")
