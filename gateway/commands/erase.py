"""`catchment erase …` and `catchment users export`: what is stored about somebody, gone or handed out."""

import sys
import time
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from gateway.commands.api import Api, ApiKey, AsJson, DataDir, Url, connected, show_one
from gateway.commands.tenancy import user_id_of, users
from gateway.errors import Conflict, InvalidRequest, LegalHold, NotFound

ERASE_EXAMPLES = (
    "Examples: catchment erase --user ada@example.org --yes; catchment erase --document 0199… --yes --json"
)
WAIT_SECONDS = 0.5
NOTHING_THERE = 3  # exit code: no error, and no erasure either


def erase(  # noqa: PLR0917 - typer reads the command line from them
    user: Annotated[str | None, typer.Option(help="address or id: everything of this user")] = None,
    document: Annotated[UUID | None, typer.Option(help="this document and its attachments")] = None,
    source: Annotated[
        UUID | None,
        typer.Option(help="everything a source brought; `catchment connections list --json` has its id"),
    ] = None,
    mandate: Annotated[bool, typer.Option("--mandate", help="everything the mandate holds")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Erase for good, with a receipt that counts each store; exit code 3 if nothing was there. Needs an admin's key; a legal
    hold refuses.
    """
    if sum((user is not None, document is not None, source is not None, mandate)) != 1:
        raise InvalidRequest("Name exactly one of --user, --document, --source and --mandate.")
    with connected(url, api_key, data_dir) as api:
        body, what = _subject(api, user, document, source)
        if not yes:
            _confirm(what)
        receipt = wait_for_receipt(api, api.call("POST", "/erasures", json=body)["id"])
    if as_json:
        show_one(receipt, as_json=True)
    elif receipt["found"]:
        _show(receipt, what)
    else:
        typer.echo(
            f"Nothing was erased, because nothing was there: {what}. See whether the id is right. Receipt {receipt['id']}.",
            err=True,
        )
    if not receipt["found"]:
        raise typer.Exit(NOTHING_THERE)


def wait_for_receipt(api: Api, receipt_id: str) -> dict[str, Any]:
    """The receipt of an erasure that was asked for, once it is done."""
    while True:
        receipt = api.call("GET", f"/receipts/{receipt_id}")
        if receipt["status"] == "done":
            return receipt
        if receipt["held"]:
            raise LegalHold(
                f"The mandate came under legal hold before all was erased. What is left goes when the hold is lifted in the "
                f"policy: catchment policy set legalHold=false. Receipt {receipt_id}."
            )
        time.sleep(WAIT_SECONDS)


def _show(receipt: dict[str, Any], what: str) -> None:
    typer.echo(f"Erased {what}. Receipt {receipt['id']}:")
    for store, count in sorted(receipt["counts"].items()):
        if count:
            typer.echo(f"  {store:<14} {count}")


def _subject(
    api: Api, user: str | None, document: UUID | None, source: UUID | None
) -> tuple[dict[str, Any], str]:
    if user is not None:
        return {"userId": _account_of(api, user)}, f"everything of {user}"
    if document is not None:
        return {"documentId": str(document)}, f"the document {document}"
    if source is not None:
        return {"sourceId": str(source)}, f"everything the source {source} brought"
    return {"mandate": True}, "everything of this mandate"


def _account_of(api: Api, user: str) -> str:
    """Who left is a member no more and still has an account; what a deleted account shared still bears its id."""
    try:
        return user_id_of(api, user)
    except NotFound:
        for account in api.pages("/users"):
            if account["email"] == user.strip().lower():
                return str(account["id"])
    raise NotFound(
        f"No account has the address {user}. If it was deleted, name its id, as documents and logs have it: "
        "what it shared with others may still be here."
    )


def _confirm(what: str) -> None:
    if not sys.stdin.isatty():
        raise Conflict(f"This erases {what} for good; say --yes.")
    typer.confirm(f"Erase {what} for good?", abort=True)


@users.command("export", epilog="Example: catchment users export ada@example.org --to ada.zip")
def export_user(
    user: Annotated[str, typer.Argument(help="address or id")],
    to: Annotated[Path, typer.Option(help="file to write")],
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
) -> None:
    """Take out everything that is stored about a user, as a zip archive."""
    if to.exists():
        raise Conflict(f"{to} is already there; name another file with --to.")
    with connected(url, api_key, data_dir) as api:
        size = api.download(f"/users/{_account_of(api, user)}/export", to)
    typer.echo(f"{to}: {size} bytes")
