"""DB-API 2.0 (PEP 249) on a database within the process: what pandas, and others who know nothing of Fabius, use.

>>> import fabius.dbapi
>>> connection = fabius.dbapi.connect()
>>> cursor = connection.cursor()
>>> cursor.execute("create table stock (item int primary key, qty int)").rowcount
-1
>>> cursor.executemany("insert into stock values (%s, %s)", [(1, 5), (2, 7)]).rowcount
2
>>> cursor.execute("select qty from stock where item = %(item)s", {"item": 2}).fetchone()
(7,)
>>> connection.commit()
>>> connection.close()
"""

from __future__ import annotations

import datetime as _datetime
import time as _time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _fabius
from .errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from .parameters import Parameters, bound

if TYPE_CHECKING:
    from .database import Database
    from .remote import Server

__all__ = [
    "apilevel",
    "threadsafety",
    "paramstyle",
    "connect",
    "Connection",
    "Cursor",
    "Column",
    "Warning",
    "Error",
    "InterfaceError",
    "DatabaseError",
    "DataError",
    "OperationalError",
    "IntegrityError",
    "InternalError",
    "ProgrammingError",
    "NotSupportedError",
    "Date",
    "Time",
    "Timestamp",
    "DateFromTicks",
    "TimeFromTicks",
    "TimestampFromTicks",
    "Binary",
    "STRING",
    "BINARY",
    "NUMBER",
    "DATETIME",
    "ROWID",
]

apilevel = "2.0"
#: Threads may share the module and connections; a statement of one thread waits for that of another.
threadsafety = 2
paramstyle = "pyformat"

