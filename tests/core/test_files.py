"""Files replaced whole: the old one or the new one, with its permissions, whatever happens."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from harness.core import files


def test_folders_are_made_and_the_file_holds_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.yaml"
    files.replace(path, b"one")
    files.replace(path, b"two\r\n\0")
    assert path.read_bytes() == b"two\r\n\0"
    assert [each.name for each in path.parent.iterdir()] == ["c.yaml"]


def test_permissions_stay_and_a_link_leads_to_the_file(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to("real")
    files.replace(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_name_of_the_greatest_length_can_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    files.replace(path, b"x")
    assert path.read_bytes() == b"x"


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_what_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "c.yaml"
    path.write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, step, full)
        with pytest.raises(OSError, match="No space left"):
            files.replace(path, b"new")
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["c.yaml"]


def test_a_path_that_is_not_there_is_named_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "weather.yaml").touch()
    said = files.missing(tmp_path / "wether.yaml")
    assert said.endswith(f"wether.yaml (did you mean '{tmp_path.as_posix()}/weather.yaml'?)")
    said = files.missing(tmp_path / "zzz" / "q.yaml")
    assert said == f"there is no {tmp_path.as_posix()}/zzz/q.yaml"


def test_a_folder_that_cannot_be_listed_gives_no_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "weather.yaml").touch()

    def closed(_path: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "iterdir", closed)
    assert files.missing(tmp_path / "wether.yaml").endswith("wether.yaml")
