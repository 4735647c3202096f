"""Fabius: a transactional database for the rows that everyone wants at once.

>>> import fabius
>>> db = fabius.open()
>>> db.execute("create table stock (item int primary key, qty int check (qty >= 0))").tag
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
from .database import Database, Result, open
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
from .tables import RowNotFound
from .transactions import Aborted, require
from .values import Json

__all__ = [
    "open",
    "Database",
    "Result",
    "Json",
    "require",
    "Aborted",
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
