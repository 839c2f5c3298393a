"""`catchment doctor`: looks at everything an installation stands on, and says what to do about each finding."""

import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from gateway.commands.api import AsJson, DataDir
from gateway.embedded.instance import chosen_data_dir
from gateway.settings import Settings

EXAMPLES = "Example: catchment doctor --json, or catchment doctor --settings"


def doctor(
    settings: Annotated[
        bool, typer.Option("--settings", help="print the settings, secrets as stars")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Check this installation and say what to do about each finding."""
    folder = chosen_data_dir(data_dir)
    current = Settings().model_copy(update={"data_dir": folder})
    if settings:
        _print_settings(current, as_json=as_json)
        return
    from gateway.commands.checkup import examine  # noqa: PLC0415 - knows the stores; other commands need not load them

    findings = list(examine(current, folder))
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2, ensure_ascii=False))
    else:
        for finding in findings:
            mark = {"ok": "✓", "bad": "✗", "unknown": "–"}[finding.state]
            typer.echo(f"{mark} {finding.what}: {finding.detail}")
            if finding.advice:
                typer.echo(f"    → {finding.advice}")
    if any(finding.state == "bad" for finding in findings):
        sys.exit(1)


def _print_settings(settings: Settings, *, as_json: bool) -> None:
    shown = settings.redacted()
    if as_json:
        typer.echo(json.dumps(shown, indent=2, ensure_ascii=False))
    else:
        for name, value in shown.items():
            typer.echo(f"{name}={value}")
