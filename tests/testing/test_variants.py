"""One test for each loop, policy and level: by the marker, by settings, and what is refused."""

from __future__ import annotations

import pytest

from harness.core.errors import UsageError
from harness.testing.variants import Variant, all_levels, variants
from tests.testing.conftest import GO_ON, HELLO, ini, told, write
from tests.testing.test_plugin import MENDED, NAMED, collected

TEST = """
import pytest

@pytest.mark.harness({marker})
def test_it(harness_run):
    harness_run("hello.yaml"{more})
"""


def choose(project: pytest.Pytester, marker: str, more: str = "") -> None:
    write(project.path / "hello.yaml", HELLO)
    write(project.path / "test_it.py", TEST.format(marker=marker, more=more))


def test_each_combination_that_exists_is_a_variant() -> None:
    assert variants() == []
    assert variants(levels="model") == [Variant(level="model")]
    assert [str(each) for each in variants(["turn", "fsm"], ["reference", "safe"], "http")] == [
        "turn-reference-http:openai_chat",
        "turn-safe-http:openai_chat",
        "fsm-reference-http:openai_chat",
        "fsm-safe-http:openai_chat",
    ]
    assert variants(policies="safe", levels=["model", "model"]) == [Variant(None, "safe", "model")]
    assert len({str(each) for each in variants("all", "all", "all")}) == 4 * len(all_levels())


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"loops": "tern"}, "unknown loop 'tern' (did you mean 'turn'?)"),
        ({"loops": ["turn"], "policies": "sfae"}, "unknown policy of the loops turn 'sfae'"),
        ({"policies": ["sfae"]}, "unknown policy 'sfae' (did you mean 'safe'?)"),
        ({"levels": ["htpp"]}, "unknown level 'htpp' (did you mean 'http'?)"),
        ({"levels": 3}, "levels is 3; expected names, or 'all'"),
        ({"loops": [turn] if (turn := 1) else []}, "loops is [1]; expected names, or 'all'"),
    ],
)
def test_a_name_that_nothing_has_is_told(asked: dict, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        variants(**asked)
    assert says in str(refused.value)


def test_a_marked_test_is_run_once_for_each_variant(project: pytest.Pytester) -> None:
    choose(project, "loops=['turn', 'fsm'], policies='safe', levels=['model', 'http:anthropic']")
    result = project.runpytest("-v")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(
        [
            "test_it.py::test_it[[]turn-safe-model[]] PASSED*",
            "test_it.py::test_it[[]turn-safe-http:anthropic[]] PASSED*",
            "test_it.py::test_it[[]fsm-safe-model[]] PASSED*",
            "test_it.py::test_it[[]fsm-safe-http:anthropic[]] PASSED*",
        ]
    )
    result = project.runpytest("test_it.py::test_it[turn-safe-http:anthropic]")
    result.assert_outcomes(passed=1)


def test_it_runs_on_what_its_name_says(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_it=f"""
import pytest

@pytest.mark.harness(loops="all", policies=["reference"], levels=["http:gemini"])
def test_it(harness_run, harness_variant):
    subject = harness_run({HELLO!r}).subject
    loop = harness_variant.loop
    assert (subject.loop, subject.policy) == (loop, "reference")
    assert subject.name == f"{{loop}} (reference) at http:gemini"
"""
    )
    project.runpytest().assert_outcomes(passed=2)


def test_levels_are_for_agents_too_and_policies_for_the_loops_of_a_file(
    project: pytest.Pytester,
) -> None:
    choose(project, "levels=['http:anthropic', 'server']", ", 'mended_agent:MendedAgent'")
    project.syspathinsert()
    assert project.runpytest().parseoutcomes()["passed"] == 2
    choose(project, "policies=['safe', 'reference']")
    project.runpytest().assert_outcomes(passed=2)
    choose(project, "policies=['safe']", ", 'mended_agent:MendedAgent'")
    result = project.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["policies are those of reference loops, and this runs on mended_agent:MendedAgent"]
    )
    choose(project, "policies=['safe']", ", print")
    project.runpytest().stdout.fnmatch_lines(["*and this runs on <built-in function print>"])


@pytest.mark.parametrize(
    ("marker", "more", "says"),
    [
        ("loops='turn'", ", 'fsm'", "the marker harness names loops, and the test runs for turn*"),
        ("levels='model'", ", level='http'", "the marker harness names levels, and the test runs*"),
    ],
)
def test_what_is_said_twice_is_told(
    project: pytest.Pytester, marker: str, more: str, says: str
) -> None:
    choose(project, marker, more)
    result = project.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([says])


@pytest.mark.parametrize(
    ("marker", "says"),
    [
        ("'turn'", "it takes names only, such as loops='all'; found ('turn',)"),
        ("loop='turn'", "unknown argument 'loop' (did you mean 'loops'?)"),
        ("loops='tern'", "unknown loop 'tern' (did you mean 'turn'?)"),
        ("time='real'", "time and allow are for asynchronous tests; this one is none"),
    ],
)
def test_a_marker_that_is_wrong_is_told_before_anything_is_run(
    project: pytest.Pytester, marker: str, says: str
) -> None:
    choose(project, marker)
    result = project.runpytest("-rN", GO_ON)
    result.assert_outcomes(errors=1)
    assert any(line.startswith(f"the marker harness: {says}") for line in told(result))


def test_markers_of_a_class_and_of_its_tests_add_up(project: pytest.Pytester) -> None:
    write(
        project.path / "test_it.py",
        """
import pytest

SCENARIO = "about: x\\nturns: [{user: a, model: [{say: b}]}]\\n"


@pytest.mark.harness(loops=["turn", "fsm"])
class TestIt:
    @pytest.mark.harness
    def test_class(self, harness_run):
        harness_run(SCENARIO)

    @pytest.mark.harness(loops="turn", levels="model")
    async def test_both(self, harness_run):
        harness_run(SCENARIO)
""",
    )
    assert collected(project) == [
        "test_it.py::TestIt::test_class[turn]",
        "test_it.py::TestIt::test_class[fsm]",
        "test_it.py::TestIt::test_both[turn-model]",
    ]
    project.runpytest("-p", "no:cacheprovider").assert_outcomes(passed=3)


def test_a_marker_without_effect_is_told(project: pytest.Pytester) -> None:
    project.makepyfile("import pytest\n@pytest.mark.harness(loops='all')\ndef test_it(): pass")
    project.runpytest().stdout.fnmatch_lines(
        [
            "the marker harness: the test uses no fixture that loops or policies or levels are "
            "for: harness_run, harness_sweep or harness_explore"
        ]
    )


def test_settings_vary_scenario_files(project: pytest.Pytester) -> None:
    ini(project, NAMED, "harness_levels = model http:anthropic", "harness_policies = safe")
    write(project.path / "scenarios/weather.yaml", HELLO)
    assert collected(project) == [
        "scenarios/weather.yaml::turn[safe-model]",
        "scenarios/weather.yaml::turn[safe-http:anthropic]",
    ]
    project.runpytest("scenarios/weather.yaml::turn").assert_outcomes(passed=2)
    ini(project, NAMED, MENDED, "harness_levels = model http:anthropic", "harness_policies = safe")
    assert collected(project) == [
        "scenarios/weather.yaml::agent[model]",
        "scenarios/weather.yaml::agent[http:anthropic]",
    ]
    ini(project, NAMED, "harness_levels = htpp")
    project.runpytest().stdout.fnmatch_lines(["unknown level 'htpp' (did you mean 'http'?)*"])
