"""A chat model behind an OpenAI-compatible address, read as it speaks.

No error carries the prompt, the key or the service's own words, which may quote the prompt. Whoever reads the stream
learns from `ChatStream.finish` whether the model had said everything.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, TypedDict

import httpx
import orjson

from gateway.errors import CatchmentError, ConfigurationError
from gateway.settings import Settings

DEFAULT_BASE_URL = "https://api.openai.com/v1"
_ATTEMPTS = 3
_LONGEST_PAUSE = 10.0
_PASSING = frozenset({408, 409, 425, 429})
LONGEST_ANSWER = 100_000  # characters; a model that goes on and on is stopped
LONGEST_SECONDS = 600.0  # and one that keeps the line open without a word


class Message(TypedDict):
    role: Literal["system", "user", "assistant"]
    content: str


class ChatUnavailable(CatchmentError):
    """The chat model does not answer properly; try again shortly."""

    code = "chat.unavailable"
    status = 503
    retryable = True


class ChatRefused(CatchmentError):
    """The chat model refuses the request."""

    code = "chat.refused"
    status = 502


class ChatStream:
    """The pieces of one answer. `finish` is None while it runs and after a stream that broke off."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self.finish: str | None = None

    async def pieces(self) -> AsyncGenerator[str]:
        said, until = 0, time.monotonic() + LONGEST_SECONDS
        try:
            async for line in self._response.aiter_lines():
                piece = self._read(line)
                if piece:
                    said += len(piece)
                    yield piece
                if self.finish is not None or said > LONGEST_ANSWER or time.monotonic() > until:
                    return
        except httpx.RequestError as error:  # also bytes that do not unpack
            raise ChatUnavailable(f"The chat model broke off ({type(error).__name__}).") from None

    def _read(self, line: str) -> str:
        field, _, value = line.partition(":")
        if field != "data":  # a comment, an event name, the blank line between two events
            return ""
        if value.strip() == "[DONE]":
            self.finish = self.finish or "stop"
            return ""
        try:
            body: dict[str, Any] = orjson.loads(value)
            if body.get("error"):
                raise ChatUnavailable("The chat model reports an error in the middle of its answer.")
            choice: dict[str, Any] = next(iter(body.get("choices") or ()), {})
            finish, piece = choice.get("finish_reason"), (choice.get("delta") or {}).get("content")
        except (ValueError, TypeError, AttributeError):
            raise ChatUnavailable("The chat model's answer makes no sense.") from None
        if not (isinstance(finish, str | None) and isinstance(piece, str | None)):
            raise ChatUnavailable("The chat model's answer makes no sense.")
        self.finish = finish or self.finish
        return piece or ""


class ChatModel:
    def __init__(
        self,
        name: str,
        *,
        api_key: str | None,
        base_url: str = DEFAULT_BASE_URL,
        first_pause: float = 0.5,
        timeout: float = 60.0,
    ) -> None:
        self.name = name
        self._first_pause = first_pause
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx.AsyncClient(headers=headers, timeout=httpx.Timeout(timeout, connect=10.0))

    @classmethod
    def of(cls, settings: Settings) -> "ChatModel | None":
        """The model the settings name, or None: then answers are made of extracts."""
        if settings.chat_model is None:
            return None
        key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else None
        if key is None and settings.openai_base_url is None:
            raise ConfigurationError(
                "CATCHMENT_CHAT_MODEL needs CATCHMENT_OPENAI_API_KEY, or CATCHMENT_OPENAI_BASE_URL"
            )
        return cls(settings.chat_model, api_key=key, base_url=settings.openai_base_url or DEFAULT_BASE_URL)

    async def aclose(self) -> None:
        await self._client.aclose()

    @asynccontextmanager
    async def ask(self, messages: Sequence[Message]) -> AsyncGenerator[ChatStream]:
        """Raises before the first word, or not at all: what goes wrong later is the stream's to say."""
        request = self._client.build_request(
            "POST", self._url, json={"model": self.name, "messages": list(messages), "stream": True}
        )
        response = await self._send(request)
        try:
            yield ChatStream(response)
        finally:
            await response.aclose()

    async def _send(self, request: httpx.Request) -> httpx.Response:
        for attempt in range(1, _ATTEMPTS + 1):
            pause = self._first_pause * 2 ** (attempt - 1) * random.uniform(0.5, 1.0)  # noqa: S311 jitter
            try:
                response = await self._client.send(request, stream=True)
            except httpx.ReadTimeout:  # a second minute would be no shorter, and might be paid for twice
                raise ChatUnavailable("No answer from the chat model in time.") from None
            except httpx.RequestError as error:
                detail = f"No answer from the chat model ({type(error).__name__})."
            else:
                if response.status_code == 200:
                    return response
                await response.aclose()
                detail = f"The chat model answers {response.status_code}."
                if response.status_code not in _PASSING and response.status_code < 500:
                    raise ChatRefused(detail)
                pause = max(pause, _retry_after(response))
            if attempt == _ATTEMPTS or pause > _LONGEST_PAUSE:
                raise ChatUnavailable(detail)
            await asyncio.sleep(pause)
        raise AssertionError("unreachable")


def _retry_after(response: httpx.Response) -> float:
    try:
        return float(response.headers.get("Retry-After", "0"))
    except ValueError:  # a date: rare, and our own pause will do
        return 0.0
