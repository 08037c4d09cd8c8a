"""A script that is served: which turn is played, what is left of it, the thread that serves it."""

from __future__ import annotations

import io
import socket
from typing import Any

import httpx2
import pytest

import harness
from harness.core.errors import FileError, NoPlace, ScriptExhausted, UsageError
from harness.core.json_text import loads
from harness.core.messages import Message, ModelRequest, assistant, user
from harness.core.trace import Recorder
from harness.fakes.script import Also, AlsoWhen, Reply, Torn
from harness.runner.files.load import read_script
from harness.runner.scenario import Scenario, Turn
from harness.runner.served import serve
from harness.runner.serving import KEY, Script

ONE, TWO, THREE = Reply(say="One."), Reply(say="Two."), Reply(say="Three.")


def script(*turns: Turn, **fields: Any) -> Script:
    return Script(Scenario("case", turns=turns, **fields), Recorder(lambda: 0, lambda: "server"))


def asks(script: Script, *texts: str) -> str:
    """The label of the reply to a history: the user's texts, and the assistant's with a dash."""
    messages: list[Message] = [
        assistant(text[1:]) if text.startswith("-") else user(text) for text in texts
    ]
    placed = script.locate(ModelRequest("m", "", tuple(messages)))
    script.opened(placed, lambda: None)
    script.delivered(placed)
    script.ended(placed, "complete", placed.given.message)
    return placed.label


def test_a_turn_begins_when_its_text_appears() -> None:
    three = script(Turn("a", (ONE, TWO)), Turn("b", (THREE,)), Turn("c", (ONE,)))
    assert asks(three, "a") == "1.1"
    assert asks(three, "a", "-One.", "x") == "1.2"
    assert asks(three, "a", "-One.", "-Two.", "b") == "2.1"
    assert not three.done
    assert asks(three, "a", "-One.", "-Two.", "b", "-Three.", "c") == "3.1"
    assert three.done


def test_turns_of_one_text_are_told_by_where_it_stands() -> None:
    same = script(Turn("go", (ONE,)), Turn("go on", (TWO,)), Turn("go", (THREE,)))
    assert asks(same, "go") == "1.1"
    assert asks(same, "go") == "1.1~2"
    assert asks(same, "go", "-One.", "go on") == "2.1"
    assert asks(same, "go", "-One.", "go on") == "2.1~2"
    assert asks(same, "go", "-One.", "go on", "-Two.", "go") == "3.1"


def test_a_turn_begins_also_where_the_history_was_cut() -> None:
    cut = script(Turn("a", (ONE,)), Turn("b", (TWO,)), Turn("c", (THREE,)))
    assert asks(cut, "a") == "1.1"
    assert asks(cut, "a", "-One.", "b") == "2.1"
    assert asks(cut, "b", "-Two.", "c") == "3.1"


def test_a_resume_begins_when_the_turn_before_was_asked_for_whole() -> None:
    resumed = script(Turn("a", (ONE,)), Turn(None, (TWO,)), Turn("a", (THREE,)))
    assert asks(resumed, "a") == "1.1"
    assert asks(resumed, "a", "-One.") == "2.1"
    assert asks(resumed, "a", "-One.", "-Two.", "a") == "3.1"


def test_requests_beside_the_turns_begin_none() -> None:
    title = Also("title", AlsoWhen(message_contains="title of b"), (TWO,))
    beside = script(Turn("a", (ONE,)), Turn("b", (THREE,)), also=(title,))
    assert asks(beside, "a") == "1.1"
    assert asks(beside, "title of b") == "title.1"
    assert beside.unused() == ["all of turn 2"]


def test_what_is_left() -> None:
    title = Also("title", AlsoWhen(message_contains="title"), (TWO,))
    left = script(Turn("a", (ONE, TWO)), Turn("b", (THREE,)), also=(title,))
    asks(left, "a")
    asks(left, "a", "-One.", "b")
    assert left.unused() == [
        "reply 2 of turn 1 (say: 'Two.')",
        "reply 1 of `also` entry 'title' (say: 'Two.')",
    ]
    assert not left.done


def test_a_reply_that_never_comes_whole_is_given_all_the_same() -> None:
    always = script(Turn("a", (Reply(say="x", fault=Torn(0), fault_times=None),)))
    once = script(Turn("a", (Reply(say="x", fault=Torn(0)),)))
    for each in (always, once):
        placed = each.locate(ModelRequest("m", "", (user("a"),)))
        assert not each.done
        each.inject(placed)
        each.ended(placed, "torn")
    assert (always.done, once.done) == (True, False)
    assert asks(once, "a") == "1.1~2"
    assert once.done


