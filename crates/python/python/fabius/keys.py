"""Calls that do nothing the second time: a transaction bears a key, and the database remembers what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .errors import ProgrammingError

__all__ = ["AlreadyCommitted", "Key", "idempotent", "take"]


class AlreadyCommitted(ProgrammingError):
    """The transaction of a key has committed before; what it returned in the client's process is not kept."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the transaction with the key {key!r} has committed")
        self.hint = "it has happened, once: what it returned is only kept of functions that run in the database"


class Key:
    """The key of the next transaction."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.is_taken = False


_current: ContextVar[Key | None] = ContextVar("fabius_key", default=None)


@contextmanager
def idempotent(key: str) -> Iterator[None]:
    """The transaction in the block bears a key: however often it is sent under it, it happens once.

    >>> import fabius
    >>> db = fabius.open()
    >>> db.script("create table stock (item int primary key, qty int); insert into stock values (5, 10)")
    >>> @db.transaction
    ... def reserve(item: int, n: int) -> int:
    ...     row = db.stock[item]
    ...     row.qty -= n
    ...     return row.qty
    >>> for attempt in range(3):
    ...     with fabius.idempotent("order 17"):
    ...         print(reserve(5, 1))
    9
    9
    9
    >>> db.outcome("order 17")
    'committed'
    >>> db.close()

    A repeated call gives what the first gave, and globals that it assigned what it gave them.

    A key is of one transaction: a second one in the block raises ``ProgrammingError``. What a function that runs in the
    client's process (``fabius.side``) returned is not kept: under a key that has committed it raises
    ``AlreadyCommitted``.
    """
    if not key:
        raise ProgrammingError("a key has at least one character")
    token = _current.set(Key(key))
    try:
        yield
    finally:
        _current.reset(token)


def take() -> str | None:
    """The key of the transaction that begins, if it bears one.

    Raises ``ProgrammingError`` if another has had it.
    """
    key = _current.get()
    if key is None:
        return None
    if key.is_taken:
        raise ProgrammingError(f"the key {key.text!r} is of one transaction, and another began in its block")
    key.is_taken = True
    return key.text


def refuse_part() -> None:
    """Raises ``ProgrammingError`` where a key was given to a part of a transaction."""
    key = _current.get()
    if key is not None and not key.is_taken:
        raise ProgrammingError(f"the key {key.text!r} is of a part of a transaction: begin its block around the whole")


def give_back() -> None:
    """The transaction that took the key has not happened: it runs again, under the same key."""
    key = _current.get()
    if key is not None:
        key.is_taken = False


def is_free() -> bool:
    """Whether the transaction that begins bears no key."""
    return _current.get() is None
