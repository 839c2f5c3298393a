"""Delta rounds in the manner of Outlook and Teams: `$skiptoken` within a round, `$deltatoken` between rounds."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from connectors.sandbox.msft.feed import LATEST, Key, Mark, cut
from connectors.sandbox.msft.graph import Call, GraphError, Json, Reply

T = TypeVar("T")


def begun(call: Call, feed: str, kept: tuple[str, ...]) -> Mark:
    """Where this request begins. Options count on the first call only; later the token speaks for them."""
    token = call.query.get("$skiptoken") or call.query.get("$deltatoken")
    now = call.world.changes.last
    if not token:
        query = {name: value for name, value in call.query.items() if name in kept}
        return Mark(feed=feed, since=0, until=now, life=call.world.life, query=query)
    if token == LATEST:
        return Mark(feed=feed, since=now, until=now, life=call.world.life)
    mark = Mark.read(token)
    lost = mark is None or mark.feed != feed or not call.world.remembers(mark)
    if mark is None or lost or call.struck("cursor_expiry"):
        generation = mark.since if mark else 0
        raise GraphError(
            410,
            "SyncStateNotFound",
            f"The sync state generation is not found; generation={generation}.",
        )
    return mark if mark.until else replace(mark, until=now)


def answered(
    call: Call,
    mark: Mark,
    entries: Iterable[tuple[Key, T]],
    *,
    show: Callable[[T], Any],
    size: int,
    path: str,
    context: str,
) -> Reply:
    """One page of the round; exactly one link, and it spells the path its own way."""
    page, behind, last = cut(entries, mark, size)
    if call.struck("empty_page"):
        page, behind, last = [], mark, False
    elif call.struck("repeat_page"):
        behind, last = mark, False
    value = [show(entry) for entry in page]
    if call.struck("repeat_item"):
        value += value[:1]
    body: Json = {"@odata.context": f"{call.world.url}/v1.0/$metadata#{context}", "value": value}
    if last:
        body["@odata.deltaLink"] = call.link(path, {"$deltatoken": behind.written()})
    else:
        body["@odata.nextLink"] = call.link(path, {"$skiptoken": behind.written()})
    return Reply(body=body)
