"""Secrets in rows without signs between: columns that only blanks keep apart, lists under a plural, the values of an INSERT."""

import re
from collections.abc import Iterable, Iterator, Mapping

from gateway.corpus.masking import Span
from gateway.corpus.secrets.labels import Grade, Label
from gateway.corpus.secrets.tables import is_head
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
    """What lies in a table, a list or a statement that was read already is not the head of another one."""
    heads = [label for label in labels if label.kind != "pin"]
    yield from _aligned(text, heads)
    reached = 0
    for label in heads:
        if label.start >= reached:
            items = list(_items(text, label))
            reached = items[-1][1] if items else reached
            yield from (Span(start, end, label.kind) for start, end, secret in items if secret)
    if "nsert" in text or "NSERT" in text:
        yield from _inserted(text, heads)


def _is_strong(value: str) -> bool:
    return (
        strength(value, quoted=False) >= Strength.STRONG and is_one_word(value) and not names_a_secret(value)
    )


def _aligned(text: str, labels: Iterable[Label]) -> Iterator[Span]:
    """`User    Password`, and below it values that begin where the label does."""
    header = reached = -1
    rows: list[tuple[int, int]] = []
    for label in labels:
        start = text.rfind("\n", max(0, label.start - _WIDEST), label.start) + 1
        end = text.find("\n", label.end, label.end + _WIDEST)
        if label.grade is Grade.SOFT or end < 0 or (label.start < reached and start != header):
            continue
        head = text.rfind("  ", start, label.start) + 2 if text.find("  ", start, label.start) >= 0 else start
        over = text.find("  ", label.end, end)
        over = over if over >= 0 else label.end + len(text[label.end : end].rstrip())
        if not _COLUMNS.search(text, start, end) or not is_head(text, (head, over), label):
            continue
        if start != header:
            rows = list(_rows(text, end + 1))
            header, reached = start, rows[-1][1] if rows else end
        for row, row_end in rows:
            at = row + head - start
            value = (
                _RUN.match(text, at, row_end)
                if at < row_end and text[max(row, at - 1) : at] in {"", " "}
                else None
            )
            if value and _is_strong(value[0]):
                yield Span(*value.span(), label.kind)


def _rows(text: str, start: int) -> Iterator[tuple[int, int]]:
    """The lines below, up to an empty one."""
    for _ in range(_ROWS):
        end = text.find("\n", start, start + _WIDEST)
        end = min(len(text), start + _WIDEST) if end < 0 else end
        if not text[start:end].strip():
            return
        if not _RULE.issuperset(text[start:end]):
            yield start, end
        start = end + 1


def _items(text: str, label: Label) -> Iterator[tuple[int, int, bool]]:
    """`passwords: ["…", "…"]`, and the same as a list with dashes: where each item is, and whether it is a secret."""
    if not text[label.core : label.end].lower().endswith(_PLURALS):
        return
    opening, item = _ITEMS.match(text, label.end), _ITEM
    if opening is None:
        opening, item = _DASHES.match(text, label.end), _DASHED
    at = opening.end() if opening else None
    while at is not None and (match := item.match(text, at)):
        value = match["value"]
        yield *match.span("value"), _is_strong(value) and (label.grade > Grade.SOFT or is_made_up(value))
        at = match.end()


def _inserted(text: str, labels: Iterable[Label]) -> Iterator[Span]:
    heads = iter(labels)
    label = next(heads, None)
    for insert in _INSERT.finditer(text):
        columns: dict[int, Label] = {}
        while label is not None and label.start < insert.end("columns"):
            if label.start >= insert.start("columns"):
                columns[insert["columns"].count(",", 0, label.start - insert.start("columns"))] = label
            label = next(heads, None)
        if columns:
            yield from _values(text, insert.end(), columns)


def _values(text: str, at: int, columns: Mapping[int, Label]) -> Iterator[Span]:
    for _ in range(_ROWS):
        opening = _NEXT_TUPLE.match(text, at)
        if opening is None:
            return
        at, number = opening.end(), 0
        while field := _FIELD.match(text, at):
            label = columns.get(number)
            if label is not None and _is_given(field["value"], label):
                yield Span(field.start("value") + 1, field.end("value") - 1, label.kind)
            at, number = field.end(), number + 1
            if field["end"] == ")":
                break
        else:
            return


def _is_given(quoted: str, label: Label) -> bool:
    value = quoted[1:-1]
    if quoted[0] != "'" or len(value) < 4 or strength(value, quoted=True) is Strength.NONE:
        return False
    return _is_strong(value) or (label.grade is Grade.HARD and is_one_word(value))
