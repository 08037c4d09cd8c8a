"""What the tests of loading share."""

from __future__ import annotations

import pytest

from harness.core.errors import FileError
from harness.runner.files.load import load_text
from harness.runner.scenario import Scenario
from tests.runner.files.loop_kinds import KINDS


def read(text: str | bytes, source: str = "folder/case.yaml") -> Scenario:
    return load_text(text, source, KINDS)


def errors(text: str | bytes, source: str = "case.yaml") -> list[str]:
    with pytest.raises(FileError) as caught:
        read(text, source)
    return str(caught.value).splitlines()
