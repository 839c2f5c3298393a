"""What is kept of a document: masked the same way every time, with everything else where it was."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.corpus.masking import PLACEHOLDER, placeholder_key
from tests.fixtures.canaries import MORE_VENDORS, PERSONAL, SECRETS, SHAPES, SURROUNDINGS, Canary
from tests.fixtures.ordinary_paragraphs import ordinary_paragraphs
from workers.pipeline.extracted import SEPARATOR, Attachment, Extracted, Unit
from workers.pipeline.neutralise import Neutralised, neutralise

POLICY = {"placeholder_key": placeholder_key("a key for tests", "mandate"), "neutralize": True}
TOKENS = [Canary(SURROUNDINGS[0].format(token), (token,), "") for token in (*SHAPES.values(), *MORE_VENDORS)]
CANARIES = [*SECRETS, *TOKENS, *PERSONAL]
ORDINARY = [text for _, text in ordinary_paragraphs(60)]


def masked(text: str, **policy: object) -> Neutralised:
    return neutralise(
        Extracted(text, [Unit("text", 0, len(text), {"kind": "text"})]), policy={**POLICY, **policy}
    )


documents = st.lists(
    st.one_of(
        st.sampled_from([canary.text for canary in CANARIES]),
        st.sampled_from(ORDINARY),
        st.sampled_from(
            ["[secret:password:0a1b2c3d]", "password: ", "[email:0a1b2c3d]", "@", "'", '"', "|", "=", ":"]
        ),
        st.text(max_size=20),
    ),
    max_size=6,
).flatmap(
    lambda parts: st.sampled_from(["\n\n", "\n", " ", "", "\f"]).map(lambda between: between.join(parts))
)


def test_every_planted_canary_is_gone(capsys: pytest.CaptureFixture[str]):
    left = [
        (value, canary.text)
        for canary in CANARIES
        for value in canary.values
        if value in masked(canary.text).text
    ]
    with capsys.disabled():
        print(f"\n{len(CANARIES)} canaries planted, {len(left)} left: {left}")
    assert left == []


def test_all_canaries_in_one_document_are_gone_and_counted_without_their_values():
    text = "\n\n".join(canary.text for canary in CANARIES)
    result = masked(text)
    assert [value for canary in CANARIES for value in canary.values if value in result.text] == []
    assert sum(result.secrets.values()) >= len(SECRETS)
    assert set(result.personal_data) == {canary.kind for canary in PERSONAL}
    told = repr((result.secrets, result.personal_data))
    assert [value for canary in CANARIES for value in canary.values if value in told] == []


@settings(deadline=None, max_examples=150)
@given(documents)
def test_neutralising_twice_is_neutralising_once(text: str):
    once = masked(text)
    twice = masked(once.text)
    assert twice.text == once.text
    assert not twice.secrets
    assert not twice.personal_data


@settings(deadline=None, max_examples=150)
@given(documents)
def test_text_outside_of_what_was_found_is_untouched(text: str):
    """What stands between placeholders stands in the original too, in the same order."""
    position = 0
    for piece in PLACEHOLDER.split(masked(text).text):
        position = text.index(piece, position) + len(piece)


@settings(deadline=None, max_examples=60)
@given(st.permutations([*SECRETS[:6], *PERSONAL[:6]]))
def test_placeholders_do_not_depend_on_the_order_of_the_document(canaries: list[Canary]):
    text = "\n\n".join(canary.text for canary in canaries)
    ordered = "\n\n".join(canary.text for canary in [*SECRETS[:6], *PERSONAL[:6]])
    assert sorted(PLACEHOLDER.findall(masked(text).text)) == sorted(PLACEHOLDER.findall(masked(ordered).text))


def test_the_same_value_has_the_same_placeholder_and_another_value_another():
    text = "password: Winter!Sun42\n\ntoken: Winter!Sun42\n\npassword: Summer!Sun42\n"
    first, second, third = PLACEHOLDER.findall(masked(text).text)
    assert first == second != third
    written = masked(
        "Tel. +49 30 901820\n\nTel. 0049 30 901820\n\nAnna@Firma.example und anna@firma.example"
    ).text
    phones, mails = re.findall(r"\[phone:\w+\]", written), re.findall(r"\[email:\w+\]", written)
    assert (len(phones), len(set(phones)), len(mails), len(set(mails))) == (2, 1, 2, 1)


def test_another_mandate_has_other_placeholders():
    text = "password: Winter!Sun42"
    assert (
        masked(text).text != masked(text, placeholder_key=placeholder_key("a key for tests", "another")).text
    )


def test_secrets_go_always_and_personal_data_when_asked():
    text = "password: Winter!Sun42, anna@firma.example"
    kept = masked(text, neutralize=False)
    assert "Winter!Sun42" not in kept.text
    assert "anna@firma.example" in kept.text
    assert (kept.secrets, kept.personal_data) == ({"password": 1}, {})


def test_kinds_on_the_allowlist_stay():
    text = "anna@firma.example, Tel. +49 30 901820"
    kept = masked(text, allow_personal_data=["email"])
    assert "anna@firma.example" in kept.text
    assert kept.personal_data == {"phone": 1}


def test_without_a_key_a_document_with_findings_fails_and_one_without_passes():
    extracted = Extracted("password: Winter!Sun42", [])
    with pytest.raises(ValueError, match="placeholder_key") as failure:
        neutralise(extracted, policy={})
    assert "Winter" not in str(failure.value)
    assert neutralise(Extracted("nothing here", []), policy={}).text == "nothing here"


def test_units_move_with_the_text():
    pages = ["Passwort: Sommer2026! gilt bis Mai.", "Nichts Geheimes.", "Mail an anna@firma.example senden."]
    text, units = "", list[Unit]()
    for number, page in enumerate(pages, 1):
        text += SEPARATOR if text else ""
        units.append(Unit("page", len(text), len(text) + len(page), {"kind": "pdf", "page": number}))
        text += page
    result = neutralise(Extracted(text, units, page_count=3, warnings=["w"]), policy=POLICY)
    assert [result.text[unit.text_start : unit.text_end] for unit in result.units] == [
        masked(page).text for page in pages
    ]
    assert [unit.locator["page"] for unit in result.units] == [1, 2, 3]
    assert (result.page_count, result.warnings) == (3, ["w"])


def test_headings_and_locators_are_masked_too():
    text = "Zugang\nPasswort: Sommer2026!"
    unit = Unit(
        "block",
        0,
        len(text),
        {
            "kind": "web",
            "url": "https://host.example/?token=a1b2c3d4e5",
            "section": "Mail anna@firma.example",
            "page": 1,
        },
        heading_path="Sommer2026! > anna@firma.example",
    )
    (kept,) = neutralise(Extracted(text, [unit]), policy=POLICY).units
    told = repr((kept.heading_path, kept.locator))
    assert "Sommer2026!" not in told
    assert "a1b2c3d4e5" not in told
    assert "anna@firma.example" not in told
    assert kept.locator["page"] == 1


def test_a_message_id_in_a_locator_still_resolves():
    text = "Hallo"
    unit = Unit("text", 0, len(text), {"kind": "mail", "messageId": "<4711.abc@mail.example>"})
    assert (
        neutralise(Extracted(text, [unit]), policy=POLICY).units[0].locator["messageId"]
        == "<4711.abc@mail.example>"
    )


def test_a_file_inside_loses_in_its_title_what_the_mail_knows_of_and_keeps_its_name():
    text = "From: Annabel Schmidtke <a@firma.example>\n\nPassword: Sommer2026!\n"
    names = ("CV_Annabel_Schmidtke.pdf", "annabel-schmidtke 2026.docx", "Sommer2026!.zip", "Minutes.pdf")
    inside = [Attachment(name, None, b"") for name in names]
    extracted = Extracted(text, [Unit("text", 0, len(text), {"kind": "text"})], attachments=inside)
    found = neutralise(extracted, policy=POLICY).attachments
    assert [item.name for item in found] == list(names)
    titles = [re.sub(r"[0-9a-f]{8}\]", "…]", item.title or "") for item in found]
    assert titles == ["CV_[person:…].pdf", "[person:…] 2026.docx", "[secret:password:…].zip", "Minutes.pdf"]
    unasked = neutralise(extracted, policy={**POLICY, "neutralize": False}).attachments
    assert (unasked[0].title, unasked[3].title) == ("CV_Annabel_Schmidtke.pdf", "Minutes.pdf")


def test_words_a_caller_puts_into_a_locator_are_words_and_what_must_resolve_keeps_its_way():
    locator = {
        "kind": "text",
        "note": "by anna@firma.example",
        "path": "/home/anna@firma.example?password=Sommer2026!",
    }
    (unit,) = neutralise(Extracted("herons", [Unit("text", 0, 6, locator)]), policy=POLICY).units
    assert "anna" not in unit.locator["note"]
    assert unit.locator["path"].startswith("/home/anna@firma.example?password=[secret:")
