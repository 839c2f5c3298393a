"""Is this value a secret, or a word, a type, a reference, a promise to fill something in?

What stands after `password =` is mostly code. The judgement is by form only: letters and digits mixed are strong,
a plain word is plain, and everything that points to a value kept elsewhere is none.
"""

import re
from enum import IntEnum

from gateway.corpus.masking import PLACEHOLDER


class Strength(IntEnum):
    NONE = 0  # not a value of its own
    PLAIN = 1  # a word or a number: a secret only where nothing else can stand
    STRONG = 2  # letters with digits or signs
    RANDOM = 3  # long and mixed: nobody writes that by hand


_STEM = re.compile(
    r"(?:pass(?:word|wort|wörter|wd|code|phrase|e)?|pwd|pw|mdp|kennw[oö]rt(?:er)?|contrase[nñ]a|clave|secret[oa]?|secrète|"
    r"token|jeton|bearer|api|key|schlüssel|clé|credential|zugangscode|auth)s?",
    re.IGNORECASE,
)
_ONLY_STEMS = re.compile(
    rf"(?:{_STEM.pattern}|[\W_]|de|of|the|your|new|old|my|mot|user|access|client)+", re.IGNORECASE
)
_HUMP = re.compile(r"[a-z][A-Z]|[_.]")

# Stands for a value wherever it is written, in quotes or not.
_STAND_IN = re.compile(
    r"""
      \$?\{.*\}? | \{\{.* | <.*>? | \$\(.* | %\w+% | %[sdrif] | %\(\w+\)s? | \$[A-Za-z_]\w* | \[\w+\]
    | (?i:your|dein|ihr|votre|insert|enter|replace|example|some)[\-_ ].*
    | (?i:[a-z][a-z0-9+]*://).*                                          # a URL has detectors of its own
    | (?:[.~]?/|[A-Za-z]:\\)[\w.\-]*(?:[/\\][a-z][\w.\-]*)+             # a path
    | [*•●·xX.…_\-#?=~+0]+
    | \d{1,4}[./:\-]\d{1,2}(?:[./:\-]\d{1,4})?(?:T\d.*)?                 # a date or a time
    | (?i:u?int|float|double|decimal|(?:var)?char|string|str|bytes?)[_\-]?\d{1,4}  # a type
    | 0x[0-9A-Fa-f]{1,8} | \#[0-9A-Fa-f]{3,8}                             # a constant, a colour
    | \d+(?:[.,]\d+)?(?:%|[a-zA-Z]{1,3}) | v?\d+(?:\.\d+)+               # 30s, 12px, 1.2.3
    """,
    re.VERBOSE,
)
_TEMPLATE = re.compile(r"[$#]\{|\{\{|\$\(|<%")
# Outside quotes, code that says where the value comes from.
_CODE = re.compile(
    r"""
      :\w+ | @\w+ | &\w+
    | [(\[].* | [A-Za-z_][\w.:>?\-]*[(\[].*                            # a call or an index
    | (?:os|env|environ|process|self|this|settings|config|cfg|conf|ctx|context|args|options|opts|params|props|request|req|
         res|resp|response|form|data|body|user|row|event|payload|state|secrets|vault|var|local|values)(?:\.|->|\?\.|\[).*
    | [~$]?[A-Za-z_][\w$]*(?:(?:\.|->|::|\?\.)\{?[A-Za-z_]+\}?)+            # a.b.c
    | [A-Z]+\d{0,4}(?:_(?:[A-Z]+\d{0,4}|\d{1,2}))+                        # CONSTANT_NAME
    """,
    re.VERBOSE,
)
_NO_VALUES = """
    none null nil undefined true false yes no on off not and or the a an as in is it if for to of at by must should can will
    may was has be are with from required optional empty missing invalid valid incorrect wrong unset set unknown expired
    changed reset forgotten forgot hidden encrypted hashed redacted masked omitted removed protected disabled enabled
    string str text bytes byte char varchar int integer number bool boolean object any unicode array list dict map self
    secretstr string? str? const let new await async return type class default input value values field
    prompt stdin env environment n/a na tbd todo example sample same see below above here there
    ja nein kein keine leer fehlt pflicht pflichtfeld erforderlich siehe unten oben falsch ungültig abgelaufen vergessen
    geändert ändern zurücksetzen unbekannt wie folgt folgendermaßen anders so also immer der die das ein eine ist wird muss soll kann
    oui non aucun aucune vide requis requise obligatoire facultatif voir ci-dessous invalide expiré oublié modifié
    le la les un une est doit sera
    sí si ninguno ninguna vacío vacía obligatorio obligatoria requerido requerida opcional ver incorrecta inválida
    caducada olvidada el los las una es debe será
    base64 base32 sha1 sha256 sha-256 sha512 sha-512 md5 bcrypt scrypt argon2 argon2id pbkdf2 oauth oauth2 oauth2.0 saml2
    utf8 utf-8 ascii hs256 rs256 es256 aes256 aes-256 rsa2048 x509 x.509 http2 jwt s3 ec2 2fa mfa totp sso k8s win32 ipv4 ipv6
    """
