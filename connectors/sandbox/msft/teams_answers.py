"""Teams, channels and chats as Graph answers them."""

import re

from connectors.sandbox.msft.file_answers import shown_item
from connectors.sandbox.msft.graph import (
    Call,
    GraphError,
    Json,
    Reply,
    collection,
    iso,
    listed,
    parsed_time,
    selected,
)
from connectors.sandbox.msft.mail_answers import mailbox
from connectors.sandbox.msft.registration import TENANT_ID
from connectors.sandbox.msft.rounds import answered, begun
from connectors.sandbox.msft.teams import Channel, ChatMessage, Team

MOST_EXPANDED = 200


def joined_teams(call: Call, who: str) -> Reply:
    teams = call.world.teams.teams_of(mailbox(call, who))
    return collection(call, "teams", [_shown_team(each, sparse=True) for each in teams])


def one_team(call: Call, team_id: str) -> Reply:
    return Reply(body=_shown_team(_team(call, team_id), sparse=False))


def _shown_team(team: Team, *, sparse: bool) -> Json:
    nothing = dict.fromkeys(
        (
            "memberSettings",
            "guestSettings",
            "messagingSettings",
            "funSettings",
            "discoverySettings",
            "tagSettings",
        )
    )
    return {
        "id": team.id,
        "createdDateTime": None,
        "displayName": team.name,
        "description": team.description,
        "internalId": None,
        "classification": None,
        "specialization": None,
        "visibility": None if sparse else "private",
        "webUrl": None if sparse else f"https://teams.sandbox.example/l/team/{team.id}",
        "isArchived": team.archived,
        "isMembershipLimitedToOwners": None,
        "tenantId": TENANT_ID,
        **nothing,
    }


def _team(call: Call, team_id: str) -> Team:
    team = call.world.teams.teams.get(team_id)
    if team is None:
        raise GraphError(404, "NotFound", f"No team found with Group Id {team_id}")
    if call.user.id not in team.members:
        raise GraphError(403, "Forbidden", "User is not a member of the team.")
    return team


def team_channels(call: Call, team_id: str) -> Reply:
    team = _team(call, team_id)
    channels = [each for each in call.world.teams.channels_of(team) if call.user.id in each.members]
    if wanted := re.search(r"membershipType eq '(\w+)'", call.query.get("$filter", "")):
        channels = [each for each in channels if wanted[1] == ("private" if each.private else "standard")]
    rows = [selected(_shown_channel(each), call.query) for each in channels]
    return collection(call, f"teams('{team.id}')/channels", rows)


def _shown_channel(channel: Channel) -> Json:
    return {
        "id": channel.id,
        "createdDateTime": iso(channel.created, 1),
        "displayName": channel.name,
        "description": None,
        "isFavoriteByDefault": None,
        "email": "",
        "tenantId": TENANT_ID,
        "webUrl": f"https://teams.sandbox.example/l/channel/{channel.id}",
        "membershipType": "private" if channel.private else "standard",
        "layoutType": None,
        "isArchived": False,
    }


def _channel(call: Call, team_id: str, channel_id: str) -> Channel:
    team = _team(call, team_id)
    channel = call.world.teams.channels.get(channel_id)
    if channel is None or channel.team is not team or channel.deleted:
        raise GraphError(404, "NotFound", "Channel not found")
    if call.user.id not in channel.members:
        raise GraphError(403, "Forbidden", "User is not a member of the channel.")
    return channel


def one_channel(call: Call, team_id: str, channel_id: str) -> Reply:
    return Reply(body=_shown_channel(_channel(call, team_id, channel_id)))


def channel_members(call: Call, team_id: str, channel_id: str) -> Reply:
    channel = _channel(call, team_id, channel_id)
    return collection(call, "members", [_member(call, each) for each in sorted(channel.members)])


def _member(call: Call, user_id: str) -> Json:
    user = call.world.people.find(user_id)
    return {
        "@odata.type": "#microsoft.graph.aadUserConversationMember",
        "id": f"member-{user.id}",
        "roles": [],
        "displayName": user.name,
        "userId": user.id,
        "email": user.email,
        "tenantId": TENANT_ID,
        "visibleHistoryStartDateTime": "0001-01-01T00:00:00Z",
    }


