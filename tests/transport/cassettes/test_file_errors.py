"""What is wrong with a cassette's file is said with its place, what was found, and what to do."""

from __future__ import annotations

import json

import pytest
import yaml
from msgspec.structs import replace

from harness.core.errors import FileError
from harness.transport.cassettes.file import read, write
from harness.transport.cassettes.form import Chunk
from tests.transport.cassettes.samples import REFUSED, cassette, get, streamed

SAMPLE = write(cassette(streamed("anthropic"), REFUSED, get(body=b"one\ntwo\n")))


def errors(text: str | bytes, path: str = "c.yaml") -> list[str]:
    with pytest.raises(FileError) as caught:
        read(text, path)
    assert str(caught.value).startswith(f"{path}:")
    return [f"{p.line}:{p.column}: {p.message}" for p in caught.value.problems]


def changed(*edits: tuple[str, str], text: str = SAMPLE) -> str:
    """The text with each first part once replaced by the second."""
    for before, after in edits:
        assert before in text, before
        text = text.replace(before, after, 1)
    return text


def at(text: str, part: str) -> str:
    """The place of a part of a text."""
    before = text[: text.index(part)]
    return f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


def test_the_sample_is_read() -> None:
    assert len(read(SAMPLE, "c.yaml").interactions) == 3


@pytest.mark.parametrize("part", ["- request:", "response:", "one", "version:", "method"])
@pytest.mark.parametrize("as_bytes", [True, False])
def test_a_merge_that_is_not_finished(part: str, *, as_bytes: bool) -> None:
    lines = SAMPLE.splitlines(keepends=True)
    number = next(n for n, line in enumerate(lines) if line.strip().startswith(part))
    lines[number] = f"<<<<<<< HEAD\n{lines[number]}=======\n{lines[number]}>>>>>>> other\n"
    text = "".join(lines)
    place = at(text, "<<<<<<<")
    assert errors(text.encode() if as_bytes else text) == [
        f"{place}: a merge has left two versions here, between <<<<<<< and >>>>>>>; keep one of "
        "them, or record the cassette again"
    ]


EXPECTED = "expected a cassette: a mapping with the keys interactions and version"
CUT = "the end of the file is missing: it was cut off while it was written; record it again"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", f"1:1: the file is empty; {EXPECTED}"),
        ("\n# nothing\n", f"1:1: the file is empty; {EXPECTED}"),
        ("hello", f"1:1: found the text 'hello'; {EXPECTED}"),
        ("[1, 2]", f"1:1: found a list of 2 items; {EXPECTED}"),
        ("about: x\nturns: []\n", f"1:1: found a scenario; {EXPECTED}"),
        (
            "http_interactions: []\n",
            f"1:1: found a mapping with the key 'http_interactions'; {EXPECTED}",
        ),
        (
            "- request: {method: GET}\n  response: {}\n",
            "1:1: the file was written by vcrpy before version 1.0, in a form that is read no "
            "more; convert it with `python -m vcr.migration FILE`, or record it again",
        ),
        ("interactions: []\n", f"1:15: version: is missing; {CUT}"),
        (
            "interactions: []\nversion: 2\n",
            "2:10: version: 2 is a newer version of vcrpy's format than the one known here, which "
            "is 1; install a newer harness",
        ),
        (
            "interactions: []\nversion: '1'\n",
            "2:10: version: expected 1, the version of vcrpy's format, found the text '1'",
        ),
        (
            "interaction: []\nversion: 1\n",
            "1:1: interactions: expected a list, found nothing (did you mean 'interaction'?); "
            f"{CUT}",
        ),
        ("version: 1\n", f"1:1: interactions: expected a list, found nothing; {CUT}"),
        (
            "interactions:\nversion: 1\n",
            f"1:14: interactions: expected a list, found nothing; {CUT}",
        ),
        (
            "interactions: {a: 1}\nversion: 1\n",
            "1:15: interactions: expected a list, found a mapping with the key 'a'",
        ),
        (
            "interactions: []\nmetadata: 1\nversion: 1\n",
            "2:11: metadata: expected a mapping, found the number 1",
        ),
        (
            "interactions: [{}, 1]\nversion: 1\n",
            "1:16: interactions[0]: expected a mapping with the keys request and response",
        ),
        (
            '{"a": ',
            "1:7: not JSON: the text ends too early; the file ends here: was it cut off while it "
            "was written?",
        ),
    ],
)
def test_what_is_no_cassette(text: str, message: str) -> None:
    assert errors(text)[0] == message


