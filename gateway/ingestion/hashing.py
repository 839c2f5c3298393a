"""Content hashes: a pure function of what the content is – type, data, order – and of nothing else.

No id, locator, title, time or file name enters the hash. A per-run value in it would make every run look new, which is how
duplicate detection silently stops working.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping

# Raise when extraction or chunking changes its output: everything is then re-indexed, by chunk diff, on its next request.
PIPELINE_VERSION = 6


def byte_hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def content_hash(parts: Iterable[tuple[str, bytes]]) -> bytes:
    """`parts` are `(mime type, bytes)` in order; lengths are hashed too, so that no two sequences run together."""
    digest = hashlib.sha256()
    for mime_type, data in parts:
        for field in (mime_type.encode(), data):
            digest.update(len(field).to_bytes(8, "big"))
            digest.update(field)
    return digest.digest()


def fingerprint(
    *, model: str, neutralize: bool, policy: object = None, extraction: Mapping[str, str] | None = None
) -> bytes:
    """What, besides the content, decides the result: pipeline version, embedding model, masking policy, and engines other
    than ours.
    """
    others = {name: engine for name, engine in (extraction or {}).items() if engine != "own"}
    basis = json.dumps(
        [PIPELINE_VERSION, model, neutralize, policy, *([others] if others else [])], sort_keys=True
    )
    return hashlib.sha256(basis.encode()).digest()
