"""Finding scenario files, reading them from disk, and the schema for editors."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import pytest

from harness.core.errors import FileError, NotAScenario, UsageError
from harness.runner.files.load import find, load, schema
from tests.runner.files.loop_kinds import KINDS

MS = 1_000_000
SECOND = 1000 * MS


def test_files_are_read_from_disk(tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    path.write_bytes(b"\xef\xbb\xbfabout: x\r\nturns:\r\n  - user: u\r\n    model: [{say: x}]\r\n")
    scenario = load(path, KINDS)
    assert scenario.source == path.as_posix()
    assert scenario.name == path.as_posix().removesuffix(".yaml")
    assert scenario.turns[0].line == 3
    with pytest.raises(FileError, match=r"cannot be read: Is a directory"):
        load(tmp_path, KINDS)
    with pytest.raises(
        UsageError, match=r"there is no .*/cas\.yaml \(did you mean '.*/case\.yaml'\?\)"
    ):
        load(tmp_path / "cas.yaml", KINDS)
    with pytest.raises(UsageError, match=r"there is no .*/case\.yaml/x\.yaml"):
        load(path / "x.yaml", KINDS)


def test_finding_files(tmp_path: Path) -> None:
    for name in ("b/two.yml", "b/one.yaml", "a.json", "a.txt", ".hidden/x.yaml", "b/.x.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("about: x")
    files = [tmp_path / name for name in ("a.json", "b/one.yaml", "b/two.yml")]
    assert find([tmp_path]) == files
    assert find([tmp_path / "b", tmp_path]) == [files[1], files[2], files[0]]
    assert find([files[2], tmp_path]) == [files[2], files[0], files[1]]
    assert find([]) == []
    with pytest.raises(UsageError, match=r"a\.txt is not a scenario file: expected the ending"):
        find([tmp_path / "a.txt"])
    missing = r"there is no .*/bb/one\.yaml \(did you mean '.*/b'\?\); expected a scenario file"
    with pytest.raises(UsageError, match=missing):
        find([tmp_path / "bb" / "one.yaml"])
    (tmp_path / "none").mkdir()
    with pytest.raises(
        UsageError, match=r"no scenarios below .*/none: expected files with the ending"
    ):
        find([tmp_path / "none"])


def test_the_name_of_code_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pool.py").touch()
    says = r"; a function is explored from Python: sweep\(Case\), explore\(Case\)$"
    for name in ("any.module:Case", "pool.Case"):
        with pytest.raises(UsageError, match=says):
            find([Path(name)])
    with pytest.raises(UsageError, match=r"a folder of them$"):
        find([Path("other.Case")])


def test_the_schema_is_one_and_describes_every_key() -> None:
    whole = schema(KINDS)
    jsonschema.Draft202012Validator.check_schema(whole)
    assert whole["properties"]["config"]["properties"]["cancel_grace"]["default"] == "0s"
    assert whole["properties"]["loops"]["items"] == {"enum": ["turn", "fsm"]}
    parts = [whole, *whole["$defs"].values()]
    keys = [(name, key) for part in parts for name, key in part.get("properties", {}).items()]
    assert len(keys) > 50
    assert [name for name, key in keys if not key.get("description")] == []
    assert "title" not in whole["$defs"]
    assert json.loads(json.dumps(whole)) == whole


def test_file_order_is_stable_whatever_the_listing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("c.yaml", "a.yaml", "b.yaml"):
        (tmp_path / name).touch()
    walk = os.walk
    monkeypatch.setattr(
        os, "walk", lambda top: ((p, d[::-1], sorted(f)[::-1]) for p, d, f in walk(top))
    )
    assert [path.name for path in find([tmp_path])] == ["a.yaml", "b.yaml", "c.yaml"]


def test_a_folder_s_foreign_files_and_environments_are_passed_over(tmp_path: Path) -> None:
    good = tmp_path / "good.yaml"
    good.write_text("about: x\nturns: [{user: Hi, model: [{say: Hi.}]}]\n")
    for folder in ("node_modules/x", "venv", ".git", "a/site-packages"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "other.yaml").write_text("a: 1")
    (tmp_path / "venv" / "pyvenv.cfg").write_text("")
    assert find([tmp_path]) == [good]


def test_a_file_for_others_is_told_from_a_broken_scenario(tmp_path: Path) -> None:
    compose = tmp_path / "docker-compose.yml"
    compose.write_text("services: {web: {image: x}}\n")
    with pytest.raises(NotAScenario, match="needs the key 'about'"):
        load(str(compose))
    compose.write_text("about: x\nservices: {}\n")
    with pytest.raises(FileError) as caught:
        load(compose)
    assert type(caught.value) is FileError
