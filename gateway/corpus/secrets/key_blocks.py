"""Private keys as they are written to files: PEM, OpenSSH, PGP, PuTTY, and base64 of all that."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import zip_longest

from gateway.corpus.masking import Span

_BLOCK = 20_000  # characters of a key block; the largest real ones have a fifth of that
_BEGIN = re.compile(r"-{3,5} ?BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{3,5}")
_END = re.compile(r"-{3,5} ?END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{3,5}")
# A block without its end: lines of base64, also with the line ends of a JSON string or a mail's `>`.
_LINES = re.compile(
    r"(?:(?:\s|\\[nr]|>|(?:Proc-Type|DEK-Info|Version|Comment):[^\n]{0,80})*+[A-Za-z0-9+/=]{8,}+)*+"
)
_PUTTY = re.compile(r"PuTTY-User-Key-File-\d:.{0,20000}?Private-MAC: *[0-9a-f]+", re.DOTALL)
_ENCODED = re.compile(r"LS0tLS1CRUdJTi[A-Za-z0-9+/=\n]{40,20000}+")
_ENCODED_PRIVATE = (
    "UFJJVkFURSBL",
    "BSSVZBVEUgS0",
    "QUklWQVRFIEtF",
)  # "PRIVATE KE" at the three places of base64


_PEM, _PUTTY_BEGIN, _PUTTY_END, _ENCODED_BEGIN = (
    "PRIVATE KEY",
    "PuTTY-User-Key-File",
    "Private-MAC",
    "LS0tLS1CRUdJTi",
)
ANCHORS = (_PEM, _PUTTY_BEGIN, _ENCODED_BEGIN)  # one of these stands in every key block


def find_key_blocks(text: str) -> Iterator[Span]:
    if _PEM in text:
        begins = list(_BEGIN.finditer(text))
        ends = [match.end() for match in _END.finditer(text)]
        for begin, following in zip_longest(begins, begins[1:]):
            limit = min(begin.end() + _BLOCK, following.start() if following else len(text))
            nearest = bisect_right(ends, begin.end())
            if nearest < len(ends) and ends[nearest] <= limit:
                yield Span(begin.start(), ends[nearest], "private_key")
            else:
                lines = _LINES.match(text, begin.end(), limit)
                yield Span(begin.start(), lines.end() if lines else begin.end(), "private_key")
    if _PUTTY_BEGIN in text and _PUTTY_END in text:
        for match in _PUTTY.finditer(text):
            yield Span(*match.span(), "private_key")
    if _ENCODED_BEGIN in text:
        for match in _ENCODED.finditer(text):
            if any(sign in match[0][:120] for sign in _ENCODED_PRIVATE):
                yield Span(*match.span(), "private_key")
