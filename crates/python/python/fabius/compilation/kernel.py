"""What a compiled function is made of when it is sent to the database: nodes of Python's ``ast``, and these besides.

The database knows a small language (``crates/sql-syntax/src/python``). What else can stand in a function is said in it,
here.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .refusal import Refused

__all__ = [
    "Append",
    "Called",
    "Declared",
    "Element",
    "Empty",
    "Query",
    "Raised",
    "Reraised",
    "Received",
    "Handler",
    "Said",
    "SetElement",
    "Tried",
    "Zero",
    "json_of",
]

#: SQLSTATE of an exception that a function raises; its class is the detail.
RAISED = "PY000"

#: What stands before the class of an exception without a text.
BARE = "bare "

#: SQLSTATE of what is printed, of what is logged, and of what is written to a file.
PRINTED, LOGGED, WRITTEN = "PY001", "PY003", "PY004"

#: What stands between a file's mode, its path and the text.
BETWEEN = "\x1f"


class Said(ast.stmt):
    """A text for the caller, who gets it once the call has committed."""

    _fields = ("state", "value")
    state: str
    value: ast.expr

    if TYPE_CHECKING:

        def __init__(self, *, state: str, value: ast.expr) -> None: ...


class Raised(ast.stmt):
    """The end of the transaction: an exception with a text."""

    _fields = ("kind", "message")
    kind: str
    message: ast.expr

    if TYPE_CHECKING:

        def __init__(self, *, kind: str, message: ast.expr) -> None: ...


class Reraised(ast.stmt):
    """The exception that a handler around has caught, raised once more: that of the innermost, or farther out."""

    _fields = ("depth",)
    depth: int

    if TYPE_CHECKING:

        def __init__(self, *, depth: int) -> None: ...


class Handler(ast.AST):
    """What is done for exceptions, by the names of their classes; ``name`` gets their text, and what is done may raise
    them once more (``reraised``)."""

    _fields = ("classes", "name", "body", "reraised")
    classes: builtins.list[str]
    name: str | None
    body: builtins.list[ast.stmt]
    reraised: bool

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            classes: builtins.list[str],
            name: str | None,
            body: builtins.list[ast.stmt],
            reraised: bool,
        ) -> None: ...


class Tried(ast.stmt):
    """Statements, what is done for what they raise, and what is done if they come to their end."""

    _fields = ("body", "handlers", "orelse")
    body: builtins.list[ast.stmt]
    handlers: builtins.list[Handler]
    orelse: builtins.list[ast.stmt]

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            body: builtins.list[ast.stmt],
            handlers: builtins.list[Handler],
            orelse: builtins.list[ast.stmt],
        ) -> None: ...


class Called(ast.expr):
    """A call of another compiled function: its arguments in the order of its parameters, the order in which they are
    computed, places of those that may be ``None`` and of those that are times; and of what it gives, how many values
    those are, and places of those that may be ``None``, that are lists and that are times."""

    _fields = (
        "function",
        "args",
        "order",
        "optional",
        "spans",
        "gives",
        "may_be_none",
        "gives_lists",
        "gives_spans",
    )
    function: str
    args: builtins.list[ast.expr]
    order: builtins.list[int]
    optional: builtins.list[int]
    spans: builtins.list[int]
    gives: int
    may_be_none: builtins.list[int]
    gives_lists: builtins.list[int]
    gives_spans: builtins.list[int]
    #: The data class of what it gives, if it is one.
    record: type | None = None
    #: Names of globals that it assigns: it gives them behind the rest.
    back: Sequence[str] = ()

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            function: str,
            args: builtins.list[ast.expr],
            order: builtins.list[int],
            optional: builtins.list[int],
            spans: builtins.list[int],
            gives: int,
            may_be_none: builtins.list[int],
            gives_lists: builtins.list[int],
            gives_spans: builtins.list[int],
        ) -> None: ...


class Query(ast.expr):
    """A statement of SQL with parameters ``$1``, ``$2``, ..., and their values."""

    _fields = ("text", "args")
    text: str
    args: builtins.list[ast.expr]

    if TYPE_CHECKING:

        def __init__(self, *, text: str, args: builtins.list[ast.expr]) -> None: ...


class Empty(ast.expr):
    """A list without elements, of what kind is seen later."""

    _fields = ()


class Zero(ast.expr):
    """The number 0, of the class that is added to it, or that is compared with it."""

    _fields = ()


class Declared(ast.stmt):
    """A name that has a value wherever it is used from here on."""

    _fields = ("name",)
    name: str

    if TYPE_CHECKING:

        def __init__(self, *, name: str) -> None: ...


class Element(ast.expr):
    """An element of a list, at a place that is there, from 0."""

    _fields = ("list", "place")
    list: ast.expr
    place: ast.expr

    if TYPE_CHECKING:

        def __init__(self, *, list: ast.expr, place: ast.expr) -> None: ...


class SetElement(ast.stmt):
    """An element of a list becomes another."""

    _fields = ("list", "place", "value")
    list: ast.expr
    place: ast.expr
    value: ast.expr

    if TYPE_CHECKING:

        def __init__(self, *, list: ast.expr, place: ast.expr, value: ast.expr) -> None: ...


class Received(ast.stmt):
    """Names become the columns of a row, or the values of a function that gives several."""

    _fields = ("names", "value")
    names: builtins.list[str]
    value: ast.expr

    if TYPE_CHECKING:

        def __init__(self, *, names: builtins.list[str], value: ast.expr) -> None: ...


class Append(ast.stmt):
    """A list grows by an element."""

    _fields = ("list", "value")
    list: ast.expr
    value: ast.expr

    if TYPE_CHECKING:

        def __init__(self, *, list: ast.expr, value: ast.expr) -> None: ...


#: How deep the database reads JSON.
_DEPTH = 120


def json_of(node: ast.AST, depth: int = 0) -> dict[str, Any]:
    """A node with its class and place, as JSON has it.

    Raises ``Refused`` for what stands too deep within others.
    """
    if depth > _DEPTH:
        raise Refused(node, "parts this deep", "give a part of it a name, and write that")
    made: dict[str, Any] = {"class": type(node).__name__}
    if hasattr(node, "lineno"):
        made["at"] = [node.lineno, node.col_offset, node.end_lineno, node.end_col_offset]  # type: ignore[attr-defined]
    if isinstance(node, ast.Constant):
        made["type"] = type(node.value).__name__
        value = node.value
        # Digits as they are: JSON knows no large numbers.
        made["value"] = repr(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
        if not isinstance(made["value"], (bool, str, type(None))):
            made["value"] = None
        return made
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            made[field] = json_of(value, depth + 1)
        elif isinstance(value, list):
            made[field] = [json_of(part, depth + 2) if isinstance(part, ast.AST) else part for part in value]
        else:
            made[field] = value
    return made
