"""`catchment bench …`: measured on a throw-away instance, so that a figure can be had anywhere and compared."""

import asyncio
from typing import Annotated

import typer

from gateway.commands.api import AsJson, show_one

bench = typer.Typer(help="Measure this machine, on a throw-away instance.", no_args_is_help=True)


@bench.callback()
def _group() -> None:
    """Keeps `bench ingest` a subcommand while it is the only one."""


@bench.command("ingest", epilog="Example: catchment bench ingest --documents 500 --json")
def bench_ingest(
    documents: Annotated[int, typer.Option(min=1, help="how many documents")] = 500,
    chunks: Annotated[int, typer.Option(min=1, help="size of each in kilobytes")] = 18,
    embedder: Annotated[str, typer.Option(help="as CATCHMENT_EMBEDDER")] = "lookup:384",
    as_json: AsJson = False,
) -> None:
    """Chunks per second through the whole path: façade, worker, parser, embedder, every index."""
    from gateway.ingestion import benchmark  # noqa: PLC0415 - loads the stores
    from gateway.logs import configure_logs  # noqa: PLC0415

    configure_logs(level="error")
    figures = asyncio.run(benchmark.bench_ingest(documents, chunks, embedder))
    show_one(figures.as_dict(), as_json=as_json)
