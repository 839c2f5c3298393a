"""Secrets in rows without signs between: columns that only blanks keep apart, lists under a plural, the values of an INSERT."""

import re
from collections.abc import Iterable, Iterator

from gateway.corpus.masking import Span
from gateway.corpus.secrets.labels import Grade, Label
from gateway.corpus.secrets.values import Strength, is_made_up, is_one_word, names_a_secret, strength

_ROWS = 2000
_WIDEST = 400  # characters of a line
_COLUMNS = re.compile(r"\S {2,}\S")
_RULE = frozenset(" -=+_")
_RUN = re.compile(r"\S{4,256}")
_PLURALS = (
    "words",
    "tokens",
    "secrets",
    "keys",
    "credentials",
    "wörter",
    "schlüssel",
    "mots de passe",
    "contraseñas",
    "claves",
)
_ITEMS = re.compile(r"""["']?\s{0,3}[:=]\s{0,3}\[\s{0,40}(?=["'])""")
_ITEM = re.compile(r"""["'](?P<value>[^"'\n]{3,256})["']\s{0,40}(?:,\s{0,40}|(?=\]))""")
_DASHES = re.compile(r"""["']?:[ \t]{0,3}(?=\n[ \t]{0,16}- )""")
_DASHED = re.compile(r"""\n[ \t]{0,16}- ["']?(?P<value>[^\s"']{3,256})["']?[ \t]{0,3}(?=\n|\Z)""")
_INSERT = re.compile(
    r"insert\s{1,4}into\s{1,4}[\w.\"`\[\]]{1,80}\s{0,4}\((?P<columns>[^()]{1,2000})\)\s{0,4}values\s{0,4}(?=\()",
    re.IGNORECASE,
)
_FIELD = re.compile(r"\s{0,8}(?P<value>'(?:[^'\\]|\\.|'')*+'|[^,()']{1,200})\s{0,4}(?P<end>[,)])")
_NEXT_TUPLE = re.compile(r"\s{0,8},?\s{0,8}\(")


def find_listed(text: str, labels: Iterable[Label]) -> Iterator[Span]:
    reached = 0
    for label in labels:
        if label.kind == "pin":
            continue
        if label.start >= reached:
            values = list(_aligned(text, label))
            yield from values
            reached = values[-1].end if values else reached
        yield from _items(text, label)
        if insert := _insert_around(text, label):
            yield from _inserted(text, insert, label)


def _is_strong(value: str) -> bool:
    return (
        strength(value, quoted=False) >= Strength.STRONG and is_one_word(value) and not names_a_secret(value)
    )


def _aligned(text: str, label: Label) -> Iterator[Span]:
    """`User    Password`, and below it values that begin where the label does."""
    start = text.rfind("\n", max(0, label.start - _WIDEST), label.start) + 1
    end = text.find("\n", label.end, label.end + _WIDEST)
    if label.grade is Grade.SOFT or end < 0 or not _COLUMNS.search(text, start, end):
        return
    ends = text[label.end : end].startswith("  ") or not text[label.end : end].strip()
    if not ends or text[max(start, label.start - 2) : label.start].strip():
        return
    column = label.start - start
    for _ in range(_ROWS):
        start, end = end + 1, text.find("\n", end + 1, end + 1 + _WIDEST)
        end = min(len(text), start + _WIDEST) if end < 0 else end
        if not text[start:end].strip():
            return
        if _RULE.issuperset(text[start:end]):
            continue
        at = start + column
        value = _RUN.match(text, at, end) if at < end and text[max(start, at - 1) : at] in {"", " "} else None
        if value and _is_strong(value[0]):
            yield Span(*value.span(), label.kind)


def _items(text: str, label: Label) -> Iterator[Span]:
    """`passwords: ["…", "…"]`, and the same as a list with dashes."""
    if not text[label.core : label.end].lower().endswith(_PLURALS):
        return
    opening, item = _ITEMS.match(text, label.end), _ITEM
    if opening is None:
        opening, item = _DASHES.match(text, label.end), _DASHED
    at = opening.end() if opening else None
    while at is not None and (match := item.match(text, at)):
        value = match["value"]
        if _is_strong(value) and (label.grade > Grade.SOFT or is_made_up(value)):
            yield Span(*match.span("value"), label.kind)
        at = match.end()


def _insert_around(text: str, label: Label) -> re.Match[str] | None:
    """The statement in whose list of columns the label stands."""
    before = text.rfind("(", max(0, label.start - 2000), label.start)
    insert = _INSERT.search(text, max(0, before - 120), label.end + 2200) if before >= 0 else None
    return insert if insert and insert.start("columns") <= label.start < insert.end("columns") else None


def _inserted(text: str, insert: re.Match[str], label: Label) -> Iterator[Span]:
    column, at = insert["columns"].count(",", 0, label.start - insert.start("columns")), insert.end()
    for _ in range(_ROWS):
        opening = _NEXT_TUPLE.match(text, at)
        if opening is None:
            break
        at, number = opening.end(), 0
        while field := _FIELD.match(text, at):
            value = field["value"]
            if number == column and value[0] == "'" and strength(value[1:-1], quoted=True) > Strength.NONE:
                plain = label.grade is Grade.HARD and is_one_word(value[1:-1])
                if len(value) > 5 and (plain or _is_strong(value[1:-1])):
                    yield Span(field.start("value") + 1, field.end("value") - 1, label.kind)
            at, number = field.end(), number + 1
            if field["end"] == ")":
                break
        else:
            break
