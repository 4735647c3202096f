"""Functions as programs: their syntax tree, which the database lowers, and the types of their arguments.

A function is read by Python's own ``ast`` from its source (never from bytecode, whose format changes with every
release). It is known to the database under a hash of what it says, so that old and new versions of a program run side
by side.

=============== ======================================================================
``kernel``      what a function is made of when it is sent
``captures``    what it takes from outside: globals, the time, chance, other functions
``statements``  statements in fewer words
``expressions`` expressions in fewer words
``collections`` lists, sets and dictionaries
``names``       what names hold; how nodes are made
``refusal``     what a program cannot do
=============== ======================================================================
"""

from __future__ import annotations

import ast
import builtins
import datetime
import decimal
import hashlib
import inspect
import json
import logging
import sys
import threading
import types
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from ..errors import DatabaseError, Error, NotSupportedError, ProgrammingError
from .captures import Capture, Captures, names_outside
from .kernel import ASSIGNED, BARE, LOGGED, PRINTED, RAISED, json_of
from .names import OWN, Shapes, copied
from .refusal import Refused
from .statements import Desugaring

if TYPE_CHECKING:
    from ..database import Database

__all__ = ["CompilationError", "Compiled", "Kind", "compiled"]

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
}

_INT_MAX = 2**63 - 1

#: Digits behind the point that a `numeric` without a scale keeps.
_DIGITS = 10

#: Functions of Python that programs have.
_BUILTINS = frozenset(
    "abs all any bool dict enumerate float int len list max min print range reversed round set sorted str sum "
    "zip".split()
)


class Kind(NamedTuple):
    """What an annotation says: a class, whether it is a list of it, and whether it may be ``None``."""

    of: type
    is_list: bool = False
    is_optional: bool = False

    @property
    def sql(self) -> str:
        """The type in SQL."""
        return _TYPES[self.of] + "[]" * self.is_list

    @property
    def name(self) -> str:
        """How it is annotated."""
        name = f"list[{self.of.__name__}]" if self.is_list else self.of.__name__
        return f"{name} | None" if self.is_optional else name

    def check(self, name: str, value: Any) -> None:
        """Raises ``TypeError`` or ``OverflowError`` if a value is not of this kind."""
        if not self.fits(value):
            given = "a datetime without a time zone" if isinstance(value, datetime.datetime) else type(value).__name__
            raise TypeError(f"argument {name!r} is annotated {self.name}, but {given} is given")
        numbers = value if self.is_list else (value,)
        if self.of is int and not all(-(2**63) <= (number or 0) < 2**63 for number in numbers):
            raise OverflowError(f"argument {name!r} does not fit in 64 bits")
        if self.of is decimal.Decimal and not all(map(_is_kept, numbers)):
            raise ValueError(f"argument {name!r} has more than {_DIGITS} digits behind the point, or is no number")

    def plain(self, value: Any) -> Any:
        """A value without what a class of the user's adds to it (``IntEnum``)."""
        if self.is_list and value is not None:
            return [_plain(self.of, element) for element in value]
        return _plain(self.of, value)

    def fits(self, value: Any) -> bool:
        """Whether a value is of this kind."""
        if value is None:
            return self.is_optional
        if self.is_list:
            return isinstance(value, (list, tuple)) and all(_is_of(self.of, element) for element in value)
        return _is_of(self.of, value)


def _is_kept(value: decimal.Decimal | None) -> bool:
    """Whether all its digits are kept."""
    if value is None:
        return True
    if not value.is_finite():
        return False
    exponent = value.normalize(decimal.Context(prec=100)).as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -_DIGITS


def _plain(kind: type, value: Any) -> Any:
    if type(value) is kind or value is None:
        return value
    if kind in (int, float):
        return kind(value)
    return str.__str__(value) if kind is str else value


def _is_of(kind: type, value: Any) -> bool:
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind in (int, datetime.date):
        # Neither a truth nor a moment, though Python derives them.
        return isinstance(value, kind) and not isinstance(value, (bool, datetime.datetime))
    if kind is datetime.datetime and isinstance(value, kind) and value.tzinfo is None:
        # A moment without a zone is none.
        return False
    return isinstance(value, kind)


#: The most usual kind.
_INT = Kind(int)


