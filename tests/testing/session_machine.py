"""A session of a loop as a state machine: turns that end well, fail, are cut or lost, in any order;
after each of them the conversation can go on, and holds what it must.

The machine keeps a list of its own: who said what, of all that the conversation must hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from harness.core.messages import Message
from harness.core.pairing import breaches

Entry: TypeAlias = tuple[str, str]
"""A role, and what it said."""

ROUNDS = st.lists(st.integers(1, 3), max_size=2)
"""How many calls each reply of a turn makes, before the last one, which makes none."""


class SessionMachine(RuleBasedStateMachine):
    """What all sessions have; a subclass plays turns on its loop."""

    moments: ClassVar[Sequence[Any]] = ()
    """Where a turn can be cut."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[Entry] = []
        """What the conversation must hold, in this order."""
        self.dropped: set[str] = set()
        """What it must not hold: replies that were cut."""
        self.words: list[str] = []
        """All that was said."""

    def word(self, kind: str, more: str = "") -> str:
        """A text that nobody has said before."""
        self.words.append(f"{kind} {len(self.words)}.{more}")
        return self.words[-1]

    # --- for a subclass

    def play(self, text: str, rounds: Sequence[int], *, fails: bool) -> None:
        """Play a turn to its end."""
        raise NotImplementedError

    def cut(self, text: str, rounds: Sequence[int], moment: Any) -> None:
        """Play a turn and cancel it at a moment, if it comes to that."""
        raise NotImplementedError

    def lose(self, text: str, rounds: Sequence[int], moment: Any) -> None:
        """Play a turn in which the process breaks at a moment, and go on from what is left."""
        raise NotImplementedError

    def reopen(self) -> None:
        """Go on in another process."""
        raise NotImplementedError

    def history(self) -> tuple[Message, ...]:
        """What the next request would show."""
        raise NotImplementedError

    # --- what can happen

    @rule(rounds=ROUNDS, fails=st.sampled_from([False, False, True]))
    def turn(self, rounds: list[int], fails: bool) -> None:
        self.play(self.word("user"), rounds, fails=fails)

    @rule(rounds=ROUNDS, data=st.data())
    def cancelled_turn(self, rounds: list[int], data: st.DataObject) -> None:
        self.cut(self.word("user"), rounds, data.draw(st.sampled_from(self.moments)))

    @rule(rounds=ROUNDS, data=st.data())
    def crash(self, rounds: list[int], data: st.DataObject) -> None:
        self.lose(self.word("user"), rounds, data.draw(st.sampled_from(self.moments)))

    @rule()
    def reload(self) -> None:
        before = self.history()
        self.reopen()
        assert self.history() == before

    # --- what must hold

    @invariant()
    def a_provider_takes_it(self) -> None:
        assert breaches(self.history()) == ()

    @invariant()
    def it_holds_what_was_said_and_done(self) -> None:
        entries = [(message.role, message.text) for message in self.history()]
        left = iter(entries)
        missing = [
            (role, text)
            for role, text in self.held
            if not any(role == there and text in said for there, said in left)
        ]
        assert not missing, entries

    @invariant()
    def nothing_is_there_twice_or_that_was_dropped(self) -> None:
        texts = [message.text for message in self.history()]
        for word in self.words:
            assert sum(word in text for text in texts) <= (word not in self.dropped)