HEAD = "interactions:\n- request: {method: GET, uri: /x, headers: {}, body: ''}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            HEAD.replace("request:", "requst:") + "  response: {}\nversion: 1\n",
            "2:3: interactions[0].request: is missing (did you mean 'requst'?); expected a "
            "mapping with method, uri, headers and body",
        ),
        (
            HEAD + "  respons: {}\nversion: 1\n",
            "2:3: interactions[0]: has a request and no response (did you mean 'respons'?); record "
            "it again, or remove the request",
        ),
        (
            HEAD + "version: 1\n",
            "2:3: interactions[0]: has a request and no response; record it again, or remove the "
            "request",
        ),
        (
            "interactions:\n- response: {}\nversion: 1\n",
            "2:3: interactions[0].request: is missing; expected a mapping with method, uri, "
            "headers and body",
        ),
        (
            HEAD + "  response: 1\nversion: 1\n",
            "3:13: interactions[0].response: expected a mapping, found the number 1",
        ),
        (
            HEAD + "  response: {}\nversion: 1\n",
            "3:13: interactions[0].response.status: is missing; expected a mapping",
        ),
        (
            HEAD + "  response: {status: {message: OK}}\nversion: 1\n",
            "3:22: interactions[0].response.status.code: is missing; expected a whole number from "
            "100 to 999",
        ),
        (
            HEAD + "  response: {status: {code: 99}}\nversion: 1\n",
            "3:29: interactions[0].response.status.code: expected a whole number from 100 to 999, "
            "found the number 99",
        ),
        (
            HEAD.replace("uri: /x", "uri: 5") + "  response: {status: {code: 200}}\nversion: 1\n",
            "2:31: interactions[0].request.uri: expected a text, found the number 5; put it in "
            "quotes",
        ),
        (
            HEAD.replace("headers: {}", "headers: {a: [[]]}")
            + "  response: {status: {code: 200}}\nversion: 1\n",
            "2:49: interactions[0].request.headers.a[0]: expected a text, found an empty list",
        ),
    ],
)
def test_what_is_no_interaction(text: str, message: str) -> None:
    assert errors(text) == [message]


IN_RESPONSE = "interactions[0].response.harness"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            ("      begun:", "      bgun:"),
            f"unknown key 'bgun' in {IN_RESPONSE} (did you mean 'begun'?); known: protocol, begun, "
            "head, ended, took, chunks",
        ),
        (
            ("at: 0.020, bytes:", "at: 0.020, byte: 1, bytes:"),
            f"unknown key 'byte' in {IN_RESPONSE}.chunks[0] (did you mean 'bytes'?); known: at, "
            "bytes, event, text, thinking, call, arguments, stopped, usage, error",
        ),
        (
            ("    source:", "    sourc:"),
            "unknown key 'sourc' in metadata.harness (did you mean 'source'?); known: format, "
            "source, rules, lost",
        ),
        (
            ("    source: a fake provider", "    rules: {ignored: []}"),
            "unknown key 'ignored' in metadata.harness.rules (did you mean 'ignore'?); known: "
            "ignore, volatile, names, harmless, patterns",
        ),
        (
            ("    - at: 1", "    - att: 1\n      at: 1"),
            "unknown key 'att' in metadata.harness.lost[0] (did you mean 'at'?); known: at, "
            "request, harness",
        ),
    ],
)
def test_an_unknown_key_of_ours_is_named_with_the_nearest(
    edit: tuple[str, str], message: str
) -> None:
    text = changed(edit)
    assert [each.partition(" ")[2] for each in errors(text)] == [message]