def _kind(hint: Any) -> Kind | None:
    """What an annotation says, if it is of SQL."""
    if hint is int:
        return _INT
    if get_origin(hint) in (Union, types.UnionType):
        others = [part for part in get_args(hint) if part is not type(None)]
        inner = _kind(others[0]) if len(others) == 1 else None
        return inner._replace(is_optional=True) if inner and not inner.is_list else None
    if get_origin(hint) is list and get_args(hint):
        inner = _kind(get_args(hint)[0])
        return inner._replace(is_list=True) if inner and not inner.is_list and not inner.is_optional else None
    return Kind(hint) if isinstance(hint, type) and hint in _TYPES else None


class CompilationError(NotSupportedError):
    """A function says something that a program cannot do; the message says what, where, and what to write instead."""


class Compiled:
    """A function as the database knows it."""

    def __init__(
        self,
        function: Callable[..., Any],
        signature: inspect.Signature,
        kinds: tuple[Kind, ...],
        returns: tuple[Kind, ...],
        is_tuple: bool,
    ) -> None:
        self._function = function
        self.signature = signature
        self.kinds = kinds
        #: What it gives: nothing, a value, or several.
        self.returns = returns
        self.is_tuple = is_tuple
        self.name = ""
        self.definition = ""
        self._statement = ""
        self._parameters = tuple(signature.parameters)
        self._has_names = any(one.kind is one.KEYWORD_ONLY for one in signature.parameters.values())
        #: Where it begins in its file.
        self.file, self.line = "", 1
        #: Programs that it calls, by their names in the database.
        self.callees: dict[str, Compiled] = {}
        #: What is computed when it is called.
        self.captures: list[Capture] = []
        #: Globals that it assigns.
        self.assigned: dict[str, type] = {}
        #: Classes of exceptions that it raises, by how they are written.
        self.raises: dict[str, type[BaseException]] = {}

    def _select(self, arguments: str) -> str:
        return f'select {"* from " if self.is_tuple else ""}"{self.name}"({arguments})'

    def explained(self) -> str:
        """The statement that explains it."""
        kinds = [*self.kinds, *(Kind(capture.kind) for capture in self.captures)]
        values = [f"'{{}}'::{kind.sql}" if kind.is_list else f"null::{kind.sql}" for kind in kinds]
        return f"explain {self._select(', '.join(values))}"

    def arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """The values of its parameters for a call."""
        if kwargs or len(args) != len(self.kinds) or self._has_names:
            bound = self.signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args = tuple(bound.arguments.values())
        values = list(args)
        for place, kind in enumerate(self.kinds):
            value = args[place]
            # What most arguments are.
            if type(value) is int and kind is _INT and -_INT_MAX <= value <= _INT_MAX:
                continue
            kind.check(self._parameters[place], value)
            values[place] = kind.plain(value)
        if self.captures:
            values.extend(self._captured())
        return values

    def _captured(self) -> Iterator[Any]:
        for capture in self.captures:
            value = capture.value()
            Kind(capture.kind).check(capture.text, value)
            yield value

    @property
    def statement(self) -> str:
        """The statement that calls it, with parameters ``$1``, ``$2``, ..."""
        if not self._statement:
            count = len(self.kinds) + len(self.captures)
            self._statement = self._select(", ".join(f"${number + 1}" for number in range(count)))
        return self._statement

    def answered(self, answer: Any) -> Any:
        """What a call gives whose row and notices these are; does for the caller what it has said.

        Raises what ended it.
        """
        if isinstance(answer, BaseException):
            raise self.raised(answer) from None
        row, notices = answer
        for _, state, text in notices:
            self._do(state, text)
        if not self.returns:
            return None
        return row if self.is_tuple else row[0]

    def raised(self, error: BaseException) -> BaseException:
        """An error of the database as what the function raises."""
        if isinstance(error, Error) and error.sqlstate in (RAISED, "P0001", "P0002"):
            return self._raised(error)
        return error

    def _raised(self, error: Error) -> BaseException:
        """An error of the database as the function's own, at its place in the user's file."""
        from ..aborts import Aborted
        from ..tables import RowNotFound

        message = error.args[0]
        kind, where, line = ((error.detail or "").split("@") + ["", ""])[:3]
        made: BaseException
        if error.sqlstate == RAISED:
            made = self._exception(kind, message)
        elif error.sqlstate == "P0002" and not where:
            made = ProgrammingError("one row is wanted, but there are 0")
        else:
            made = (Aborted if error.sqlstate == "P0001" else RowNotFound)(message)
            made.sqlstate = error.sqlstate
        if line.isdigit():
            _place(made, self.callees.get(where, self), int(line))
        return made

    def _exception(self, kind: str, message: str) -> BaseException:
        """What the function raised: its class, and its argument in its own class."""
        name, _, of = kind.removeprefix(BARE).partition(":")
        raised = self.raises.get(name) or _builtin_exception(name)
        if kind.startswith(BARE):
            return raised()
        if of and message == "None":
            return raised(None)
        return raised(int(message) if of == "int" else message == "True" if of == "bool" else message)

    def _do(self, state: str, text: str) -> None:
        if state == PRINTED:
            sys.stdout.write(text)
        elif state == LOGGED:
            head, _, message = text.partition("\n")
            level, _, name = head.partition(" ")
            getattr(logging.getLogger(name or None), level)("%s", message)
        elif state == ASSIGNED:
            name, is_there, value = text.partition("=")
            self._give_back(name, _read(self.assigned[name], value) if is_there else None)

    def _give_back(self, name: str, value: Any) -> None:
        function = inspect.unwrap(self._function)
        if name in function.__code__.co_freevars:
            cells = function.__closure__ or ()
            cells[function.__code__.co_freevars.index(name)].cell_contents = value
        else:
            function.__globals__[name] = value


