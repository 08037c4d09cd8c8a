"""Google's client, which sends through aiohttp where that is installed, and else through httpx2.

In a run, and while a cassette is in use, it takes the second, where requests can be answered and
each chunk is heard and recorded when it comes. What it sends is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from harness.sim.swaps import Swap, Swaps
from harness.sim.when_loaded import swaps_of

_MODULE: Final = "google.genai._api_client"
_METHOD: Final = "_use_aiohttp"


def swaps() -> Sequence[Swaps]:
    """The stand-in for what decides that; it waits until the client's library is loaded."""
    return swaps_of(_MODULE, _stand_ins)


def _stand_ins(module: Any) -> list[Swaps]:
    kind = getattr(module, "BaseApiClient", None)
    return [Swap(kind, _METHOD, _stand_in)] if hasattr(kind, _METHOD) else []


def _stand_in(real: Mapping[str, Any]) -> Callable[[Any], bool]:
    before = real[_METHOD]

    def _use_aiohttp(client: Any) -> bool:
        if getattr(client, "_async_httpx_client", None) is None:
            return bool(before(client))  # it has nothing else
        return False

    return _use_aiohttp
