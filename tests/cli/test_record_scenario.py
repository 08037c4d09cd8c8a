"""`harness record --provider`: a scenario whose replies come from a provider, and play again."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

import harness
from harness.core.errors import UsageError
from harness.runner.agents import command_subject, subject_of
from harness.runner.cassettes.live import Limits, Live
from harness.runner.files.load import load as load_scenario
from harness.runner.run import run
from harness.runner.served import Served
from harness.transport.cassettes import upstream
from harness.transport.cassettes.file import load
from harness.transport.cassettes.form import Interaction
from harness.transport.cassettes.matching import Library
from harness.transport.homes import HOMES, homes_in
from harness.wire.http import Request
from tests.cli.conftest import Cli
from tests.subjects.sdk import gemini, messages, responses
from tests.subjects.sdk.loop import AsyncLoop, SyncLoop

KEY = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"
TRIP = """\
about: Two tools, then an answer, then another question.
loops: [turn, fsm]
tools:
  weather: {returns: sunny, takes: 2s}
  clock: {returns: "14:05", takes: 10ms}
turns:
  - user: Weather and time?
    model:
      - {say: Let me look., calls: [weather, clock], takes: 4ms, each: 2ms}
      - {say: "Sunny, at 14:05."}
    expect: {outcome: completed, tools: [weather, clock]}
  - user: And tomorrow?
    model: [{say: I cannot know.}]
    expect: {outcome: completed}
"""
BROKEN = """\
about: The provider hangs up once.
loops: [turn]
turns:
  - user: Hello
    model: [{say: Hi., fault: dropped}]
    expect: {outcome: error}
  - user: Hello?
    model: [{say: Hi.}]
    expect: {outcome: completed}
"""


@contextmanager
def providing(script: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A provider of a script, which is in the file trip.yaml too; to it the variables point."""
    Path("trip.yaml").write_text(script)
    with harness.serve("trip.yaml") as server:
        for name, value in server.variables.items():
            monkeypatch.setenv(name, KEY if name.endswith("KEY") else value)
        yield server


def recording(*more: str, provider: str = "openai_chat") -> list[str]:
    return ["record", "--provider", provider, "-o", "c.yaml", "trip.yaml", *more]


