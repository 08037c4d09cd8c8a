"""`harness cassette`: recorded sessions shown, compared, scrubbed, counted and converted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.fakes.script import Reply
from harness.fakes.wire_faults import Http
from harness.runner.scenario import Cancel, Scenario, Turn
from harness.transport.cassettes.file import load, save
from harness.transport.cassettes.form import Cassette
from harness.transport.rules import REDACTED
from tests.cli.conftest import Cli
from tests.runner.taping import CASE, MS, sdk, taped

LONG = Reply(say="It is sunny, and it will stay so.", chunk=8, takes=100 * MS, each=20 * MS)
CUT = Scenario(
    "cut",
    turns=(
        Turn(
            "Weather?",
            (replace(LONG, fault=Http(429, retry_after=2_000 * MS)),),
        ),
        Turn("Now?", (LONG,), Cancel(after="delta", name="text", nth=2, mode="early")),
        Turn("And now?", (Reply(say="Still."),)),
    ),
)
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
FOREIGN = f"""\
version: 1
interactions:
- request:
    method: POST
    uri: https://api.openai.com/v1/chat/completions
    body: '{{"model": "m", "messages": [{{"role": "user", "content": "Hello"}}]}}'
    headers:
      Authorization: ['Bearer {SECRET}']
      Content-Type: [application/json]
  response:
    status: {{code: 200, message: OK}}
    headers:
      Content-Type: [application/json]
    body:
      string: '{{"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices":
        [{{"index": 0, "finish_reason": "stop", "message": {{"role": "assistant", "content":
        "Hi."}}}}]}}'
