"""Secrets that can be told by their shape alone: keys and tokens with a vendor's prefix.

Most shapes come from the plugins of `detect-secrets`, whose patterns are used directly: its own scan goes line by line
and reports values without their place, sometimes only the prefix. Ours are for the shapes it lacks or knows in an old
form. Nothing here judges by entropy alone.
"""

import importlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from gateway.corpus.masking import Span
from gateway.corpus.secrets.vendors import PREFIXED, WITHIN

# Every shape is one unbroken run of such characters with a digit or very long; ordinary words are neither.
_RUN = re.compile(
    r"(?<![A-Za-z0-9_\-.~+/=:])(?=[A-Za-z_\-.~+/=:]*+[0-9]|[A-Za-z_\-.~+/=:]{32})[A-Za-z0-9_\-.~+/=:]{16,}+"
)
_SHORTEST = 16  # characters of a run
_TOKEN_END = re.compile(r"[A-Za-z0-9_\-]{0,8192}+")
# The rest of a token that a page or a mail broke at its line's end: letters and digits mixed, and nothing else in the word.
_REST = re.compile(
    r"\n[ \t>]{0,4}(?P<rest>(?=[A-Za-z_\-]{0,200}[0-9])(?=[0-9_\-]{0,200}[A-Za-z])[A-Za-z0-9_\-]{6,400}+)(?=[\s.,;)\"']|\Z)"
)
_FREE = r"(?<![A-Za-z0-9])"
_PLACE = re.compile(r"[A-Za-z0-9]+")  # where a prefix can begin


class Shape(NamedTuple):
    kind: str
    anchors: tuple[str, ...]  # one of these stands in every match
    pattern: re.Pattern[str]
    group: int = 0


class Plugin(NamedTuple):
    """Patterns of a `detect-secrets` plugin; `group` holds the value."""

    module: str
    name: str
    kind: str
    anchors: tuple[str, ...]
    patterns: slice = slice(None)
    group: int = 0


_PLUGINS = (
    Plugin("aws", "AWSKeyDetector", "aws_key", ("AKIA", "ASIA", "ABIA", "ACCA", "A3T"), slice(0, 1)),
    Plugin("artifactory", "ArtifactoryDetector", "vendor_token", ("AKC",), slice(0, 1)),
    Plugin(
        "discord",
        "DiscordBotTokenDetector",
        "vendor_token",
        # how a base64 number begins
        ("MD", "MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"),
    ),
    Plugin("github_token", "GitHubTokenDetector", "github_token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
    Plugin(
        "gitlab_token",
        "GitLabTokenDetector",
        "gitlab_token",
        (
            "glpat-",
            "gldt-",
            "glft-",
            "glsoat-",
            "glrt-",
            "GR1348941",
            "glcbt-",
            "glimt-",
            "glptt-",
            "glagent-",
            "gloas-",
        ),
    ),
    Plugin("mailchimp", "MailchimpDetector", "vendor_token", ("-us",)),
    Plugin("openai", "OpenAIDetector", "openai_key", ("T3BlbkFJ",)),
    Plugin("pypi_token", "PypiTokenDetector", "vendor_token", ("pypi-Ag",)),
    Plugin("sendgrid", "SendGridDetector", "vendor_token", ("SG.",)),
    Plugin("slack", "SlackDetector", "slack_token", ("xox", "hooks.slack.com/services/")),
    Plugin(
        "softlayer", "SoftlayerDetector", "vendor_token", ("api.softlayer.com/soap/",), slice(1, 2), group=1
    ),
    Plugin("square_oauth", "SquareOAuthDetector", "vendor_token", ("sq0csp-",)),
    Plugin("stripe", "StripeDetector", "stripe_key", ("k_live_",)),
    Plugin("telegram_token", "TelegramBotTokenDetector", "vendor_token", (":AA",)),
    Plugin("twilio", "TwilioKeyDetector", "vendor_token", ("AC", "SK")),
)


@lru_cache(maxsize=1)
def shapes() -> tuple[Shape, ...]:
    """Loaded when first needed: the plugins bring `requests` along (20 MB, a fifth of a second)."""
    found: list[Shape] = []
    for plugin in _PLUGINS:
        detector = getattr(importlib.import_module(f"detect_secrets.plugins.{plugin.module}"), plugin.name)
        patterns: list[re.Pattern[str]] = list(detector.denylist)[plugin.patterns]
        found += [Shape(plugin.kind, plugin.anchors, pattern, plugin.group) for pattern in patterns]
    return (*found, *_own(WITHIN), *_own(PREFIXED))


def _own(rows: Iterable[tuple[str, str, str]]) -> list[Shape]:
    return [
        Shape(kind, tuple(anchors.split("|")), re.compile(_FREE + pattern)) for kind, anchors, pattern in rows
    ]


class _Anchors(NamedTuple):
    within: tuple[tuple[str, Shape], ...]
    starts: dict[str, list[tuple[str, Shape]]]  # the first two characters → what begins so


@lru_cache(maxsize=1)
def _anchored() -> _Anchors:
    """Nearly every token is told by how it begins: two characters of it say which few anchors can stand there."""
    others, prefixed = shapes()[: -len(PREFIXED)], shapes()[-len(PREFIXED) :]
    starts: dict[str, list[tuple[str, Shape]]] = defaultdict(list)
    for shape in prefixed:
        for anchor in shape.anchors:
            starts[anchor[:2]].append((anchor, shape))
    return _Anchors(tuple((anchor, shape) for shape in others for anchor in shape.anchors), dict(starts))


def _candidates(token: str) -> set[Shape]:
    """The shapes of which an anchor stands in this run."""
    within, starts = _anchored()
    found = {shape for anchor, shape in within if anchor in token}
    for place in _PLACE.finditer(token):
        for anchor, shape in starts.get(token[place.start() : place.start() + 2], ()):
            if token.startswith(anchor, place.start()):
                found.add(shape)
    return found


def may_hold_shape(word: str) -> bool:
    """Whether a run of this word, which holds no blank, has the beginning of a shape in it."""
    return len(word) >= _SHORTEST and any(_candidates(run[0]) for run in _RUN.finditer(word))


def find_shapes(text: str) -> Iterator[Span]:
    for run in _RUN.finditer(text):
        for shape in _candidates(run[0]):
            reached = 0
            for match in shape.pattern.finditer(text, run.start(), run.end()):
                if match.end() > reached:
                    token = _whole_token(text, match.span(shape.group), shape.kind)
                    reached = token.end
                    yield token


def _whole_token(text: str, span: tuple[int, int], kind: str) -> Span:
    """Without the quotes and spaces some patterns take along, and to the end of a token longer than they expect."""
    start, end = span
    while start < end and text[start] in " \t\n\r\f\"'=:":
        start += 1
    while end > start and text[end - 1] in " \t\n\r\f\"'":
        end -= 1
    follow = _TOKEN_END.match(text, end)
    end = follow.end() if follow else end
    rest = _REST.match(text, end) if text.startswith("\n", end) else None
    return Span(start, rest.end() if rest and not may_hold_shape(rest["rest"]) else end, kind)
