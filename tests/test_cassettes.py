"""Every cassette of the folder cassettes/: played through the vendor's own library, by plain vcrpy,
and on the loops that it was made with; without secrets; and made again, the same.
"""

from __future__ import annotations

import asyncio
import shlex
import ssl
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest
import vcr
from google import genai
from google.genai import errors, types

from harness.cli import main
from harness.core.json_text import loads
from harness.core.reply import TextDelta
from harness.runner.run import run
from harness.transport.cassettes.file import load
from harness.transport.cassettes.form import Interaction
from harness.transport.cassettes.use import cassette
from harness.transport.lint import scan
from harness.wire import CODECS, codec_for
from harness.wire.http import Response
from tests.make_cassettes import FOLDER, LOOPS_PLAY, SOURCE, made

FILES = sorted(FOLDER.rglob("*.yaml"))
TLS = ssl.create_default_context()
KEY = "not-a-key"
BASE = "http://provider.test"
"""Where the cassettes were recorded; plain vcrpy wants the same address."""


def name_of(file: Path) -> str:
    return file.relative_to(FOLDER).as_posix()


every = pytest.mark.parametrize("file", FILES, ids=name_of)
SPOKEN = [file for file in FILES if (file.parent.name, file.stem[:5]) != ("gemini", "loop_")]
"""Google's library spells schemas of tools in another way than the loops' client."""


# --- each request once more, by the vendor's own library


class Chat:
    """How the library `openai` asks again for what was recorded of Chat Completions."""

    failed = openai.APIStatusError
    broke = (openai.APIConnectionError, httpx2.RemoteProtocolError)
    clients = (openai.OpenAI, openai.AsyncOpenAI)
    under = "/v1"

    def __init__(self, sync: bool) -> None:
        kind = self.clients[0 if sync else 1]
        self.client: Any = kind(api_key=KEY, base_url=f"{BASE}{self.under}", max_retries=0)

    def ask(self, given: Interaction) -> Any:
        return self.client.chat.completions.create(**loads(given.request.body))

    def text(self, part: Any) -> str:
        choice = next(iter(part.choices), None)
        if choice is None:
            return ""
        return (choice.delta if hasattr(choice, "delta") else choice.message).content or ""


class Responses(Chat):
    """The same of Responses."""

    def ask(self, given: Interaction) -> Any:
        return self.client.responses.create(**loads(given.request.body))

    def text(self, part: Any) -> str:
        if not hasattr(part, "type"):
            return part.output_text
        return part.delta if part.type == "response.output_text.delta" else ""


class Messages(Chat):
    """How the library `anthropic` does."""

    failed = anthropic.APIStatusError
    broke = (anthropic.APIConnectionError, httpx2.RemoteProtocolError)
    clients = (anthropic.Anthropic, anthropic.AsyncAnthropic)
    under = ""

    def ask(self, given: Interaction) -> Any:
        return self.client.messages.create(**loads(given.request.body))

    def text(self, part: Any) -> str:
        if part.type == "message":
            return "".join([block.text for block in part.content if block.type == "text"])
        delta = part.delta if part.type == "content_block_delta" else None
        return delta.text if delta is not None and delta.type == "text_delta" else ""


class Gemini:
    """How the library `google-genai` does."""

    failed = errors.APIError
    broke = (httpx2.RemoteProtocolError,)

    def __init__(self, sync: bool) -> None:
        # with aiohttp beside it, an asynchronous client would take that
        own: dict[str, Any] = {"httpx_client": httpx2.Client(verify=TLS)}
        if not sync:
            own = {"httpx_async_client": httpx2.AsyncClient(verify=TLS)}
        options = types.HttpOptions(base_url=BASE, **own)
        self.whole = genai.Client(api_key=KEY, http_options=options)
        self.client: Any = self.whole.models if sync else self.whole.aio.models

    def ask(self, given: Interaction) -> Any:
        body = loads(given.request.body)
        model, _, method = given.request.path.rpartition("/")[2].partition(":")
        config = types.GenerateContentConfig(
            system_instruction=body.get("systemInstruction"),
            tools=[types.Tool.model_validate(tool) for tool in body.get("tools", [])] or None,
            **body.get("generationConfig", {}),
        )
        stream = method.startswith("stream")
        ask = self.client.generate_content_stream if stream else self.client.generate_content
        return ask(model=model, contents=body["contents"], config=config)

    def text(self, part: Any) -> str:
        said = [each for each in part.candidates or () for each in each.content.parts or ()]
        return "".join([each.text or "" for each in said if not each.thought])


KINDS: dict[str, Any] = {
    "openai_chat": Chat,
    "openai_responses": Responses,
    "anthropic": Messages,
    "gemini": Gemini,
}


def texts(given: Interaction) -> str:
    """What an interaction says, by our own reading."""
    codec = codec_for(given.request)
    assert codec is not None
    if "stream" not in dict(given.headers)["content-type"]:
        return codec.read_answer(Response(200, given.headers, given.body)).message.text
    parts = codec.decoder().feed(given.body)
    return "".join([part.text for part in parts if isinstance(part, TextDelta)])


