"""A database that is nothing but dictionaries, in which the same functions run as plain Python.

A table is a dictionary of rows by their keys, and a row is one of values by their columns. A function runs in it with
the model as its ``db``. Of the package there is ``require``, and the classes of exceptions, by which a caller knows
what ended a call. Statements of SQL are not understood: whoever writes one says what it means (``statements``).
"""

import decimal
import sys
from typing import Any, NamedTuple

import fabius
from fabius.errors import of_sqlstate
from fabius.parameters import braced

_ROUNDED = decimal.ROUND_HALF_UP


class Column(NamedTuple):
    """What a column holds: values of a class, within what the column's type has room for."""

    of: type
    #: Of an int.
    bits: int = 64
    #: Digits of a Decimal, and how many of them are behind the point.
    digits: tuple = (38, 10)
    is_optional: bool = False

    def kept(self, table, name, value):
        """A value as the column keeps it.

        Raises what the database raises for one that the column cannot keep.
        """
        if value is None:
            if not self.is_optional:
                message = f'null value in column "{name}" of relation "{table}" violates not-null constraint'
                raise of_sqlstate("23502", message)
            return None
        if self.of is decimal.Decimal and type(value) is int:
            value = decimal.Decimal(value)
        if type(value) is not self.of:
            raise AssertionError(f"{value!r} for {table}.{name}, which is {self.of.__name__}")
        if self.of is int and not -(2 ** (self.bits - 1)) <= value < 2 ** (self.bits - 1):
            raise OverflowError(f"{value} for {table}.{name}")
        if self.of is decimal.Decimal:
            whole, behind = self.digits[0] - self.digits[1], self.digits[1]
            value = value.quantize(decimal.Decimal(1).scaleb(-behind), _ROUNDED)
            if abs(value) >= 10**whole:
                raise OverflowError(f"{value} for {table}.{name}")
        return value


class Model:
    """The database: tables by their names, and what statements mean over them."""

    def __init__(self, tables, statements=None):
        self.tables = {table.name: table for table in tables}
        self._statements = statements or {}
        for table in tables:
            table.model = self

    def __getattr__(self, name):
        if name.startswith("_") or name not in self.tables:
            raise AttributeError(name)
        return self.tables[name]

    def call(self, function, *arguments):
        """Calls a function as a transaction: if it raises, nothing of what it did remains."""
        before = {table: dict(table.rows) for table in self.tables.values()}
        try:
            return function(*arguments)
        except BaseException:
            for table, rows in before.items():
                table.rows = rows
            raise

    def execute(self, text, values=()):
        """What a statement gives: rows, or how many it has changed. It is known by its text, or by how that begins."""
        known = next(known for known in self._statements if text.startswith(known))
        return self._statements[known](self, *values)

    def sql(self, text, **values):
        """What a statement gives whose values are in braces; those that are not given are the caller's variables."""
        known = {**sys._getframe(1).f_globals, **sys._getframe(1).f_locals, **values}
        return self._statements[text](self, **{name: known[name] for name in braced(text)[1]})


class Answer(list):
    """What a statement gives: its rows; or how many it has changed."""

    def __init__(self, rows=(), changed=None):
        super().__init__(rows)
        self.rowcount = len(self) if changed is None else changed

    def one(self):
        """The only row."""
        if len(self) != 1:
            raise fabius.ProgrammingError(f"one row is wanted, but there are {len(self)}")
        return self[0]

    def scalar(self):
        """The only value."""
        return self.one()[0]


