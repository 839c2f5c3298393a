"""Gmail as the engine sees it: a window of mail, labels that end it, a history that may be forgotten."""

from datetime import UTC, datetime, timedelta

import pytest

from connectors.google import gmail
from connectors.google.gmail import MAILBOX
from connectors.kit.contract import CursorLost, ItemGone, Page, Throttled, VendorUnavailable
from tests.contract.google.account import Account, text_of, walk


def days_ago(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat()


async def test_mail_comes_newest_first_with_its_words_and_what_ties_a_thread(ada: Account) -> None:
    first = ada.create(
        "message", subject="Offer", text="The price is 4.20.", at=days_ago(2), messageId="<one@mail.example>"
    )
    reply = ada.create(
        "message",
        subject="Re: Offer",
        threadId=first,
        at=days_ago(1),
        inReplyTo="<one@mail.example>",
        html="<p>Agreed, then.</p><blockquote type=cite>The price is 4.20.</blockquote>",
        text="Agreed, then.\n> The price is 4.20.",
        **{"from": "Ben Brook <ben@demo.example>", "cc": "Carla <carla@supplier.example>"},
    )
    surface = ada.surface("gmail")
    found = await walk(surface)
    assert found.order == ["Re: Offer", "Offer"]
    assert found.complete == {MAILBOX}
    item = found.items[reply]
    assert item.metadata["conversationId"] == found.items[first].metadata["conversationId"]
    assert item.metadata["inReplyTo"] == "<one@mail.example>"
    assert found.items[first].metadata["internetMessageId"] == "<one@mail.example>"
    text = await text_of(surface, item)
    assert "From: Ben Brook <ben@demo.example>" in text
    assert "Cc: Carla" in text
    assert "Agreed, then." in text
    assert "4.20" not in text
    assert [part.locator["part"] for part in item.parts or ()] == ["header", "body"]


async def test_the_history_number_is_taken_before_the_listing(
    ada: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gmail, "PAGE", 10)
    for number in range(25):
        ada.create("message", subject=str(number), text="x")
    pages = ada.surface("gmail").pages(None, "bootstrap")
    first = await anext(pages)
    ada.delete(first.upserts[0].external_id)
    late = ada.create("message", subject="late", text="late")
    cursor = ""
    async for page in pages:
        cursor = page.next_cursor
    delta = await walk(ada.surface("gmail"), cursor)
    assert delta.gone == {first.upserts[0].external_id: "trashed"}
    assert late in delta.items


async def test_a_listing_goes_on_where_it_was_left(ada: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gmail, "PAGE", 10)
    for number in range(25):
        ada.create("message", subject=str(number), text="x")
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = await anext(ada.surface("gmail").pages(cursor, "bootstrap"))
        seen += [item.external_id for item in page.upserts]
        cursor = page.next_cursor
        if page.last:
            break
    assert len(seen) == len(set(seen)) == 25


async def test_what_was_read_before_google_said_wait_is_not_read_again(ada: Account) -> None:
    for number in range(20):
        ada.create("message", subject=str(number), text="x")
    ada.fault("throttle", path="/messages/", after=12, times=None, retryAfter=600)
    pages: list[Page] = []

    async def follow() -> None:
        async for page in ada.surface("gmail").pages(None, "bootstrap"):
            pages.append(page)  # noqa: PERF401 - what came before the end is what counts

    with pytest.raises(Throttled):
        await follow()
    seen = [item.external_id for page in pages for item in page.upserts]
    assert len(seen) == 12
    ada.clear_faults()
    ada.forget_requests()
    rest = await walk(ada.surface("gmail"), pages[-1].next_cursor)
    assert ada.requests()["gmail_message"] == 8
    assert set(seen) | set(rest.items) == {one["id"] for one in ada.state()["gmail"]}


@pytest.mark.parametrize("kind", ["text", "html"])
async def test_words_that_are_told_by_reference_are_asked_for(ada: Account, kind: str) -> None:
    words = "The heron stands in the reeds. " * 3
    made = ada.create(
        "message", subject="Large", apart=True, **{kind: f"<p>{words}</p>" if kind == "html" else words}
    )
    found = await walk(ada.surface("gmail"))
    assert words.strip() in await text_of(ada.surface("gmail"), found.items[made])
    ada.fault("refuse", path="/attachments/", status=403, reason="forbidden")
    again = await walk(ada.surface("gmail"))
    [failure] = [one for page in again.pages for one in page.failures]
    assert (failure.external_id, made in again.items, again.gone) == (made, False, {})


async def test_a_mail_that_hangs_on_another_does_not_take_its_place(ada: Account) -> None:
    made = ada.create(
        "message",
        subject="Fwd",
        text="Please see what they wrote to me.",
        forwarded={"subject": "Invoice", "html": "<p>Pay at once.</p>"},
    )
    found = await walk(ada.surface("gmail"))
    text = await text_of(ada.surface("gmail"), found.items[made])
    assert "Please see what they wrote to me." in text
    assert "Pay at once." not in text
    with_files = ada.surface("gmail", mail_tier="attachments")
    listed = await walk(with_files)
    [mail] = [one for one in listed.items.values() if one.parent_id == made]
    assert (mail.name, mail.mime_type) == ("Invoice.eml", "message/rfc822")
    assert "Pay at once." in await text_of(with_files, mail)


@pytest.mark.parametrize("html", [None, "<p>The message in rich letters.</p>"])
async def test_a_footer_a_gateway_appended_is_not_the_message(ada: Account, html: str | None) -> None:
    rich = {} if html is None else {"html": html}
    made = ada.create(
        "message",
        subject="Offer",
        text="The message in plain letters.",
        footer="<p>Confidential: for the addressee only.</p>",
        **rich,
    )
    found = await walk(ada.surface("gmail"))
    text = await text_of(ada.surface("gmail"), found.items[made])
    assert ("plain letters" in text, "rich letters" in text) == (html is None, html is not None)
    assert "Confidential" in text


async def test_a_mailbox_that_is_not_enabled_has_failed_and_ends_nothing(ada: Account) -> None:
    ada.create("message", subject="one", text="x")
    before = await walk(ada.surface("gmail"))
    ada.fault("refuse", path="gmail/v1/users/me/labels", status=403, reason="accessNotConfigured")
    after = await walk(ada.surface("gmail"), before.cursor)
    assert (after.failed, after.left) == ({MAILBOX}, set())
    assert after.pages[0].refusals == {MAILBOX: "not_enabled"}


async def test_labels_end_and_revive_a_message(ada: Account) -> None:
    kept = ada.create("message", subject="kept", text="x")
    binned = ada.create("message", subject="binned", text="x")
    spam = ada.create("message", subject="spam", text="x")
    erased = ada.create("message", subject="erased", text="x")
    before = await walk(ada.surface("gmail"))
    assert set(before.items) == {kept, binned, spam, erased}
    ada.delete(binned)
    ada.edit(spam, labels=["SPAM"])
    ada.delete(erased, for_good=True)
    ada.edit(kept, labels=["INBOX"])  # only read
    ada.forget_requests()
    after = await walk(ada.surface("gmail"), before.cursor)
    assert set(after.gone) == {binned, spam, erased}
    assert after.items == {}
    assert (
        ada.requests()["gmail_message"] == 2
    )  # not for the one that was only read, nor for the one that is gone
    ada.restore(binned)
    back = await walk(ada.surface("gmail"), after.cursor)
    assert set(back.items) == {binned}
    assert not (await walk(ada.surface("gmail"), back.cursor)).items


async def test_policy_labels_drafts_and_the_window_are_left_out(ada: Account) -> None:
    kept = ada.create("message", subject="kept", text="x", at=days_ago(10))
    ada.create("message", subject="news", text="x", labels=["INBOX", "Newsletter"])
    ada.create("message", subject="draft", text="x", labels=["DRAFT"])
    ada.create("message", subject="old", text="x", at=days_ago(40))
    options = {"mail_skip_folders": ["SPAM", "TRASH", "DRAFT", "newsletter"], "mail_window_days": 30}
    found = await walk(ada.surface("gmail", **options))
    assert set(found.documents) == {kept}
    older = ada.create("message", subject="imported", text="x", at=days_ago(50))
    ada.edit(kept, labels=["INBOX", "Newsletter"])
    after = await walk(ada.surface("gmail", **options), found.cursor)
    assert after.items[older].skip == "outside_window"
    assert set(after.gone) == {kept}


async def test_attachments_are_children_and_found_by_their_part(ada: Account) -> None:
    mail = ada.create(
        "message",
        subject="Files",
        text="see files",
        attachments=[
            {"name": "plan.txt", "mimeType": "text/plain", "text": "the plan"},
            {"name": "big.bin", "mimeType": "application/octet-stream", "text": "x" * 3000},
        ],
    )
    assert set((await walk(ada.surface("gmail"))).items) == {mail}  # not in the default tier
    surface = ada.surface("gmail", mail_tier="attachments", max_attachment_bytes=1000)
    found = await walk(surface)
    plan, big = found.by_name("plan.txt"), found.by_name("big.bin")
    assert (plan.parent_id, plan.source_kind) == (mail, "gmail_attachment")
    assert big.skip == "too_large"
    assert (await surface.fetch(plan)).data == b"the plan"
    again = await walk(ada.surface("gmail", mail_tier="attachments"))
    assert again.by_name("plan.txt").version == plan.version
    ada.delete(mail, for_good=True)
    with pytest.raises(ItemGone):
        await surface.fetch(plan)


async def test_a_forgotten_history_ends_in_a_listing(ada: Account) -> None:
    mail = ada.create("message", subject="one", text="x")
    before = await walk(ada.surface("gmail"))
    ada.fault("cursor_expiry", path="/history")
    with pytest.raises(CursorLost) as lost:
        await walk(ada.surface("gmail"), before.cursor)
    assert lost.value.container_id == MAILBOX
    relisted = await walk(ada.surface("gmail"), lost.value.cursor)
    assert set(relisted.items) == {mail}
    assert relisted.complete == {MAILBOX}
    assert all(page.listing for page in relisted.pages)


@pytest.mark.parametrize("kind", ["empty_page", "repeat_page"])
async def test_strange_pages_lose_nothing(ada: Account, kind: str) -> None:
    one = ada.create("message", subject="one", text="x")
    ada.fault("empty_page", path="/messages")
    before = await walk(ada.surface("gmail"))
    assert set(before.items) == {one}
    two = ada.create("message", subject="two", text="x")
    ada.fault(kind, path="/history")
    assert two in (await walk(ada.surface("gmail"), before.cursor)).items


async def test_one_message_google_will_not_show_costs_one_message(ada: Account) -> None:
    bad = ada.create("message", subject="bad", text="x")
    good = ada.create("message", subject="good", text="x")
    ada.fault("refuse", path=f"/messages/{bad}", status=403, reason="forbidden", times=None)
    found = await walk(ada.surface("gmail"))
    assert set(found.items) == {good}
    failures = [failure for page in found.pages for failure in page.failures]
    assert [failure.external_id for failure in failures] == [bad]


async def test_an_outage_is_no_empty_mailbox(ada: Account) -> None:
    ada.create("message", subject="one", text="x")
    ada.fault("server_error", path="/messages", times=None)
    with pytest.raises(VendorUnavailable):
        await walk(ada.surface("gmail"))


async def test_an_estimate_counts_the_window(ada: Account) -> None:
    for days in (1, 2, 400):
        ada.create("message", subject="x", text="x", at=days_ago(days))
    ada.forget_requests()
    assert (await ada.surface("gmail").estimate()).items == 2
    assert ada.requests()["gmail_message"] == 0
