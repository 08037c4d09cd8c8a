"""`harness schema`: the form of a scenario file, for editors and other programs."""

from __future__ import annotations

import sys


def schema() -> None:
    """Print the JSON Schema of scenario files.

    Editors that know YAML schemas take its file from a comment in a scenario's first line.

    \b
    Example:
      harness schema > scenario.schema.json
      # yaml-language-server: $schema=scenario.schema.json
    """
    from harness.core import json_text
    from harness.runner.files.load import schema as scenario_schema

    sys.stdout.write(f"{json_text.dumps_indented(scenario_schema())}\n")
