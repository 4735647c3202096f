"""Rows by their keys, whose columns are futures: taking one asks only whether it is there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .. import tables
from ..parameters import numbered
from ..tables import Shape, _refuse_other, is_range, quoted
from .formula import LOST, Cell, Place, Writing
from .schema import Facts, facts
from .unread import Unread, formula_of, value_of

if TYPE_CHECKING:
    from ..transactions import Run
    from .pending import Pending

__all__ = ["Row", "Table"]


class Table(tables.Table):
    """A table within a transaction: rows by key, whose columns are futures."""

    __slots__ = ("_facts", "_pending")

    def __init__(self, run: Run, shape: Shape, pending: Pending) -> None:
        super().__init__(run, shape)
        self._pending = pending
        self._facts = facts(shape, run.send)

    def __getitem__(self, key: Any) -> Any:
        if is_range(key):
            return self._found(self._shape.range(key))
        row = self._row(key)
        if not row._take():
            row._there(None)
        return row

    def get(self, key: Any) -> Row | None:
        """The row of a key, or ``None``."""
        row = self._row(key)
        return row if row._take() else None

    def __contains__(self, key: Any) -> bool:
        return self._row(key)._take()

    def _row(self, key: Any) -> Row:
        values = self._shape.values(key)
        return Row(self._pending, self._shape, self._facts, tuple(map(value_of, values)))

    def _found(self, conditions: list[tables.Condition]) -> Iterator[tables.Row]:
        """The rows that satisfy all of them, in the order of their key: only which they are is read."""
        shape = self._shape
        given = [(name, how, value_of(value)) for name, how, value in conditions]
        if not shape.key or any(isinstance(value, timedelta) for _, _, value in given):
            yield from super()._found(given)
            return
        out = Writing()
        written = [
            f"{quoted(name)} {'is null' if value is None else f'{how} {out.put(value)}'}" for name, how, value in given
        ]
        where = f" where {' and '.join(written)}" if written else ""
        key = ", ".join(map(quoted, shape.key))
        found = self._run.send(numbered(f"select {key} from {shape.written}{where} order by {key}"), out.values)
        # All of them are as they are now, whatever is written meanwhile.
        rows = list(map(self._made, found))
        rows.reverse()
        while rows:
            yield rows.pop()

    def insert(self, **values: Any) -> tables.Row:
        """A new row; futures among its values are not read, its key's included."""
        shape = self._shape
        for name in values:
            _refuse_other(shape, name)
        out = Writing()
        columns = ", ".join(map(quoted, values))
        places = ", ".join(self._place(name, value, out) for name, value in values.items())
        written = f"({columns}) values ({places})" if values else "default values"
        statement = f"insert into {shape.written} {written}"
        if shape.key and all(self._is_as_given(name, values.get(name)) for name in shape.key):
            self._run.send(numbered(statement), out.values)
            row = Row(self._pending, shape, self._facts, tuple(values[name] for name in shape.key))
            row._wait()
            return row
        return self._returned(statement, out.values)

    def _place(self, name: str, value: Any, out: Writing) -> str:
        formula = formula_of(value, self._pending)
        if formula is None or not self._facts.columns[name].takes(formula):
            return out.put(self._shape.kept(name, value_of(value)))
        return formula.text(out, None)

    def _is_as_given(self, name: str, value: Any) -> bool:
        """Whether a key has a value that is a future, and that the column gives back as it is."""
        column = self._facts.columns[name]
        formula = formula_of(value, self._pending)
        if formula is not None:
            return column.takes(formula) and column.keeps(formula)
        return type(value_of(value)) is int and column.type in ("smallint", "integer", "bigint")

    def _written(self, statement: str, values: tuple[Any, ...]) -> tables.Row:
        """The row that an upsert writes; what it is given is read."""
        given = tuple(map(value_of, values))
        self._pending.settle(None if self._facts.spread else self._facts.oid)
        key = ", ".join(map(quoted, self._shape.key))
        return self._made(self._run.send(f"{statement} returning {key}", given).one())

    def _returned(self, statement: str, values: list[Any]) -> tables.Row:
        """The row that a statement writes, whose key is read."""
        shape = self._shape
        if not shape.key:
            found = self._run.send(numbered(f"{statement} returning {', '.join(map(quoted, shape.columns))}"), values)
            return tables.Row(self._run, shape, (), dict(zip(shape.columns, found.one())))
        found = self._run.send(numbered(f"{statement} returning {', '.join(map(quoted, shape.key))}"), values)
        return self._made(found.one())

    def _made(self, key: Any) -> Row:
        row = Row(self._pending, self._shape, self._facts, tuple(key))
        row._is_taken()
        return row


