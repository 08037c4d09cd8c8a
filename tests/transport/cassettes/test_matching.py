"""Which recorded interaction answers a request, and what is said where none does."""

from __future__ import annotations

import asyncio
import gzip
import pickle
import random
import threading
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types
from msgspec.structs import replace
from vcr.request import Request as VcrRequest  # type: ignore[import-untyped]

from harness.core.errors import CassetteMiss, HarnessError, UsageError
from harness.core.json_plain import dumps
from harness.core.json_text import Json, loads
from harness.core.messages import ModelRequest, user
from harness.transport import redact_bodies
from harness.transport.cassettes import matching, missing
from harness.transport.cassettes.form import Interaction
from harness.transport.cassettes.matching import Library, Matcher, vcr_matcher
from harness.transport.exchange import Exchange
from harness.transport.in_memory import client
from harness.transport.rules import NO_RULES, Rules
from harness.wire import CODECS, canonical
from harness.wire.codec import Asked, Codec
from harness.wire.http import Headers, Request
from tests.transport.sdks import world

JSON = (("content-type", "application/json"),)
HEAD = "(POST /v1/chat/completions, openai_chat) is"
ON_TOP = f"record it {missing.in_mode('missing')}"
ANEW = f"record all anew {missing.in_mode('all')}"
CHAT = "https://api.openai.com/v1/chat/completions"
KEY = "sk-proj-Pl4ntedPl4ntedPl4nted"


def chat(text: str, *before: str, url: str = CHAT, **more: Json) -> Request:
    said = [{"role": "system", "content": each} for each in before]
    body = {"model": "gpt-5", "messages": [*said, {"role": "user", "content": text}], **more}
    return Request("POST", url, JSON, dumps(body).encode())


def library(*requests: Request, rules: Rules = NO_RULES, **options: Any) -> Library:
    recorded = [Interaction(request=each, line=10 * n) for n, each in enumerate(requests, 1)]
    return Library(recorded, rules, "trip.yaml", **options)


def miss(given: Library, request: Request) -> str:
    with pytest.raises(CassetteMiss) as caught:
        given.take(request)
    return str(caught.value)


def test_requests_take_what_was_recorded_for_them_whatever_their_order() -> None:
    given = library(chat("one"), chat("two"), chat("three"))
    assert [given.index_of(given.take(chat(each))) for each in ("three", "one", "two")] == [2, 0, 1]
    assert (given.played(), given.unused()) == (3, [])


def test_equal_requests_take_theirs_in_recorded_order() -> None:
    given = library(chat("a"), chat("b"), chat("a"), chat("a"))
    assert [given.index_of(given.take(chat("a"))) for _ in range(3)] == [0, 2, 3]
    assert [each.request for each in given.unused()] == [chat("b")]


def test_what_had_no_answer_and_what_was_asked_again_are_interactions_as_others() -> None:
    lost = Interaction(request=chat("a"), ended="refused")
    failed = Interaction(request=chat("a"), status=500)
    good = Interaction(request=chat("a"), status=200)
    given = Library([lost, failed, good])
    assert [given.take(chat("a")) for _ in range(3)] == [lost, failed, good]


def test_prompts_at_one_address_are_told_apart_by_what_they_say() -> None:
    given = library(chat("one"), chat("two"))
    assert "messages[0].content" in miss(given, chat("three"))
    assert given.played() == 0


def test_the_last_of_equal_ones_answers_again_where_that_is_allowed() -> None:
    given = library(chat("a"), chat("a"), allow_repeats=True)
    assert [given.index_of(given.take(chat("a"))) for _ in range(4)] == [0, 1, 1, 1]
    assert given.played() == 2


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_where_a_provider_is_reached_does_not_count(codec: Codec) -> None:
    asked = Asked(ModelRequest("gemini-3", "", (user("Go"),), max_tokens=5))
    given = library(codec.write(asked, base="https://api.test", key=KEY))
    given.take(codec.write(asked, base="http://127.0.0.1:8080/proxy", key="another"))


ORDER = random.Random(7).sample(range(20), 20)


def test_twenty_threads_in_any_order_take_what_is_theirs() -> None:
    given = library(*[chat(str(n)) for n in range(20)])
    start = threading.Barrier(20)

    def take(n: int) -> int:
        start.wait(10)
        return given.index_of(given.take(chat(str(n))))

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(take, ORDER)) == ORDER
    assert given.unused() == []


