"""Calls that are handed in without waiting for those before: many at a time go to the database together."""

from __future__ import annotations

import os
import queue
import threading
import weakref
from concurrent.futures import Future, InvalidStateError
from typing import TYPE_CHECKING, Any

from .compilation import Compiled
from .errors import InterfaceError

if TYPE_CHECKING:
    from . import _fabius

__all__ = ["Pipeline"]

#: Calls that go to the database together, at most.
_TOGETHER = 1000

#: Calls that wait, at most: then whoever hands more in waits.
_WAITING = 20_000


class Submitted(Future[Any]):
    """A future that takes a condition to wait by only if somebody waits: most are done before."""

    def __init__(self) -> None:
        # As in `concurrent.futures.Future`, but for the condition.
        self._state = "PENDING"
        self._result: Any = None
        self._exception: BaseException | None = None
        self._waiters: list[Any] = []
        self._done_callbacks: list[Any] = []

    @property
    def _condition(self) -> threading.Condition:  # type: ignore[override]
        own = self.__dict__
        if "condition" not in own:
            with _making:
                own.setdefault("condition", threading.Condition())
        condition: threading.Condition = own["condition"]
        return condition

    def result(self, timeout: float | None = None) -> Any:
        """What the call gave; waits for it where it is not known yet."""
        # The state is set last.
        if self._state == "FINISHED" and self._exception is None:
            return self._result
        return super().result(timeout)

    def finish(self, result: Any, error: BaseException | None) -> None:
        """Sets what the call gave, or why it ended, unless it was given up."""
        with _making:
            if "condition" not in self.__dict__:
                # Nobody waits, nobody has been asked to call.
                self._result, self._exception, self._state = result, error, "FINISHED"
                return
        try:
            if error is None:
                self.set_result(result)
            else:
                self.set_exception(error)
        except InvalidStateError:
            # It was given up; the call goes on.
            pass


#: Conditions are made one at a time, and none while a future without one is finished.
_making = threading.Lock()

#: How often this process was forked from another: to ask the system for its number would cost each call.
_forks = 0


def _note_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)

Call = tuple[Compiled, "list[Any]", Submitted]


class Pipeline:
    """A session that takes calls in their order, each a transaction of its own."""

    def __init__(self, session: _fabius.Connection) -> None:
        self._calls: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        #: Set whenever calls have been answered.
        self._room = threading.Event()
        self._is_closed = False
        self._forks = _forks
        # The thread has nothing of whoever submits: a database that nobody has any more ends it.
        self._thread = threading.Thread(
            target=_run, args=(session, self._calls, self._room), name="fabius calls", daemon=True
        )
        self._thread.start()
        self._end = weakref.finalize(self, self._calls.put, None)

    def submit(self, program: Compiled, values: list[Any]) -> Future[Any]:
        """Hands a call in.

        Raises ``InterfaceError`` if the database is closed, or was opened before this process was forked.
        """
        if self._forks != _forks:
            raise InterfaceError("the database was opened before this process was forked: open it here")
        # Whoever answers calls cannot wait for room: nobody else makes it.
        while self._calls.qsize() > _WAITING and threading.current_thread() is not self._thread:
            self._room.clear()
            if self._calls.qsize() > _WAITING:
                self._room.wait()
        future = Submitted()
        with self._lock:
            if self._is_closed:
                raise InterfaceError("the database is closed")
            self._calls.put((program, values, future))
        return future

    def close(self) -> None:
        """Waits for the calls that were handed in, and ends the session."""
        with self._lock:
            self._is_closed = True
            self._end()
        if threading.current_thread() is not self._thread:
            self._thread.join()


def _run(session: _fabius.Connection, calls: queue.SimpleQueue[Call | None], room: threading.Event) -> None:
    """Answers calls until the end of them."""
    following: Call | None = None
    while True:
        call = following or calls.get()
        following = None
        if call is None:
            session.close()
            return
        together = [call]
        try:
            while len(together) < _TOGETHER:
                other = calls.get_nowait()
                if other is None:
                    calls.put(None)
                    break
                if other[0] is not call[0]:
                    following = other
                    break
                together.append(other)
        except queue.Empty:
            pass
        _answer(session, call[0], together)
        room.set()
        del call, together


def _answer(session: _fabius.Connection, program: Compiled, calls: list[Call]) -> None:
    answers: list[Any]
    try:
        answers = session.execute_each(program.statement, [call[1] for call in calls])
    except Exception as error:
        answers = [error] * len(calls)
    for (_, _, future), answer in zip(calls, answers):
        try:
            result = program.answered(answer)
        except BaseException as error:
            future.finish(None, error)
        else:
            future.finish(result, None)
