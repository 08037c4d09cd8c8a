"""What a cassette does with requests in each of its modes, and what becomes of its file."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
import requests
import urllib3

from harness import Env, run
from harness.core.errors import CassetteMiss, FileError, UsageError
from harness.fakes.wire_faults import Refused
from harness.transport.cassettes import file
from harness.transport.cassettes.keeping import Changed, Kept
from harness.transport.cassettes.use import Session, Unused, cassette
from harness.transport.rules import NO_RULES, Rules
from tests.transport.cassettes.raw import LAST, STREAMED, Raw, chunk, raw, whole
from tests.transport.cassettes.tapes import CLIENTS, Heard, ask
from tests.transport.sdks import world

clients = pytest.mark.parametrize(("library", "kind"), CLIENTS)


def say(url: str, text: str, library: str = "httpx2", kind: str = "sync", **options: Any) -> Heard:
    body = {"model": "claude-x", "messages": [{"role": "user", "content": text}]}
    return ask(library, kind, url + "/v1/messages", json=body, **options)


def answering(*bodies: bytes) -> Any:
    return raw(*[[whole(body, "content-type: text/plain")] for body in bodies])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "trip.yaml"


def fail() -> None:
    raise ZeroDivisionError


@contextmanager
def recorded(path: Path, *texts: str) -> Iterator[Raw]:
    """A cassette in which each text was answered with itself, and its server."""
    with answering(*[text.encode() for text in texts]) as server:
        with cassette(path, "all", source="a test"):
            for text in texts:
                assert say(server.url, text).body == text.encode()
        yield server


@clients
def test_what_was_recorded_is_replayed_without_a_network(
    path: Path, library: str, kind: str
) -> None:
    steps = [STREAMED, chunk(b"data: 1\n\n"), chunk(b"data: 2\n\n"), LAST]
    with raw(steps) as server:
        with cassette(path, "all", source="a test") as session:
            live = say(server.url, "Go", library, kind)
        url = server.url
    [interaction] = session.interactions
    assert interaction == session.recorded[0]
    assert session.said == f"{path}: 0 of 0 played, 1 recorded"
    loaded = file.load(path)
    assert loaded.source == "a test"
    assert [each.ended for each in loaded.interactions] == ["complete"]
    before = path.read_bytes()
    with cassette(path) as replay:
        again = say(url, "Go", library, kind)
        assert replay.interactions == loaded.interactions
        assert replay.unused() == replay.recorded == ()
    assert replay.said == f"{path}: 1 of 1 played"
    assert again.chunks == live.chunks
    assert again.status == live.status
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["trip.yaml"]


def test_a_request_that_is_not_there_never_goes_out(path: Path) -> None:
    with recorded(path, "Go") as server:
        reached = len(server.asked)
        with pytest.raises(CassetteMiss) as missed, cassette(path):
            say(server.url, "Stop")
        assert "Stop" in str(missed.value)
        assert missed.value.__notes__ == [f"{path}: 0 of 1 played"]
        assert len(server.asked) == reached


def test_a_miss_that_the_client_keeps_to_itself_is_raised_at_the_end(path: Path) -> None:
    with recorded(path, "Go") as server:
        url = server.url

    def ask_in_vain() -> None:
        with pytest.raises(CassetteMiss):
            say(url, "Stop")

    with pytest.raises(CassetteMiss, match="Stop"), cassette(path):
        ask_in_vain()

    def ask_in_vain_and_fail() -> None:
        ask_in_vain()
        fail()

    with pytest.raises(ZeroDivisionError) as other, cassette(path):
        ask_in_vain_and_fail()
    assert "Stop" in other.value.__notes__[0]

    def ask_often_and_fail() -> None:
        for _ in range(5):
            ask_in_vain()
        fail()

    with pytest.raises(ZeroDivisionError) as often, cassette(path):
        ask_often_and_fail()
    assert often.value.__notes__[0].count("is none of those recorded") == 3
    assert often.value.__notes__[0].endswith("\nand 2 more")
    with cassette(path) as session:
        ask_in_vain()
        session.missed.clear()  # it was expected
        say(url, "Go")


def test_what_nobody_asked_for_is_told_at_a_good_end(path: Path) -> None:
    texts = [f"text {n}" for n in range(7)]
    with recorded(path, *texts) as server:
        url = server.url
    with pytest.raises(Unused) as unused, cassette(path) as session:
        say(url, texts[1])
    assert len(session.unused()) == 6
    told = str(unused.value)
    assert "1 of 7 played" in told
    assert "number 1 (line 2, POST /v1/messages), number 3" in told
    assert "and 1 more; record all anew in the mode all (pytest: --cassette-mode=all, " in told
    with cassette(path, "missing") as session:
        say(url, texts[1])
    left = "nothing recorded; nobody asked for 6 interactions, which replay would tell: where a "
    assert f"{left}request has changed, record all anew in the mode all (" in session.said
    with cassette(path, allow_unused=True):
        pass
    with pytest.raises(ZeroDivisionError), cassette(path):
        fail()


def test_what_is_missing_is_recorded_behind_what_is_played(path: Path) -> None:
    with answering(b"one") as server, cassette(path, "missing") as session:
        say(server.url, "one")
    assert len(session.recorded) == 1
    with answering(b"two") as server:
        with cassette(path, "missing") as session:
            assert say(server.url, "two").body == b"two"
            assert say(server.url, "one").body == b"one"
            assert [each.body for each in session.interactions] == [b"two", b"one"]
        assert len(server.asked) == 1
    assert session.said == f"{path}: 1 of 1 played, 1 recorded"
    loaded = file.load(path)
    assert [each.body for each in loaded.interactions] == [b"one", b"two"]
    first, second = loaded.interactions
    assert second.begun >= first.begun + first.ended_at
    before = path.stat()
    with cassette(path, "missing") as session:
        say("http://provider.invalid", "one")
        say("http://provider.invalid", "two")
    assert session.said == f"{path}: 2 of 2 played, nothing recorded"
    assert path.stat() == before


def test_all_is_recorded_anew(path: Path) -> None:
    with recorded(path, "one", "two"):
        pass
    with answering(b"new") as server, cassette(path, "all"):
        assert say(server.url, "one").body == b"new"
    loaded = file.load(path)
    assert [each.body for each in loaded.interactions] == [b"new"]
    assert loaded.source == "a test"


def test_drift_tells_what_has_changed_and_leaves_the_cassette_alone(path: Path) -> None:
    def asking(answer: bytes, mode: Any) -> Session:
        with answering(answer) as server, cassette(path, mode) as session:
            assert ask("httpx2", "sync", server.url + "/else").body == answer
            assert session.drift is None
        return session

    asking(b"one", "all")
    before = path.read_bytes()
    session = asking(b"changed", "drift")
    beside = path.with_name("trip.drift.yaml")
    assert path.read_bytes() == before
    assert [each.body for each in file.load(beside).interactions] == [b"changed"]
    assert session.drift is not None
    assert session.drift.changes
    session = asking(b"one", "drift")
    assert session.said == f"{path}: 0 of 1 played, 1 recorded into {beside}"
    assert session.drift is not None
    assert not session.drift.changes


def test_a_session_that_fails_is_kept_as_far_as_it_came(path: Path) -> None:
    def half(mode: Any) -> ZeroDivisionError:
        with answering(b"half") as server, pytest.raises(ZeroDivisionError) as failed:
            _ask_and_fail(path, mode, server.url)
        return failed.value

    error = half("all")
    assert error.__notes__ == [f"{path}: 0 of 0 played, 1 recorded"]
    assert len(file.load(path).interactions) == 1
    with recorded(path, "one", "two"):
        pass
    half("missing")
    assert len(file.load(path).interactions) == 3
    before = path.read_bytes()
    error = half("all")
    beside = path.with_name("trip.partial.yaml")
    assert error.__notes__ == [f"{path}: 0 of 3 played, 1 recorded into {beside}"]
    assert path.read_bytes() == before
    assert len(file.load(beside).interactions) == 1


def test_what_a_failure_broke_off_is_recorded_again_the_next_time(path: Path) -> None:
    def half(server: Raw) -> None:
        with cassette(path, "missing"):
            say(server.url, "whole")
            say(server.url, "half", on_chunk=lambda _: fail())

    whole_one = [whole(b"whole", "content-type: text/plain")]
    stream = [STREAMED, chunk(b"half"), chunk(b" and half"), LAST]
    with raw(whole_one, stream, stream, stream) as server:
        with pytest.raises(ZeroDivisionError) as failed:
            half(server)
        said = f"{path}: 0 of 0 played, 1 recorded, 1 exchange not kept that broke off"
        assert failed.value.__notes__ == [said]
        with pytest.raises(ZeroDivisionError) as failed:
            half(server)
        assert failed.value.__notes__ == [
            f"{path}: 1 of 1 played, 1 exchange not kept that broke off"
        ]
        with cassette(path, "missing"):
            say(server.url, "whole")
            say(server.url, "half")
    assert [each.ended for each in file.load(path).interactions] == ["complete", "complete"]


def _ask_and_fail(path: Path, mode: Any, url: str) -> None:
    with cassette(path, mode):
        say(url, "half")
        fail()


def test_secrets_are_no_drift(path: Path) -> None:
    for mode, secret in (("all", "first"), ("drift", "second")):
        answer = b'{"api_key": "%s-0123456789"}' % secret.encode()
        with answering(answer) as server, cassette(path, mode) as session:  # type: ignore[arg-type]
            ask("httpx2", "sync", server.url + "/else")
    assert session.drift is not None
    assert not session.drift.changes


@pytest.mark.parametrize("mode", ["replay", "missing", "all", "drift"])
def test_a_file_that_cannot_be_read_is_left_as_it_is(tmp_path: Path, mode: Any) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("interactions: [\n")
    with pytest.raises(FileError, match=r"x\.yaml"), cassette(path, mode):
        raise AssertionError("nothing is done with it")
    assert path.read_text() == "interactions: [\n"


@pytest.mark.parametrize("mode", ["missing", "all"])
def test_where_no_file_can_be_made_is_told_before_anything_is_recorded(
    tmp_path: Path, mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").write_text("a file")
    says = r"taken/a/x\.yaml: cannot be written: .*taken is no folder; nothing was recorded"
    with pytest.raises(FileError, match=says), cassette(tmp_path / "taken" / "a" / "x.yaml", mode):
        raise AssertionError("nothing is done with it")
    monkeypatch.setattr("os.access", lambda *_args: False)
    says = "cannot be written: nothing may be written into .*; nothing was recorded"
    with pytest.raises(FileError, match=says), cassette(tmp_path / "new" / "x.yaml", mode):
        raise AssertionError("nothing is done with it")
    assert [each.name for each in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize("mode", ["replay", "missing"])
def test_a_link_that_leads_to_itself(tmp_path: Path, mode: Any) -> None:
    path = tmp_path / "x.yaml"
    path.symlink_to(path)
    with pytest.raises(FileError, match=r"x\.yaml: cannot be read: "), cassette(path, mode):
        raise AssertionError("nothing is done with it")


def test_a_folder_that_somebody_took_away_hides_no_other_error(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "x.yaml"

    def record(url: str, then: Any) -> None:
        with cassette(path, "all"):
            say(url, "one")
            path.parent.write_text("a file")
            then()

    with answering(b"one", b"one") as server:
        with pytest.raises(FileError, match=r"x\.yaml: cannot be written: "):
            record(server.url, lambda: None)
        path.parent.unlink()
        with pytest.raises(ZeroDivisionError) as failed:
            record(server.url, fail)
    assert "cannot be written" in failed.value.__notes__[0]


@pytest.mark.parametrize("mode", ["replay", "drift"])
def test_a_cassette_that_is_not_there(path: Path, mode: Any) -> None:
    with pytest.raises(UsageError, match=r"there is no .*; record it with"), cassette(path, mode):
        raise AssertionError("nothing is done with it")


def test_a_mode_that_is_none(path: Path) -> None:
    mode: Any = "al"
    with pytest.raises(UsageError, match=r"'al' \(did you mean 'all'\?\)"), cassette(path, mode):
        raise AssertionError("nothing is done with it")


@pytest.mark.parametrize("given", ["api.x", (5,)])
def test_hosts_are_a_list(path: Path, given: Any) -> None:
    said = re.escape(f"ignore_hosts is {given!r}; expected a list of hosts")
    with pytest.raises(UsageError, match=said), cassette(path, "missing", ignore_hosts=given):
        raise AssertionError("nothing is done with it")


def test_the_source_is_in_words(path: Path) -> None:
    source: Any = 5
    said = "source is 5; expected a few words on who is asked"
    with pytest.raises(UsageError, match=said), cassette(path, "missing", source=source):
        raise AssertionError("nothing is done with it")


def test_rules_are_rules(path: Path) -> None:
    rules: Any = {"ignore": ("metadata",)}
    with (
        pytest.raises(UsageError, match=r"rules is a dict; expected Rules\(ignore=\('\.\.\.',\)\)"),
        cassette(path, "missing", rules=rules),
    ):
        raise AssertionError("nothing is done with it")


def test_two_that_record_at_once_lose_nothing(path: Path) -> None:
    said: list[str] = []

    def record_beside_another(url: str) -> None:
        try:
            with cassette(path, "missing") as session:
                say(url, "two")
                path.with_name("trip.2.yaml").write_text("somebody's")
                file.save(path, file.load(path))
        finally:
            said.append(session.said)

    with recorded(path, "one"), answering(b"two") as server:  # noqa: SIM117
        with pytest.raises(Changed, match=r"trip\.3\.yaml.*keep one"):
            record_beside_another(server.url)
    assert [each.body for each in file.load(path).interactions] == [b"one"]
    beside = path.with_name("trip.3.yaml")
    assert [each.body for each in file.load(beside).interactions] == [b"one", b"two"]
    assert str(beside) in said[0]


def test_what_goes_wrong_first_is_what_is_raised(path: Path) -> None:
    def record_and_fail(url: str) -> None:
        with cassette(path, "missing"):
            say(url, "one")
            file.save(path, file.Cassette())
            fail()

    with answering(b"one") as server, pytest.raises(ZeroDivisionError) as failed:
        record_and_fail(server.url)
    changed, said = failed.value.__notes__
    assert "was written by somebody else" in changed
    assert said.endswith("trip.2.yaml")


def test_all_that_end_at_once_are_written(path: Path) -> None:
    with recorded(path, "one"):
        pass
    loaded = file.load(path)
    gate = threading.Barrier(6)
    written: list[str] = []

    class Ended:
        """What a file is told of a session."""

        interactions = recorded = loaded.interactions
        said = ""
        unused = staticmethod(list)

        def end(self) -> None:
            gate.wait(10)

    def end(kept: Kept) -> None:
        session: Any = Ended()
        with suppress(Changed):
            kept.end(session)
        written.append(session.said.partition(" into ")[2])

    ending = []
    for _ in range(6):
        kept = Kept(path, "missing", NO_RULES, "")
        ending.append(threading.Thread(target=end, args=(kept,)))
        ending[-1].start()
    for each in ending:
        each.join()
    names = [f"trip.{n}.yaml" for n in range(2, 7)]
    assert sorted(Path(each).name for each in written) == ["", *names]
    assert sorted(each.name for each in path.parent.iterdir()) == [*names, "trip.yaml"]


def test_a_file_that_somebody_took_away_is_written_again(path: Path) -> None:
    with recorded(path, "one"):
        pass
    with answering(b"two") as server, cassette(path, "missing"):
        say(server.url, "two")
        path.unlink()
    assert [each.body for each in file.load(path).interactions] == [b"one", b"two"]
    assert [each.name for each in path.parent.iterdir()] == ["trip.yaml"]


def test_hosts_to_ignore_go_on_as_before(path: Path) -> None:
    with recorded(path, "one"):
        pass
    for ignored in (("127.0.0.1",), (re.compile(r"127\..*"),)):
        with answering(b"other") as server, cassette(path, ignore_hosts=ignored) as session:
            assert say(server.url, "another").body == b"other"
            assert say("http://provider.invalid", "one").body == b"one"
        assert len(session.interactions) == 1


def test_rules_are_kept_with_what_they_were_used_for(path: Path) -> None:
    rules = Rules(ignore=("metadata.run",), values=("hunter2hunter2",))
    with answering(b"hunter2hunter2") as server, cassette(path, "all", rules=rules):
        say(server.url, "one")
    assert b"hunter2" not in path.read_bytes()
    more = Rules(ignore=("metadata.run", "metadata.other"))
    with answering(b"x") as server, cassette(path, "missing", rules=more):
        say(server.url, "two")
    assert file.load(path).rules.ignore == ("metadata.run", "metadata.other")


def test_how_it_is_played_is_for_the_player(path: Path) -> None:
    with recorded(path, "four") as server:
        url = server.url
    with cassette(path, split=1):
        assert say(url, "four").chunks == [b"f", b"o", b"u", b"r"]
    with cassette(path, faults={1: Refused()}):
        assert isinstance(say(url, "four").error, httpx2.ConnectError)


def test_recorded_times_are_the_clocks(path: Path) -> None:
    time = 5_000_000_000

    def wait() -> None:
        nonlocal time
        time += 1_000_000_000

    had = threading.Event()
    steps: list[Any] = [wait, STREAMED, chunk(b"one"), had, wait, chunk(b"two"), LAST]
    with raw(steps) as server, cassette(path, "all", now=lambda: time):
        say(server.url, "Go", on_chunk=lambda _: had.set())
    [kept] = file.load(path).interactions
    assert (kept.begun, kept.head_at) == (0, 1_000_000_000)
    assert [each.at for each in kept.chunks] == [1_000_000_000, 2_000_000_000]


def test_requests_in_parallel_stand_in_the_order_in_which_they_went_out(path: Path) -> None:
    first, second = threading.Event(), threading.Event()
    with (
        raw([second.set, first, whole(b"one")], [whole(b"two")]) as server,
        cassette(path, "all") as session,
    ):
        slow = threading.Thread(target=say, args=(server.url, "one"))
        slow.start()
        assert second.wait(10)
        say(server.url, "two")
        assert [each.body for each in session.recorded] == [b"two"]
        first.set()
        slow.join()
    assert [each.body for each in file.load(path).interactions] == [b"one", b"two"]


def test_what_goes_on_at_the_end_is_recorded_as_left(path: Path) -> None:
    over = threading.Event()
    with raw([STREAMED, chunk(b"one"), over, LAST]) as server:
        client = httpx2.Client(trust_env=False)
        with cassette(path, "all"):
            response = client.send(client.build_request("GET", server.url), stream=True)
            reading = response.iter_raw()
            assert next(reading) == b"one"
        over.set()
        assert list(reading) == []
        client.close()
    [kept] = file.load(path).interactions
    assert (kept.ended, kept.body) == ("cancelled", b"one")


def test_failures_and_answers_keep_their_order(path: Path) -> None:
    with raw([], [whole(b"one")]) as server:
        with cassette(path, "all"):
            assert say(server.url, "Go").error is not None
            assert say(server.url, "Go").body == b"one"
        url = server.url
    assert [each.ended for each in file.load(path).interactions] == ["dropped", "complete"]
    with cassette(path) as session:
        assert isinstance(say(url, "Go").error, httpx2.RemoteProtocolError)
        assert [each.ended for each in session.interactions] == ["dropped"]
        assert say(url, "Go").body == b"one"


@clients
def test_many_at_once_each_get_their_own(path: Path, library: str, kind: str) -> None:
    texts = [f"text {n}" for n in range(20)]
    with recorded(path, *texts) as server:
        url = server.url
    got: dict[str, bytes] = {}

    def one(text: str) -> None:
        got[text] = say(url, text, library, kind).body

    with cassette(path):
        asking = [threading.Thread(target=one, args=(text,)) for text in reversed(texts)]
        for each in asking:
            each.start()
        for each in asking:
            each.join()
    assert got == {text: text.encode() for text in texts}


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
def test_a_synchronous_client_inside_a_running_loop_is_answered(path: Path, library: str) -> None:
    with recorded(path, "one") as server:
        url = server.url

    async def inside() -> bytes:
        return say(url, "one", library, "sync").body

    with cassette(path):
        assert asyncio.run(inside()) == b"one"


def test_the_inner_of_two_cassettes_is_the_one(tmp_path: Path) -> None:
    with answering(b"one", b"two") as server:
        with cassette(tmp_path / "outer.yaml", "all"):
            with cassette(tmp_path / "inner.yaml", "all"):
                say(server.url, "one")
            say(server.url, "two")
        url = server.url
    bodies = {
        name: [each.body for each in file.load(tmp_path / name).interactions]
        for name in ("outer.yaml", "inner.yaml")
    }
    assert bodies == {"outer.yaml": [b"two"], "inner.yaml": [b"one"]}
    with cassette(tmp_path / "outer.yaml"):
        with cassette(tmp_path / "inner.yaml"):
            assert say(url, "one").body == b"one"
        assert say(url, "two").body == b"two"


@clients
def test_of_two_cassettes_that_end_in_any_order_the_one_that_is_left_goes_on(
    library: str, kind: str, tmp_path: Path
) -> None:
    before = httpx2.HTTPTransport.handle_request, urllib3.HTTPConnectionPool.ConnectionCls
    for name in ("first", "second"):
        with recorded(tmp_path / name, name) as server:
            url = server.url
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(cassette(tmp_path / "first", allow_unused=True))
        session = second.enter_context(cassette(tmp_path / "second", ignore_hosts=("127.0.0.1",)))
        first.close()
        assert say("http://provider.invalid", "second", library, kind).body == b"second"
        with pytest.raises(CassetteMiss):
            requests.get("http://provider.invalid/nothing", timeout=10)
        session.missed.clear()
        refused = say(url, "first", library, kind).error
        assert type(refused).__name__ == "ConnectError"
    assert before == (httpx2.HTTPTransport.handle_request, urllib3.HTTPConnectionPool.ConnectionCls)


def test_nothing_stays_behind(path: Path) -> None:
    before = httpx2.HTTPTransport.handle_request
    with recorded(path, "one"), cassette(path, allow_unused=True):
        assert httpx2.HTTPTransport.handle_request is not before
    assert httpx2.HTTPTransport.handle_request is before


def test_a_session_is_told_in_its_type(path: Path) -> None:
    with recorded(path, "one"), cassette(path, allow_unused=True) as session:
        assert isinstance(session, Session)


# --- in a run


def test_a_run_that_waits_on_its_own_clock_has_the_recorded_times(path: Path) -> None:
    time = 0
    late = iter([70_000_000, 5_000_000_000])

    def wait() -> None:
        nonlocal time
        time += next(late)

    had = threading.Event()
    steps: list[Any] = [wait, STREAMED, chunk(b"one"), had, wait, chunk(b"two"), LAST]
    with raw(steps) as server:
        with cassette(path, "all", now=lambda: time):
            say(server.url, "Go", on_chunk=lambda _: had.set())
        url = server.url

    async def read() -> list[int]:
        times: list[int] = []
        body = {"model": "claude-x", "messages": [{"role": "user", "content": "Go"}]}
        async with (
            httpx2.AsyncClient(trust_env=False, timeout=20) as client,
            client.stream("POST", url + "/v1/messages", json=body) as response,
        ):
            times.append(made.kernel.now())
            times.extend([made.kernel.now() async for _chunk in response.aiter_raw()])
        return times

    with world() as made, cassette(path, timing="recorded", now=made.kernel.now):
        assert made.run(read()) == [70_000_000, 70_000_000, 5_070_000_000]
    with world() as made, cassette(path, timing=2, now=made.kernel.now):
        times = made.run(read())
    assert times == [140_000_000, 140_000_000, 10_140_000_000]


def test_in_a_run_with_a_script_the_script_answers(path: Path) -> None:
    asked: list[str] = []

    def build(env: Env) -> Any:
        class Asking:
            async def turn(self, text: str | None) -> None:
                async with openai.AsyncOpenAI(api_key="k", base_url=f"{env.base_url}/v1") as client:
                    message: Any = {"role": "user", "content": text}
                    answer = await client.chat.completions.create(model="m", messages=[message])
                asked.append(str(answer.choices[0].message.content))

        return Asking()

    with answering(b"{}") as server:
        with cassette(path, "all") as session:
            result = run("about: x\nturns: [{user: Go, model: [{say: Hello.}]}]\n", build)
            assert not session.interactions
        assert server.asked == []
    assert asked == ["Hello."]
    assert [type(each).__name__ for each in result.outcomes] == ["Completed"]