class Row(tables.Row):
    """A row within a transaction. Its columns are futures; what it is assigned is not read."""

    __slots__ = ("_pending", "_facts", "_place", "_columns", "__weakref__")

    def __init__(self, pending: Pending, shape: Shape, facts: Facts, key: tuple[Any, ...]) -> None:
        super().__init__(pending.run, shape, key)
        #: Where it is; ``None`` while that is not known, and once it was deleted.
        for name, value in (("_pending", pending), ("_facts", facts), ("_place", None), ("_columns", {})):
            object.__setattr__(self, name, value)

    def _take(self) -> bool:
        """Whether it is there, which is all that is read."""
        shape = self._shape
        key = ", ".join(map(quoted, shape.key))
        found = self._run.send(f"select {key} from {shape.written} where {shape.condition()}", self._key).first()
        if found is None:
            return False
        object.__setattr__(self, "_key", tuple(found))
        self._is_taken()
        return True

    def _is_taken(self) -> None:
        """It is there, and its key is as the database has it."""
        key = self._key
        try:
            hash(key)
            hashed = key
        except TypeError:
            hashed = repr(key)
        place = Place(self._facts.oid, hashed, self._shape, key)
        object.__setattr__(self, "_place", place)
        self._columns.clear()
        self._pending.hold_row(self, place)

    def _wait(self) -> None:
        """It was inserted; its key is read when it is used."""
        self._pending.hold_row(self, None)

    def _locate(self) -> bool:
        """Whether it is there; if it was inserted with a key that has not been read, that is read."""
        if self._place is None:
            object.__setattr__(self, "_key", tuple(map(value_of, self._key)))
            return self._take()
        return True

    def _column(self, name: str) -> Any:
        """A column's value, or its future."""
        known = self._columns.get(name, _MISSING)
        if known is _MISSING or (isinstance(known, Unread) and known._formula is LOST):
            known = self._columns[name] = self._asked(name)
        return known

    def _asked(self, name: str) -> Any:
        place, column = self._place, self._facts.columns[name]
        assert place is not None
        if name in self._shape.key:
            return self._key[self._shape.key.index(name)]
        written = quoted(name)
        if column.kind is None:
            return self._pending.ask(place, lambda out, own: written)
        # `is None` cannot be put off.
        if column.is_nullable and self._pending.ask(place, lambda out, own: f"{written} is null"):
            return None
        return Unread(self._pending, Cell.of(place, column))

    def _keep(self) -> None:
        """Reads all of it."""
        place = self._place
        if place is None:
            return
        shape = self._shape
        missing = [name for name in shape.columns if name not in shape.key and not self._is_known(name)]
        if missing:
            found = self._pending.row(place, lambda out, own: ", ".join(map(quoted, missing)))
            if found is not None:
                self._columns.update(zip(missing, found))
        for name in shape.columns:
            value_of(self._column(name))

    def _is_known(self, name: str) -> bool:
        known = self._columns.get(name, _MISSING)
        return known is not _MISSING and not (isinstance(known, Unread) and known._formula is LOST)

    def _read(self) -> dict[str, Any] | None:
        if not self._locate():
            return None
        self._keep()
        return {name: value_of(self._column(name)) for name in self._shape.columns}

    def __getattr__(self, name: str) -> Any:
        _refuse_other(self._shape, name)
        if not self._locate():
            self._there(None)
        known = self._column(name)
        return known._value if isinstance(known, Unread) and known._formula is None else known

    def __setattr__(self, name: str, value: Any) -> None:
        _refuse_other(self._shape, name)
        if not self._locate():
            self._there(None)
        if name in self._shape.key or name in self._facts.spread:
            self._move(name, value_of(value))
        else:
            self._pending.assign(self, name, value)

    def _move(self, name: str, value: Any) -> None:
        """Assigns a column of the key, or one with which others change."""
        shape = self._shape
        object.__setattr__(self, "_place", None)
        self._pending.settle(None if self._facts.spread else self._facts.oid)
        key = ", ".join(map(quoted, shape.key))
        changed = self._run.send(
            f"update {shape.written} set {quoted(name)} = %s where {shape.condition()} returning {key}",
            (shape.kept(name, value), *self._key),
        ).first()
        if changed is None:
            self._there(None)
        object.__setattr__(self, "_key", tuple(changed))
        self._is_taken()

    def delete(self) -> None:
        """Deletes the row."""
        if not self._locate():
            self._there(None)
        place = self._place
        assert place is not None
        self._columns.clear()
        object.__setattr__(self, "_place", None)
        if self._facts.spreads_deletion:
            self._pending.settle()
        else:
            self._pending.settle_row(place)
        shape = self._shape
        gone = self._run.send(f"delete from {shape.written} where {shape.condition()}", self._key)
        if gone.rowcount == 0:
            self._there(None)

    def __repr__(self) -> str:
        if self._pending.is_over:
            return super().__repr__()
        known = self._read() or dict(zip(self._shape.key, self._key))
        return f"<Row of {self._shape.name}: {', '.join(f'{name}={value!r}' for name, value in known.items())}>"


_MISSING = object()
