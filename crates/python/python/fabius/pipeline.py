"""Calls that are handed in without waiting for those before: many at a time go to the database together."""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from .compilation import Compiled

if TYPE_CHECKING:
    from . import _fabius

__all__ = ["Pipeline"]

#: Calls that go to the database together, at most.
_TOGETHER = 1000

#: Calls that wait, at most: then whoever hands more in waits.
_WAITING = 20_000

Call = tuple[Compiled, "list[Any]", "Future[Any]"]


class Pipeline:
    """A session that takes calls in their order, each a transaction of its own."""

    def __init__(self, session: _fabius.Connection) -> None:
        self._session = session
        self._calls: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="fabius calls", daemon=True)
        self._thread.start()

    def submit(self, program: Compiled, values: list[Any]) -> Future[Any]:
        """Hands a call in."""
        while self._calls.qsize() > _WAITING:
            time.sleep(0.001)
        future: Future[Any] = Future()
        self._calls.put((program, values, future))
        return future

    def close(self) -> None:
        """Waits for the calls that were handed in, and ends the session."""
        self._calls.put(None)
        self._thread.join()
        self._session.close()

    def _run(self) -> None:
        following: Call | None = None
        while True:
            call = following or self._calls.get()
            following = None
            if call is None:
                return
            together = [call]
            try:
                while len(together) < _TOGETHER:
                    other = self._calls.get_nowait()
                    if other is None:
                        self._calls.put(None)
                        break
                    if other[0] is not call[0]:
                        following = other
                        break
                    together.append(other)
            except queue.Empty:
                pass
            self._answer(call[0], together)

    def _answer(self, program: Compiled, calls: list[Call]) -> None:
        calls = [call for call in calls if call[2].set_running_or_notify_cancel()]
        answers: list[Any]
        try:
            answers = self._session.execute_each(program.statement, [call[1] for call in calls])
        except Exception as error:
            answers = [error] * len(calls)
        for (_, _, future), answer in zip(calls, answers):
            try:
                future.set_result(program.answered(answer))
            except BaseException as error:
                future.set_exception(error)
