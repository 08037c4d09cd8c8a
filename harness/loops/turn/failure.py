"""What a thrown error says."""

from __future__ import annotations


def message_of(error: BaseException) -> str:
    """The error's message; its class where it was raised without one.

    >>> message_of(ValueError("boom")), message_of(TimeoutError())
    ('boom', 'TimeoutError')
    """
    text = str(error)
    return text if text or error.args else type(error).__name__
