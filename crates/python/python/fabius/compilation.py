"""Functions as programs: their syntax tree, which the database lowers, and the types of their arguments.

A function is read by Python's own ``ast`` from its source (never from bytecode, whose format changes with every
release). It is known to the database under a hash of what it says, so that old and new versions of a program run side
by side.
"""

from __future__ import annotations

import ast
import datetime
import decimal
import hashlib
import inspect
import json
import textwrap
import uuid
from collections.abc import Callable
from typing import Any, get_type_hints

from .errors import NotSupportedError, ProgrammingError

__all__ = ["CompilationError", "Compiled", "compiled"]

#: Types of SQL by the classes that annotations name.
_TYPES: dict[Any, str] = {
    bool: "boolean",
    int: "bigint",
    float: "double precision",
    decimal.Decimal: "numeric",
    str: "text",
    bytes: "bytea",
    uuid.UUID: "uuid",
    datetime.date: "date",
    datetime.datetime: "timestamptz",
    datetime.timedelta: "interval",
    None: "void",
    type(None): "void",
}


#: Functions of Python that programs have.
_BUILTINS = frozenset(("abs", "bool", "len", "max", "min", "range", "str"))


class CompilationError(NotSupportedError):
    """A function says something that a program cannot do; the message says what, where, and what to write instead."""


class Compiled:
    """A function as the database knows it."""

    def __init__(
        self, name: str, definition: str, signature: inspect.Signature, types: tuple[Any, ...], returns: Any
    ) -> None:
        self.name = name
        self.definition = definition
        self.signature = signature
        self.types = types
        #: Whether it gives a value.
        self.returns = returns not in (None, type(None))

    @property
    def call(self) -> str:
        """The statement that calls it."""
        places = ", ".join(["%s"] * len(self.types))
        return f'select "{self.name}"({places})'

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The values of its parameters for a call."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        for (name, value), kind in zip(bound.arguments.items(), self.types, strict=True):
            is_fit = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
            if not is_fit:
                wanted = getattr(kind, "__name__", str(kind))
                raise TypeError(f"argument {name!r} is annotated {wanted}, but {type(value).__name__} is given")
            if kind is int and not -(2**63) <= value < 2**63:
                raise OverflowError(f"argument {name!r} does not fit in 64 bits")
        return tuple(bound.arguments.values())


def compiled(function: Callable[..., Any], database: object) -> Compiled:
    """Reads a function.

    Raises ``CompilationError`` if its source is not there or its annotations are of no type of SQL.
    """
    source, first, file = _source(function)
    module = ast.parse(source)
    tree = module.body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise _refused(file, first, "only a function that is defined by `def` can be compiled")
    signature = inspect.signature(function)
    types = []
    hints = get_type_hints(function)
    for parameter in signature.parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise _refused(file, first, f"parameter {parameter.name!r} takes several values: name them one by one")
        kind = hints.get(parameter.name)
        if kind not in _TYPES or kind in (None, type(None)):
            raise _refused(
                file, first, f"parameter {parameter.name!r} needs an annotation, one of {', '.join(_names())}"
            )
        types.append(kind)
    returns = hints.get("return", None)
    if returns not in _TYPES:
        raise _refused(file, first, f"the result needs an annotation, one of {', '.join(_names())}, or none at all")
    names = _names_of(function, tree, database)
    body = {"source": source, "tree": _node(tree), **names}
    text = json.dumps(body, ensure_ascii=False)
    parameters = ", ".join(
        f'"py {name}" {_TYPES[kind]}' for name, kind in zip(signature.parameters, types, strict=True)
    )
    said = f"({parameters}) returns {_TYPES[returns]} language python as {_literal(text)}"
    name = f"py {function.__name__} {hashlib.sha256(said.encode()).hexdigest()[:16]}"
    return Compiled(name, f'create or replace function "{name}"{said}', signature, tuple(types), returns)


def _names() -> list[str]:
    return [kind.__name__ for kind in _TYPES if kind not in (None, type(None))]


def _source(function: Callable[..., Any]) -> tuple[str, int, str]:
    """A function's source, the line where it begins, and its file."""
    file = inspect.getsourcefile(function) or "<unknown>"
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise CompilationError(
            f"the source of {function.__qualname__} is not there: define it in a file, a notebook or the shell, "
            "or run it in this process (compiled=False)"
        ) from None
    text = textwrap.dedent("".join(lines))
    # Decorators are none of what it does.
    begin = next(
        node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
    kept = text.splitlines(keepends=True)[begin.lineno - 1 :]
    return "".join(kept), first + begin.lineno - 1, file


def _refused(file: str, line: int, message: str) -> CompilationError:
    error = CompilationError(f"{file}:{line}: {message}")
    error.sqlstate = "0A000"
    return error


def _names_of(function: Callable[..., Any], tree: ast.FunctionDef, database: object) -> dict[str, str]:
    """The names by which the function knows its database and this package."""
    import fabius

    seen = inspect.getclosurevars(function)
    known = {**seen.globals, **seen.nonlocals}
    # A name that is neither stands for nothing that a program knows.
    names = {"database": "", "package": ""}
    own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    taken = sorted(_BUILTINS & {*known, *own, *inspect.signature(function).parameters})
    if taken:
        raise CompilationError(f"{function.__qualname__}: {taken[0]!r} is not Python's own: give it another name")
    for name, value in known.items():
        if value is database:
            names["database"] = name
        elif value is fabius:
            names["package"] = name
    return names


def _node(node: ast.AST) -> dict[str, Any]:
    """A node of a syntax tree with its class and place."""
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
            made[field] = _node(value)
        elif isinstance(value, list):
            made[field] = [_node(part) if isinstance(part, ast.AST) else part for part in value]
        else:
            made[field] = value
    return made


def _literal(text: str) -> str:
    tag = "$py$"
    while tag in text:
        tag = f"{tag[:-1]}_$"
    return f"{tag}{text}{tag}"


def explained(error: ProgrammingError | NotSupportedError, function: Callable[..., Any]) -> CompilationError:
    """An error of the database about a function, at its place in the user's file."""
    _, first, file = _source(function)
    line = _line_of(error.detail)
    place = f"{file}:{first + line - 1}: " if line else ""
    said = CompilationError(f"{place}{error.args[0]}")
    said.sqlstate, said.hint = error.sqlstate, error.hint
    said.detail = error.detail.partition("\n")[2] if error.detail and line else error.detail
    return said


def _line_of(detail: str | None) -> int | None:
    word = (detail or "").partition(":")[0].removeprefix("line ")
    return int(word) if word.isdigit() else None
