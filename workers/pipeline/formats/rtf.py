"""RTF by striprtf, which knows the code pages but no structure: what begins a row, ends a cell or makes a heading is put into the
text as signs of our own before, and found again in what comes out.
"""

import re
from collections.abc import Iterator
from typing import Any

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
_BESIDE = {
    "shptxt": "Text boxes",
    "footnote": "Footnotes",
    "annotation": "Comments",
    "header": "Header",
    "footer": "Footer",
}
_BRACES = re.compile(r"\\[\\{}]|[{}]")
_CELL_ENDS, _ROW_ENDS, _ROW_BEGINS, _HEADING = "\ue000", "\ue001", "\ue002", "\ue010"  # up to nine ranks
_OWN_SIGNS = re.compile("[\ue000-\ue002\ue010-\ue018]")
_HEADS = re.compile("[\ue010-\ue018]")
_STRUCTURE = re.compile(
    r"(?<!\\)\\(?:(cell|row|trowd|nestcell|pntext)|s(\d{1,4})|outlinelevel([0-8]))(?![a-z\d]) ?"
)
_SIGNS = {"cell": _CELL_ENDS, "row": _ROW_ENDS, "trowd": _ROW_BEGINS, "nestcell": "; ", "pntext": ""}
_STYLE = re.compile(r"\{(?:\\\*)?\\s(\d{1,4})(?!\d)((?:[^{}]|\{[^{}]*\})*)\}")
_RANK = re.compile(r"\\outlinelevel([0-8])(?!\d)")
_NAMED_HEADING = re.compile(r"heading ([1-9]);", re.IGNORECASE)
_LONGEST_STYLES = 1 << 20
_CODE_PAGE = re.compile(rb"\\ansicpg(\d{3,5})")


def read(source: Source) -> Extracted:
    data = bytes(source.data)
    if not data.lstrip()[:5].startswith(b"{\\rtf"):
        raise TaskFailed("damaged", "not RTF")
    draft = Draft({"kind": "text"})
    write(draft, data)
    return draft.finish()


def write(draft: Draft, data: bytes, **place: Any) -> None:
    found = _CODE_PAGE.search(data, 0, 4096)
    charset = f"cp{found.group(1).decode()}" if found else "cp1252"
    try:
        raw = data.decode(charset, "replace")
    except LookupError:
        charset = "cp1252"
        raw = data.decode(charset, "replace")
    raw = _PICTURE.sub("", _OWN_SIGNS.sub("\ufffd", raw))
    if _HIDES.search(raw):
        raw = "".join(_shown(raw))
    raw = _signed(raw)
    _write_flow(draft, _words(raw, charset), place)
    for destination, title in _BESIDE.items():
        draft.part(title)
        said = (_words(f"{{\\rtf1 {inner}}}", charset) for inner in _inside(raw, destination))
        draft.lines(list(dict.fromkeys(_OWN_SIGNS.sub(" ", words).strip() for words in said)), **place)


def _signed(raw: str) -> str:
    """With our signs for what has a structure. Headings are told by their style, or say themselves what rank they have."""
    ranks: dict[str, int] = {}
    begins = raw.find("{\\stylesheet")
    for style in _STYLE.finditer(raw, begins, begins + _LONGEST_STYLES) if begins >= 0 else ():
        rank, name = _RANK.search(style[2]), _NAMED_HEADING.search(style[2])
        if rank or name:
            ranks[style[1]] = int(rank[1]) if rank else int(name[1]) - 1 if name else 0

    def sign(word: re.Match[str]) -> str:
        structure, style, rank = word.groups()
        if structure:
            return _SIGNS[structure]
        number = int(rank) if rank else ranks.get(style)
        return word[0] if number is None else word[0].rstrip() + " " + chr(ord(_HEADING) + number)

    return _STRUCTURE.sub(sign, raw)


def _write_flow(draft: Draft, text: str, place: dict[str, Any]) -> None:
    rows: list[list[str]] = []
    pieces = text.split(_ROW_ENDS)
    for number, piece in enumerate(pieces):
        begins = _row_begins(piece, goes_on=bool(rows)) if number + 1 < len(pieces) else len(piece)
        before, row = piece[:begins].replace(_ROW_BEGINS, ""), piece[begins:].replace(_ROW_BEGINS, "")
        if before.strip():
            draft.lines(lines_of(rows), **place)
            rows = []
            _write_paragraphs(draft, before, place)
        if row:
            cells = _HEADS.sub("", row).split(_CELL_ENDS)
            rows.append(["; ".join(filter(None, map(str.strip, cell.split("\n")))) for cell in cells[:-1]])
    draft.lines(lines_of(rows), **place)


def _row_begins(piece: str, *, goes_on: bool) -> int:
    """Where what ends with a row becomes the row: nearly always it is said; else with the line of its first cell."""
    said, first = piece.find(_ROW_BEGINS), piece.find(_CELL_ENDS)
    if 0 <= said < first or first < 0:
        return max(said, 0)
    return 0 if goes_on else piece.rfind("\n", 0, first) + 1


def _write_paragraphs(draft: Draft, text: str, place: dict[str, Any]) -> None:
    for paragraph in re.split(r"\n\s*\n", text.replace(_CELL_ENDS, " ")):
        lines: list[str] = []
        for line in paragraph.strip("\n").split("\n"):
            heads = _HEADS.findall(line)
            words = _HEADS.sub("", line)
            if heads and words.strip():
                draft.block("\n".join(lines), **place)
                lines = []
                draft.heading(ord(heads[-1]) - ord(_HEADING) + 1, words.strip(), **place)
            else:
                lines.append(words)
        draft.block("\n".join(lines).strip(), **place)


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
    except (ValueError, TypeError, LookupError) as error:
        raise TaskFailed("damaged", f"not RTF ({type(error).__name__})") from error
    return text.encode("utf-16", "surrogatepass").decode(
        "utf-16", "replace"
    )  # an emoji is written as two halves


def _inside(raw: str, destination: str) -> Iterator[str]:
    """What groups of this kind hold; striprtf leaves them out, since they belong to no place in the flow."""
    begins = re.compile(rf"\{{(?:\\\*)?\\{destination}[lrf]?(?![a-z])")
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
