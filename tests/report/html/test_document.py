"""A whole page: what of each thing it shows, that it is one file, and always the same."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.core.outcome import COMPLETED
from harness.core.verdict import Accepted, Verdict, Violation
from harness.exploration.probe import Finding, Landing, Run
from harness.report.conversation import Conversation, Said, Section
from harness.report.html import Item, page
from harness.report.html.explored import FAILURES_MAX
from harness.report.html.runs import OUTCOMES_MAX
from harness.report.not_run import NotRun
from harness.report.replay import FunctionReplay
from harness.report.sweep import Failed
from tests.report import test_search, test_sweep
from tests.report.html.items import HOSTILE, many, report, session, small
from tests.report.html.test_markup import Seen

WRONG = Violation("ORDER", "another order", 4, 1)
FUNCTION = FunctionReplay(
    Run("d", findings=(Finding("x", "it is left", None),), lines=("0s       1      begins",)),
    "crowd",
    "asyncio",
    "replay('h1', crowd)",
)
LOST = NotRun("sweep", "a.yaml:3: no such key\na.yaml:4: nor this", source="a.yaml")
OVER = NotRun("sweep", "there is no point", "b", "b.yaml", "turn (safe)", passed_over=True)
ITEMS: dict[str, Item] = {
    "run": report(small(), about="It answers."),
    "failed run": report(small(), WRONG),
    "sweep": test_sweep.BAD,
    "good sweep": test_sweep.GOOD,
    "exploration": test_search.BAD,
    "good exploration": test_search.GOOD,
    "replay": test_sweep.REPLAY,
    "function": FUNCTION,
    "session": session(),
    "not run": LOST,
    "passed over": OVER,
}


class Checked(HTMLParser):
    """That elements are closed in their order, that ids are there once and links lead to them."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.outside: list[tuple[str, str | None]] = []
        self.feed(markup)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "input"):
            self.open.append(tag)
        given = dict(attrs)
        if given.get("id"):
            self.ids.append(given["id"])
        if given.get("href"):
            self.links.append(given["href"])
        self.outside += [(k, v) for k, v in attrs if k in ("src", "style") or k.startswith("on")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", list(ITEMS))
def test_a_page_is_whole(name: str) -> None:
    found = Checked(page([ITEMS[name]]))
    assert len(found.ids) == len(set(found.ids))
    assert {link.removeprefix("#") for link in found.links} <= set(found.ids)
    assert found.outside == []


def test_a_page_of_all_is_whole_and_says_what_it_shows() -> None:
    markup = page(list(ITEMS.values()))
    found = Checked(markup)
    assert len(found.ids) == len(set(found.ids))
    assert {link.removeprefix("#") for link in found.links} <= set(found.ids)
    assert "<h1>2 runs, 4 sweeps, 2 explorations, 2 replays, 1 session</h1>" in markup
    assert markup.count("data-part=") == len(ITEMS)


def test_what_a_run_is_is_told() -> None:
    accepted = Accepted(Violation("CAP", "many"), "we know")
    soft = Violation("ROLES", "two users", severity="soft")
    run = report(small(), WRONG, about="It answers.")
    run = replace(run, verdict=Verdict((WRONG, soft), ("ESTIMATE",), (accepted,)))
    text = Seen(page([run])).text
    for said in (
        "harness run",
        "FAIL scenarios/case on turn (safe)",
        "completed; 1 request, 100ms of virtual time",
        "It answers.",
        "scenarios/case.yaml:3: ORDER in turn 1: another order",
        '10ms 1 tool_started weather c1 {"q":"Time and weather?"}',
        "soft: ROLES, two users",
        "accepted: CAP, we know",
        "Not judged: 1 thing",
        "harness run scenarios/case.yaml --loop turn",
    ):
        assert said in text
    assert "Not judged" not in page([replace(run, verdict=Verdict())])


def test_many_outcomes_are_counted() -> None:
    run = replace(report(small()), outcomes=(COMPLETED,) * (OUTCOMES_MAX + 1))
    assert f"{OUTCOMES_MAX + 1} completed; 1 request" in page([run])


def test_a_run_in_which_nothing_happened_has_no_picture() -> None:
    markup = page([replace(report(small()), outcomes=(), trace=many(0))])
    assert "no turn ended; 0 requests" in markup
    assert 'class="figure"' not in markup


def test_what_a_sweep_came_to_is_told() -> None:
    text = Seen(page([test_sweep.BAD])).text
    for said in (
        "INCOMPLETE: double is sampled: 2 of 1,000 points",
        "6 points, 2 failed; 1,234 runs",
        "no such point: the task has not begun (2), the task has begun (1)",
        "tolerated: CAP",
        "Cancelled at 1.1#1/early:turn",
        "QUIESCE: a task is alive (at 1 of 6 points)",
        "RESUME: call_1_1_1 has no result (at 2 of 6 points)",
        "nearest run that passes: cancelled at 1.1#1/late:task",
        "harness replay h1.311.0123456789.1.1:1:early:turn.89abcdef",
    ):
        assert said in text


def test_what_a_search_came_to_is_told() -> None:
    text = Seen(page([test_search.BAD])).text
    for said in (
        "1,234 runs, 567 schedules, 2 findings",
        "order all: callbacks also run in orders",
        "tolerated: QUIESCE, it is\\u000aknown (in 17 runs)",
        "1,000 times at agent.py:14 in turn, in turn tasks",
        "its token has 12,000 characters, too many for a line",
        "ORDER, RESUME",
        "found by pct:2 in run 1,017 with 12 decisions",
        "latency of slow\\u000acall_1_1_1: zero (1 of 5)",
        "1 waits at agent.py:14 in turn for 1.1 and 1.2",
    ):
        assert said in text


def test_failures_are_bounded_and_one_without_a_cancel_or_lines_is_shown_too() -> None:
    bare = Failed(
        (replace(test_sweep.REPORT.failed[0], shots=()),),
        Run("d", landings=(Landing(test_sweep.EARLY, "delivered"),)),
        None,
        "t",
        "",
    )
    sweep = replace(test_sweep.BAD, failed=(bare, *[test_sweep.FAILED] * (FAILURES_MAX + 1)))
    text = Seen(page([sweep])).text
    assert "Without a cancel" in text
    assert f"shown are {FAILURES_MAX} of {FAILURES_MAX + 2}" in text


def test_what_shows_why_is_told_though_no_run_passes() -> None:
    [failed, *_] = test_search.BAD.failed
    run = replace(failed.run, unresolved="the limit of 9 steps")
    alone = replace(test_search.BAD, failed=(replace(failed, beside=None, run=run),), open=None)
    text = Seen(page([alone])).text
    for title in ("Who ran when, and where it waits then", "Who waits for whom, for ever"):
        assert text.count(title) == 1
    assert text.lower().count("who waits for whom") == 1
    assert "Where tasks waited most often" in text


def test_what_a_replay_came_to_is_told() -> None:
    replay = test_sweep.REPLAY
    assert "latency of a\\u000ab: ten times (4 of 5)" in Seen(page([replay])).text
    missed = replace(replay.run, findings=(), landings=(Landing(test_sweep.EARLY, "refused"),))
    text = Seen(page([replace(replay, run=missed)])).text
    assert "the cancel 1.1#1/early:turn was refused, so nothing was tried" in text
    missed = replace(replay.run, landings=missed.landings)
    assert (
        "was refused; what is wrong with this run comes"
        in Seen(page([replace(replay, run=missed)])).text
    )
    text = Seen(page([FUNCTION])).text
    assert "it is left" in text
    assert "replay('h1', crowd)" in text


def test_a_session_is_told() -> None:
    text = Seen(page([session()])).text
    for said in (
        "session · 2 interactions · 3 sections, 1 time something went wrong".replace(
            "session · ", ""
        ),
        "300ms",
        "Hello\nand more",
        "429: too much",
    ):
        assert said in text
    only = Section("turn 1", (Said("user", "Hello"),))
    assert '"spans":[]' in page([Conversation("a cassette", (only,))])
    empty = page([Conversation("a cassette", (Section("turn 1", ()),))])
    assert 'class="figure"' not in empty
    assert "1 section<" in empty


def test_the_lanes_of_a_session_pair_what_was_asked_with_what_came() -> None:
    [spelled] = re.findall(r'<script type="application/json">(.*?)</script>', page([session()]))
    assert '"spans":[[1,4,0],[4,5,0],[7,8,0],[10,10,0]]' in spelled
    assert '"alarms":[8]' in spelled
    assert '["run","wrong",1]' in spelled


def test_calls_of_a_tool_at_a_time_stand_below_each_other_by_its_whole_name() -> None:
    said = [Said("calls", f"a: b {{}} {at}", at, "a: b") for at in range(3)]
    said += [Said("gives", "a: b: fine", at, "a: b") for at in (3, 4)]
    markup = page([Conversation("a cassette", (Section("turn 1", tuple(said)),))])
    assert '"lanes":[["tool","a: b",3]]' in markup
    assert '"rows":[[1,1],[2,2],[4,1]],"spans":[[0,3,0],[1,4,1]]' in markup


def test_what_did_not_pass_is_listed_first() -> None:
    markup = page([ITEMS["run"], ITEMS["session"], ITEMS["failed run"], test_sweep.OPEN])
    assert re.findall(r'data-part="(r\d)"', markup) == ["r3", "r4", "r1", "r2"]


def test_what_could_not_be_run_is_told_counted_and_listed_before_all_else() -> None:
    markup = page([ITEMS["run"], OVER, ITEMS["failed run"], LOST])
    assert re.findall(r'data-status="(\w+)" data-part="(r\d)"', markup) == [
        ("ERROR", "r4"),
        ("FAIL", "r3"),
        ("SKIPPED", "r2"),
        ("PASS", "r1"),
    ]
    assert re.findall(r"</b> (\d)", markup.partition("</header>")[0]) == ["1", "1", "1", "1"]
    text = Seen(markup).text
    assert "<li><p>a.yaml:3: no such key</p><p>a.yaml:4: nor this</p></li>" in markup
    assert "ERROR a.yaml" in text
    assert "could not be run" in text
    assert "SKIPPED b on turn (safe)" in text
    assert "there is no point" in text


def test_titles_and_counts_of_what_could_not_be_run() -> None:
    assert "<h1>harness exploration</h1>" in page([NotRun("search", "no such loop")])
    assert "<title>run: everything</title>" in page([NotRun("run", "no such loop")])
    assert "ended by an error, without a verdict" in page([NotRun("test", "no", "test_a")])
    assert "<title>run: a.yaml</title>" in page([NotRun("run", "", source="a.yaml")])


def test_titles_and_counts() -> None:
    assert "<title>run: scenarios/case</title>" in page([ITEMS["run"]])
    assert "<h1>nightly &amp; all</h1>" in page([ITEMS["run"]], title="nightly & all")
    assert "<h1>nothing was run</h1>" in page([])
    assert (
        'class="counts"><b class="badge pass">PASS</b> 1<b class="badge fail">FAIL</b> 1</p>'
        in (page([ITEMS["run"], ITEMS["failed run"], ITEMS["session"]]))
    )
    sessions = page([session(), session()])
    assert "verdict" not in Seen(sessions.partition("<nav")[2].partition("</nav>")[0]).text


def test_a_long_run_is_folded_and_what_is_wrong_is_marked_in_it() -> None:
    assert '<details class="events" open>' in page([ITEMS["failed run"]])
    markup = page([report(many(500), WRONG)])
    assert '<details class="events">' in markup
    assert re.search(r'<mark id="r1-run-4">1.002s +1 +delta', markup)


def test_the_page_lets_nothing_in_but_its_own_script_and_style() -> None:
    markup = page([ITEMS["run"]])
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', markup)
    [script] = re.findall(r'<script type="module">(.*?)</script>', markup, re.DOTALL)
    [style] = re.findall(r"<style>(.*?)</style>", markup, re.DOTALL)
    assert policy == (
        f"default-src 'none'; script-src '{sha(script)}'; style-src '{sha(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert not re.search(
        r"https?://|innerHTML|outerHTML|insertAdjacent|\beval\b|document\.write", markup
    )


def sha(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def test_no_text_of_anything_is_markup() -> None:
    lost = NotRun("run", HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    hostile = [
        replace(
            report(small(HOSTILE, HOSTILE), Violation(HOSTILE, HOSTILE, 4, 1), about=HOSTILE),
            scenario=HOSTILE,
            source=HOSTILE,
            loop=HOSTILE,
            rerun=HOSTILE,
        ),
        replace(session(HOSTILE), title=HOSTILE),
        replace(test_sweep.BAD, scenario=HOSTILE, loop=HOSTILE),
    ]
    tags = Seen(page([*hostile, lost], title=HOSTILE)).tags
    assert tags.count("script") == 1 + len(hostile)  # of the page, and of each figure
    assert "img" not in tags


def test_the_same_things_are_the_same_bytes_in_any_process() -> None:
    program = (
        "import hashlib; from tests.report.html.test_document import ITEMS; "
        "from harness.report.html import page; "
        "print(hashlib.sha256(page(list(ITEMS.values())).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[3],
        ).stdout
        for seed in ("1", "2")
    }
    assert digests == {f"{hashlib.sha256(page(list(ITEMS.values())).encode()).hexdigest()}\n"}


def test_a_page_is_small() -> None:
    assert len(page([])) < 48_000
    lines = sum(len(line) for line in Seen(page([report(many(10_000))])).text.splitlines())
    assert len(page([report(many(10_000))])) < 1.3 * lines
