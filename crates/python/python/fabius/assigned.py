"""Globals that functions assign: they are what they were when a function runs again, or aborts."""

from __future__ import annotations

import dis
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from .compilation.captures import names_outside

__all__ = ["Globals", "globals_assigned"]


class Globals:
    """The globals that a function, and those that it calls, assign; with the values that they have now."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._values = [(names, name, names[name]) for names, name in globals_assigned(function) if name in names]

    def restore(self) -> None:
        """Gives them these values."""
        for names, name, value in self._values:
            names[name] = value


def globals_assigned(function: Callable[..., Any]) -> list[tuple[dict[str, Any], str]]:
    """Names that a function assigns, and those that it calls, with the module's names that they are among."""
    assigned: list[tuple[dict[str, Any], str]] = []
    seen: set[types.CodeType] = set()
    waiting = [inspect.unwrap(function)]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, types.FunctionType) or one.__code__ in seen:
            continue
        seen.add(one.__code__)
        code = one.__code__
        assigned.extend((one.__globals__, name) for name in _stored(code))
        outside = names_outside(one)
        used = [outside.get(name) for name in (*code.co_names, *code.co_freevars)]
        modules = [vars(module) for module in used if isinstance(module, types.ModuleType)]
        used.extend(names.get(name) for names in modules for name in code.co_names)
        waiting.extend(inspect.unwrap(called) for called in used if callable(called))
    return assigned


@functools.lru_cache(maxsize=10_000)
def _stored(code: types.CodeType) -> tuple[str, ...]:
    """The globals that code assigns."""
    return tuple({one.argval for one in dis.get_instructions(code) if one.opname == "STORE_GLOBAL"})
