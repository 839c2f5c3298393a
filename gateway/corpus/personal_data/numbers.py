"""Numbers that stand for one person: bank accounts, cards, and what states give out. Check digits are verified."""

import re
from collections.abc import Iterator, Sequence
from types import ModuleType

from stdnum import iban, luhn
from stdnum.ch import ssn as ahv
from stdnum.de import idnr as steuer_id
from stdnum.es import dni, nie
from stdnum.fr import nir
from stdnum.gb import nhs

from gateway.corpus.masking import Span, windows
from gateway.corpus.personal_data.stretches import CELL_NAME, LABEL_REACH, Seen, Stretch, needles

_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ \u00a0\-]?[A-Z0-9]){11,30}(?![a-z0-9])")
_IBAN_LABELLED = re.compile(
    r"iban(?:[ \-]?(?:nr|no|nummer|number))?[\"'*]{0,3}[.:|=\s]{0,6}[\"'*]{0,3}"
    r"(?P<value>[a-z]{2}\d{2}(?:[ \u00a0\-]?[a-z]{0,4}\d[a-z0-9]{0,4}){3,10})",
    re.IGNORECASE,
)


def find_numbers(seen: Seen, stretches: Sequence[Stretch]) -> Iterator[Span]:
    text, labelled = seen.text, seen.mentions(_LABELS)
    accounts = "iban" in seen.low
    for start, end, digits in stretches:
        around = start - 12 if start > 12 else 0, end + 40
        if digits >= 10:
            yield from _ibans(text, *around)
        if digits >= 12:
            yield from _cards(text, *around)
        yield from _national_ids(text, around[0], end, digits)
        before = max(0, start - LABEL_REACH)
        if labelled:
            yield from _labelled_ids(text, before, end + 8)
        if accounts:
            for match in _IBAN_LABELLED.finditer(text, before, end + 40):
                yield Span(*match.span("value"), "iban")


def _national_ids(text: str, start: int, end: int, digits: int) -> Iterator[Span]:
    forms = _FORMS if digits >= 9 else ()
    if _CAPITAL.search(text, end, end + 2):
        forms = (*forms, *_LETTERED_FORMS)
    for form, checked in forms:
        for match in form.finditer(text, start, end + 14):
            if checked is None or checked.is_valid(match[0]):
                yield Span(*match.span(), "national_id")


def _ibans(text: str, start: int, end: int) -> Iterator[Span]:
    for match in _IBAN.finditer(text, start, end):
        length = _longest_iban(match[0])
        if length:
            yield Span(match.start(), match.start() + length, "iban")


def _longest_iban(written: str) -> int:
    """Words in capitals may follow without a sign between; the check digits say where the number ends."""
    for length in range(len(written), 14, -1):
        if written[length - 1] not in " -" and iban.is_valid(written[:length]):
            return length
    return 0


_CARD = re.compile(r"(?<![\w.,+/\-])\d(?:[ \-]?\d){11,18}(?![\w]|[.,\-/]\d)")
_CARD_CALLED = re.compile(r"(?:card|karte|carte|tarjeta|visa|maestro)[^\d\n]{0,24}\Z", re.IGNORECASE)
_CARD_GROUPS = re.compile(
    r"\d{12,19}|\d{4}([ \-])\d{4}\1\d{4}\1\d{1,4}(?:\1\d{1,3})?|\d{4}([ \-])\d{6}\2\d{4,5}"
)
_ISSUERS = re.compile(
    r"4(?:\d{15}|\d{18})|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}|"
    r"(?:6011|65\d\d|64[4-9]\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|35\d{14}|(?:1800|2131)\d{11}|(?:50|5[6-9]|6\d)\d{14}"
)


def _cards(text: str, start: int, end: int) -> Iterator[Span]:
    for match in _CARD.finditer(text, start, end):
        digits = re.sub(r"\D", "", match[0])
        # Article numbers have the lengths of rare cards, and every tenth has the right check digit.
        known = _ISSUERS.fullmatch(digits) or _CARD_CALLED.search(
            text, max(0, match.start() - 40), match.start()
        )
        if known and _CARD_GROUPS.fullmatch(match[0]) and luhn.is_valid(digits):
            yield Span(*match.span(), "credit_card")


