"""What a cassette's requests are to each other: turns, retries, branches, other conversations."""

from __future__ import annotations

from typing import Any

from harness.core.json_text import dumps
from harness.core.messages import Message
from harness.fakes.script import AlsoWhen
from harness.report.conversation import Said, Section, print_conversation
from harness.report.terminal import captured
from harness.runner.cassettes.session import session
from harness.runner.cassettes.shown import sections_of, title_of, whole
from harness.runner.to_scenario import convert
from harness.transport.cassettes.form import Cassette, Interaction
from harness.wire.http import Request
from tests.runner.recordings import MS, asking, gave, replying, said, taped, user

HELLO, HI = user("Hello"), said("Hi.")


def turns(cassette: Cassette) -> list[tuple[str | None, list[str]]]:
    """Each turn's text, and what was replied."""
    return [
        (turn.user, [step.message.text for step in turn.steps]) for turn in session(cassette).turns
    ]


def shown(cassette: Cassette) -> str:
    return captured(
        lambda console: print_conversation(console, title_of(cassette), sections_of(cassette))
    )


def test_a_title_that_was_asked_first_is_no_conversation() -> None:
    title = asking(user("Give a title to: Hello"), system="Titles.")
    cassette = taped(
        (title, replying(said("Greeting"))), (asking(HELLO, system="Be kind."), replying(HI))
    )
    assert turns(cassette) == [("Hello", ["Hi."])]
    [also] = convert(cassette, "x").scenario.also
    assert (also.name, also.when.system_contains) == ("title", "Titles.")
    assert [reply.say for reply in also.replies] == ["Greeting"]


def test_tools_tell_the_conversation_from_others() -> None:
    cassette = taped(
        (asking(user("Is this spam?"), system="Judge."), replying(said("No."))),
        (asking(HELLO, system="Be kind.", tools=["clock"]), replying(HI)),
    )
    assert turns(cassette) == [("Hello", ["Hi."])]
    assert convert(cassette, "x").scenario.also[0].name == "aside"


def test_what_is_asked_with_all_of_the_history_and_never_shown_is_beside_it() -> None:
    title = user("A title for this?")
    cassette = taped(
        (asking(HELLO), replying(HI)),
        (asking(HELLO, HI, title), replying(said("Greeting"))),
        (asking(HELLO, HI, user("Bye")), replying(said("Bye."))),
    )
    assert turns(cassette) == [("Hello", ["Hi."]), ("Bye", ["Bye."])]
    [also] = convert(cassette, "x").scenario.also
    assert also.when.message_contains == "A title for this?"


def test_side_by_side_conversations_are_told_by_their_tasks() -> None:
    def worker(task: str, at: int) -> tuple[Request, dict[str, Any]]:
        given = replying(said(f"Done: {task}"), begun=at * MS, ended_at=500 * MS)
        return asking(user(task), system="Work."), given

    calls = said(None, a=("start", {"task": "Rome"}), b=("start", {"task": "Oslo"}))
    results = (gave("a", "Done: Rome"), gave("b", "Done: Oslo"))
    cassette = taped(
        (asking(HELLO, tools=["start"]), replying(calls)),
        worker("Rome", 100),
        worker("Oslo", 200),
        (asking(HELLO, calls, *results, tools=["start"]), replying(HI)),
    )
    made = convert(cassette, "x")
    assert turns(cassette) == [("Hello", ["", "Hi."])]
    # A request of the conversation ends in the other's name.
    assert [(also.name, also.when) for also in made.scenario.also] == [
        ("aside", AlsoWhen(message_contains="Rome")),
        ("aside_2", AlsoWhen(user_contains="Oslo")),
    ]
    assert made.scenario.tools == ()
    assert "request 1 (line 1): the agent works on start itself" in made.notes[0]