def files_folder(call: Call, team_id: str, channel_id: str) -> Reply:
    channel = _channel(call, team_id, channel_id)
    return Reply(body=shown_item(call, call.world.files.get(channel.folder_id or "")))


# -- messages


def shown_message(call: Call, message: ChatMessage, *, replies: bool = False) -> Json:
    channel = message.channel
    body: Json = {
        "id": message.id,
        "replyToId": message.reply_to,
        "etag": message.version,
        "messageType": "unknownFutureValue" if message.system else "message",
        "createdDateTime": iso(message.created, 1),
        "lastModifiedDateTime": iso(message.modified, 1),
        "lastEditedDateTime": iso(message.edited, 1) if message.edited else None,
        "deletedDateTime": iso(message.deleted, 1) if message.deleted else None,
        "subject": message.subject,
        "summary": None,
        "chatId": None if channel.team else channel.id,
        "importance": "normal",
        "locale": "en-us",
        "webUrl": f"https://teams.sandbox.example/l/message/{channel.id}/{message.id}",
        "from": message.author.sender() if message.author else None,
        "body": {
            "contentType": "html" if message.html else "text",
            "content": "" if message.deleted else message.text,
        },
        "channelIdentity": {"teamId": channel.team.id, "channelId": channel.id} if channel.team else None,
        "attachments": [] if message.deleted else message.attachments,
        "mentions": [],
        "reactions": [],
        "eventDetail": {"@odata.type": "#microsoft.graph.teamRenamedEventMessageDetail"}
        if message.system
        else None,
        "policyViolation": None,
    }
    if replies and channel.team:
        thread = sorted(call.world.teams.replies(message), key=lambda each: each.id, reverse=True)
        body["replies@odata.context"] = f"{call.world.url}/v1.0/$metadata#replies"
        body["replies"] = [shown_message(call, each) for each in thread[:MOST_EXPANDED]]
        if len(thread) > MOST_EXPANDED:
            path = f"/teams/{channel.team.id}/channels/{channel.id}/messages/{message.id}/replies"
            body["replies@odata.nextLink"] = call.link(path, {"$skiptoken": f"s!{MOST_EXPANDED}"})
    return body


def _expands(query: dict[str, str]) -> bool:
    return "replies" in query.get("$expand", "")


def _size(call: Call) -> int:
    if int(call.query.get("$top", 20)) > 50:
        raise GraphError(400, "BadRequest", "The limit of '50' for Top query has been exceeded.")
    return call.page_size(20, 50)


def channel_messages(call: Call, team_id: str, channel_id: str) -> Reply:
    """Whole threads by their last change, newest first; replies only when expanded."""
    channel, teams, size = _channel(call, team_id, channel_id), call.world.teams, _size(call)
    rows = sorted(teams.roots(channel), key=lambda each: each.thread_seq, reverse=True)
    reply = listed(call, "messages", rows, size=size)
    reply.body["value"] = [
        shown_message(call, each, replies=_expands(call.query)) for each in reply.body["value"]
    ]
    return reply


def one_message(call: Call, team_id: str, channel_id: str, message_id: str) -> Reply:
    return Reply(body=shown_message(call, _message(call, team_id, channel_id, message_id)))


def _message(call: Call, team_id: str, channel_id: str, message_id: str) -> ChatMessage:
    channel = _channel(call, team_id, channel_id)
    message = call.world.teams.messages.get(message_id)
    if message is None or message.channel is not channel:
        raise GraphError(404, "NotFound", "Message not found")
    return message


def message_replies(call: Call, team_id: str, channel_id: str, message_id: str) -> Reply:
    size = _size(call)
    thread = call.world.teams.replies(_message(call, team_id, channel_id, message_id))
    rows = sorted(thread, key=lambda each: each.id, reverse=True)
    reply = listed(call, "replies", rows, size=size)
    reply.body["value"] = [shown_message(call, each) for each in reply.body["value"]]
    return reply


def channel_changes(call: Call, team_id: str, channel_id: str) -> Reply:
    channel = _channel(call, team_id, channel_id)
    return _changes(
        call, channel, f"/teams('{channel.team and channel.team.id}')/channels('{channel.id}')/messages/delta"
    )