def streams(reply: Any) -> bool:
    return hasattr(reply, "__iter__") and not hasattr(reply, "model_dump")


def heard(dialect: Any, given: Interaction) -> tuple[str, str]:
    """What a library hears of an interaction, and how that ends."""
    said = ""
    try:
        reply = dialect.ask(given)
        for part in reply if streams(reply) else [reply]:
            said += dialect.text(part)
    except dialect.failed:
        return said, "failed"
    except dialect.broke:
        return said, "broke"
    return said, "whole"


async def heard_async(dialect: Any, given: Interaction) -> tuple[str, str]:
    """The same for an asynchronous client."""
    said = ""
    try:
        reply = await dialect.ask(given)
        if not hasattr(reply, "__aiter__"):
            return dialect.text(reply), "whole"
        async for part in reply:
            said += dialect.text(part)
    except dialect.failed:
        return said, "failed"
    except dialect.broke:
        return said, "broke"
    return said, "whole"


def expected(given: Interaction) -> tuple[str, str]:
    """What a library should hear of it."""
    if given.status != 200:
        return "", "failed"
    return texts(given), "whole" if given.ended == "complete" else "broke"


@pytest.mark.parametrize("file", SPOKEN, ids=name_of)
@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
def test_the_vendors_library_hears_it(file: Path, sync: bool) -> None:
    given = load(file).interactions
    kind = KINDS[file.parent.name]

    async def ask_all() -> list[tuple[str, str]]:
        dialect = kind(sync=False)
        return [await heard_async(dialect, each) for each in given]

    with cassette(file) as session:
        if sync:
            dialect = kind(sync=True)
            found = [heard(dialect, each) for each in given]
        else:
            found = asyncio.run(ask_all())
        assert len(session.interactions) == len(given)
    assert found == [expected(each) for each in given]


# --- others that read it


@every
def test_plain_vcrpy_loads_it(file: Path) -> None:
    given = load(file).interactions
    with vcr.use_cassette(str(file), record_mode="none") as tape:
        asked = [loads(each.body) for each in tape.requests]
        bodies = [each["body"]["string"] for each in tape.responses]
    assert asked == [loads(each.request.body) for each in given]
    assert bodies == [each.body for each in given]


@pytest.mark.parametrize("protocol", KINDS)
@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
def test_plain_vcrpy_plays_what_is_not_streamed(protocol: str, sync: bool) -> None:
    file = FOLDER / protocol / "text.yaml"
    (one,) = load(file).interactions
    with vcr.use_cassette(str(file), record_mode="none") as tape:
        dialect = KINDS[protocol](sync=sync)
        found = heard(dialect, one) if sync else asyncio.run(heard_async(dialect, one))
        assert tape.all_played
    assert found == ("The capital of France is Paris.", "whole")


@pytest.mark.parametrize("protocol", KINDS)
@pytest.mark.parametrize("loop", ["turn", "fsm"])
def test_the_loops_play_it(protocol: str, loop: str) -> None:
    file = FOLDER / protocol / f"loop_{loop}.yaml"
    result = run(LOOPS_PLAY, loop, cassette=file)
    assert result.ok, result
    again = run(LOOPS_PLAY, loop, level=f"http:{protocol}")
    assert result.trace.neutral() == again.trace.neutral()


# --- what is in the folder


def test_each_protocol_has_its_cases() -> None:
    cases = {codec.name: set() for codec in CODECS}
    for file in FILES:
        cases[file.parent.name].add(file.stem)
    (same, *others) = cases.values()
    assert same >= {"text", "thinking_two_calls", "retried", "torn", "cancelled"}
    assert all(each == same for each in others)


def test_the_cases_are_what_they_are_called() -> None:
    for protocol in KINDS:
        ends = {
            name: [(each.status, each.ended) for each in load(path).interactions]
            for name in ("text", "thinking_two_calls", "retried", "torn", "cancelled")
            if (path := FOLDER / protocol / f"{name}.yaml")
        }
        well = (200, "complete")
        assert ends == {
            "text": [well],
            "thinking_two_calls": [well, well],
            "retried": [(429, "complete"), well],
            "torn": [(200, "torn"), well],
            "cancelled": [(200, "cancelled"), well],
        }


def test_they_are_made_again_the_same() -> None:
    again = dict(made())
    assert sorted(again) == FILES
    for file, text in again.items():
        assert file.read_text(encoding="utf-8") == text, f"{file} is not as made: make cassettes"


@every
def test_it_says_that_its_source_is_a_fake_and_has_no_secret(file: Path) -> None:
    assert load(file).source == SOURCE
    assert scan(str(file), file.read_bytes()) == []


def test_the_command_of_the_readme_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(FOLDER.parent)
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if line.startswith("    harness run")]
    assert main(shlex.split(line)[1:]) == 0
    assert "1 passed" in capsys.readouterr().out
