"""A reranking service on the loopback, whose opinion a test decides."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any


class Opinion:
    """`scores` gives a score per text; None: the service breaks."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[tuple[dict[str, Any], str]] = []
        self.scores: Callable[[Sequence[str]], Sequence[float]] | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:] if line)}
            body = json.loads(await reader.readexactly(int(headers["content-length"])))
            self.asked.append((body, headers.get("authorization", "")))
            status, answer = HTTPStatus.INTERNAL_SERVER_ERROR, b"{}"
            if self.scores is not None:
                given = enumerate(self.scores(body["documents"]))
                results = [{"index": index, "relevance_score": score} for index, score in given]
                status, answer = HTTPStatus.OK, json.dumps({"results": results}).encode()
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Length: {len(answer)}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode() + answer)
            await writer.drain()
        finally:
            writer.close()


@asynccontextmanager
async def opinions() -> AsyncIterator[Opinion]:
    opinion = Opinion()
    server = await asyncio.start_server(opinion.serve, "127.0.0.1", 0)
    opinion.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server:
        yield opinion
