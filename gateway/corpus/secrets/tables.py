"""A column of secrets: the label stands in the header row, the values below it."""

import re
from collections.abc import Iterable, Iterator

from gateway.corpus.masking import Span, positions
from gateway.corpus.secrets.labels import Grade, Label
from gateway.corpus.secrets.pairs import is_pair, paired
from gateway.corpus.secrets.values import Strength, is_one_word, names_a_secret, strength

_ROWS = 20_000
_WIDEST = 2000  # characters of a header row
_DELIMITERS = ("|", "│", "\t", ";", ",")
_RULE = re.compile(r"[\s|:+\-=│┼├┤─═╪╞╡╬║]*")
_DECORATION = " \t\r\"'*_`|│"
# Beside the label in the head of a column, when it is still a column of secrets: `New password`, `Passwort (neu)`.
_WHICH_ONE = """
    new old current initial temporary default first user admin root login mail email wifi wlan db database server vpn ftp account web
    neu neues altes aktuelles initiales temporäres benutzer konto nouveau ancien actuel provisoire temporaire utilisateur nueva
    antigua actual inicial temporal usuario
    """
_WHICH = frozenset(_WHICH_ONE.split())
_WORDS = re.compile(r"[^\W\d_]+")
_QUOTED_CELL = re.compile(r'"(?:[^"\n]|"")*+"')
_ACCESS = ("zugang", "login", "credential", "anmelde", "identifiant", "creden")


def find_in_columns(text: str, labels: Iterable[Label]) -> Iterator[Span]:
    header = reached = -1
    for label in labels:
        line_start = text.rfind("\n", max(0, label.start - _WIDEST), label.start) + 1
        line_end = text.find("\n", label.end, label.end + _WIDEST)
        line_end = len(text) if line_end < 0 and len(text) - label.end < _WIDEST else line_end
        if label.kind == "pin" or line_end < 0 or label.start - line_start > _WIDEST:
            continue
        if label.start < reached and line_start != header:
            continue  # a row of the table before
        delimiter = _delimiter(text[line_start:line_end])
        if delimiter is None:
            continue
        column = len(_between(text, line_start, label.start, delimiter))
        head = _cell(text, line_start, line_end, delimiter, column)
        if head is None or not is_head(text, head, label):
            continue
        if is_pair(text, line_start, line_end, delimiter, label):
            yield from paired(text, line_start, line_end, delimiter, label)
            continue
        if _is_below_a_row(text, line_start, line_end, delimiter):
            continue
        rows = list(
            _rows(text, line_end + 1, delimiter, len(_between(text, line_start, line_end, delimiter)))
        )
        header, reached = line_start, rows[-1][1] if rows else line_end
        yield from _values(text, rows, delimiter, column, label, head)


def _delimiter(line: str) -> str | None:
    found = next((sign for sign in _DELIMITERS if sign in line), None)
    # A comma at the end is a list in code.
    return None if found is None or (found in ",;" and line.rstrip().endswith(found)) else found


def _is_below_a_row(text: str, start: int, end: int, delimiter: str) -> bool:
    """`password` in a table that describes fields is no head: over it stands another row. One with a rule below it is."""
    if delimiter in ",;":
        return False
    count = text.count(delimiter, start, end)
    if _RULE.fullmatch(text, end, _line_end(text, end + 1)) and end + 1 < len(text) and text[end + 1] != "\n":
        return False
    for _ in range(2):
        if start == 0:
            return False
        above = text.rfind("\n", max(0, start - _WIDEST), start - 1) + 1
        if not _RULE.fullmatch(text, above, start):
            return text.count(delimiter, above, start) == count
        start = above
    return False


def is_head(text: str, head: tuple[int, int], label: Label) -> bool:
    """The cell says nothing else, or only which secret it is, or `User / Password`."""
    start, end = head
    if (start, end) == (label.start, label.end):
        return True
    if not start <= label.start < label.end <= end:
        return False
    before, after = text[start : label.start], text[label.end : end]
    if before.rstrip().endswith("/") and not after:
        return True
    return all(word.casefold() in _WHICH for word in _WORDS.findall(f"{before} {after}"))


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return end if end >= 0 else len(text)


def _rows(text: str, start: int, delimiter: str, count: int) -> Iterator[tuple[int, int]]:
    """The lines below with as many cells; a table of commas must keep their number exactly."""
    for _ in range(_ROWS):
        end = _line_end(text, start)
        if start >= len(text):
            return
        is_rule = end > start and _RULE.fullmatch(text, start, end) is not None
        if not is_rule and len(_between(text, start, end, delimiter)) != count:
            return
        if not is_rule:
            yield start, end
        start = end + 1


def _between(text: str, start: int, end: int, delimiter: str) -> list[int]:
    """Where the delimiters of a line stand; one between quotes is none."""
    found = positions(text[start:end], (delimiter,))
    if delimiter in ",;" and text.find('"', start, end) >= 0:
        quoted = [match.span() for match in _QUOTED_CELL.finditer(text[start:end])]
        found = [at for at in found if not any(left < at < right for left, right in quoted)]
    return [start + at for at in found]


def _cell(text: str, start: int, end: int, delimiter: str, column: int) -> tuple[int, int] | None:
    places = _between(text, start, end, delimiter)
    if column > len(places):
        return None
    start, end = ([start - 1, *places][column] + 1, [*places, end][column])
    while start < end and text[start] in _DECORATION:
        start += 1
    while end > start and text[end - 1] in _DECORATION:
        end -= 1
    return start, end


def _values(
    text: str,
    rows: Iterable[tuple[int, int]],
    delimiter: str,
    column: int,
    label: Label,
    head: tuple[int, int],
) -> Iterator[Span]:
    # Bars without spaces are an alternation in a pattern, not a table.
    sure = (
        label.grade is Grade.HARD
        and head == (label.start, label.end)
        and (delimiter == "\t" or text[label.end : label.end + 1].isspace())
    )
    shared = head[0] < label.start or text[slice(*head)].casefold().startswith(_ACCESS)
    for row in rows:
        cell = _cell(text, *row, delimiter, column)
        if cell is None:
            return
        at, end = cell
        if shared and (slash := text.rfind("/", at, end)) > 0:  # `anna / …`
            at = slash + 1 + (text[slash + 1 : slash + 2] == " ")
        word = text[at:end]
        found = strength(word, quoted=False)
        plain = (
            sure
            and found is Strength.PLAIN
            and len(word) >= 4
            and " " not in word
            and not names_a_secret(word)
        )
        if plain or (found >= Strength.STRONG and is_one_word(word) and not names_a_secret(word)):
            yield Span(at, end, label.kind)
