"""Secrets that can be told by the form they are written in: URLs with credentials, headers, signed links, settings."""

import re
from collections.abc import Iterator
from itertools import chain

from gateway.corpus.masking import Span, positions, windows
from gateway.corpus.secrets.codes import CODES
from gateway.corpus.secrets.commands import COMMANDS
from gateway.corpus.secrets.forms import (
    has_three_parts,
    is_credentials,
    is_given,
    is_no_word,
    is_strong,
    structure,
)
from gateway.corpus.secrets.values import is_made_up

_QUOTE = r"""\\?["'`]?"""

STRUCTURES = (
    structure(
        "jwt",
        "eyj",
        r"(?<![A-Za-z0-9_\-.]) (?P<value> (?-i:eyJ)[A-Za-z0-9_\-]{8,4096}+ (?:\.[A-Za-z0-9_\-=]{0,8192}+){2,4} )",
        after=16_384,
    ),
    structure(
        "jwt",  # broken at the ends of lines, as on a page
        "eyj",
        r"""(?<![A-Za-z0-9_\-.])(?P<value>(?-i:eyJ)[A-Za-z0-9_\-.]{16,400}+
            (?:\n[ \t>]{0,4}(?=[A-Za-z_\-.]{0,100}[0-9])[A-Za-z0-9_\-.]{8,400}+){1,40})""",
        has_three_parts,
        after=16_384,
    ),
    structure(
        "url_password",
        "://",
        r"""://[^\s/:@"'<>\\|]{0,256}+:(?!\d{1,5}[/?\#])(?P<value>[^\s/"'<>\\|]{1,512})@(?=[\w\[%$({])""",
        is_given,
    ),
    structure("url_password", "://", r"://(?P<value>(?=[A-Za-z_\-]*[0-9])[A-Za-z0-9_\-]{16,256}+)@(?=[\w\[])"),
    structure(
        "url_password",  # of a database, where a slash is the password's own
        "postgres|mysql|mongodb|redis|amqp|mssql|mariadb",
        r"""\b(?:postgres(?:ql)?|mysql|mariadb|mssql|mongodb|rediss?|amqps?)(?:\+\w{1,16})?://[^\s/:@"'<>\\|]{0,64}:
            (?!\d{1,5}[/?\#])(?P<value>[^\s"'<>\\|@]{1,128})@(?=[\w\[])""",
        is_given,
    ),
    structure("url_password", "jdbc:oracle", r"jdbc:oracle:\w+:[^/\s]{1,64}/(?P<value>[^@\s]{1,128})@", is_given),
    structure(
        "bearer_token",
        "authorization",
        rf"""authorization{_QUOTE}\]?\s{{0,4}}(?:[:=,]|=>)\s{{0,4}}{_QUOTE}
             (?!(?:basic|digest)\s)(?:[a-z][\w\-]{{1,24}}+[ ]{{1,3}})?(?P<value>[^\s"'`,;<>|\\]{{5,8192}})""",
        is_strong,
        after=9000,
    ),
    structure("bearer_token", "bearer", r"\bbearer[ ]{1,3}(?P<value>[A-Za-z0-9\-._~+/]{12,8192}+={0,2})", is_strong, after=9000),
    structure("basic_auth", "basic ", r"\bbasic[ ]{1,3}(?P<value>[A-Za-z0-9+/]{6,1024}+={0,2})", is_credentials, after=1200),
    structure(
        "signature",
        "sig=|signature=|security-token=|jwt=",
        r"""(?:\bsig|signature|security-token|\bjwt)=(?P<value>[A-Za-z0-9%+/=_\-.~]{16,4096}+)""",
        is_strong,
        after=4200,
    ),
    structure("private_key", '"kty"', r'"(?:d|k|p|q|dp|dq|qi)"\s*:\s*"(?P<value>[A-Za-z0-9_\-]{16,2048}+)"', before=8000, after=8000),
    structure("password", "identified", r"""\bidentified\s+(?:with\s+\S+\s+)?by\s+["'](?P<value>[^"'\n]{3,256})["']""", is_given),
    structure(
        "password",
        "set password",
        r"""\bset[ ]password[^\n=]{0,80}=\s{0,4}(?:password\()?["'](?P<value>[^"'\n]{3,256})["']""",
        is_given,
    ),
    structure(
        "password",
        "credential|creds|logindaten|zugangsdaten|anmeldedaten|identifiants|credenciales",
        r"""(?:credentials?|creds|logindaten|zugangsdaten|anmeldedaten|identifiants|credenciales)\b[^\n:=]{0,30}[:=]\s{0,4}
            [^\s/:|]{2,64}\s{0,3}[/:|]\s{0,3}(?P<value>(?!/)[^\s"']{6,128})""",
        is_made_up,
    ),
    structure(
        "password",  # a user and a password with a slash between
        "login|log in|sign in|sign-in|zugang|anmeldung|anmelden|connexion|accès|acceso",
        r"""\b(?:log-?[ ]?in|sign[ \-]in|zugang|anmeldung|anmelden|connexion|accès|acceso)\b[^\n/|]{0,40}?[: ][ ]?[\w.@\-]{2,64}[ ]/[ ]
            (?P<value>[^\s"'|]{6,128})(?=\s|\Z)""",
        is_made_up,
        after=300,
    ),
    structure(
        "password",  # and below each other
        "credential|login data|logindaten|zugangsdaten|anmeldedaten|identifiants|credenciales",
        r"""(?:credentials?|login[ ]data|logindaten|zugangsdaten|anmeldedaten|identifiants|credenciales)\b[^\n:]{0,30}:[ ]{0,3}\n{1,2}[ \t>]{0,4}
            [\w.@\-]{2,64}[ ]{0,3}\n[ \t>]{0,4}(?P<value>\S{6,64})[ ]{0,3}(?=\n|\Z)""",
        is_made_up,
        after=300,
    ),
    structure("password", "wifi:", r"\bwifi:[^\n]{0,200}?\bP:(?P<value>[^;\n]{8,63});"),
    structure(
        "password",  # of a radio network
        "wpa",
        r"""\bwpa[23]?(?:[ /\-]{0,3}(?:wpa[23]?|psk|personal)){0,4}["']?\s{0,3}[:=|]\s{0,4}["']?(?!\S{0,8}802\.1)(?P<value>[^\s"'|]{8,63})""",
        is_strong,
    ),
    structure(
        "password",
        "ssid",
        r"""\bssid\b[^\n]{0,60}(?:\n[^\n]{0,8})?\b(?:key|schlüssel|clé|clave|pw)["']?\s{0,3}[:=|]\s{0,4}["']?(?P<value>[^\s"'|]{8,63})""",
        is_strong,
    ),
    structure(
        "password",  # in the settings of network devices, where a number says how the value is encoded
        "password |secret ",
        r"\b(?:password|secret)[ ]{1,3}\d[ ]{1,3}(?P<value>[^\s\"',;]{6,256})",
        is_strong,
    ),
    structure(
        "secret",
        "radius|tacacs|isakmp",
        r"""\b(?:radius|tacacs\+?|isakmp)\b[^\n]{0,60}?\b(?:key|schlüssel)[ :=]{1,3}(?:\d[ ]{1,3})?(?P<value>[^\s"',;]{4,128})""",
        is_strong,
    ),
    structure(
        "password",  # before it is said what it is
        "passw|kennwort|mot de passe|contraseña",
        r"""(?<!\S)["'`„“«\[]?(?P<value>[^\s"'`„“”«»(),|:\[\]]{6,128}+)["'`“”»\]]?[ ](?:as|is|als|ist|wird|comme|est|como|es|será)[ ]
            (?:the|your|my|our|his|her|das|dein|mein|ihr|unser|neue[sn]?|le|votre|mon|ton|la|su|mi|tu|nuestra)[ ](?:[^\W\d]{1,20}[ ]){0,2}
            (?:[^\W\d_]{0,12}-)?(?:pass(?:word|wort)|kennwort|mot[ ]de[ ]passe|contraseña)(?![\w\-]|[ ](?:hash|type|flow|grant|policy|format|algorithm|hint|field))""",
        is_no_word,
        before=240,
        after=40,
    ),
    structure(
        "password",  # the one before
        "passw|kennwort|mot de passe|contraseña",
        r"""(?:pass(?:word|wort)|kennwort|mot[ ]de[ ]passe|contraseña)(?:[ ][\w’'\-]{1,20}){0,4}?[ ](?:from|von|de|desde)[ ]
            ["'`„“«]?(?P<value>[^\s"'`„“”«»(),|]{6,128}+)["'`“”»]?[ ](?:to|into|auf|zu|in|à|en|a|por)[ ]""",
        is_no_word,
        after=260,
    ),
    structure(
        "pin",
        "pin\"|pin'|pin:|pin=|puk\"|puk'|puk:|puk=",
        r"(?<![a-z0-9\-])(?:pin|puk)[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<value>\d{4,8})(?![\w]|[.,:/\-]\d)",
    ),
    structure("password", ":543", r"[\w.*\-]{1,100}+:543\d:[\w*\-]{1,64}:[\w.*@\-]{1,64}:(?P<value>\S{3,256})", before=120),
    structure(
        "basic_auth",
        'auth"|auth=|auth:|auth =',
        r"""(?<![A-Za-z])_?auth["']?\s{0,3}[:=]\s{0,3}["']?(?P<value>[A-Za-z0-9+/]{8,1024}={0,2})(?![\w+/=])""",
        is_credentials,
        after=1200,
    ),
    structure(
        "password",
        'variable "',
        r"""variable\s"\w{0,40}(?:password|secret|token|api_?key)\w{0,20}"\s*\{[^{}]{0,300}?default\s*=\s*"(?P<value>[^"\n]{3,256})\"""",
        is_given,
    ),
    structure("password", "keymaterial", r"<keymaterial>\s{0,4}(?P<value>[^<\s]{5,128})", is_given),
    structure("password", "pwd={|password={", r"\b(?:pwd|password)=\{(?!\w{1,64}![rsa]\})(?P<value>[^{}\s]{3,128})\}", is_no_word),
    structure("password", "passw|pwd%3d", r"(?:passw(?:or[dt])?|pwd)%(?:22%3A%22|3D)(?P<value>[^%\s&\"'<>]{3,128})", is_given),
    structure("bearer_token", 'response="', r"""[ ,]response="(?P<value>[a-f0-9]{32,128})\""""),
    structure("vendor_token", "access_token$", r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$(?P<value>[a-f0-9]{32})"),
    structure("vendor_token", "!aq", r"(?<![A-Za-z0-9])(?P<value>(?-i:00D[A-Za-z0-9]{12,15}!AQ[A-Za-z0-9_.\-]{60,250}))", after=300),
    structure(
        "password_hash",
        "$|{ssha|scrypt:",
        r"""(?P<value>\$2[aby]\$\d\d\$[./A-Za-z0-9]{50,56} | \$(?:1|5|6|7|y|apr1|scrypt|argon2i?d?)\$[^\s:"'<>|]{16,400}
              | \{ssha\d{0,3}\}[A-Za-z0-9+/=]{20,200} | \$[PH]\$[./A-Za-z0-9]{30,32} | pbkdf2[_:]sha\d{1,3}[$:]\d{3,8}\$[^\s:"'<>|]{16,400}
              | scrypt:\d{1,8}:\d{1,4}:\d{1,4}\$[^\s:"'<>|]{16,400} | SCRAM-SHA-\d{1,3}\$\d{3,8}:[A-Za-z0-9+/=]{8,64}\$[A-Za-z0-9+/=:]{30,300})""",
        before=16,
        after=640,
    ),
    *COMMANDS,
    *CODES,
)  # fmt: skip


def find_structures(text: str, low: str, standing: frozenset[str]) -> Iterator[Span]:
    """`low` is the text in lower case, and no other anchors than these are in it."""
    hits: dict[str, list[int]] = {}
    for form in STRUCTURES:
        if standing.isdisjoint(form.anchors):
            continue
        anchors = standing.intersection(form.anchors)
        for anchor in anchors - hits.keys():
            hits[anchor] = positions(low, (anchor,))
        at = sorted(chain.from_iterable(hits[anchor] for anchor in anchors))
        around = windows(at, before=form.before, after=form.after, length=len(text))
        for start, end in around:
            for match in form.pattern.finditer(text, start, end):
                if form.is_secret(match["value"]):
                    yield Span(*match.span("value"), form.kind)


COOKIE = "cookie"
_COOKIE_LINE = re.compile(r"""cookie[\\"']{0,2}\s{0,4}[:=]\s{0,4}[^\n\f]{1,8000}""", re.IGNORECASE)
_SESSION_PAIR = re.compile(
    r"""[\w.\-]{0,40}(?:sess|sid|auth|token|jwt|csrf|xsrf|remember|identity|logged_in|ticket)[\w.\-]{0,40}=(?P<value>[^;\s"',<>|\\]{6,4096})""",
    re.IGNORECASE,
)


def find_cookies(text: str, low: str) -> Iterator[Span]:
    for start, end in windows(positions(low, (COOKIE,)), before=0, after=8100, length=len(text)):
        for line in _COOKIE_LINE.finditer(text, start, end):
            for pair in _SESSION_PAIR.finditer(text, *line.span()):
                if is_strong(pair["value"]):
                    yield Span(*pair.span("value"), "cookie")
