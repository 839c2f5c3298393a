"""Snapshots in words: who a user is in this mandate, what the mandate is, what a feature instance is for.

A model reads them before every answer, so they are short and plain. Only what is named here gets in: facts from our own
tables, and the few that events may add (`event_schemas.py`). Addresses, numbers of people and secrets that stand in a name
or a label are masked whatever the policy says; a person's own name is not. The same facts give the same text.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal
from uuid import UUID

from gateway.corpus.descriptions import Descriptions
from gateway.ingestion.event_schemas import Entry, FeatureWords, Preferences, one_line
from gateway.ingestion.schemas import IngestionRequest, Lane, TextContent
from gateway.tenancy.schemas import Policy

Kind = Literal["profile_snapshot", "mandate_snapshot", "feature_snapshot"]
KINDS: tuple[Kind, ...] = ("profile_snapshot", "mandate_snapshot", "feature_snapshot")
SAID: dict[Kind, type[Preferences | FeatureWords]] = {
    "profile_snapshot": Preferences,
    "feature_snapshot": FeatureWords,
}
MOST_LABELS = 50

_PREFERRED = {
    "answer_language": "Prefers answers in",
    "answer_length": "Prefers answers of length",
    "answer_style": "Prefers answers in the style",
    "date_format": "Writes dates as",
    "number_format": "Writes numbers as",
    "units": "Units",
    "currency": "Currency",
    "week_start": "First day of the week",
    "working_hours": "Working hours",
}

Fact = tuple[str, str | None]


def source_id(subject: UUID) -> str:
    return f"catchment:{subject}"


def masks(key: bytes) -> Descriptions:
    return Descriptions(key, personal_data=True, allowed=["person"])


def version(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# -- the facts of each kind


def about_user(row: Any, said: Preferences) -> list[Fact]:
    return [
        ("Name", one_line(row.display_name)),
        ("Language and region", one_line(row.locale)),
        ("Time zone", one_line(row.timezone)),
        ("Role in the organisation", row.role),
        ("Features they may use", _listed(row.features)),
        *((words, getattr(said, name)) for name, words in _PREFERRED.items()),
    ]


def about_mandate(name: str, roles: Mapping[str, int], labels: Sequence[str], policy: Policy) -> list[Fact]:
    members = ", ".join(f"{roles[role]} {role}" for role in ("owner", "admin", "member") if roles.get(role))
    days = policy.quotas.days
    window = policy.mail.window_days if days is None else min(days, policy.mail.window_days)
    kept = [f"{kind} {days} days" for kind, days in sorted(policy.retention_days.items())]
    return [
        ("Organisation", one_line(name)),
        ("Members by role", members or None),
        ("Features", _listed(labels)),
        ("Mail is known by its", f"{policy.mail.tier}, {window} days back"),
        ("Not taken in", ", ".join(sorted(policy.refused_source_kinds)) or None),
        ("Forgotten after", ", ".join(kept) or None),
        ("Personal data masked in", ", ".join(sorted(policy.neutralisation.mandatory_source_kinds)) or None),
    ]


def about_feature(row: Any, said: FeatureWords) -> list[Fact]:
    return [
        ("Feature", one_line(row.label)),
        ("Feature code", one_line(row.feature_code)),
        ("Description", said.description),
        *(("Data source", _entry(entry)) for entry in said.data_sources or ()),
        *(("Automation", _entry(entry)) for entry in said.automations or ()),
    ]


def _entry(entry: Entry) -> str | None:
    return " – ".join(part for part in (entry.label, entry.description) if part) or None


def _listed(labels: Iterable[str]) -> str | None:
    shown = [line for label in labels if (line := one_line(label))]
    more = len(shown) - MOST_LABELS
    return "; ".join([*shown[:MOST_LABELS], *([f"and {more} more"] if more > 0 else [])]) or None


# -- the document


def request(
    kind: Kind,
    subject: UUID,
    facts: Sequence[Fact],
    said: Preferences | FeatureWords | None,
    words: Descriptions,
    lane: Lane,
) -> IngestionRequest:
    """The snapshot as the façade takes it. What events said is kept with it and goes when it goes."""
    lines = [f"{name}: {words.text(value)}" for name, value in facts if value]
    text = "\n".join(lines) + "\n"
    kept = said.model_dump(by_alias=True, exclude_none=True) if said else {}
    return IngestionRequest(
        source_kind=kind,
        source_id=source_id(subject),
        content=TextContent(text=text),
        content_version=version(text),
        title=lines[0].partition(": ")[2] if lines else "",
        metadata={"said": kept} if kept else {},
        scope="personal"
        if kind == "profile_snapshot"
        else "mandate"
        if kind == "mandate_snapshot"
        else "featureInstance",
        user_id=subject if kind == "profile_snapshot" else None,
        feature_instance_id=subject if kind == "feature_snapshot" else None,
        lane=lane,
    )