def _builtin_exception(kind: str) -> type[BaseException]:
    found = getattr(builtins, kind, None)
    return found if isinstance(found, type) and issubclass(found, BaseException) else RuntimeError


def _read(kind: type, text: str) -> Any:
    """A global's new value from its text."""
    return text == "True" if kind is bool else kind(text)


def _place(error: BaseException, program: Compiled, line: int) -> None:
    """Gives an exception the place in the user's file where it was raised."""
    code = compile("\n" * (program.line + line - 2) + "raise error", program.file, "exec")
    try:
        exec(code.replace(co_name=program._function.__qualname__), {"error": error})
    except BaseException as raised:
        trace = raised.__traceback__
        raised.__traceback__ = trace.tb_next if trace is not None else None


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
    source, first, file, tree = _source(function)
    if function in _under_way:
        raise _refused(file, first, f"{function.__qualname__} calls itself: write a loop")
    if not isinstance(tree, ast.FunctionDef):
        raise _refused(file, first, "a transaction waits for nothing: define it by `def`, and await its call (acall)")
    program = _declared(function, file, first)
    program.file, program.line = file, first
    _under_way.append(function)
    try:
        body = _Body(function, tree, source, database, program)
        text = json.dumps(body.json(), ensure_ascii=False)
        text.encode()
    except Refused as refused:
        raise _of(refused, source, first, file) from None
    except RecursionError:
        raise _refused(file, first, "parts this deep: divide it") from None
    except UnicodeEncodeError:
        raise _refused(file, first, "a text with half a character (a surrogate): leave it out") from None
    finally:
        _under_way.pop()
    names = [f'"py {name}" {kind.sql}' for name, kind in zip(program.signature.parameters, program.kinds)]
    names += [f'"py {capture.name}" {_TYPES[capture.kind]}' for capture in program.captures]
    gives = f" returns {program.returns[0].sql if program.returns else 'void'}"
    if program.is_tuple:
        names += [f'out "value {number + 1}" {kind.sql}' for number, kind in enumerate(program.returns)]
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
        raise _refused(file, first, f"an annotation is not understood: {error}") from None
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise _refused(file, first, f"parameter {parameter.name!r} takes several values: name them one by one")
        kind = _kind(hints.get(parameter.name))
        if kind is None:
            raise _refused(
                file,
                first,
                f"parameter {parameter.name!r} needs an annotation: one of {_names()}, a list of it, or it or None",
            )
        kinds.append(kind)
    hint = hints.get("return")
    is_tuple = get_origin(hint) is tuple
    parts = get_args(hint) if is_tuple else () if hint in (None, type(None)) else (hint,)
    returns = [_kind(part) for part in parts]
    if None in returns or (is_tuple and len(returns) < 2):
        raise _refused(file, first, f"the result needs an annotation: one of {_names()}, a list, a tuple, or None")
    found = tuple(kind for kind in returns if kind is not None)
    return Compiled(function, signature, tuple(kinds), found, is_tuple)


