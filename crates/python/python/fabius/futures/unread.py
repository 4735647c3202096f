"""A value that has not been read, which Python's operators take as any other."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .formula import Formula, combined, constant, unary

if TYPE_CHECKING:
    from .pending import Pending

__all__ = ["Unread", "formula_of", "value_of"]

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "@": operator.matmul,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "divmod": divmod,
}


class Unread:
    """A value that has not been read: a column of a row, or what Python's operators make of it.

    ``if``, ``while``, ``and`` and :func:`fabius.require` ask only whether it holds, and assigning it to a column of a
    row does not read it. All else does: ``int(...)``, ``str(...)``, printing, and its use as a key.
    """

    __slots__ = ("_pending", "_formula", "_value", "_truth", "__weakref__")

    def __init__(self, pending: Pending, formula: Formula) -> None:
        self._pending = pending
        #: What it means; ``None`` once it has been read.
        self._formula: Formula | None = formula
        self._value: Any = None
        self._truth: bool | None = None
        pending.hold(self)

    def _read(self) -> Any:
        if self._formula is not None:
            self._pending.read(self)
        return self._value

    def __bool__(self) -> bool:
        return self._pending.is_true(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._read(), name)

    def __repr__(self) -> str:
        if self._formula is not None and self._pending.is_over:
            return "<a value that was not read in its transaction>"
        return repr(self._read())

    def __str__(self) -> str:
        return str(self._read())

    def __format__(self, spec: str) -> str:
        return format(self._read(), spec)

    def __hash__(self) -> int:
        return hash(self._read())

    def __int__(self) -> int:
        return int(self._read())

    def __float__(self) -> float:
        return float(self._read())

    def __complex__(self) -> complex:
        return complex(self._read())

    def __index__(self) -> int:
        return operator.index(self._read())

    def __round__(self, *digits: Any) -> Any:
        return round(self._read(), *digits)

    def __trunc__(self) -> Any:
        return self._read().__trunc__()

    def __floor__(self) -> Any:
        return self._read().__floor__()

    def __ceil__(self) -> Any:
        return self._read().__ceil__()

    def __len__(self) -> int:
        return len(self._read())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._read())

    def __contains__(self, item: Any) -> bool:
        return value_of(item) in self._read()

    def __getitem__(self, key: Any) -> Any:
        return self._read()[value_of(key)]

    def __neg__(self) -> Any:
        return self._unary("-", operator.neg)

    def __abs__(self) -> Any:
        return self._unary("abs", abs)

    def __pos__(self) -> Any:
        return +self._read()

    def __invert__(self) -> Any:
        return ~self._read()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return value_of, (self._read(),)

    def _unary(self, symbol: str, does: Callable[[Any], Any]) -> Any:
        made = None if self._formula is None else unary(symbol, self._formula)
        return does(self._read()) if made is None else Unread(self._pending, made)


def _operation(symbol: str) -> Any:
    def does(self: Unread, other: Any) -> Any:
        return _combined(symbol, self, other)

    return does


def _reflected(symbol: str) -> Any:
    def does(self: Unread, other: Any) -> Any:
        return _combined(symbol, other, self)

    return does


for _name, _symbol in (
    ("add", "+"),
    ("sub", "-"),
    ("mul", "*"),
    ("truediv", "/"),
    ("floordiv", "//"),
    ("mod", "%"),
    ("pow", "**"),
    ("lshift", "<<"),
    ("rshift", ">>"),
    ("and", "&"),
    ("or", "|"),
    ("xor", "^"),
    ("matmul", "@"),
    ("divmod", "divmod"),
):
    setattr(Unread, f"__{_name}__", _operation(_symbol))
    setattr(Unread, f"__r{_name}__", _reflected(_symbol))
for _name, _symbol in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")):
    setattr(Unread, f"__{_name}__", _operation(_symbol))


def _combined(symbol: str, left: Any, right: Any) -> Any:
    """What an operator gives of two values, one of which at least may not have been read."""
    unread = [one for one in (left, right) if isinstance(one, Unread) and one._formula is not None]
    if unread and unread[0]._pending is unread[-1]._pending:
        one, other = _formula(left), _formula(right)
        # Whoever divides asks whether it may.
        if one is not None and other is not None and (symbol not in ("//", "%") or right):
            made = combined(symbol, one, other)
            if made is not None:
                return Unread(unread[0]._pending, made)
    return _OPERATORS[symbol](value_of(left), value_of(right))


def _formula(value: Any) -> Formula | None:
    if isinstance(value, Unread) and value._formula is not None:
        return value._formula
    return constant(value_of(value))


def formula_of(value: Any, pending: Pending) -> Formula | None:
    """What a future of a transaction means; ``None`` of other values, and of one that has been read."""
    return value._formula if isinstance(value, Unread) and value._pending is pending else None


def value_of(value: Any) -> Any:
    """A value, which is read if it is a future."""
    return value._read() if isinstance(value, Unread) else value
