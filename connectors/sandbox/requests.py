"""What was asked of a sandbox: the proof behind "no download", "one refresh", "so many requests"."""

import re
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

KEPT = 50_000


class RequestLog:
    def __init__(self) -> None:
        self._entries: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self.total = 0

    def add(
        self,
        *,
        method: str,
        path: str,
        query: str,
        route: str,
        status: int,
        size: int,
        at: float,
        took: float,
    ) -> None:
        """`route` is the handler's name: the kind of request, whatever ids are in its path. `at` counts seconds from some
        moment on, for comparing. No headers, no bodies.
        """
        self.total += 1
        self._entries.append(
            {
                "number": self.total,
                "method": method,
                "path": path,
                "query": query,
                "route": route,
                "status": status,
                "bytes": size,
                "at": at,
                "took": took,
            }
        )

    def described(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Filtered by `path` (a regular expression), `route`, `status`, `since` (a number); the last `limit` in full."""
        path = re.compile(query.get("path", ""))
        chosen = [
            entry
            for entry in self._entries
            if path.search(f"{entry['path']}?{entry['query']}")
            and query.get("route") in (None, entry["route"])
            and query.get("status") in (None, str(entry["status"]))
            and entry["number"] > int(query.get("since", 0))
        ]
        return {
            "total": self.total,
            "count": len(chosen),
            "byStatus": Counter(str(entry["status"]) for entry in chosen),
            "byRoute": Counter(entry["route"] for entry in chosen),
            "byPath": Counter(f"{entry['method']} {entry['path']}" for entry in chosen),
            "requests": chosen[-int(query.get("limit", 200)) :],
        }

    def clear(self) -> None:
        self._entries.clear()
        self.total = 0
