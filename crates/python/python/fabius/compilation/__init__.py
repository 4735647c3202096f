"""Functions as programs: their syntax tree, which the database lowers, and the types of their arguments.

A function is read by Python's own ``ast`` from its source (never from bytecode, whose format changes with every
release). It is known to the database under a hash of what it says, so that old and new versions of a program run side
by side.

=============== ======================================================================
``source``      a function as it is written
``kinds``       what its annotations say
``body``        what it does, as it is sent
``program``     how it is called, and what its caller gets
``kernel``      what a function is made of when it is sent
``captures``    what it takes from outside: globals, the time, chance, other functions
``statements``  statements in fewer words
``expressions`` expressions in fewer words
``collections`` lists, sets and dictionaries
``loops``       how collections and rows are gone through
``ordering``    order by keys
``texts``       texts that are taken apart, and f-strings
``moments``     moments, and times between them
``records``     data classes
``tuples``      tuples with a name
``names``       what names hold; how nodes are made
``handlers``    exceptions that are caught
``refusal``     what a program cannot do
=============== ======================================================================
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import threading
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from ..values import Json
from .body import Body
from .kinds import TYPES, Kind, kind_of, names
from .program import Compiled
from .records import fields_of, is_record
from .refusal import Refused
from .source import CompilationError, error_at, explained, placed, source_of

if TYPE_CHECKING:
    from ..database import Database

__all__ = ["CompilationError", "Compiled", "Kind", "compiled", "explained"]

#: One thread compiles at a time: `ast.parse` is not for several in some versions of Python.
_compiling = threading.RLock()


#: Functions that are being compiled, each for another that calls it.
_under_way: list[Callable[..., Any]] = []


def compiled(function: Callable[..., Any], database: Database) -> Compiled:
    """Reads a function, and those that it calls.

    Raises ``CompilationError`` if its source is not there, if its annotations are of no type of SQL, or if it says
    something that a program cannot do.
    """
    with _compiling:
        return _compiled(function, database)


def _compiled(function: Callable[..., Any], database: Database) -> Compiled:
    if not isinstance(function, types.FunctionType):
        name = getattr(function, "__name__", type(function).__name__)
        raise CompilationError(f"{name} is no function that is defined by `def`: only those can be compiled")
    if hasattr(function, "__wrapped__"):
        raise CompilationError(
            f"{function.__qualname__} is decorated by something else: compile what it decorates, "
            "or run it in the client's process (side='client')"
        )
    source, first, file, tree = source_of(function)
    if function in _under_way:
        raise error_at(file, first, f"{function.__qualname__} calls itself: write a loop")
    if not isinstance(tree, ast.FunctionDef):
        raise error_at(file, first, "a transaction waits for nothing: define it by `def`, and await its call (acall)")
    program = _declared(function, file, first)
    program.file, program.line = file, first
    _under_way.append(function)
    try:
        body = Body(function, tree, source, database, program)
        text = json.dumps(body.json(), ensure_ascii=False)
        text.encode()
    except Refused as refused:
        raise placed(refused, source, first, file) from None
    except RecursionError:
        raise error_at(file, first, "parts this deep: divide it") from None
    except UnicodeEncodeError:
        raise error_at(file, first, "a text with half a character (a surrogate): leave it out") from None
    finally:
        _under_way.pop()
    names = [f'"py {name}" {kind.sql}' for name, kind in zip(program.signature.parameters, program.kinds)]
    names += [f'"py {capture.name}" {TYPES[capture.kind]}' for capture in program.captures]
    given = program.given
    gives = f" returns {given[0].sql if given else 'void'}"
    if len(given) > 1:
        names += [f'out "value {number + 1}" {kind.sql}' for number, kind in enumerate(given)]
        gives = ""
    said = f"({', '.join(names)}){gives} language python as {_literal(text)}"
    program.name = f"py {function.__name__} {hashlib.sha256(said.encode(errors='surrogatepass')).hexdigest()[:16]}"
    program.definition = f'create or replace function "{program.name}"{said}'
    return program


def _declared(function: Callable[..., Any], file: str, first: int) -> Compiled:
    """What a function's annotations say."""
    signature = inspect.signature(function)
    kinds: list[Kind] = []
    try:
        hints = get_type_hints(function)
    except Exception as error:
        raise error_at(file, first, f"an annotation is not understood: {error}") from None
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise error_at(file, first, f"parameter {parameter.name!r} takes several values: name them one by one")
        kind = kind_of(hints.get(parameter.name))
        if kind is None:
            raise error_at(
                file,
                first,
                f"parameter {parameter.name!r} needs an annotation: one of {names()}, a list of it, or it or None; "
                "or fabius.Json",
            )
        kinds.append(kind)
    hint = hints.get("return")
    is_tuple = get_origin(hint) is tuple
    parts = get_args(hint) if is_tuple else () if hint in (None, type(None)) else (hint,)
    record = hint if is_record(hint) else None
    if record is not None:
        fields = get_type_hints(record)
        parts = tuple(fields[name] for name in fields_of(record))
        is_tuple = len(parts) > 1
        if any(get_origin(part) is list for part in parts):
            raise error_at(file, first, f"a list in {record.__name__}: return it beside the others, in a tuple")
    returns = [kind_of(part) for part in parts]
    if any(kind is not None and kind.of is Json for kind in returns):
        raise error_at(file, first, "a function returns no document: read it by db.execute('select ...')")
    if None in returns or (is_tuple and len(returns) < 2):
        raise error_at(file, first, f"the result needs an annotation: one of {names()}, a list, a tuple, or None")
    found = tuple(kind for kind in returns if kind is not None)
    program = Compiled(function, signature, tuple(kinds), found, is_tuple)
    program.record = record
    return program


def _literal(text: str) -> str:
    tag = "$py$"
    while tag in text:
        tag = f"{tag[:-1]}_$"
    return f"{tag}{text}{tag}"
