"""Functions that are transactions, run in the client's process over an interactive transaction.

The function is an ordinary one: a debugger goes through it line by line. What it read is checked when it commits; if
something of that has changed, it was never there, and the function runs again.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

from . import compilation, dbapi
from .compilation import Compiled
from .errors import Error, NotSupportedError, ProgrammingError, lookup
from .parameters import Parameters
from .tables import RowNotFound, Shape, Table, quoted

if TYPE_CHECKING:
    from .database import Database, Result

__all__ = ["Aborted", "OutsideTransaction", "Run", "Transaction", "current", "require", "running"]

P = ParamSpec("P")
R = TypeVar("R")

#: A function that conflicts so often gives up.
_RUNS_MAX = 1000

#: After so many conflicts it locks what it reads, so that its turn comes.
_RUNS_OPTIMISTIC = 3

_here = threading.local()


class Aborted(lookup("P0001")):  # type: ignore[misc]
    """A ``require`` of the function did not hold; nothing of what the function did has happened."""


def require(condition: Any, message: str = "a requirement does not hold") -> None:
    """Ends the transaction with ``Aborted`` unless something holds.

    >>> require(2 > 1)
    >>> require(1 > 2, "only 1 left")
    Traceback (most recent call last):
    fabius.transactions.Aborted: only 1 left
    """
    if not condition:
        error = Aborted(message)
        error.sqlstate = "P0001"
        raise error


class Run:
    """A function under way, or several that call one another."""

    def __init__(self, database: Database, connection: dbapi.Connection) -> None:
        self._database = database
        self._connection = connection

    def execute(self, text: str, parameters: Parameters | None = None) -> Result:
        """Runs a statement in the transaction."""
        from .database import _result

        return _result(self._connection, text, parameters)

    def table(self, name: str) -> Table:
        """A table, by its name and perhaps that of its schema before it."""
        return Table(self, self._database._shape(name, self.execute))


def current(database: Database) -> Run | None:
    """The transaction that this thread is in, of that database."""
    return getattr(_here, "runs", {}).get(id(database))


@contextmanager
def running(database: Database) -> Iterator[Run]:
    """A transaction that this thread is in: committed at the end, rolled back if an exception ends it."""
    if current(database) is not None:
        raise ProgrammingError("a transaction of this database is open in this thread: it cannot begin another")
    runs = _here.__dict__.setdefault("runs", {})
    with database._session() as connection:
        run = runs[id(database)] = Run(database, connection)
        try:
            run.execute("begin")
            yield run
            connection.commit()
        finally:
            del runs[id(database)]
            if not connection.closed:
                connection.rollback()


class Transaction(Generic[P, R]):
    """A function that is a transaction: see :meth:`fabius.Database.transaction`."""

    def __init__(self, database: Database, function: Callable[P, R], compiled: bool) -> None:
        self._database = database
        self._function = function
        self._program = self._compile() if compiled else None
        functools.update_wrapper(self, function)

    @property
    def compiled(self) -> bool:
        """Whether it is a program, which runs in the database."""
        return self._program is not None

    def _compile(self) -> Compiled:
        program = compilation.compiled(self._function, self._database)
        try:
            self._database.execute(program.definition)
        except (NotSupportedError, ProgrammingError) as error:
            raise compilation.explained(error, self._function) from None
        return program

    def explain(self) -> str:
        """What of it runs now, what may wait, and why: the database's own words."""
        if self._program is None:
            raise ProgrammingError("it runs in this process: define it with @db.transaction(compiled=True)")
        nulls = ", ".join(f"null::{compilation._TYPES[kind]}" for kind in self._program.types)
        rows = self._database.execute(f'explain select "{self._program.name}"({nulls})')
        return "\n".join(row[0] for row in rows)

    def _called(self, program: Compiled, args: Any, kwargs: Any) -> Any:
        try:
            result = self._database.execute(program.call, program.arguments(args, kwargs)).scalar()
            return result if program.returns else None
        except lookup("P0001") as error:
            raise _as(Aborted, error) from None
        except lookup("P0002") as error:
            raise _as(RowNotFound, error) from None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        database = self._database
        if self._program is not None:
            return cast(R, self._called(self._program, args, kwargs))
        if current(database) is not None:
            # A transaction that another calls is a part of that.
            return self._function(*args, **kwargs)
        for number in range(_RUNS_MAX):
            try:
                return self._once(number >= _RUNS_OPTIMISTIC, args, kwargs)
            except lookup("40001") as conflict:
                last = conflict
        last.hint = f"{self._function.__qualname__} ran {_RUNS_MAX} times, and what it read had changed each time"
        raise last

    def _once(self, locks: bool, args: Any, kwargs: Any) -> R:
        with running(self._database) as run:
            if locks:
                run.execute("set local fabius.concurrency to pessimistic")
            return self._function(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<fabius transaction {self._function.__qualname__}>"


def _as(kind: type[Error], error: Error) -> Error:
    """An error of the database as one of the function."""
    made = kind(error.args[0])
    made.sqlstate = error.sqlstate
    return made


def shape(name: str, execute: Callable[[str, Any], Result]) -> Shape:
    """What the catalog says of a table.

    Raises ``AttributeError`` if there is none.
    """
    written = ".".join(map(quoted, name.split(".")))
    try:
        columns = execute(f"select * from {written} where false", None).columns
    except lookup("42P01"):
        raise AttributeError(f"there is no table {name!r}") from None
    key = execute(
        "select a.attname::text from pg_index i "
        "cross join unnest(i.indkey::smallint[]) with ordinality as k (n, place) "
        "join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.n "
        "where i.indrelid = %s::regclass and i.indisprimary order by k.place",
        (written,),
    )
    return Shape(name, columns, tuple(row[0] for row in key))


class OutsideTransaction(ProgrammingError, AttributeError):
    """Rows by key are for transactions."""
