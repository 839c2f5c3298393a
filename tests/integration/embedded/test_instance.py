"""instance.json: private, whole, and found the same way by every command."""

import json
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.embedded.instance import Instance, NoInstance, SandboxEndpoint, chosen_data_dir, find_instance
from gateway.settings import DEFAULT_DATA_DIR, get_settings

words = st.text(max_size=30)


@settings(max_examples=20, deadline=None)  # every write waits for the disk
@given(
    st.builds(
        Instance,
        url=words,
        loginUrl=st.none() | words,
        apiKey=st.none() | words,
        pids=st.dictionaries(words, st.integers(1, 2**22), max_size=3),
        sandbox=st.dictionaries(
            st.sampled_from(["msft", "google", "clickup"]),
            st.builds(SandboxEndpoint, url=words, controlUrl=words),
        ),
    )
)
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, instance: Instance) -> None:
    folder = tmp_path_factory.mktemp("written")
    instance.write(folder)
    instance.write(folder)
    assert Instance.read(folder) == instance
    assert stat.S_IMODE(Instance.path(folder).stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir()] == ["instance.json"]


def test_the_file_has_the_names_the_design_gives_it(tmp_path: Path) -> None:
    endpoint = SandboxEndpoint(url="http://a", control_url="http://b")
    Instance(url="u", login_url="l", api_key="k", pids={"up": 1}, sandbox={"msft": endpoint}).write(tmp_path)
    assert json.loads((tmp_path / "instance.json").read_text()) == {
        "url": "u",
        "loginUrl": "l",
        "apiKey": "k",
        "pids": {"up": 1},
        "sandbox": {"msft": {"url": "http://a", "controlUrl": "http://b"}},
    }


def test_the_key_does_not_show_when_printed() -> None:
    assert "ck_secret" not in repr(Instance(url="u", api_key="ck_secret"))


def test_the_option_goes_over_the_variable_over_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    get_settings.cache_clear()
    monkeypatch.delenv("CATCHMENT_DATA_DIR", raising=False)
    assert chosen_data_dir(None) == DEFAULT_DATA_DIR.absolute()
    get_settings.cache_clear()
    monkeypatch.setenv("CATCHMENT_DATA_DIR", str(tmp_path / "variable"))
    assert chosen_data_dir(None) == tmp_path / "variable"
    assert chosen_data_dir(tmp_path / "option") == tmp_path / "option"
    get_settings.cache_clear()


def test_where_nothing_runs_it_is_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        NoInstance, match=r"^No Catchment runs on the data folder .*`catchment up`.*--data-dir\.$"
    ):
        find_instance(tmp_path)


def test_a_damaged_file_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "instance.json").write_text('{"url": ')
    with pytest.raises(NoInstance, match="restart it"):
        find_instance(tmp_path)
