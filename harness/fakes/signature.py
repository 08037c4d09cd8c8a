"""A fake tool as a plain async function, for frameworks that read a function's signature."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Awaitable, Callable
from typing import Any

from harness.core.json_text import Json
from harness.fakes.tool_spec import ToolSpec

_TYPES = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}


def as_function(
    spec: ToolSpec, run: Callable[[str, Json, dict[str, Json]], Awaitable[Json]]
) -> Callable[..., Awaitable[Json]]:
    """An async function of keyword arguments that has `run` run the tool.

    It has the tool's name, its description as docstring, and the parameters that its schema
    declares: keyword-only, an optional one with the schema's default or None. `run` is given the
    name, the arguments and these defaults, for a framework may pass what the model left out.
    """
    parameters = _parameters(spec.parameters)
    defaults = {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}

    async def function(**arguments: Json) -> Json:
        return await run(spec.name, arguments, defaults)

    function.__name__ = function.__qualname__ = spec.name
    function.__doc__ = spec.description or f"The tool {spec.name}."
    if parameters:
        returns = {"return": Any}
        function.__annotations__ = {p.name: p.annotation for p in parameters} | returns
        function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            parameters, return_annotation=Any
        )
    return function


def _parameters(schema: Json) -> list[inspect.Parameter]:
    """The parameters of a JSON Schema of an object, required ones first; none where a property's
    name cannot be a parameter's.
    """
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or not all(map(_can_be_parameter, properties)):
        return []
    required = schema.get("required", ())
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if name in required else _default(declared),
            annotation=_type(declared),
        )
        for name, declared in sorted(properties.items(), key=lambda item: item[0] not in required)
    ]


def _can_be_parameter(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def _default(declared: Json) -> Json:
    return declared.get("default") if isinstance(declared, dict) else None


def _type(declared: Json) -> Any:
    kind = declared.get("type") if isinstance(declared, dict) else None
    return _TYPES.get(kind, Any) if isinstance(kind, str) else Any
