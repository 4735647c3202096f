"""A database that is open in this process."""

from __future__ import annotations

import asyncio
import contextvars
import html
import sys
import threading
import weakref
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from os import PathLike
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast, overload

from . import _fabius, dbapi, keys, transactions
from .compilation import Compiled
from .compilation.source import function_of
from .errors import Error, InterfaceError, ProgrammingError
from .parameters import Parameters, braced, named, numbered
from .pipeline import Pipeline
from .remote import Server
from .replay import Replay
from .tables import Shape, Table
from .transactions import OutsideTransaction, Run, Side, Transaction

__all__ = ["Database", "Result", "connect", "open"]

P = ParamSpec("P")
R = TypeVar("R")

#: Sessions that are kept for the next transaction.
_IDLE_MAX = 32

#: Functions that were not decorated, of which the programs are kept.
_FUNCTIONS_MAX = 256

#: Calls that are under way at a time, of those that were submitted.
_SUBMITTED_MAX = 32


def open(  # noqa: A001 (as one opens a file)
    path: str | PathLike[str] | None = None,
    *,
    engine: str | None = None,
    durability: str | None = None,
    workers: int | None = None,
    history: float | None = None,
) -> Database:
    """Opens the database of a directory, which is begun there if there is none; without one, or of ``:memory:``, one in
    memory.

    ``engine`` is one of ``lazy`` (the default), ``2pl``, ``occ``, ``split``, ``locking``, ``graph``, ``partitioned``
    and ``dora``; ``durability`` is ``fsync`` (a commit is on the disk before it is answered; the default) or ``none``.
    ``workers`` are threads for deferred work, and ``history`` is for how many seconds the past can be read.
    """
    if path == ":memory:":
        path = None
    return Database(_fabius.Database.open(path, engine=engine, durability=durability, workers=workers, history=history))


def connect(url: str, **options: Any) -> Database:
    """The database of a server, for which the same code works as for one that is open here: its address is
    ``postgresql://user@host:port/database``, and ``options`` are those of ``psycopg.connect``.

    Raises ``InterfaceError`` if psycopg is not installed, ``OperationalError`` if the server is not there.
    """
    database = Database(Server(url, options))
    database.execute("select 1")
    return database


class Result(Sequence[Any]):
    """The rows of a statement: a sequence of named tuples, which a notebook shows as a table."""

    def __init__(
        self,
        tag: str,
        columns: Sequence[tuple[str, int]],
        rows: Sequence[tuple[Any, ...]],
        said: Sequence[tuple[str, str]] = (),
    ) -> None:
        #: What the statement did, as ``SELECT 3``.
        self.tag = tag
        #: What a compiled function said for its caller: SQLSTATE and text of each.
        self.said = said
        #: The columns' names.
        self.columns = tuple(name for name, _ in columns)
        #: The columns' types, by their numbers in ``pg_type``.
        self.types = tuple(oid for _, oid in columns)
        self._rows = list(map(_row_class(self.columns)._make, rows)) if columns else list(rows)

    @property
    def rowcount(self) -> int:
        """How many rows the statement gave or changed; -1 if it is about none."""
        return dbapi._count(self.tag)

    def one(self) -> Any:
        """The only row.

        Raises ``ProgrammingError`` if there is none, or another.
        """
        if len(self._rows) != 1:
            raise ProgrammingError(f"one row is wanted, but there are {len(self._rows)}")
        return self._rows[0]

    def first(self) -> Any:
        """The first row, or ``None``."""
        return self._rows[0] if self._rows else None

    def scalar(self) -> Any:
        """The first column of the only row."""
        return self.one()[0]

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...

    def __getitem__(self, index: int | slice) -> Any:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self._rows[:10]))
        return f"<Result {self.tag}: [{shown}{', ...' if len(self._rows) > 10 else ''}]>"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in self._rows[:100])
        more = f"<p>{len(self._rows) - 100} more rows</p>" if len(self._rows) > 100 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: Any) -> str:
    return f"<td>{'<i>null</i>' if value is None else html.escape(str(value))}</td>"


def _row_class(columns: tuple[str, ...]) -> Any:
    """A class of rows: fields by name where the name is one of Python's, and by place."""
    known = _ROW_CLASSES.get(columns)
    if known is None:
        known = _ROW_CLASSES[columns] = namedtuple("Row", columns, rename=True)
    return known


