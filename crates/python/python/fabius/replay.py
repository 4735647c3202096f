"""Calls of the log, looked at again: the function runs once more in this process, on the state that its call saw.

What the call captured (the time, random numbers, globals) is what it was. Nothing of what it does is kept, so it can be
gone through as often as one likes, while the database goes on.
"""

from __future__ import annotations

import ast
import datetime
import inspect
import io
import itertools
import pdb
import types
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from . import transactions
from .compilation import Compiled
from .compilation.captures import OPENED, names_outside
from .compilation.names import at
from .compilation.source import source_of
from .errors import DatabaseError, NotSupportedError, ProgrammingError
from .remote import Server

if TYPE_CHECKING:
    from . import _fabius
    from .database import Database
    from .transactions import Transaction

__all__ = ["Replay"]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


class Replay:
    """A call of the log, and the state that it saw; see :meth:`fabius.Database.replay`."""

    def __init__(self, database: Database, seq: int) -> None:
        from .database import Database

        if not isinstance(seq, int) or seq < 0:
            no_place = ProgrammingError(f"{seq!r} is no place in the log")
            no_place.hint = "a call that aborted or only read has none: go through it by .client(...)"
            raise no_place
        native = database._native
        if isinstance(native, Server):
            error = NotSupportedError("the log is the server's: this process cannot replay it")
            error.hint = "open the server's directory, or a copy of it, with fabius.open"
            raise error
        before, call = native.replay(seq)
        #: Its place in the order.
        self.seq = seq
        #: When it got that.
        self.time = _EPOCH + datetime.timedelta(microseconds=call.time_us)
        #: The key under which it happens once.
        self.key = call.key.decode(errors="replace") if call.key is not None else None
        self._database = database
        self._before = Database(before)
        self._session = before.connect()
        try:
            self.function, self._values = self._find(call)
        except BaseException:
            self.close()
            raise

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments by the names of the parameters; those that the program has no use for are not kept, and
        ``None`` here."""
        return dict(zip(self.function.program().signature.parameters, self._values))

    def run(self) -> Any:
        """Runs the function again: what it returns, or raises."""
        return self._again(lambda function, *arguments, **named: function(*arguments, **named))

    def debug(self, debugger: pdb.Pdb | None = None) -> Any:
        """Runs the function again in a debugger, from its first line on."""
        return self._again((debugger or pdb.Pdb()).runcall)

    def execute(self, text: str, parameters: Any = None) -> Any:
        """Runs a statement on the state that the call saw; what it writes stays with this replay."""
        return self._before.execute(text, parameters)

    def _again(self, call: Callable[..., Any]) -> Any:
        program = self.function.program()
        count = len(program.kinds)
        made = _made_again(program, self._values[count:], {})
        with self._before._session() as connection:
            connection.execute("begin")
            try:
                with transactions.entered(self._database, transactions.Run(self._before, connection)):
                    arguments, named = _arguments(program, self._values[:count])
                    return call(made, *arguments, **named)
            finally:
                connection.rollback()

    def _find(self, call: _fabius.LoggedCall) -> tuple[Transaction[..., Any], Sequence[Any]]:
        """The function whose call it is, and what it was called with."""
        for function in reversed(list(self._database._defined)):
            if function.is_in_client():
                continue
            program = function.program()
            kinds = enumerate(program.kinds)
            optional = [place for place, kind in kinds if kind.is_optional]
            values = self._parameters_of(program.statement, optional, call)
            if values is not None:
                return function, [kind.answered(value) for kind, value in zip(program.all_kinds, values)]
        raise self._unknown(call)

    def _parameters_of(self, text: str, optional: Sequence[int], call: _fabius.LoggedCall) -> Sequence[Any] | None:
        try:
            return self._session.parameters_of(text, optional, call)
        except DatabaseError:
            # It was not there then.
            return None

    def _unknown(self, call: _fabius.LoggedCall) -> ProgrammingError:
        """That the call is of no function that is defined here; if it was one, what that was."""
        functions = self._before.execute(
            "select p.proname, p.prosrc, p.pronargs, p.prorettype = 'record'::regtype from pg_proc p "
            "join pg_language l on l.oid = p.prolang where l.lanname = 'python' order by 1"
        )
        for name, body, count, is_tuple in functions:
            quoted = '"' + name.replace('"', '""') + '"'
            places = ", ".join(f"${number + 1}" for number in range(count))
            text = f"select {'* from ' if is_tuple else ''}{quoted}({places})"
            if self._parameters_of(text, range(count), call) is not None:
                error = ProgrammingError(
                    f"call {self.seq} is one of {name.split()[1]}, which is not defined here as it was"
                )
                error.detail = body
                error.hint = "define it with @db.transaction as it was then"
                return error
        error = ProgrammingError(f"call {self.seq} is not one of a function in Python")
        error.detail = call.program
        return error

    def close(self) -> None:
        """Forgets the state."""
        self._session.close()
        self._before.close()

    def __enter__(self) -> Replay:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        name = self.function.program().function.__qualname__
        return f"<Replay of call {self.seq}: {name}({arguments}) at {self.time:%Y-%m-%d %H:%M:%S.%f}>"


#: The name of what has all that a function took from outside.
_TAKEN = "what was taken"

#: Each call of a function has taken what is its own.
_numbers = itertools.count()

#: Stands for a global that is assigned, whose value is that of all functions.
_IN_COMMON = object()


class _AsTaken(ast.NodeTransformer):
    """Puts in a function what it took from outside in the places where it did; all else stays as it is written."""

    def __init__(self, taken: Mapping[int, str], owner: str) -> None:
        self._taken, self._owner = taken, owner

    def visit(self, node: ast.AST) -> Any:
        name = self._taken.get(getattr(node, "number", -1))
        if name is None:
            return super().visit(node)
        # Patterns of `match` may have attributes, but no names.
        return at(ast.Attribute(at(ast.Name(self._owner, ast.Load()), node), name, ast.Load()), node)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.stmt:
        # What comes from around the function is around it here, too.
        return at(ast.Global(node.names), node)


def _arguments(program: Compiled, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """The values of a function's parameters as it takes them: by their places, or by their names alone."""
    arguments, named = [], {}
    for parameter, value in zip(program.signature.parameters.values(), values):
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            named[parameter.name] = value
        else:
            arguments.append(value)
    return arguments, named