class _Body:
    """What a function does, as it is sent."""

    def __init__(
        self,
        function: Callable[..., Any],
        tree: ast.FunctionDef,
        source: str,
        database: Database,
        program: Compiled,
    ) -> None:
        self._function, self._tree, self._source = function, tree, source
        self._database, self._program = database, program

    def json(self) -> dict[str, Any]:
        """The body as JSON.

        Raises ``Refused`` for what a program cannot do.
        """
        import fabius

        tree, program = self._tree, self._program
        self._tree_before = list(tree.body)
        parameters = set(program.signature.parameters)
        self._take_globals()
        comprehended = {
            name
            for node in ast.walk(tree)
            if isinstance(node, ast.comprehension)
            for name in ast.walk(node.target)
            if isinstance(name, ast.Name)
        }
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        stored = {node.id for node in names if isinstance(node.ctx, ast.Store) and node not in comprehended}
        own = stored | parameters | set(program.assigned)
        self._refuse_taken({node.id for node in names} | own, own)
        known = {"the database": self._database, "the package": fabius}
        captures = Captures(self._function, own, set(program.assigned), self._program_of, known)
        statements = captures.block(tree.body)
        program.captures = [*program.captures, *captures.found.values()]
        program.raises = captures.raises
        program.callees = captures.called
        lists = {name for name, kind in zip(program.signature.parameters, program.kinds) if kind.is_list}
        statements, renamed = _own_lists(statements, lists & stored)
        tree.body = statements
        kept = (lists - stored) | {name for name in renamed.values()}
        mutable = {renamed[name] for name in lists & stored if _is_first_assigned(self._tree_before, name)}
        tree.body = Desugaring(Shapes(lists | kept, tree), (parameters | kept) - mutable).block(statements)
        optional = [name for name, kind in zip(program.signature.parameters, program.kinds) if kind.is_optional]
        made = json_of(tree)
        # Decorators, annotations and defaults are none of what it does.
        said = {"class": made["class"], "at": made["at"], "body": made["body"]}
        given = [*program.signature.parameters, *(capture.name for capture in program.captures)]
        return {
            # Who has read it, for whoever looks at it later.
            "interpreter": f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}",
            "flags": {"optimize": sys.flags.optimize},
            "source": self._source,
            "database": "the database",
            "package": "the package",
            "parameters": given,
            "optional": optional,
            "given back": sorted(program.assigned),
            "tree": said,
        }

    def _refuse_taken(self, used: set[str], own: set[str]) -> None:
        """Refuses names of Python's functions that mean something else here."""
        outside = names_outside(self._function)
        for name in sorted(_BUILTINS & used):
            if name in own or (name in outside and outside[name] is not getattr(builtins, name)):
                raise Refused(self._tree, f"{name!r}, which is not Python's own here", "give it another name")

    def _take_globals(self) -> None:
        """Globals that are assigned come in as arguments, and go back when the call has committed."""
        outside = names_outside(self._function)
        names = {
            name for node in ast.walk(self._tree) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names
        }
        for name in sorted(names):
            kind = type(outside.get(name))
            if kind not in (bool, int, str, decimal.Decimal):
                what = f"global {name}, which is no bool, int, str or Decimal now"
                raise Refused(self._tree, what, "give it a value before the function is defined")
            self._program.assigned[name] = kind
            self._program.captures.append(Capture(name, name, kind, self._function))

    def _program_of(self, called: Any) -> Compiled:
        """The program of a function that is called."""
        from ..transactions import Transaction

        if isinstance(called, Transaction):
            if called.database is not self._database:
                raise Refused(self._tree, f"a call of {called!r}, of another database", "call it outside")
            program = called.program()
        else:
            program = self._database._transaction(called).program()
        if program.assigned:
            raise Refused(self._tree, "a call of a function that assigns globals", "return what it assigns")
        if program.is_tuple:
            raise Refused(self._tree, "a call of a function that returns a tuple", "return one value")
        return program


