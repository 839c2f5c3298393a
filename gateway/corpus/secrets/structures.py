"""Secrets that can be told by the form they are written in: key blocks, URLs with credentials, headers, signed links."""

import base64
import binascii
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import NamedTuple

from gateway.corpus.masking import Span, positions, windows
from gateway.corpus.secrets.values import Strength, is_made_up, strength

_BLOCK = 20_000  # characters of a key block; the largest real ones have a fifth of that


def _is_strong(value: str) -> bool:
    return strength(value, quoted=False) >= Strength.STRONG


def _is_given(value: str) -> bool:
    """Anything but a reference or one of the words that stand for a password in manuals."""
    words = {"password", "passwd", "pass", "pwd", "passwort", "motdepasse", "contraseña"}
    return strength(value, quoted=False) > Strength.NONE and value.casefold() not in words


def _is_no_word(value: str) -> bool:
    return _is_strong(value) and (is_made_up(value) or strength(value, quoted=False) is Strength.RANDOM)


def _is_credentials(value: str) -> bool:
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return False
    return ":" in decoded and decoded.isprintable()


def _has_three_parts(value: str) -> bool:
    return value.count(".") >= 2


def _always(value: str) -> bool:
    return bool(value)


class Structure(NamedTuple):
    kind: str
    anchors: tuple[str, ...]  # in lower case; one of them stands in every match
    pattern: re.Pattern[str]  # `value` is what is masked
    is_secret: Callable[[str], bool]
    before: int = 32
    after: int = 1024


def _structure(
    kind: str,
    anchors: str,
    pattern: str,
    is_secret: Callable[[str], bool] = _always,
    *,
    before: int = 32,
    after: int = 1024,
) -> Structure:
    compiled = re.compile(pattern, re.IGNORECASE | re.VERBOSE)
    return Structure(kind, tuple(anchors.split("|")), compiled, is_secret, before, after)


_QUOTE = r"""\\?["'`]?"""

