"""Calls of programs as the protocol has them: a statement is prepared once, and calls are sent one behind the other.

``psycopg.pq``, the driver's binding of libpq, does the talking: a cursor would take several times as long for a call.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg import adapt, errors, pq
from psycopg.types.numeric import Int8BinaryDumper

if TYPE_CHECKING:
    from psycopg.pq.abc import Buffer, PGresult

__all__ = ["Calls"]

#: Calls whose answers have not been read, at most.
_TOGETHER = 256

Notices = Sequence[tuple[str, str, str]]


class _Call(NamedTuple):
    #: Its place among the calls that were handed in together.
    place: int
    #: The statement's name.
    statement: bytes
    values: Sequence[Buffer | None]
    formats: Sequence[pq.Format]


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

    def run(self, text: str, calls: Sequence[Sequence[Any]]) -> list[Any]:
        """For each list of parameters the first row that the statement gives and the notices, or an exception.

        What interrupts it ends the connection: nobody knows what its calls have done.
        """
        try:
            return self._run(text, calls)
        except BaseException:
            self._pgconn.finish()
            raise

    def _run(self, text: str, calls: Sequence[Sequence[Any]]) -> list[Any]:
        answers: list[Any] = [None] * len(calls)
        ready = list(self._ready(text, calls, answers))
        if len(ready) == 1:
            self._send(ready[0])
            answers[ready[0].place] = self._answer()
            return answers
        for first in range(0, len(ready), _TOGETHER):
            together = ready[first : first + _TOGETHER]
            self._pgconn.enter_pipeline_mode()
            for call in together:
                self._send(call)
                # Each is a transaction.
                self._pgconn.pipeline_sync()
            for call in together:
                answers[call.place] = self._answer()
                # Behind each is the end of its transaction.
                self._next()
            self._pgconn.exit_pipeline_mode()
        return answers

    def _ready(self, text: str, calls: Sequence[Sequence[Any]], answers: list[Any]) -> Iterator[_Call]:
        """Calls that can be sent; the others have their answer."""
        transformer = self._transformer
        for place, values in enumerate(calls):
            try:
                dumped = transformer.dump_sequence(values, [adapt.PyFormat.AUTO] * len(values))
                types = tuple(transformer.types or ())
                statement = self._prepared.get((text, types)) or self._prepare(text, types)
            except psycopg.Error as error:
                answers[place] = error
            else:
                yield _Call(place, statement, dumped, transformer.formats or ())

    def _prepare(self, text: str, types: tuple[int, ...]) -> bytes:
        name = b"fabius %d" % len(self._prepared)
        result = self._pgconn.prepare(name, text.encode(), types)
        if result.status != pq.ExecStatus.COMMAND_OK:
            raise errors.error_from_result(result)
        self._prepared[text, types] = name
        return name

    def _send(self, call: _Call) -> None:
        self._pgconn.send_query_prepared(call.statement, call.values, call.formats)

    def _answer(self) -> Any:
        """What the next call has given, once it is there."""
        answer: Any = None
        while (result := self._next()) is not None:
            if result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
                self._transformer.set_pgresult(result)
                answer = self._transformer.load_row(0, tuple), self._notices()
            else:
                answer = errors.error_from_result(result)
                # What it said before it ended is void.
                self._notices()
        return answer

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