def _own_lists(statements: list[ast.stmt], names: set[str]) -> tuple[list[ast.stmt], dict[str, str]]:
    """Gives lists that are parameters, and are assigned, names of their own; what the caller has stays as it is."""
    renamed = {name: name + OWN for name in sorted(names)}
    begin: list[ast.stmt] = []
    for name, own in renamed.items():
        place = statements[0]
        begin.append(
            ast.copy_location(
                ast.Assign([ast.copy_location(ast.Name(own, ast.Store()), place)], copied(name, place)), place
            )
        )
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id in renamed:
                node.id = renamed[node.id]
    return [*begin, *statements], renamed


def _is_first_assigned(statements: list[ast.stmt], name: str) -> bool:
    """Whether the first statement that has a name assigns it."""
    own = name + OWN
    for statement in statements:
        if any(isinstance(node, ast.Name) and node.id in (name, own) for node in ast.walk(statement)):
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            return any(isinstance(target, ast.Name) and target.id in (name, own) for target in targets)
    return False


def _of(refused: Refused, source: str, first: int, file: str) -> CompilationError:
    """A refusal at its place in the user's file."""
    line = getattr(refused.node, "lineno", 1)
    text = source.splitlines()[line - 1]
    begin = len(text.encode()[: getattr(refused.node, "col_offset", 0)].decode(errors="ignore"))
    is_one_line = getattr(refused.node, "end_lineno", None) == line
    end = getattr(refused.node, "end_col_offset", None) if is_one_line else None
    width = len(text.encode()[:end].decode(errors="ignore")) - begin if end is not None else len(text) - begin
    error = _refused(file, first + line - 1, f"a compiled transaction cannot have {refused.what}")
    error.detail = f"{text}\n{' ' * begin}{'^' * max(width, 1)}"
    error.hint = refused.instead
    return error


def _names() -> str:
    return ", ".join(kind.__name__ for kind in _TYPES)


class _Source(NamedTuple):
    """A function as it is written: its lines, and what they say."""

    text: str
    #: Where it begins in its file.
    line: int
    file: str
    tree: ast.stmt


def _source(function: Callable[..., Any]) -> _Source:
    """A function's source, without its decorators; line 1 of its tree is that of `def`."""
    file = inspect.getsourcefile(function) or "<unknown>"
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise CompilationError(
            f"the source of {function.__qualname__} is not there: define it in a file, a notebook or the shell, "
            "or run it in the client's process (side='client')"
        ) from None
    text = "".join(lines)
    # Within something, it is as far to the right as it is there.
    is_within = lines[0][:1].isspace()
    try:
        module = ast.parse(f"if True:\n{text}" if is_within else text)
    except SyntaxError:
        raise _refused(file, first, "only a function that is defined by `def`, in lines of its own, can be compiled")
    begin = next((node for node in ast.walk(module) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))), None)
    if begin is None or begin.name != function.__name__:
        raise _refused(file, first, "only a function that is defined by `def` can be compiled")
    number = begin.lineno - is_within
    ast.increment_lineno(module, 1 - begin.lineno)
    return _Source("".join(lines[number - 1 :]), first + number - 1, file, begin)


def _refused(file: str, line: int, message: str) -> CompilationError:
    error = CompilationError(f"{file}:{line}: {message}")
    error.sqlstate = "0A000"
    return error


def _literal(text: str) -> str:
    tag = "$py$"
    while tag in text:
        tag = f"{tag[:-1]}_$"
    return f"{tag}{text}{tag}"


def explained(error: DatabaseError, function: Callable[..., Any]) -> CompilationError:
    """An error of the database about a function, at its place in the user's file."""
    source = _source(function)
    line = _line_of(error.detail)
    place = f"{source.file}:{source.line + (line or 1) - 1}: "
    said = CompilationError(f"{place}{error.args[0]}")
    said.sqlstate, said.hint = error.sqlstate, error.hint
    said.detail = error.detail.partition("\n")[2] if error.detail and line else error.detail
    return said


def _line_of(detail: str | None) -> int | None:
    word = (detail or "").partition(":")[0].removeprefix("line ")
    return int(word) if word.isdigit() else None
