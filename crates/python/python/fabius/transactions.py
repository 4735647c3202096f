"""Functions that are transactions: programs of the database, or run in the client's process.

There a function is an ordinary one, over an interactive transaction: a debugger goes through it line by line. What it
read is checked when it commits; if something of that has changed, it was never there, and the function runs again.
"""

from __future__ import annotations

import asyncio
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar, cast

from . import compilation, dbapi, keys
from .aborts import Aborted, require
from .compilation import Compiled
from .errors import DataError, NotSupportedError, OperationalError, ProgrammingError, lookup
from .explanation import Drawing, explanation
from .parameters import Parameters, numbered
from .tables import Shape, Table, quoted

if TYPE_CHECKING:
    from .database import Database, Result

__all__ = ["Aborted", "OutsideTransaction", "Run", "Side", "Transaction", "current", "require", "running"]

#: Where a function runs.
Side = Literal["database", "client"]

P = ParamSpec("P")
R = TypeVar("R")

#: A function that conflicts so often gives up.
_RUNS_MAX = 1000

#: After so many conflicts it locks what it reads, so that its turn comes.
_RUNS_OPTIMISTIC = 3

_here = threading.local()


class Run:
    """A function under way, or several that call one another."""

    def __init__(self, database: Database, connection: dbapi.Connection) -> None:
        self._database = database
        self._connection = connection

    def execute(self, text: str, parameters: Parameters | None = None) -> Result:
        """Runs a statement in the transaction."""
        from .database import _result

        return _result(self._connection, text, parameters)

    @contextmanager
    def part(self) -> Iterator[None]:
        """A part of the transaction: what it has done is undone if it raises, and the rest may go on."""
        self.execute("savepoint fabius_part")
        try:
            yield
        except BaseException:
            self.execute("rollback to fabius_part")
            raise
        finally:
            self.execute("release fabius_part")

    def table(self, name: str) -> Table:
        """A table, by its name and perhaps that of its schema before it."""
        return Table(self, self._database._shape(name, self.execute))


def current(database: Database) -> Run | None:
    """The transaction that this thread is in, of that database."""
    return getattr(_here, "runs", {}).get(id(database))


@contextmanager
def entered(database: Database, run: Run) -> Iterator[None]:
    """Within it this thread is in a transaction of a database."""
    runs = _here.__dict__.setdefault("runs", {})
    around = runs.get(id(database))
    runs[id(database)] = run
    try:
        yield
    finally:
        del runs[id(database)]
        if around is not None:
            runs[id(database)] = around


@contextmanager
def running(database: Database) -> Iterator[Run]:
    """A transaction that this thread is in: committed at the end, rolled back if an exception ends it."""
    if current(database) is not None:
        raise ProgrammingError("a transaction of this database is open in this thread: it cannot begin another")
    key = keys.take()
    with database._session() as connection:
        run = Run(database, connection)
        try:
            run.execute("begin")
            if key is not None:
                run.execute("select set_config('fabius.idempotency_key', %s, true)", (key,))
            with entered(database, run):
                yield run
            connection.commit()
        finally:
            if not connection.closed:
                connection.rollback()


class Transaction(Generic[P, R]):
    """A function that is a transaction: see :meth:`fabius.Database.transaction`."""

    def __init__(self, database: Database, function: Callable[P, R], side: Side | None) -> None:
        if side not in (None, "client", "database"):
            raise ProgrammingError(f"a function runs in the 'database' or the 'client', not in {side!r}")
        self._database = database
        self._function = function
        self._side = side
        self._program: Compiled | None = None
        database._defined.add(self)
        functools.update_wrapper(self, function)
        if not self.is_in_client():
            try:
                self.program()
            except compilation.CompilationError as error:
                # Its tables may be made before it is called.
                if error.sqlstate != "42P01":
                    raise

    def is_in_client(self) -> bool:
        """Whether it runs in the client's process, as things are now."""
        return (self._side or sys.modules["fabius"].side) == "client"

    @property
    def database(self) -> Database:
        """The database that it is a transaction of."""
        return self._database

    @property
    def compiled(self) -> bool:
        """Whether it is a program, which runs in the database."""
        return self._program is not None

    def program(self) -> Compiled:
        """The program that it is compiled to.

        Raises ``fabius.compilation.CompilationError`` for what a program cannot do.
        """
        if self._program is None:
            program = compilation.compiled(self._function, self._database)
            try:
                self._database.execute(program.definition)
            except (NotSupportedError, ProgrammingError, DataError, OperationalError) as error:
                raise compilation.explained(error, self._function) from None
            self._program = program
        return self._program

    def explain(self) -> str:
        """What of it runs now, what may wait, and why, by the lines of its file; and what of it could wait."""
        if self.is_in_client():
            raise ProgrammingError("it runs in the client's process: only programs are explained (side='database')")
        program = self.program()
        text, samples = program.explained()
        rows = self._database.execute(numbered(text), samples)
        return explanation("\n".join(row[0] for row in rows), program.file, program.line)

    def draw(self) -> Drawing:
        """:meth:`explain` as a picture, which a notebook shows; ``reserve.draw().save("reserve.svg")``."""
        return Drawing(self._function.__qualname__, self.explain())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.is_in_client():
            return self.client(*args, **kwargs)
        return cast(R, self._database._call(self.program(), args, kwargs))

    async def acall(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls it for ``asyncio``: other tasks go on meanwhile."""
        return await asyncio.wrap_future(self._database.submit(self, *args, **kwargs))

    def client(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls it in the client's process, step by step: a debugger goes through it."""
        run = current(self._database)
        if run is not None:
            # A transaction that another calls is a part of that.
            with run.part():
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
