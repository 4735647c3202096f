"""Rows by their keys, as functions that are transactions use them: ``db.stock[5].qty -= 1``.

A row is read when it is taken by its key, and written, and read again, when one of its columns is assigned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from .errors import Error, ProgrammingError, lookup
from .values import Json

if TYPE_CHECKING:
    from .futures.schema import Facts
    from .transactions import Run

__all__ = ["Row", "Table", "RowNotFound"]


class RowNotFound(lookup("P0002"), KeyError):  # type: ignore[misc]
    """There is no row of a key; ``except KeyError`` catches it too."""

    __str__ = Error.__str__


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


#: The numbers of ``json`` and ``jsonb`` in ``pg_type``.
_JSON = (114, 3802)

#: A column, an operator of SQL, and a value.
Condition: TypeAlias = "tuple[str, str, Any]"


class Shape:
    """A table's columns and key, as its catalog has them."""

    def __init__(self, name: str, types: Mapping[str, int], key: tuple[str, ...]) -> None:
        self.name = name
        self.columns = tuple(types)
        self.key = key
        self._of_json = {column for column, oid in types.items() if oid in _JSON}
        self.written = ".".join(map(quoted, name.split(".")))
        #: What else the catalog says, once functions over futures have asked.
        self.facts: Facts | None = None

    def condition(self) -> str:
        """What a row of a key satisfies; the key's values are its parameters."""
        return " and ".join(f"{quoted(column)} = %s" for column in self.key)

    def values(self, key: Any) -> tuple[Any, ...]:
        """A key's values: one, or a tuple of all."""
        if not self.key:
            raise ProgrammingError(f"table {self.name} has no primary key: rows are not found by one")
        values = key if isinstance(key, tuple) else (key,)
        if len(values) != len(self.key):
            wanted = ", ".join(self.key)
            raise ProgrammingError(f"the key of {self.name} is ({wanted}), but {len(values)} values are given")
        return values

    def kept(self, name: str, value: Any) -> Any:
        """A value as a parameter for a column. Of ``json``, a ``str`` is the text; other values are written as that."""
        return Json(value) if name in self._of_json and isinstance(value, (dict, list, int, float)) else value

    def range(self, key: Any) -> list[Condition]:
        """What rows of ``first, lower:upper`` satisfy."""
        *prefix, bounds = key if isinstance(key, tuple) else (key,)
        if not isinstance(bounds, slice) or is_range(tuple(prefix)):
            raise ProgrammingError("a range is the last part of a key: db.table[first, lower:upper]")
        if bounds.step is not None:
            raise ProgrammingError("a range of keys has no step: go through all, and leave out others")
        if len(prefix) >= len(self.key):
            wanted = ", ".join(self.key)
            raise ProgrammingError(
                f"the key of {self.name} is ({wanted}), but a range of its part {len(prefix) + 1} is given"
            )
        column = self.key[len(prefix)]
        ends = [(column, ">=", bounds.start), (column, "<", bounds.stop)]
        return [(name, "=", value) for name, value in zip(self.key, prefix)] + [
            end for end in ends if end[2] is not None
        ]


def is_range(key: Any) -> bool:
    """Whether a key is ``lower:upper``, or has that as a part."""
    return any(isinstance(part, slice) for part in (key if isinstance(key, tuple) else (key,)))


