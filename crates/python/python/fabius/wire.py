"""Calls of programs as the protocol has them: a statement is prepared once, and then sent by its name.

``psycopg.pq``, the driver's binding of libpq, does the talking: a cursor would take several times as long for a call.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import adapt, errors, pq
from psycopg.types.numeric import Int8BinaryDumper

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

__all__ = ["Calls"]

Notices = Sequence[tuple[str, str, str]]


class Calls:
    """Calls over a connection that is in no transaction, each a transaction of its own."""

    def __init__(self, connection: psycopg.Connection[Any], notices: Callable[[], Notices]) -> None:
        self._pgconn = connection.pgconn
        self._notices = notices
        cursor = connection.cursor()
        # One class of numbers, so that a call's values do not make another statement of it.
        cursor.adapters.register_dumper(int, Int8BinaryDumper)
        self._transformer = adapt.Transformer(cursor)
        #: Names of statements, by their texts and the types of their parameters.
        self._prepared: dict[tuple[str, tuple[int, ...]], bytes] = {}
        self._readable = select.poll()
        self._readable.register(self._pgconn.socket, select.POLLIN)

    def call(self, text: str, values: Sequence[Any]) -> tuple[Any, Notices]:
        """The first row that a statement gives, and the notices.

        Raises what the server has found wrong. What interrupts it ends the connection: nobody knows what it has done.
        """
        transformer = self._transformer
        dumped = transformer.dump_sequence(values, [adapt.PyFormat.AUTO] * len(values))
        types = tuple(transformer.types or ())
        statement = self._prepared.get((text, types)) or self._prepare(text, types)
        try:
            self._pgconn.send_query_prepared(statement, dumped, transformer.formats)
            result = self._next()
            while self._next() is not None:
                pass
        except BaseException:
            self._pgconn.finish()
            raise
        # What it said before it ended is void.
        notices = self._notices()
        if result is None or result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            raise errors.error_from_result(result) if result is not None else errors.OperationalError("no answer")
        transformer.set_pgresult(result)
        return transformer.load_row(0, tuple), notices

    def _prepare(self, text: str, types: tuple[int, ...]) -> bytes:
        name = b"fabius %d" % len(self._prepared)
        result = self._pgconn.prepare(name, text.encode(), types)
        if result.status != pq.ExecStatus.COMMAND_OK:
            raise errors.error_from_result(result)
        self._prepared[text, types] = name
        return name

    def _next(self) -> PGresult | None:
        """The next result, once it is there."""
        if self._pgconn.flush():
            self._flush()
        while self._pgconn.is_busy():
            self._readable.poll()
            self._pgconn.consume_input()
        return self._pgconn.get_result()

    def _flush(self) -> None:
        """Sends what the system has not taken yet; the server may wait until what it has answered is read."""
        both = select.poll()
        both.register(self._pgconn.socket, select.POLLIN | select.POLLOUT)
        while self._pgconn.flush():
            both.poll()
            self._pgconn.consume_input()
