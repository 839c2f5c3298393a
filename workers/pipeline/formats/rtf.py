"""RTF by striprtf, which knows the code pages; it tells neither headings nor pages, so paragraphs are all there is."""

import re
from collections.abc import Iterator
from itertools import groupby

from striprtf.striprtf import rtf_to_text

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import Source
from workers.pipeline.extracted import Extracted
from workers.pipeline.formats.draft import Draft
from workers.pipeline.formats.tables import lines_of

_PICTURE = re.compile(r"\\(?:pict|objdata)\b[^{}]*")
_HIDES = re.compile(r"\\(?:v|deleted)(?![a-z])")
_TOKEN = re.compile(
    r"\\(?P<word>[a-z]+)(?P<value>-?\d+)? ?|(?P<brace>[{}])|(?P<star>\\\*)|\\'[0-9a-fA-F]{2}|\\.|[^\\{}]+|\\",
    re.DOTALL,
)
_CHARACTERS = {
    "u", "tab", "line", "emdash", "endash", "emspace", "enspace", "qmspace", "bullet", "lquote", "rquote", "ldblquote",
    "rdblquote",
}  # fmt: skip
_BESIDE = {"footnote": "Footnotes", "header": "Header", "footer": "Footer"}
_BRACES = re.compile(r"\\[\\{}]|[{}]")
_CODE_PAGE = re.compile(rb"\\ansicpg(\d{3,5})")


def read(source: Source) -> Extracted:
    data = bytes(source.data)
    if not data.lstrip()[:5].startswith(b"{\\rtf"):
        raise TaskFailed("damaged", "not RTF")
    found = _CODE_PAGE.search(data, 0, 4096)
    charset = f"cp{found.group(1).decode()}" if found else "cp1252"
    try:
        raw = data.decode(charset, "replace")
    except LookupError:
        charset = "cp1252"
        raw = data.decode(charset, "replace")
    raw = _PICTURE.sub("", raw)
    if _HIDES.search(raw):
        raw = "".join(_shown(raw))
    text = _words(raw, charset)
    draft = Draft({"kind": "text"})
    for paragraph in re.split(r"\n\s*\n", text):
        for rows, lines in groupby(paragraph.strip().split("\n"), key=_is_row):
            if rows:
                draft.lines(lines_of([line[:-1].split("|") for line in lines]))
            else:
                draft.block("\n".join(lines))
    for destination, title in _BESIDE.items():
        draft.part(title)
        said = (_words(f"{{\\rtf1 {inner}}}", charset).strip() for inner in _inside(raw, destination))
        draft.lines(list(dict.fromkeys(said)))
    return draft.finish()


def _shown(raw: str) -> Iterator[str]:
    """Without the characters that are hidden or deleted. What says so may stand anywhere among the properties of a group,
    and holds until it is taken back or the group ends.
    """
    unseen: frozenset[str] = frozenset()
    around: list[frozenset[str]] = []
    for token in _TOKEN.finditer(raw):
        word = token["word"]
        if token["brace"] == "{":
            around.append(unseen)
        elif token["brace"] and around:
            unseen = around.pop()
        if word in {"v", "deleted"}:
            unseen = unseen - {word} if token["value"] == "0" else unseen | {word}
        elif word == "plain":
            unseen = frozenset()
        if word and not (unseen and word in _CHARACTERS):
            yield f"\\{word}{token['value'] or ''} "
        elif not word and (not unseen or token["brace"] or token["star"]):
            yield token[0]


def _words(raw: str, charset: str) -> str:
    try:
        text = rtf_to_text(raw, encoding=charset, errors="replace")
    except (ValueError, IndexError, KeyError, LookupError) as error:
        raise TaskFailed("damaged", f"not RTF ({type(error).__name__})") from error
    return text.encode("utf-16", "surrogatepass").decode(
        "utf-16", "replace"
    )  # an emoji is written as two halves


def _inside(raw: str, destination: str) -> Iterator[str]:
    """What groups of this kind hold; striprtf leaves them out, since they belong to no place in the flow."""
    begins = re.compile(rf"\{{\\{destination}[lrf]?(?![a-z])")
    at = 0
    while found := begins.search(raw, at):
        depth = 0
        for brace in _BRACES.finditer(raw, found.start()):
            depth += {"{": 1, "}": -1}.get(brace[0], 0)
            if depth == 0:
                yield raw[found.end() : brace.start()]
                at = brace.end()
                break
        else:
            return


def _is_row(line: str) -> bool:
    """A row of a table, as striprtf writes it: a bar behind every cell."""
    return line.endswith("|") and line.count("|") > 1
