"""XML by lxml, hardened: an element's words under its name; any part knows the path of its element."""

import codecs
import re
from collections import Counter
from collections.abc import Iterator
from html.entities import html5
from typing import Any

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import Source
from workers.pipeline.extracted import Extracted
from workers.pipeline.formats import text as plain
from workers.pipeline.formats.draft import Draft, Places
from workers.pipeline.formats.hardened import parse_xml
from workers.pipeline.formats.xml_unseen import silence

Path = tuple[str, ...]
_MOST_STEPS = 5_000_000  # of all paths together
_NAMED = re.compile(
    rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|&(?!(?:amp|lt|gt|quot|apos);)([A-Za-z][A-Za-z0-9]{1,31};)",
    re.DOTALL,
)


def read(source: Source) -> Extracted:
    root = parse_xml(_bytes(source))
    silence(root)
    lines: list[str] = []
    places: list[Path] = []
    previous: Path | None = None
    steps = 0
    for path, name, words in _values(root):
        steps += len(path)
        if steps > _MOST_STEPS:
            raise TaskFailed("too_large", "too many elements too deep inside")
        if previous is not None and path[:-1] != previous[:-1] and path != previous[:-1]:
            # Children of one element belong together, and its words to its attributes: one may name the other.
            lines.append("")
            places.append(path)
        previous = path
        for line in plain.clean(f"{name}: {words}").split("\n"):
            lines.append(line)
            places.append(path)
    draft = Draft({"kind": "text"})
    draft.block("\n".join(lines), region=Places.of_lines(lines, places, _common_path))
    return draft.finish()


def _bytes(source: Source) -> bytes:
    """As it came if it says its encoding; else decoded as any text is, for files in UTF-16 without a mark."""
    data = bytes(source.data)
    if b"\x00" in data[:64] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        data = _without_declaration(plain.decode(source)).encode()
    return _NAMED.sub(_by_number, data.removeprefix(codecs.BOM_UTF8).lstrip())


def _by_number(found: re.Match[bytes]) -> bytes:
    """`&nbsp;` is declared elsewhere, where nobody looks, or by nobody at all: everyone knows what it means."""
    characters = html5.get(found[1].decode()) if found[1] else None
    return b"".join(b"&#%d;" % ord(character) for character in characters) if characters else found.group()


def _without_declaration(text: str) -> str:
    return text.partition("?>")[2] if text.startswith("<?xml") else text


def _values(root: Any) -> Iterator[tuple[Path, str, str]]:
    """(path, name, words) of elements with words of their own; mixed content is read as one."""
    stack: list[Iterator[tuple[Any, Path]]] = [iter([(root, (_name(root),))])]
    while stack:
        if (found := next(stack[-1], None)) is None:
            stack.pop()
            continue
        element, path = found
        for key, value in element.attrib.items():
            if value.strip():
                name = key.rpartition("}")[2]
                yield (*path, f"@{name}"), f"{_name(element)}@{name}", " ".join(value.split())
        if len(element) and not _has_words(element):
            stack.append(_below(element, path))
        elif words := " ".join(_words(element).split()):
            yield path, _name(element), words


def _below(element: Any, path: Path) -> Iterator[tuple[Any, Path]]:
    counts: Counter[str] = Counter()
    for child in element:
        counts[_name(child)] += 1  # counted here: asking lxml for a path counts all siblings each time
        yield child, (*path, f"{_name(child)}[{counts[_name(child)]}]")


def _words(element: Any) -> str:
    """All words inside; elements that touch are not one word, and a name nobody knows is kept as it is."""
    pieces = [element.text or ""]
    touches = False
    for inner in element:
        if isinstance(inner.tag, str):
            pieces.append(" " if touches else "")
            pieces += inner.itertext()
            touches = not inner.tail
        else:
            pieces.append(inner.text)
        pieces.append(inner.tail or "")
    return "".join(pieces)


def _has_words(element: Any) -> bool:
    if (element.text or "").strip():
        return True
    return any((child.tail or "").strip() or not isinstance(child.tag, str) for child in element)


def _name(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _common_path(first: Path, last: Path) -> dict[str, Any]:
    shared = 0
    while shared < min(len(first), len(last)) and first[shared] == last[shared]:
        shared += 1
    return {"path": "/" + "/".join(first[:shared])}
