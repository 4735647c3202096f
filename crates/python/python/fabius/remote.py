"""A database of a server, reached by psycopg, in the place of one that is open in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from .errors import Error, InterfaceError, of_sqlstate

try:
    import psycopg
    from psycopg.pq import TransactionStatus

    from .wire import Calls
except ImportError:
    psycopg = None  # type: ignore[assignment]

__all__ = ["Server"]

#: For so long what the catalog said of tables is believed, in seconds.
_CATALOG_AGE = 1.0


class Server:
    """What :class:`fabius.Database` asks of a database, of one that a server has."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        if psycopg is None:
            raise InterfaceError("databases of servers are reached by psycopg: pip install 'psycopg[binary]'")
        self._url = url
        self._options = options
        self._lock = threading.Lock()
        self._sessions: set[Session] = set()
        self.is_closed = False

    def connect(self, user: str | None = None) -> Session:
        """A session; ``None`` is the user that the address names."""
        if self.is_closed:
            raise InterfaceError("the database is closed")
        options = self._options if user is None else {**self._options, "user": user}
        session = Session(self, self._url, options)
        with self._lock:
            self._sessions.add(session)
        return session

    def forget(self, session: Session) -> None:
        """A session has ended."""
        with self._lock:
            self._sessions.discard(session)

    def checkpoint(self) -> None:
        """Makes the server's next start short."""
        session = self.connect()
        try:
            session.execute("checkpoint", ())
        finally:
            session.close()

    def close(self) -> None:
        """Ends all sessions; the server goes on."""
        self.is_closed = True
        with self._lock:
            sessions, self._sessions = self._sessions, set()
        for session in sessions:
            session.close()

    @property
    def catalog_version(self) -> int:
        """A number that changes soon after a definition."""
        return int(time.monotonic() / _CATALOG_AGE)


class Session:
    """A session of a server: what ``_fabius.Connection`` is for a database in this process."""

    def __init__(self, server: Server, url: str, options: dict[str, Any]) -> None:
        self._server = server
        self._notices: list[tuple[str, str, str]] = []
        try:
            self._connection = psycopg.connect(url, autocommit=True, **options)
        except psycopg.Error as error:
            raise _of(error) from None
        self._connection.add_notice_handler(self._note)
        self._calls = Calls(self._connection, self.notices)

    def _note(self, notice: Any) -> None:
        self._notices.append((notice.severity or "NOTICE", notice.sqlstate or "00000", notice.message_primary or ""))

    def execute(self, text: str, values: Sequence[Any]) -> tuple[str, list[Any] | None, list[Any] | None]:
        """Runs a statement with parameters ``$1``, ``$2``, ...; see ``_fabius.Connection.execute``."""
        try:
            with psycopg.RawCursor(self._connection) as cursor:
                cursor.execute(text, values or None)
                while cursor.nextset():
                    pass
                tag = cursor.statusmessage or ""
                if cursor.description is None:
                    return tag, None, None
                columns = [(column.name, column.type_display, column.type_code) for column in cursor.description]
                return tag, columns, cursor.fetchall()
        except psycopg.Error as error:
            raise _of(error) from None

    def execute_each(self, text: str, calls: Sequence[Sequence[Any]]) -> list[Any]:
        """Runs a statement for each list of parameters, one after the other, each as a transaction of its own: for each
        its first row and the notices, or an exception."""
        return [self._called(text, values) for values in calls]

    def _called(self, text: str, values: Sequence[Any]) -> Any:
        try:
            return self._calls.call(text, values)
        except psycopg.Error as error:
            return _of(error)

    def split(self, text: str) -> list[str]:
        """A server takes several statements at once."""
        return [text]

    @property
    def status(self) -> str:
        """Where the transaction stands: ``idle``, ``open`` or ``failed``."""
        status = self._connection.info.transaction_status
        if status == TransactionStatus.INERROR:
            return "failed"
        return "idle" if status in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN) else "open"

    def notices(self) -> list[tuple[str, str, str]]:
        """Notices since the last time: severity, SQLSTATE and message of each."""
        taken, self._notices = self._notices, []
        return taken

    def close(self) -> None:
        """Ends the session; an open transaction is rolled back."""
        self._server.forget(self)
        self._connection.close()

    @property
    def is_closed(self) -> bool:
        """Whether it is closed, or lost."""
        return bool(self._connection.closed)


def _of(error: Any) -> Error:
    """An error of psycopg as one of this package."""
    told = error.diag
    if error.sqlstate is None:
        lost = of_sqlstate("08006", str(error))
        lost.hint = "if a call was under way, its outcome is not known: ask for it by its key (db.outcome)"
        return lost
    position = told.statement_position
    return of_sqlstate(
        error.sqlstate,
        told.message_primary or str(error),
        told.message_detail,
        told.message_hint,
        int(position) if position else None,
        told.constraint_name,
        told.context,
    )
