"""Without a key that seals, nothing starts."""

import os
import subprocess
import sys

import pytest
from pydantic import SecretStr

from gateway.app import create_app
from gateway.errors import ConfigurationError
from tests.fixtures.processes import REPOSITORY


@pytest.mark.parametrize("key", [None, "too short"])
async def test_a_gateway_refuses_to_start_without_a_real_key(settings, key):
    app = create_app(settings.model_copy(update={"secret_key": SecretStr(key) if key else None}))
    with pytest.raises(ConfigurationError, match=r"SECRET_KEY|secret key"):
        async with app.router.lifespan_context(app):
            pass


@pytest.mark.parametrize("key", ["", "too short"])
def test_a_worker_refuses_as_well(database_urls, redis_url, tmp_path, key):
    done = subprocess.run(
        [sys.executable, "-m", "workers"],
        cwd=REPOSITORY,
        env={
            "PATH": os.environ["PATH"],
            "CATCHMENT_DATABASE_URL": database_urls.runtime_url,
            "CATCHMENT_REDIS_URL": redis_url,
            "CATCHMENT_DATA_DIR": str(tmp_path),
            **({"CATCHMENT_SECRET_KEY": key} if key else {}),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "SECRET_KEY" in done.stderr or "secret key" in done.stderr
