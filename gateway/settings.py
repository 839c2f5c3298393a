"""Every knob, in one validated class. Prefix `CATCHMENT_`; unset store URLs mean the embedded stores.

A number carries its reason beside it. `catchment doctor --settings` prints the values redacted, and a test fails when
a setting is missing from wiki/settings.md.
"""

import shlex
from functools import lru_cache
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

from pydantic import Field, SecretStr, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

DEFAULT_DATA_DIR = Path(".catchment")


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix="CATCHMENT_",
        env_ignore_empty=True,
        extra="ignore",
        hide_input_in_errors=True,
        validate_default=True,
    )

    # Stores
    database_url: SecretStr | None = Field(
        default=None, description="Postgres as the runtime role; unset: the embedded one"
    )
    owner_database_url: SecretStr | None = Field(
        default=None, description="Postgres as the owner role, for migrations and index builds"
    )
    redis_url: SecretStr | None = Field(default=None, description="Redis ≥ 6.2; unset: the embedded one")
    data_dir: Path = Field(
        default=DEFAULT_DATA_DIR, description="embedded stores, blobs, logs, metrics, instance.json"
    )
    blob_url: str | None = Field(
        default=None, description="s3://, gs://, az:// or file://; unset: DATA_DIR/blobs"
    )
    database_pool_size: int = Field(
        default=10, ge=1, le=200, description="connections per process; searches may take as many again"
    )

    # Secrets
    secret_key: SecretStr | None = Field(
        default=None, description="seals tokens and signs cookies; required outside embedded mode"
    )
    previous_secret_keys: SecretStr | None = Field(
        default=None,
        description="earlier secret keys, separated by commas, until `catchment secrets rotate` has run",
    )

    # The front door
    public_url: str | None = Field(default=None, description="how browsers and vendors reach the gateway")
    push_url: str | None = Field(
        default=None,
        description="where vendors send notifications, if not to the public URL; a demo's stand-ins use its own",
    )
    host: str = Field(default="127.0.0.1", description="address the gateway listens on")
    port: int = Field(default=8440, ge=0, le=65535, description="port the gateway listens on")
    upload_limit_bytes: int = Field(
        # the largest cap of the extraction guide is 100 MB of plain text
        default=100 * 1024 * 1024,
        ge=1,
        le=4 * 1024**3,
        description="largest single upload or content",
    )
    session_hours: int = Field(default=12, ge=1, le=8784, description="life of a console session")

    # Vendors: a national cloud and the sandbox are the same kind of override
    msft_client_id: str | None = Field(default=None, description="our application at Microsoft")
    msft_client_secret: SecretStr | None = Field(default=None, description="its secret")
    msft_endpoints: dict[str, str] = Field(
        default={}, description="base URLs that differ, as JSON: login, tenant, graph"
    )
    google_client_id: str | None = Field(default=None, description="our application at Google")
    google_client_secret: SecretStr | None = Field(default=None, description="its secret")
    google_endpoints: dict[str, str] = Field(
        default={},
        description="base URLs that differ, as JSON: auth, token, revoke, drive, gmail, calendar, userinfo",
    )
    clickup_client_id: str | None = Field(default=None, description="our application at ClickUp")
    clickup_client_secret: SecretStr | None = Field(default=None, description="its secret")
    clickup_endpoints: dict[str, str] = Field(
        default={}, description="base URLs that differ, as JSON: auth, api"
    )
    google_pubsub_topic: str | None = Field(
        default=None, description="Pub/Sub topic that Gmail announces changes on"
    )

    # Embedding
    embedder: str = Field(
        default="wordllama",
        description="wordllama, openai:MODEL, minilm or lookup:WIDTH (benchmarks); after a change: catchment reindex",
    )
    openai_api_key: SecretStr | None = Field(default=None, description="key for an OpenAI-compatible service")
    openai_base_url: str | None = Field(default=None, description="base URL of an OpenAI-compatible service")
    chat_model: str | None = Field(
        default=None,
        description="model that answers questions, at the same service; unset: answers are extracts",
    )

    reranker: str | None = Field(
        default=None,
        description="second opinion on the best hits: openai:MODEL (at the same service) or cross-encoder:FOLDER",
    )

    # Workers
    worker_slots: int = Field(default=2, ge=1, le=64, description="slices a worker runs at once, per lane")
    parser_children: int = Field(default=2, ge=1, le=64, description="parser children a worker keeps")
    slice_size: int = Field(
        # one slice of small documents is well under a second, so no mandate waits long for its turn
        default=32,
        ge=1,
        le=500,
        description="jobs claimed at once",
    )
    lease_seconds: float = Field(
        # renewed every third of it; a dead worker's jobs are taken over after this long
        default=10.0,
        ge=0.5,
        le=3600,
        description="how long a claim holds without renewal",
    )
    sweep_seconds: float = Field(
        # after a minute without a sweep the gateway says that no worker runs
        default=1.0,
        gt=0,
        le=30,
        description="how often lost bells and leases are looked for",
    )
    maintenance_seconds: float = Field(
        default=60.0, gt=0, le=86400, description="how often segments are merged and leftovers collected"
    )
    max_attempts: int = Field(
        default=8, ge=1, le=100, description="tries before a transient error becomes a failure"
    )
    max_deaths: int = Field(
        default=3, ge=1, le=100, description="worker deaths before a job is set aside as poison"
    )
    retry_base_seconds: float = Field(
        default=1.0, gt=0, le=300, description="first step of the retry backoff"
    )

    # Scanning
    scan_command: str | None = Field(
        default=None,
        description="gets each file on stdin before it is parsed; exit 0 clean, 1 infected, else tried again",
    )
    scan_seconds: float = Field(
        # a worker hands back what it has held for a quarter of an hour
        default=60.0,
        gt=0,
        le=600,
        description="how long the scan command may take for one file",
    )

    # Logs
    log_format: str = Field(default="json", pattern="^(json|console)$", description="json or console")
    log_level: str = Field(
        default="info", pattern="^(debug|info|warning|error)$", description="least severity shown"
    )

    @field_validator("data_dir")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @field_validator("database_url", "owner_database_url", "redis_url")
    @classmethod
    def _address(cls, value: SecretStr | None, about: ValidationInfo) -> SecretStr | None:
        form = (
            "redis://host:6379/0"
            if about.field_name == "redis_url"
            else "postgresql://role:password@host:5432/name"
        )
        if value is not None and not _is_address(value.get_secret_value(), _SCHEMES[form.partition(":")[0]]):
            # Never what was given, nor a part of it: a password may be in any of its parts.
            raise ValueError(f"it must look like {form}, with %40 for an @ within and so on")
        return value

    @field_validator("public_url", "push_url", "openai_base_url")
    @classmethod
    def _web_address(cls, value: str | None) -> str | None:
        if value is not None and not is_web_address(value):
            raise ValueError("it must look like https://host or http://host:port/path")
        return value

    @field_validator("msft_endpoints", "google_endpoints", "clickup_endpoints")
    @classmethod
    def _endpoints(cls, value: dict[str, str], about: ValidationInfo) -> dict[str, str]:
        if not value:
            return value
        from connectors.registry import default_endpoints  # noqa: PLC0415 - knows the vendors' libraries

        usual = {**default_endpoints(str(about.field_name).removesuffix("_endpoints")), **_DOWNLOADS}
        for name, given in value.items():
            if name not in usual:
                raise ValueError(f"it names an endpoint that is none; known are {', '.join(usual)}")
            if is_web_address(usual[name]) and not is_web_address(given):
                raise ValueError(f"{name} must look like https://host or http://host:port/path")
        return value

    @field_validator("scan_command")
    @classmethod
    def _words(cls, value: str | None) -> str | None:
        try:
            named = value is None or bool(shlex.split(value))
        except ValueError as error:  # an open quotation mark, say; it quotes nothing
            raise ValueError(f"it cannot be read as a command: {error}") from None
        if not named:
            raise ValueError("it names no program")
        return value

    @property
    def embedded(self) -> bool:
        return self.database_url is None

    @property
    def own_url(self) -> str:
        """How this machine reaches the gateway; the world does by `public_url`."""
        return url_of(self.host, self.port)

    def redacted(self) -> dict[str, str]:
        """Values fit for a terminal: secrets show as stars, unset as a dash. What people put into other values that may be one
        shows as stars too: who and what is asked in an address, what a command is told.
        """
        return {
            f"CATCHMENT_{name.upper()}": _starred(name, getattr(self, name))
            for name in type(self).model_fields
        }


