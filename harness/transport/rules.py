"""What users say of their own requests: what of them says nothing, and what is secret."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import force_setattr

from harness.core.errors import UsageError
from harness.core.wording import an


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


NO_RULES = Rules()
