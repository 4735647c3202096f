"""Values that Python has no class of its own for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


class Json:
    """A parameter of type ``json`` or ``jsonb``: anything that ``json.dumps`` takes.

    >>> Json({"a": 1}).dumps()
    '{"a": 1}'
    """

    __slots__ = ("value", "_dumps")

    def __init__(self, value: Any, dumps: Callable[[Any], str] = json.dumps) -> None:
        self.value = value
        self._dumps = dumps

    def dumps(self) -> str:
        """The value as text."""
        return self._dumps(self.value)

    def __repr__(self) -> str:
        return f"Json({self.value!r})"