# A form that only this number has, and the module that verifies its check digits, if any.
_Forms = tuple[tuple[re.Pattern[str], ModuleType | None], ...]
_FORMS: _Forms = (
    # social security in the United States
    (re.compile(r"(?<![\w\-])(?!000|666)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\w\-])"), None),
    # tax number of Germany
    (re.compile(r"(?<![\w.,\-])\d\d \d{3} \d{3} \d{3}(?![\w]|[ .,\-]\d)"), steuer_id),
    # social security in France
    (re.compile(r"(?<![\w.\-])[12] ?\d\d ?\d\d ?\d\d ?\d{3} ?\d{3} ?\d\d(?![\w]|[.,\-]\d)"), nir),
    # old-age insurance of Switzerland
    (re.compile(r"(?<![\w.])756\.\d{4}\.\d{4}\.\d\d(?![\w.])"), None),
    (re.compile(r"(?<![\w.\-])756\d{10}(?![\w]|[.,\-]\d)"), ahv),
    # health service of the United Kingdom
    (re.compile(r"(?<![\w.\-])\d{3} \d{3} \d{4}(?![\w]|[ .,\-]\d)"), nhs),
)
_LETTERED_FORMS: _Forms = (
    # Spain for its citizens, then for others
    (re.compile(r"(?<![\w.\-])\d{8}-?[A-Z](?![\w\-])"), dni),
    (re.compile(r"(?<![\w\-])[XYZ]-?\d{7}-?[A-Z](?![\w\-])"), nie),
    # pension number of Germany
    (re.compile(r"(?<!\w)\d\d ?(?:0[1-9]|[12]\d|3[01])(?:0[1-9]|1[0-2])\d\d ?[A-Z] ?\d{3}(?!\w)"), None),
    # the same for those born in Corsica
    (re.compile(r"(?<![\w.\-])[12] ?\d\d ?\d\d ?2[AB] ?\d{3} ?\d{3} ?\d\d(?![\w]|[.,\-]\d)"), nir),
    # and its national insurance (QQ is the official example)
    (
        re.compile(
            r"(?<!\w)(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-TW-Z][A-CEGHJ-NPQR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D](?!\w)"
        ),
        None,
    ),
)
_CAPITAL = re.compile(r"[ \-]?[A-Z]")
# What the number is called makes up for missing or wrong check digits.
_CALLED = re.compile(
    rf"""(?<![^\W_])(?:ssn|social[ _]security(?:[ _](?:number|no))?|steuer-?(?:id|identifikationsnummer|nummer)|(?<!ust-)(?<!ust\.)idnr|steuerid|
        (?:sozial|renten)versicherungs-?(?:nummer|nr)|sv-?nummer|svnr|sv-nr|ahv(?:-?(?:nummer|nr|n13))?|(?:n[uú]m[eé]ro\sde\s)?s[eé]curit[eé]\ssociale|nir|
        nif|nie|dni|n[uú]mero\sde\sla\sseguridad\ssocial|national\sinsurance(?:\s(?:number|no))?|nino|nhs(?:\s(?:number|no))?|
        passport(?:\s(?:number|no))?|reisepass(?:nummer|-?nr)?|personalausweis(?:nummer|-?nr)?|ausweis(?:nummer|-?nr)|passeport|pasaporte|
        identitätskarte(?:n?-?nummer|n?-?nr)?|(?:identity|id)[ ]card(?:\s(?:number|no))?|carte\s(?:nationale\s)?d['’]identité|
        (?:kranken)?versicherten-?(?:nummer|nr)|matrikel-?(?:nummer|nr)|pass-?nummer|utr|nuss|n[°ºo]\.?\sde\sla\sseguridad\ssocial|(?:num[ée]ro|n°)\sfiscal|
        driv(?:er'?s?|ing)\slicen[cs]e(?:\s(?:number|no))?|führerschein(?:nummer|-?nr)|permis\sde\sconduire|permiso\sde\sconducir|tax\sid|personalnummer)
        ["'*_]{{0,3}}[.:\#|=\s]{{1,6}}{CELL_NAME}(?:(?:is|ist|lautet|est|es|n[°º])\s)?["'*_]{{0,3}}
        (?!\d{{1,2}}[./\-][ ]?\d{{1,2}}[./\-][ ]?\d{{2,4}}(?!\d))
        (?P<value>(?=[A-Z0-9 .\-/]{{0,8}}\d)[A-Z0-9](?:[ .\-/]?[A-Z0-9]){{6,17}})(?![A-Za-z0-9])""",
    re.VERBOSE | re.IGNORECASE,
)
_LABELS = needles("ssn", "social", "steuer", "idnr", "versicherung", "sv-nummer", "svnr", "sv-nr", "ahv", "sécurité", "securite", "nir", "nif", "nie", "dni",
           "seguridad", "insurance", "nino", "nhs", "tax id", "personalnummer", "matrikel", "utr", "nuss", "fiscal")  # fmt: skip