STRUCTURES = (
    _structure(
        "jwt",
        "eyj",
        r"(?<![A-Za-z0-9_\-.]) (?P<value> (?-i:eyJ)[A-Za-z0-9_\-]{8,4096}+ (?:\.[A-Za-z0-9_\-=]{0,8192}+){2,4} )",
        after=16_384,
    ),
    _structure(
        "jwt",  # broken at the ends of lines, as on a page
        "eyj",
        r"""(?<![A-Za-z0-9_\-.])(?P<value>(?-i:eyJ)[A-Za-z0-9_\-.]{16,400}+
            (?:\n[ \t>]{0,4}(?=[A-Za-z_\-.]{0,100}[0-9])[A-Za-z0-9_\-.]{8,400}+){1,40})""",
        _has_three_parts,
        after=16_384,
    ),
    _structure(
        "url_password",
        "://",
        r"""://[^\s/:@"'<>\\|]{0,256}+:(?!\d{1,5}[/?\#])(?P<value>[^\s/"'<>\\|]{1,512})@(?=[\w\[%$({])""",
        _is_given,
    ),
    _structure("url_password", "://", r"://(?P<value>(?=[A-Za-z_\-]*[0-9])[A-Za-z0-9_\-]{16,256}+)@(?=[\w\[])"),
    _structure("url_password", "jdbc:oracle", r"jdbc:oracle:\w+:[^/\s]{1,64}/(?P<value>[^@\s]{1,128})@", _is_given),
    _structure(
        "bearer_token",
        "authorization",
        rf"""authorization{_QUOTE}\]?\s{{0,4}}(?:[:=,]|=>)\s{{0,4}}{_QUOTE}
             (?!(?:basic|digest)\s)(?:[a-z][\w\-]{{1,24}}+[ ]{{1,3}})?(?P<value>[^\s"'`,;<>|\\]{{5,8192}})""",
        _is_strong,
        after=9000,
    ),
    _structure("bearer_token", "bearer", r"\bbearer[ ]{1,3}(?P<value>[A-Za-z0-9\-._~+/]{12,8192}+={0,2})", _is_strong, after=9000),
    _structure("basic_auth", "basic ", r"\bbasic[ ]{1,3}(?P<value>[A-Za-z0-9+/]{6,1024}+={0,2})", _is_credentials, after=1200),
    _structure(
        "signature",
        "sig=|signature=|security-token=",
        r"""(?:\bsig|signature|security-token)=(?P<value>[A-Za-z0-9%+/=_\-.~]{16,4096}+)""",
        _is_strong,
        after=4200,
    ),
    _structure("private_key", '"kty"', r'"(?:d|k|p|q|dp|dq|qi)"\s*:\s*"(?P<value>[A-Za-z0-9_\-]{16,2048}+)"', before=8000, after=8000),
    _structure(
        "password",
        "curl ",
        r"""\bcurl[ ][^\n]{0,400}?(?:-u|--user|--proxy-user)[ =]{1,2}["']?[^\s:"']{1,64}:(?P<value>[^\s"']{1,256})""",
        _is_given,
        after=800,
    ),
    _structure(
        "password",
        "sshpass|docker login|mysql",
        r"""(?:sshpass[ ]+-p[ ]*|docker[ ]login[^\n]{0,200}?[ ]-p[ ]+|mysql\w*[ ][^\n]{0,200}?[ ]-p(?!ort\b|rotocol\b|ager\b))
            ["']?(?P<value>[^\s"']{3,256})""",
        _is_given,
    ),
    _structure("password", "identified", r"""\bidentified\s+(?:with\s+\S+\s+)?by\s+["'](?P<value>[^"'\n]{3,256})["']""", _is_given),
    _structure(
        "password",
        "set password",
        r"""\bset[ ]password[^\n=]{0,80}=\s{0,4}(?:password\()?["'](?P<value>[^"'\n]{3,256})["']""",
        _is_given,
    ),
    _structure(
        "password",
        "credential|creds|logindaten|zugangsdaten|anmeldedaten|identifiants|credenciales",
        r"""(?:credentials?|creds|logindaten|zugangsdaten|anmeldedaten|identifiants|credenciales)\b[^\n:=]{0,30}[:=]\s{0,4}
            [^\s/:|]{2,64}\s{0,3}[/:|]\s{0,3}(?P<value>[^\s"']{6,128})""",
        is_made_up,
    ),
    _structure("password", "wifi:", r"\bwifi:[^\n]{0,200}?\bP:(?P<value>[^;\n]{8,63});"),
    _structure(
        "password",  # of a radio network
        "wpa",
        r"""\bwpa[23]?(?:[ /\-]{0,3}(?:wpa[23]?|psk|personal)){0,4}["']?\s{0,3}[:=|]\s{0,4}["']?(?!\S{0,8}802\.1)(?P<value>[^\s"'|]{8,63})""",
        _is_strong,
    ),
    _structure(
        "password",
        "ssid",
        r"""\bssid\b[^\n]{0,60}(?:\n[^\n]{0,8})?\b(?:key|schlüssel|clé|clave|pw)["']?\s{0,3}[:=|]\s{0,4}["']?(?P<value>[^\s"'|]{8,63})""",
        _is_strong,
    ),
    _structure(
        "password",  # in the settings of network devices, where a number says how the value is encoded
        "password |secret ",
        r"\b(?:password|secret)[ ]{1,3}\d[ ]{1,3}(?P<value>[^\s\"',;]{6,256})",
        _is_strong,
    ),
    _structure(
        "secret",
        "radius|tacacs|isakmp",
        r"""\b(?:radius|tacacs\+?|isakmp)\b[^\n]{0,60}?\b(?:key|schlüssel)[ :=]{1,3}(?:\d[ ]{1,3})?(?P<value>[^\s"',;]{4,128})""",
        _is_strong,
    ),
    _structure(
        "password",  # before it is said what it is
        "passw|kennwort|mot de passe|contraseña",
        r"""(?<!\S)["'`„“«]?(?P<value>[^\s"'`„“”«»(),|:]{6,128}+)["'`“”»]?[ ](?:as|is|als|ist|wird|comme|est|como|es|será)[ ]
            (?:the|your|my|our|his|her|das|dein|mein|ihr|unser|neue[sn]?|le|votre|mon|ton|la|su|mi|tu|nuestra)[ ](?:[^\W\d]{1,20}[ ]){0,2}
            (?:[^\W\d_]{0,12}-)?(?:pass(?:word|wort)|kennwort|mot[ ]de[ ]passe|contraseña)(?![\w\-]|[ ](?:hash|type|flow|grant|policy|format|algorithm|hint|field))""",
        _is_no_word,
        before=240,
        after=40,
    ),
    _structure(
        "password",  # the one before
        "passw|kennwort|mot de passe|contraseña",
        r"""(?:pass(?:word|wort)|kennwort|mot[ ]de[ ]passe|contraseña)(?:[ ][\w’'\-]{1,20}){0,4}?[ ](?:from|von|de|desde)[ ]
            ["'`„“«]?(?P<value>[^\s"'`„“”«»(),|]{6,128}+)["'`“”»]?[ ](?:to|into|auf|zu|in|à|en|a|por)[ ]""",
        _is_no_word,
        after=260,
    ),
    _structure(
        "pin",
        "pin\"|pin'|pin:|pin=|puk\"|puk'|puk:|puk=",
        r"(?<![a-z0-9\-])(?:pin|puk)[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<value>\d{4,8})(?![\w]|[.,:/\-]\d)",
    ),
    _structure(
        "secret",
        "otp|2fa|authenticator",
        r"(?:t?otp|2fa|authenticator)\b[^\n:=]{0,20}?(?:secret|key|seed|schlüssel|geheimnis)[ ](?P<value>(?-i:(?=[A-Z]*[2-7])[A-Z2-7]{16,64}+))\b",
    ),
    _structure(
        "secret",
        "otp|2fa|authenticator",
        r"(?:t?otp|2fa|authenticator)\b[^\n:=]{0,20}[:=]\s{0,4}(?P<value>(?-i:[A-Z2-7]{16,64}+|(?:[A-Z2-7]{4}[ ]){3,15}[A-Z2-7]{4}))\b",
    ),
    _structure("password", ":5432:", r"[\w.*\-]+:5432:[\w*\-]+:[\w*\-]+:(?P<value>\S{3,256})", before=80),
    _structure(
        "password_hash",
        "$|{ssha",
        r"""(?P<value>\$2[aby]\$\d\d\$[./A-Za-z0-9]{50,56} | \$(?:1|5|6|7|y|apr1|scrypt|argon2i?d?)\$[^\s:"'<>|]{16,400}
              | \{ssha\d{0,3}\}[A-Za-z0-9+/=]{20,200})""",
        before=0,
        after=440,
    ),
    _structure(
        "seed_phrase",
        "seed|mnemonic|recovery phrase|wiederherstellung|récupération|recuperación|semilla",
        r"""(?:seed|mnemonic|phrase|phrase|satz|wörter|récupération|recuperación|semilla)\b[^\n:=]{0,30}[:=]\s*["']?
            (?P<value>[a-z]{3,8}(?:[ ][a-z]{3,8}){11,23})\b""",
    ),
)  # fmt: skip


