"""Functions that are transactions: programs of the database, or run in the client's process.

There a function is an ordinary one, over an interactive transaction: a debugger goes through it line by line. What it
read is checked when it commits; if something of that has changed, it was never there, and the function runs again. Over
futures it reads only what it looks at (``futures``).
"""

from __future__ import annotations

import asyncio
import functools
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar, cast

from . import compilation, dbapi, futures, keys
from .aborts import Aborted, require
from .assigned import Globals
from .compilation import Compiled
from .errors import (
    DataError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    lookup,
)
from .explanation import Drawing, explanation
from .parameters import Parameters, numbered
from .tables import Shape, Table, quoted

if TYPE_CHECKING:
    from .database import Database, Result

__all__ = [
    "Aborted",
    "OutsideTransaction",
    "Run",
    "Side",
    "Transaction",
    "current",
    "execute_sql",
    "require",
    "running",
]

#: Where a function runs.
Side = Literal["database", "client", "futures"]

_SIDES = ("client", "database", "futures")

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
        #: The futures that it has, if a function has run over futures.
        self.pending: futures.Pending | None = None
        #: Whether the function that is under way runs over futures.
        self.over_futures = False
        #: Whether it is all of a function: what that calls is as if it were written there.
        self.is_function = False
        #: Whether its transaction has ended: its session may be another's.
        self.is_over = False

    def execute(self, text: str, parameters: Parameters | None = None) -> Result:
        """Runs a statement in the transaction."""
        if self.pending is not None:
            parameters = self.pending.before(text, parameters)
        return self.send(text, parameters)

    def send(self, text: str, parameters: Parameters | None = None) -> Result:
        """Runs a statement that changes nothing that futures mean, or of which they know."""
        from .database import _result

        if self.is_over:
            raise OutsideTransaction("the transaction has ended: take the row again in another")
        return _result(self._connection, text, parameters)

    @property
    def has_failed(self) -> bool:
        """Whether a statement has failed, so that none is run any more."""
        return self._connection._native.status == "failed"

    @contextmanager
    def part(self) -> Iterator[None]:
        """A part of the transaction: what it has done is undone if it raises, and the rest may go on."""
        self.send("savepoint fabius_part")
        try:
            with nullcontext() if self.pending is None else self.pending.part():
                yield
        except BaseException:
            self.send("rollback to fabius_part")
            raise
        finally:
            self.send("release fabius_part")

    def table(self, name: str) -> Table:
        """A table, by its name and perhaps that of its schema before it."""
        shape = self.shape(name)
        if self.over_futures and self.pending is not None:
            return futures.Table(self, shape, self.pending)
        return Table(self, shape)

    def shape(self, name: str) -> Shape:
        """A table's columns and key.

        Raises ``AttributeError`` if there is no such table.
        """
        return self._database._shape(name, self.send)


def current(database: Database) -> Run | None:
    """The transaction that this thread is in, of that database."""
    return _runs().get(id(database))


def execute_sql(text: str, parameters: Parameters | None = None) -> Result:
    """Runs a statement in the transaction that this thread is in, whichever database's: functions that have no name
    for their database are written with it (Calvin, figure 3). Parameters are those of :meth:`Database.execute`.

    >>> import fabius
    >>> db = fabius.open()
    >>> db.script("create table users (id text primary key, balance int not null)")
    >>> db.script("insert into users values ('ann', 30), ('bob', 0)")
    >>> def transfer(source: str, target: str, amount: int) -> None:
    ...     balance = fabius.execute_sql("select balance from users where id = %s", (source,)).scalar()
    ...     fabius.require(balance >= amount, f"{source} has only {balance}")
    ...     fabius.execute_sql("update users set balance = balance - %s where id = %s", (amount, source))
    ...     fabius.execute_sql("update users set balance = balance + %s where id = %s", (amount, target))
    >>> db.run(transfer, "ann", "bob", 20)
    >>> db.run(transfer, "ann", "bob", 20)
    Traceback (most recent call last):
        ...
    fabius.aborts.Aborted: ann has only 10
    >>> db.close()
    """
    runs = list(_runs().values())
    if not runs:
        raise OutsideTransaction("execute_sql is for what runs as a transaction: use db.run(function), or db.execute")
    return runs[-1].execute(text, parameters)


def _runs() -> dict[int, Run]:
    """The transactions that this thread is in, the innermost last, by the identities of their databases."""
    runs: dict[int, Run] = getattr(_here, "runs", {})
    return runs


@contextmanager
def entered(database: Database, run: Run) -> Iterator[None]:
    """Within it this thread is in a transaction of a database."""
    around = _runs()
    _here.runs = {**{of: other for of, other in around.items() if of != id(database)}, id(database): run}
    try:
        yield
    finally:
        _here.runs = around


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
                if run.execute("select fabius.outcome(%s)", (key,)).scalar() == "committed":
                    raise keys.AlreadyCommitted(key)
                run.execute("select set_config('fabius.idempotency_key', %s, true)", (key,))
            with entered(database, run):
                yield run
            connection.commit()
        finally:
            run.is_over = True
            if not connection.closed:
                connection.rollback()


