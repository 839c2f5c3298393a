"""What a form is that gives a secret away, and how the value in it is judged."""

import base64
import binascii
import re
from collections.abc import Callable
from typing import NamedTuple

from gateway.corpus.secrets.values import Strength, is_made_up, strength


def is_strong(value: str) -> bool:
    return strength(value, quoted=False) >= Strength.STRONG


def is_given(value: str) -> bool:
    """Anything but a reference or one of the words that stand for a password in manuals."""
    words = {"password", "passwd", "pass", "pwd", "passwort", "motdepasse", "contraseña"}
    return strength(value, quoted=False) > Strength.NONE and value.casefold() not in words


def is_no_word(value: str) -> bool:
    return is_strong(value) and (is_made_up(value) or strength(value, quoted=False) is Strength.RANDOM)


def is_credentials(value: str) -> bool:
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return False
    return ":" in decoded and decoded.isprintable()


def has_three_parts(value: str) -> bool:
    return value.count(".") >= 2


def always(value: str) -> bool:
    return bool(value)


class Structure(NamedTuple):
    kind: str
    anchors: tuple[str, ...]  # in lower case; one of them stands in every match
    pattern: re.Pattern[str]  # `value` is what is masked
    is_secret: Callable[[str], bool]
    before: int = 32
    after: int = 1024


def structure(
    kind: str,
    anchors: str,
    pattern: str,
    is_secret: Callable[[str], bool] = always,
    *,
    before: int = 32,
    after: int = 1024,
) -> Structure:
    compiled = re.compile(pattern, re.IGNORECASE | re.VERBOSE)
    return Structure(kind, tuple(anchors.split("|")), compiled, is_secret, before, after)
