"""Gmail v1 over HTTP."""

import base64
from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Route

from connectors.sandbox.google.answers import GoogleError, Json, bad_request, not_found
from connectors.sandbox.google.door import Call, Door
from connectors.sandbox.google.mailbox import SYSTEM_LABELS, Mailbox, Message
from connectors.sandbox.world import NoSuchObject

if TYPE_CHECKING:
    from connectors.sandbox.google.world import GoogleWorld

MISSING = "Requested entity was not found."


class GmailApi:
    def __init__(self, world: "GoogleWorld") -> None:
        self._world = world
        self._listings: dict[str, list[str]] = {}

    def routes(self) -> list[Route]:
        door = Door(self._world, ("gmail.readonly", "gmail.modify"), {})
        at = "/gmail/v1/users/{user}"
        return [
            door.route(f"{at}/profile", self.gmail_profile),
            door.route(f"{at}/labels", self.gmail_labels),
            door.route(f"{at}/messages", self.gmail_messages),
            door.route(f"{at}/messages/{{id}}", self.gmail_message),
            door.route(f"{at}/messages/{{id}}/attachments/{{attachment}}", self.gmail_attachment),
            door.route(f"{at}/history", self.gmail_history),
            door.route(f"{at}/watch", self.gmail_watch, method="POST"),
            door.route(f"{at}/stop", self.gmail_stop, method="POST"),
        ]

    def _box(self, call: Call) -> Mailbox:
        if call.path["user"] not in {"me", call.user}:
            raise GoogleError(403, "forbidden", f"Delegation denied for {call.user}")
        return self._world.mailboxes[call.user]

    def _message(self, call: Call) -> Message:
        try:
            return self._box(call).known(call.path["id"])
        except NoSuchObject as error:
            raise not_found(MISSING) from error

    def gmail_profile(self, call: Call) -> Json:
        box = self._box(call)
        live = [each for each in box.messages.values() if not each.gone]
        return {
            "emailAddress": box.address,
            "messagesTotal": len(live),
            "threadsTotal": len({each.thread_id for each in live}),
            "historyId": str(box.latest),
        }

    def gmail_labels(self, call: Call) -> Json:
        return {
            "labels": [
                {"id": each, "name": name, "type": "system" if each in SYSTEM_LABELS else "user"}
                for each, name in self._box(call).labels.items()
            ]
        }

    def gmail_messages(self, call: Call) -> Json:
        box, token = self._box(call), call.query.get("pageToken")
        size = call.number("maxResults", 100, 500)
        if token is not None and token not in self._listings:
            raise bad_request("Invalid pageToken")
        if token is not None:
            left = self._listings[token]
        else:
            found = box.found(
                call.query.get("q", ""),
                call.query.getlist("labelIds"),
                spam_and_trash=call.query.get("includeSpamTrash") == "true",
            )
            left = [each.id for each in found]
        if self._world.faults.take("empty_page", path=call.where):
            size = 0
        answer: Json = {"resultSizeEstimate": len(left)}
        if left[:size]:  # no key at all on an empty page
            answer["messages"] = [
                {"id": each, "threadId": box.messages[each].thread_id} for each in left[:size]
            ]
        if left[size:]:
            following = str(int.from_bytes(self._world.ids.digest("listing")[:8]))
            self._listings[following] = left[size:]
            answer["nextPageToken"] = following
        return answer

    def gmail_message(self, call: Call) -> Json:
        form = call.query.get("format", "full")
        if form not in {"full", "metadata", "minimal", "raw"}:
            raise bad_request("Invalid value for format", location="format")
        return self._box(call).resource(self._message(call), form, call.query.getlist("metadataHeaders"))

    def gmail_attachment(self, call: Call) -> Json:
        found = self._box(call).attachment(self._message(call), call.path["attachment"])
        return {"size": len(found), "data": base64.urlsafe_b64encode(found).decode()}

    def gmail_history(self, call: Call) -> Json:
        box, start = self._box(call), call.query.get("startHistoryId", "")
        if not start.isdigit():
            raise bad_request("Missing/invalid parameter: startHistoryId")
        if int(start) < box.forgotten or self._world.faults.take("cursor_expiry", path=call.where):
            raise not_found(MISSING)
        types = call.query.getlist("historyTypes")
        wanted = {_PLURALS.get(each, each) for each in types}
        records = [
            entry
            for entry in box.history
            if entry["id"] > int(start) and (not wanted or entry["change"] in wanted)
        ]
        offset = int(call.query.get("pageToken") or 0)
        size = call.number("maxResults", 100, 500)
        if self._world.faults.take("empty_page", path=call.where):
            return {"historyId": str(box.latest), "nextPageToken": str(offset)}
        if self._world.faults.take("repeat_page", path=call.where):
            size, offset = size + 3, max(offset - 3, 0)
        found: Json = {"historyId": str(box.latest)}
        page = records[offset : offset + size]
        if page:  # no key at all when nothing is new
            found["history"] = [box.record(entry) for entry in page]
        if records[offset + size :]:
            found["nextPageToken"] = str(offset + size)
        return found

    def gmail_watch(self, call: Call) -> Json:
        topic = call.body.get("topicName", "")
        if not topic.startswith("projects/"):
            raise bad_request("Invalid topicName does not match projects/*/topics/*")
        return self._world.channels.watch_mail(self._box(call).address, topic)

    def gmail_stop(self, call: Call) -> Response:
        self._world.channels.mail.pop(self._box(call).address, None)
        return Response(status_code=204)


_PLURALS = {
    "messageAdded": "messagesAdded",
    "messageDeleted": "messagesDeleted",
    "labelAdded": "labelsAdded",
    "labelRemoved": "labelsRemoved",
}
