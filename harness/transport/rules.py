"""What users say of their own requests: what of them says nothing, and what is secret."""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import force_setattr

from harness.core.errors import UsageError
from harness.core.wording import an

REDACTED = "[redacted]"
"""What stands in place of a secret."""


class Rules(Struct, frozen=True, kw_only=True):
    """What users add to the rules by which requests are matched and secrets are found.

    `ignore` are places in bodies that say nothing, such as ``metadata.run_id`` or
    ``messages[*].name``; `volatile` are regular expressions for what changes from run to run in any
    text. `names` are headers, parameters and members that hold secrets, `harmless` parameters and
    members that hold none though they sound like it, such as a tool's argument ``token``;
    `patterns` are regular expressions for secrets, `values` secrets themselves. All but `values`
    are written into cassettes, so that whoever plays one matches by the same rules.
    """

    ignore: tuple[str, ...] = ()
    volatile: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    harmless: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            given = getattr(self, name)
            if isinstance(given, str) or not all(isinstance(each, str) for each in given):
                raise UsageError(
                    f"{name} of Rules is {an(type(given).__name__)}; expected a tuple of texts: "
                    f"Rules({name}=('...',))"
                )
            force_setattr(self, name, tuple(given))
        for name in ("volatile", "patterns"):
            for each in getattr(self, name):
                if why := no_expression(each):
                    raise UsageError(
                        f"{name} of Rules has {each!r}, which is no regular expression: {why}; "
                        "expected one as Python's module re reads it, such as r'emp-\\d+'"
                    )


def no_expression(text: str) -> str:
    """Why a text is no regular expression; "" where it is one.

    >>> no_expression("emp-[0-9]+"), no_expression("emp-(")
    ('', 'missing ), unterminated subpattern at position 4')
    """
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:  # too large a number, too deep
        return str(error)
    return ""


def joined(one: Rules, other: Rules) -> Rules:
    """The rules of both.

    >>> joined(Rules(names=("a", "b")), Rules(names=("b", "c"))).names
    ('a', 'b', 'c')
    """
    made = {
        name: tuple(dict.fromkeys((*getattr(one, name), *getattr(other, name))))
        for name in Rules.__struct_fields__
    }
    return Rules(**made)


NO_RULES = Rules()
