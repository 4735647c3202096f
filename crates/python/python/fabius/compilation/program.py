"""A function as the database knows it: how it is called, and what its caller gets."""

from __future__ import annotations

import builtins
import datetime
import functools
import inspect
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple

from .. import _fabius
from ..errors import Error, ProgrammingError
from .captures import Capture, place_of
from .kernel import BARE, BETWEEN, LOGGED, PRINTED, RAISED, WRITTEN
from .kinds import Kind
from .records import fields_of

__all__ = ["Assigned", "Compiled"]

#: Where in a function an error has come up, as the database says it.
_FRAME = re.compile(r'^Python function "(.*)" line (\d+)$', re.MULTILINE)


class Assigned(NamedTuple):
    """A global that a function assigns, or one that it calls."""

    kind: type
    name: str
    #: Whose global, or name around it, it is.
    function: Callable[..., Any]

    @property
    def is_global(self) -> bool:
        """Whether it is no name of a function around."""
        return self.name not in inspect.unwrap(self.function).__code__.co_freevars

    @property
    def place(self) -> tuple[int, str]:
        """What is the same for all who assign it."""
        return place_of(self.function, self.name)

    def become(self, value: Any) -> None:
        """Gives it a value."""
        function = inspect.unwrap(self.function)
        if self.is_global:
            function.__globals__[self.name] = value
        else:
            cells = function.__closure__ or ()
            cells[function.__code__.co_freevars.index(self.name)].cell_contents = value


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
        self._has_spans = any(kind.of is datetime.timedelta for kind in returns)
        self.name = ""
        self.definition = ""
        self._statement = ""
        self._parameters = tuple(signature.parameters)
        self._has_names = any(one.kind is one.KEYWORD_ONLY for one in signature.parameters.values())
        #: The data class of its result, if it is one.
        self.record: Any = None
        #: Where it begins in its file.
        self.file, self.line = "", 1
        #: Its calls of programs, by names of their own: which it calls, and the names of what that captured (none of
        #: globals that are assigned).
        self.calls: dict[str, tuple[Compiled, list[str | None]]] = {}
        #: What stands for parts of its source that come from outside, by the numbers of their nodes.
        self.taken: dict[int, str] = {}
        #: What is computed when it is called.
        self.captures: list[Capture] = []
        #: Whether moments have to be given in UTC.
        self.is_in_utc = False
        #: Globals that it assigns, by the names that they have in it; it gives them behind what it returns.
        self.assigned: dict[str, Assigned] = {}
        #: Whether it may divide by zero, or a function that it calls.
        self.divides = False
        #: Classes of exceptions that it raises, by how they are written.
        self.raises: dict[str, type[BaseException]] = {}

    @property
    def function(self) -> Callable[..., Any]:
        """The function as Python has it."""
        function: Callable[..., Any] = inspect.unwrap(self._function)
        return function

    @property
    def callees(self) -> dict[str, Compiled]:
        """Programs that it calls, by their names in the database."""
        return {callee.name: callee for callee, _ in self.calls.values()}

    @property
    def spans(self) -> list[str]:
        """Parameters and captures that are times between moments."""
        names = [name for name, kind in zip(self._parameters, self.kinds) if kind.of is datetime.timedelta]
        return names + [capture.name for capture in self.captures if capture.kind is datetime.timedelta]

    def look_at_moments(self) -> None:
        """It looks at parts of moments, or moves them: they have to be in UTC."""
        self.is_in_utc = True
        self.kinds = tuple(kind._replace(is_in_utc=kind.of is datetime.datetime) for kind in self.kinds)

    @property
    def given(self) -> list[Kind]:
        """What it gives its caller: what it returns, and globals."""
        return [*self.returns, *(Kind(self.assigned[name].kind) for name in sorted(self.assigned))]

    def _select(self, arguments: str) -> str:
        return f'select {"* from " if len(self.given) > 1 else ""}"{self.name}"({arguments})'

    def explained(self) -> tuple[str, list[Any]]:
        """The statement that explains it, with parameters ``$1``, ``$2``, ..., and their values."""
        return f"explain {self.statement}", [kind.plain(kind.sample) for kind in self.all_kinds]

    @property
    def all_kinds(self) -> list[Kind]:
        """What its parameters are, and behind them what is captured."""
        return [*self.kinds, *(Kind(capture.kind) for capture in self.captures)]

    def arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """The values of its parameters for a call."""
        if kwargs or len(args) != len(self.kinds) or self._has_names:
            bound = self.signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args = tuple(bound.arguments.values())
        values = self._plain.values(args) if self._plain is not None else None
        if values is None:
            values = self._looked_at(args)
        if self.captures:
            values.extend(self._captured())
        return values

    @functools.cached_property
    def _plain(self) -> _fabius.PlainParameters | None:
        """What takes arguments that are as they are annotated, if they can go to the database as they are."""
        if not all(kind.is_plain for kind in self.kinds):
            return None
        return _fabius.PlainParameters([(kind.of, kind.is_list, kind.is_optional) for kind in self.kinds])

    def _looked_at(self, args: tuple[Any, ...]) -> list[Any]:
        """Arguments as the database takes them.

        Raises ``TypeError``, ``ValueError`` or ``OverflowError`` for what is none.
        """
        values = list(args)
        for place, kind in enumerate(self.kinds):
            value = args[place]
            kind.check(self._parameters[place], value)
            values[place] = kind.plain(value)
        return values

    def _captured(self) -> Iterator[Any]:
        for capture in self.captures:
            value = capture.value()
            kind = Kind(capture.kind, is_in_utc=self.is_in_utc and capture.kind is datetime.datetime)
            kind.check(capture.text, value)
            yield kind.plain(value)

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
        if self.assigned:
            count = len(self.returns)
            for name, value in zip(sorted(self.assigned), row[count:]):
                self.assigned[name].become(value)
            row = row[:count]
        if not self.returns:
            return None
        if self._has_spans:
            row = tuple(kind.answered(value) for kind, value in zip(self.returns, row))
        if self.record is not None:
            return self.record(**dict(zip(fields_of(self.record), row)))
        return row if self.is_tuple else row[0]

    def raised(self, error: BaseException) -> BaseException:
        """An error of the database as what the function raises, at its place in the user's file."""
        if not isinstance(error, Error):
            return error
        own = error.sqlstate in (RAISED, "P0001", "P0002")
        made = self._raised(error) if own else error
        if own and isinstance(made, Error):
            made.context = error.context
        places = [(self._named(name), int(line)) for name, line in _FRAME.findall(error.context or "")]
        if places:
            _place(made, places)
        return made

    def _named(self, name: str) -> Compiled:
        """The function of a name in the database: this one, or one that it calls."""
        pending = [self]
        while pending:
            one = pending.pop()
            if one.name == name:
                return one
            pending.extend(one.callees.values())
        return self

    def _raised(self, error: Error) -> BaseException:
        """An error that a function has raised as the function's own."""
        from ..aborts import Aborted
        from ..tables import RowNotFound

        message = error.args[0]
        kind, _, where = (error.detail or "").partition("@")
        made: BaseException
        if error.sqlstate == RAISED:
            return self._exception(kind, message)
        if error.sqlstate == "P0002" and not where:
            return ProgrammingError("one row is wanted, but there are 0")
        made = (Aborted if error.sqlstate == "P0001" else RowNotFound)(message)
        made.sqlstate = error.sqlstate
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
        elif state == WRITTEN:
            mode, path, written = text.split(BETWEEN, 2)
            with open(path, mode) as file:
                file.write(written)


def _builtin_exception(kind: str) -> type[BaseException]:
    found = getattr(builtins, kind, None)
    return found if isinstance(found, type) and issubclass(found, BaseException) else RuntimeError


def _place(error: BaseException, places: Sequence[tuple[Compiled, int]]) -> None:
    """Gives an exception the places in the user's file where it was raised, the innermost first."""
    trace: TracebackType | None = None
    for program, line in places:
        code = compile("\n" * (program.line + line - 2) + "raise ValueError", program.file, "exec")
        try:
            exec(code.replace(co_name=program._function.__qualname__), {})
        except ValueError as raised:
            # Behind this function's own.
            own = raised.__traceback__ and raised.__traceback__.tb_next
            if own is not None:
                trace = TracebackType(trace, own.tb_frame, own.tb_lasti, own.tb_lineno)
    error.__traceback__ = trace