def _made_again(
    program: Compiled, captured: Sequence[Any], modules: dict[int, dict[str, Any]], *, is_called: bool = False
) -> Callable[..., Any]:
    """A function at its place in its file, with what it captured; functions of one module have their globals in
    common."""
    function = program.function
    source = source_of(function)
    taken = f"{_TAKEN} #{next(_numbers)}"
    values = {capture.name: value for capture, value in zip(program.captures, captured) if value is not _IN_COMMON}
    known = {number: name for number, name in program.taken.items() if name in {*values, *program.calls, OPENED}}
    tree: Any = _AsTaken(known, taken).visit(source.tree)
    tree.decorator_list = []
    # Defaults were computed when the function was defined.
    tree.args.defaults = [ast.Constant(None) for _ in tree.args.defaults]
    tree.args.kw_defaults = [None if one is None else ast.Constant(None) for one in tree.args.kw_defaults]
    ast.increment_lineno(tree, source.line - 1)
    names = names_outside(function)
    if not function.__closure__:
        names = modules.setdefault(id(function.__globals__), names)
    called = {
        name: _made_again(
            callee, [values.get(str(capture), _IN_COMMON) for capture in captures], modules, is_called=True
        )
        for name, (callee, captures) in program.calls.items()
    }
    for name, one in program.assigned.items():
        # Who calls it has given globals what they were.
        if not is_called:
            module = inspect.unwrap(one.function).__globals__
            at_hand = modules.setdefault(id(module), dict(module)) if one.is_global else names
            at_hand[one.name] = values[name]
    # Nothing is kept of what comes to be in files.
    opened = {OPENED: lambda path, *_, **__: io.StringIO()}
    names[taken] = types.SimpleNamespace(**values, **called, **opened)
    exec(compile(ast.fix_missing_locations(ast.Module([tree], [])), source.file, "exec"), names)
    made: Any = names[function.__name__]
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return cast("Callable[..., Any]", made)