def test_twenty_threads_that_ask_for_the_same_never_take_one_twice() -> None:
    given = library(*[chat("a")] * 20)
    start = threading.Barrier(20)

    def take(_n: int) -> int:
        start.wait(10)
        return given.index_of(given.take(chat("a")))

    with ThreadPoolExecutor(20) as pool:
        assert sorted(pool.map(take, range(20))) == list(range(20))


def test_twenty_tasks_in_any_order_take_what_is_theirs() -> None:
    given = library(*[chat(str(n)) for n in range(20)])

    async def take(n: int) -> int:
        await asyncio.sleep(0)
        return given.index_of(given.take(chat(str(n))))

    async def all_of_them() -> list[int]:
        return list(await asyncio.gather(*[take(n) for n in ORDER]))

    with world() as made:
        assert made.run(all_of_them()) == ORDER


# --- what is left out


def test_requests_are_matched_as_they_are_without_their_secrets() -> None:
    written = chat("the key is [redacted]", url=f"{CHAT}?key=%5Bredacted%5D")
    given = library(written, written)
    given.take(chat(f"the key is {KEY}", url=f"{CHAT}?key={KEY}"))
    given.take(chat("the key is [redacted]"))


FORM: Headers = (("content-type", "application/x-www-form-urlencoded"),)
PARTS: Headers = (("content-type", "multipart/form-data; boundary=x"),)
CALL = {"name": "f", "arguments": dumps({"password": KEY, "at": 1})}
HIDDEN = {
    "prose": chat(f"the key is {KEY}, use it"),
    "member": chat("a", extra={"api_key": KEY}),
    "arguments": chat("a", messages=[{"tool_calls": [{"id": "c", "function": CALL}]}]),
    "base64": chat(f"data:text/plain;base64,{b64encode(KEY.encode()).decode()}"),
    "query": chat("a", url=f"{CHAT}?api_key={KEY}&b=1"),
    "login": chat("a", url=CHAT.replace("https://", f"https://me:{KEY}@")),
    "path": Request("POST", f"https://x.test/{KEY}/send", JSON, b"{}"),
    "form": Request("POST", "https://x.test/t", FORM, f"client_secret={KEY}&a=1".encode()),
    "parts": Request(
        "POST",
        "https://x.test/f",
        PARTS,
        f'--x\r\nContent-Disposition: form-data; name="token"\r\n\r\n{KEY}\r\n--x--\r\n'.encode(),
    ),
    "JSON, said to be a form": replace(chat("a = b & c + d", extra={"api_key": KEY}), headers=FORM),
    "text": Request("POST", "https://x.test/t", (), f"password: {KEY}".encode()),
    "gzip": Request(
        "POST", CHAT, (*JSON, ("content-encoding", "gzip")), gzip.compress(chat(KEY).body, mtime=0)
    ),
}


@pytest.mark.parametrize("place", HIDDEN)
def test_a_request_finds_its_own_recording_wherever_its_secret_is(place: str) -> None:
    asked = HIDDEN[place]
    asked = replace(asked, headers=(*asked.headers, ("authorization", f"Bearer {KEY}")))
    written = redact_bodies.interaction(Interaction(request=asked), NO_RULES)
    assert "Pl4nted" not in repr(written)
    given = Library([written] * 2)
    given.take(asked)
    given.take(written.request)
    again = redact_bodies.interaction(written, NO_RULES)
    Library([again]).take(asked)


def test_a_token_that_was_taken_out_of_a_reply_is_matched_when_it_comes_back() -> None:
    url = "https://x.test/v1/me"
    written = Request("POST", url, JSON, b'{"access_token": "[redacted]"}')
    given = library(written, written)
    given.take(written)
    given.take(Request("POST", url, JSON, b'{"access_token": "still-in-memory-1"}'))


def test_secrets_in_what_others_recorded_do_not_count_either() -> None:
    given = library(chat(f"use {KEY}"), chat("no secret"))
    assert given.index_of(given.take(chat("use sk-proj-0therKey0therKey0ther"))) == 0


