"""Where someone can be reached: e-mail addresses, telephone numbers, network addresses."""

import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence

import phonenumbers
from phonenumbers import PhoneNumber, PhoneNumberType

from gateway.corpus.masking import Span, positions, windows
from gateway.corpus.personal_data.stretches import CELL_NAME, GAP, LABEL_REACH, Seen, Stretch, needles

_EMAIL = re.compile(
    r"(?<![\w.+\-])\w(?:[\w.+%&'\-]{0,62}[\w+\-])?@(?:\w(?:[\w\-]{0,61}\w)?\.){1,8}(?P<top>[^\W\d_]{2,24})(?![\w@])"
)
_IN_ADDRESS = re.compile(
    r"(?<![\w%])\w[\w.+\-]{0,62}%40(?:[\w\-]{1,63}\.){1,8}[^\W\d_]{2,24}(?!\w)"
)  # of a link
_SPELLED_OUT = re.compile(
    r"\b\w[\w.+\-]{0,63}\s?[\[({](?:at|ät|arroba|chez)[\])}]\s?\w[\w\-]{0,62}"
    r"(?:\s?(?:\.|[\[({](?:dot|punkt|point|punto)[\])}])\s?\w[\w\-]{0,62}){1,5}",
    re.IGNORECASE,
)
_FILES = {"png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "ts", "tsx", "json", "html"}  # logo@2x.png


_SPELLED = needles("(at)", "[at]", "{at}", "(ät)", "[ät]", "(arroba)", "[arroba]", "(chez)")
_ENCODED = needles("%40")


def find_emails(seen: Seen) -> Iterator[Span]:
    text = seen.text
    for start, end in windows(positions(text, ("@",)), before=80, after=300, length=len(text)):
        for match in _EMAIL.finditer(text, start, end):
            if match["top"].lower() not in _FILES and not match[0].startswith("git@"):
                yield Span(*match.span(), "email")
    for start, end in windows(seen.at(_ENCODED), before=80, after=300, length=len(text)):
        for match in _IN_ADDRESS.finditer(text, start, end):
            yield Span(*match.span(), "email")
    for start, end in windows(seen.at(_SPELLED), before=80, after=300, length=len(text)):
        for match in _SPELLED_OUT.finditer(text, start, end):
            yield Span(*match.span(), "email")


_EXTENSION = r"(?:\s?(?:x|ext\.?|extension|poste|dw|durchwahl)\s?\d{1,6})?(?!\w)"
_ABROAD = re.compile(
    rf"(?<![\w.+])(?P<number>(?:\+|00)(?=[1-9]){GAP}?\d(?:{GAP}{{0,3}}\d){{6,60}}+){_EXTENSION}"
)
_AT_HOME = re.compile(
    rf"(?<![\w.,:/\-+#%`])(?P<number>\(?0[1-9](?:{GAP}{{0,3}}\d){{5,60}}+){_EXTENSION}(?!`|[.,:/]\d)",
    re.IGNORECASE,
)
_AMERICAN = re.compile(
    rf"(?<![\w.\-+])(?:1[ .\-])?(?:\([2-9]\d\d\) ?|[2-9]\d\d[\-.])[2-9]\d\d[\-.]\d{{4}}{_EXTENSION}(?!-|\.\d)",
    re.IGNORECASE,
)
_SPANISH = re.compile(r"(?<![\w.,\-+])[6-9]\d\d \d\d \d\d \d\d(?![\w]|[ .,\-]\d)")
_CALLED = re.compile(
    rf"""(?<![^\W_])(?:tele(?:ph|f)on\w*|tel|phone|fon|fax|mobil\w*|handy|cell|tél(?:éphone)?|portable|móvil|teléfono|tfno|
         whatsapp|rückruf|durchwahl|call|appelez|llam\w+|anrufen)(?:[ _\-]?(?:number|nummer|nr|no|num))?
         ["'*_]{{0,3}}[.:|=\s]{{0,4}}{CELL_NAME}["'*_]{{0,3}}(?:(?:us|me|at|on|unter|au|al|is|ist|lautet|est|es)\s){{0,2}}\s?
         (?P<number>\(?\d(?:{GAP}{{0,3}}\d){{5,60}}+){_EXTENSION}(?![.,:]\d)""",
    re.IGNORECASE | re.VERBOSE,
)
_CALLS = needles("tel", "tél", "phon", "fon", "fax", "mobil", "handy", "cell", "portable", "móvil", "tfno", "whatsapp", "rückruf",
          "durchwahl", "call", "appel", "llam", "anrufen")  # fmt: skip
_NO_NUMBER = re.compile(
    r"\(?(?:\d{1,2}[./\- ] ?\d{1,2}[./\- ] ?(?:19|20)?\d\d|(?:19|20)\d\d[./\-]\d\d[./\-]\d\d)\)?"  # a date
    r"|\d{5}-\d{4}|\+\d+\.\d+"  # an American postcode, a decimal
)
_DATED = re.compile(
    r"\(?(?:\d{1,2}[./\-] ?\d{1,2}[./\-] ?(?:19|20)\d\d|(?:19|20)\d\d[./\-]\d\d[./\-]\d\d)(?!\d)"
)
_REGIONS = ("DE", "FR", "CH", "GB", "AT")


def find_phones(seen: Seen, stretches: Sequence[Stretch]) -> Iterator[Span]:
    text, called = seen.text, seen.mentions(_CALLS)
    for start, end, digits in stretches:
        # Each form has a mark that is cheap to see; most numbers have none of them.
        around = max(0, start - 2), end + 16
        if text[start] == "0" or "+" in text[around[0] : end]:
            yield from _numbers(_ABROAD, text, *around, _is_number_abroad)
        if digits >= 9 and "0" in text[start:end]:
            yield from _numbers(_AT_HOME, text, *around, _is_number_at_home)
        if digits >= 9 and end - start > digits:
            for pattern in (_AMERICAN, _SPANISH):
                for match in pattern.finditer(text, *around):
                    yield Span(*match.span(), "phone")
        if called:
            yield from _numbers(_CALLED, text, max(0, start - LABEL_REACH), end + 16, _is_number_called)


def _numbers(
    pattern: re.Pattern[str], text: str, start: int, end: int, is_number: Callable[[str], bool]
) -> Iterator[Span]:
    """What `pattern` takes may be several numbers with spaces between: the longest beginning that is one counts."""
    while match := pattern.search(text, start, end):
        written = match["number"]
        if date := _DATED.match(written):
            start = match.start("number") + date.end()
            continue
        start = match.start("number") + 1
        if is_number(written):
            yield Span(match.start("number"), match.end(), "phone")
            start = match.end()
            continue
        for space in reversed([at for at, character in enumerate(written) if character.isspace()]):
            if is_number(written[:space]):
                yield Span(match.start("number"), match.start("number") + space, "phone")
                start = match.start("number") + space
                break


def _is_number_abroad(written: str) -> bool:
    if _NO_NUMBER.fullmatch(written) or _count_digits(written) > 17:
        return False
    plus = written.startswith("+")
    number = _parse("+" + written.replace("(0)", "")[1 if plus else 2 :], None)
    if number is None:
        return False
    # With a plus even a made-up number is meant as one; two zeros may be anything.
    return phonenumbers.is_possible_number(number) if plus else phonenumbers.is_valid_number(number)


def _is_number_at_home(written: str) -> bool:
    digits = _count_digits(written)
    if not 9 <= digits <= 15 or _NO_NUMBER.fullmatch(written):
        return False
    grouped = len(written) > digits
    for region in _REGIONS:
        number = _parse(written, region)
        if number is None or not phonenumbers.is_valid_number(number):
            continue
        if grouped or phonenumbers.number_type(number) == PhoneNumberType.MOBILE:
            return True
    return False


def _is_number_called(written: str) -> bool:
    return 6 <= _count_digits(written) <= 15 and not _NO_NUMBER.fullmatch(written)


def _count_digits(written: str) -> int:
    return sum(map(str.isdigit, written))


def _parse(written: str, region: str | None) -> PhoneNumber | None:
    try:
        return phonenumbers.parse(written, region)
    except phonenumbers.NumberParseException:
        return None


_IPV4 = re.compile(r"\d(?<!\d\d)\d{0,2}(?:\.\d{1,3}){3}(?!\.?\w|-\w)")
_IPV6 = re.compile(r"(?<![\w:.])(?:[0-9a-fA-F]{1,4}:{1,2}){2,7}[0-9a-fA-F]{0,4}(?![\w:])")
_IPV6_LONG = re.compile(r"[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){7}")
_ADDRESSED = re.compile(
    r"(?:\bip|host|addr|server|client|from|von|login|ping|adresse|dirección|//|@)\W{0,4}\w{0,8}\W{0,3}\Z",
    re.IGNORECASE,
)
_LOGGED = re.compile(r" - |:\d{2,5}\b")


def find_ip_addresses(text: str) -> Iterator[Span]:
    for match in _IPV4.finditer(text):
        start, end = match.span()
        before = text[max(0, start - 24) : start]
        if before and (before[-1].isalnum() or before[-1] in ".-=/_") and not before.endswith("//"):
            continue  # a part of a version or a path
        if _is_host(match[0]) and (
            int(match[0].partition(".")[0]) >= 32 or _ADDRESSED.search(before) or _LOGGED.match(text, end)
        ):
            yield Span(start, end, "ip_address")
    for start, end in windows(positions(text, ("::",)), before=40, after=45, length=len(text)):
        yield from _ipv6(text, start, end)
    if text.count(":") >= 7:
        for match in _IPV6_LONG.finditer(text):
            yield from _ipv6(text, *match.span())


def _ipv6(text: str, start: int, end: int) -> Iterator[Span]:
    for match in _IPV6.finditer(text, start, end):
        written = match[0].rstrip(":")
        if any(character.isdigit() for character in written) and _is_host(written):
            yield Span(match.start(), match.start() + len(written), "ip_address")


def _is_host(written: str) -> bool:
    """Not a mask, a network or this machine itself. (Low numbers are versions, unless they are called an address.)"""
    try:
        address = ipaddress.ip_address(written)
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified or address.is_multicast:
        return False
    octets = address.packed
    return isinstance(address, ipaddress.IPv6Address) or (octets[0] not in {0, 255} and octets[3] != 0)
