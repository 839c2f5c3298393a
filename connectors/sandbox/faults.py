"""Bad days on order: what should go wrong, how often, and for which requests."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# These the framework does for every vendor; every other kind is the vendor's own and is taken where it happens.
ANSWERED = ("throttle", "server_error", "unauthorized")
BENT = ("slow", "cut_json", "drop")


@dataclass(kw_only=True)
class Fault:
    """`times` None is for ever. `after` lets so many matching requests pass first; `every` hits each n-th after that."""

    kind: str
    times: int | None = 1
    path: str = ""  # a regular expression, searched in the path with its query
    method: str = ""
    after: int = 0
    every: int = 1
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    seen: int = 0
    hits: int = 0

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "Fault":
        own = {"kind", "times", "path", "method", "after", "every"}
        known = {name: value for name, value in fields.items() if name in own}
        fault = cls(**known, options={name: value for name, value in fields.items() if name not in own})
        # Here, where somebody hears of it, and not at the next request of whoever is syncing.
        if fault.every < 1 or fault.after < 0 or (fault.times is not None and fault.times < 1):
            raise ValueError("times and every are 1 or more, after is 0 or more")
        try:
            re.compile(fault.path)
        except re.error as error:
            raise ValueError(f"path is no regular expression: {error}") from error
        return fault

    @property
    def spent(self) -> bool:
        return self.times is not None and self.hits >= self.times

    def strikes(self, method: str, path: str) -> bool:
        if self.spent or (self.method and self.method != method) or not re.search(self.path, path):
            return False
        self.seen += 1
        if self.seen <= self.after or (self.seen - self.after) % self.every:
            return False
        self.hits += 1
        return True

    def described(self) -> dict[str, Any]:
        return {"kind": self.kind, "times": self.times, "path": self.path, "hits": self.hits, **self.options}


class Faults:
    def __init__(self) -> None:
        self._waiting: list[Fault] = []

    def add(self, fault: Fault) -> None:
        self._waiting.append(fault)

    def take(self, *kinds: str, path: str = "", method: str = "") -> Fault | None:
        """The first fault of these kinds that strikes this request. What is used up is forgotten."""
        for fault in self._waiting:
            if fault.kind in kinds and fault.strikes(method, path):
                self._waiting = [each for each in self._waiting if not each.spent]
                return fault
        return None

    def clear(self) -> None:
        self._waiting = []

    def described(self) -> list[dict[str, Any]]:
        return [fault.described() for fault in self._waiting]