def test_a_secret_is_never_shown() -> None:
    given = library(chat(f"use {KEY} now", url=f"{CHAT}?key={KEY}"))
    said = miss(given, chat(f"use {KEY}Other later", url=f"{CHAT}/{KEY}"))
    assert "Pl4nted" not in said
    assert "Pl4nted" not in miss(given, chat(f"use {KEY}Other later"))
    with pytest.raises(AssertionError) as caught:
        vcr_matcher(vcr_of(chat(f"a {KEY}")), vcr_of(chat("b")))
    assert "Pl4nted" not in str(caught.value)


def test_a_secret_of_a_users_own_is_not_shown_either() -> None:
    rules = Rules(patterns=("acct-[0-9]+",))
    request = Request("GET", "https://x.test/acct-123/acct-456")
    assert "acct" not in miss(library(chat("a"), rules=rules), request)


def test_names_of_a_users_own_are_secret_in_a_query() -> None:
    rules = Rules(names=("session",))
    given = library(chat("a", url=f"{CHAT}?session=1"), rules=rules)
    given.take(chat("a", url=f"{CHAT}?session=2"))
    given = library(chat("a", url=f"{CHAT}?page_token=1"))
    assert "page_token" in miss(given, chat("a", url=f"{CHAT}?page_token=2"))


def test_an_upload_is_the_same_wherever_its_form_was_cut() -> None:
    def upload(mark: str) -> Request:
        body = f'--{mark}\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--{mark}--\r\n'
        headers = (("content-type", f"multipart/form-data; boundary={mark}"),)
        return Request("POST", "https://x.test/v1/files", headers, body.encode())

    library(upload("one")).take(upload("two"))