@pytest.mark.parametrize(
    ("edit", "place", "message"),
    [
        (
            ("at: 0.021, bytes: 150", "at: 0.021, bytes: 149"),
            "- {at: 0.020",
            f"{IN_RESPONSE}.chunks: their bytes add up to 2705, but the body has 2706; where the "
            "body was changed by hand, change the chunks too, or remove the key harness of this "
            "response: then all of it comes at once",
        ),
        (
            ("at: 0.021", "at: 0.019"),
            "0.019, bytes",
            f"{IN_RESPONSE}.chunks[1].at: found 0.019, which is before 0.02, when the chunk above "
            "it came; chunks stand in the order in which they came",
        ),
        (
            ("at: 0.020", "at: 0.01"),
            "0.01, bytes",
            f"{IN_RESPONSE}.chunks[0].at: found 0.01, which is before 0.02, when the head came; "
            "chunks stand in the order in which they came",
        ),
        (
            ("took: 0.900", "took: 0.01"),
            "0.01\n",
            f"{IN_RESPONSE}.took: found 0.01, which is before what came last, at 0.037; times "
            "count from when the request went out, and none is before the one above it",
        ),
        (
            ("begun: 0.005", "begun: -1"),
            "-1\n",
            f"{IN_RESPONSE}.begun: expected seconds, a number from 0 to 1000000000, found the "
            "number -1",
        ),
        (
            ("at: 0.020, bytes: 473", "at: yes, bytes: 473"),
            "yes, bytes",
            f"{IN_RESPONSE}.chunks[0].at: expected seconds, a number from 0 to 1000000000, found "
            "the text 'yes'",
        ),
        (
            ("at: 0.020, bytes: 473", "at: true, bytes: 473"),
            "true, bytes",
            f"{IN_RESPONSE}.chunks[0].at: expected seconds, a number from 0 to 1000000000, found "
            "true",
        ),
        (
            ("ended: complete", "ended: compleet"),
            "compleet",
            f"{IN_RESPONSE}.ended: unknown ending 'compleet' (did you mean 'complete'?); known: "
            "complete, torn, reset, timeout, cancelled",
        ),
        (
            ("ended: refused", "ended: complete\n        x: 1"),
            "x: 1",
            "unknown key 'x' in metadata.harness.lost[0].harness; known: protocol, begun, ended, "
            "took",
        ),
        (
            ("ended: refused", "ended: complete\n"),
            "complete\n\n",
            "metadata.harness.lost[0].harness.ended: unknown ending without an answer 'complete'; "
            "known: refused, dropped, reset, timeout, cancelled, torn",
        ),
        (
            ("protocol: anthropic", "protocol: antropic"),
            "antropic\n",
            f"{IN_RESPONSE}.protocol: unknown protocol 'antropic' (did you mean 'anthropic'?); "
            "known: openai_chat, openai_responses, anthropic, gemini",
        ),
        (
            ("protocol: anthropic", "protocol: gemini"),
            "gemini",
            f"{IN_RESPONSE}.protocol: found 'gemini', but POST /v1/messages is one of anthropic; "
            "correct one of the two",
        ),
        (
            ("/v1/messages", "/v1/message"),
            "anthropic\n      begun",
            f"{IN_RESPONSE}.protocol: found 'anthropic', but POST /v1/message is of no protocol "
            "that is known; correct one of the two",
        ),
        (
            ("thinking: 'Where?'", "thinking: 'Here?'"),
            "'Here?'",
            f"{IN_RESPONSE}.chunks[2].thinking: found 'Here?', but the bytes of the body say "
            "'Where?'; the body counts: change it there, or remove what is said of this chunk",
        ),
        (
            ('"thinking": "Where?"', '"thinking": "There?"'),
            "'Where?'",
            f"{IN_RESPONSE}.chunks[2].thinking: found 'Where?', but the bytes of the body say "
            "'There?'; the body counts: change it there, or remove what is said of this chunk",
        ),
        (
            ("event: message_start}", "event: message_start, text: x}"),
            "x}",
            f"{IN_RESPONSE}.chunks[0].text: found 'x', but the bytes of the body say nothing of "
            "it; the body counts: change it there, or remove what is said of this chunk",
        ),
        (
            ("    - at: 1", "    - at: 3"),
            "3\n      request",
            "metadata.harness.lost[0].at: found 3, but the file has 3 interactions; write the "
            "place in the order of all, from 0",
        ),
        (
            ("format: 1", "format: 2"),
            "2\n    source",
            "metadata.harness.format: 2 is a newer version of what harness adds to a cassette "
            "than the one known here, which is 1; install a newer harness",
        ),
        (
            ("format: 1\n    source", "source"),
            "source: a fake",
            "metadata.harness.format: is missing; expected 1, the version of what harness adds to "
            "a cassette",
        ),
        (
            ("code: 200", "code: 1000"),
            "1000",
            "interactions[0].response.status.code: expected a whole number from 100 to 999, found "
            "the number 1000",
        ),
    ],
)
def test_what_contradicts_itself(edit: tuple[str, str], place: str, message: str) -> None:
    text = changed(edit)
    assert errors(text) == [f"{at(text, place)}: {message}"]


