"""Finds the files that a test names: from the folder where pytest was started, or from its root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.core.located import shortened


def found(path: str | os.PathLike[str], config: pytest.Config, expected: str) -> Path:
    """A path as it is, unless there is one only below pytest's root; UsageError, which says what
    was `expected`, for what no path can be.
    """
    below_root = config.rootpath / path
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return below_root if below_root.exists() else Path(path)
    except (OSError, ValueError) as error:  # too long, or with characters that no path has
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise UsageError(
            f"{shortened(repr(path))} is not a path: {why}; expected {expected}"
        ) from None
    return Path(path)