def test_the_names_of_calls_may_be_others_in_every_run() -> None:
    def asking(name: str) -> Request:
        call = {"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        result = {"role": "tool", "tool_call_id": name, "content": "1"}
        said = [{"role": "assistant", "tool_calls": [call]}, result]
        return Request("POST", CHAT, JSON, dumps({"messages": said}).encode())

    library(asking("call_x7")).take(asking("call_1_1_1"))


def test_a_random_id_in_a_prompt_is_told_and_can_be_left_out() -> None:
    def asking(made_up: str) -> Request:
        return chat(f"saved as {made_up}")

    one, other = "3f2a9c3e-0000-4000-8000-000000000001", "9b7c1d2e-0000-4000-8000-000000000002"
    said = miss(library(asking(one)), asking(other))
    assert "leave it out: Rules(ignore=('messages[0].content',))" in said
    assert "or what changes in it: Rules(volatile=('a regular expression',))" in said
    by_place = Rules(ignore=("messages[0].content",))
    library(asking(one), rules=by_place).take(asking(other))
    by_look = Rules(volatile=("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",))
    library(asking(one), rules=by_look).take(asking(other))


def test_rules_that_are_none_are_refused_before_anything_is_played() -> None:
    with pytest.raises(UsageError, match=r"'a\.' is no path"):
        library(chat("a"), rules=Rules(ignore=("a.",)))


@pytest.mark.parametrize("given", ["messages", [1], ("a", None)])
def test_rules_are_texts_in_a_tuple(given: Any) -> None:
    with pytest.raises(UsageError, match=r"^ignore of Rules is a.*: Rules\(ignore=\('...',\)\)$"):
        Rules(ignore=given)
    listed: Any = ["a.b"]
    assert Rules(ignore=listed) == Rules(ignore=("a.b",))
    library(chat("a", a={"b": 1}), rules=Rules(ignore=listed)).take(chat("a", a={}))


# --- what is said


def test_a_miss_tells_the_closest_and_what_differs() -> None:
    before = "You help people who travel. Answer in a word."
    given = library(
        chat("What is the weather like in Paris today, please?", before),
        chat("What is the time in Paris?", before),
        chat("Hello"),
    )
    given.take(chat("Hello"))
    found = chat("What is the weather like in Rome today, please?", before, tools=[{"name": "f"}])
    assert miss(given, found) == (
        f"request 2 {HEAD} none of those recorded in trip.yaml\n"
        "  closest: interaction 1 (line 10), not played yet; it differs in\n"
        '    messages[1].content: "...is the weather like in [-Paris-] today, please?" '
        'was recorded, "...is the weather like in {+Rome+} today, please?" came\n'
        '    tools: only came: [{"name": "f"}]\n'
        "  if it changes on every run, leave it out: "
        "Rules(ignore=('messages[1].content', 'tools'))\n"
        f"  if the change is wanted: {ANEW}"
    )


def test_one_too_many_is_told_with_how_often() -> None:
    given = library(chat("b"), chat("a"), chat("a"))
    for _ in range(2):
        given.take(chat("a"))
    assert miss(given, chat("a")) == (
        f"request 3 {HEAD} one too many: asked 3 times, recorded 2 times in trip.yaml\n"
        "  recorded: interaction 2 (line 20), interaction 3 (line 30)\n"
        f"  if a client asks again where it did not before, see why; if it is to: {ON_TOP}"
    )
    assert "asked 4 times, recorded 2 times" in miss(given, chat("a"))


def test_what_came_on_top_of_what_was_played_is_told_apart_from_what_has_changed() -> None:
    given = library(chat("a"))
    given.take(chat("a"))
    said = miss(given, chat("a", "b"))
    assert "interaction 1 (line 10), played already; it differs in" in said
    assert said.endswith(
        f"\n  if it came on top: {ON_TOP}\n  if one that was recorded has changed: {ANEW}"
    )


def test_an_address_that_nothing_was_recorded_for_is_told_with_those_that_are() -> None:
    get = Request("GET", "https://api.openai.com/v1/models")
    given = library(
        chat("a"), chat("b"), *[Request("PUT", f"https://x.test/{n}") for n in range(9)]
    )
    said = miss(given, get)
    addresses = ["POST /v1/chat/completions (2 times)"]
    addresses += [f"PUT /{n} (1 time)" for n in range(7)]
    assert said == (
        "request 1 (GET /v1/models) is none of those recorded in trip.yaml\n"
        "  nothing was recorded for that address; "
        f"recorded are {', '.join(addresses)} and others\n"
        f"  if it is to ask for it: {ON_TOP}"
    )
    assert "the cassette is empty" in miss(library(), get)


def test_a_page_of_another_host_is_another_page_but_providers_are_anywhere() -> None:
    def asked(url: str) -> Request:
        return Request("GET", url)

    pages = Library([Interaction(request=asked(f"https://{name}.test/")) for name in ("a", "b")])
    assert pages.take(asked("https://b.test/")) is pages.interactions[1]
    with pytest.raises(
        CassetteMiss, match=r'host: "\[-a-\].test" was recorded, "\{\+c\+\}.test" came'
    ):
        pages.take(asked("https://c.test/"))
    models = Library([Interaction(request=asked("/v1/models"))])
    assert models.take(asked("https://api.openai.com/v1/models"))


@pytest.mark.parametrize("before", [("Be brief.",), ("Be brief.", "Be kind.", "Be quick.")])
def test_what_would_not_help_is_not_advised(before: tuple[str, ...]) -> None:
    told = miss(library(chat("Go", "Be brief.", "Be kind.")), chat("Go", *before))
    assert "messages[" in told
    assert "Rules(" not in told, "another message would be left out in its place"
    left_out = Rules(ignore=("messages[2]",))
    assert "is none of" in miss(
        library(chat("Go", "Be brief.", "Be kind."), rules=left_out), chat("Go", *before)
    )


def test_tools_in_another_order_are_told_in_a_line() -> None:
    tools: list[Json] = [{"type": "function", "function": {"name": name}} for name in "abcd"]
    told = miss(library(chat("Go", tools=tools)), chat("Go", tools=tools[::-1]))
    assert told.splitlines()[2:4] == [
        "    tools: the same 4 elements in another order",
        "  if the order changes on every run, sort them before they are sent",
    ]


def test_a_request_that_differs_in_streaming_only_is_told_so() -> None:
    said = miss(library(chat("a", stream=True)), chat("a"))
    assert (
        "    stream: only recorded: true\n    which is only whether the answer is streamed\n"
        in said
    )
    assert "ignore" not in said
    gemini = "https://g.test/v1beta/models/gemini-3:generateContent"
    streamed = gemini.replace(":generate", ":streamGenerate") + "?alt=sse"
    said = miss(library(chat("a", url=gemini)), chat("a", url=streamed))
    assert "the request's path: " in said
    assert "which is only whether the answer is streamed" in said


def test_another_model_in_the_path_is_a_difference_of_the_request() -> None:
    one, two = [f"https://g.test/v1/models/gemini-{n}:generateContent" for n in (2, 3)]
    said = miss(library(chat("a", url=one)), chat("a", url=two))
    assert 'the request\'s path: "/models/[gemini-2:generateContent]"' not in said
    assert "the request's path: " in said
    assert "ignore" not in said


def test_the_closest_is_rather_one_that_was_not_played() -> None:
    given = library(chat("a b c"), chat("a b c"), chat("a b c"))
    given.take(chat("a b c"))
    assert "closest: interaction 2 (line 20), not played yet" in miss(given, chat("a b d"))
    for _ in range(2):
        given.take(chat("a b c"))
    assert "closest: interaction 1 (line 10), played already" in miss(given, chat("a b d"))


def test_the_closest_is_looked_for_among_so_many_first_those_not_played(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(missing, "_COMPARED", 1)
    given = library(chat("a b c"), chat("x"))
    given.take(chat("a b c"))
    assert "closest: interaction 2 (line 20), not played yet" in miss(given, chat("a b d"))


def test_an_interaction_without_a_line_has_none() -> None:
    given = Library([Interaction(request=chat("a"))])
    assert "closest: interaction 1, not played yet" in miss(given, chat("b"))
    assert " in the cassette\n" in miss(given, chat("b"))


def test_of_very_many_differences_the_first_are_told() -> None:
    one, other = [{f"k{n:02}": f"{side} {n}" for n in range(30)} for side in ("old", "new")]
    said = miss(library(chat("a", more=one)), chat("a", more=other)).splitlines()
    assert len(said) == 12
    assert said[10] == "    and 22 more"


def test_of_a_very_long_text_what_differs_is_told() -> None:
    padding = "word " * 200_000
    said = miss(library(chat(f"{padding}one {padding}")), chat(f"{padding}two {padding}"))
    assert max(len(line) for line in said.splitlines()) < 300
    assert "[-one-]" in said
    assert "{+two+}" in said


def test_what_a_terminal_would_obey_is_told_in_letters() -> None:
    said = miss(library(chat("a\nb\x1b[2J\u202ec")), chat("a\nb\x1b[2J\u202ed"))
    assert r'"a\nb\x1b[2J\u202e[-c-]"' in said
    strange = Request("G\x1bT", "https://x.test/a\x1b[2J")
    assert "\x1b" not in miss(library(chat("a")), strange)


def test_a_miss_is_put_into_words_when_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> str:
        raise AssertionError("nobody has asked")

    monkeypatch.setattr(matching, "message", never)
    with pytest.raises(CassetteMiss):
        library(chat("a")).take(chat("b"))


def test_a_miss_is_an_error_of_this_package_and_can_be_sent_elsewhere() -> None:
    with pytest.raises(HarnessError) as caught:
        library(chat("a")).take(chat("b"))
    assert type(caught.value).__name__ == "CassetteMiss"
    assert str(caught.value) is str(caught.value)
    sent = pickle.loads(pickle.dumps(caught.value))
    assert (type(sent), str(sent)) == (CassetteMiss, str(caught.value))


def test_a_miss_needs_no_library_of_a_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(__import__("sys").modules, "anthropic")
    with pytest.raises(CassetteMiss) as caught:
        library().take(chat("b"))
    assert not isinstance(caught.value, anthropic.AnthropicError)


# --- through the vendors' libraries

URL = "http://provider.test"


def ask_openai(http: Any) -> Any:
    with openai.OpenAI(api_key="k", http_client=http) as asking:
        return asking.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "x"}]
        )


