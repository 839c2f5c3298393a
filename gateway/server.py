"""The HTTP server in front of the application: uvicorn, with a bound on what it keeps of a request before anybody is asked.

The parser itself has none: headers without end would fill the memory, and no key is needed to send them. What never becomes
a request is refused in the shape of every other error.
"""

import json

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gateway.db import new_id
from gateway.errors import InvalidRequest

# Address, cookies and tokens of a real request are a few thousand; proxies allow 8 to 64 KiB.
MOST_HEAD_BYTES = 128 * 1024


class BoundedHttp(HttpToolsProtocol):
    """One connection."""

    _in_head, _seen = False, 0

    def on_message_begin(self) -> None:
        self._in_head, self._seen = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head and not self.transport.is_closing():
            self._seen += len(data)
            if self._seen > MOST_HEAD_BYTES:
                self.send_400_response(f"The head of a request may have {MOST_HEAD_BYTES} bytes.")

    def send_400_response(self, msg: str) -> None:
        request_id = new_id().hex
        body = json.dumps(InvalidRequest(msg).problem("", request_id)).encode()
        head = (
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\n"
            f"x-request-id: {request_id}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


def server_of(app: ASGIApp) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=BoundedHttp,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=5,
        )
    )
