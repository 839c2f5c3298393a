"""DATA_DIR/instance.json: how the other commands find the instance that runs on a data folder."""

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from gateway.embedded.private_files import write_private
from gateway.settings import get_settings


class NoInstance(Exception):
    """No instance can be found; the message says where we looked and what to do."""


class _Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class SandboxEndpoint(_Camel):
    url: str
    control_url: str


class Instance(_Camel):
    url: str
    login_url: str | None = None
    api_key: str | None = Field(default=None, repr=False)
    pids: dict[str, int] = Field(default_factory=dict)
    sandbox: dict[str, SandboxEndpoint] = Field(default_factory=dict)

    @staticmethod
    def path(data_dir: Path) -> Path:
        return data_dir / "instance.json"

    def write(self, data_dir: Path) -> None:
        write_private(self.path(data_dir), json.dumps(self.model_dump(by_alias=True), indent=2) + "\n")

    @classmethod
    def read(cls, data_dir: Path) -> "Instance":
        path = cls.path(data_dir)
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            raise NoInstance(
                f"No Catchment runs on the data folder {data_dir}: "
                "start one with `catchment up`, or say where it is with --data-dir."
            ) from None
        except PermissionError:
            raise NoInstance(f"{path} belongs to another user: use the account that started it.") from None
        except ValidationError:
            raise NoInstance(f"{path} was not written by this version of Catchment: restart it.") from None


def chosen_data_dir(option: Path | None) -> Path:
    """--data-dir, else CATCHMENT_DATA_DIR, else the default folder."""
    return option.expanduser().absolute() if option else get_settings().data_dir


def find_instance(option: Path | None = None) -> Instance:
    return Instance.read(chosen_data_dir(option))