# No part of an API: further places from which files may be fetched, as the sandbox's vendors have them.
_DOWNLOADS = {"download": "https://…", "files": "https://…"}
_STARS = "**********"  # as pydantic writes a secret


def _starred(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, dict):
        given = cast("dict[str, str]", value)
        return str(
            {key: _STARS if key.endswith("token") else _without_secrets(part) for key, part in given.items()}
        )
    if name == "scan_command":
        program, *words = shlex.split(value)
        return " ".join([program, *(_STARS for _ in words)])
    return _without_secrets(value) if isinstance(value, str) else str(value)


def _without_secrets(text: str) -> str:
    """An address without its user, password, query and fragment."""
    if "://" not in text:
        return text
    try:
        parts = urlsplit(text)
    except ValueError:
        return _STARS
    _, at, host = parts.netloc.rpartition("@")
    starred = parts._replace(
        netloc=f"{_STARS}@{host}" if at else host,
        query=_STARS if parts.query else "",
        fragment=_STARS if parts.fragment else "",
    )
    return urlunsplit(starred)


def reachable(host: str) -> str:
    """Who listens everywhere is met on the loopback."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104


def url_of(host: str, port: int) -> str:
    name = reachable(host)
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"


_SCHEMES = {"redis": {"redis", "rediss", "unix"}, "postgresql": {"postgresql", "postgres"}}


def _is_address(text: str, schemes: set[str]) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port  # a ValueError where it is none
    except ValueError:
        return False
    return parts.scheme.partition("+")[0] in schemes and "://" in text


def is_web_address(text: str) -> bool:
    return _is_address(text, {"http", "https"}) and bool(urlsplit(text).hostname)


def opened(secret: SecretStr | None) -> str | None:
    """What is sealed, for who is about to use it."""
    return secret.get_secret_value() if secret else None


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    return Settings()
