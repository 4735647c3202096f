"""What a value that nobody has read means, in SQL: columns of rows, and Python's operators on them.

A formula is made only where SQL's answer is Python's. Where it is not (``/``, a product of decimals, anything with a
``float``) there is none, and whoever wants the result reads the values.

>>> three = constant(3)
>>> combined("+", three, three).text(Writing(), None)
'($1::bigint + $2::bigint)'
>>> combined("/", three, three) is None
True
"""

from __future__ import annotations

import datetime
import operator
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from typing import Any

from ..tables import Shape, quoted

__all__ = [
    "LOST",
    "Cell",
    "Column",
    "Constant",
    "Formula",
    "Kind",
    "Place",
    "Writing",
    "combined",
    "constant",
    "truth",
    "unary",
]

#: A formula of more parts is read instead.
_SIZE_MAX = 24

#: What ``bigint`` has no room for.
_WIDE = 2**63

#: Numbers that ``numeric`` computes exactly are below.
_NUMBER_MAX = 10**27

#: Digits that Python's decimals keep, and those that ``numeric`` keeps behind the point.
_DIGITS_MAX, _SCALE_MAX = 28, 10

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}

_COMPARISONS = {"==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


class Kind(Enum):
    """What values are; each is a type of SQL."""

    BOOL = "boolean"
    INT = "bigint"
    DECIMAL = "numeric"
    FLOAT = "double precision"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    UUID = "uuid"


_NUMBERS = (Kind.INT, Kind.DECIMAL)
_COMPARED = (Kind.TEXT, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.UUID)


@dataclass(frozen=True)
class Column:
    """A column, as the catalog has it."""

    name: str
    #: Its type, as ``integer``.
    type: str
    #: What its values are; ``None`` if they are read whenever they are asked for.
    kind: Kind | None
    is_nullable: bool
    #: The largest absolute value, of a number.
    bound: int = 0
    #: Digits behind the point; ``None`` if they differ.
    scale: int | None = 0
    #: Whether it keeps each value of its kind as it is given.
    is_exact: bool = True

    def takes(self, formula: Formula) -> bool:
        """Whether a formula's value may be assigned by SQL: it is what Python's value would become."""
        if self.type == "enum":
            return False
        return formula.kind is self.kind or (formula.kind is Kind.INT and self.kind is Kind.DECIMAL)

    def keeps(self, formula: Formula) -> bool:
        """Whether the column gives a formula's value back as it is, once it is assigned."""
        if self.kind is Kind.DECIMAL:
            return formula.kind is Kind.DECIMAL and self.scale is not None and formula.scale == self.scale
        return formula.kind is self.kind and self.is_exact


@dataclass(frozen=True)
class Place:
    """A row's place: its table and its key."""

    table: int
    #: The key, as something that can be hashed.
    hashed: Any
    shape: Shape = field(compare=False)
    key: tuple[Any, ...] = field(compare=False)

    def condition(self, out: Writing) -> str:
        """What the row satisfies."""
        return " and ".join(f"{quoted(name)} = {out.put(value)}" for name, value in zip(self.shape.key, self.key))


class Writing:
    """A statement that is being written: its values so far."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def put(self, value: Any, type: str | None = None) -> str:
        """A value's place in the text."""
        self.values.append(value)
        return f"${len(self.values)}" + (f"::{type}" if type else "")


@dataclass(frozen=True)
class Formula:
    """An expression, of a kind; numbers have a bound of their absolute value, decimals the digits behind the point."""

    kind: Kind
    bound: int
    scale: int | None
    size: int

    def cells(self) -> Iterator[Cell]:
        """The columns that it is made of."""
        yield from ()

    def text(self, out: Writing, own: Place | None) -> str:
        """Its text; columns of the row of ``own`` by their names, others by queries."""
        raise NotImplementedError

    def moved(self, place: Place, name: str, by: Any) -> Formula:
        """The same value, once there is ``by`` less in a column."""
        return self


@dataclass(frozen=True)
class Constant(Formula):
    """A value."""

    value: Any

    def text(self, out: Writing, own: Place | None) -> str:
        return out.put(self.value, "numeric" if self.bound >= _WIDE else self.kind.value)


@dataclass(frozen=True)
class Cell(Formula):
    """A column of a row, and perhaps so much more: ``qty + 3``."""

    place: Place
    column: Column
    plus: Any = 0

    @staticmethod
    def of(place: Place, column: Column) -> Cell:
        """A column of a row."""
        assert column.kind is not None
        return Cell(column.kind, column.bound, column.scale, 1, place, column)

    def cells(self) -> Iterator[Cell]:
        yield self

    def raw(self, out: Writing, own: Place | None) -> str:
        """The column alone, as it is."""
        name = quoted(self.column.name)
        if self.place != own:
            name = f"(select {name} from {self.place.shape.written} where {self.place.condition(out)})"
        return f"{name}::text" if self.column.type == "enum" else name

    def text(self, out: Writing, own: Place | None) -> str:
        text = self.raw(out, own)
        if self.kind is Kind.INT:
            type = "numeric" if self.plus and self.bound >= _WIDE else "bigint"
            text = text if self.column.type == type else f"{text}::{type}"
            return f"({text} + {out.put(self.plus, type)})" if self.plus else text
        return f"({text} + {out.put(self.plus, 'numeric')})" if self.plus else text

    def moved(self, place: Place, name: str, by: Any) -> Formula:
        if self.place != place or self.column.name != name:
            return self
        return replace(self, plus=self.plus + by)

    def increment(self, out: Writing) -> str:
        """Its text as an assignment to the same column: ``qty - 3``."""
        name = quoted(self.column.name)
        if not self.plus:
            return name
        type = self.kind.value
        if self.kind is Kind.INT:
            plus = abs(self.plus)
            type = self.column.type if plus < self.column.bound else "bigint" if plus < _WIDE else "numeric"
        return f"{name} {'+' if self.plus > 0 else '-'} {out.put(abs(self.plus), type)}"

    @property
    def can_be_undone(self) -> bool:
        """Whether the column was what it is, less ``plus``, before it was assigned this."""
        scale = self.column.scale
        if self.kind is Kind.DECIMAL and scale is not None:
            return scale == self.scale and len(str(self.bound)) + scale <= _DIGITS_MAX
        return self.kind is Kind.INT


@dataclass(frozen=True)
class Operation(Formula):
    """Python's operator on one operand, or on two."""

    symbol: str
    operands: tuple[Formula, ...]

    def cells(self) -> Iterator[Cell]:
        for operand in self.operands:
            yield from operand.cells()

    def moved(self, place: Place, name: str, by: Any) -> Formula:
        return replace(self, operands=tuple(operand.moved(place, name, by) for operand in self.operands))

    def text(self, out: Writing, own: Place | None) -> str:
        texts = [operand.text(out, own) for operand in self.operands]
        symbol = self.symbol
        if len(texts) == 1:
            return f"abs({texts[0]})" if symbol == "abs" else f"(- {texts[0]})"
        if symbol in _COMPARISONS:
            # Texts are compared by their bytes, as Python compares them by its letters.
            return f"({texts[0]} {_COMPARISONS[symbol]} {texts[1]})"
        left, right = texts
        if self.kind is Kind.TEXT:
            return f"({left} || {right})"
        if symbol == "%":
            return f"(({left} % {right} + {right}) % {right})"
        if symbol == "//":
            # SQL's rounds to zero.
            below = f"{left} % {right} <> 0 and ({left} % {right} < 0) <> ({right} < 0)"
            return f"({left} / {right} - case when {below} then 1 else 0 end)"
        if self.bound >= _WIDE:
            left, right = f"{left}::numeric", f"{right}::numeric"
        return f"({left} {symbol} {right})"


#: What a future of a part of the transaction means that was undone.
LOST = Formula(Kind.BOOL, 0, 0, 0)


def constant(value: Any) -> Constant | None:
    """A value of Python as SQL has it, or ``None`` if it has no such value, or compares it otherwise."""
    kind = type(value)
    if kind is int:
        return Constant(Kind.INT, abs(value), 0, 1, value) if abs(value) < _NUMBER_MAX else None
    if kind is Decimal:
        _, digits, exponent = value.as_tuple()
        if not isinstance(exponent, int) or not -_SCALE_MAX <= exponent <= 0 or len(digits) > _DIGITS_MAX:
            return None
        return None if value.is_zero() and value.is_signed() else _decimal(value, -exponent)
    if kind is str:
        return Constant(Kind.TEXT, 0, 0, 1, value) if _is_text(value) else None
    if kind is datetime.datetime:
        moment = Kind.TIMESTAMP if value.tzinfo is None else Kind.TIMESTAMPTZ
        return Constant(moment, 0, 0, 1, value)
    if kind is datetime.date:
        return Constant(Kind.DATE, 0, 0, 1, value)
    if kind is uuid.UUID:
        return Constant(Kind.UUID, 0, 0, 1, value)
    return None


def _decimal(value: Decimal, scale: int) -> Constant:
    return Constant(Kind.DECIMAL, abs(int(value)) + 1, scale, 1, value)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def combined(symbol: str, left: Formula, right: Formula) -> Formula | None:
    """What Python's operator gives of two formulas, or ``None`` if SQL cannot say it."""
    size = left.size + right.size + 1
    if symbol in ("//", "%"):
        # They stand there several times.
        size += 2 * (left.size + right.size)
    if size > _SIZE_MAX:
        return None
    operands = (left, right)
    kinds = (left.kind, right.kind)
    are_numbers = all(kind in _NUMBERS for kind in kinds)
    if symbol in _COMPARISONS:
        is_known = are_numbers or (left.kind is right.kind and left.kind in _COMPARED)
        return Operation(Kind.BOOL, 0, 0, size, symbol, operands) if is_known else None
    if kinds == (Kind.TEXT, Kind.TEXT):
        return Operation(Kind.TEXT, 0, 0, size, symbol, operands) if symbol == "+" else None
    if not are_numbers:
        return None
    if symbol in ("//", "%"):
        return _divided(symbol, left, right, size)
    return _computed(symbol, left, right, size)


def _computed(symbol: str, left: Formula, right: Formula, size: int) -> Formula | None:
    if symbol not in _ARITHMETIC:
        return None
    if isinstance(left, Cell) and isinstance(right, Constant) and symbol != "*":
        increased = _increased(left, right.value if symbol == "+" else -right.value)
        if increased is not None:
            return increased
    if isinstance(left, Constant) and isinstance(right, Cell) and symbol == "+":
        increased = _increased(right, left.value)
        if increased is not None:
            return increased
    bound = left.bound * right.bound if symbol == "*" else left.bound + right.bound
    if left.kind is Kind.INT and right.kind is Kind.INT:
        kind, scale = Kind.INT, 0
    else:
        # A product of decimals may be Python's -0.
        if symbol == "*" or left.scale is None or right.scale is None:
            return None
        kind, scale = Kind.DECIMAL, max(left.scale, right.scale)
        if len(str(bound)) + scale > _DIGITS_MAX:
            return None
    return Operation(kind, bound, scale, size, symbol, (left, right)) if bound < _NUMBER_MAX else None


def _increased(cell: Cell, by: Any) -> Cell | None:
    """A column of a row with so much more."""
    if cell.kind is Kind.INT and isinstance(by, Decimal):
        return None
    plus = cell.plus + by
    bound = cell.column.bound + abs(int(plus)) + 1
    if bound >= 2 * _NUMBER_MAX:
        return None
    scale = cell.scale
    if scale is not None and isinstance(by, Decimal):
        exponent = by.as_tuple().exponent
        assert isinstance(exponent, int)
        scale = max(scale, -exponent)
        if len(str(bound)) + scale > _DIGITS_MAX:
            return None
    return replace(cell, plus=plus, bound=bound, scale=scale)


def _divided(symbol: str, left: Formula, right: Formula, size: int) -> Formula | None:
    """``//`` and ``%`` of whole numbers, of which the right one is not zero."""
    if left.kind is not Kind.INT or right.kind is not Kind.INT:
        return None
    if isinstance(right, Constant) and right.value == 0:
        return None
    is_wide = left.bound > _WIDE or (left.bound == _WIDE and not isinstance(left, Cell))
    if is_wide or right.bound >= _WIDE // 2:
        return None
    if symbol == "//" and left.bound == _WIDE and not (isinstance(right, Constant) and right.value != -1):
        return None
    bound = right.bound if symbol == "%" else left.bound + 1
    return Operation(Kind.INT, bound, 0, size, symbol, (left, right))


def unary(symbol: str, operand: Formula) -> Formula | None:
    """``-`` or ``abs`` of a number."""
    if operand.kind not in _NUMBERS or operand.scale is None or operand.size >= _SIZE_MAX:
        return None
    if operand.bound >= _WIDE and operand.kind is Kind.INT:
        return None
    return Operation(operand.kind, operand.bound, operand.scale, operand.size + 1, symbol, (operand,))


def truth(formula: Formula) -> Formula | None:
    """Whether something counts as true in Python."""
    if formula.kind is Kind.BOOL:
        return formula
    if formula.kind in _NUMBERS:
        return Operation(Kind.BOOL, 0, 0, formula.size + 2, "!=", (formula, Constant(Kind.INT, 0, 0, 1, 0)))
    if formula.kind is Kind.TEXT:
        return Operation(Kind.BOOL, 0, 0, formula.size + 2, "!=", (formula, Constant(Kind.TEXT, 0, 0, 1, "")))
    return None