_WORDS = frozenset(_NO_VALUES.split())
# In words between quotation marks, what nobody writes in a sentence.
_SPELLED = re.compile(r"(?=[^\W\d_]*\d)(?=\d*[^\W\d_])\w{4,}|\w+[@!$#&*+=?^~]\w[^\s.]*")
_NUMBERED = re.compile(r"(?:[a-z]{3,12} ){2,4}\d{1,6}")
_SAID_OF_IT = """
    least most minimum maximum min max length characters chars digits step line page version chapter section mindestens höchstens
    zeichen länge schritt seite zeile au moins caractères étape al menos caracteres paso
    """
_ABOUT_LENGTH = frozenset(_SAID_OF_IT.split())
_SIGNS = re.compile(r"[!@#$%^&*+=?~§€£|\\{}<>]")
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d")
_ONE_WORD = re.compile(r"[\w+/=.\-~:%!@#$^&*?§€£]+")
_TOKEN = re.compile(r"[A-Za-z0-9+/=_.\-~:%!@#$^&*]+")


def strength(value: str, *, quoted: bool) -> Strength:
    """How much a value looks like a secret. One with spaces is prose, unless a word in it could not be."""
    value = value.strip()
    if len(value) < 3 or value.casefold() in _WORDS or _STAND_IN.fullmatch(value):
        return Strength.NONE
    if _TEMPLATE.search(value) or PLACEHOLDER.search(value):
        return Strength.NONE
    if not quoted and _CODE.fullmatch(value):
        return Strength.NONE
    words = value.split()
    if len(words) > 1:
        return Strength.STRONG if any(_is_mixed(word) for word in words) else Strength.PLAIN
    letters, digits, signs = (bool(pattern.search(value)) for pattern in (_LETTER, _DIGIT, _SIGNS))
    if len(value) >= 16 and letters and digits and _TOKEN.fullmatch(value):
        return Strength.RANDOM
    if len(value) >= 5 and letters and digits:
        return Strength.STRONG
    return Strength.STRONG if len(value) >= 6 and signs and (letters or digits) else Strength.PLAIN


def is_one_word(value: str) -> bool:
    """No brackets, commas or spaces: not a pattern, a format or a list."""
    return bool(_ONE_WORD.fullmatch(value))


def is_made_up(value: str) -> bool:
    """Signs among the letters, or small and capital ones with several digits: no word, and hardly the name of anything."""
    cased = value != value.lower() and value != value.upper()
    return bool(_LETTER.search(value)) and (
        bool(_SIGNS.search(value)) or (cased and len(_DIGIT.findall(value)) > 1)
    )


def is_spelled(value: str) -> bool:
    """Several words with letters changed to digits or signs (`p@ss w0rd`), or with a number behind them (`blue whale 77`)."""
    words = value.casefold().split()
    if not 2 <= len(words) <= 5 or not _ABOUT_LENGTH.isdisjoint(words) or any(map(names_a_secret, words)):
        return False
    spelled = (word for word in value.split() if word.casefold() not in _WORDS)
    return bool(_NUMBERED.fullmatch(value)) or (len(words) <= 3 and any(map(_SPELLED.fullmatch, spelled)))


def names_a_secret(value: str) -> bool:
    """`accessToken`, `user_password`, `Passwort`: what would hold the secret, not the secret."""
    value = value[:-1] if value[-1:].isdigit() else value  # password1, password2
    if _DIGIT.search(value) or _SIGNS.search(value):
        return False
    return bool(_ONLY_STEMS.fullmatch(value) or (_STEM.search(value) and _HUMP.search(value)))


def _is_mixed(word: str) -> bool:
    cased = word != word.lower() and word != word.upper() and not word.istitle()
    return (
        len(word) >= 6
        and bool(_LETTER.search(word) and _DIGIT.search(word))
        and (cased or bool(_SIGNS.search(word)))
    )