def ask_responses(http: Any) -> Any:
    with openai.OpenAI(api_key="k", http_client=http) as asking:
        return asking.responses.create(model="m", input="x", stream=True)


def ask_anthropic(http: Any) -> Any:
    with anthropic.Anthropic(api_key="k", http_client=http) as asking:
        said: Any = [{"role": "user", "content": "x"}]
        return asking.messages.create(model="m", max_tokens=5, messages=said)


def ask_gemini(http: Any) -> Any:
    options = types.HttpOptions(
        httpx_client=http, retry_options=types.HttpRetryOptions(attempts=3, initial_delay=0.01)
    )
    with genai.Client(api_key="k", http_options=options) as asking:
        return asking.models.generate_content(model="m", contents="x")


@pytest.mark.parametrize("ask", [ask_openai, ask_responses, ask_anthropic, ask_gemini])
def test_a_miss_comes_out_of_a_vendors_library_as_itself_and_is_not_tried_again(
    ask: Callable[[Any], Any],
) -> None:
    asked = []

    async def answer(request: Request) -> Exchange:
        asked.append(request)
        raise AssertionError(library().take(request))

    with world() as made:
        http = client("httpx2", answer, URL, made.blocking.call)
        with pytest.raises(CassetteMiss, match=r"^request 1 \(POST /v1"):
            made.play(lambda: ask(http))
    assert len(asked) == 1


