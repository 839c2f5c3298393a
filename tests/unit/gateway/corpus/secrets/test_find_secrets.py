"""Every planted secret is found with its exact place, and ordinary text is left alone."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway.corpus.secrets import KINDS, contains_secret, find_secrets
from tests.fixtures.canaries import MORE_VENDORS, SECRETS, SHAPES, SURROUNDINGS, Canary
from tests.fixtures.ordinary_paragraphs import ordinary_paragraphs

REPOSITORY = Path(__file__).parents[5]
COLLECTIONS = Path(os.environ.get("CATCHMENT_COLLECTIONS", REPOSITORY.parent / "shared" / "data"))


def found_values(text: str) -> list[str]:
    return [text[start:end] for start, end, _ in find_secrets(text)]


@pytest.mark.parametrize("canary", SECRETS, ids=[canary.text[:60] for canary in SECRETS])
def test_a_planted_secret_is_found_with_its_kind(canary: Canary):
    values = found_values(canary.text)
    for value in canary.values:
        assert any(value in found for found in values), values
    assert canary.kind in contains_secret(canary.text)


@pytest.mark.parametrize(
    ("kind", "token"), [*SHAPES.items(), *(("vendor_token", token) for token in MORE_VENDORS)]
)
def test_a_token_with_a_vendors_shape_is_found_exactly_whatever_stands_around_it(kind: str, token: str):
    kinds = set[str]()
    for surroundings in SURROUNDINGS:
        text = surroundings.format(token)
        assert found_values(text) == [token], text
        kinds |= set(contains_secret(text))
    # A vendor token may belong to a vendor that has a kind of its own.
    assert kind == "vendor_token" or kinds == {kind}


def test_a_token_longer_than_its_pattern_expects_is_taken_whole():
    token = "AC" + "9f8e7d6c5b4a3928" * 3
    assert found_values(f"sid {token}.") == [token]


def test_a_token_broken_at_the_end_of_a_line_is_taken_whole():
    token = SHAPES["github_token"]
    for text in (f"use {token[:24]}\n{token[24:]} for it", f"> {token[:30]}\n> {token[30:]}\n> thanks"):
        (value,) = found_values(text)
        assert "".join(value.split()).replace(">", "") == token
    jwt = SHAPES["jwt"]
    (value,) = found_values(f"token\n{jwt[:50]}\n{jwt[50:]}\nThanks for all of it\n")
    assert "".join(value.split()) == jwt
    assert found_values(f"{token}\nThanks, and see you on Monday") == [token]
    assert found_values(f"{token}\n{token}\n2026-11-18 was the day") == [token, token]


def test_only_the_value_is_taken_not_its_label_quotes_or_punctuation():
    for text, value in {
        '  "password": "geheimnis",': "geheimnis",
        "Le mot de passe est « Soleil2026 ».": "Soleil2026",
        "postgres://app:Zander2026@db/prod": "Zander2026",
        "token=a1b2c3d4e5&next=1": "a1b2c3d4e5",
        "password=abc123x,user=anna": "abc123x",
        "(Passwort: Sommer2026)": "Sommer2026",
    }.items():
        assert found_values(text) == [value]


def test_a_secret_told_by_its_label_is_found_where_it_stands_without_one():
    text = "Passwort: Sommer2026!\n\nBeim Anmelden Sommer2026! eingeben."
    assert found_values(text) == ["Sommer2026!", "Sommer2026!"]


@pytest.mark.parametrize(
    "text",
    [
        "password: ${DB_PASSWORD}",
        "password: {{ vault.password }}",
        "password = os.environ['DB_PASSWORD']",
        "password=<your password>",
        "password: ********",
        "api_key=YOUR_API_KEY",
        "api_key = settings.api_key",
        "token = get_token(user1)",
        'password="password"',
        "def login(password: str, token: str) -> None: ...",
        "password: SecretStr",
        "The password is incorrect.",
        "password must be 12-64 characters",
        "Passwort vergessen?",
        "postgres://user:$PASSWORD@host/db",
        "https://host.example:8443/path?mail=a@b.example",
        "Authorization: Bearer <token>",
        "max_tokens: 4096",
        "next_token: null",
        "secretary: room12",
        'password = "At least 8 characters"',
        '"password": "Step 2 of 3"',
        '"password": "Your Office365 login"',
        "password 8 characters, secret 5 years",
        "SHA256 as the password hash, OAuth2 is the password flow",
        "The password from Server1 to Server2 is the same.",
        "WPA2: Enterprise, WPA3: 802.11ax",
        "SSID: Gast / Key: see the wiki",
        "passwords.count: 120, tokens.max: 4096",
        "pin: 17, opinion: 4821, pin 4711 of the board",
        "radius key figures, the 2FA secret is shown once",
        "primary key: user_id2",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkq\n-----END PUBLIC KEY-----",
    ],
)
def test_references_types_and_talk_about_secrets_are_left_alone(text: str):
    assert find_secrets(text) == []


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Passwort | Kx9mmQ2z\nHost | db1\nPort | 5432", ["Kx9mmQ2z"]),
        ("Passwort | wanderfalke\nHost | server\n", ["wanderfalke"]),
        ("Passwort | [secret:password:0a1b2c3d]\nHost | db1\n", []),
        ("Passwort: Host | Kx9mmQ2z: db1\n", []),
        ("Benutzer | Kennwort | Server\nanna | wanderfalke | db1\n", ["wanderfalke"]),
        ("Passwort | Rolle\nwanderfalke | admin\nzaunkoenig | gast\n", ["wanderfalke", "zaunkoenig"]),
        ("PIN | Beschreibung\n4821 | Haustür\n", []),
        ("Begriff: Passwort | Bedeutung: Wort\nBegriff: PIN | Bedeutung: Nummer\n", []),
        ("Benutzername | Text\nPasswort | Text\nE-Mail | Text\n", []),
        ("Title: Reset password | Ticket: ABC12345\nTitle: Password | ID: ABC12346\n", []),
        ("Column: password | Type: char60\n", []),
        ("Field: Password | Note: required | Version: v2aB34 | Status: Ab12x\n", []),
        ("Password | required | see RFC2617 | 2026-11-18\n", []),
        ("Feld | Hinweis\nPasswort | mindestens 12 Zeichen\nPIN | vier Ziffern\n", []),
        ("| Benutzer | Passwort |\n|---|---|\n| siehe Wiki | siehe Wiki |\n", []),
    ],
)
def test_in_a_table_the_value_goes_and_the_names_of_fields_stay(text: str, values: list[str]):
    assert found_values(text) == values


def test_kinds_are_named_and_values_are_not():
    text = f"password: Winter!Sun42 and {SHAPES['github_token']}"
    assert contains_secret(text) == ["github_token", "password"]
    assert set(contains_secret(text)) <= set(KINDS)
    assert contains_secret("nothing here") == []


def test_lines_that_speak_of_secrets_or_look_like_them_are_left_alone():
    lines = (REPOSITORY / "tests/fixtures/ordinary_lines.txt").read_text().splitlines()
    assert len(lines) > 300
    assert {line: found_values(line) for line in lines if find_secrets(line)} == {}
    assert found_values("\n\n".join(lines)) == []


def test_false_positives_in_ordinary_paragraphs_stay_below_one_in_a_hundred(
    capsys: pytest.CaptureFixture[str],
):
    paragraphs = [*ordinary_paragraphs(), *abstracts()]
    wrong = [(sort, found_values(text)) for sort, text in paragraphs if find_secrets(text)]
    with capsys.disabled():
        print(f"\nsecrets: {len(wrong)} of {len(paragraphs)} ordinary paragraphs touched: {wrong}")
    assert len(wrong) <= len(paragraphs) / 100


def abstracts() -> list[tuple[str, str]]:
    """Real prose, where the collections lie beside the repository."""
    return [
        (folder.parent.name, record["text"])
        for folder in sorted(COLLECTIONS.glob("*/corpus.jsonl"))
        for record in map(json.loads, folder.read_text("utf-8").splitlines())
    ]


def test_megabytes_a_second(capsys: pytest.CaptureFixture[str]):
    code = [path.read_text("utf-8") for path in sorted((REPOSITORY / "gateway").rglob("*.py"))]
    text = "\n\n".join([*code, *(text for _, text in ordinary_paragraphs())])
    find_secrets(text[:1000])
    began = time.process_time()
    find_secrets(text)
    looked = time.process_time()
    re.findall(r"\w+", text.casefold())  # the floor of the same moment: a busy machine slows both
    took, floor = looked - began, time.process_time() - looked
    with capsys.disabled():
        print(f"\nsecrets: {len(text) / 1e6 / took:.1f} MB/s, {took / floor:.1f} times splitting into words")
    assert took < 30 * floor  # 11 to 15 when every word is new, up to 20 beside busy cores


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "0",
        "password ",
        "password=",
        "password: [secret:a:",
        "password,x\na,b\n",
        "password\t",
        "password\tx\n",
        "password | a: ",
        "password | x\n",
        "user | a1b2c3d4\npassword | b\n",
        "wpa ",
        "ssid key ",
        "radius key ",
        "a1b2c3 ist das Passwort ",
        "password from a1b2c3 ",
        "passwords.a",
        "'pin:",
        "2fa secret ",
        "p\u00ad",
        "://a:",
        "eyJ",
        "sig=",
        "| password ",
        "-----BEGIN PRIVATE KEY-----\n",
        "PuTTY-User-Key-File-2:",
        "cookie: sess",
        "curl -u ",
        "token is ",
        "[secret:password:00000000]",
        "csk-",
        "pa-",
        "live_",
        "retool_",
        "oy2",
        "mysql",
        "security-token=",
        "recovery codes a1b2\n",
        "echo x | sudo ",
        "htpasswd -b ",
        "<b>password",
        "net use ",
        "auth=('",
        "postgres://a:",
        "password  x\n",
        "- passwords:\n",
        "insert into a (password) values ('b'),",
        "insert into a (password, ",
    ],
)
def test_the_time_grows_with_the_text_and_not_faster(unit: str):
    find_secrets("warm")
    seconds: list[float] = []
    for length in (20_000, 80_000):
        text = (unit * (length // len(unit) + 1))[:length]
        began = time.process_time()
        find_secrets(text)
        seconds.append(time.process_time() - began)
    # Four times the text; sixteen times the time would be quadratic. Small times are noise.
    assert seconds[1] < max(10 * seconds[0], 1.5), seconds


def test_detectors_load_without_a_language_model_and_run_without_a_network():
    code = """
import socket, sys
def refuse(*_, **__):
    raise AssertionError("the network was asked for")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
from gateway.corpus.personal_data import find_personal_data
from gateway.corpus.secrets import find_secrets, prepare
assert "detect_secrets" not in sys.modules
prepare()
assert "detect_secrets" in sys.modules
assert find_secrets("password: Winter!Sun42") and find_personal_data("anna@firma.example, Tel. +49 30 901820")
assert not {"spacy", "presidio_analyzer", "torch"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY, timeout=60)
