"""Globals that functions assign: they are what they were when a function runs again, or aborts."""

from __future__ import annotations

import dis
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

__all__ = ["Globals"]


class Globals:
    """The globals that a function, and those that it calls, assign; with the values that they have now."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._values = [(names, name, names[name]) for names, name in _assigned(function) if name in names]

    def restore(self) -> None:
        """Gives them these values."""
        for names, name, value in self._values:
            names[name] = value


def _assigned(function: Callable[..., Any]) -> list[tuple[dict[str, Any], str]]:
    """Names that are assigned, with the module's names that they are among."""
    assigned: list[tuple[dict[str, Any], str]] = []
    seen: set[types.CodeType] = set()
    waiting = [inspect.unwrap(function)]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, types.FunctionType) or one.__code__ in seen:
            continue
        seen.add(one.__code__)
        names = one.__globals__
        assigned.extend((names, name) for name in _stored(one.__code__))
        waiting.extend(inspect.unwrap(names[name]) for name in one.__code__.co_names if callable(names.get(name)))
    return assigned


@functools.lru_cache(maxsize=10_000)
def _stored(code: types.CodeType) -> tuple[str, ...]:
    """The globals that code assigns."""
    return tuple({one.argval for one in dis.get_instructions(code) if one.opname == "STORE_GLOBAL"})
