"""A database on a simulated disk whose clients take turns: at any time one of them runs, or the scheduler."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from . import _fabius, dbapi
from .database import Database, Result
from .errors import Error
from .tables import Shape

__all__ = ["Call", "Client", "Killed", "SimulatedDatabase"]

R = TypeVar("R")

#: A turn that takes longer never ends.
_TURN_SECONDS_MAX = 60.0

#: A statement that waits for another client's locks waits in vain: nobody else has the turn.
_LOCK_TIMEOUT_MS = 50

#: The statement by which a function that has conflicted often begins to lock. In a simulation it stays optimistic.
_PESSIMISTIC = re.compile(r"set\s+(local\s+|session\s+)?fabius\.concurrency\b", re.IGNORECASE)

#: So many characters of a statement are shown.
_SHOWN_MAX = 200


class Call(NamedTuple):
    """A call that a client has made."""

    #: The name of the scenario's method.
    name: str
    arguments: dict[str, Any]
    #: What it returned; ``None`` if its outcome is unknown.
    result: Any = None

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


class Killed(BaseException):
    """Ends a call whose process is dead. Nobody should catch it."""


class Client(threading.Thread):
    """A call under way."""

    def __init__(self, slot: int, call: Call, function: Callable[..., Any]) -> None:
        super().__init__(name=f"client {slot}", daemon=True)
        self.slot = slot
        self.call = call
        self.is_done = False
        #: Whether it was given up, with the session that it has.
        self.is_stuck = False
        self.result: Any = None
        self.error: BaseException | None = None
        #: What it has done in this turn.
        self.did: list[str] = []
        self._function = function
        self._turn = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._is_fresh = True
        self._is_killed = False
        self.start()

    def run(self) -> None:
        """Makes the call, turn by turn."""
        self._turn.acquire()
        try:
            self.result = self._function(**self.call.arguments)
        except BaseException as error:
            self.error = error
        self.is_done = True
        self._back.release()

    def take_turn(self) -> None:
        """Lets it go on to where its next turn begins, or to its end.

        Raises ``TimeoutError`` if it comes to neither.
        """
        self.did = []
        self._turn.release()
        if not self._back.acquire(timeout=_TURN_SECONDS_MAX):
            self.is_stuck = True
            raise TimeoutError(f"{self.name} has the turn for {_TURN_SECONDS_MAX:.0f} s: what does it wait for?")

    def point(self) -> None:
        """Gives the turn back, and waits for the next: called by its own thread, before each statement."""
        if self._is_killed:
            raise Killed
        if self._is_fresh:
            # What comes before its first statement is no turn of its own.
            self._is_fresh = False
            return
        self._back.release()
        self._turn.acquire()
        if self._is_killed:
            raise Killed

    def kill(self) -> None:
        """Ends the call where it is."""
        self._is_killed = True
        if not self.is_done:
            self.take_turn()
        self.join()


class SimulatedDatabase(Database):
    """A database on a simulated disk, whose sessions wait for the turn of their client."""

    def __init__(self, disk: _fabius.SimulatedDisk) -> None:
        super().__init__(_fabius.Database.open_simulated(disk))
        #: Whether statements are parts of the turn: of what no user has written.
        self.is_aside = False

    def connect(self, *, user: str | None = None, autocommit: bool = False) -> dbapi.Connection:
        """A new session, as DB-API 2.0 has it."""
        return _Session(self, user, autocommit)

    def _shape(self, name: str, execute: Callable[..., Result]) -> Shape:
        with self._aside():
            return super()._shape(name, execute)

    def _apart(self, function: Callable[..., R], *args: Any, **kwargs: Any) -> Future[R]:
        # Threads of its own would not wait for their turn.
        done: Future[R] = Future()
        try:
            done.set_result(function(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done

    @contextmanager
    def _aside(self) -> Iterator[None]:
        before, self.is_aside = self.is_aside, True
        try:
            yield
        finally:
            self.is_aside = before


class _Session(dbapi.Connection):
    """A session that waits before each statement until its client has the turn."""

    def __init__(self, database: SimulatedDatabase, user: str | None, autocommit: bool) -> None:
        super().__init__(database._native, user or "fabius", autocommit, is_own=False)
        self._simulated = database
        self._has_begun = False
        self._native.execute(f"set lock_timeout = {_LOCK_TIMEOUT_MS}", ())

    def _run(self, text: str, values: Sequence[Any]) -> tuple[str, list[Any] | None, list[Any] | None]:
        client = threading.current_thread()
        if not isinstance(client, Client) or self._simulated.is_aside:
            return super()._run(text, values)
        if _PESSIMISTIC.search(text):
            return "SET", None, None
        word = text.split(maxsplit=1)[0].lower() if text.strip() else ""
        # A transaction begins with its first statement; and when it is rolled back is nothing to others.
        if not self._has_begun and word != "rollback":
            client.point()
        self._has_begun = word == "begin"
        client.did.append(_shown(text, values))
        try:
            return super()._run(text, values)
        except Error as error:
            client.did[-1] += f" ({type(error).__name__})"
            raise


def _shown(text: str, values: Sequence[Any]) -> str:
    """A statement as a reader wants it: with its values, and without needless quotes and spaces."""
    text = re.sub(r'"([a-z_][a-z0-9_]*)"', r"\1", " ".join(text.split()))
    text = re.sub(r"\$(\d+)", lambda place: repr(values[int(place[1]) - 1]), text)
    if text in ("BEGIN", "COMMIT", "ROLLBACK"):
        return text.lower()
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]} ..."
