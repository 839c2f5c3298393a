"""The line between what we say to a model and what a document says.

`wrap` puts a passage between two lines that nothing inside can imitate: the brackets ⟪ ⟫ never occur in what they
enclose, because there they are escaped, and each wrap carries a random word of its own that is checked not to occur
either. The first line states the origin. Characters that steer or hide text (controls, bidi, zero-width, tags,
variation selectors, half surrogates) are written out as ⟦U+200B⟧, so that a model and a person see the same.

What is promised is what can be checked: origin stated, boundary unforgeable, every character visible, and
`unwrap(wrap(x)) == x` for any text. Whether a model heeds the boundary is the model's affair.
"""

import hashlib
import json
import re
import secrets
import unicodedata
from collections.abc import Iterator, Mapping
from itertools import count

_OPEN, _CLOSE = "⟪", "⟫"
_ESCAPE_OPEN, _ESCAPE_CLOSE = "⟦", "⟧"
# Invisible without being of a category that says so: fillers, joiners and selectors counted as letters or marks.
_BLANK_LETTERS = frozenset(map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0)))
_SELECTORS = (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
# Controls, formats (bidi, zero-width, tags), surrogates, private use, unassigned, line and paragraph separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_encode = json.JSONEncoder(ensure_ascii=False).encode
_ORIGIN_CHARACTERS = 300  # of any one field: a title is a name, not a place for an essay

_ESCAPED = re.compile(f"{_ESCAPE_OPEN}U\\+((?:10|[0-9A-F])?[0-9A-F]{{4}}){_ESCAPE_CLOSE}")
_WRAPPED = re.compile(
    f"{_OPEN}untrusted ([0-9a-f]{{16}}) [^{_OPEN}{_CLOSE}\n]*{_CLOSE}\n([^{_OPEN}{_CLOSE}]*)\n{_OPEN}end \\1{_CLOSE}"
)


class BoundaryBroken(ValueError):
    """The text is not one that `wrap` made, or was changed since."""


class _Escapes(dict[int, str]):
    """Code point → how it is written, remembered as it comes up."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        written = f"{_ESCAPE_OPEN}U+{code:04X}{_ESCAPE_CLOSE}" if _must_escape(character) else character
        self[code] = written
        return written


def _must_escape(character: str) -> bool:
    if character in "\n\t":
        return False
    return (
        character in {_OPEN, _CLOSE, _ESCAPE_OPEN, _ESCAPE_CLOSE}
        or unicodedata.category(character) in _HIDDEN
        or character in _BLANK_LETTERS
        or any(ord(character) in selectors for selectors in _SELECTORS)
    )


_escapes = _Escapes()


def escape(text: str) -> str:
    """The same text with nothing hidden in it and no bracket of ours."""
    return text.translate(_escapes)


def unescape(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def wrap(text: str, origin: Mapping[str, str | None], *, repeatable: bool = False) -> str:
    """The passage as a model may be given it. `origin` says where it comes from; empty fields are left out.

    `repeatable` takes the word from the content instead of from chance: the same passage gives the same lines, and
    still nobody can write a text that holds its own hash.
    """
    body = escape(text)
    stated = {name: value[:_ORIGIN_CHARACTERS] for name, value in origin.items() if value}
    label = escape(_encode(stated))
    words = _derived_words(label + body) if repeatable else _random_words()
    word = next(word for word in words if word not in body and word not in label)
    return f"{_OPEN}untrusted {word} {label}{_CLOSE}\n{body}\n{_OPEN}end {word}{_CLOSE}"


def _random_words() -> Iterator[str]:
    while True:
        yield secrets.token_hex(8)


def _derived_words(content: str) -> Iterator[str]:
    for turn in count():
        yield hashlib.sha256(f"{turn} {content}".encode()).hexdigest()[:16]


def unwrap(wrapped: str) -> str:
    """The passage inside; `BoundaryBroken` when there is not exactly one, whole."""
    found = _WRAPPED.fullmatch(wrapped)
    if found is None or found[1] in found[2]:
        raise BoundaryBroken("this is not a passage wrapped by Catchment, or it was changed")
    return unescape(found[2])
