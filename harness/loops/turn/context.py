"""Services by token, in scopes: how the parts of a loop find each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar, cast

from msgspec import Struct

from harness.core.errors import AgentError
from harness.core.ports import Model, SessionLog
from harness.loops.turn.registry import Dispatcher

T = TypeVar("T")


class Token(Generic[T]):
    """Stands for one service; compared by identity. `title` is its name in messages."""

    __slots__ = ("title",)

    def __init__(self, title: str) -> None:
        self.title = title


class Context:
    """Holds services; what it does not hold, its parent may."""

    def __init__(self, parent: Context | None = None) -> None:
        self._parent = parent
        self._services: dict[Token[Any], Any] = {}

    def provide(self, token: Token[T], service: T) -> None:
        """Put a service under a token, in place of an earlier one."""
        self._services[token] = service

    def get(self, token: Token[T]) -> T | None:
        """The service under a token, here or further up; None where there is none."""
        if token in self._services:
            return cast("T", self._services[token])
        return self._parent.get(token) if self._parent is not None else None

    def scoped(self) -> Context:
        """A child: it sees what is here, and what it is given stays its own."""
        return Context(self)


class Plugin(Struct, frozen=True):
    """Something that provides services when it is mounted; `name` tells people what it is."""

    name: str
    mount: Callable[[Context], None]


def mount_plugins(context: Context, plugins: Iterable[Plugin]) -> None:
    """Mount plugins in order; where two provide the same token, the later one wins."""
    for plugin in plugins:
        plugin.mount(context)


MODEL: Token[Model] = Token("LlmService")
LOG: Token[SessionLog] = Token("SessionLog service")
TOOLS: Token[Dispatcher] = Token("ToolRegistryService")


class Seams(Struct, frozen=True):
    """What a turn needs from outside."""

    model: Model
    log: SessionLog
    tools: Dispatcher


def find_seams(context: Context) -> Seams:
    """The services of a turn as they are now; AgentError names the first that is missing."""
    return Seams(_need(context, MODEL), _need(context, LOG), _need(context, TOOLS))


def _need(context: Context, token: Token[T]) -> T:
    service = context.get(token)
    if service is None:
        raise AgentError(f"missing {token.title} in context")
    return service
