"""`catchment search`: what the corpus has to say, on a terminal, with the place of every passage."""

import json
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.commands.api import Api, ApiKey, AsJson, DataDir, Url, connected

if TYPE_CHECKING:
    from rich.text import Text

EXAMPLES = "Example: catchment search 'how long do refunds take' --limit 3"

SHOWN_CHARACTERS = 420  # of a passage; five lines of a terminal
_NAMED = 3  # of the other sources of a text
_BEFORE = 80  # characters shown before the first word that matches


def search(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="QUERY", help="a question or keywords; “quoted words” are found as they stand"
        ),
    ],
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="how many hits")] = 5,
    types: Annotated[list[str] | None, typer.Option("--type", help="only this type; may be repeated")] = None,
    source_kinds: Annotated[
        list[str] | None, typer.Option("--source-kind", help="only this kind of source; may be repeated")
    ] = None,
    tags: Annotated[
        list[str] | None, typer.Option("--tag", help="only with this tag; may be repeated")
    ] = None,
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Search the corpus, by meaning and by words."""
    query = " ".join(words)  # a question needs no quotation marks for the shell
    params: dict[str, Any] = {"q": query, "limit": limit, "origin": "cli"}
    for name, values in (("types", types), ("sourceKinds", source_kinds), ("tags", tags)):
        if values:
            params[name] = ",".join(values)
    with connected(url, api_key, data_dir) as api:
        found = api.call("GET", "/search", params=params)
        waiting = 0 if found["hits"] or as_json else _on_their_way(api)
    if as_json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    _show(query, found, waiting)


def _on_their_way(api: Api) -> int:
    """Documents that were handed over and cannot be found yet."""
    by_status = api.call("GET", "/stats")["documentsByStatus"]
    return sum(by_status.get(status, 0) for status in ("pending", "extracted", "embedding"))


def _show(query: str, found: dict[str, Any], waiting: int) -> None:
    from rich.console import Console  # noqa: PLC0415 - only where something is drawn

    from gateway.corpus.boundary import escape  # noqa: PLC0415
    from gateway.corpus.highlights import place, wanted_terms  # noqa: PLC0415

    console = Console(soft_wrap=True, highlight=False)
    if not found["hits"]:
        console.print("Nothing was found.")
        if waiting:
            console.print(f"{waiting} document(s) still being indexed: try again in a moment.")
        return
    if not found["answered"]:
        console.print("Nothing here is about this; these are merely the nearest there is.\n", style="yellow")
    wanted = wanted_terms(query)
    for number, hit in enumerate(found["hits"], 1):
        citation = hit["citation"]
        title = " ".join(
            escape(hit["title"] or "(without a title)").split()
        )  # a line of ours, whatever it holds
        console.print(f"{number}. ", style="dim", end="")
        console.print(title, style="bold", markup=False, end="")
        # A score says how near a hit is beside the others; where none is about the question it would look like praise.
        console.print(f"  {hit['score']:.3f}" if found["answered"] else "", style="cyan")
        origin = [citation["sourceKind"], place(citation["locator"]), citation["uri"] or ""]
        console.print("   " + " · ".join(escape(part) for part in origin if part), style="dim", markup=False)
        if len(hit["sources"]) > 1:
            console.print(f"   also in {escape(_others(hit['sources'][1:]))}", style="dim", markup=False)
        console.print(coloured(escape(hit["text"]), wanted))
        console.print(f"   document {hit['documentId']}\n", style="dim")
    count = len(found["hits"])
    console.print(f"{count} {'hit' if count == 1 else 'hits'} in {found['tookMs']} ms", style="dim")


def _others(sources: list[dict[str, Any]]) -> str:
    """Where else the same text stands."""
    named = ", ".join(" ".join((one["title"] or one["sourceKind"]).split()) for one in sources[:_NAMED])
    more = len(sources) - _NAMED
    return f"{named} and {more} more" if more > 0 else named


def coloured(text: str, wanted: set[str]) -> "Text":
    """The part of an escaped passage around the first word that was looked for, such words in colour."""
    from rich.text import Text  # noqa: PLC0415

    from gateway.corpus.highlights import matches  # noqa: PLC0415

    spans = matches(text, wanted)
    start = max(0, spans[0][0] - _BEFORE) if spans else 0
    end = min(len(text), start + SHOWN_CHARACTERS)
    line = re.sub(r"\s", " ", text[start:end])  # one for one, so that the spans still fit
    shown = Text(("…" if start else "") + line + ("…" if end < len(text) else ""))
    offset = (1 if start else 0) - start
    for low, high in spans:
        if high <= end:
            shown.stylize("bold yellow", low + offset, high + offset)
    shown.pad_left(3)
    return shown