_DOCUMENTS = needles("passport", "passeport", "pasaporte", "reisepass", "ausweis", "licen", "führerschein", "permis", "identitätskarte",
              "identity card", "id card", "identité")  # fmt: skip


def find_documents(seen: Seen) -> Iterator[Span]:
    """Passports and licences: letters and digits mixed, known only by what they are called."""
    for start, end in windows(seen.at(_DOCUMENTS), before=16, after=64, length=len(seen.text)):
        yield from _labelled_ids(seen.text, start, end)


def _labelled_ids(text: str, start: int, end: int) -> Iterator[Span]:
    for match in _CALLED.finditer(text, start, end):
        digits = sum(character.isdigit() for character in match["value"])
        # Passports mix letters in: of nine characters four may be digits.
        if digits >= 5 or (digits >= 3 and len(match["value"]) >= 8 and match["value"].isalnum()):
            yield Span(*match.span("value"), "national_id")


_PLATE = re.compile(
    r"""(?i:kennzeichen|licen[cs]e[ ]plate|(?:vehicle[ ])?registration(?:[ ](?:number|plate))?|immatriculation|matr[ií]cula)["'*_]{0,3}[.: |=]{1,4}
        (?P<value>[A-ZÄÖÜ]{1,3}[\- ][A-Z]{1,2}[ ]?\d{1,4}[EH]?|[A-Z]{2}[\- ]?\d{3}[\- ]?[A-Z]{2}|\d{4}[\- ]?[BCDFGHJ-NPRSTV-Z]{3}|
        [A-Z]{2}\d{2}[ ]?[A-Z]{3}|\d[A-Z]{3}\d{3}|[A-Z]{2}[ \-]?\d{3,6})(?![\w\-])""",
    re.VERBOSE,
)
_ACCOUNTS = needles("konto", "account n", "de compte", "de cuenta")
_CARD_CODES = needles("CVV", "CVC")
_PLATES = needles("kennzeichen", "plate", "registration", "immatriculation", "matrícula", "matricula")
_ACCOUNT = re.compile(
    r"""(?<!\w)(?:konto-?(?:nummer|nr\.?)|(?:bank[ ])?account[ ](?:no\.?|number)|n[°o]\.?[ ]de[ ]compte|n(?:úmero|[°º])[ ]de[ ]cuenta)["'*_]{0,3}[.: |=]{1,6}
        (?P<value>\d(?:[ \-]?\d){5,19})(?![\w\-])""",
    re.VERBOSE | re.IGNORECASE,
)
_CARD_CODE = re.compile(r"(?<!\w)(?:CVV2?|CVC2?)[\"']?[ ]?[: |=][ ]?[\"']?(?P<value>\d{3,4})(?!\w)")


def find_called(seen: Seen) -> Iterator[Span]:
    """Plates, bank accounts and codes of cards: nothing but their label tells them."""
    for pattern, at, kind in (
        (_PLATE, seen.at(_PLATES), "national_id"),
        (_ACCOUNT, seen.at(_ACCOUNTS), "iban"),
        (_CARD_CODE, seen.at_exactly(_CARD_CODES), "credit_card"),
    ):
        for start, end in windows(at, before=16, after=64, length=len(seen.text)):
            for match in pattern.finditer(seen.text, start, end):
                yield Span(*match.span("value"), kind)