class Table:
    """Rows by their keys, what columns hold, and what has to be true of rows.

    ``checks`` are truths about a row by their names; ``references`` are tables by the columns that have their keys.
    A row in ``rows`` never changes: a changed one is another, in its place.
    """

    def __init__(self, name, key, columns, checks=None, references=None):
        self.name, self.key, self.columns = name, key, columns
        self.checks, self.references = checks or {}, references or {}
        self.rows: dict[tuple, dict[str, Any]] = {}
        self.model: Any = None

    def __getitem__(self, key):
        parts = key if isinstance(key, tuple) else (key,)
        if isinstance(parts[-1], slice):
            return self._range(parts[:-1], parts[-1])
        return Row(self, self._key(key))._taken()

    def _range(self, prefix, bounds):
        """The rows whose keys begin so, and go on within bounds."""
        at, lower, upper = len(prefix), bounds.start, bounds.stop
        for key, row in sorted(self.rows.items(), key=lambda item: item[0]):
            if key[:at] == prefix and (lower is None or lower <= key[at]) and (upper is None or key[at] < upper):
                yield Row(self, key, row)

    def get(self, key):
        """The row of a key, or `None`."""
        return self[key] if key in self else None

    def __contains__(self, key):
        return self._key(key) in self.rows

    def __iter__(self):
        return self.where()

    def where(self, **equal):
        """The rows that have these values now, in the order of their keys."""
        for key, row in sorted(self.rows.items(), key=lambda item: item[0]):
            if all(row[name] == value for name, value in equal.items()):
                yield Row(self, key, row)

    def insert(self, **values):
        """A new row; columns that are not given are `None`."""
        row = {name: values.get(name) for name in self.columns}
        key = tuple(row[name] for name in self.key)
        self._put(key, row, is_new=True)
        return Row(self, key)._taken()

    def upsert(self, **values):
        """A new row, or the row of its key with these values."""
        key = tuple(values[name] for name in self.key)
        if key not in self.rows:
            return self.insert(**values)
        self.change(key, **values)
        return Row(self, key)._taken()

    def __delitem__(self, key):
        Row(self, self._key(key)).delete()

    def change(self, key, **values):
        """The row of a key gets other values."""
        self._put(key, {**self.rows[key], **values})

    def remove(self, key):
        """The row of a key goes, if no other row references it."""
        gone = self.rows.pop(key)
        for table in self.model.tables.values():
            for column, other in table.references.items():
                if other is self and any(row[column] == gone[self.key[0]] for row in table.rows.values()):
                    message = f'update or delete on table "{self.name}" violates foreign key constraint '
                    raise of_sqlstate("23503", f'{message}"{table.name}_{column}_fkey" on table "{table.name}"')

    def _put(self, key, row, is_new=False):
        row = {name: column.kept(self.name, name, row[name]) for name, column in self.columns.items()}
        for constraint, holds in self.checks.items():
            if not holds(row):
                message = f'new row for relation "{self.name}" violates check constraint "{constraint}"'
                raise of_sqlstate("23514", message)
        for column, other in self.references.items():
            if row[column] is not None and (row[column],) not in other.rows:
                message = f'insert or update on table "{self.name}" violates foreign key constraint '
                raise of_sqlstate("23503", f'{message}"{self.name}_{column}_fkey"')
        if is_new and key in self.rows:
            raise of_sqlstate("23505", f'duplicate key value violates unique constraint "{self.name}_pkey"')
        self.rows[key] = row

    def _key(self, key):
        return key if isinstance(key, tuple) else (key,)


class Row:
    """A row as it was when it was taken, or last written by this name."""

    __slots__ = ("_table", "_key", "_seen")

    def __init__(self, table, key, seen=None):
        for name, value in (("_table", table), ("_key", key), ("_seen", seen)):
            object.__setattr__(self, name, value)

    def _taken(self):
        """Itself, as it is now."""
        if self._key not in self._table.rows:
            wanted = ", ".join(f"{name} = {value!r}" for name, value in zip(self._table.key, self._key))
            raise fabius.RowNotFound(f"there is no row of {self._table.name} with {wanted}")
        object.__setattr__(self, "_seen", self._table.rows[self._key])
        return self

    def __getattr__(self, name):
        return (self if self._seen is not None else self._taken())._seen[name]

    def __setattr__(self, name, value):
        self._taken()
        self._table.change(self._key, **{name: value})
        self._taken()

    def delete(self):
        """The row goes."""
        self._taken()
        self._table.remove(self._key)
        object.__setattr__(self, "_seen", None)
