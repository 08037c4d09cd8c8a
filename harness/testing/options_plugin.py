"""The part of the pytest plugin that is about options and settings; it comes and goes with it."""

from __future__ import annotations

from fnmatch import fnmatch
from os.path import normpath
from pathlib import Path

import pytest

ENDINGS = (".yaml", ".yml", ".json")
"""How files of scenarios end."""

_NUMBERS = {
    "harness_sweep_budget": "the most runs that a sweep may take in a test; 20000 if not set",
    "harness_explore_runs": "the most runs that a search may take in a test; 10000 if not set",
    "harness_explore_seconds": "the most seconds that a search may take in a test; 30 if not set",
    "harness_explore_seed": "what decides the random runs of a search in a test; 0 if not set",
}
_LISTS = {
    "harness_levels": "the levels at which each scenario file is a test, such as `model "
    "http:anthropic`, or `all`",
    "harness_policies": "the policies of reference loops with which each scenario file is a test, "
    "such as `safe reference`, or `all`",
}
_SETTINGS = (
    "harness_agent",
    "harness_cassette_mode",
    "harness_network",
    "harness_pin",
    "harness_scenarios",
    *_LISTS,
    *_NUMBERS,
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The plugin's options and settings."""
    group = parser.getgroup("harness")
    group.addoption(
        "--harness-replay",
        dest="harness_replay",
        metavar="TOKEN",
        help="first replay this failure of a sweep or a search, in the test that found it",
    )
    group.addoption(
        "--harness-budget",
        dest="harness_budget",
        metavar="RUNS",
        help="the most runs that each sweep and each search may take, in place of the settings; "
        "searches are then limited by runs alone. What a test says itself goes before it",
    )
    group.addoption(
        "--harness-seed",
        dest="harness_seed",
        metavar="N",
        help="what decides the random runs of searches, in place of the setting",
    )
    group.addoption(
        "--harness-jobs",
        dest="harness_jobs",
        metavar="N",
        default="1",
        help="in how many processes each sweep and each search makes its runs, where its agent is "
        "a loop or is given by name, as package.module:build; 1 if not given",
    )
    group.addoption(
        "--harness-json",
        dest="harness_json",
        metavar="FILE",
        help="write what all runs, sweeps and searches came to, as JSON",
    )
    group.addoption(
        "--harness-html",
        dest="harness_html",
        metavar="FILE",
        help="write the runs, sweeps and searches that failed as a page to look at; where none "
        "failed, all of them",
    )
    _add_settings(parser)


def _add_settings(parser: pytest.Parser) -> None:
    for name, says in _NUMBERS.items():
        parser.addini(name, type="string", default="", help=f"harness: {says}")
    for name, says in _LISTS.items():
        parser.addini(name, type="args", default=[], help=f"harness: {says}")
    parser.addini(
        "harness_scenarios",
        type="paths",
        default=[],
        help="harness: folders (or files) of scenarios; each scenario below them is a test, "
        "and a plain `pytest` runs them beside testpaths",
    )
    parser.addini(
        "harness_agent",
        type="string",
        default="",
        help="harness: the agent that scenarios run on, as package.module:build; "
        "the fixture harness_build goes before it, the loops that a file names come after",
    )
    parser.addini(
        "harness_network",
        type="bool",
        default=False,
        help="harness: let tests that use its fixtures reach other machines than this one",
    )
    parser.addini(
        "harness_pin",
        type="bool",
        default=False,
        help="harness: pin each scenario file's run in __snapshots__ beside it, as the fixture "
        "harness_snapshot does",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker, check what was given, and let a plain `pytest` run the scenarios too where
    it has testpaths.
    """
    config.addinivalue_line(
        "markers",
        "harness(loops, policies, levels, time, allow): a test that is a scenario file, or is run "
        "once for each of these loops, policies and levels; of an async test, whether its time is "
        "'virtual' or 'real', and what it may leave behind",
    )
    token: str | None = config.getoption("harness_replay")
    if token is not None:
        _check_token(token)
        from harness.testing.replaying import Taken

        config.pluginmanager.register(Taken(), "harness_replay")
    for option, least in {"budget": 1, "seed": 0, "jobs": 1}.items():
        _check_number(config, option, least)
    _check_settings(config)
    for root in roots(config):
        if not root.exists():
            raise pytest.UsageError(f"harness_scenarios names {root}, and there is nothing there")
    if _plain(config):
        given = [config.invocation_params.dir / argument for argument in config.args]
        config.args += [
            str(root)
            for root in roots(config)
            if not any(root.is_relative_to(each) for each in given)
        ]


def roots(config: pytest.Config) -> list[Path]:
    """The folders and files that the setting `harness_scenarios` names."""
    named: list[Path] = config.getini("harness_scenarios")
    return [Path(normpath(root)) for root in named]  # as pytest names what it collects


def _check_token(token: str) -> None:
    from harness.core.errors import UsageError
    from harness.runner.token import Token

    try:
        Token.parse(token)
    except UsageError as error:
        raise pytest.UsageError(f"--harness-replay: {error}") from None


def _check_number(config: pytest.Config, option: str, least: int) -> None:
    """Refuse what is no whole number from `least` on, and keep it as one."""
    given: str | None = config.getoption(f"harness_{option}")
    if given is None:
        return
    text = str(given).replace("_", "").replace(",", "")
    if not text.isdecimal() or int(text) < least:
        raise pytest.UsageError(
            f"--harness-{option} is {given!r}; expected a whole number, {least} or more"
        )
    setattr(config.option, f"harness_{option}", int(text))


def _check_settings(config: pytest.Config) -> None:
    """Refuse a setting that begins like ours and is nobody's: without it less would be run."""
    own = vars(config)  # the public name of this mapping came to warn
    for name in own.get("_inicfg") or own.get("inicfg") or ():
        if not name.startswith("harness_") or name in _SETTINGS:
            continue
        try:
            config.getini(name)  # another plugin's
        except ValueError:
            from harness.core.errors import unknown

            raise pytest.UsageError(unknown("setting", name, _SETTINGS)) from None


def _plain(config: pytest.Config) -> bool:
    """Whether pytest runs all there is, and was not told by paths or by its folder what to run."""
    source = config.ArgsSource
    if config.args_source is source.INVOCATION_DIR:
        return config.invocation_params.dir == config.rootpath
    return config.args_source is source.TESTPATHS


@pytest.hookimpl(tryfirst=True)  # before -k and -m take tests away
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Refuse what would silently be without effect: a fixture named like a setting, and in a plain
    run a folder of `harness_scenarios` that gave no test.
    """
    for name in _SETTINGS:
        if any(session._fixturemanager.getfixturedefs(name, item) for item in items):
            raise pytest.UsageError(
                f"there is a fixture {name}, but {name} is a setting of pytest's and is not read "
                "from fixtures; set it there, or define the fixture harness_build to say what "
                "scenarios run on"
            )
    if session.testsfailed or config.getoption("lf", default=False) or not _plain(config):
        return  # broken files are told already; --lf passes over what was good
    ignored = [config.invocation_params.dir / one for one in config.getoption("ignore") or ()]
    for root in roots(config):
        wanted = not any(root.is_relative_to(one) for one in ignored)
        if wanted and not any(item.path.is_relative_to(root) for item in items):
            raise pytest.UsageError(
                f"harness_scenarios names {root}, which gave no test: {_why_none(root, config)}"
            )


def _why_none(root: Path, config: pytest.Config) -> str:
    for pattern in config.getini("norecursedirs"):
        for folder in (root, *root.parents):
            below = folder != config.rootpath and folder.is_relative_to(config.rootpath)
            if below and fnmatch(folder.name, pattern):
                return (
                    f"pytest passes over {folder}, since its setting norecursedirs has {pattern!r}"
                )
    return f"pytest finds no scenario there; expected files with the ending {' or '.join(ENDINGS)}"
