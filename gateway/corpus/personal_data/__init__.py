"""Which parts of a text are personal data, by patterns and check digits in four languages; no model, nothing fetched.

Patterns find what has a form or is announced. They do not find a person in running text: what that means for a mandate
that must not index personal data is said in the decision on personal data patterns in `wiki/decisions/`.
"""

import re

from gateway.corpus.masking import Span as PersonalSpan
from gateway.corpus.masking import as_seen, echoes, settle
from gateway.corpus.personal_data.contacts import find_emails, find_ip_addresses, find_phones
from gateway.corpus.personal_data.numbers import find_called, find_documents, find_numbers
from gateway.corpus.personal_data.people import find_addresses, find_births, find_names
from gateway.corpus.personal_data.stretches import Seen, digit_stretches
from gateway.corpus.personal_data.writers import find_writers

__all__ = ["KINDS", "PersonalSpan", "canonical", "find_personal_data", "prepare"]

# From the surest to the vaguest: where two overlap, the first kind names the whole.
KINDS = (
    "email",
    "iban",
    "credit_card",
    "national_id",
    "phone",
    "ip_address",
    "date_of_birth",
    "address",
    "person",
)
_RANKS = {kind: rank for rank, kind in enumerate(KINDS)}
_WORDS = re.compile(r"\w+")


def find_personal_data(text: str) -> list[PersonalSpan]:
    """Where personal data are, in order, not overlapping."""
    return as_seen(text, _find)


def _find(text: str) -> list[PersonalSpan]:
    seen = Seen(text)
    stretches = digit_stretches(text)
    spans = [
        *find_emails(seen),
        *find_numbers(seen, stretches),
        *find_documents(seen),
        *find_called(seen),
        *find_phones(seen, stretches),
        *find_ip_addresses(text),
        *find_births(seen),
        *find_addresses(seen),
        *find_names(seen),
        *find_writers(seen),
    ]
    if not spans:
        return []
    settled = settle(text, spans, _RANKS)
    names = [span for span in settled if span.kind == "person"]
    return settle(text, [*settled, *echoes(text, names, _is_full_name)], _RANKS)


def canonical(kind: str, value: str) -> str:
    """One form of a value however it is written, so that the same address or number gets the same placeholder."""
    if kind in {"email", "person", "address"}:
        return " ".join(value.split()).casefold()
    plain = re.sub(r"[\W_]", "", value.replace("(0)", "")).upper()
    return plain.removeprefix("00") if kind == "phone" else plain


def prepare() -> None:
    """Have the tables of telephone regions and banks read once, before processes are forked."""
    find_personal_data("0999 999 999 99, +1 415 555 0132, +34 612 345 678, DE89 3704 0044 0532 0130 00")


def _is_full_name(value: str) -> bool:
    return len(_WORDS.findall(value)) >= 2
