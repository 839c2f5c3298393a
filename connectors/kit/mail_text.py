"""The message in a mail: what its author wrote, without frame, quotation and small print.

The reply parser we could have used (`mail-parser-reply`) finds the same boundaries, but its expressions need minutes for a
hostile 60 kB mail; here every line is looked at once, with patterns that cannot run away.
"""

import re
from collections.abc import Sequence
from typing import Literal

from connectors.kit.mail_html import html_to_text
from connectors.kit.mail_phrases import (
    ATTRIBUTION,
    ATTRIBUTION_BEGINS,
    BOILERPLATE,
    CARD,
    CLOSING,
    FORWARD,
    GADGET,
    HEAD_FIRST,
    HEAD_REST,
    SEPARATOR,
    SIGNATURE,
    TRACES,
)

LONGEST_RAW = 500_000  # characters looked at
MOST_FORWARDS = 5  # a mail that was passed on that often has said what it says
LONGEST_LINE = 600  # of which patterns see so much
INVISIBLE = re.compile(
    r"[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\u00ad\u034f\x00-\x08\x0b\x0c\x0e-\x1f]"
)
SPACES = re.compile(r"[ \t\u00a0\u2000-\u200a\u202f\u205f\u3000]+")
RULE = re.compile(r"^[-_=*~]{5,}$")

ContentType = Literal["html", "text"]


def clean_email_body(html_or_text: str, *, content_type: ContentType, max_chars: int = 100_000) -> str:
    """Never more than `max_chars`; empty if the mail says nothing of its own."""
    raw = html_or_text[:LONGEST_RAW]
    text = html_to_text(raw) if content_type == "html" else raw
    lines = _lines(text)
    own = _own_words(lines)
    if not any(own):  # nothing but what it passes on: then that is the message
        own = _passed_on(lines)
    kept = _without_small_print(_without_signature(own))
    return _cut("\n".join(_squeezed(kept)), max_chars)


def _lines(text: str) -> list[str]:
    text = TRACES.sub("", INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
    return [SPACES.sub(" ", line).strip() for line in text.split("\n")]


def _seen(line: str) -> str:
    return line[:LONGEST_LINE]


# -- quotations


def _own_words(lines: Sequence[str], forwards: int = 0) -> list[str]:
    kept: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith(">"):
            at += 1
            continue
        length = _attribution(lines, at)
        if length:
            at += length
            if not _quotes_follow(lines, at):
                break  # quoted without marks: from here on it is theirs
            continue
        if FORWARD.search(_seen(line)):
            if forwards < MOST_FORWARDS:
                kept.extend(_passed_on(lines[at:], forwards + 1))
            break
        if SEPARATOR.search(_seen(line)) or _is_head(lines, at):
            break
        kept.append(line)
        at += 1
    while kept and (not kept[-1] or RULE.match(kept[-1])):
        kept.pop()
    return kept


def _attribution(lines: Sequence[str], at: int) -> int:
    """How many lines an "On … wrote:" takes here; clients wrap it."""
    if not ATTRIBUTION_BEGINS.search(_seen(lines[at])):
        return 0
    joined = ""
    for count in range(1, 4):
        if at + count > len(lines) or not lines[at + count - 1]:
            return 0
        joined = f"{joined} {lines[at + count - 1]}".strip()
        if len(joined) <= LONGEST_LINE and ATTRIBUTION.search(joined):
            return count
    return 0


def _quotes_follow(lines: Sequence[str], at: int) -> bool:
    following = next((line for line in lines[at:] if line), "")
    return following.startswith(">")


def _is_head(lines: Sequence[str], at: int) -> bool:
    """From, then at least two of Sent, To, Subject … within the next lines: the head of an older mail."""
    if not HEAD_FIRST.search(_seen(lines[at])):
        return False
    return sum(bool(HEAD_REST.search(_seen(line))) for line in lines[at + 1 : at + 8]) >= 2


def _passed_on(lines: Sequence[str], forwards: int = 1) -> list[str]:
    """A forwarded mail without its head, its marks taken off. What that one quotes in turn is left out."""
    plain = [re.sub(r"^(?:> ?)+", "", line) for line in lines]
    at = 0
    while at < len(plain):
        line = _seen(plain[at])
        if (
            not line
            or FORWARD.search(line)
            or SEPARATOR.search(line)
            or RULE.match(line)
            or SIGNATURE.match(line)
        ):
            at += 1
        elif _attribution(plain, at):
            at += _attribution(plain, at)
        elif HEAD_FIRST.search(line) or HEAD_REST.search(line):
            at += 1
            # An address list runs on to the next line; a message begins after an empty one.
            while at < len(plain) and plain[at] and not HEAD_REST.search(_seen(plain[at])):
                if _is_prose(plain[at]):
                    break
                at += 1
        else:
            break
    rest = plain[at:]
    return _own_words(rest, forwards) if rest else []


def _is_prose(line: str) -> bool:
    return "@" not in line and ";" not in line


# -- signatures


def _without_signature(lines: Sequence[str]) -> list[str]:
    kept = [line for line in lines if not GADGET.search(_seen(line))]
    for at, line in enumerate(kept):
        if SIGNATURE.match(line) and at > 0:
            kept = kept[:at]
            break
    while kept and not kept[-1]:
        kept.pop()
    return _without_card(kept)


def _without_card(lines: list[str]) -> list[str]:
    """After a closing the name stays; what stands on a business card goes, up to the end or the small print."""
    for at in range(len(lines) - 1, max(-1, len(lines) - 40), -1):
        if not CLOSING.search(_seen(lines[at])):
            continue
        name = next((index for index in range(at + 1, len(lines)) if lines[index]), None)
        if name is None:
            return lines
        rest = lines[name + 1 :]
        if any(CARD.search(_seen(line)) for line in rest):
            return lines[: name + 1] if not CARD.search(_seen(lines[name])) else lines[: at + 1]
        return lines
    return lines


# -- small print


def _without_small_print(lines: Sequence[str]) -> list[str]:
    kept: list[str] = []
    paragraph: list[str] = []
    for line in [*lines, ""]:
        if line and not RULE.match(line):
            paragraph.append(line)
            continue
        if paragraph and not _is_boilerplate(" ".join(paragraph)):
            kept.extend(paragraph)
        if line or paragraph:
            kept.append("")
        paragraph = []
    return kept


def _is_boilerplate(paragraph: str) -> bool:
    seen = paragraph[:3000]
    return any(all(words.search(seen) for words in group) for group in BOILERPLATE)


def _squeezed(lines: Sequence[str]) -> list[str]:
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    while kept and not kept[-1]:
        kept.pop()
    return kept


def _cut(text: str, longest: int) -> str:
    """At the end of a word, if there is one near."""
    if len(text) <= longest:
        return text
    head = text[:longest]
    space = max(head.rfind(" "), head.rfind("\n"))
    return head[:space].rstrip() if space > longest * 0.8 else head