async def aask_openai(http: Any) -> Any:
    said: Any = [{"role": "user", "content": "x"}]
    async with openai.AsyncOpenAI(api_key="k", http_client=http) as asking:
        return await asking.chat.completions.create(model="m", messages=said)


async def aask_anthropic(http: Any) -> Any:
    said: Any = [{"role": "user", "content": "x"}]
    async with anthropic.AsyncAnthropic(api_key="k", http_client=http) as asking:
        return await asking.messages.create(model="m", max_tokens=5, messages=said)


async def aask_gemini(http: Any) -> Any:
    options = types.HttpOptions(httpx_async_client=http)
    asking = genai.Client(api_key="k", http_options=options)
    return await asking.aio.models.generate_content(model="m", contents="x")


@pytest.mark.parametrize("ask", [aask_openai, aask_anthropic, aask_gemini])
def test_a_miss_comes_out_of_an_asynchronous_one_too(ask: Callable[[Any], Any]) -> None:
    asked = []

    async def answer(request: Request) -> Exchange:
        asked.append(request)
        raise AssertionError(library().take(request))

    with world() as made, pytest.raises(CassetteMiss, match=r"^request 1 \(POST /v1"):
        made.run(ask(client("httpx2", answer, URL)))
    assert len(asked) == 1


# --- for vcrpy


def vcr_of(given: Request, body: Any = None, headers: Headers = JSON) -> VcrRequest:
    return VcrRequest(given.method, given.url, body or given.body, dict(headers))


def test_vcrpy_compares_by_the_same_form() -> None:
    one = chat("a")
    vcr_matcher(vcr_of(one), vcr_of(chat("a", url="http://127.0.0.1/v1/chat/completions")))
    with pytest.raises(AssertionError) as caught:
        vcr_matcher(vcr_of(chat("in Rome")), vcr_of(chat("in Paris")))
    assert str(caught.value) == (
        "the requests differ in\n"
        '  messages[0].content: "in [-Paris-]" was recorded, "in {+Rome+}" came'
    )
    Matcher(Rules(ignore=("**.content",)))(vcr_of(one), vcr_of(chat("b")))


@pytest.mark.parametrize("how", ["text", "file", "pieces", "json", "nothing"])
def test_vcrpy_has_bodies_of_many_kinds(how: str, tmp_path: Any) -> None:
    one = chat("a")
    (tmp_path / "body").write_bytes(one.body)
    with (tmp_path / "body").open("rb") as file:
        bodies: dict[str, Any] = {
            "text": one.body.decode(),
            "file": file,
            "json": loads(one.body),
            "pieces": iter([one.body[:5], one.body[5:].decode()]),
        }
        if how == "nothing":
            bare = VcrRequest("GET", "https://x.test/", None, {})
            vcr_matcher(bare, VcrRequest("GET", "https://x.test", b"", {}))
            return
        given = vcr_of(one, bodies[how])
        vcr_matcher(given, vcr_of(one))
        vcr_matcher(given, vcr_of(one))


def test_vcrpy_has_lists_that_are_json() -> None:
    url = "https://x.test/a"
    given = VcrRequest("POST", url, [1, {"a": 2}], {"content-type": "application/json"})
    vcr_matcher(given, vcr_of(Request("POST", url, JSON, b'[1, {"a": 2}]')))


def test_the_form_of_a_request_of_vcrpy_is_made_once_unless_it_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []
    plain = canonical.canonical

    def counted(request: Request, reading: Any) -> Any:
        made.append(request)
        return plain(request, reading)

    monkeypatch.setattr(canonical, "canonical", counted)
    compare = Matcher()
    one, other = vcr_of(chat("a")), vcr_of(chat("a"))
    for _ in range(3):
        compare(one, other)
    assert len(made) == 2
    other.body = chat("b").body
    for _ in range(3):
        with pytest.raises(AssertionError):
            compare(one, other)
    assert len(made) == 5
    other.body = chat(f"use {KEY}").body
    compare(vcr_of(chat("use [redacted]")), other)