def test_equal_conversations_beside_become_one_entry_or_are_told() -> None:
    def title(text: str, at: int) -> tuple[Request, dict[str, Any]]:
        given = replying(said(f"Of {text}"), begun=at, ended_at=500 * MS)
        return asking(user(text), system="Titles."), given

    main = (asking(HELLO, system="Kind.", tools=["clock"]), replying(HI))
    made = convert(taped(main, title("Hell", 1), title("Hello", 2)), "x")
    [also] = made.scenario.also
    assert [reply.say for reply in also.replies] == ["Of Hell", "Of Hello"]
    same = (asking(user("Hell"), system="Kind."), replying(said("Other"), begun=1))
    made = convert(taped((*main[:1], {**main[1], "ended_at": 5_000 * MS}), same), "x")
    assert made.scenario.also == ()
    assert made.notes[-1].endswith("nothing tells this from other requests; it is left out")


def test_what_a_client_joined_is_taken_apart() -> None:
    lost = {"status": 500, "headers": (("content-type", "application/json"),)}
    cassette = taped(
        (asking(HELLO), lost),
        (asking(user("Hello\n\nAre you there?")), replying(HI)),
    )
    assert turns(cassette) == [("Hello", [""]), ("Are you there?", ["Hi."])]


def test_a_history_may_be_cut_and_thrown_away() -> None:
    cut = taped(
        (asking(HELLO), replying(HI)),
        (asking(user("(left out)"), HI, user("Bye")), replying(said("Bye."))),
    )
    assert turns(cut) == [("Hello", ["Hi."]), ("Bye", ["Bye."])]
    later = taped(
        (asking(HELLO, HI, user("Now")), replying(said("So."))),
        (asking(user("Now"), user("Well?")), replying(said("Well."))),
    )
    assert turns(later) == [("Hello", ["Hi."]), ("Now", ["So."]), ("Well?", ["Well."])]
    none = taped((asking(HELLO), replying(HI)), (asking(user("Bye")), replying(said("Bye."))))
    assert turns(none) == [("Hello", ["Hi."]), ("Bye", ["Bye."])]


def test_an_undone_turn_is_no_branch() -> None:
    cassette = taped(
        (asking(HELLO), replying(HI)),
        (asking(HELLO, HI, user("Oops")), {"ended": "cancelled", "ended_at": 5 * MS}),
        (asking(HELLO, HI, user("Bye")), replying(said("Bye."))),
    )
    assert [text for text, _replies in turns(cassette)] == ["Hello", "Oops", "Bye"]
    [_hello, oops, _bye] = convert(cassette, "x").scenario.turns
    assert oops.cancel is not None
    assert (oops.cancel.after, oops.cancel.name) == ("request_sent", "2.1")


def test_a_reply_thrown_away_is_given_again_and_another_one_is_a_turn_that_goes_on() -> None:
    again = taped((asking(HELLO), replying(HI)), (asking(HELLO), replying(HI)))
    assert turns(again) == [("Hello", ["Hi."])]
    other = taped((asking(HELLO), replying(HI)), (asking(HELLO), replying(said("Hey."))))
    assert turns(other) == [("Hello", ["Hi."]), (None, ["Hey."])]
    silent = taped((asking(HELLO), replying(said(""))), (asking(HELLO), replying(HI)))
    assert turns(silent) == [("Hello", ["", "Hi."])]


def test_conversations_that_no_user_began() -> None:
    assert turns(taped((asking(system="Begin."), replying(HI)))) == [(None, ["Hi."])]
    greeted = taped((asking(said("Welcome."), HELLO), replying(HI)))
    assert turns(greeted) == [("Hello", ["Hi."])]
    assert convert(greeted, "x").notes == (
        "the first request begins with a message of the model, which is left out",
    )


def test_what_a_scenario_cannot_say_is_noted() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    call = said(None, a=("look", {}))
    result = gave("a", [{"type": "text", "text": "this"}, picture])
    both = user("See")
    both["content"] = [{"type": "text", "text": "See"}, picture]
    described = asking(both, call, result, tools=["look"])
    changed = described.body.replace(b'"name": "look"}', b'"name": "look", "description": "x"}')
    changed = changed.replace(b'"name":"look"}', b'"name":"look","description":"x"}')
    made = convert(
        taped(
            (asking(both, tools=["look"]), replying(call)),
            (Request("POST", described.url, (), changed), replying(HI)),
        ),
        "x",
    )
    assert made.notes == (
        "request 1 (line 1): it shows 1 picture; a scenario says texts only, so the agent has to "
        "bring them by itself",
        "request 2 (line 2): it declares look otherwise; the first one counts",
        "request 1 (line 1): look gave a picture too; it is left out",
    )
    assert made.level == "http:openai_chat:whole"


