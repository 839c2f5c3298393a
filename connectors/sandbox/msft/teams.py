"""Teams with their channels, threads and files; chats."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from connectors.sandbox.msft.directory import Directory, User
from connectors.sandbox.msft.feed import Changes
from connectors.sandbox.msft.files import Files, Site
from connectors.sandbox.msft.graph import parsed_time
from connectors.sandbox.world import Fields, Ids, NoSuchObject, Refused


@dataclass(kw_only=True)
class Team:
    id: str
    name: str
    description: str | None
    members: set[str]
    site: Site
    archived: bool = False


@dataclass(kw_only=True)
class Channel:
    """Of a team, or (with `team` None) a chat: both hold messages."""

    id: str
    name: str | None
    team: Team | None
    members: set[str]
    created: datetime
    seq: int
    private: bool = False
    kind: str = "group"
    folder_id: str | None = None
    deleted: bool = False


@dataclass(kw_only=True)
class ChatMessage:
    id: str
    channel: Channel
    author: User | None
    text: str
    html: bool
    subject: str | None
    reply_to: str | None
    created: datetime
    modified: datetime
    seq: int
    thread_seq: int  # of the last change in the thread that begins here
    edited: datetime | None = None
    deleted: datetime | None = None
    attachments: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    system: bool = False

    @property
    def version(self) -> str:
        return str(int(self.modified.timestamp() * 1000))


class Teams:
    def __init__(self, ids: Ids, changes: Changes, people: Directory, files: Files) -> None:
        self._ids, self._changes, self._people, self._files = ids, changes, people, files
        self.teams: dict[str, Team] = {}
        self.channels: dict[str, Channel] = {}
        self.messages: dict[str, ChatMessage] = {}
        self._threads: dict[str, list[str]] = {}
        self._in: dict[str, list[str]] = {}
        self._last_id = 0

    # -- what there is

    def teams_of(self, user: User) -> list[Team]:
        return [each for each in self.teams.values() if user.id in each.members]

    def channels_of(self, team: Team) -> list[Channel]:
        return [each for each in self.channels.values() if each.team is team and not each.deleted]

    def chats_of(self, user: User) -> list[Channel]:
        return [
            each
            for each in self.channels.values()
            if each.team is None and user.id in each.members and not each.deleted
        ]

    def roots(self, channel: Channel) -> list[ChatMessage]:
        return [self.messages[each] for each in self._in.get(channel.id, [])]

    def replies(self, message: ChatMessage) -> list[ChatMessage]:
        return [self.messages[each] for each in self._threads.get(message.id, [])]

    # -- changes

    def add_team(self, fields: Fields) -> Team:
        members = {
            self._people.find(who).id for who in fields.get("members", [u.id for u in self._people.all()])
        }
        site = self._files.add_site({"name": fields["name"], "members": sorted(members)})
        self._files.add_drive(site, "Documents")
        team = Team(
            id=self._ids.guid("team"),
            name=str(fields["name"]),
            description=fields.get("description"),
            members=members,
            site=site,
        )
        self.teams[team.id] = team
        self.add_channel(team, {"name": "General"})
        return team

    def add_channel(self, team: Team, fields: Fields) -> Channel:
        seq, now = self._changes.next()
        name = str(fields["name"])
        members = (
            {self._people.find(who).id for who in fields["members"]} if "members" in fields else team.members
        )
        drive = self._files.drives_of(team.site)[0]
        folder = self._files.add({"kind": "folder", "driveId": drive.id, "name": name})
        channel = Channel(
            id=f"19:{self._ids.digest('channel').hex()[:32]}@thread.tacv2",
            name=name,
            team=team,
            members=members,
            created=now,
            seq=seq,
            private="members" in fields,
            folder_id=folder.id,
        )
        self.channels[channel.id] = channel
        return channel

    def add_chat(self, fields: Fields) -> Channel:
        seq, now = self._changes.next()
        channel = Channel(
            id=f"19:{self._ids.digest('chat').hex()[:32]}@thread.v2",
            name=fields.get("topic"),
            team=None,
            members={self._people.find(who).id for who in fields["members"]},
            created=now,
            seq=seq,
            kind=str(fields.get("chatType", "group")),
        )
        self.channels[channel.id] = channel
        return channel

    def add_message(self, fields: Fields) -> ChatMessage:
        reply_to = fields.get("replyTo")
        if reply_to and str(reply_to) not in self.messages:
            raise NoSuchObject(str(reply_to))
        channel = (
            self.messages[str(reply_to)].channel if reply_to else self.channels[str(fields["channelId"])]
        )
        seq, now = self._changes.next()
        when = parsed_time(fields["at"]) if "at" in fields else now
        # An id is its time; two of the same millisecond cannot be.
        number = int(when.timestamp() * 1000)
        while str(number) in self.messages:
            number += 1
        message = ChatMessage(
            id=str(number),
            channel=channel,
            author=self._people.find(fields["from"]) if fields.get("from") else None,
            text=str(fields.get("html", fields.get("text", ""))),
            html="html" in fields,
            subject=fields.get("subject"),
            reply_to=str(reply_to) if reply_to else None,
            created=when,
            modified=when,
            seq=seq,
            thread_seq=seq,
            attachments=list(fields.get("attachments", [])),
            system=bool(fields.get("system", False)),
        )
        self.messages[message.id] = message
        self._root(message).thread_seq = seq
        home = self._threads if reply_to else self._in
        home.setdefault(str(reply_to) if reply_to else channel.id, []).append(message.id)
        return message

    def edit_message(self, message: ChatMessage, fields: Fields) -> None:
        if message.deleted:
            raise Refused(f"{message.id} is deleted")
        message.text = str(fields.get("html", fields.get("text", message.text)))
        message.html = "html" in fields or (message.html and "text" not in fields)
        self._touch(message)
        message.edited = message.modified

    def delete_message(self, message: ChatMessage) -> None:
        self._touch(message)
        message.deleted = message.modified

    def restore_message(self, message: ChatMessage) -> None:
        message.deleted = None
        self._touch(message)

    def _touch(self, message: ChatMessage) -> None:
        message.seq, now = self._changes.next()
        message.modified = max(now, message.modified + timedelta(milliseconds=1))
        self._root(message).thread_seq = message.seq

    def _root(self, message: ChatMessage) -> ChatMessage:
        return self.messages[message.reply_to] if message.reply_to else message

    def edit_channel(self, channel: Channel, fields: Fields) -> None:
        channel.name = fields.get("name", channel.name)
        if "members" in fields:
            channel.members = {self._people.find(who).id for who in fields["members"]}
        channel.seq, _ = self._changes.next()

    def edit_team(self, team: Team, fields: Fields) -> None:
        """Whoever leaves a team loses its site and its channels too."""
        team.name = str(fields.get("name", team.name))
        team.archived = bool(fields.get("archived", team.archived))
        if "members" in fields:
            before = team.members
            team.members = {self._people.find(who).id for who in fields["members"]}
            team.site.members = set(team.members)
            for channel in self.channels_of(team):
                if channel.members == before:
                    channel.members = team.members

    # -- the truth

    def state(self, user: User | None) -> Iterator[dict[str, Any]]:
        for message in self.messages.values():
            channel = message.channel
            if message.deleted or message.system or channel.deleted:
                continue
            if user is None or user.id in channel.members:
                yield {**self.told(message), "rootDeleted": self._root(message).deleted is not None}

    def told(self, message: ChatMessage) -> dict[str, Any]:
        channel = message.channel
        return {
            "id": message.id,
            "kind": "channelMessage" if channel.team else "chatMessage",
            "surface": "teams",
            "name": message.subject or "",
            "version": message.version,
            "containerId": channel.id,
            "teamId": channel.team.id if channel.team else None,
            "parentId": message.reply_to,
            "text": message.text,
            "deleted": message.deleted is not None,
        }