@pytest.mark.parametrize("rule", ["patterns", "volatile"])
def test_a_rule_that_is_no_regular_expression_is_refused(rule: str) -> None:
    text = changed(("    source: a fake provider", f"    rules: {{{rule}: ['a', '[b']}}"))
    assert errors(text) == [
        f"{at(text, chr(39) + '[b')}: metadata.harness.rules.{rule}[1]: expected a regular "
        "expression, found '[b', which is none: unterminated character set at position 0"
    ]


def test_of_a_newer_file_nothing_else_is_said() -> None:
    text = changed(("format: 1", "format: 2\n    new: 1"), ("begun:", "started:"))
    (message,) = errors(text)
    assert "is a newer version" in message


def test_two_that_are_lost_cannot_have_one_place() -> None:
    text = changed(("    - at: 1", "    - at: 0"), text=write(cassette(REFUSED, REFUSED)))
    assert errors(text) == [
        f"{text[: text.rindex('at: 0')].count(chr(10)) + 1}:11: metadata.harness.lost[1].at: "
        "found 0, but that place is taken; write the place in the order of all, from 0"
    ]


def test_all_that_is_wrong_is_told_at_once_up_to_a_limit() -> None:
    two = write(cassette(streamed("gemini"), streamed("anthropic")))
    text = two.replace("ended: complete", "ended: x")
    assert [each.partition(" ")[2].partition(":")[0] for each in errors(text)] == [
        f"interactions[{n}].response.harness.ended" for n in range(2)
    ]
    many = write(cassette(*[get()] * 30)).replace("ended: complete", "ended: x")
    assert len(errors(many)) == 20


def test_a_value_of_the_view_may_be_left_out() -> None:
    text = changed((", thinking: 'Where?'", ""), (", event: message_start", ""))
    assert read(text, "c.yaml") == read(SAMPLE, "c.yaml")


def test_a_file_that_is_cut_off_anywhere_is_refused() -> None:
    text = write(
        cassette(replace(get(), chunks=(Chunk(10**7, b"a\nb\n"),), ended_at=10**7), REFUSED)
    )
    for end in range(len(text) - 1):
        assert errors(text[:end]), text[:end]


def test_where_it_ends_too_early_that_is_said() -> None:
    cut = SAMPLE[: SAMPLE.index("at: 0.022")]
    assert errors(cut)[-1].endswith("; the file ends here: was it cut off while it was written?")
    other = changed(("took: 0.900", "took: [0.900"))
    assert not errors(other)[-1].endswith("?")


def test_what_is_no_text_is_refused() -> None:
    assert errors(b"a:\n- \xff\nb: 1\n") == [
        "2:3: the byte 0xff is not UTF-8; save the file as UTF-8"
    ]
    assert errors(b"interactions: []\n\0\nversion: 1\n") == [
        '2:1: the character U+0000 cannot stand in a file; inside double quotes, write "\\u0000"'
    ]


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:os.system",
        "!!python/object/new:os.system",
        "!!python/name:os.system",
        "!!python/module:os",
        "!!python/object:vcr.request.Request",
        "!!python/object/apply:builtins.eval",
        "!own",
    ],
)
@pytest.mark.parametrize("value", ["['x']", "{args: ['x']}", "x"])
def test_other_tags_make_nothing_run_and_are_refused(tag: str, value: str) -> None:
    text = f"interactions:\n- request: {tag} {value}\nversion: 1\n"
    (message,) = errors(text)
    assert message.startswith("2:12: the tag '")
    assert "is not known here" in message


@pytest.mark.parametrize(
    "value",
    [
        "!!binary [1]",
        "!!binary 'a'",
        "!!python/tuple x",
        "!!python/str [x]",
        "!!python/object/new:_io.BytesIO {state: [[]]}",
        "!!python/object/apply:builtins.iter [1]",
    ],
)
def test_a_tag_that_does_not_fit_is_refused(value: str) -> None:
    text = HEAD.replace("body: ''", f"body: {value}") + "  response: {}\nversion: 1\n"
    (message,) = errors(text)
    assert "does not fit its tag !!" in message


def test_a_damaged_json_file_is_refused() -> None:
    text = json.dumps(yaml.safe_load(SAMPLE))
    assert read(text, "c.json") == replace(
        read(SAMPLE, "c.json"),
        interactions=tuple(replace(each, line=1) for each in read(SAMPLE, "c.json").interactions),
    )
    assert "was it cut off" in errors(text[:-3], "c.json")[-1]


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def test_what_is_nested_too_deep_is_refused() -> None:
    told = errors(f"interactions: {nested(5000)}\nversion: 1\n")[0]
    assert told.endswith(("nested too deep", "nested more than 64 deep"))  # not every parser knows