class Table:
    """A table within a transaction: rows by key, and new ones."""

    __slots__ = ("_run", "_shape")

    def __init__(self, run: Run, shape: Shape) -> None:
        self._run = run
        self._shape = shape

    @overload
    def __getitem__(self, key: slice) -> Iterator[Row]: ...

    @overload
    def __getitem__(self, key: Any) -> Any: ...

    def __getitem__(self, key: Any) -> Any:
        """The row of a key; of ``first, lower:upper`` the rows whose keys are that, in the order of their key.

        Raises ``RowNotFound``, a ``KeyError``, if a row of a key is not there.
        """
        if is_range(key):
            return self._found(self._shape.range(key))
        row = self._row(key)
        row._there(row._read())
        return row

    def _row(self, key: Any) -> Row:
        """The row of a key, whether it is there or not."""
        return Row(self._run, self._shape, self._shape.values(key))

    def get(self, key: Any) -> Row | None:
        """The row of a key, or ``None``."""
        row = self._row(key)
        return row if row._read() is not None else None

    def __contains__(self, key: Any) -> bool:
        return self.get(key) is not None

    def __iter__(self) -> Iterator[Row]:
        """All rows, in the order of their key."""
        return self._found([])

    def where(self, **equal: Any) -> Iterator[Row]:
        """The rows whose columns have these values, in the order of their key."""
        for name in equal:
            _refuse_other(self._shape, name)
        return self._found([(name, "=", value) for name, value in equal.items()])

    def _found(self, conditions: list[Condition]) -> Iterator[Row]:
        """The rows that satisfy all of them, in the order of their key."""
        shape = self._shape
        # Years of an interval are 365 days in Python, but 360 where SQL compares.
        spans = {name: value for name, how, value in conditions if how == "=" and isinstance(value, timedelta)}
        conditions = [one for one in conditions if one[0] not in spans]
        # `None` equals `None` in Python.
        written = [f"{quoted(name)} {'is null' if value is None else f'{how} %s'}" for name, how, value in conditions]
        values = tuple(shape.kept(name, value) for name, _, value in conditions if value is not None)
        where = f" where {' and '.join(written)}" if written else ""
        order = f" order by {', '.join(map(quoted, shape.key))}" if shape.key else ""
        columns = ", ".join(map(quoted, shape.columns))
        found = self._run.execute(f"select {columns} from {shape.written}{where}{order}", values)
        for fields in found:
            row = dict(zip(shape.columns, fields))
            if all(row[name] == span for name, span in spans.items()):
                yield Row(self._run, shape, tuple(row[name] for name in shape.key), row)

    def insert(self, **values: Any) -> Row:
        """A new row; columns that are not given have their defaults."""
        shape = self._shape
        for name in values:
            _refuse_other(shape, name)
        columns = ", ".join(map(quoted, values))
        places = ", ".join(["%s"] * len(values))
        written = f"({columns}) values ({places})" if values else "default values"
        return self._written(f"insert into {shape.written} {written}", self._kept(values))

    def _kept(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Values of columns as parameters."""
        return tuple(self._shape.kept(name, value) for name, value in values.items())

    def _written(self, statement: str, values: tuple[Any, ...]) -> Row:
        """The row that a statement writes, as it is then."""
        shape = self._shape
        made = self._run.execute(f"{statement} returning {', '.join(map(quoted, shape.columns))}", values).one()
        known = dict(zip(shape.columns, made))
        return Row(self._run, shape, tuple(known[name] for name in shape.key), known)

    def upsert(self, **values: Any) -> Row:
        """A new row, or that of its key with these values."""
        shape = self._shape
        for name in values:
            _refuse_other(shape, name)
        missing = [name for name in shape.key if name not in values]
        if missing or not shape.key:
            raise ProgrammingError(f"upsert of {shape.name} needs its key: {', '.join(missing) or 'there is none'}")
        columns = ", ".join(map(quoted, values))
        places = ", ".join(["%s"] * len(values))
        # A row that is there is given back too.
        others = [name for name in values if name not in shape.key] or list(shape.key)
        does = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in others)
        key = ", ".join(map(quoted, shape.key))
        return self._written(
            f"insert into {shape.written} ({columns}) values ({places}) on conflict ({key}) do update set {does}",
            self._kept(values),
        )

    def __delitem__(self, key: Any) -> None:
        self._row(key).delete()

    def __repr__(self) -> str:
        return f"<Table {self._shape.name}>"


class Row:
    """A row within a transaction. Attributes are its columns: read when they are asked for, written when assigned."""

    __slots__ = ("_run", "_shape", "_key", "_known")

    def __init__(self, run: Run, shape: Shape, key: tuple[Any, ...], known: dict[str, Any] | None = None) -> None:
        for name, value in (("_run", run), ("_shape", shape), ("_key", key), ("_known", known)):
            object.__setattr__(self, name, value)

    def _read(self) -> dict[str, Any] | None:
        """The columns' values, or ``None`` if there is no such row."""
        known: dict[str, Any] | None = self._known
        if known is None:
            shape = self._shape
            columns = ", ".join(map(quoted, shape.columns))
            found = self._run.execute(
                f"select {columns} from {shape.written} where {shape.condition()}", self._key
            ).first()
            if found is not None:
                known = dict(zip(shape.columns, found))
                object.__setattr__(self, "_known", known)
        return known

    def __getattr__(self, name: str) -> Any:
        _refuse_other(self._shape, name)
        return self._there(self._read())[name]

    def __setattr__(self, name: str, value: Any) -> None:
        _refuse_other(self._shape, name)
        shape = self._shape
        # Other columns may follow, by what they are generated from.
        columns = ", ".join(map(quoted, shape.columns))
        changed = self._run.execute(
            f"update {shape.written} set {quoted(name)} = %s where {shape.condition()} returning {columns}",
            (shape.kept(name, value), *self._key),
        ).first()
        known = self._there(dict(zip(shape.columns, changed)) if changed is not None else None)
        object.__setattr__(self, "_known", known)
        object.__setattr__(self, "_key", tuple(known[column] for column in shape.key) if shape.key else self._key)

    def delete(self) -> None:
        """Deletes the row."""
        shape = self._shape
        gone = self._run.execute(f"delete from {shape.written} where {shape.condition()}", self._key)
        if gone.rowcount == 0:
            self._there(None)
        object.__setattr__(self, "_known", None)

    def _there(self, known: dict[str, Any] | None) -> dict[str, Any]:
        if known is None:
            key = ", ".join(f"{name} = {_said(value)}" for name, value in zip(self._shape.key, self._key))
            raise RowNotFound(f"there is no row of {self._shape.name} with {key}")
        return known

    def __iter__(self) -> Iterator[Any]:
        return iter(self._there(self._read()).values())

    def _asdict(self) -> Mapping[str, Any]:
        return dict(self._there(self._read()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return NotImplemented
        return (self._shape.name, self._key) == (other._shape.name, other._key)

    def __hash__(self) -> int:
        return hash((self._shape.name, self._key))

    def __repr__(self) -> str:
        known = self._known or dict(zip(self._shape.key, self._key))
        return f"<Row of {self._shape.name}: {', '.join(f'{name}={value!r}' for name, value in known.items())}>"


def _refuse_other(shape: Shape, name: str) -> None:
    if name not in shape.columns:
        raise AttributeError(f"table {shape.name} has no column {name!r}: it has {', '.join(shape.columns)}")


def _said(value: Any) -> str:
    """A part of a key, as programs say it too."""
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return repr(value) if isinstance(value, str) else "..." if isinstance(value, bytes) else str(value)
