"""compose.yaml and Dockerfile against the code they start. No Docker engine is needed."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.ingestion.bell import queue_name
from gateway.migration import ROLE_SQL
from gateway.settings import Settings

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("migrate", "gateway", "worker")
STAGES = re.split(r"^(?=FROM )", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)[1:]

# Read by libraries and images, not by our settings class.
FOREIGN_VARIABLES = {
    "PROMETHEUS_MULTIPROC_DIR",
    "POSTGRES_USER",
    "POSTGRES_PASSWORD",
    "POSTGRES_DB",
    "OWNER_PASSWORD",
    "RUNTIME_PASSWORD",
    "READONLY_PASSWORD",
}


def _environment(service: str) -> dict[str, str | None]:
    return SERVICES[service].get("environment", {})


def _arguments(service: str) -> list[str]:
    command = SERVICES[service]["command"]
    return shlex.split(command) if isinstance(command, str) else list(command)


def test_the_house_is_there() -> None:
    assert set(SERVICES) == {"postgres", "redis", "migrate", "gateway", "worker"}


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_every_variable_is_a_setting_or_known_by_name(service: str) -> None:
    settings = {f"CATCHMENT_{name.upper()}" for name in Settings.model_fields}
    assert set(_environment(service)) - settings - FOREIGN_VARIABLES == set()


def test_the_values_make_valid_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for service in OURS:
        for name, value in _environment(service).items():
            if name.startswith("CATCHMENT_") and value is not None:
                given = re.sub(r"\$\{\w+:\?[^}]*\}", "a-secret", value)
                monkeypatch.setenv(name, re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", given))
        Settings()


def test_whoever_lives_has_a_health_check_and_comes_back() -> None:
    for name, service in SERVICES.items():
        if name == "migrate":
            assert service["restart"] == "no"
        else:
            assert service["restart"] == "unless-stopped"
            assert service["healthcheck"]["test"][0] == "CMD"
            assert {"interval", "timeout", "retries"} <= set(service["healthcheck"])


def test_nobody_starts_before_what_it_needs() -> None:
    assert SERVICES["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in ("gateway", "worker"):
        assert SERVICES[name]["depends_on"] == {
            "migrate": {"condition": "service_completed_successfully"},
            "redis": {"condition": "service_healthy"},
        }


def test_the_health_checks_ask_for_what_the_code_offers() -> None:
    gateway = SERVICES["gateway"]["healthcheck"]["test"][-1]
    assert f"http://127.0.0.1:{_environment('gateway')['CATCHMENT_PORT']}/readyz" in gateway
    worker = SERVICES["worker"]["healthcheck"]["test"][-1]
    assert f'"{queue_name("interactive")}:health-check"' in worker
    for script in (gateway, worker):
        compile(script, "healthcheck", "exec")


def test_no_secret_has_a_default() -> None:
    secret = re.compile(r"PASSWORD|SECRET|API_KEY|DATABASE_URL")
    for service in SERVICES:
        for name, value in _environment(service).items():
            if not secret.search(name) or value is None:
                continue
            given = re.findall(r"\$\{(\w+)(:\?|:-|-)?[^}]*\}", value)
            assert given, f"{service}: {name} is written down"
            assert all(form == ":?" for _, form in given), f"{service}: {name} has a default"
    urls = [
        value for service in SERVICES for value in _environment(service).values() if value and "@" in value
    ]
    assert urls
    assert all(re.search(r"://\w+:\$\{\w+:\?[^}]*\}@", url) for url in urls)


def test_only_migrations_and_index_builds_hold_the_owners_key() -> None:
    holders = {name for name in SERVICES if "CATCHMENT_OWNER_DATABASE_URL" in _environment(name)}
    assert holders == {"migrate", "worker"}
    assert "catchment_owner" not in str(_environment("gateway"))


def test_the_stores_are_reached_from_inside_only() -> None:
    for name in ("postgres", "redis"):
        assert "ports" not in SERVICES[name]
        assert SERVICES[name]["networks"] == ["stores"]
    assert COMPOSE["networks"]["stores"] == {"internal": True}
    assert all(port.startswith("127.0.0.1:") for port in SERVICES["gateway"]["ports"])


def test_redis_forgets_no_bell() -> None:
    arguments = _arguments("redis")
    options = dict(zip(arguments[1::2], arguments[2::2], strict=True))
    assert options["--appendonly"] == "yes"
    assert options["--maxmemory-policy"] == "noeviction"


def test_postgres_is_18_with_pgvector_and_keeps_its_data() -> None:
    postgres = SERVICES["postgres"]
    assert re.fullmatch(r"pgvector/pgvector:(\d+\.\d+\.\d+-)?pg18", postgres["image"])
    # since 18 the image's data folder lies in a folder of its version, and the volume is the one above
    assert "postgres:/var/lib/postgresql" in postgres["volumes"]
    assert "./docker/postgres/roles.sh:/docker-entrypoint-initdb.d/roles.sh:ro" in postgres["volumes"]


def test_the_worker_can_be_scaled_and_shares_bytes_and_counters_with_the_gateway() -> None:
    gateway, worker = SERVICES["gateway"], SERVICES["worker"]
    assert "container_name" not in worker
    assert "ports" not in worker
    assert worker["volumes"] == gateway["volumes"]
    mounted = {volume.split(":")[1] for volume in worker["volumes"]}
    for name in ("CATCHMENT_DATA_DIR", "PROMETHEUS_MULTIPROC_DIR"):
        assert _environment("worker")[name] == _environment("gateway")[name]
        assert _environment("worker")[name] in mounted
    assert {volume.split(":")[0] for volume in worker["volumes"]} <= set(COMPOSE["volumes"])
    # counter files are named by process id: in namespaces of their own, two processes would write one file
    assert worker["pid"] == "service:gateway"


def test_no_container_of_ours_runs_as_root_or_writes_outside_its_volumes() -> None:
    for name in OURS:
        service = SERVICES[name]
        assert int(service["user"].split(":")[0]) > 0
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]
        assert "privileged" not in service


def test_the_image_is_built_in_stages_and_ends_without_root() -> None:
    assert len(STAGES) >= 2
    assert all(re.match(r"FROM python:3\.(1[1-9]|[2-9]\d)-slim", stage) for stage in STAGES)
    users = re.findall(r"^USER (\S+)", STAGES[-1], re.MULTILINE)
    assert users[-1] == SERVICES["gateway"]["user"]
    entry = re.search(r"^ENTRYPOINT (.+)$", STAGES[-1], re.MULTILINE)
    assert entry
    assert json.loads(entry.group(1)) == ["catchment"]
    assert "-c constraints.txt /wheels/" in STAGES[0]
    for folder in (
        _environment("gateway")["CATCHMENT_DATA_DIR"],
        _environment("gateway")["PROMETHEUS_MULTIPROC_DIR"],
    ):
        assert re.search(rf"install -d -o catchment .*{re.escape(str(folder))}\b", STAGES[-1])


def test_the_image_copies_only_what_is_sent_to_it() -> None:
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        name
        for line in re.findall(r"^COPY (?!--from)(.+)$", STAGES[0], re.MULTILINE)
        for name in line.split()[:-1]
    }
    assert copied == sent
    assert all((ROOT / name).exists() for name in copied)


def test_the_role_script_does_what_the_migration_asks_for() -> None:
    def statements(text: str) -> set[str]:
        plain = re.sub(r"PASSWORD \S+?(?=;)", "PASSWORD …", re.sub(r"--.*", "", text))
        return {" ".join(part.split()) for part in plain.split(";") if part.strip()}

    script = (ROOT / "docker" / "postgres" / "roles.sh").read_text()
    sql = script.partition("BEGIN;")[2].partition("COMMIT;")[0]
    assert statements(ROLE_SQL) <= statements(sql)
