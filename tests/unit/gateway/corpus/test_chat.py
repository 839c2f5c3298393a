"""A chat model is read as it speaks; what goes wrong is told apart and never quotes the service or the prompt."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.corpus.chat import ChatModel, ChatRefused, ChatUnavailable, Message
from gateway.errors import ConfigurationError
from gateway.settings import Settings
from tests.fixtures.chat_service import DONE, ChatService, chat_service, said

PROMPT: list[Message] = [{"role": "user", "content": "What is Project Heron?"}]


@pytest.fixture
async def service() -> AsyncIterator[ChatService]:
    async with chat_service() as service:
        yield service


@pytest.fixture
async def model(service: ChatService) -> AsyncIterator[ChatModel]:
    model = ChatModel("m-1", api_key="sk-secret", base_url=service.url, first_pause=0.001)
    yield model
    await model.aclose()


async def listen(model: ChatModel) -> tuple[str, str | None]:
    async with model.ask(PROMPT) as stream:
        return "".join([piece async for piece in stream.pieces()]), stream.finish


async def test_the_pieces_of_an_answer_arrive_in_order(service: ChatService, model: ChatModel) -> None:
    service.stream(b": ping\n\n", said("A "), said("merger."), said("", "stop"), DONE)
    assert await listen(model) == ("A merger.", "stop")
    assert service.requests == [{"model": "m-1", "messages": PROMPT, "stream": True}]
    assert service.headers[0]["authorization"] == "Bearer sk-secret"


async def test_an_event_cut_in_the_middle_by_the_network_is_put_together(
    service: ChatService, model: ChatModel
) -> None:
    event = said("Größe")
    service.stream(event[:20], event[20:45], event[45:], DONE)
    assert await listen(model) == ("Größe", "stop")


async def test_a_connection_torn_in_the_middle_is_unavailable_after_what_was_said(
    service: ChatService, model: ChatModel
) -> None:
    service.stream(said("Half an "), cut=True)
    async with model.ask(PROMPT) as stream:
        pieces = stream.pieces()
        assert await anext(pieces) == "Half an "
        with pytest.raises(ChatUnavailable):
            await anext(pieces)


async def test_a_stream_that_ends_without_a_word_about_it_has_no_finish(
    service: ChatService, model: ChatModel
) -> None:
    service.stream(said("Half an "))
    assert await listen(model) == ("Half an ", None)


@pytest.mark.parametrize(
    "event",
    [
        b"data: {not json\n\n",
        b"data: []\n\n",
        b'data: {"choices": 7}\n\n',
        b'data: {"choices": [{"delta": {}, "finish_reason": 5}]}\n\n',
        b'data: {"choices": [{"delta": {"content": [{"type": "text"}]}}]}\n\n',
    ],
)
async def test_nonsense_is_unavailable(service: ChatService, model: ChatModel, event: bytes) -> None:
    service.stream(event)
    with pytest.raises(ChatUnavailable):
        await listen(model)


async def test_bytes_that_do_not_unpack_are_unavailable(service: ChatService, model: ChatModel) -> None:
    service.scripts.append(
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\nnot gzip.."
    )
    with pytest.raises(ChatUnavailable):
        await listen(model)


async def test_an_error_inside_the_stream_is_unavailable_and_not_quoted(
    service: ChatService, model: ChatModel
) -> None:
    service.stream(said("So"), b'data: {"error": {"message": "SECRET-WORDS-OF-THE-SERVICE"}}\n\n')
    with pytest.raises(ChatUnavailable) as caught:
        await listen(model)
    assert "SECRET" not in str(caught.value)


async def test_passing_trouble_is_tried_again(service: ChatService, model: ChatModel) -> None:
    service.refuse(429, **{"Retry-After": "0"})
    service.hang_up()
    service.stream(said("Now."), DONE)
    assert await listen(model) == ("Now.", "stop")
    assert len(service.requests) == 3


@pytest.mark.parametrize(("status", "kind"), [(401, ChatRefused), (400, ChatRefused), (503, ChatUnavailable)])
async def test_a_refusal_is_told_from_trouble_and_quotes_nobody(
    service: ChatService, model: ChatModel, status: int, kind: type[Exception]
) -> None:
    service.refuse(status)
    with pytest.raises(kind) as caught:
        await listen(model)
    assert not any(word in str(caught.value) for word in ("SECRET", "Heron", "sk-"))
    assert len(service.requests) == (1 if kind is ChatRefused else 3)


async def test_a_long_pause_asked_for_is_not_slept_through(service: ChatService, model: ChatModel) -> None:
    service.refuse(429, **{"Retry-After": "3600"})
    with pytest.raises(ChatUnavailable):
        await listen(model)
    assert len(service.requests) == 1


async def test_a_model_that_hangs_is_waited_for_once(service: ChatService) -> None:
    """Somebody waits for the answer; extracts after one minute are better than after three."""
    hanging = asyncio.Event()
    service.stream(said("Never."), DONE)
    service.before_answer = hanging.wait
    model = ChatModel("m-1", api_key=None, base_url=service.url, first_pause=0.001, timeout=0.05)
    with pytest.raises(ChatUnavailable):
        await listen(model)
    assert len(service.requests) == 1
    hanging.set()
    await model.aclose()


async def test_a_model_that_goes_on_and_on_is_stopped(service: ChatService, model: ChatModel) -> None:
    service.stream(*(said("x" * 30_000) for _ in range(10)))
    text, finish = await listen(model)
    assert 100_000 < len(text) <= 130_000
    assert finish is None


async def test_a_model_that_keeps_the_line_open_without_a_word_is_left(
    service: ChatService, model: ChatModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.corpus.chat.LONGEST_SECONDS", -1.0)
    service.stream(*[b": ping\n\n"] * 3, said("Late."), DONE)
    assert await listen(model) == ("", None)


def test_without_the_setting_there_is_no_model_and_a_model_needs_a_service() -> None:
    assert ChatModel.of(Settings(chat_model=None)) is None
    with pytest.raises(ConfigurationError):
        ChatModel.of(Settings(chat_model="m", openai_api_key=None, openai_base_url=None))
