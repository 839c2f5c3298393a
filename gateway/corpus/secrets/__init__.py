"""Which parts of a text are secrets. A secret never enters the corpus, a log, Redis or an error message (promise 10).

Four looks at the text: tokens with a vendor's shape, forms such as key blocks and URLs with credentials, values that a
label announces in one of four languages, and columns of tables. All are patterns with bounded reach, so the time grows
with the text and not faster. What is found once by its label is found everywhere in that text.
"""

from gateway.corpus.masking import Span as SecretSpan
from gateway.corpus.masking import as_seen, echoes, lowered, settle
from gateway.corpus.secrets.glance import KEY_BLOCKS, PIN_NAMES, SHAPES, glance, standing
from gateway.corpus.secrets.key_blocks import find_key_blocks
from gateway.corpus.secrets.labelled import find_labelled
from gateway.corpus.secrets.labels import ANCHORS, find_labels
from gateway.corpus.secrets.listed import find_listed
from gateway.corpus.secrets.pairs import find_in_rows
from gateway.corpus.secrets.shapes import find_shapes, shapes
from gateway.corpus.secrets.structures import COOKIE, find_cookies, find_structures
from gateway.corpus.secrets.tables import find_in_columns
from gateway.corpus.secrets.values import Strength, strength

__all__ = ["KINDS", "SecretSpan", "contains_secret", "find_secrets", "prepare", "without_secrets"]

# From what says most to what says least: where two looks disagree about a value, the first kind wins.
KINDS = (
    "private_key",
    "catchment_key",
    "aws_key",
    "gcp_key",
    "azure_key",
    "github_token",
    "gitlab_token",
    "slack_token",
    "stripe_key",
    "anthropic_key",
    "openai_key",
    "clickup_token",
    "vendor_token",
    "jwt",
    "basic_auth",
    "bearer_token",
    "cookie",
    "url_password",
    "password_hash",
    "signature",
    "seed_phrase",
    "api_key",
    "password",
    "token",
    "secret",
    "pin",
)
_RANKS = {kind: rank for rank, kind in enumerate(KINDS)}


def find_secrets(text: str) -> list[SecretSpan]:
    """Where the secrets are, in order, not overlapping."""
    return as_seen(text, _find)


def _find(text: str) -> list[SecretSpan]:
    looks = glance(text)
    if not looks:
        return []
    low, anchors = lowered(text), standing(looks)
    named = anchors.intersection(ANCHORS)
    labels = find_labels(text, low, named) if named or looks & PIN_NAMES else []
    spans = [
        *(find_shapes(text) if looks & SHAPES else ()),
        *(find_structures(text, low, anchors) if anchors else ()),
        *(find_cookies(text, low) if COOKIE in anchors else ()),
        *(find_key_blocks(text) if looks & KEY_BLOCKS else ()),
        *find_labelled(text, labels),
        *find_in_columns(text, labels),
        *find_in_rows(text, labels),
        *find_listed(text, labels),
    ]
    if not spans:
        return []
    settled = settle(text, spans, _RANKS)
    return settle(text, [*settled, *echoes(text, settled, _is_telling)], _RANKS)


def contains_secret(text: str) -> list[str]:
    """The kinds of secrets in the text, for a refusal that must not repeat them."""
    return sorted({span.kind for span in find_secrets(text)})


def without_secrets(text: str) -> str:
    """For what is noted beside the corpus: the kind stands where the value stood."""
    for start, end, kind in reversed(find_secrets(text)):
        text = f"{text[:start]}[secret:{kind}]{text[end:]}"
    return text


def prepare() -> None:
    """Load what is loaded lazily, once before processes are forked."""
    shapes()


def _is_telling(value: str) -> bool:
    """Long and mixed enough that it means nothing else elsewhere in the text."""
    return len(value) >= 7 and strength(value, quoted=True) >= Strength.STRONG
