"""For tests on pytest-recording: our way to read, match and write cassettes, under its marker.

    @pytest.mark.vcr(serializer="harness", match_on=["harness"])

Requests are compared as we do, secrets stay out of the file, and a file is written whole or not at
all. vcrpy's own stand-ins record, so that neither pieces nor times are kept of streams.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from harness.transport.cassettes.matching import vcr_matcher
from harness.transport.cassettes.vcr_form import persister, serializer

_NAME = "harness"


def register(config: pytest.Config, vcr: Any) -> None:
    """Make ours known to the VCR of one test; what is not for our serializer stays as it was."""
    vcr.register_serializer(_NAME, serializer)
    vcr.register_matcher(_NAME, vcr_matcher)
    rewrite = config.getoption("record_mode", default=None) == "rewrite"
    vcr.register_persister(Beside(vcr.persister, rewrite=rewrite))
    vcr.path_transformer = _with_our_ending(vcr.path_transformer)


class Beside:
    """Loads all cassettes, and saves what our serializer is for; the `other` persister saves the
    rest. pytest-recording's own cannot load files with metadata, which ours have.

    With `rewrite` nothing of ours is loaded, so that what is recorded takes its place.
    """

    def __init__(self, other: Any, *, rewrite: bool) -> None:
        self._other = other
        self._rewrite = rewrite

    def load_cassette(self, cassette_path: str, serializer: Any) -> tuple[Any, ...]:
        """The requests and the responses of a cassette, and of those that the marker adds; the
        metadata of the first.
        """
        if self._rewrite and serializer is _OURS:
            return [], []
        requests: list[Any] = []
        responses: list[Any] = []
        metadata: tuple[Any, ...] = ()
        missing: FileNotFoundError | None = None
        for path in dict.fromkeys([cassette_path, *self._other.extra_paths]):
            try:
                some_requests, some_responses, *more = persister.load_cassette(path, serializer)
            except FileNotFoundError as error:
                missing = error
                continue
            requests += some_requests
            responses += some_responses
            metadata = tuple(more) if path == cassette_path else metadata
        if missing is not None and not requests:
            raise missing
        return requests, responses, *metadata

    def save_cassette(
        self, cassette_path: str, cassette_dict: Mapping[str, Any], serializer: Any
    ) -> None:
        """Write a cassette."""
        writer = persister if serializer is _OURS else self._other
        writer.save_cassette(cassette_path, cassette_dict, serializer)


_OURS = serializer


def _with_our_ending(before: Callable[[str], str]) -> Callable[[str], str]:
    """pytest-recording names files by the serializer; ours end with yaml, as everywhere."""

    def transform(path: str) -> str:
        path = before(path)
        bare = path.removesuffix(f".{_NAME}")
        return path if bare == path else f"{bare}.yaml"

    return transform