_ROW_CLASSES: dict[tuple[str, ...], Any] = {}


class _Own(threading.local):
    """What a thread has of a database: its session for calls of programs."""

    session: Any = None
    #: Whether its last call was none of a program.
    is_apart = False


class Database:
    """A database that is open in this process, or a server's; see :func:`open` and :func:`connect`. Threads may share
    it.

    >>> import fabius
    >>> with fabius.open() as db:
    ...     db.execute("create table stock (item int primary key, qty int)").tag
    ...     db.execute("insert into stock values (%s, %s)", (5, 10)).rowcount
    ...     db.execute("update stock set qty = qty - 1 where item = 5 returning qty").scalar()
    'CREATE TABLE'
    1
    9
    """

    def __init__(self, native: _fabius.Database | Server) -> None:
        self._native = native
        self._lock = threading.Lock()
        #: Each thread's session for calls of programs.
        self._own = _Own()
        self._executor: ThreadPoolExecutor | None = None
        self._pipeline: Pipeline | None = None
        self._is_closing = False
        #: All functions that are transactions of this database, in the order in which they were defined.
        self._defined: weakref.WeakKeyDictionary[Transaction[..., Any], None] = weakref.WeakKeyDictionary()
        self._functions: dict[Callable[..., Any], Transaction[Any, Any]] = {}
        self._idle: list[dbapi.Connection] = []
        self._shapes: tuple[int, dict[str, Shape]] = (0, {})

    def connect(self, *, user: str | None = None, autocommit: bool = False) -> dbapi.Connection:
        """A new session, as DB-API 2.0 has it."""
        return dbapi.Connection(self._native, user, autocommit, is_own=False)

    def execute(self, text: str, parameters: Parameters | None = None) -> Result:
        """Runs a statement, as a part of the transaction that this thread is in, or else as one of its own; its
        parameters are written ``%s`` or ``%(name)s``.

        A statement that Fabius can make a program of is one call: it is ordered, durable, and never retried.
        """
        run = transactions.current(self)
        if run is not None:
            return run.execute(text, parameters)
        key = keys.take()
        with self._session() as connection:
            if key is None:
                return _result(connection, text, parameters)
            connection.execute("select set_config('fabius.idempotency_key', %s, false)", (key,))
            try:
                return _result(connection, text, parameters)
            finally:
                connection.execute("reset fabius.idempotency_key")

    def sql(self, text: str, /, **values: Any) -> Result:
        """Runs a statement as :meth:`execute` does; its parameters are written ``{name}``:
        ``db.sql("select qty from stock where item = {item}")`` has the caller's variable ``item``, and
        ``db.sql("... {item}", item=5)`` what is given by name. They are bound, never pasted; ``{{`` is a brace.
        """
        statement, names = braced(text)
        caller = sys._getframe(1)
        return self.execute(numbered(statement), named(names, values, lambda: {**caller.f_globals, **caller.f_locals}))

    def outcome(self, key: str) -> str | None:
        """What became of the transaction with a key (:func:`fabius.idempotent`): ``committed``, ``aborted``, or
        ``None`` if there was none, or none that is still remembered."""
        return cast("str | None", self.execute("select fabius.outcome(%s)", (key,)).scalar())

    def script(self, text: str) -> None:
        """Runs several statements, one after the other."""
        connection = self.connect(autocommit=True)
        try:
            for statement in connection._native.split(text):
                connection.execute(statement)
        finally:
            connection.close()

    @overload
    def transaction(self, function: Callable[P, R]) -> Transaction[P, R]: ...

    @overload
    def transaction(self, function: str, *, side: Side | None = None) -> Transaction[..., Any]: ...

    @overload
    def transaction(self, *, side: Side) -> Callable[[Callable[P, R]], Transaction[P, R]]: ...

    @overload
    def transaction(self) -> AbstractContextManager[Run]: ...

    def transaction(self, function: Callable[..., Any] | str | None = None, *, side: Side | None = None) -> Any:
        """Makes a function a transaction; or, without one, what stands in a ``with`` block.

        >>> import fabius
        >>> db = fabius.open()
        >>> db.script("create table stock (item int primary key, qty int not null); insert into stock values (5, 10)")
        >>> @db.transaction
        ... def reserve(item: int, n: int) -> int:
        ...     row = db.stock[item]
        ...     fabius.require(row.qty >= n, f"only {row.qty} left")
        ...     row.qty -= n
        ...     return row.qty
        >>> reserve(5, 3)
        7
        >>> reserve(5, 8)
        Traceback (most recent call last):
            ...
        fabius.aborts.Aborted: only 7 left
        >>> with db.transaction() as t:
        ...     t.execute("update stock set qty = 0").rowcount
        1
        >>> db.close()

        A function is compiled to a program, which runs in the database and never twice; what a program cannot do is
        refused here (``fabius.compilation.CompilationError``), unless the function is for the client's process
        (``side="client"``). There it runs again if what it read has changed by the time it commits: beside the
        database it should have no effects that must not happen twice. A ``with`` block runs in the client's process,
        once: a conflict is ``SerializationFailure``. Where there is no source, as in ``python -c`` and ``exec``, the
        function is given as the text of its ``def``; its globals are the caller's.
        """
        if isinstance(function, str):
            function = function_of(function, sys._getframe(1).f_globals)
        if function is not None:
            return Transaction(self, function, side)
        if side is not None:
            return lambda function: Transaction(self, function, side)
        return transactions.running(self)

    def run(self, function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Runs a function as a transaction (Calvin, section 4.1: ``ExecAsTxn``); it need not be decorated."""
        return self._transaction(function)(*args, **kwargs)

    def submit(self, function: Callable[..., R], *args: Any, **kwargs: Any) -> Future[R]:
        """Hands a call of a function in as a transaction, and does not wait for it: many are under way at a time.

        Calls of programs in this process are run in the order in which one thread hands them in. They are transactions
        of their own, also within one.
        """
        transaction = self._transaction(function)
        if transaction.database is not self:
            return transaction.database.submit(transaction, *args, **kwargs)
        if isinstance(self._native, Server) or transaction.is_in_client() or not keys.is_free():
            return self._apart(transaction, *args, **kwargs)
        program = transaction.program()
        try:
            values = program.arguments(args, kwargs)
        except Exception as error:
            failed: Future[R] = Future()
            failed.set_exception(error)
            return failed
        pipeline = self._pipeline
        if pipeline is None:
            with self._lock:
                if self._is_closing:
                    raise InterfaceError("the database is closed")
                pipeline = self._pipeline = self._pipeline or Pipeline(self._native.connect())
        return pipeline.submit(program, values)

    def _call(self, program: Compiled, args: Any, kwargs: Any) -> Any:
        """Calls a program, as a part of the transaction that this thread is in, or else as one of its own."""
        values = program.arguments(args, kwargs)
        run = transactions.current(self)
        if run is not None:
            keys.refuse_part()
            try:
                with run.part():
                    result = run.execute(numbered(program.statement), values)
            except Error as error:
                raise program.raised(error) from None
            return program.answered((tuple(result.one()), [("NOTICE", *said) for said in result.said]))
        own, key = self._own, keys.take()
        session = own.session
        if session is None or session.is_closed:
            session = own.session = self._native.connect()
        own.is_apart = False
        if key is None:
            return program.answered(session.execute_each(program.statement, (values,))[0])
        session.execute("select set_config('fabius.idempotency_key', $1, false)", (key,))
        try:
            answer = session.execute_each(program.statement, (values,))[0]
        except TypeError:
            # The database knows what the key's transaction has given, which has other columns.
            raise ProgrammingError("the key is that of another function") from None
        finally:
            session.execute("reset fabius.idempotency_key", ())
        return program.answered(answer)

    def _transaction(self, function: Callable[..., R]) -> Transaction[..., R]:
        if isinstance(function, Transaction):
            return function
        known = self._functions.get(function)
        if known is None:
            if len(self._functions) >= _FUNCTIONS_MAX:
                self._functions.clear()
            known = self._functions[function] = Transaction(self, function, None)
        return known

    def _apart(self, function: Callable[..., R], *args: Any, **kwargs: Any) -> Future[R]:
        """Calls something in a thread of the database, with the key that is in force."""
        with self._lock:
            if self._is_closing:
                raise InterfaceError("the database is closed")
            if self._executor is None:
                self._executor = ThreadPoolExecutor(_SUBMITTED_MAX, "fabius")
        context = contextvars.copy_context()
        return self._executor.submit(lambda: context.run(function, *args, **kwargs))

    async def aexecute(self, text: str, parameters: Parameters | None = None) -> Result:
        """:meth:`execute` for ``asyncio``: other tasks go on meanwhile."""
        return await asyncio.wrap_future(self._apart(self.execute, text, parameters))

    def table(self, name: str) -> Table:
        """A table's rows by key, within a transaction: ``db.table("shop.stock")``, or ``db.stock``."""
        run = transactions.current(self)
        if run is None:
            raise OutsideTransaction(
                f"rows of {name} by key are for transactions: decorate the function with @db.transaction, write "
                "`with db.transaction():`, or use db.execute"
            )
        return run.table(name)

    def __getattr__(self, name: str) -> Table:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.table(name)

    def _shape(self, name: str, execute: Callable[..., Result]) -> Shape:
        version = self._native.catalog_version
        if self._shapes[0] != version:
            self._shapes = (version, {})
        known = self._shapes[1].get(name)
        if known is None:
            known = self._shapes[1][name] = transactions.shape(name, execute)
        return known

    @contextmanager
    def _session(self) -> Iterator[dbapi.Connection]:
        """A session that nobody else has."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None or connection.closed:
            connection = self.connect(autocommit=True)
        try:
            yield connection
        finally:
            if not connection.closed:
                if connection.in_transaction or len(self._idle) >= _IDLE_MAX:
                    connection.close()
                else:
                    with self._lock:
                        self._idle.append(connection)

    def note_apart(self) -> None:
        """This thread's last call was none of a program."""
        self._own.is_apart = True

    def last_seq(self) -> int | None:
        """The place in the log of the call of a program that this thread has waited for last, for :meth:`replay`;
        ``None`` before the first, if it aborted or only read, and if it ran in the client's process: the log does not
        have it as a call then."""
        session = self._own.session
        if session is None or self._own.is_apart:
            return None
        rows = session.execute("select fabius.last_call()", ())[2]
        return cast("int | None", rows[0][0])

    def replay(self, seq: int) -> Replay:
        """A call of a function, by its place in the log, to be looked at again on the state that it saw:
        ``db.replay(seq).debug()`` goes through it in a debugger. Nothing that it does there is kept.

        >>> import fabius, tempfile
        >>> db = fabius.open(tempfile.mkdtemp())
        >>> db.script("create table stock (item int primary key, qty int not null); insert into stock values (5, 10)")
        >>> @db.transaction
        ... def reserve(item: int, n: int) -> int:
        ...     row = db.stock[item]
        ...     row.qty -= n
        ...     return row.qty
        >>> reserve(5, 3), reserve(5, 2)
        (7, 5)
        >>> with db.replay(db.last_seq() - 1) as replay:
        ...     replay.arguments, replay.run()
        ({'item': 5, 'n': 3}, 7)
        >>> db.close()

        The state is made of the newest checkpoint before the call, and the log behind that, in memory. Raises
        ``ProgrammingError`` if the call is of no function that is defined here, ``OperationalError`` if the log does
        not reach back to it, ``NotSupportedError`` for a database in memory, or a server's: open its directory, or a
        copy.
        """
        return Replay(self, seq)

    def checkpoint(self) -> None:
        """Makes the next opening short."""
        self._native.checkpoint()

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._native.is_closed

    def close(self) -> None:
        """Ends all sessions and closes the database; all that was promised is durable. Calls that were submitted are
        waited for."""
        with self._lock:
            self._is_closing = True
            executor, self._executor = self._executor, None
            pipeline, self._pipeline = self._pipeline, None
        if executor is not None:
            executor.shutdown()
        if pipeline is not None:
            pipeline.close()
        self._native.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<fabius.Database {'closed' if self.closed else 'open'}>"


def _result(connection: dbapi.Connection, text: str, parameters: Parameters | None) -> Result:
    cursor = connection.execute(text, parameters)
    columns = [(column.name, column.type_code) for column in cursor.description or ()]
    said, connection._said = connection._said, []
    return Result(cursor.statusmessage or "", columns, cursor._rows or (), said)
