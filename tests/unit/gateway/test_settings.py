"""Settings are validated at the start and shown without their secrets."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from gateway.settings import Settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "70000"),
        ("PORT", "many"),
        ("LOG_FORMAT", "xml"),
        ("LOG_LEVEL", "loud"),
        ("WORKER_SLOTS", "0"),
        ("LEASE_SECONDS", "0.1"),
        ("SESSION_HOURS", "0"),
        ("SESSION_HOURS", "100000000"),
        ("LEASE_SECONDS", "1e12"),
        ("LEASE_SECONDS", "nan"),
        ("SWEEP_SECONDS", "inf"),
        ("MAINTENANCE_SECONDS", "inf"),
        ("RETRY_BASE_SECONDS", "inf"),
        ("SCAN_SECONDS", "inf"),
        ("MAX_ATTEMPTS", "5000"),
        ("MAX_DEATHS", "99999999999999999999"),
        ("UPLOAD_LIMIT_BYTES", "99999999999999999999"),
        ("SCAN_COMMAND", 'unbalanced "quote'),
        ("SCAN_COMMAND", "   "),
    ],
)
def test_a_bad_value_stops_the_start(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"CATCHMENT_{name}", value)
    with pytest.raises(ValidationError):
        Settings()


def test_secrets_are_stars_wherever_settings_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {
        name: f"canary-{name.lower()}"
        for name, field in Settings.model_fields.items()
        if "SecretStr" in str(field.annotation)
    }
    assert {"database_url", "owner_database_url", "redis_url", "secret_key", "openai_api_key"} <= set(secrets)
    for name, value in secrets.items():
        scheme = "redis" if name == "redis_url" else "postgresql"
        given = f"{scheme}://someone:{value}@host/name" if name.endswith("_url") else value
        monkeypatch.setenv(f"CATCHMENT_{name.upper()}", given)
    settings = Settings()
    shown = settings.redacted()
    assert set(shown) == {f"CATCHMENT_{name.upper()}" for name in Settings.model_fields}
    for text in (str(shown), repr(settings), str(settings), settings.model_dump_json()):
        assert "canary" not in text
    assert shown["CATCHMENT_DATABASE_URL"] == "**********"


@pytest.mark.parametrize(
    ("name", "value", "known"),
    [
        ("MSFT", '{"bogus":"x"}', "login, tenant, graph"),
        ("MSFT", '{"graph":"hush"}', "graph must look like https://"),
        ("GOOGLE", '{"drives":"https://host"}', "auth, token"),
        ("CLICKUP", '{"api":"ftp://host"}', "api must look like https://"),
    ],
)
def test_an_endpoint_that_is_none_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, known: str
) -> None:
    monkeypatch.setenv(f"CATCHMENT_{name}_ENDPOINTS", value)
    with pytest.raises(ValidationError, match=known) as refused:
        Settings()
    assert "hush" not in str(refused.value)


def test_endpoints_of_a_national_cloud_and_the_words_among_them_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(
        "CATCHMENT_MSFT_ENDPOINTS", '{"login":"https://login.microsoftonline.us","tenant":"acme"}'
    )
    monkeypatch.setenv("CATCHMENT_GOOGLE_ENDPOINTS", '{"pubsub_token":"a word"}')
    assert Settings().msft_endpoints["tenant"] == "acme"


def test_what_people_put_into_other_values_is_stars_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "PUBLIC_URL", "PUSH_URL"):
        monkeypatch.setenv(f"CATCHMENT_{name}", "https://ann:hush@host:8443/v1?key=hush#hush")
    monkeypatch.setenv("CATCHMENT_BLOB_URL", "s3://id:hush@bucket/path?secret=hush")
    monkeypatch.setenv("CATCHMENT_SCAN_COMMAND", "'/opt/the scanner' --token hush --password=hush")
    monkeypatch.setenv("CATCHMENT_MSFT_ENDPOINTS", '{"graph":"https://ann:hush@host/v1.0","tenant":"acme"}')
    monkeypatch.setenv("CATCHMENT_GOOGLE_ENDPOINTS", '{"pubsub_token":"hush"}')
    shown = Settings().redacted()
    assert "hush" not in str(shown)
    assert shown["CATCHMENT_PUBLIC_URL"] == "https://**********@host:8443/v1?**********#**********"
    assert shown["CATCHMENT_BLOB_URL"].endswith("@bucket/path?**********")
    assert shown["CATCHMENT_SCAN_COMMAND"].startswith("/opt/the scanner **********")
    assert "acme" in shown["CATCHMENT_MSFT_ENDPOINTS"]


def test_every_number_has_an_end() -> None:
    """What is infinite waits for ever, and what no database holds fails far from here."""
    endless = [
        name
        for name, field in Settings.model_fields.items()
        if field.annotation in {int, float} and not any(hasattr(limit, "le") for limit in field.metadata)
    ]
    assert endless == []


def test_every_setting_says_what_it_is_for() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_the_data_folder_is_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CATCHMENT_DATA_DIR", "with a space")
    assert Settings().data_dir == tmp_path / "with a space"
    assert Settings().embedded


@pytest.mark.parametrize("setting", ["DATABASE_URL", "OWNER_DATABASE_URL", "REDIS_URL"])
@pytest.mark.parametrize(
    "address", ["hush", "http://:hush@host", "{scheme}://u:hush@[::1/x", "{scheme}://u:hu/sh@host/x"]
)
def test_an_address_that_is_none_is_refused_without_repeating_it(
    monkeypatch: pytest.MonkeyPatch, setting: str, address: str
) -> None:
    scheme = "redis" if setting == "REDIS_URL" else "postgresql"
    monkeypatch.setenv(f"CATCHMENT_{setting}", address.format(scheme=scheme))
    with pytest.raises(ValidationError) as refused:
        Settings()
    [error] = refused.value.errors()
    assert error["loc"] == (setting.lower(),)
    assert "it must look like" in error["msg"]
    assert "hu" not in error["msg"]
    assert "hu" not in str(refused.value)


@pytest.mark.parametrize("setting", ["PUBLIC_URL", "PUSH_URL", "OPENAI_BASE_URL"])
@pytest.mark.parametrize(
    "address", ["catchment.example", "javascript:hush", "https://", "https://hush:no port/"]
)
def test_what_browsers_and_services_are_sent_to_is_an_address(
    monkeypatch: pytest.MonkeyPatch, setting: str, address: str
) -> None:
    monkeypatch.setenv(f"CATCHMENT_{setting}", address)
    with pytest.raises(ValidationError, match="it must look like https://") as refused:
        Settings()
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("setting", "address"),
    [
        ("PUBLIC_URL", "https://catchment.example/below"),
        ("OPENAI_BASE_URL", "http://[::1]:8080/v1"),
        ("DATABASE_URL", "postgresql://role:p%40ss@/name?host=/a/folder&port=5432"),
        ("DATABASE_URL", "postgresql+psycopg://role@[::1]:5432/name"),
        ("REDIS_URL", "unix:///a/folder/redis.sock?db=3"),
        ("REDIS_URL", "rediss://:hush@host:6380/1"),
    ],
)
def test_addresses_of_every_kind_are_taken(
    monkeypatch: pytest.MonkeyPatch, setting: str, address: str
) -> None:
    monkeypatch.setenv(f"CATCHMENT_{setting}", address)
    assert Settings()


def test_what_is_set_to_nothing_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "BLOB_URL", "PORT"):
        monkeypatch.setenv(f"CATCHMENT_{name}", "")
    assert (Settings().database_url, Settings().blob_url, Settings().port) == (None, None, 8440)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:8440"),
        ("::", "http://[::1]:8440"),
        ("house.lan", "http://house.lan:8440"),
    ],
)
def test_who_listens_everywhere_is_met_on_the_loopback(host: str, url: str) -> None:
    """The link of `catchment mandates open`, where no public address is set."""
    assert Settings(host=host).own_url == url
