"""The state-machine loop for real: threads, files and time. Threads shake hands; nobody sleeps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from harness.loops.fsm.client import Usage
from harness.loops.fsm.messages import Message, ToolCall, user
from harness.loops.fsm.pending import in_thread
from harness.loops.fsm.prompts import TEXTS
from harness.loops.fsm.real_threads import RealThreads
from harness.loops.fsm.registry import Tool
from harness.loops.fsm.run import run_loop
from harness.loops.fsm.session import Session, Settings
from harness.loops.fsm.subagent import Subagents
from harness.runner.real_ports import FolderFiles, RealClock, real_ports
from tests.loops.fsm.world import SOON, call, says, shape

AGENT_ARGS = {"subagent_type": "any", "description": "a task", "prompt": "ask"}


class Client:
    """Answers each request by what `reply` makes of its messages; any number of threads may ask."""

    def __init__(self, reply: Callable[[Sequence[Message]], Message]) -> None:
        self.reply = reply

    def chat(self, messages: Sequence[Message], **_given: Any) -> tuple[Message, Usage]:
        return self.reply(messages), Usage(10, 1)

    def chat_sync(self, messages: Sequence[Message], **_given: Any) -> Message:
        return says("A title")

    def abort(self) -> None:
        pass


def asks_then(answer: str, *calls: ToolCall) -> Callable[[Sequence[Message]], Message]:
    """Calls, and once they are answered an answer."""
    return lambda sent: says(answer) if sent[-1].role == "tool" else says("", *calls)


class Told(threading.Event):
    """An event that says when somebody waits for it."""

    def __init__(self, waits: Callable[[], None]) -> None:
        super().__init__()
        self._waits = waits

    def wait(self, timeout: float | None = SOON) -> bool:
        self._waits()
        assert super().wait(timeout), "nobody came"
        return True


class ToldLock:
    """A lock that says when somebody has to wait for it."""

    def __init__(self, contended: threading.Event) -> None:
        self._lock = threading.RLock()
        self._contended = contended

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._contended.set()
            assert self._lock.acquire(timeout=SOON), "nobody let go"

    def __exit__(self, *_error: object) -> None:
        self._lock.release()


class WatchedThreads(RealThreads):
    """Real threads; `waits` is called where one begins to wait for an event, `contended` is set
    where one waits for a lock, and all can be joined.
    """

    def __init__(self, waits: Callable[[], None] = lambda: None) -> None:
        self.waits = waits
        self.contended = threading.Event()
        self.started: list[threading.Thread] = []

    def start(self, work: Callable[[], None]) -> None:
        def run() -> None:
            self.started.append(threading.current_thread())
            work()

        super().start(run)

    def event(self) -> threading.Event:
        return Told(self.waits)

    def lock(self) -> ToldLock:
        return ToldLock(self.contended)

    def join(self) -> None:
        for thread in self.started:
            thread.join(SOON)
            assert not thread.is_alive()


class Real:
    """A session in a folder, and its threads."""

    def __init__(self, folder: Path, reply: Callable[[Sequence[Message]], Message]) -> None:
        self.threads = WatchedThreads()
        self.heard: list[str] = []
        self.logs: list[str] = []
        ports = real_ports(
            folder, notify=lambda kind, _payload: self.heard.append(kind), log=self.logs.append
        )
        settings = Settings(max_nudges=0, system="Be brief.")
        self.session = Session(
            Client(reply), replace(ports, threads=self.threads), settings=settings
        )

    def tool(self, name: str, work: Callable[[], Any], *, late: bool = True, **more: Any) -> None:
        """Register a tool that does `work` in a thread of its own, or at once."""

        def run(_arguments: Any, _running: Any) -> Any:
            return in_thread(self.threads, work) if late else work()

        self.session.registry.register(Tool(name, run, **more))


def reach(event: threading.Event) -> None:
    assert event.wait(SOON), "nobody came"


def test_tools_overlap_and_are_answered_in_the_order_of_their_calls(tmp_path: Path) -> None:
    both, second = threading.Barrier(2), threading.Event()
    real = Real(tmp_path, asks_then("done", call("1", "first"), call("2", "second")))

    def slow() -> str:
        both.wait(SOON)
        reach(second)
        return "one"

    def quick() -> str:
        both.wait(SOON)
        second.set()
        return "two"

    real.tool("first", slow)
    real.tool("second", quick)
    messages = [user("do both")]
    assert run_loop(real.session, messages) == "done"
    real.threads.join()
    assert shape(messages) == ["u:do both", "A[1,2]", "t(1)=one", "t(2)=two", "a:done"]


def test_a_cancel_from_another_thread_ends_a_wait(tmp_path: Path) -> None:
    real = Real(tmp_path, asks_then("never", call("1", "hangs")))
    waiting, over = threading.Event(), threading.Event()
    real.threads.waits = waiting.set
    real.tool("hangs", lambda: reach(over))

    def stop() -> None:
        reach(waiting)
        real.session.cancel()

    real.threads.start(stop)
    assert run_loop(real.session, [user("go")]) is None
    over.set()
    real.threads.join()
    kept = ["u:go", "A[1]", f"t(1)={TEXTS.given_up}"]
    assert shape(real.session.last_messages) == kept
    real.session.begin_run()
    assert run_loop(real.session, [*real.session.last_messages]) == "never"


def test_a_run_that_was_replaced_while_it_waits_writes_nothing_any_more(tmp_path: Path) -> None:
    real = Real(tmp_path, asks_then("old", call("1", "hangs")))
    waiting, over = threading.Event(), threading.Event()
    real.threads.waits = waiting.set
    real.tool("hangs", lambda: reach(over))
    ended: list[str | None] = []
    real.threads.start(lambda: ended.append(run_loop(real.session, [user("old")])))
    reach(waiting)
    real.session.begin_run()
    real.session.client = Client(lambda _sent: says("new answer"))
    assert run_loop(real.session, [user("the new")]) == "new answer"
    over.set()
    real.threads.join()
    assert ended == [None]
    assert shape(real.session.last_messages) == ["u:the new", "a:new answer"]
    saved = (tmp_path / "conversation.md").read_text()
    assert saved == "**system**: Be brief.\n\n**user**: the new\n\n**assistant**: new answer\n"


def test_a_new_run_waits_for_what_an_old_one_is_writing(tmp_path: Path) -> None:
    real = Real(tmp_path, lambda _sent: says("old answer"))
    session, begun = real.session, threading.Event()

    def save(text: str, system: str | None) -> None:
        real.threads.start(lambda: (session.begin_run(), begun.set()))
        reach(real.threads.contended)
        assert not begun.is_set()
        files.save(text, system)

    files = FolderFiles(tmp_path)
    session.ports = replace(session.ports, save=save)
    old = session.stamp()
    session.auto_save([user("old")], None, old)
    reach(begun)
    session.auto_save([user("older")], None, old)
    assert (tmp_path / "conversation.md").read_text() == "**user**: old\n"


def test_subagents_work_at_once_and_ask_the_user_one_after_the_other(tmp_path: Path) -> None:
    together, in_line = threading.Barrier(2), threading.Event()
    prompts: list[str] = []
    main = threading.current_thread()

    def waits() -> None:
        if threading.current_thread() is not main:
            in_line.set()  # a sub-agent waits for its turn to ask, and for nothing else

    def reply(sent: Sequence[Message]) -> Message:
        if sent[0].text() == "go":
            calls = [call(each, "Agent", AGENT_ARGS) for each in "12"]
            return asks_then("all done", *calls)(sent)
        if sent[-1].role != "tool":
            together.wait(SOON)
        return asks_then("asked", call("q", "ask"))(sent)

    def ask() -> str:
        prompts.append("opened")
        reach(in_line)
        prompts.append("closed")
        return "yes"

    real = Real(tmp_path, reply)
    real.threads.waits = waits
    real.tool("ask", ask, late=False, interactive=True)
    real.session.registry.register(Subagents(real.session).tool())
    messages = [user("go")]
    assert run_loop(real.session, messages) == "all done"
    real.threads.join()
    assert shape(messages)[2:4] == ["t(1)=asked", "t(2)=asked"]
    assert prompts == ["opened", "closed", "opened", "closed"]


def test_a_conversation_is_saved_with_its_title_and_its_plan(tmp_path: Path) -> None:
    real = Real(tmp_path / "new", asks_then("Yes.\n**user**: no", call("1")))
    real.tool("look", lambda: "sunny", late=False)
    real.session.plan.enter()
    assert run_loop(real.session, [user("Is it sunny?")]) == "Yes.\n**user**: no"
    assert real.session.title == "A-title"
    [plan] = (tmp_path / "new" / "plans").iterdir()
    assert real.session.plan.plan_file == f"plans/{plan.name}"
    text = (tmp_path / "new" / "conversation.md").read_text()
    assert text.startswith("**system**: Be brief.\n\n**user**: <system-reminder>")
    assert text.endswith(
        "**assistant**: [tool calls: look]\n\n**tool**: sunny\n\n"
        "**assistant**: Yes.\n\\**user**: no\n"
    )
    assert sorted(each.name for each in (tmp_path / "new").iterdir()) == [
        "conversation.md", "plans",
    ]  # fmt: skip


@pytest.mark.parametrize("failures", [1, 2])
def test_a_save_that_fails_is_tried_once_more(
    tmp_path: Path, failures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[int] = []
    left = [OSError("the disk is full")] * failures
    keep = Path.replace

    def full(self: Path, target: Path) -> Path:
        if left:
            raise left.pop()
        return keep(self, target)

    monkeypatch.setattr(RealClock, "sleep", lambda _clock, time: slept.append(time))
    monkeypatch.setattr(Path, "replace", full)
    (tmp_path / "conversation.md").write_text("as it was")
    real = Real(tmp_path, lambda _sent: says("answer"))
    real.session.auto_save([user("hello")], None, real.session.stamp())
    saved = (tmp_path / "conversation.md").read_text()
    assert saved == ("**user**: hello\n" if failures == 1 else "as it was")
    assert slept == [200_000_000]
    assert real.logs == ([] if failures == 1 else ["auto-save failed: the disk is full"])
    assert real.heard == ([] if failures == 1 else ["save-error"])
    assert [each.name for each in tmp_path.iterdir()] == ["conversation.md"]


@pytest.mark.parametrize("path", ["../out.md", "/out.md", "link/out.md"])
def test_no_file_is_written_outside_of_the_folder(tmp_path: Path, path: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)
    with pytest.raises(PermissionError, match="leads out of the folder"):
        FolderFiles(inside).write(path, "text")
    assert [each.name for each in tmp_path.iterdir()] == ["inside"]


def test_a_plan_is_the_same_file_by_whatever_path(tmp_path: Path) -> None:
    files = FolderFiles(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    assert files.resolve("link/plan.md") == files.resolve("plan.md")


def test_words_differ_and_time_goes_on(tmp_path: Path) -> None:
    ports = real_ports(tmp_path)
    assert ports.token() != ports.token()
    before = ports.clock.now()
    ports.clock.sleep(1)
    assert ports.clock.now() > before


def test_what_a_thread_raises_is_the_tools_result(tmp_path: Path) -> None:
    def breaks() -> None:
        raise ValueError("out of order")

    handle = in_thread(RealThreads(), breaks)
    with pytest.raises(ValueError, match="out of order"):
        handle.wait()