Date = _datetime.date
Time = _datetime.time
Timestamp = _datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> _datetime.date:
    """The date of so many seconds since 1970, here."""
    return _datetime.date(*_time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> _datetime.time:
    """The time of so many seconds since 1970, here."""
    return _datetime.time(*_time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> _datetime.datetime:
    """The moment of so many seconds since 1970, here."""
    return _datetime.datetime(*_time.localtime(ticks)[:6])


class _TypeObject:
    """Equal to the type codes of the columns that are of a kind."""

    def __init__(self, name: str, *codes: int) -> None:
        self._name = name
        self._codes = frozenset(codes)

    def __eq__(self, other: object) -> bool:
        return other in self._codes if isinstance(other, int) else self is other

    def __hash__(self) -> int:
        return hash(self._codes)

    def __repr__(self) -> str:
        return self._name


STRING = _TypeObject("STRING", 18, 19, 25, 1042, 1043)
BINARY = _TypeObject("BINARY", 17)
NUMBER = _TypeObject("NUMBER", 20, 21, 23, 700, 701, 1700)
DATETIME = _TypeObject("DATETIME", 1082, 1083, 1114, 1184, 1186)
ROWID = _TypeObject("ROWID", 26)


class Column(NamedTuple):
    """What a cursor says of a column. Fabius tells the first two."""

    name: str
    type_code: int
    display_size: int | None = None
    internal_size: int | None = None
    precision: int | None = None
    scale: int | None = None
    null_ok: bool | None = None


def connect(
    database: str | PathLike[str] | Database | _fabius.Database | None = None,
    *,
    user: str | None = None,
    autocommit: bool = False,
    **options: Any,
) -> Connection:
    """A session of a database: of a directory's, which is opened and ends with it, of one that is open, or of a new
    one in memory. ``options`` are those of :func:`fabius.open`."""
    if database is None or isinstance(database, (str, PathLike)):
        return Connection(_fabius.Database.open(database, **options), user, autocommit, is_own=True)
    if options:
        raise InterfaceError(f"the database is open already: {', '.join(options)} cannot be given")
    native = database if isinstance(database, _fabius.Database) else database._native
    return Connection(native, user, autocommit, is_own=False)


class Connection:
    """A session. Its first statement begins a transaction, which :meth:`commit` and :meth:`rollback` end, unless
    ``autocommit`` is set."""

    Warning = Warning
    Error = Error
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError

    def __init__(self, database: _fabius.Database | Server, user: str | None, autocommit: bool, is_own: bool) -> None:
        self._database = database
        self._native = database.connect(user)
        self._is_own = is_own
        self._autocommit = autocommit
        #: What compiled functions have said for their callers: SQLSTATE and text of each.
        self._said: list[tuple[str, str]] = []

    @property
    def autocommit(self) -> bool:
        """Whether each statement is a transaction of its own."""
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        if self.in_transaction:
            raise ProgrammingError("autocommit cannot change within a transaction: commit or roll back first")
        self._autocommit = bool(value)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, failed or not."""
        return self._native.status != "idle"

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._native.is_closed

    def cursor(self) -> Cursor:
        """A new cursor."""
        if self.closed:
            raise InterfaceError("the connection is closed")
        return Cursor(self)

    def execute(self, text: str, parameters: Parameters | None = None) -> Cursor:
        """Runs a statement by a new cursor, which is returned."""
        return self.cursor().execute(text, parameters)

    def commit(self) -> None:
        """Ends the transaction, if one is open; what it wrote is durable."""
        if self._native.status == "failed":
            self.rollback()
            raise InternalError("the transaction had failed: it is rolled back")
        if self.in_transaction:
            self._run("COMMIT", ())

    def rollback(self) -> None:
        """Ends the transaction, if one is open, as if it had never been."""
        if self.in_transaction:
            self._run("ROLLBACK", ())

    def close(self) -> None:
        """Ends the session; an open transaction is rolled back."""
        self._native.close()
        if self._is_own:
            self._database.close()

    def _run(self, text: str, values: Sequence[Any]) -> tuple[str, list[Any] | None, list[Any] | None]:
        try:
            return self._native.execute(text, values)
        finally:
            if not self._native.is_closed:
                for severity, sqlstate, message in self._native.notices():
                    if sqlstate.startswith("PY"):
                        self._said.append((sqlstate, message))
                    else:
                        warnings.warn(f"{severity}: {message} ({sqlstate})", _Notice, stacklevel=4)

    def _statement(self, text: str, values: Sequence[Any]) -> tuple[str, list[Any] | None, list[Any] | None]:
        if not self._autocommit and self._native.status == "idle":
            self._run("BEGIN", ())
        return self._run(text, values)

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.closed:
            return
        try:
            if kind is None:
                self.commit()
            else:
                self.rollback()
        finally:
            self.close()

    def __repr__(self) -> str:
        return f"<fabius.dbapi.Connection {'closed' if self.closed else self._native.status}>"


class _Notice(UserWarning):
    """What the database says beside its answer."""


class Cursor:
    """Runs statements and holds the rows of the last one."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        #: The columns of the last statement's rows.
        self.description: list[Column] | None = None
        #: How many rows the last statement gave or changed; -1 if it is about none.
        self.rowcount = -1
        #: What the last statement did, as ``INSERT 0 1``.
        self.statusmessage: str | None = None
        self._rows: list[tuple[Any, ...]] | None = None
        self._at = 0
        self._is_closed = False

    def execute(self, text: str, parameters: Parameters | None = None) -> Cursor:
        """Runs a statement; its parameters are written ``%s`` or ``%(name)s``."""
        self._refuse_if_closed()
        self._forget()
        statement, values = bound(text, parameters)
        tag, columns, rows = self.connection._statement(statement, values)
        self.statusmessage = tag
        if columns is not None:
            self.description = [Column(name, oid) for name, _, oid in columns]
            self._rows = rows
        self.rowcount = _count(tag)
        return self

    def executemany(self, text: str, many: Iterable[Parameters]) -> Cursor:
        """Runs a statement once for each of many parameters; ``rowcount`` is of all of them."""
        self._refuse_if_closed()
        total = 0
        for parameters in many:
            self.execute(text, parameters)
            total += max(self.rowcount, 0)
        self._rows, self.description, self.rowcount = None, None, total
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or ``None``."""
        rows = self._given()
        if self._at >= len(rows):
            return None
        self._at += 1
        return rows[self._at - 1]

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """So many of the next rows; ``arraysize`` if it is not said."""
        rows, begin = self._given(), self._at
        self._at = min(len(rows), begin + (self.arraysize if size is None else size))
        return rows[begin : self._at]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        rows, begin = self._given(), self._at
        self._at = len(rows)
        return rows[begin:]

    def close(self) -> None:
        """Forgets the rows; the cursor is of no use any more."""
        self._forget()
        self._is_closed = True

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing: no size has to be known beforehand."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing: values of any size are fetched whole."""

    def _given(self) -> list[tuple[Any, ...]]:
        self._refuse_if_closed()
        if self._rows is None:
            raise ProgrammingError("there are no rows: the last statement gave none, or none was run")
        return self._rows

    def _forget(self) -> None:
        self._rows, self._at, self.description, self.rowcount, self.statusmessage = None, 0, None, -1, None

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise InterfaceError("the cursor is closed")
        if self.connection.closed:
            raise InterfaceError("the connection is closed")

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self

    def __next__(self) -> tuple[Any, ...]:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def __enter__(self) -> Cursor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _count(tag: str) -> int:
    """The count at the end of a tag, or -1."""
    word = tag.rpartition(" ")[2]
    return int(word) if word.isdigit() and " " in tag else -1
