"""Spans of virtual time: nanoseconds inside, `10ms`, `2s`, `1m` in files and reports."""

from __future__ import annotations

import re

NS_PER_UNIT = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000}
SECOND = NS_PER_UNIT["s"]
_SPELLED = re.compile(r"([0-9]+)(?:\.([0-9]+))?(ns|us|ms|s|m)")


def parse_duration(text: str) -> int:
    """Read a duration as whole nanoseconds; ValueError with what was expected.

    >>> parse_duration("1.5s"), parse_duration("10ms")
    (1500000000, 10000000)
    """
    found = _SPELLED.fullmatch(text.strip())
    if found is None:
        raise ValueError(
            f"{text!r} is not a duration; write a number and a unit, such as 10ms, 1.5s or 2m"
        )
    whole, fraction, unit = found[1], found[2] or "", found[3]
    scaled = int(whole + fraction) * NS_PER_UNIT[unit]
    nanoseconds, rest = divmod(scaled, int("1" + "0" * len(fraction)))
    if rest:
        raise ValueError(f"{text!r} is finer than a nanosecond, the smallest span")
    return nanoseconds


def format_duration(nanoseconds: int) -> str:
    """Write a duration exactly, in the largest unit that keeps it short.

    >>> format_duration(1_500_000_000), format_duration(10_000_000), format_duration(0)
    ('1.5s', '10ms', '0s')
    """
    if nanoseconds == 0:
        return "0s"
    unit = next(u for u in ("s", "ms", "us", "ns") if nanoseconds >= NS_PER_UNIT[u])
    whole, rest = divmod(nanoseconds, NS_PER_UNIT[unit])
    if not rest:
        return f"{whole}{unit}"
    digits = len(str(NS_PER_UNIT[unit])) - 1
    return f"{whole}.{str(rest).rjust(digits, '0').rstrip('0')}{unit}"


def moment(nanoseconds: int) -> str:
    """Write a duration as exactly as a reader needs it: three digits, and the seconds of minutes.

    >>> moment(2_713_114_715), moment(228_074_790), moment(19_500_000)
    ('2.71s', '228ms', '19.5ms')
    """
    step = 1
    while nanoseconds >= 1_000 * step and step < SECOND:
        step *= 10
    rounded = round(nanoseconds / step) * step
    minutes, rest = divmod(rounded, 60 * SECOND)
    return f"{minutes}m{format_duration(rest)}" if minutes else format_duration(rounded)
