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
_BLANKS = re.compile(r"\s+")
_LONGEST = 255  # characters of a code, as a sheet has it
_PLACES_OF_SHARE = 2
_TOO_LARGE = 1e15  # to know all its digits


@dataclass(frozen=True, slots=True)
class NumberFormat:
    literals: tuple[str, ...]  # around the digits, one more than of these
    digits: tuple[str, ...]
    least: int  # places behind the point
    is_share: bool
    is_code: (
        bool  # a place for each digit, and a nought where there is none: a postcode, the number of an article
    )

    def text(self, value: float) -> str:
        """What is shown; '' where the value says as much."""
        if not abs(value) < _TOO_LARGE:
            return ""
        if self.is_code:
            return self._padded(int(value)) if value == int(value) else ""
        if self.is_share:
            shown = f"{value * 100:.{max(self.least, _PLACES_OF_SHARE)}f}"
        else:
            shown = f"{value:.15g}"
            if "e" in shown:
                shown = f"{Decimal(shown):f}"
        whole, _, places = shown.partition(".")
        places = places.rstrip("0").ljust(self.least, "0")
        return f"{self.literals[0]}{whole}{'.' if places else ''}{places}{self.literals[1]}"

    def _padded(self, number: int) -> str:
        rest = str(abs(number)).zfill(sum(map(len, self.digits)))
        filled = self.literals[-1]
        for place in range(len(self.digits) - 1, -1, -1):
            # Filled in from the right; the first of the places take what is left.
            start = len(rest) - len(self.digits[place]) if place else 0
            rest, filled = rest[:start], self.literals[place] + rest[start:] + filled
        return f"-{filled}" if number < 0 else filled


def format_of(code: str) -> NumberFormat | None:
    """None for what shows a number as it is, and for what is beyond this: conditions, fractions, dates, thousands as units."""
    literals, digits = [""], list[str]()
    is_share = False
    first = _FIRST.match(code[:_LONGEST])
    for found in _TOKEN.finditer(first[0] if first else ""):
        kind, words = found.lastgroup, found[found.lastgroup or 0]
        if kind == "digits":
            digits.append(words)
            literals.append("")
        elif kind in {"quoted", "escaped", "currency"}:
            literals[-1] += words
        elif kind == "other":
            if words.isalpha() or words in "/@":
                return None
            is_share |= words == "%"
            literals[-1] += words
        elif kind == "bracket" and words[:1] in {"<", ">", "="}:
            return None
    return _made(literals, digits, is_share=is_share)


def _made(literals: list[str], digits: list[str], *, is_share: bool) -> NumberFormat | None:
    if not digits or any(run.endswith(",") or ",." in run for run in digits):  # in thousands
        return None
    places = "".join(digits)
    is_code = len(places) > 1 and not places.strip("0")
    least = places.partition(".")[2].count("0")
    literals = [_BLANKS.sub(" ", words) for words in literals]
    literals[0], literals[-1] = literals[0].lstrip(), literals[-1].rstrip()
    if is_share if is_code else len(digits) > 1 or not (least or any(literals)):
        return None
    return NumberFormat(tuple(literals), tuple(digits), least, is_share, is_code)
