"""A file is known by its path below the folder that was named, however that folder was named."""

from pathlib import Path

import pytest

from gateway.commands.ingest import walk


@pytest.mark.parametrize(
    ("named", "known_as"),
    [
        ("wiki", "wiki/deep/page.md"),
        ("./wiki/", "wiki/deep/page.md"),
        ("wiki/deep", "deep/page.md"),
        ("../home/wiki", "wiki/deep/page.md"),
        ("{here}/wiki", "wiki/deep/page.md"),
        (".", "wiki/deep/page.md"),
        ("..", "{above}/home/wiki/deep/page.md"),
        ("wiki/deep/page.md", "page.md"),
    ],
)
def test_a_folder_may_be_named_from_here_or_from_the_root(
    named: str, known_as: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / "wiki" / "deep").mkdir(parents=True)
    (home / "wiki" / "deep" / "page.md").write_text("A page.")
    monkeypatch.chdir(home)
    [item] = walk([Path(named.format(here=home))])
    assert item.source_id == known_as.format(above=tmp_path.name)
    assert item.path.read_text() == "A page."