class Transaction(Generic[P, R]):
    """A function that is a transaction: see :meth:`fabius.Database.transaction`."""

    def __init__(self, database: Database, function: Callable[P, R], side: Side | None) -> None:
        if side is not None and side not in _SIDES:
            raise ProgrammingError(
                f"a function runs in the 'database', the 'client' or over 'futures', not in {side!r}"
            )
        self._database = database
        self._function = function
        self._side = side
        self._program: Compiled | None = None
        database._defined[self] = None
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
        return self._where() != "database"

    def _where(self) -> Side:
        side = self._side or sys.modules["fabius"].side
        if side not in _SIDES:
            raise ProgrammingError(f"fabius.side is 'database', 'client' or 'futures', not {side!r}")
        return cast(Side, side)

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
        names = [*program.signature.parameters, *(capture.text for capture in program.captures)]
        return explanation("\n".join(row[0] for row in rows), names, program.file, program.line)

    def draw(self) -> Drawing:
        """:meth:`explain` as a picture, which a notebook shows; ``reserve.draw().save("reserve.svg")``."""
        return Drawing(self._function.__qualname__, self.explain())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        side = self._where()
        if side == "client":
            return self.client(*args, **kwargs)
        if side == "futures":
            return self.futures(*args, **kwargs)
        run = current(self._database)
        if run is not None and run.pending is not None:
            # A program takes values.
            args, kwargs = futures.settled((args, kwargs))
        elif run is not None and run.is_function and self._side is None:
            # What a function calls runs where that runs, as in the database.
            return self.client(*args, **kwargs)
        return cast(R, self._database._call(self.program(), args, kwargs))

    async def acall(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls it for ``asyncio``: other tasks go on meanwhile."""
        return await asyncio.wrap_future(self._database.submit(self, *args, **kwargs))

    def client(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls it in the client's process, step by step: a debugger goes through it."""
        return self._here(False, args, kwargs)

    def futures(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls it in the client's process over futures: what it does not look at cannot conflict.

        A function that gives a future to something that wants a value (``", ".join(...)``) runs again over values.
        """
        try:
            return self._here(True, args, kwargs)
        except TypeError as error:
            refused = error
        if current(self._database) is None:
            keys.give_back()
        result = self._here(False, args, kwargs)
        warnings.warn(
            f"{self._function.__qualname__} ran over values, since it could not over futures ({refused}): write "
            "int(...) or str(...) where the value is wanted",
            stacklevel=2,
        )
        return result

    def _here(self, over_futures: bool, args: Any, kwargs: Any) -> R:
        run = current(self._database)
        if run is not None:
            keys.refuse_part()
            # What a function calls is as if it were written there; of other transactions it is a part, undone alone.
            with nullcontext() if run.is_function else run.part(), entered(self._database, run):
                return self._run(run, over_futures, args, kwargs)
        self._database.note_apart()
        begin = Globals(self._function)
        locks = False
        for number in range(_RUNS_MAX):
            locks |= number >= _RUNS_OPTIMISTIC
            try:
                return self._once(locks, over_futures, args, kwargs)
            except lookup("40001") as conflict:
                last = conflict
            except BaseException:
                begin.restore()
                raise
            begin.restore()
            keys.give_back()
        last.hint = f"{self._function.__qualname__} ran {_RUNS_MAX} times, and what it read had changed each time"
        raise last

    def _once(self, locks: bool, over_futures: bool, args: Any, kwargs: Any) -> R:
        with running(self._database) as run:
            run.is_function = True
            if locks:
                run.execute("set local fabius.concurrency to pessimistic")
            try:
                return self._run(run, over_futures, args, kwargs)
            finally:
                if run.pending is not None:
                    run.pending.is_over = True

    def _run(self, run: Run, over_futures: bool, args: Any, kwargs: Any) -> R:
        if over_futures:
            return futures.called(run, self._function, args, kwargs)
        before, run.over_futures = run.over_futures, False
        try:
            return self._function(*args, **kwargs)
        finally:
            run.over_futures = before

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
        found = execute(f"select * from {written} where false", None)
    except lookup("42P01"):
        raise AttributeError(f"there is no table {name!r}") from None
    key = execute(
        "select a.attname::text from pg_index i "
        "cross join unnest(i.indkey::smallint[]) with ordinality as k (n, place) "
        "join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.n "
        "where i.indrelid = %s::regclass and i.indisprimary order by k.place",
        (written,),
    )
    types = dict(zip(found.columns, found.types))
    return Shape(name, types, tuple(row[0] for row in key))


class OutsideTransaction(ProgrammingError, AttributeError):
    """Rows by key are for transactions."""
