"""For the site: classes of msgspec are shown with the values that they are made of.

An extension of griffe, which reads the code for `make docs` and knows of dataclasses only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import griffe


class Structs(griffe.Extension):
    """Gives each Struct the signature by which it is made."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Look through a package that has been read whole."""
        for each in _classes(pkg):
            fields = list(_fields(each)) if _is_struct(each) else []
            if fields and "__init__" not in each.members:
                made = griffe.Function("__init__", parameters=griffe.Parameters(*fields))
                each.set_member("__init__", made)


def _classes(scope: griffe.Module | griffe.Class) -> Iterator[griffe.Class]:
    for member in list(scope.members.values()):
        if not member.is_alias and isinstance(member, griffe.Module | griffe.Class):
            if isinstance(member, griffe.Class):
                yield member
            yield from _classes(member)


def _is_struct(found: griffe.Class) -> bool:
    return any(str(base) == "Struct" for base in found.bases) or any(
        isinstance(base, griffe.Class) and _is_struct(base) for base in found.resolved_bases
    )


def _fields(found: griffe.Class) -> Iterator[griffe.Parameter]:
    by_name = str(found.keywords.get("kw_only")) == "True"
    kind = "keyword_only" if by_name else "positional_or_keyword"
    for base in found.resolved_bases:
        if isinstance(base, griffe.Class) and _is_struct(base):
            yield from _fields(base)
    for member in found.members.values():
        if isinstance(member, griffe.Attribute) and _is_field(member):
            yield griffe.Parameter(
                member.name,
                annotation=member.annotation,
                kind=griffe.ParameterKind[kind],
                default=member.value,
            )


def _is_field(member: griffe.Attribute) -> bool:
    """Whether it is a value of each instance: no property, and none of the class alone."""
    return "instance-attribute" in member.labels and member.annotation is not None