def test_results_that_nothing_shows_and_tools_that_nobody_declared() -> None:
    two = said("Both.", a=("look", {}), b=("listen", {}))
    cassette = taped(
        (asking(HELLO), replying(two)),
        (asking(HELLO, two, gave("a", "seen")), replying(HI)),
    )
    made = convert(cassette, "x")
    assert [tool.name for tool in made.scenario.tools] == ["look"]
    assert made.scenario.strict is False
    assert "its rule" in made.notes[0]
    declared = taped(
        (asking(HELLO, tools=["look", "listen"]), replying(two)),
        (asking(HELLO, two, gave("a", "seen"), tools=["look", "listen"]), replying(HI)),
    )
    assert "nothing shows what listen gave; it gives null" in convert(declared, "x").text


def test_a_provider_of_another_protocol_is_told() -> None:
    asked = {"model": "c", "max_tokens": 9, "system": "T", "messages": [user("x")]}
    body = dumps(asked).encode()
    other = Request(
        "POST", "http://x.test/v1/messages", (("anthropic-version", "2023-06-01"),), body
    )
    cassette = taped((asking(HELLO, tools=["a"]), replying(HI)), (other, {"ended": "refused"}))
    assert convert(cassette, "x").notes[0] == (
        "request 2 (line 2): it speaks anthropic; the conversation speaks openai_chat"
    )
    assert title_of(cassette).startswith("a cassette · 2 interactions · openai_chat, ")


def test_all_of_it_is_shown() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    both = {"role": "user", "content": [{"type": "text", "text": "See"}, picture]}
    bad = said(None)
    bad["tool_calls"] = [
        {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{"}}
    ]
    no = {"role": "assistant", "content": None, "refusal": "I will not."}
    html = (("content-type", "text/html"),)
    history = (HELLO, HI, both)
    cassette = taped(
        (asking(*history), {"status": 502, "reason": "Bad Gateway", "headers": html}),
        (asking(*history), {**replying(bad), "chunks": ()}),
        (asking(*history), replying(bad)),
        (asking(*history, bad, gave("a", "no")), replying(said("So"), stop="length")),
        (asking(*history, bad, gave("a", "no"), said("So"), user("And?")), replying(no)),
        (Request("GET", "http://x.test/v1/models"), {"status": 404}),
        (asking(user("Title?"), system="Titles."), {"ended": "timeout", "ended_at": 2_500 * MS}),
    )
    text = shown(cassette)
    for expected in (
        "turn 1, before the recording",
        "user    (1 picture)",
        "wrong   502 Bad Gateway",
        "wrong   200: ",
        "calls   look { (no JSON)",
        "gives   look: no",
        "wrong   stopped: length",
        "wrong   I will not.",
        "not read",
        "note    request 6 (line 6): GET /v1/models is of no protocol",
        "; it was answered 404",
        "beside the conversation, turn 1",
        "wrong   the client waited no longer",
    ):
        assert expected in text, (expected, text)
    [request, answer] = whole(cassette.interactions[-1], 7)
    assert request.title == "request 7"
    assert answer.said == (Said("wrong", "timeout: the client waited no longer", 8_500 * MS),)
    binary = Interaction(request=Request("POST", "http://x.test/", (), b"\xff"))
    assert whole(binary, 1)[0].said[-1].text == "\\xff"
    assert shown(Cassette()) == "a cassette · 0 interactions"
    assert sections_of(Cassette()) == []
    assert isinstance(sections_of(cassette)[0], Section)
    assert isinstance(session(cassette).turns[0].steps[0].message, Message)