@pytest.mark.parametrize(
    ("provider", "loop"),
    [
        ("openai_chat", "turn"),
        ("openai_chat", "fsm"),
        ("openai_responses", "turn"),
        ("anthropic", "fsm"),
        ("gemini", "turn"),
    ],
)
def test_a_scenario_is_recorded_and_its_last_line_plays_it(
    provider: str, loop: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with providing(TRIP, monkeypatch) as server:
        done = cli(*recording("--loop", loop, provider=provider))
        assert (done.code, done.err) == (0, "3 requests recorded into c.yaml\n")
        assert len(server.requests) == 3
        for record in server.requests:
            assert KEY in str(record.request.headers)
    cassette = load("c.yaml")
    assert [each.ended for each in cassette.interactions] == ["complete"] * 3
    one, two, three = [each.begun for each in cassette.interactions]
    assert (one, two >= 2_000_000_000, three >= two) == (0, True, True)
    assert cassette.source.startswith(f"{provider} at {server.url}")
    assert KEY not in Path("c.yaml").read_text()
    line = done.out.splitlines()[-1]
    assert line.startswith("harness run trip.yaml --loop")
    played = cli(*shlex.split(line)[1:])
    assert (played.code, played.err) == (0, "")
    assert "1 passed" in played.out
    assert played.out.splitlines() == done.out.splitlines()[:-1]  # at the same times, too


def test_a_key_that_a_provider_tells_is_told_to_nobody(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that is recorded hears what the one that is played will hear."""
    script = TRIP.replace("Let me look.", f"I have {KEY}.").replace("Sunny, at", f"{KEY} and")
    wrong = script.replace("outcome: completed, tools", "outcome: cancelled, tools")
    with providing(wrong, monkeypatch) as server:
        done = cli(*recording("--loop", "turn"))
    assert len(server.requests) == 3
    assert done.code == 1
    assert KEY not in done.out + done.err + Path("c.yaml").read_text()
    line = next(line for line in done.out.splitlines()[::-1] if line.startswith("harness run"))
    assert cli(*shlex.split(line)[1:]).out.splitlines()[1:4] == done.out.splitlines()[1:4]


@pytest.mark.parametrize(
    ("provider", "dialect"),
    [
        ("openai_responses", responses.AsyncResponses),
        ("anthropic", messages.AsyncMessages),
        ("gemini", gemini.SyncGemini),
    ],
)
def test_an_agent_on_the_vendors_library_is_recorded(
    provider: str, dialect: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = SyncLoop if dialect is gemini.SyncGemini else AsyncLoop
    agent = subject_of(lambda env: kind(env, dialect(env, sync=kind is SyncLoop)))
    with providing(TRIP, monkeypatch) as server:
        scenario = load_scenario(Path("trip.yaml"))
        live = Live(Path("c.yaml"), "all", provider, homes_in(os.environ), os.environ)
        result = live.play(scenario, agent)
        assert result.ok, result
        assert live.save() == "3 requests recorded into c.yaml"
        sent = [record.request.headers for record in server.requests]
        assert all(KEY in str(each) and "not-a-key" not in str(each) for each in sent)
    assert "not-a-key" not in Path("c.yaml").read_text()
    assert run(scenario, agent, cassette="c.yaml").ok


def test_behind_what_is_missing_nothing_is_looked_up(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Request] = []
    take = Library.take

    def counting(library: Library, request: Request) -> Interaction:
        taken.append(request)
        return take(library, request)

    monkeypatch.setattr(Library, "take", counting)
    with providing(TRIP, monkeypatch):
        assert cli(*recording("--loop", "turn")).code == 0
    assert len(taken) == (1 + 3 + 5) + 6  # twice what is there, once what is missing


def test_what_is_recorded_already_is_not_asked_for_again(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with providing(TRIP, monkeypatch) as server:
        done = cli(*recording("--loop", "turn", "--max-requests", "1"))
        assert done.code == 2
        assert "1 request recorded into c.yaml" in done.err
        assert "raise it with --max-requests" in done.err
        assert len(load("c.yaml").interactions) == 1
        done = cli(*recording("--loop", "turn"))
        assert (done.code, done.err) == (0, "2 requests recorded into c.yaml\n")
        done = cli(*recording("--loop", "turn"))
        assert (done.code, done.err) == (0, "nothing was recorded into c.yaml\n")
        assert len(server.requests) == 3


def test_a_recording_anew_takes_the_place_of_the_old_one_when_it_is_whole(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with providing(TRIP, monkeypatch):
        assert cli(*recording("--loop", "turn")).code == 0
    before = Path("c.yaml").read_bytes()
    with providing(TRIP.replace("cannot know", "may know"), monkeypatch) as server:
        done = cli(*recording("--loop", "turn", "--mode", "all", "--max-requests", "2"))
        assert done.code == 2
        assert "2 requests recorded into c.partial.yaml" in done.err
        assert Path("c.yaml").read_bytes() == before
    with providing(TRIP.replace("cannot know", "may know"), monkeypatch) as server:
        assert cli(*recording("--loop", "turn", "--mode", "all")).code == 0
        assert len(server.requests) == 3
    assert b"may know" in load("c.yaml").interactions[2].body


def test_a_provider_that_hangs_up_is_recorded_so(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with providing(BROKEN, monkeypatch):
        done = cli(*recording())
    assert done.code == 0
    assert "/v1/chat/completions: Server disconnected" in done.err
    lost, came = load("c.yaml").interactions
    assert (lost.status, lost.ended, came.status) == (None, "dropped", 200)
    assert cli(*shlex.split(done.out.splitlines()[-1])[1:]).code == 0


def test_an_answer_that_takes_too_long(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with providing(TRIP.replace("takes: 4ms", "takes: 20s"), monkeypatch):
        done = cli(*recording("--loop", "turn", "--timeout", "0.02"))
    assert done.code == 2
    assert "in 0.02 seconds" in done.err
    assert "nothing was recorded into c.yaml" in done.err
    assert not Path("c.yaml").exists()


def test_a_provider_that_says_nothing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "TIMEOUT", httpx2.Timeout(0.02, connect=5))
    with providing(TRIP.replace("takes: 4ms", "takes: 20s"), monkeypatch):
        done = cli(*recording("--loop", "turn"))
    assert done.code == 1
    assert "/v1/chat/completions: ReadTimeout" in done.err
    assert "gave no answer to anything: timeout\nsee that it is there" in done.err
    assert not Path("c.yaml").exists()


def test_a_provider_that_is_not_there_is_told_and_asked_again(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with providing(TRIP, monkeypatch):
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        for _ in range(2):
            done = cli(*recording("--loop", "turn"))
            assert (done.code, done.out) == (1, "")
            first, *more = done.err.splitlines()
            assert first.startswith("POST http://127.0.0.1:9/v1/chat/completions: ")
            assert more == [
                "openai at http://127.0.0.1:9/v1 cannot be reached",
                "see that it is there, or name another address, with OPENAI_BASE_URL or "
                "--upstream openai=URL",
                "nothing was recorded into c.yaml",
            ]
            assert not Path("c.yaml").exists()


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_is_told_and_what_came_before_is_kept(
    status: int, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = TRIP.replace("say: I cannot know.", f"say: x, fault: {{http: {status}}}")
    with providing(refused, monkeypatch):
        done = cli(*recording("--loop", "turn"))
    assert (done.code, done.out) == (1, "")
    assert f" answered {status}: " in done.err
    assert "\nsee the key in OPENAI_API_KEY, or name another address" in done.err
    assert "2 requests recorded into c.yaml" in done.err
    assert KEY not in done.err
    with providing(TRIP, monkeypatch) as server:
        assert cli(*recording("--loop", "turn")).code == 0
        assert len(server.requests) == 1


def test_a_request_that_failed_is_asked_again(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with providing(BROKEN, monkeypatch):
        done = cli(*recording())
    failed = "2 requests recorded into c.yaml; 1 request failed at the provider: dropped; the mode"
    assert f"{failed} missing asks again" in done.err
    with providing(BROKEN, monkeypatch) as server:
        assert cli(*recording()).code == 0
        assert len(server.requests) == 1
    assert [each.ended for each in load("c.yaml").interactions] == ["complete", "dropped"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/v1/chat/completions", "the agent asks in openai_chat; give --provider openai_chat"),
        ("/v1/models", "the agent asks for POST /v1/models, which is not in anthropic"),
    ],
)
def test_an_agent_that_asks_in_another_protocol(
    path: str, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Asks:
        def __init__(self, env: Any) -> None:
            self.answer = env.answer

        async def turn(self, _text: str) -> None:
            await self.answer(Request("POST", f"https://api.openai.com{path}", (), b"{}"))

    scenario = load_scenario(folder / "scenarios" / "hello.yaml")
    keys = {"ANTHROPIC_API_KEY": KEY}
    live = Live(folder / "c.yaml", "missing", "anthropic", HOMES, keys)
    with pytest.raises(UsageError) as error:
        live.play(scenario, subject_of(Asks))
    assert str(error.value) == said


def test_rules_of_the_user_are_kept_too(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with providing(TRIP, monkeypatch):
        assert cli(*recording("--loop", "turn", "--ignore", "seed", "--name", "x-one")).code == 0
    with providing(TRIP, monkeypatch):
        assert cli(*recording("--loop", "turn", "--mode", "all", "--name", "x-two")).code == 0
    rules = load("c.yaml").rules
    assert (rules.ignore, rules.names) == (("seed",), ("x-one", "x-two"))


def test_a_gateway_has_paths_of_its_own(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with providing(TRIP, monkeypatch) as server:
        gateway = f"openai={server.url}/gateway/v2"
        done = cli(*recording("--loop", "turn", "--upstream", gateway))
        assert (done.code, done.err) == (0, "3 requests recorded into c.yaml\n")
        assert server.requests[0].request.path == "/gateway/v2/chat/completions"


def test_replies_that_are_not_as_expected(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with providing(TRIP, monkeypatch):
        wrong = TRIP.replace("expect: {outcome: completed}", "expect: {outcome: error}")
        Path("trip.yaml").write_text(wrong)
        done = cli(*recording("--loop", "turn"))
    assert done.code == 1
    last = done.out.splitlines()[-1]
    assert "--cassette c.yaml" in last
    assert cli(*shlex.split(last)[1:]).code == 1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--provider", "openai_chats"], "did you mean 'openai_chat'"),
        (["--mode", "drift"], "the modes missing and all, and not in drift"),
        (["more.yaml"], "takes one scenario file; found trip.yaml more.yaml"),
        (["-o", "trip.yaml/c.yaml"], "trip.yaml/c.yaml cannot be written"),
        (["-o", "trip.yaml"], "found a scenario; expected a cassette"),
        (["--loop", "trun"], "did you mean 'turn'"),
        (["--upstream", "openai=x"], "openai is no address"),
    ],
)
def test_what_cannot_be_recorded(
    more: list[str], said: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("trip.yaml").write_text(TRIP)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    loop = () if "--loop" in more else ("--loop", "turn")
    done = cli(*recording(*loop, *more))
    assert done.code == 2
    assert said in done.err
    assert not Path("c.yaml").exists()


def test_a_key_is_needed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("trip.yaml").write_text(TRIP)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    done = cli(*recording("--loop", "turn", provider="anthropic"))
    assert done.code == 2
    assert "there is no key for anthropic: set ANTHROPIC_API_KEY" in done.err


def test_options_of_scenarios_are_not_for_programs(cli: Cli) -> None:
    done = cli("record", "--loop", "turn", "--", "true")
    assert (done.code, "name their --provider too" in done.err) == (2, True)


def test_a_program_is_recorded_as_one(folder: Path) -> None:
    scenario = load_scenario(folder / "scenarios" / "hello.yaml")
    live = Live(
        folder / "c.yaml", "missing", "openai_chat", HOMES, {"OPENAI_API_KEY": KEY}, Limits()
    )
    with pytest.raises(UsageError, match="a program is not run on a cassette"):
        live.play(scenario, command_subject("true"))
