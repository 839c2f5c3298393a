"""The stage between extraction and chunking, where secrets and personal data leave the text (promise 10).

Whatever it masks goes through `Extracted.replace_spans`, which keeps units, pages and boxes right. It runs inside the
parser child, so the unmasked text never reaches the worker.
"""

from typing import Any

from workers.pipeline.extracted import Extracted


def neutralise(extracted: Extracted, *, policy: dict[str, Any]) -> Extracted:
    """Nothing is masked yet: the detectors come with the formats (`policy` says what a mandate wants masked)."""
    del policy
    return extracted
