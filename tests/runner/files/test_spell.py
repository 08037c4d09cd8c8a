"""Spelling scenarios as files."""

from __future__ import annotations

import json

import jsonschema
from hypothesis import given, settings

from harness.runner.files.load import load_text, schema
from harness.runner.files.spell import spell, spell_text
from harness.runner.scenario import Scenario
from tests.runner.files.loop_kinds import KINDS
from tests.runner.scenarios import bare, scenarios

VALIDATOR = jsonschema.Draft202012Validator(schema(KINDS))


@given(scenarios())
@settings(deadline=None)
def test_a_spelled_scenario_fits_the_schema_and_loads_as_it_was(scenario: Scenario) -> None:
    VALIDATOR.validate(spell(scenario))
    assert bare(load_text(spell_text(scenario), "spelled.yaml", KINDS)) == scenario
    as_json = json.dumps(spell(scenario))
    assert bare(load_text(as_json, "spelled.json", KINDS)) == scenario


def test_a_spelled_scenario_is_short() -> None:
    text = (
        "about: Short stays short.\n"
        "tools:\n"
        "  clock: {returns: '14:05', takes: 10ms}\n"
        "turns:\n"
        "- user: What time is it?\n"
        "  model:\n"
        "  - calls: [clock]\n"
        "  - {say: Five past two., fault: torn, fault_times: always}\n"
        "  cancel: {after: tool_started clock, mode: late}\n"
        "  expect:\n"
        "    outcome: cancelled\n"
        "    tools: []\n"
        "- resume: true\n"
        "  model:\n"
        "  - {say: Done.}\n"
    )
    assert spell_text(load_text(text, "short.yaml", KINDS)) == text


def test_a_signature_without_words_loads_again() -> None:
    text = (
        "about: Signed.\nturns:\n- user: Hello\n  model:\n  - {think: '', signature: s, say: Hi.}\n"
    )
    scenario = load_text(text, "signed.yaml", KINDS)
    assert load_text(spell_text(scenario), "signed.yaml", KINDS) == scenario
