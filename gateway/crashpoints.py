"""Named places where a test may kill the process, to prove that nothing is lost there.

`crash_point(name)` does nothing unless `CATCHMENT_CRASH_POINTS` lists the name, optionally with the share of passes
that die (`store.inside=0.02`). The registry below is the whole list; a test proves each name is used and exercised.
"""

import os
import random
import signal

CRASH_POINTS: dict[str, str] = {
    "request.before_commit": "K1: a request was understood, nothing is committed",
    "request.after_commit": "K2: committed, the bell not yet rung",
    "relay.after_ring": "K3: the bell rang, the outbox row is still there",
    "job.after_claim": "K4: a worker holds the lease and has done nothing",
    "parser.child": "K12: inside the parser child",
    "embed.before_commit": "vectors came back from the embedder, not yet stored",
    "embed.after_commit": "a batch of vectors is stored, its document is not",
    "store.inside": "K6: inside the transaction that replaces a document's chunks",
    "store.after_commit": "K8: the document is indexed, the runner has not noticed",
    "token.after_rotation": "K9: the vendor rotated the tokens, they are not yet stored",
    "erase.between_batches": "K10: part of an erasure is committed",
    "sync.before_page_commit": "K5: the vendor answered with a page, nothing of it is committed",
    "sync.inside_page": "K6: inside the transaction of a page, its items written, its cursor not",
    "sync.after_page_commit": "K7: a page and its cursor are committed, the next is not asked for",
    "fetch.after_download": "downloads came, nothing of them is handed over",
    "migrate.inside": "K11: inside a migration",
}

_armed: dict[str, float] | None = None


def _arm() -> dict[str, float]:
    armed: dict[str, float] = {}
    for part in os.environ.get("CATCHMENT_CRASH_POINTS", "").split(","):
        name, _, share = part.partition("=")
        if name:
            armed[name] = float(share or 1)
    unknown = set(armed) - set(CRASH_POINTS)
    if unknown:
        raise ValueError(f"no such crash point: {', '.join(sorted(unknown))}")
    return armed


def crash_point(name: str) -> None:
    global _armed  # noqa: PLW0603 - read once per process, on the first pass
    if _armed is None:
        _armed = _arm()
    share = _armed.get(name)
    if share is not None and random.random() < share:  # noqa: S311 - chance, not secrecy
        os.write(2, f"crash point {name}\n".encode())  # the last word: who died where can be counted
        os.kill(os.getpid(), signal.SIGKILL)
