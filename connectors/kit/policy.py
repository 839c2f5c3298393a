"""What of an account may be synced: the connection's own word over the mandate's."""

import hashlib
import json
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

MailTier = Literal["metadata", "snippet", "body", "attachments"]
LONGEST_WINDOW = 36_500  # days; a century is everything
LARGEST = 1 << 40  # bytes or documents: more than anybody has, and every store can count it
# What neither decides which items there are nor what is taken of them.
_NO_MATTER = frozenset({"share_into_mandate", "loss_limit_percent", "max_items", "interval_seconds"})


class SyncPolicy(BaseModel):
    """Empty allowlists allow everything. Patterns in `paths` and `names` are shell globs, case-insensitive."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")

    sites: list[str] = Field(default_factory=list, description="site names or URLs to index; empty: all")
    libraries: list[str] = Field(
        default_factory=list, description="libraries, drives, spaces or lists by name; empty: all"
    )
    folders: list[str] = Field(default_factory=list, description="folder paths (globs) to index; empty: all")
    file_types: list[str] = Field(
        default_factory=list, description="file name endings to index, e.g. pdf; empty: all"
    )
    max_file_bytes: int = Field(
        default=50 * 1024 * 1024, ge=1, le=LARGEST, description="larger files are skipped"
    )
    mail_tier: MailTier = Field(default="body", description="how much of a mail is indexed")
    mail_window_days: int = Field(default=365, ge=1, le=LONGEST_WINDOW)
    mail_skip_folders: list[str] = Field(
        default_factory=lambda: ["junkemail", "deleteditems", "drafts", "outbox", "SPAM", "TRASH", "DRAFT"],
        description="well-known folder names or labels that are never indexed",
    )
    max_attachment_bytes: int = Field(default=20 * 1024 * 1024, ge=1, le=LARGEST)
    calendar_past_days: int = Field(default=180, ge=0, le=LONGEST_WINDOW)
    calendar_future_days: int = Field(default=365, ge=0, le=LONGEST_WINDOW)
    calendar_attendees: bool = Field(default=True, description="index who is invited")
    chat_window_days: int = Field(
        default=90, ge=1, le=LONGEST_WINDOW, description="how far back Teams messages go"
    )
    chat_keywords: list[str] = Field(
        default_factory=list, description="index only threads with one of these words; empty: all"
    )
    chats: bool = Field(default=True, description="one-to-one and group chats, where consent covers them")
    shared_with_me: bool = Field(default=False, description="OneDrive: also what others shared")
    closed_tasks: bool = Field(default=True, description="ClickUp: also closed tasks")
    share_into_mandate: bool = Field(
        default=False, description="visible to the whole mandate instead of the user alone"
    )
    neutralize: bool = Field(default=False, description="mask personal data before anything is embedded")
    loss_limit_percent: float = Field(
        default=20.0, ge=0, le=100, description="deletions by absence above this are held"
    )
    max_items: int | None = Field(
        default=None, ge=1, le=LARGEST, description="quota of documents for this connection"
    )
    interval_seconds: int = Field(
        default=900, ge=5, le=31 * 86_400, description="between two scheduled deltas"
    )

    def fingerprint(self) -> str:
        """Of everything that decides what a listing brings: when it changes, another listing is due."""
        told = self.model_dump(mode="json", exclude=set(_NO_MATTER))
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]
