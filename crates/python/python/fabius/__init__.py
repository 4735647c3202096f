"""Fabius: a transactional database for the rows that everyone wants at once.

>>> import fabius
>>> db = fabius.open()
>>> db.execute("create table stock (item int primary key, qty int not null check (qty >= 0))").tag
'CREATE TABLE'
>>> db.execute("insert into stock values (5, 10)").tag
'INSERT 0 1'
>>> db.execute("update stock set qty = qty - 1 where item = %s returning qty", (5,)).scalar()
9
>>> @db.transaction
... def reserve(item: int, n: int) -> int:
...     row = db.stock[item]
...     fabius.require(row.qty >= n, f"only {row.qty} left")
...     row.qty -= n
...     return row.qty
>>> reserve(5, 2)
7
>>> db.close()
"""

from ._fabius import __version__
from .aborts import Aborted, require
from .database import Database, Result, connect, open
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
from .futures import Unread
from .keys import AlreadyCommitted, idempotent
from .tables import RowNotFound
from .transactions import Side, execute_sql
from .values import Json

#: Where functions that are transactions run, if they do not say it: ``"client"`` is the client's process, step by step,
#: for debuggers; ``"futures"`` is that too, over values that are not read until they are needed.
side: Side = "database"

__all__ = [
    "open",
    "connect",
    "side",
    "idempotent",
    "Database",
    "Result",
    "Json",
    "Unread",
    "execute_sql",
    "require",
    "Aborted",
    "AlreadyCommitted",
    "RowNotFound",
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
    "__version__",
]
