"""SQLAlchemy's dialect for databases within the process: ``create_engine("fabius:///shop")``.

``fabius://`` is a database in memory, which all of an engine's connections share, and which ends with the engine; a
directory's is open until ``engine.dispose()``. What follows a ``?`` are the options of :func:`fabius.open`. A server of
Fabius is PostgreSQL to SQLAlchemy: ``postgresql+psycopg://``.
"""

from __future__ import annotations

import threading
from types import ModuleType
from typing import Any

from sqlalchemy import URL, pool
from sqlalchemy import types as sqltypes
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.dialects.postgresql.pg_catalog import INT2VECTOR, OIDVECTOR

from . import _fabius, dbapi

_OPTIONS: dict[str, type] = {"engine": str, "durability": str, "workers": int, "history": float}


class _Json(sqltypes.JSON):
    """JSON is read by the package; what SQLAlchemy writes is text, of the type that is wanted."""

    def result_processor(self, dialect: Any, coltype: Any) -> None:
        return None


class _JsonB(JSONB):
    def result_processor(self, dialect: Any, coltype: Any) -> None:
        return None


class _Opened:
    """A database that an engine has opened, and how many sessions of it are not closed."""

    def __init__(self, native: _fabius.Database, path: str | None) -> None:
        self.native = native
        self.path = path
        self.sessions = 0


class _Session(dbapi.Connection):
    """A session; the last one closes its database, unless that is in memory and would be lost."""

    def __init__(self, dialect: FabiusDialect, opened: _Opened, user: str) -> None:
        super().__init__(opened.native, user, autocommit=False, is_own=False)
        self._dialect = dialect
        self._opened = opened

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        with self._dialect._lock:
            self._opened.sessions -= 1
            if self._opened.sessions == 0 and self._opened.path is not None:
                self._opened.native.close()


def _numbers(text: str | None) -> list[int] | None:
    """A vector of the catalog, which is given as its text."""
    return None if text is None else [int(number) for number in text.split()]


class _Int2Vector(INT2VECTOR):
    cache_ok = True

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        return _numbers


class _OidVector(OIDVECTOR):
    cache_ok = True

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        return _numbers


class FabiusDialect(PGDialect):
    """PostgreSQL's SQL, over DB-API 2.0 without a server."""

    name = "fabius"
    driver = "fabius"
    default_paramstyle = "pyformat"
    supports_statement_cache = True
    supports_native_uuid = True
    supports_sane_multi_rowcount = True
    colspecs = {
        **PGDialect.colspecs,
        sqltypes.JSON: _Json,
        JSONB: _JsonB,
        INT2VECTOR: _Int2Vector,
        OIDVECTOR: _OidVector,
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._lock = threading.Lock()
        self._opened: dict[tuple[Any, ...], _Opened] = {}

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        return dbapi

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        return pool.QueuePool

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        options = {name: kind(url.query[name]) for name, kind in _OPTIONS.items() if name in url.query}
        unknown = sorted(set(url.query) - set(_OPTIONS))
        if unknown:
            raise dbapi.InterfaceError(
                f"{url} has unknown options {', '.join(unknown)}: there are {', '.join(_OPTIONS)}"
            )
        path = None if url.database == ":memory:" else url.database or None
        return [], {"path": path, "user": url.username or "fabius", **options}

    def connect(self, *cargs: Any, **cparams: Any) -> Any:
        path, user = cparams.pop("path"), cparams.pop("user")
        key = (path, *sorted(cparams.items()))
        with self._lock:
            opened = self._opened.get(key)
            if opened is None or opened.native.is_closed:
                opened = self._opened[key] = _Opened(_fabius.Database.open(path, **cparams), path)
            opened.sessions += 1
        return _Session(self, opened, user)

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        return isinstance(e, dbapi.InterfaceError) and "closed" in str(e)

    def set_isolation_level(self, dbapi_connection: Any, level: str) -> None:
        if level == "AUTOCOMMIT":
            dbapi_connection.autocommit = True
            return
        dbapi_connection.autocommit = False
        super().set_isolation_level(dbapi_connection, level)

    def get_isolation_level_values(self, dbapi_connection: Any) -> Any:
        return ["AUTOCOMMIT", "READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]
