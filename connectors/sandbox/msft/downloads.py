"""The other origin: pre-authenticated downloads, which want no token and refuse one."""

import re
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from connectors.sandbox.msft.file_answers import ticket_of
from connectors.sandbox.msft.world import MicrosoftWorld


class Downloads:
    def __init__(self, world: MicrosoftWorld) -> None:
        self._world = world

    async def download(self, request: Request) -> Response:
        world, ticket = self._world, ticket_of(request.query_params)
        own = request.url.port == int(world.second_url.rpartition(":")[2])
        if not own:
            return JSONResponse({"error": "not here"}, status_code=404)
        if "authorization" in request.headers:
            return _refused(401, "-2147024891", "Do not send Authorization to a pre-authenticated URL.")
        late = world.clock.now().timestamp() > ticket.get("until", 0)
        if late or world.faults.take("expired_download", path=str(request.url)):
            return _refused(401, "unauthenticated", "The download URL has expired.")
        item = world.files.items.get(ticket["item"])
        user = world.people.find(ticket["user"])
        if item is None or item.content is None or not world.files.sees(user, item):
            return _refused(404, "itemNotFound", "The resource could not be found.")
        number = item.etag + (7 if world.faults.take("wrong_etag", path=str(request.url)) else 0)
        headers = {
            "etag": f'"{{{item.guid.upper()}}},{number}"',
            "ctag": f"{{{item.guid.upper()}}},{number},{item.ctag}",
            "accept-ranges": "bytes",
            "content-disposition": f"attachment;filename*=utf-8''{quote(item.name)}",
        }
        return _ranged(request, item.content.data, item.mime or "application/octet-stream", headers)


def _ranged(request: Request, data: bytes, mime: str, headers: dict[str, str]) -> Response:
    asked = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("range", ""))
    if not asked or asked[0] == "bytes=-":
        return Response(data, media_type=mime, headers=headers)
    first = int(asked[1]) if asked[1] else max(0, len(data) - int(asked[2]))
    last = min(int(asked[2]), len(data) - 1) if asked[1] and asked[2] else len(data) - 1
    if first > last:
        return Response(status_code=416, headers={"content-range": f"bytes */{len(data)}"})
    headers["content-range"] = f"bytes {first}-{last}/{len(data)}"
    return Response(data[first : last + 1], status_code=206, media_type=mime, headers=headers)


def _refused(status: int, code: str, message: str) -> Response:
    return JSONResponse({"error": {"code": code, "message": message}}, status_code=status)
