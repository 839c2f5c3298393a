"""Secrets that can be told by their shape alone: keys and tokens with a vendor's prefix.

Most shapes come from the plugins of `detect-secrets`, whose patterns are used directly: its own scan goes line by line
and reports values without their place, sometimes only the prefix. Ours are for the shapes it lacks or knows in an old
form. Nothing here judges by entropy alone.
"""

import importlib
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from gateway.corpus.masking import Span

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

# kind, anchors, pattern; the pattern begins at a place that no letter or digit precedes
_OWN = (
    ("catchment_key", ("ck_",), r"(?<!_)ck_(?=[A-Za-z_\-]*[0-9])[A-Za-z0-9_\-]{12,}"),
    ("aws_key", ("bedrock-api-key-", "ABSK"), r"(?:bedrock-api-key-|ABSK)[A-Za-z0-9+/]{40,}={0,2}"),
    ("gcp_key", ("AIza",), r"AIza[A-Za-z0-9_\-]{30,}"),
    ("gcp_key", ("ya29.",), r"ya29\.[A-Za-z0-9_\-.]{20,}"),
    ("gcp_key", ("GOCSPX-",), r"GOCSPX-[A-Za-z0-9_\-]{20,}"),
    ("gcp_key", ("1//",), r"1//0[A-Za-z0-9_\-]{30,}"),
    ("azure_key", ("Q~",), r"[A-Za-z0-9_~.\-]{3}[78]Q~[A-Za-z0-9_~.\-]{31,34}"),
    (
        "azure_key",
        ("AzFu", "AzCa", "AIoT", "APIM", "ACDb", "+ASt", "+AMC", "+ABa"),
        r"[A-Za-z0-9+/]{33,76}(?:AzFu|AzCa|AIoT|APIM|ACDb|\+ASt|\+AMC|\+ABa)[A-Za-z0-9+/]{5,12}={0,2}",
    ),
    (
        "github_token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        r"gh[pousr]_(?=[A-Za-z]*[0-9])[A-Za-z0-9]{16,}",
    ),
    ("gitlab_token", ("glpat-",), r"glpat-[A-Za-z0-9_\-]{16,}"),
    ("github_token", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{22,}"),
    ("slack_token", ("xox",), r"xox[abceoprs](?:\.xox[bp])?-[A-Za-z0-9\-]{10,}"),
    ("slack_token", ("xapp-",), r"xapp-[0-9]-[A-Za-z0-9\-]{20,}"),
    ("stripe_key", ("_live_", "_test_"), r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,}"),
    ("stripe_key", ("whsec_",), r"whsec_[A-Za-z0-9+/=]{20,}"),
    ("openai_key", ("sk-",), r"(?<!-)sk-(?=[A-Za-z_\-]*[0-9])(?:[a-z]{2,10}-)?[A-Za-z0-9_\-]{16,}"),
    ("anthropic_key", ("sk-ant-",), r"sk-ant-[A-Za-z0-9_\-]{16,}"),
    ("clickup_token", ("pk_",), r"pk_[0-9]{4,}_[A-Z0-9]{24,}"),
    ("vendor_token", ("hf_",), r"(?<!_)hf_[A-Za-z0-9]{30,}"),
    ("vendor_token", ("npm_",), r"npm_[A-Za-z0-9]{30,}"),
    ("vendor_token", ("SG.",), r"SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}"),
    ("vendor_token", ("/api/webhooks/",), r"discord(?:app)?\.com/api/webhooks/[0-9]+/[A-Za-z0-9_\-]{16,}"),
    (
        "vendor_token",
        (".webhook.office.com/",),
        r"[A-Za-z0-9\-]+\.webhook\.office\.com/[A-Za-z0-9_\-.~+/=:]{16,}",
    ),
    ("vendor_token", ("dckr_",), r"dckr_(?:pat|oat)_[A-Za-z0-9_\-]{20,}"),
    ("vendor_token", ("dop_v1_", "doo_v1_", "dor_v1_"), r"do[por]_v1_[a-f0-9]{64}"),
    ("vendor_token", ("shpat_", "shpca_", "shppa_", "shpss_"), r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    ("vendor_token", ("dapi",), r"dapi[a-f0-9]{32}(?:-[0-9])?"),
    ("vendor_token", ("key-",), r"(?<!-)key-[a-f0-9]{32}"),
    ("vendor_token", ("lin_api_",), r"lin_api_[A-Za-z0-9]{32,}"),
    ("vendor_token", ("ntn_", "secret_"), r"(?:ntn_|(?<!_)secret_(?=[A-Za-z]*[0-9]))[A-Za-z0-9]{40,}"),
    ("vendor_token", ("ATATT3", "ATCTT3", "ATBB"), r"(?:AT[AC]TT3|ATBB)[A-Za-z0-9_\-=]{28,}"),
    ("vendor_token", ("hvs.", "hvb.", "hvr."), r"hv[sbr]\.[A-Za-z0-9_\-]{24,}"),
    ("vendor_token", ("dp.",), r"dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9_\-.]{40,}"),
    ("vendor_token", ("glsa_", "glc_"), r"gl(?:sa|c)_[A-Za-z0-9+/=_]{32,}"),
    ("vendor_token", ("PMAK-",), r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    ("vendor_token", ("NRAK-", "NRJS-"), r"NR(?:AK|JS)-[A-Za-z0-9]{19,}"),
    ("vendor_token", ("sntrys_", "sntryu_"), r"sntry[su]_[A-Za-z0-9_+/=\-]{32,}"),
    ("vendor_token", ("sbp_", "sb_secret_"), r"(?:sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_\-]{20,})"),
    ("vendor_token", ("figd_",), r"figd_[A-Za-z0-9_\-]{32,}"),
    ("vendor_token", (".atlasv1.",), r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_\-=]{60,}"),
    ("vendor_token", ("EAA",), r"EAA[A-Za-z0-9]{80,}"),
    ("vendor_token", ("HRKU-",), r"HRKU-[A-Za-z0-9_\-]{36,}"),
    ("vendor_token", ("gsk_",), r"gsk_[A-Za-z0-9]{40,}"),
    ("vendor_token", ("xai-",), r"xai-[A-Za-z0-9]{40,}"),
    ("vendor_token", ("r8_",), r"r8_[A-Za-z0-9]{37,}"),
    ("vendor_token", ("sq0atp-", "EAAA"), r"(?:sq0atp-[A-Za-z0-9_\-]{22}|EAAA[A-Za-z0-9_\-+=]{60})"),
    ("vendor_token", ("rubygems_",), r"rubygems_[a-f0-9]{48}"),
    ("vendor_token", ("oy2",), r"oy2[a-z0-9]{43}"),
    (
        "vendor_token",
        (
            "tfp_",
            "CFPAT-",
            "shippo_",
            "EZAK",
            "sk.eyJ",
            "phx_",
            "pscale_",
            "snyk_",
            "duffel_",
            "ops_eyJ",
            "fo1_",
            "fm2_",
        ),
        (
            r"(?:tfp_|CFPAT-|shippo_(?:live|test)_|EZAK|sk\.eyJ|phx_|pscale_(?:tkn|pw|oauth)_|snyk_[a-z]{3}\.|"
            r"duffel_(?:live|test)_|ops_eyJ|fo1_|fm2_)[A-Za-z0-9_\-.]{38,}"
        ),
    ),
    ("vendor_token", ("pat",), r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    ("vendor_token", ("pul-", "bkua_", "gta_"), r"(?:pul-|bkua_|gta_)[A-Za-z0-9]{40}"),
    ("vendor_token", ("tskey-",), r"tskey-[a-z]{2,10}-[A-Za-z0-9\-]{20,}"),
    ("vendor_token", ("pplx-",), r"pplx-[A-Za-z0-9]{40,}"),
    ("vendor_token", ("lsv2_",), r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    ("vendor_token", ("sl.",), r"sl\.(?=[A-Za-z_\-]*[0-9])[A-Za-z0-9_\-]{120,}"),
    ("vendor_token", ("LTAI",), r"LTAI[A-Za-z0-9]{16,24}"),
    ("vendor_token", ("AQVN",), r"AQVN[A-Za-z0-9_\-]{35,}"),
    ("vendor_token", ("v1.0-",), r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}"),
    ("vendor_token", ("1/",), r"1/[0-9]{13,20}:[a-f0-9]{32}"),
    ("vendor_token", ("hooks.zapier.com/",), r"hooks\.zapier\.com/hooks/catch/[0-9]+/[A-Za-z0-9]{5,}"),
    ("private_key", ("AGE-SECRET-KEY-1",), r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
)


@lru_cache(maxsize=1)
def shapes() -> tuple[Shape, ...]:
    """Loaded when first needed: the plugins bring `requests` along (20 MB, a fifth of a second)."""
    found: list[Shape] = []
    for plugin in _PLUGINS:
        detector = getattr(importlib.import_module(f"detect_secrets.plugins.{plugin.module}"), plugin.name)
        patterns: list[re.Pattern[str]] = list(detector.denylist)[plugin.patterns]
        found += [Shape(plugin.kind, plugin.anchors, pattern, plugin.group) for pattern in patterns]
    found += [Shape(kind, anchors, re.compile(_FREE + pattern)) for kind, anchors, pattern in _OWN]
    return tuple(found)


@lru_cache(maxsize=1)
def _anchored() -> tuple[tuple[str, Shape], ...]:
    return tuple((anchor, shape) for shape in shapes() for anchor in shape.anchors)


def may_hold_shape(word: str) -> bool:
    """Whether a run of this word, which holds no blank, has the beginning of a shape in it."""
    return len(word) >= _SHORTEST and any(
        anchor in run[0] for run in _RUN.finditer(word) for anchor, _ in _anchored()
    )


def find_shapes(text: str) -> Iterator[Span]:
    for run in _RUN.finditer(text):
        token = run[0]
        for shape in [shape for anchor, shape in _anchored() if anchor in token]:
            for match in shape.pattern.finditer(text, run.start(), run.end()):
                yield _whole_token(text, match.span(shape.group), shape.kind)


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