"""


@pytest.fixture(scope="module")
def recorded() -> dict[str, Cassette]:
    """Sessions, recorded once."""
    weather, _result = taped(CASE, "turn", "http:anthropic")
    cut, _result = taped(CUT, "turn", "http:openai_chat")
    return {"weather": replace(weather, source="a fake provider"), "cut": cut}


@pytest.fixture
def cassettes(folder: Path, recorded: dict[str, Cassette]) -> Path:
    """The folder with the sessions in it."""
    for name, cassette in recorded.items():
        save(folder / "cassettes" / f"{name}.yaml", cassette)
    (folder / "foreign.yaml").write_text(FOREIGN, encoding="utf-8")
    return folder


@pytest.mark.usefixtures("cassettes")
def test_show_is_a_conversation(cli: Cli) -> None:
    done = cli("cassette", "show", "cassettes/weather.yaml", "cassettes/cut.yaml")
    assert (done.code, done.err) == (0, "")
    first, second = done.out.split("\ncassettes/cut.yaml")
    assert first.splitlines()[0] == (
        "cassettes/weather.yaml · 4 interactions · anthropic · 855ms · from a fake provider"
    )
    words = [line[9:].strip() for line in first.splitlines()]
    for expected in (
        "user    What is the weather?",
        "thinks  Two tools will do.",
        "says    Let me look that up, it will not take long.",
        'calls   weather {"city":"Rome"}',
        "calls   clock {}",
        'gives   weather: "sunny"',
        "gives   weather: Error: no such city",
        "says    Sunny at noon in Rome.",
    ):
        assert any(line.startswith(expected) for line in words), expected
    assert "wrong   429 requests rate_limit_exceeded: try again later (ask again after 2)" in second
    assert "wrong   the client wanted no more after 2 pieces, so the turn was cut" in second


def test_show_hides_what_a_foreign_file_shows(cli: Cli, cassettes: Path) -> None:
    before = (cassettes / "foreign.yaml").read_bytes()
    for more in ((), ("--number", "1")):
        done = cli("cassette", "show", "foreign.yaml", *more)
        assert done.code == 0
        assert SECRET not in done.out
    assert f"authorization: {REDACTED}" in done.out
    assert (cassettes / "foreign.yaml").read_bytes() == before
    done = cli("cassette", "show", "foreign.yaml", "--pattern", "H[ei]")
    assert "Hi." not in done.out


@pytest.mark.usefixtures("cassettes")
def test_one_interaction_is_shown_whole(cli: Cli) -> None:
    done = cli("cassette", "show", "cassettes/cut.yaml", "--number", "2")
    assert done.code == 0
    assert "asks    POST http://provider.test/v1/chat/completions" in done.out
    assert '"content": "Weather?"' in done.out
    assert "says    data: {" in done.out
    assert "wrong   cancelled: the client wanted no more" in done.out
    done = cli("cassette", "show", "cassettes/cut.yaml", "--number", "9")
    assert (done.code, done.out) == (2, "")
    assert done.err == "cassettes/cut.yaml has no interaction 9; it has 3 interactions, from 1\n"


def test_diff_is_by_meaning(cli: Cli, cassettes: Path, recorded: dict[str, Cassette]) -> None:
    done = cli("cassette", "diff", "cassettes/cut.yaml", "cassettes/cut.yaml")
    assert done == (0, "the same: 3 interactions\n", "")
    turns = (*CUT.turns[:2], Turn("And now?", (Reply(say="No more."),)))
    other, _result = taped(replace(CUT, turns=turns), "turn", "http:openai_chat")
    save(cassettes / "other.yaml", other)
    done = cli("cassette", "diff", "cassettes/cut.yaml", "other.yaml")
    assert done.code == 1
    assert done.out.endswith("\n1 difference in 3 interactions that both have\n")
    assert '"[-Still-]." before, "{+No more+}." after' in done.out
    odd = cli("cassette", "diff", "cassettes/cut.yaml", "other.yaml", "--ignore", "messages[*")
    assert odd.code == 2


def test_lint_finds_secrets_anywhere(cli: Cli, cassettes: Path) -> None:
    assert cli("cassette", "lint") == (0, "no secrets found in 2 files\n", "")
    assert cli("cassette", "lint", "cassettes/cut.yaml").out == "no secrets found in 1 file\n"
    (cassettes / "cassettes/notes.txt").write_text(f"one\nkey: {SECRET}\n")
    done = cli("cassette", "lint", "cassettes", "foreign.yaml")
    assert (done.code, done.err) == (1, "")
    first, second, *rest = done.out.splitlines()
    assert first.startswith("cassettes/notes.txt:2: ")
    assert second.startswith("foreign.yaml:8: ")
    assert rest == [
        "2 findings: replace such a secret where it came from, since others may have seen it, and",
        "take it out of a cassette: harness cassette scrub FILE",
    ]
    assert SECRET[:20] not in done.out
    ruled = cli("cassette", "lint", "cassettes/cut.yaml", "--pattern", "Weather\\?")
    assert (ruled.code, ruled.out.count("cassettes/cut.yaml:")) == (1, 3)


def test_lint_says_what_it_wants(cli: Cli, folder: Path) -> None:
    done = cli("cassette", "lint")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "no PATH was given, and there is no folder cassettes/ here; name a file or a folder\n"
    )
    assert cli("cassette", "stats").err == done.err
    Path("tests/cassettes").mkdir(parents=True)
    Path("my/own/cassettes").mkdir(parents=True)
    for command in ("lint", "stats"):
        done = cli("cassette", command)
        assert (done.code, done.out) == (2, "")
        assert done.err.endswith(
            f" here; try harness cassette {command} tests/cassettes my/own/cassettes\n"
        )
    done = cli("cassette", "lint", "tests/cassettes")
    assert (done.code, done.out) == (2, "")
    assert done.err == "there is no file in tests/cassettes; nothing was looked at\n"
    done = cli("cassette", "lint", "my_agnt.py")
    assert (done.code, done.err) == (2, "there is no my_agnt.py (did you mean 'my_agent.py'?)\n")
    assert cli("cassette", "lint", str(folder / "my_agent.py")).code == 0


def test_scrub_replaces_what_leaks(cli: Cli, cassettes: Path) -> None:
    files = ("foreign.yaml", "cassettes/cut.yaml")
    checked = cli("cassette", "scrub", *files, "--check")
    assert (checked.code, checked.err) == (1, "")
    assert (cassettes / "foreign.yaml").read_text() == FOREIGN
    own = (cassettes / "cassettes/cut.yaml").read_bytes()
    done = cli("cassette", "scrub", *files)
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "foreign.yaml: 1 secret hidden: 1 in header authorization\n"
        "cassettes/cut.yaml: nothing to hide\n"
    )
    assert checked.out == done.out.replace("hidden", "to hide")
    assert SECRET not in (cassettes / "foreign.yaml").read_text()
    assert (cassettes / "cassettes/cut.yaml").read_bytes() == own
    assert load(cassettes / "foreign.yaml").interactions[0].request.header("authorization") == (
        REDACTED
    )
    assert cli("cassette", "lint", *files).code == 0
    again = cli("cassette", "scrub", *files)
    assert again.out.splitlines()[0] == "foreign.yaml: nothing to hide"


def test_show_and_scrub_take_folders(cli: Cli, cassettes: Path) -> None:
    (cassettes / "foreign.yaml").rename(cassettes / "cassettes/foreign.yaml")
    shown = cli("cassette", "show", "cassettes")
    assert shown.code == 0
    for name in ("cut", "foreign", "weather"):
        assert f"cassettes/{name}.yaml · " in shown.out
    done = cli("cassette", "scrub", "cassettes")
    assert (done.code, done.err) == (0, "")
    assert [line.partition(": ")[2] for line in done.out.splitlines()] == [
        "nothing to hide",
        "1 secret hidden: 1 in header authorization",
        "nothing to hide",
    ]


@pytest.mark.usefixtures("cassettes")
def test_times_that_nobody_knows_are_not_told(cli: Cli) -> None:
    done = cli("cassette", "show", "foreign.yaml")
    assert done.out.splitlines() == [
        "foreign.yaml · 1 interaction · openai_chat",
        "",
        "turn 1",
        "user    Hello",
        "asks    request 1 (line 3): m, 1 message, 200",
        "says    Hi.",
    ]
    assert cli("cassette", "stats", "foreign.yaml").out.split()[-1] == "none"


def test_scrub_goes_by_users_rules(cli: Cli, cassettes: Path) -> None:
    done = cli(
        "cassette", "scrub", "foreign.yaml", "--pattern", "Hello|Hi", "--name", "finish_reason"
    )
    assert done.out == (
        "foreign.yaml: 4 secrets hidden: 2 in answers' bodies, 1 in header authorization, "
        "1 in requests' bodies\n"
    )
    rules = load(cassettes / "foreign.yaml").rules
    assert (rules.names, rules.patterns) == (("finish_reason",), ("Hello|Hi",))
    done = cli("cassette", "scrub", "foreign.yaml", "--pattern", "(")
    assert done.code == 2
    assert done.err.startswith("--pattern '(' is no regular expression: ")
    (cassettes / "x.json").write_text("{}")
    done = cli("cassette", "scrub", "x.json")
    assert (done.code, done.err) == (
        2,
        "x.json is JSON, and scrub writes YAML; record it again as YAML\n",
    )


@pytest.mark.usefixtures("cassettes")
def test_stats_count_by_file_and_provider(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    done = cli("cassette", "stats", "cassettes", "foreign.yaml")
    assert (done.code, done.err) == (0, "")
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[0] == [
        "file",
        "provider",
        "asked",
        "sent",
        "got",
        "frames",
        "tokens",
        "time",
        "ends",
    ]
    assert rows[1][:3] == ["cassettes/cut.yaml", "openai_chat", "3"]
    assert rows[1][-2:] == ["1", "cancelled"]
    assert rows[2][:3] == ["cassettes/weather.yaml", "anthropic", "4"]
    assert rows[2][6:9] == ["10", "+", "5"]
    assert cli("cassette", "stats").out.splitlines() == done.out.splitlines()[:3]
    found = json.loads(cli("cassette", "stats", "cassettes", "foreign.yaml", "--json").out)
    assert [each["interactions"] for each in found] == [3, 4, 1]
    assert found[0]["ends"] == {"cancelled": 1, "complete": 2}
    assert found[1]["completion_tokens"] == 5
    assert found[1]["frames"] > 10
    assert (found[2]["frames"], found[2]["time"]) == (0, 0)
    request.getfixturevalue("terminal")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    narrow = cli("cassette", "stats", "cassettes").out
    assert "tokens" not in narrow
    assert "anthropic" in narrow


def test_a_session_becomes_a_scenario_that_runs(cli: Cli, cassettes: Path) -> None:
    done = cli("cassette", "to-scenario", "cassettes/weather.yaml")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "A recorded session: 4 requests in anthropic, from cassettes/weather.yaml.",
        "written to scenarios/weather.yaml; run it on your own agent with --agent "
        "package.module:build, or on a loop of ours:",
        "harness run scenarios/weather.yaml --loop turn --level http:anthropic",
    ]
    ran = cli(*done.out.splitlines()[-1].split()[1:])
    assert ran.code == 0, ran.out
    swept = cli("sweep", "scenarios/weather.yaml", "--loop", "turn", "--level", "http:anthropic")
    assert swept.code == 0, swept.out
    again = cli("cassette", "to-scenario", "cassettes/weather.yaml")
    assert (again.code, again.out) == (2, "")
    assert again.err == (
        "scenarios/weather.yaml is there already; give --force to replace it, or -o another\n"
    )
    assert cli("cassette", "to-scenario", "cassettes/weather.yaml", "--force").code == 0
    other = cli("cassette", "to-scenario", "cassettes/cut.yaml", "-o", "a b.yaml")
    assert other.out.splitlines()[-1].startswith("harness run 'a b.yaml' --loop turn ")
    assert (cassettes / "a b.yaml").read_text().startswith("about: ")


def test_a_session_with_retries_is_for_agents_that_retry(cli: Cli, cassettes: Path) -> None:
    twice = Scenario("x", turns=(replace(CUT.turns[0], cancel=None),))
    again, _result = taped(twice, sdk("openai_chat"), "model")
    save(cassettes / "again.yaml", again)
    done = cli("cassette", "to-scenario", "again.yaml")
    assert done.out.splitlines()[-2:] == [
        "written to scenarios/again.yaml; run it on your own agent, which asks again where a "
        "request failed:",
        "harness run scenarios/again.yaml --agent package.module:build",
    ]


def test_what_a_scenario_cannot_say_is_told(cli: Cli, cassettes: Path) -> None:
    text = FOREIGN + FOREIGN.partition("interactions:\n")[2].replace("chat/completions", "images")
    (cassettes / "foreign.yaml").write_text(text, encoding="utf-8")
    done = cli("cassette", "to-scenario", "foreign.yaml")
    assert done.code == 0
    assert done.err.startswith("note: request 2 (line ")
    assert "is left out: POST /v1/images is of no protocol that is known" in done.err
    written = (cassettes / "scenarios/foreign.yaml").read_text()
    assert written.startswith(f"# {done.err.removeprefix('note: ')}")
    (cassettes / "dir").mkdir()
    done = cli("cassette", "to-scenario", "foreign.yaml", "-o", "my_agent.py/x.yaml")
    assert done.code == 2
    assert "cannot be written" in done.err


@pytest.mark.parametrize(
    "command",
    ["show", "scrub", "stats", "to-scenario"],
)
@pytest.mark.usefixtures("cassettes")
def test_what_is_no_cassette_is_told_with_its_place(cli: Cli, command: str) -> None:
    done = cli("cassette", command, "scenarios/hello.yaml")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("scenarios/hello.yaml:1:1: ")
    done = cli("cassette", command, "cassettes/wether.yaml")
    assert (done.code, done.out) == (2, "")
    assert "did you mean 'cassettes/weather.yaml'" in done.err


@pytest.mark.usefixtures("cassettes")
def test_all_files_that_are_wrong_are_told(cli: Cli) -> None:
    done = cli("cassette", "show", "scenarios/hello.yaml", "cassettes/cut.yaml", "nothing.yaml")
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("\n2 files cannot be read\n")
    Path("empty").mkdir()
    done = cli("cassette", "stats", "empty")
    assert (done.code, done.err) == (
        2,
        "empty holds no file that ends in .yaml, .yml, .json\n",
    )


def test_a_group_shows_its_commands(cli: Cli) -> None:
    done = cli("cassette", "--help")
    assert done.code == 0
    for name in ("show", "diff", "lint", "scrub", "stats", "to-scenario"):
        assert f"  {name} " in done.out
        assert "Examples:" in cli("cassette", name, "--help").out
