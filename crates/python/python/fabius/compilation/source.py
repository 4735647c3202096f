"""A function as it is written, and what is said of it at its place in its file."""

from __future__ import annotations

import ast
import inspect
import itertools
import linecache
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import DatabaseError, NotSupportedError
from .refusal import Refused

__all__ = ["CompilationError", "Source", "explained", "placed", "error_at", "function_of", "source_of"]

#: Numbers of functions that came as texts.
_TEXTS = itertools.count(1)


class CompilationError(NotSupportedError):
    """A function says something that a program cannot do; the message says what, where, and what to write instead."""


class Source(NamedTuple):
    """A function as it is written: its lines, and what they say."""

    text: str
    #: Where it begins in its file.
    line: int
    file: str
    tree: ast.stmt


def source_of(function: Callable[..., Any]) -> Source:
    """A function's source, without its decorators; line 1 of its tree is that of `def`, and its expressions have
    numbers."""
    file = inspect.getsourcefile(function) or "<unknown>"
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise CompilationError(
            f"the source of {function.__qualname__} is not there: define it in a file, a notebook or the shell of "
            "Python 3.13, give its text (db.transaction('def f(...): ...')), or run it in the client's process "
            "(side='client')"
        ) from None
    text = "".join(lines)
    # Within something, it is as far to the right as it is there.
    is_within = lines[0][:1].isspace()
    try:
        module = ast.parse(f"if True:\n{text}" if is_within else text)
    except SyntaxError:
        raise error_at(file, first, "only a function that is defined by `def`, in lines of its own, can be compiled")
    begin = next((node for node in ast.walk(module) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))), None)
    if begin is None or begin.name != function.__name__:
        raise error_at(file, first, "only a function that is defined by `def` can be compiled")
    number = begin.lineno - is_within
    ast.increment_lineno(module, 1 - begin.lineno)
    # Contexts and operators are objects that all trees share.
    for place, node in enumerate(node for node in ast.walk(begin) if isinstance(node, ast.expr)):
        node.number = place  # type: ignore[attr-defined]
    return Source("".join(lines[number - 1 :]), first + number - 1, file, begin)


def function_of(text: str, names: dict[str, Any]) -> Callable[..., Any]:
    """The function that a text defines, in which these names are global; its source is found like that of others."""
    file = f"<transaction {next(_TEXTS)}>"
    text = textwrap.dedent(text).strip("\n") + "\n"
    try:
        module = ast.parse(text, file)
    except SyntaxError as error:
        raise error_at(file, error.lineno or 1, f"this is no Python: {error.msg}") from None
    if len(module.body) != 1 or not isinstance(module.body[0], ast.FunctionDef):
        raise error_at(file, 1, "a text that is a transaction has one `def`, and nothing else")
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    defined: dict[str, Any] = {}
    exec(compile(module, file, "exec"), names, defined)
    function: Callable[..., Any] = defined[module.body[0].name]
    return function


def error_at(file: str, line: int, message: str) -> CompilationError:
    error = CompilationError(f"{file}:{line}: {message}")
    error.sqlstate = "0A000"
    return error


def placed(refused: Refused, source: str, first: int, file: str) -> CompilationError:
    """A refusal at its place in the user's file."""
    line = getattr(refused.node, "lineno", 1)
    text = source.splitlines()[line - 1]
    begin = len(text.encode()[: getattr(refused.node, "col_offset", 0)].decode(errors="ignore"))
    is_one_line = getattr(refused.node, "end_lineno", None) == line
    end = getattr(refused.node, "end_col_offset", None) if is_one_line else None
    width = len(text.encode()[:end].decode(errors="ignore")) - begin if end is not None else len(text) - begin
    error = error_at(file, first + line - 1, f"a compiled transaction cannot have {refused.what}")
    error.detail = f"{text}\n{' ' * begin}{'^' * max(width, 1)}"
    error.hint = refused.instead
    return error


def explained(error: DatabaseError, function: Callable[..., Any]) -> CompilationError:
    """An error of the database about a function, at its place in the user's file."""
    source = source_of(function)
    line = _line_of(error.detail)
    place = f"{source.file}:{source.line + (line or 1) - 1}: "
    said = CompilationError(f"{place}{error.args[0]}")
    said.sqlstate, said.hint = error.sqlstate, error.hint
    said.detail = error.detail.partition("\n")[2] if error.detail and line else error.detail
    return said


def _line_of(detail: str | None) -> int | None:
    word = (detail or "").partition(":")[0].removeprefix("line ")
    return int(word) if word.isdigit() else None
