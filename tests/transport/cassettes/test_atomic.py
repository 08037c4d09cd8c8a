"""A cassette's file is the old one or the new one, whole, whatever happens while it is written."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.core.errors import FileError
from harness.transport.cassettes.file import load, save, write
from tests.transport.cassettes.samples import CODEC_NAMES, cassette, get, streamed

OLD = cassette(get(body=b"old"))
NEW = cassette(*map(streamed, CODEC_NAMES))


def full(*_args: object, **_options: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def interrupted(*_args: object, **_options: object) -> None:
    raise KeyboardInterrupt


STEPS = [(os, "fsync"), (os, "replace"), (os, "chmod")]


@pytest.mark.parametrize(("module", "step"), STEPS)
@pytest.mark.parametrize("fails", [full, interrupted])
def test_what_fails_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: object,
    step: str,
    fails: Callable[..., None],
) -> None:
    path = tmp_path / "a.yaml"
    save(path, OLD)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(module, step, fails)
        with pytest.raises((FileError, KeyboardInterrupt)) as caught:
            save(path, NEW)
    if fails is full:
        assert str(caught.value) == (
            f"{path.as_posix()}: cannot be written: No space left on device; what was there is as "
            "it was"
        )
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["a.yaml"]


def test_a_disk_that_is_full_in_the_middle_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.yaml"
    save(path, OLD)
    before = path.read_bytes()
    opened = Path.open

    class Short(io.BufferedWriter):
        def write(self, data: object) -> int:
            super().write(bytes(memoryview(data)[:100]))  # type: ignore[call-overload]
            self.flush()
            raise OSError(errno.ENOSPC, "No space left on device")

    def open_short(self: Path, mode: str) -> object:
        return Short(opened(self, mode, buffering=0))  # type: ignore[arg-type,call-overload]

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", open_short)
        with pytest.raises(FileError, match="No space left on device"):
            save(path, NEW)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["a.yaml"]


def test_permissions_stay_and_a_link_leads_to_the_file(tmp_path: Path) -> None:
    real = tmp_path / "real.yaml"
    save(real, OLD)
    real.chmod(0o600)
    link = tmp_path / "link.yaml"
    link.symlink_to(real)
    save(link, NEW)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert len(load(real).interactions) == len(NEW.interactions)


KILLED = """
import os, signal, sys
from pathlib import Path
from harness.core import files
def killed(*args, **options):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(os, sys.argv[3], killed)
files.replace(Path(sys.argv[1]), Path(sys.argv[2]).read_bytes())
"""

LOOP = """
import sys
from pathlib import Path
from harness.core import files
path = Path(sys.argv[1])
texts = [path.read_bytes(), Path(sys.argv[2]).read_bytes()]
print("ready", flush=True)
while True:
    for text in texts:
        files.replace(path, text)
"""


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
def test_a_kill_at_each_step_leaves_the_old_file(tmp_path: Path, step: str) -> None:
    path, new = tmp_path / "a.yaml", tmp_path / "new"
    save(path, OLD)
    save(new, NEW)
    done = subprocess.run([sys.executable, "-c", KILLED, path, new, step], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text(encoding="utf-8") == write(OLD)


def test_a_kill_at_any_moment_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path, new = tmp_path / "a.yaml", tmp_path / "new"
    save(path, cassette(get(body=b"old\n" * 200_000)))
    save(new, cassette(get(body=b"new\n" * 300_000)))
    whole = {path.read_bytes(), new.read_bytes()}
    for moment in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", LOOP, path, new], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            time.sleep(0.003 * moment)
            writer.kill()
        assert path.read_bytes() in whole
    assert load(path).interactions
