"""A fake tool as a function that frameworks can read."""

import inspect
from typing import Any, get_type_hints

import pytest

from harness.fakes.signature import as_function
from harness.fakes.tool_spec import ToolSpec


async def ran(name, args, defaults):
    return name, args, defaults


def function(parameters, description=""):
    return as_function(ToolSpec("weather", description=description, parameters=parameters), ran)


def test_the_function_has_the_tools_name_and_description():
    named = function(None, "Tells the weather.")
    assert (named.__name__, named.__qualname__) == ("weather", "weather")
    assert named.__doc__ == "Tells the weather."
    assert function(None).__doc__ == "The tool weather."
    assert inspect.iscoroutinefunction(named)


def test_the_function_has_the_parameters_of_the_schema():
    schema = {
        "type": "object",
        "properties": {
            "unit": {"type": "string", "default": "C"},
            "city": {"type": "string"},
            "days": {"type": ["integer", "null"]},
            "at": {"type": "number"},
            "hours": {"type": "array"},
            "place": True,
        },
        "required": ["city", "at"],
    }
    described = function(schema)
    assert str(inspect.signature(described)) == (
        "(*, city: str, at: float, unit: str = 'C', days: Any = None, "
        "hours: list = None, place: Any = None) -> Any"
    )
    assert get_type_hints(described)["return"] is Any


@pytest.mark.parametrize(
    "schema",
    [
        None,
        True,
        {"type": "object"},
        {"properties": ["city"]},
        {"properties": {"city name": {}}},
        {"properties": {"from": {}}},
    ],
)
def test_a_schema_that_cannot_be_a_signature_leaves_any_keywords(schema):
    assert str(inspect.signature(function(schema))).startswith("(**arguments")


def test_the_function_passes_on_its_arguments_and_the_defaults():
    coroutine = function({"properties": {"unit": {"default": "C"}}})(city="Rome")
    with pytest.raises(StopIteration) as returned:
        coroutine.send(None)
    assert returned.value.value == ("weather", {"city": "Rome"}, {"unit": "C"})
