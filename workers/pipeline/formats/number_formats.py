"""What a sheet shows for a number, where that says more than the number: a share in percent, a code with its noughts, a unit.

No digit of a value is lost to it – shown are at least the places of the format – but a share, of which two are kept; and
thousands are not grouped, which every country does in its own way. Formats that scale, choose or divide are left alone.
"""

import re
from dataclasses import dataclass
from decimal import Decimal

# Of the formats that have a number instead of a code; those of money show what is money where the reader lives.
BUILT_IN = dict.fromkeys(("2", "4", "7", "8", "39", "40", "43", "44"), "0.00") | {"9": "0%", "10": "0.00%"}
_FIRST = re.compile(r'(?:"[^"]*"|\\.|[^;"\\])*', re.DOTALL)  # of the sections for positive, negative, nought
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^\]-]*)[^\]]*\]|\[(?P<bracket>[^\]]*)\]'
    r"|(?P<width>[_*].)|(?P<digits>General|[0#?][0#?,.]*)|(?P<other>.)",
    re.DOTALL,
)
_LONGEST = 255  # characters of a code, as a sheet has it
_PLACES_OF_SHARE = 2
_TOO_LARGE = 1e15  # to know all its digits


@dataclass(frozen=True, slots=True)
class NumberFormat:
    pieces: tuple[str, ...]  # literal and digits in turn, beginning and ending with a literal
    is_share: bool

    def text(self, value: float) -> str:
        """What is shown; '' where the value says as much."""
        if not abs(value) < _TOO_LARGE:
            return ""
        number = Decimal(f"{value:.15g}")
        shown = self._padded(number) if self.is_code else self._number(number)
        return " ".join(shown.split())

    @property
    def is_code(self) -> bool:
        """A place for each digit, and a nought where there is none: a postcode, the number of an article."""
        runs = self.pieces[1::2]
        return sum(map(len, runs)) > 1 and not "".join(runs).strip("0")

    def _padded(self, number: Decimal) -> str:
        if number != number.to_integral_value():
            return ""
        rest = f"{abs(number):f}".zfill(sum(map(len, self.pieces[1::2])))
        filled: list[str] = []
        for place in range(len(self.pieces) - 1, -1, -1):
            words = self.pieces[place]
            if place % 2:  # digits are filled in from the right; the first of the places take what is left
                start = len(rest) - len(words) if place > 1 else 0
                rest, words = rest[:start], rest[start:]
            filled.append(words)
        return ("-" if number < 0 else "") + "".join(reversed(filled))

    def _number(self, number: Decimal) -> str:
        before, digits, after = self.pieces
        least = digits.partition(".")[2].count("0")
        if self.is_share:
            number = round(number * 100, max(least, _PLACES_OF_SHARE))
        whole, _, places = f"{number:f}".partition(".")
        places = places.rstrip("0").ljust(least, "0")
        return f"{before}{whole}{'.' if places else ''}{places}{after}"


def format_of(code: str) -> NumberFormat | None:
    """None for what shows a number as it is, and for what is beyond this: conditions, fractions, dates, thousands as units."""
    pieces = [""]
    is_share = False
    first = _FIRST.match(code[:_LONGEST])
    for found in _TOKEN.finditer(first[0] if first else ""):
        kind, words = found.lastgroup, found[found.lastgroup or 0]
        if kind == "digits":
            pieces += [words, ""]
        elif kind in {"quoted", "escaped", "currency"}:
            pieces[-1] += words
        elif kind == "other":
            if words.isalpha() or words in "/@":
                return None
            is_share |= words == "%"
            pieces[-1] += words
        elif kind == "bracket" and words[:1] in {"<", ">", "="}:
            return None
    shown = NumberFormat(tuple(pieces), is_share)
    return shown if _says_more(shown) else None


def _says_more(shown: NumberFormat) -> bool:
    runs, literals = shown.pieces[1::2], "".join(shown.pieces[::2])
    if any(run.endswith(",") or ",." in run for run in runs):  # in thousands
        return False
    if shown.is_code:
        return not shown.is_share
    return len(runs) == 1 and (bool(literals.strip()) or "0" in runs[0].partition(".")[2])
