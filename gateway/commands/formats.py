"""`catchment formats`: what can be read here, by which engine, within which limits."""

import json
import subprocess
import sys
from typing import Any

import typer

from gateway.commands.api import AsJson

EXAMPLES = "Example: catchment formats --json"
MIB = 1 << 20


def formats(as_json: AsJson = False) -> None:
    """List the formats: on or off, engine and version, limits; and what is left out on purpose."""
    found = ask_workers("workers.pipeline.describe")
    if as_json:
        typer.echo(json.dumps(found))
        return
    typer.echo(f"{'format':<10} {'':<4} {'engine':<16} {'version':<14} {'largest':>8}  child")
    for item in found["formats"]:
        state = "on" if item["on"] else "off"
        child = "its own" if item["ownChild"] else "resident"
        line = f"{item['format']:<10} {state:<4} {item['engine']:<16} {item['version'] or '–':<14} "
        line += f"{item['inputBytes'] // MIB:>5} MB  {child}"
        typer.echo(line + (f"  ({item['why']})" if item["why"] else ""))
    bounds = found["limits"]
    typer.echo(
        f"\nEach file: {bounds['memoryBytes'] // MIB} MB of memory, {bounds['cpuSeconds']} s of processor, "
        f"{bounds['wallSeconds']:g} s in all, {bounds['outputBytes'] // MIB} MB of output."
    )
    typer.echo(f"Left out on purpose: {', '.join(found['leftOut'])}.")


def ask_workers(module: str, *arguments: str) -> Any:
    """What a module of the workers prints as JSON. They are a program of their own: nothing imports them."""
    answer = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, check=False
    )
    if answer.returncode != 0:
        raise typer.Exit(answer.returncode)  # it has said why
    return json.loads(answer.stdout)
