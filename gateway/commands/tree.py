"""Every command, and how a command that cannot do what it was asked says so.

A refusal is one sentence on stderr and exit code 1, never a traceback.
"""

import os
import re
import sys
from importlib.metadata import version
from typing import Annotated, NoReturn

import typer
from pydantic import ValidationError
from pydantic_settings import SettingsError

from gateway.commands import (
    bench,
    connections,
    doctor,
    erase,
    formats,
    ingest,
    logs,
    mcp,
    policy,
    sealing,
    search,
    serve,
    tenancy,
    up,
)
from gateway.embedded.instance import NoInstance
from gateway.embedded.preflight import StartupRefused
from gateway.errors import CatchmentError

app = typer.Typer(
    name="catchment",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"catchment {version('catchment')}")
        raise typer.Exit


@app.callback()
def catchment(
    _version: Annotated[
        bool,
        typer.Option("--version", help="print the version and exit", callback=_say_version, is_eager=True),
    ] = False,
) -> None:
    """One door through which everything an organisation knows enters one searchable corpus."""


app.command(epilog=up.EXAMPLES)(up.up)
app.command(epilog=serve.GATEWAY_EXAMPLES)(serve.gateway)
app.command(epilog=serve.WORKER_EXAMPLES)(serve.worker)
app.command(epilog=serve.MIGRATE_EXAMPLES)(serve.migrate)
app.command(epilog=doctor.EXAMPLES)(doctor.doctor)
app.command(epilog=tenancy.LOGIN_EXAMPLES)(tenancy.login)
app.command(epilog=ingest.INGEST_EXAMPLES)(ingest.ingest)
app.command(epilog=ingest.WHY_EXAMPLES)(ingest.why)
app.command(epilog=ingest.REINDEX_EXAMPLES)(ingest.reindex)
app.command(epilog=search.EXAMPLES)(search.search)
app.command(epilog=erase.ERASE_EXAMPLES)(erase.erase)
app.command(epilog=mcp.EXAMPLES)(mcp.mcp)
app.command(epilog=logs.EXAMPLES)(logs.logs)
app.command(epilog=formats.EXAMPLES)(formats.formats)
app.add_typer(bench.bench, name="bench")
app.add_typer(tenancy.mandates, name="mandates")
app.add_typer(tenancy.users, name="users")
app.add_typer(tenancy.keys, name="keys")
app.add_typer(connections.connections, name="connections")
app.add_typer(sealing.secrets, name="secrets")
app.add_typer(policy.policy, name="policy")
app.add_typer(policy.features, name="features")


def run() -> None:
    try:
        app()
    except (StartupRefused, NoInstance) as refusal:
        _refuse(str(refusal))
    except CatchmentError as error:
        _refuse(error.detail)
    except SettingsError as error:  # its cause quotes the value, which may be a secret
        found = re.search(r'field "(\w+)"', str(error))
        _refuse(f"The setting CATCHMENT_{found[1].upper() if found else ''} is not valid: it must be JSON.")
    except ValidationError as error:
        first = error.errors()[0]
        setting = "_".join(str(part) for part in first["loc"]).upper()
        reason = first["msg"].removeprefix("Value error, ")
        _refuse(f"The setting CATCHMENT_{setting} is not valid: {reason}.")
    except BrokenPipeError:
        # Whoever read our output has seen enough. What is still buffered must not fail again on the way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:  # a file that may not be read, a disk that is full
        _refuse(f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror or error}.")


def _refuse(sentence: str) -> NoReturn:
    typer.echo(sentence, err=True)
    sys.exit(1)
