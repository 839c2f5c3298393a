"""The words that announce a secret, in English, German, French and Spanish, in prose and in identifiers."""

import re
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from gateway.corpus.masking import PLACEHOLDER, positions, windows


class Grade(IntEnum):
    """How sure the word alone is; the vaguer it is, the more the value must look like a secret."""

    SOFT = 0  # token, secret, clave
    KEY = 1  # API key, access token
    HARD = 2  # password


class Label(NamedTuple):
    start: int  # of the whole identifier
    end: int
    core: int  # where the announcing word begins
    kind: str
    grade: Grade


ANCHORS = (
    "pass", "pwd", "pw", "kennw", "mdp", "contrase", "zugangs", "secre", "token", "jeton", "key", "schlüssel", "clé", "clave",
    "credential", "geheimnis", "bearer", "sessid", "sessionid", "psk", "losungsw", "code d", "código", "pin code", "pin-code", "pincode", "code pin", "on code", "time code", "ngscode", "tscode",
    "paßw", "p/w", "fi code", "fi-code", "wlan code", "wlan-code", "code wi", "code du wi", "alarmcode", "alarm code", "door code", "gate code", "türcode", "torcode",
    "tresorcode", "code d’alarme", "code de la porte", "de alarma", "de la alarma",
)  # fmt: skip
_OWNER = (
    r"(?:api|access|secret|private|account|shared(?:[ _\-]?access)?|auth|encryption|signing|signature|master|service|"
    r"subscription|client|consumer|app|application|storage|licen[cs]e|activation|recovery|admin|ssh|webhook|deploy|integration|"
    r"aws\w{0,12})"
)
_BEARER = (
    r"(?:access|refresh|id|session|bearer|auth(?:entication|orization)?|api|bot|[cx]srf|personal[ _\-]access|deploy|"
    r"registration|device|push|verification|reset|security|oauth2?|jwt|user|login|admin|service)"
)
_CORES = (
    ("passphrase", "password", Grade.HARD, r"pass[ _\-]?phrases?|phrases? de passe|frases? de contrase[nñ]a"),
    (
        "password",
        "password",
        Grade.HARD,
        (
            r"pa(?:ss|ß)[ _\-]?w(?:or[dt]|d)|p/w|pa(?:ss|ß)wörter|passcode|pwd|kennw[oö]rt(?:er)?|losungswort|mots?[ _\-]?de[ _\-]?passe|mdp|"
            r"contrase[nñ]as?|"
            r"(?<=[_\-])pass|(?<=db)pass|(?<=user)pass|zugangs(?:code|daten|kennung)|codes? d['’]acc[eè]s|"
            r"c[oó]digos? de acceso|claves? de acceso|(?<![a-z0-9])psk(?![a-z0-9])|"
            r"(?:wi-?fi|wlan|wpa\d?|wep|pre-?shared)[ _\-]?(?:key|schlüssel)|netzwerk(?:sicherheits)?-?schlüssel|"
            r"(?:wi-?fi|wlan)[ \-]code|code (?:du )?wi-?fi|network security key|cl[eé] de sécurité(?: (?:du )?réseau)?|"
            r"clave de seguridad(?: de (?:la )?red)?|cl[eé]s? (?:du )?(?:wi-?fi|wpa\d?|wep)|"
            r"claves? (?:de la |del |de )?(?:wi-?fi|red|router|servidor|cuenta|correo|usuario|base de datos|administrador)"
        ),
    ),
    (
        "api_key",
        "api_key",
        Grade.KEY,
        (
            rf"{_OWNER}[ ._\-]?(?:access[ _\-]?)?(?:key|secret)|api[ _\-]?(?:token|schlüssel|pass)|"
            r"(?:zugriffs|zugangs|geheim(?:er )?|konto|dienst|lizenz|produkt|aktivierungs)-?schlüssel|"
            r"clés? (?:secr[eè]te|priv[eé]e|d['’]acc[eè]s|(?:d['’]|de l['’])?api)|claves? (?:secreta|privada|(?:de )?(?:la )?api)"
        ),
    ),
    (
        "token",
        "token",
        Grade.KEY,
        (
            rf"{_BEARER}[ _\-]?token|(?:php|j)sess(?:ion)?id|(?:zugriffs|zugangs)-?token|jetons? d['’]acc[eè]s|tokens? d['’]acc[eè]s|tokens? de acceso"
        ),
    ),
    (
        "one_time",
        "pin",
        Grade.SOFT,
        (
            r"pin[ \-]?code|code pin|c[oó]digo pin|verification code|one[ \-]time code|bestätigungscode|sicherheitscode|"
            r"code de vérification|c[oó]digo de verificación|(?:alarm|tür|tor|tresor)-?codes?|(?:alarm|door|gate) codes?|"
            r"code d['’]alarme|code de la porte|c[oó]digo de (?:la )?alarma"
        ),
    ),
    ("soft", "secret", Grade.SOFT, r"secreto|secret|credential|geheimnis"),
    ("soft_token", "token", Grade.SOFT, r"token|jeton|bearer"),
    ("soft_password", "password", Grade.SOFT, r"pass|pw|(?<!palabra )(?<!palabras )clave"),
)
_LABEL = re.compile("|".join(f"(?P<{name}>{pattern})" for name, _, _, pattern in _CORES))
_MEANING = {name: (kind, grade) for name, kind, grade, _ in _CORES}

