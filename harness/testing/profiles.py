"""How long property tests look: profiles for Hypothesis, to be registered in a `conftest.py`.

    from harness.testing import profiles

    profiles.register()

`pytest --hypothesis-profile nightly` takes one of them; without it `quick` is taken on a machine of
one's own, and `ci` where the variable CI is set. Whoever has profiles by these names gives a
prefix: ``profiles.register("harness-")``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hypothesis import HealthCheck, settings

PROFILES: Mapping[str, Mapping[str, Any]] = {
    "quick": {"max_examples": 25, "derandomize": False},
    "ci": {"max_examples": 100, "derandomize": True},
    "nightly": {
        "max_examples": 1_000,
        "derandomize": False,
        "suppress_health_check": [HealthCheck.too_slow],
    },
}
"""By name, what each profile sets: a few examples, others each time; a hundred, the same every
time; and a thousand, others each time.
"""


def register(prefix: str = "", *, load: bool = True) -> None:
    """Make the profiles known to Hypothesis, their names behind `prefix`.

    Where `load` is true, `ci` is loaded where the variable CI is set, and `quick` elsewhere; the
    option `--hypothesis-profile` of pytest then takes another.
    """
    for name, values in PROFILES.items():
        settings.register_profile(f"{prefix}{name}", deadline=None, print_blob=True, **values)
    if load:
        usual = "ci" if os.environ.get("CI") else "quick"
        settings.load_profile(f"{prefix}{usual}")
