"""How a function ends its transaction by its own will."""

from __future__ import annotations

from typing import Any

from .errors import lookup

__all__ = ["Aborted", "require"]


class Aborted(lookup("P0001")):  # type: ignore[misc]
    """A ``require`` of the function did not hold; nothing of what the function did has happened."""


def require(condition: Any, message: str = "a requirement does not hold") -> None:
    """Ends the transaction with ``Aborted`` unless something holds.

    >>> require(2 > 1)
    >>> require(1 > 2, "only 1 left")
    Traceback (most recent call last):
    fabius.aborts.Aborted: only 1 left
    """
    if not condition:
        error = Aborted(message)
        error.sqlstate = "P0001"
        raise error