_IDENTIFIER = re.compile(r"[\w\-]{0,48}+")
_BEFORE = re.compile(r"[\w\-.]{0,48}\Z")
# After the word, what it says is about the secret and not the secret itself.
_ABOUT = re.compile(
    r"[_\-]?(?:length|len|count|size|types?|url|uri|link|names?|ids?|expir|field|polic|min|max|ttl|limit|hint|reset|file|path|"
    r"label|prefix|suffix|index|format|regex|pattern|strength|enabled|required|budget|ref|manager|store|provider|protect|"
    r"based|auth|form|input|attempt|age|rotation|usage|per_|page|less|schutz|richtlinie|länge|feld|manager)",
)
_COUNTED = re.compile(
    r"(?<![^\W\d_])(?:max|min|num|n|count|total|prompt|completion|input|output|cached|stop|eos|bos|pad|unk|mask|padding|special|sep|cls|next|has|is|"
    r"no|forgot|reset|by|com|sur|tres|over|under|tur|mon|don|hoc|joc|whis|hot)[_\-]?\Z"
)
_PIN = re.compile(r"(?<!\w)(?<!\d-)(?:PIN|PUK|TAN|Pin|Puk)(?:-?(?:Code|Nummer|code))?(?![\w\-])")
PINS = ("PIN", "PUK", "TAN", "Pin", "Puk")
_PLURAL = ("s", "es", "n", "en")


def find_labels(text: str, low: str, standing: Iterable[str] = ANCHORS) -> list[Label]:
    """No other anchors than these are in the text."""
    return sorted((*_words(text, low, standing), *_pins(text)))


def _words(text: str, low: str, anchors: Iterable[str]) -> Iterator[Label]:
    reached = 0
    for start, end in windows(positions(low, anchors), before=24, after=40, length=len(text)):
        for match in _LABEL.finditer(low, start, end):
            if match.start() < reached:
                continue
            label = _label(text, low, match)
            if label is not None:
                reached = label.end
                yield label


def _pins(text: str) -> Iterator[Label]:
    for at in positions(text, PINS):
        if match := _PIN.match(text, at):
            yield Label(at, match.end(), at, "pin", Grade.SOFT)


def _label(text: str, low: str, match: re.Match[str]) -> Label | None:
    kind, grade = _MEANING[match.lastgroup or ""]
    core, end = match.span()
    before = _BEFORE.search(low, max(0, core - 48), core)
    prefix = before[0] if before else ""
    start = core - len(prefix)
    if any(PLACEHOLDER.match(text, at) for at in (start - 1, start - len("[secret:")) if at >= 0):
        return None
    if grade < Grade.HARD and (_runs_on(text, core) or _COUNTED.search(prefix)):
        return None
    rest = _IDENTIFIER.match(text, end)
    suffix = rest[0] if rest else ""
    if suffix.lower() in _PLURAL and match.lastgroup != "soft_password":
        grade = min(grade, Grade.KEY)
    elif suffix and (suffix[0].islower() or _is_about(suffix)):
        return None
    return Label(start, end + len(suffix), core, kind, grade)


def _runs_on(text: str, core: int) -> bool:
    """In the middle of a word, as the `token` of `betoken`; a hump (`authToken`) begins a word."""
    return core > 0 and text[core - 1].isalnum() and not (text[core].isupper() and text[core - 1].islower())


def _is_about(suffix: str) -> bool:
    """`password_length`, `token-based`: about the secret, not the secret."""
    return (suffix[0] == "-" and len(suffix) > 8) or bool(_ABOUT.match(suffix.lower()))
