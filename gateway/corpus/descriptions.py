"""What describes a document is masked like its text: a file may be called `password hunter2.txt` or carry its author.

Titles, types, tags and metadata lose what the text would lose; an address keeps its way and loses only secrets. The source's own
id is left as it is: it must still name the same thing at the next sync.
"""

import mimetypes
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from gateway.corpus.masking import Span, value_tag
from gateway.corpus.secrets import find_secrets

_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,5}$")
_FIELDS = ("title", "uri", "type", "tags", "metadata")
_ROUNDS = 5  # taking something out can bring something else to light, but not for ever


class Descriptions:
    """Masks the words about one document."""

    def __init__(self, key: bytes, *, personal_data: bool, allowed: Sequence[str]) -> None:
        self._key = key
        self._personal_data = personal_data
        self._allowed = frozenset(allowed)

    def masked(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """`title uri type tags metadata`, as far as they are there and change."""
        # One look at everything is cheap, and nearly always all there is to do.
        words = "\n".join(_strings([fields.get(name) for name in _FIELDS]))
        if self._without_secrets(words) == words and not self._personal_data:
            return {}
        masks: dict[str, Callable[[Any], Any]] = {
            "title": self.title,
            "uri": self._without_secrets,
            "type": self.text,
            "tags": lambda tags: [self.text(tag) for tag in tags],
            "metadata": self._value,
        }
        changed = {name: masks[name](fields[name]) for name in masks if fields.get(name)}
        return {name: value for name, value in changed.items() if value != fields[name]}

    def title(self, title: str) -> str:
        """Often a file name: its ending says what it is and must survive. What merely looks like one (`.ch` of an address, the
        end of a password) must not.
        """
        suffix = _SUFFIX.search(title)
        if suffix and mimetypes.guess_type(f"file{suffix.group()}", strict=False)[0]:
            title = self.text(title[: suffix.start()]) + suffix.group()
        return self.text(title)

    def text(self, text: str) -> str:
        text = self._without_secrets(text)
        if self._personal_data:
            from gateway.corpus.personal_data import canonical, find_personal_data  # noqa: PLC0415 - loads its patterns

            for _ in range(_ROUNDS):
                found = [span for span in find_personal_data(text) if span.kind not in self._allowed]
                if not found:
                    break
                text = self._put(text, found, lambda span, value: (span.kind, canonical(span.kind, value)))
                text = self._without_secrets(text)
        return text

    def _without_secrets(self, text: str) -> str:
        for _ in range(_ROUNDS):
            found = find_secrets(text)
            if not found:
                break
            text = self._put(text, found, lambda span, value: (f"secret:{span.kind}", value))
        return text

    def _put(self, text: str, spans: list[Span], named: Callable[[Span, str], tuple[str, str]]) -> str:
        for span in reversed(spans):
            name, meant = named(span, text[span.start : span.end])
            text = f"{text[: span.start]}[{name}:{value_tag(self._key, meant)}]{text[span.end :]}"
        return text

    def _value(self, value: Any) -> Any:
        """Strings anywhere inside; a name says what its value is (`password: x`), so both are looked at together."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._value(item) for item in cast("list[Any]", value)]
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            return {self.text(name): self._named(name, item) for name, item in members.items()}
        return value

    def _named(self, name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [self._named(name, item) for item in cast("list[Any]", value)]
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return self._value(value)
        written, label = self.text(str(value)), f"{name}: "
        together = self.text(label + written)
        masked = together.removeprefix(label) if together.startswith(label) else written
        return value if masked == str(value) else masked


def _strings(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, str | int | float):
        yield str(value)
        if name:
            yield f"{name}: {value}"
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _strings(item, name)
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield key
            yield from _strings(item, key)