def _changes(call: Call, channel: Channel, path: str) -> Reply:
    """Threads whose root or replies changed; a deletion shows by its date."""
    _size(call)
    teams = call.world.teams
    mark = begun(call, f"chat:{channel.id}", ("$top", "$filter", "$expand"))
    rows = teams.roots(channel)
    if bound := re.search(r"lastModifiedDateTime gt ([0-9T:.Z+-]+)", mark.query.get("$filter", "")):
        after = parsed_time(bound[1])
        rows = [each for each in rows if _last_change(call, each) > after]
    entries = [((each.thread_seq,), each) for each in rows if mark.since < each.thread_seq <= mark.until]
    return answered(
        call,
        mark,
        entries,
        show=lambda each: shown_message(call, each, replies=_expands(mark.query)),
        size=int(mark.query.get("$top", 20)),
        path=path,
        context="Collection(chatMessage)",
    )


def _last_change(call: Call, message: ChatMessage):  # noqa: ANN202 - a time
    return max([message.modified, *(each.modified for each in call.world.teams.replies(message))])


# -- chats


def my_chats(call: Call, who: str) -> Reply:
    chats = call.world.teams.chats_of(mailbox(call, who))
    rows = [_shown_chat(call, each) for each in sorted(chats, key=lambda each: each.created, reverse=True)]
    return listed(call, "chats", rows, size=_size(call))


def _shown_chat(call: Call, chat: Channel) -> Json:
    messages = call.world.teams.roots(chat)
    body: Json = {
        "id": chat.id,
        "topic": chat.name,
        "createdDateTime": iso(chat.created, 1),
        "lastUpdatedDateTime": iso(max([chat.created, *(each.modified for each in messages)]), 1),
        "chatType": chat.kind,
        "webUrl": f"https://teams.sandbox.example/l/chat/{chat.id}/0",
        "tenantId": TENANT_ID,
        "onlineMeetingInfo": None,
        "viewpoint": {"isHidden": False, "lastMessageReadDateTime": None},
        "isHiddenForAllMembers": None,
    }
    if "members" in call.query.get("$expand", ""):
        body["members"] = [_member(call, each) for each in sorted(chat.members)]
    return body


def _chat(call: Call, chat_id: str) -> Channel:
    chat = call.world.teams.channels.get(chat_id)
    if chat is None or chat.team is not None or call.user.id not in chat.members or chat.deleted:
        raise GraphError(404, "NotFound", "Chat not found")
    return chat


def one_chat(call: Call, chat_id: str) -> Reply:
    return Reply(body=_shown_chat(call, _chat(call, chat_id)))


def chat_members(call: Call, chat_id: str) -> Reply:
    return collection(call, "members", [_member(call, each) for each in sorted(_chat(call, chat_id).members)])


def chat_messages(call: Call, chat_id: str) -> Reply:
    chat, size = _chat(call, chat_id), _size(call)
    rows = sorted(call.world.teams.roots(chat), key=lambda each: (each.modified, each.id), reverse=True)
    bounds = re.findall(
        r"(lastModifiedDateTime|createdDateTime) (gt|lt) ([0-9T:.Z+-]+)", call.query.get("$filter", "")
    )
    for name, operator, text in bounds:
        bound = parsed_time(text)
        times = {each.id: each.modified if name.startswith("last") else each.created for each in rows}
        rows = [each for each in rows if (times[each.id] > bound) == (operator == "gt")]
    reply = listed(call, "messages", rows, size=size)
    reply.body["value"] = [shown_message(call, each) for each in reply.body["value"]]
    return reply


def chat_message(call: Call, chat_id: str, message_id: str) -> Reply:
    message = call.world.teams.messages.get(message_id)
    if message is None or message.channel is not _chat(call, chat_id):
        raise GraphError(404, "NotFound", "Message not found")
    return Reply(body=shown_message(call, message))


def chat_changes(call: Call, chat_id: str) -> Reply:
    return _changes(call, _chat(call, chat_id), f"/chats/{chat_id}/messages/delta")


def all_chat_changes(_call: Call, _who: str) -> Reply:
    raise GraphError(412, "PreconditionFailed", "Requested API is not supported in delegated context")