def test_a_request_that_fits_no_turn() -> None:
    one = script(Turn("a", (ONE,)))
    with pytest.raises(NoPlace, match="holds the text of turn 1"):
        asks(one, "x")
    asks(one, "a")
    with pytest.raises(ScriptExhausted):
        asks(one, "a", "-One.", "x")


def test_a_script_without_turns() -> None:
    assert script().done
    with pytest.raises(NoPlace, match="no turn is played"):
        asks(script(), "x")


# --- what is read


def test_a_script_is_a_scenario_or_plain_replies(tmp_path: Any) -> None:
    case = Scenario("case")
    assert read_script(case) is case
    (turn,) = read_script("- say: One.\n- say: Two.\n").turns
    assert turn == Turn(None, (ONE, TWO))
    assert read_script([ONE, TWO]).turns == (turn,)
    file = tmp_path / "replies.json"
    file.write_text('[{"say": "One."}, {"say": "Two."}]')
    assert read_script(file).turns == (turn,)
    assert read_script(file).source == file.as_posix()
    assert read_script("about: x\nturns: [{user: a, model: [{say: One.}]}]\n").turns[0].user == "a"


@pytest.mark.parametrize(
    "text", ["- sya: One.\n- x\n", "[]\n \n", "a: [\n", "- say: One.\n  calls: 1\n"]
)
def test_a_script_that_is_none(text: str) -> None:
    with pytest.raises(FileError, match="<scenario>"):
        read_script(text)


# --- the thread

HEADERS = {"authorization": "Bearer sk-secret", "anthropic-version": "2026-10-21"}


def ask(url: str, text: str, path: str = "/v1/chat/completions", **more: Any) -> httpx2.Response:
    body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
    return httpx2.post(url + path, json=body, headers=HEADERS)


def test_plain_replies_are_given_one_a_request() -> None:
    journal = io.StringIO()
    with harness.serve("- say: One.\n- say: Two.\n", journal=journal) as server:
        assert ask(server.url, "x").json()["choices"][0]["message"]["content"] == "One."
        assert [str(each) for each in server.findings()] == [
            "reply 2 of turn 1 (say: 'Two.') was never asked for"
        ]
        assert ask(server.url, "y").json()["choices"][0]["message"]["content"] == "Two."
        assert server.findings() == ()
        assert server.used_up
        assert server.variables == {
            "OPENAI_BASE_URL": f"{server.url}/v1",
            "OPENAI_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": KEY,
            "GOOGLE_GEMINI_BASE_URL": server.url,
            "GEMINI_API_KEY": KEY,
        }
    assert "sk-secret" not in journal.getvalue()
    assert [loads(line)["place"] for line in journal.getvalue().splitlines()] == ["1.1", "1.2"]
    assert len(server.trace.requests()) == 2


def test_only_one_protocol_is_served() -> None:
    with serve([ONE], provider="anthropic") as server:
        answer = ask(server.url, "x")
        assert "is of openai_chat, and only anthropic is served" in answer.text
        assert answer.headers["x-should-retry"] == "false"
        assert list(server.variables) == ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"]
        assert ask(server.url, "x", "/nowhere").status_code == 404
        assert ask(server.url, "x", "/v1/messages", max_tokens=9).status_code == 200
        assert [each.kind for each in server.findings()] == ["refused", "no place"]
    with pytest.raises(UsageError, match="antropic"), serve([ONE], provider="antropic"):
        pass


def test_a_history_that_is_not_valid_is_refused_unless_that_is_not_wanted() -> None:
    orphan = {"messages": [{"role": "tool", "tool_call_id": "c", "content": "x"}]}
    with serve([ONE]) as server:
        assert ask(server.url, "x", **orphan).status_code == 400
        (found, *_) = server.findings()
        assert (found.kind, found.request) == ("refused", 1)
        assert found.rule
    with serve([ONE], strict=False) as server:
        assert ask(server.url, "x", **orphan).status_code == 200


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} "), serve([ONE], port=port):
            pass


def test_what_breaks_in_the_service_is_raised_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(request: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("harness.runner.serving.codec_for", broken)
    served = serve([ONE])
    server = served.__enter__()
    with pytest.raises(httpx2.RemoteProtocolError):
        ask(server.url, "x")
    with pytest.raises(ZeroDivisionError):
        served.__exit__(None, None, None)


@pytest.mark.parametrize("order", ["calls", "place"])
def test_where_only_the_number_counts_a_reply_that_went_wrong_is_over(order: Any) -> None:
    torn = script(Turn("a", (Reply(say="One.", fault=Torn(0)),)), order=order)
    placed = torn.locate(ModelRequest("m", "", (user("a"),)))
    torn.opened(placed, lambda: None)
    assert not torn.done
    torn.inject(placed)
    torn.ended(placed, "torn")
    assert torn.done is (order == "calls")
