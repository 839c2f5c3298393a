"""The stage between extraction and chunking, where secrets and personal data leave the text (promise 10).

Secrets always go; personal data go when the document or its mandate asks. It runs inside the parser child, so the unmasked
text never reaches the worker. Whatever is masked goes through `Extracted.replace_spans`, which keeps units, pages and
boxes right. The looks are repeated until they find nothing, so that neutralising a second time changes nothing.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.corpus.masking import value_tag
from gateway.corpus.personal_data import canonical, find_personal_data
from gateway.corpus.personal_data import prepare as prepare_personal_data
from gateway.corpus.secrets import find_secrets
from gateway.corpus.secrets import prepare as prepare_secrets
from workers.pipeline.extracted import Extracted, Unit

# Places in a locator that must still resolve; whatever else a caller or a format puts there is words of the document.
_MUST_RESOLVE = frozenset(
    {
        "kind",
        "url",
        "path",
        "cssPath",
        "cssPathEnd",
        "messageId",
        "part",
        "astPath",
        "symbol",
        "pointer",
        "cellRange",
        "ticketId",
        "commentId",
    }
)
_WORDS = re.compile(r"[^\W_]+")


@dataclass(slots=True)
class Neutralised(Extracted):
    """What is kept, and how many values of which kind were taken out; never the values."""

    secrets: dict[str, int] = field(default_factory=dict[str, int])
    personal_data: dict[str, int] = field(default_factory=dict[str, int])


def neutralise(extracted: Extracted, *, policy: Mapping[str, Any]) -> Neutralised:
    """`policy`: `placeholder_key` (`masking.placeholder_key`), `neutralize`, `allow_personal_data` (kinds left in).

    Without a key nothing can be masked: a document with findings then fails instead of being kept as it is.
    """
    mask = _Mask(policy)
    secrets: Counter[str] = Counter()
    personal: Counter[str] = Counter()
    while True:
        if found := mask.secrets(extracted.text):
            secrets.update(kind for _, _, kind, _ in found)
        elif found := mask.personal_data(extracted.text):
            personal.update(kind for _, _, kind, _ in found)
        else:
            break
        extracted = extracted.replace_spans(
            [(start, end, placeholder) for start, end, _, placeholder in found]
        )
    units = [_masked_unit(unit, mask) for unit in extracted.units]
    attachments = [replace(item, title=mask.name(item.name)) for item in extracted.attachments]
    return Neutralised(
        extracted.text,
        units,
        extracted.page_count,
        extracted.warnings,
        dict(secrets),
        dict(personal),
        attachments=attachments,
    )


def prepare() -> None:
    """Once in the fork server, so that no child loads the patterns again."""
    prepare_secrets()
    prepare_personal_data()


def _masked_unit(unit: Unit, mask: "_Mask") -> Unit:
    locator = {key: mask.word(key, value) for key, value in unit.locator.items()}
    heading_path = mask.text(unit.heading_path)
    if heading_path == unit.heading_path and locator == unit.locator:
        return unit
    return replace(unit, heading_path=heading_path, locator=locator)


class _Mask:
    """Finds and names what must go, for one document."""

    def __init__(self, policy: Mapping[str, Any]) -> None:
        key: str | bytes = policy.get("placeholder_key", b"")
        self._key = key.encode() if isinstance(key, str) else key
        self._neutralize = bool(policy.get("neutralize"))
        self._allowed = frozenset[str](policy.get("allow_personal_data", ()))
        self._known: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._words: dict[str, str] = {}

    def secrets(self, text: str) -> list[tuple[int, int, str, str]]:
        return [
            (start, end, kind, self._placeholder(f"secret:{kind}", text[start:end], text[start:end]))
            for start, end, kind in find_secrets(text)
        ]

    def personal_data(self, text: str) -> list[tuple[int, int, str, str]]:
        if not self._neutralize:
            return []
        return [
            (start, end, kind, self._placeholder(kind, text[start:end], canonical(kind, text[start:end])))
            for start, end, kind in find_personal_data(text)
            if kind not in self._allowed
        ]

    def text(self, text: str) -> str:
        """A heading: also without what was recognised elsewhere in the document."""
        if text not in self._texts:
            masked = text
            for value, placeholder in self._known.items():
                masked = masked.replace(value, placeholder)
            while found := self.secrets(masked) or self.personal_data(masked):
                masked = _put(masked, found)
            self._texts[text] = masked
        return self._texts[text]

    def name(self, name: str) -> str:
        """Of a file inside: without what was recognised in the mail, however the words are joined (`CV_Anna_Muster.pdf`)."""
        low = name.casefold()
        for value, placeholder in self._known.items():
            name = name.replace(value, placeholder)
            words = _WORDS.findall(value)
            if words and all(word.casefold() in low for word in words):
                joined = re.compile(r"[\W_]{0,3}".join(map(re.escape, words)), re.IGNORECASE)
                name = joined.sub(placeholder, name)  # of hex digits and a kind: nothing in it is a reference
        return name

    def word(self, key: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if key not in _MUST_RESOLVE:
            return self.text(value)
        if value not in self._words:  # the same in unit after unit
            masked = value
            while found := self.secrets(masked):
                masked = _put(masked, found)
            self._words[value] = masked
        return self._words[value]

    def _placeholder(self, name: str, written: str, meant: str) -> str:
        if not self._key:
            raise ValueError("there is something to mask, but policy['placeholder_key'] is missing")
        placeholder = f"[{name}:{value_tag(self._key, meant)}]"
        if len(written) >= 6:
            self._known[written] = placeholder
        return placeholder


def _put(text: str, found: list[tuple[int, int, str, str]]) -> str:
    return Extracted(text, []).replace_spans([(start, end, mark) for start, end, _, mark in found]).text
