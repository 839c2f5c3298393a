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
        monkeypatch.setenv(f"CATCHMENT_{name.upper()}", value)
    settings = Settings()
    shown = settings.redacted()
    assert set(shown) == {f"CATCHMENT_{name.upper()}" for name in Settings.model_fields}
    for text in (str(shown), repr(settings), str(settings), settings.model_dump_json()):
        assert "canary" not in text
    assert shown["CATCHMENT_DATABASE_URL"] == "**********"


def test_every_setting_says_what_it_is_for() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_the_data_folder_is_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CATCHMENT_DATA_DIR", "with a space")
    assert Settings().data_dir == tmp_path / "with a space"
    assert Settings().embedded
