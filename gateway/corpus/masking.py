"""What masking is made of, for secrets and for personal data: spans, keyed placeholders, and a quick way to look.

A placeholder carries eight hex digits of a keyed hash of the value: the same value reads the same wherever it stands in
the mandate's documents, so that masked text can still be compared and embedded once, and without the key nobody can
try values out. It is never a number that depends on the order of things.
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

PLACEHOLDER = re.compile(r"\[(?:secret:)?[a-z][a-z_]{1,23}:[0-9a-f]{8}\]")
_ECHOED_VALUES = 200  # how many distinct values are looked for elsewhere in the text: bounds the work
_INVISIBLE = (
    "\u00ad",
    "\u200b",
    "\u2060",
    "\ufeff",
)  # soft hyphen, space and joiner of no width, byte order mark
_ALPHANUMERIC = re.compile(r"[^\W_]")


class Span(NamedTuple):
    start: int
    end: int
    kind: str


def placeholder_key(secret_key: str, mandate_id: object) -> bytes:
    """One key per mandate: placeholders of one mandate say nothing about those of another."""
    return hmac.digest(secret_key.encode(), f"placeholder:{mandate_id}".encode(), hashlib.sha256)


def value_tag(key: bytes, value: str) -> str:
    return hmac.digest(key, value.encode("utf-8", "surrogatepass"), hashlib.sha256)[:4].hex()


def lowered(text: str) -> str:
    """Lower case with every character at its place, and every space within a line a plain one (`mot\u00a0de\u00a0passe`); `İ` is the
    only character whose lower case is longer.
    """
    return text.replace("\u0130", "i").replace("\u00a0", " ").replace("\u202f", " ").lower()


def as_seen(text: str, look: Callable[[str], list[Span]]) -> list[Span]:
    """What `look` finds in the text as people see it: a soft hyphen inside `Pass\u00adwort` does not hide what follows."""
    if not any(sign in text for sign in _INVISIBLE):
        return look(text)
    places = [at for at, character in enumerate(text) if character not in _INVISIBLE]
    found = look("".join([text[at] for at in places]))
    return [Span(places[start], places[end - 1] + 1, kind) for start, end, kind in found]


def positions(text: str, needles: Iterable[str]) -> list[int]:
    """Where any of the needles begins, in order. Plain `str.find` looks at more than a gigabyte a second."""
    found: list[int] = []
    for needle in needles:
        at = text.find(needle)
        while at >= 0:
            found.append(at)
            at = text.find(needle, at + len(needle))
    found.sort()
    return found


def windows(at: Sequence[int], *, before: int, after: int, length: int) -> Iterator[tuple[int, int]]:
    """Stretches of text around positions, overlapping ones joined, so that no character is looked at twice."""
    start = end = -1
    for position in at:
        if start < 0 or position - before > end:
            if start >= 0:
                yield start, end
            start = max(0, position - before)
        end = min(length, position + after)
    if start >= 0:
        yield start, end


def settle(text: str, spans: Iterable[Span], ranks: Mapping[str, int]) -> list[Span]:
    """Spans in order and apart. Overlapping ones become one, of the kind that says most; placeholders are left alone."""
    whole = _around_placeholders(text, sorted(spans))
    settled: list[Span] = []
    for span in whole:
        if settled and span.start < settled[-1].end:
            last = settled[-1]
            kind = min(last.kind, span.kind, key=ranks.__getitem__)
            settled[-1] = Span(last.start, max(last.end, span.end), kind)
        else:
            settled.append(span)
    return _one_kind_per_value(text, settled, ranks)


def echoes(text: str, spans: Sequence[Span], telling: Callable[[str], bool]) -> Iterator[Span]:
    """The other places where a value stands that was recognised once by what stood beside it."""
    values = {text[span.start : span.end]: span.kind for span in spans}
    chosen = sorted(value for value in values if telling(value))
    for value in chosen[:_ECHOED_VALUES]:
        for at in positions(text, (value,)):
            end = at + len(value)
            if not (_joins(text, at - 1, at) or _joins(text, end - 1, end)):
                yield Span(at, end, values[value])


def _joins(text: str, left: int, right: int) -> bool:
    return left >= 0 and right < len(text) and text[left].isalnum() and text[right].isalnum()


def _around_placeholders(text: str, spans: Sequence[Span]) -> Sequence[Span]:
    """What is already masked is no finding: not alone, and not by the words of the placeholder itself."""
    masked = [match.span() for match in PLACEHOLDER.finditer(text)] if spans and "[" in text else []
    if not masked:
        return spans
    kept: list[Span] = []
    first = 0
    for span in spans:
        while first < len(masked) and masked[first][1] <= span.start:
            first += 1
        start, end, last = span.start, span.end, first
        if last < len(masked) and masked[last][0] < start:
            continue
        while last < len(masked) and masked[last][0] < end:
            end = max(end, masked[last][1])
            last += 1
        if last > first:
            rest = PLACEHOLDER.sub(" ", text[start:end])
            if len(_ALPHANUMERIC.findall(rest)) < 3:
                continue
        kept.append(Span(start, end, span.kind))
    return sorted(kept)


def _one_kind_per_value(text: str, spans: list[Span], ranks: Mapping[str, int]) -> list[Span]:
    kinds: dict[str, str] = {}
    for start, end, kind in spans:
        value = text[start:end]
        kinds[value] = min(kinds.get(value, kind), kind, key=ranks.__getitem__)
    return [Span(start, end, kinds[text[start:end]]) for start, end, _ in spans]
