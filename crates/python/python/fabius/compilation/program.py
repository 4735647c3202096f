"""A function as the database knows it: how it is called, and what its caller gets."""

from __future__ import annotations

import builtins
import inspect
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..errors import Error, ProgrammingError
from .captures import Capture
from .kernel import ASSIGNED, BARE, LOGGED, PRINTED, RAISED
from .kinds import INT, INT_MAX, Kind

__all__ = ["Compiled"]


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
            if type(value) is int and kind is INT and -INT_MAX <= value <= INT_MAX:
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
