"""Drive v3 over HTTP."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Route

from connectors.sandbox.google.answers import GoogleError, Json, bad_request, not_found, stamp
from connectors.sandbox.google.channels import HOUR
from connectors.sandbox.google.consent import subject
from connectors.sandbox.google.door import Call, Door
from connectors.sandbox.google.exports import FORMATS, LIMIT, WEIGHED
from connectors.sandbox.google.files import FIRST_CHANGE, DriveFile, SharedDrive
from connectors.sandbox.tokens import encoded

if TYPE_CHECKING:
    from connectors.sandbox.google.world import GoogleWorld

FILE = "kind,id,name,mimeType"
DEFAULTS = {
    "drive_files": f"kind,nextPageToken,incompleteSearch,files({FILE})",
    "drive_file": FILE,
    "drive_changes": f"kind,nextPageToken,newStartPageToken,changes(kind,removed,fileId,driveId,time,changeType,type,file({FILE}))",
    "drive_permissions": "kind,nextPageToken,permissions(kind,id,type,role)",
    "drive_about": "kind",
}
Test = Callable[[DriveFile], bool]


class DriveApi:
    def __init__(self, world: "GoogleWorld") -> None:
        self._world = world
        self._listings: dict[str, list[str]] = {}  # what is left of a listing, by page token

    def routes(self) -> list[Route]:
        door = Door(self._world, ("drive", "drive.readonly", "drive.metadata.readonly"), DEFAULTS)
        at = "/drive/v3"
        return [
            door.route(f"{at}/about", self.drive_about),
            door.route(f"{at}/drives", self.drive_drives),
            door.route(f"{at}/drives/{{id}}", self.drive_drive),
            door.route(f"{at}/files", self.drive_files),
            door.route(f"{at}/files/{{id}}", self.drive_file, media=self.drive_download),
            door.route(f"{at}/files/{{id}}/export", self.drive_export, media=self.drive_export),
            door.route(f"{at}/files/{{id}}/permissions", self.drive_permissions),
            door.route(f"{at}/changes/startPageToken", self.drive_start_token),
            door.route(f"{at}/changes", self.drive_changes),
            door.route(f"{at}/changes/watch", self.drive_watch, method="POST"),
            door.route(f"{at}/channels/stop", self.drive_stop, method="POST"),
        ]

    # -- the account

    def drive_about(self, call: Call) -> Json:
        person = {"kind": "drive#user", "emailAddress": call.user, "me": True}
        used = sum(len(file.content) for file in self._world.files.files.values() if file.owner == call.user)
        return {
            "kind": "drive#about",
            "user": {**person, "displayName": call.user.partition("@")[0].title()},
            "storageQuota": {"usage": str(used), "usageInDrive": str(used), "limit": str(15 * 2**30)},
            "exportFormats": {kind: list(formats) for kind, formats in FORMATS.items()},
        }

    def drive_drives(self, call: Call) -> Json:
        mine = [drive for drive in self._world.files.drives.values() if call.user in drive.members]
        start = int(call.query.get("pageToken") or 0)
        size = call.number("pageSize", 10, 100)
        found: Json = {
            "kind": "drive#driveList",
            "drives": [_drive(each) for each in mine[start : start + size]],
        }
        return {**found, "nextPageToken": str(start + size)} if len(mine) > start + size else found

    def drive_drive(self, call: Call) -> Json:
        return _drive(self._drive(call, call.path["id"]))

    def _drive(self, call: Call, drive_id: str) -> SharedDrive:
        if self._world.faults.take("forbid_container", path=f"{drive_id} {call.where}"):
            raise GoogleError(403, "teamDriveMembershipRequired", "The attempted action requires membership.")
        drive = self._world.files.drives.get(drive_id)
        if drive is None or call.user not in drive.members:
            raise not_found(f"Shared drive not found: {drive_id}", location="driveId")
        return drive

    # -- files

    def drive_files(self, call: Call) -> Json:
        token = call.query.get("pageToken")
        if token is None:
            left = self._listed(call)
        elif token in self._listings:
            left = self._listings[token]
        else:
            raise bad_request("Invalid Value", location="pageToken")
        size = call.number("pageSize", 100, 1000)
        if self._world.faults.take("empty_page", path=call.where):
            size = 0
        files = self._world.files
        page = [files.files[each] for each in left[:size]]
        found: Json = {
            "kind": "drive#fileList",
            "incompleteSearch": False,
            "files": [files.resource(each, call.user) for each in page if files.sees(call.user, each)],
        }
        if left[size:]:
            following = "~!!~AI9" + encoded(self._world.ids.digest("listing"))
            self._listings[following] = left[size:]
            found["nextPageToken"] = following
        return found

    def _listed(self, call: Call) -> list[str]:
        files, query = self._world.files, call.query
        drive_id = query.get("driveId")
        if query.get("corpora") == "drive" or drive_id is not None:
            if query.get("includeItemsFromAllDrives") != "true" or query.get("supportsAllDrives") != "true":
                raise bad_request(
                    "The driveId parameter needs includeItemsFromAllDrives.", location="driveId"
                )
            drive_id = self._drive(call, drive_id or "").id
        test = _query(query.get("q", ""), self._world, call.user)
        everywhere = query.get("includeItemsFromAllDrives") == "true"
        found = [
            file
            for file in files.files.values()
            if files.sees(call.user, file)
            and (file.drive_id == drive_id if drive_id is not None else everywhere or file.drive_id is None)
            and test(file)
        ]
        found.sort(key=lambda file: file.id)
        for word in reversed([each for each in query.get("orderBy", "").split(",") if each]):
            name, _, direction = word.strip().partition(" ")
            found.sort(key=_order(name), reverse=direction == "desc")
        return [file.id for file in found]

    def _file(self, call: Call, *, anywhere: bool = False) -> DriveFile:
        """`anywhere` for methods that have no parameter to say that shared drives are understood."""
        files = self._world.files
        file = files.files.get(call.path["id"])
        if file is None or not files.sees(call.user, file):
            raise not_found(f"File not found: {call.path['id']}.", location="fileId")
        if file.drive_id is not None and not anywhere and call.query.get("supportsAllDrives") != "true":
            raise not_found(f"File not found: {call.path['id']}.", location="fileId")
        return file

    def drive_file(self, call: Call) -> Json:
        root = self._world.files.root(call.user)
        if call.path["id"] in {"root", root}:
            folder = "application/vnd.google-apps.folder"
            return {
                "kind": "drive#file",
                "id": root,
                "name": "My Drive",
                "mimeType": folder,
                "ownedByMe": True,
            }
        if call.path["id"] in self._world.files.drives:
            drive = self._drive(call, call.path["id"])
            folder = "application/vnd.google-apps.folder"
            return {
                "kind": "drive#file",
                "id": drive.id,
                "name": drive.name,
                "mimeType": folder,
                "driveId": drive.id,
            }
        return self._world.files.resource(self._file(call), call.user)

    def drive_download(self, call: Call) -> Response:
        file = self._file(call)
        if not file.is_binary:
            raise GoogleError(
                403,
                "fileNotDownloadable",
                "Only files with binary content can be downloaded. Use Export with Docs Editors files.",
                location="alt",
            )
        if self._world.faults.take("abusive", path=call.where):
            raise GoogleError(
                403, "cannotDownloadAbusiveFile", "This file has been identified as malware or spam."
            )
        return _ranged(file.content, file.mime_type, call.headers.get("range"))

    def drive_export(self, call: Call) -> Response:
        file, kind = self._file(call, anywhere=True), call.query.get("mimeType", "")
        formats = FORMATS.get(file.mime_type)
        if formats is None:
            raise GoogleError(403, "fileNotExportable", "Export only supports Docs Editors files.")
        if kind not in formats:
            raise bad_request("The requested conversion is not supported.", location="convertTo")
        data = formats[kind](file.content.decode())
        weight = len(data) + (file.weight if kind in WEIGHED else 0)
        if weight > LIMIT or self._world.faults.take("export_too_large", path=call.where):
            raise GoogleError(403, "exportSizeLimitExceeded", "This file is too large to be exported.")
        return _ranged(data, kind, call.headers.get("range"))

    def drive_permissions(self, call: Call) -> Json:
        file = self._file(call)
        found = [("owner", file.owner), *(("reader", each) for each in sorted(file.readers))]
        kind = {"kind": "drive#permission", "type": "user"}
        return {
            "kind": "drive#permissionList",
            "permissions": [
                {**kind, "id": subject(user), "role": role, "emailAddress": user} for role, user in found
            ],
        }

    # -- changes

    def _log(self, call: Call) -> str:
        drive_id = call.query.get("driveId")
        return call.user if drive_id is None else self._drive(call, drive_id).id

    def drive_start_token(self, call: Call) -> Json:
        token = str(self._world.files.position(self._log(call)))
        return {"kind": "drive#startPageToken", "startPageToken": token}

    def drive_changes(self, call: Call) -> Json:
        token = call.query.get("pageToken")
        if token is None or not token.isdigit():
            raise GoogleError(400, "required", "Required parameter: pageToken", location="pageToken")
        log, start = self._log(call), int(token)
        size = call.number("pageSize", 100, 1000)
        if self._world.faults.take("empty_page", path=call.where):
            return {"kind": "drive#changeList", "changes": [], "nextPageToken": token}
        if self._world.faults.take("repeat_page", path=call.where):
            size, start = size + 3, max(start - 3, FIRST_CHANGE)  # what was told before, once more
        entries, position = self._world.files.changes(log, start, size)
        found: Json = {
            "kind": "drive#changeList",
            "changes": [self._change(call, log, *entry) for entry in entries],
        }
        at_end = position >= self._world.files.position(log)
        return {**found, "newStartPageToken" if at_end else "nextPageToken": str(position)}

    def _change(self, call: Call, log: str, file_id: str, at: datetime) -> Json:
        files = self._world.files
        file = files.files[file_id]
        found: Json = {
            "kind": "drive#change",
            "changeType": "file",
            "type": "file",
            "time": stamp(at),
            "fileId": file_id,
        }
        in_log = (file.drive_id or call.user) == log
        if not files.sees(call.user, file) or not in_log:
            return {**found, "removed": True}
        return {**found, "removed": False, "file": files.resource(file, call.user)}

    def drive_watch(self, call: Call) -> Json:
        if not call.query.get("pageToken"):
            raise GoogleError(400, "required", "Required parameter: pageToken", location="pageToken")
        uri = f"https://www.googleapis.com/drive/v3/changes?{call.where.partition('?')[2]}"
        return self._world.channels.watch(
            call.body, user=call.user, log=self._log(call), uri=uri, state="change", default=HOUR
        )

    def drive_stop(self, call: Call) -> Response:
        self._world.channels.stop(call.body)
        return Response(status_code=204)


def _drive(drive: SharedDrive) -> Json:
    return {
        "kind": "drive#drive",
        "id": drive.id,
        "name": drive.name,
        "createdTime": stamp(drive.created),
        "hidden": False,
    }


def _order(name: str) -> Callable[[DriveFile], datetime | str]:
    if name == "modifiedTime":
        return lambda file: file.modified
    if name == "createdTime":
        return lambda file: file.created
    return lambda file: file.name


def _ranged(data: bytes, kind: str, wanted: str | None) -> Response:
    found = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted or "")
    if found is None:
        return Response(data, media_type=kind)
    start, end = int(found[1]), min(int(found[2] or len(data)), len(data) - 1)
    if start >= len(data):
        return Response(status_code=416, headers={"Content-Range": f"bytes */{len(data)}"})
    headers = {"Content-Range": f"bytes {start}-{end}/{len(data)}"}
    return Response(data[start : end + 1], status_code=206, media_type=kind, headers=headers)


# -- searches: clauses joined by `and`

_CLAUSES: list[tuple[str, Callable[["re.Match[str]", "GoogleWorld", str], Test]]] = [
    (r"trashed\s*=\s*(true|false)", lambda m, w, _u: lambda f: w.files.is_trashed(f) == (m[1] == "true")),
    (r"mimeType\s*=\s*'([^']*)'", lambda m, _w, _u: lambda f: f.mime_type == m[1]),
    (r"mimeType\s*!=\s*'([^']*)'", lambda m, _w, _u: lambda f: f.mime_type != m[1]),
    (
        r"'([^']*)' in parents",
        lambda m, w, u: lambda f: f.parent == (w.files.root(u) if m[1] == "root" else m[1]),
    ),
    (r"'me' in owners", lambda _m, _w, u: lambda f: f.drive_id is None and f.owner == u),
    (r"sharedWithMe(?:\s*=\s*true)?", lambda _m, _w, u: lambda f: f.drive_id is None and f.owner != u),
    (r"shortcutDetails\.targetId\s*=\s*'([^']*)'", lambda m, _w, _u: lambda f: f.target == m[1]),
    (r"modifiedTime\s*>\s*'([^']*)'", lambda m, _w, _u: lambda f: stamp(f.modified) > m[1]),
    (r"name\s*=\s*'([^']*)'", lambda m, _w, _u: lambda f: f.name == m[1]),
]


def _query(text: str, world: "GoogleWorld", user: str) -> Test:
    tests: list[Test] = []
    for clause in re.split(r"\s+and\s+", text.strip()) if text.strip() else ():
        for pattern, make in _CLAUSES:
            if found := re.fullmatch(pattern, clause):
                tests.append(make(found, world, user))
                break
        else:
            raise bad_request("Invalid Value", location="q")
    return lambda file: all(test(file) for test in tests)