def find_structures(text: str, low: str) -> Iterator[Span]:
    """`low` is the text in lower case."""
    hits: dict[tuple[str, ...], list[int]] = {}
    for structure in STRUCTURES:
        if structure.anchors not in hits:
            hits[structure.anchors] = positions(low, structure.anchors)
        around = windows(
            hits[structure.anchors], before=structure.before, after=structure.after, length=len(text)
        )
        for start, end in around:
            for match in structure.pattern.finditer(text, start, end):
                if structure.is_secret(match["value"]):
                    yield Span(*match.span("value"), structure.kind)
    yield from _cookies(text, low)
    yield from _key_blocks(text)


COOKIE = "cookie"
_COOKIE_LINE = re.compile(r"""cookie[\\"']{0,2}\s{0,4}[:=]\s{0,4}[^\n\f]{1,8000}""", re.IGNORECASE)
_SESSION_PAIR = re.compile(
    r"""[\w.\-]{0,40}(?:sess|sid|auth|token|jwt|csrf|xsrf|remember)[\w.\-]{0,40}=(?P<value>[^;\s"',<>|\\]{6,4096})""",
    re.IGNORECASE,
)


def _cookies(text: str, low: str) -> Iterator[Span]:
    for start, end in windows(positions(low, (COOKIE,)), before=0, after=8100, length=len(text)):
        for line in _COOKIE_LINE.finditer(text, start, end):
            for pair in _SESSION_PAIR.finditer(text, *line.span()):
                if _is_strong(pair["value"]):
                    yield Span(*pair.span("value"), "cookie")


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
KEY_BLOCKS = (_PEM, _PUTTY_BEGIN, _ENCODED_BEGIN)  # one of these stands in every key block


def _key_blocks(text: str) -> Iterator[Span]:
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
