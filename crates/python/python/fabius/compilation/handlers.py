"""Exceptions that a function catches: those that it, or a function that it calls, raises by its own statements.

What the database finds wrong by itself (a constraint, a number that is too large) ends the transaction.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from typing import Any

from ..errors import Error
from .refusal import Refused

__all__ = ["DIVISION", "caught", "is_told", "refuse_uncatchable", "refuse_values"]

#: Exceptions that programs raise without a ``raise``, by their names; ``fabius``'s own besides.
_IMPLIED = {name: getattr(builtins, name) for name in ("AssertionError", "IndexError", "KeyError", "ValueError")}

#: The one that programs raise for themselves only where it is caught.
DIVISION = "ZeroDivisionError"

#: Exceptions of the database itself, and what is none of a function's business.
_UNCATCHABLE = (OverflowError, TypeError, AttributeError, NameError, MemoryError, KeyboardInterrupt)

#: Functions that take an exception for its text.
_TELLING = frozenset(("str", "print"))


def _known() -> dict[str, type[BaseException]]:
    from ..aborts import Aborted
    from ..tables import RowNotFound

    own = {"fabius.Aborted": Aborted, "fabius.RowNotFound": RowNotFound}
    return {**_IMPLIED, DIVISION: ZeroDivisionError, **own}


def caught(kinds: tuple[type[BaseException], ...], raised: Mapping[str, type[BaseException]]) -> list[str]:
    """The names of what a handler is for, among what programs raise and what a function ``raised``."""
    return [name for name, kind in {**_known(), **raised}.items() if issubclass(kind, kinds)]


def refuse_uncatchable(kind: Any, place: ast.AST) -> None:
    """Raises ``Refused`` for what no program catches."""
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        raise Refused(place, "except of anything but a class of exceptions", "write except ValueError")
    own = {one for one in _known().values() if issubclass(one, Error)}
    is_of_database = issubclass(kind, Error) and kind not in own
    if is_of_database or any(issubclass(one, kind) or issubclass(kind, one) for one in _UNCATCHABLE):
        what = f"except {kind.__name__}, which the database raises too"
        if is_of_database or issubclass(kind, _UNCATCHABLE):
            what = f"except {kind.__name__}, which the database raises"
        instead = "name what the function raises itself, test for the case before, or catch it around the call"
        raise Refused(place, what, instead)


def is_told(handler: ast.ExceptHandler) -> bool:
    """Whether an exception's text is used: it is not only raised once more."""
    nodes = [node for statement in handler.body for node in ast.walk(statement)]
    raised = {node.exc for node in nodes if isinstance(node, ast.Raise)}
    return any(isinstance(node, ast.Name) and node.id == handler.name and node not in raised for node in nodes)


def refuse_values(handler: ast.ExceptHandler) -> None:
    """Raises ``Refused`` where an exception's name is used for more than its text."""
    texts: set[ast.AST] = set()
    for statement in handler.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Raise):
                # It is raised once more; what another exception comes from is not kept.
                texts.update(one for one in (node.exc, node.cause) if one is not None)
            elif isinstance(node, ast.FormattedValue) and node.conversion in (-1, ord("s")):
                texts.add(node.value)
            elif isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                is_logged = isinstance(node.func, ast.Attribute) and name in ("debug", "info", "warning", "error")
                texts.update(node.args if name in _TELLING or is_logged else ())
    for statement in handler.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id == handler.name and node not in texts:
                raise Refused(node, "an exception as a value", f"take its text: str({handler.name})")
