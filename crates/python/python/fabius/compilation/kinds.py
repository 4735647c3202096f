"""What annotations say: classes of Python, and the types of SQL that they are."""

from __future__ import annotations

import datetime
import decimal
import types
import uuid
from typing import Any, NamedTuple, Union, get_args, get_origin

from ..values import Json
from .moments import micros_of

__all__ = ["INT", "INT_MAX", "TYPES", "Kind", "kind_of", "names"]

#: Types of SQL by the classes that annotations name.
TYPES: dict[Any, str] = {
    bool: "boolean",
    int: "bigint",
    float: "double precision",
    decimal.Decimal: "numeric",
    str: "text",
    bytes: "bytea",
    uuid.UUID: "uuid",
    datetime.date: "date",
    datetime.time: "time",
    datetime.datetime: "timestamptz",
    # In microseconds.
    datetime.timedelta: "bigint",
    # Of parameters alone: what is read of a column is what the document says.
    Json: "jsonb",
}

#: A value of each class.
_SAMPLES: dict[Any, Any] = {
    bool: False,
    int: 0,
    float: 0.0,
    decimal.Decimal: decimal.Decimal(0),
    str: "",
    bytes: b"",
    uuid.UUID: uuid.UUID(int=0),
    datetime.date: datetime.date(2000, 1, 1),
    datetime.time: datetime.time(),
    datetime.datetime: datetime.datetime(2000, 1, 1, tzinfo=datetime.timezone.utc),
    datetime.timedelta: datetime.timedelta(),
    Json: Json(None),
}

#: Classes whose own values go to the database as they are.
_PLAIN = frozenset((bool, int, float, decimal.Decimal, str, bytes, uuid.UUID, datetime.date))

INT_MAX = 2**63 - 1


#: Digits behind the point that a `numeric` without a scale keeps.
_DIGITS = 10


class Kind(NamedTuple):
    """What an annotation says: a class, whether it is a list of it, and whether it may be ``None``."""

    of: type
    is_list: bool = False
    is_optional: bool = False
    #: Whether moments have to be in UTC.
    is_in_utc: bool = False

    @property
    def sql(self) -> str:
        """The type in SQL."""
        return TYPES[self.of] + "[]" * self.is_list

    @property
    def name(self) -> str:
        """How it is annotated."""
        name = f"list[{self.of.__name__}]" if self.is_list else self.of.__name__
        return f"{name} | None" if self.is_optional else name

    @property
    def sample(self) -> Any:
        """A value of it: ``None`` if it may be that."""
        return None if self.is_optional else [] if self.is_list else _SAMPLES[self.of]

    @property
    def is_plain(self) -> bool:
        """Whether values of just this class go to the database as they are."""
        return self.of in _PLAIN

    def check(self, name: str, value: Any) -> None:
        """Raises ``TypeError`` or ``OverflowError`` if a value is not of this kind."""
        if not self.fits(value):
            given = type(value).__name__
            if isinstance(value, datetime.datetime):
                given = "a datetime without a time zone"
            elif isinstance(value, datetime.time):
                given = "a time with a time zone"
            elif self.of is Json and value is not None:
                raise TypeError(f"argument {name!r} is a document: give it as fabius.Json(...), not as {given}")
            raise TypeError(f"argument {name!r} is annotated {self.name}, but {given} is given")
        numbers = value if self.is_list else (value,)
        if self.of is int and not all(-(2**63) <= (number or 0) < 2**63 for number in numbers):
            raise OverflowError(f"argument {name!r} does not fit in 64 bits")
        if self.of is decimal.Decimal and not all(map(_is_kept, numbers)):
            raise ValueError(f"argument {name!r} has more than {_DIGITS} digits behind the point, or is no number")
        if self.is_in_utc and any(one is not None and one.utcoffset() for one in numbers):
            raise ValueError(
                f"argument {name!r} is not in UTC, and the function looks at its parts, or moves it: "
                "give it .astimezone(timezone.utc)"
            )

    def plain(self, value: Any) -> Any:
        """A value without what a class of the user's adds to it (``IntEnum``)."""
        if self.is_list and value is not None:
            return [_plain(self.of, element) for element in value]
        return _plain(self.of, value)

    def answered(self, value: Any) -> Any:
        """A value that the database gives, as one of this kind."""
        if self.of is Json:
            return None if value is None and self.is_optional else Json(value)
        if self.of is not datetime.timedelta or value is None:
            return value
        if self.is_list:
            return [datetime.timedelta(microseconds=micros) for micros in value]
        return datetime.timedelta(microseconds=value)

    def fits(self, value: Any) -> bool:
        """Whether a value is of this kind."""
        if value is None:
            return self.is_optional
        if self.is_list:
            return isinstance(value, (list, tuple)) and all(_is_of(self.of, element) for element in value)
        return _is_of(self.of, value)


def _is_kept(value: decimal.Decimal | None) -> bool:
    """Whether all its digits are kept."""
    if value is None:
        return True
    if not value.is_finite():
        return False
    exponent = value.normalize(decimal.Context(prec=100)).as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -_DIGITS


def _plain(kind: type, value: Any) -> Any:
    if value is None or (type(value) is kind and kind is not datetime.timedelta):
        return value
    if kind is datetime.timedelta:
        return micros_of(value)
    if kind in (int, float):
        return kind(value)
    return str.__str__(value) if kind is str else value


def _is_of(kind: type, value: Any) -> bool:
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind in (int, datetime.date):
        # Neither a truth nor a moment, though Python derives them.
        return isinstance(value, kind) and not isinstance(value, (bool, datetime.datetime))
    if kind is datetime.datetime and isinstance(value, kind) and value.tzinfo is None:
        # A moment without a zone is none.
        return False
    if kind is datetime.time and isinstance(value, kind) and value.tzinfo is not None:
        return False
    return isinstance(value, kind)


#: The most usual kind.
INT = Kind(int)


def kind_of(hint: Any) -> Kind | None:
    """What an annotation says, if it is of SQL."""
    if hint is int:
        return INT
    if get_origin(hint) in (Union, types.UnionType):
        others = [part for part in get_args(hint) if part is not type(None)]
        inner = kind_of(others[0]) if len(others) == 1 else None
        return inner._replace(is_optional=True) if inner and not inner.is_list else None
    if get_origin(hint) is list and get_args(hint):
        inner = kind_of(get_args(hint)[0])
        is_single = inner and not inner.is_list and not inner.is_optional and inner.of is not Json
        return inner._replace(is_list=True) if inner and is_single else None
    return Kind(hint) if isinstance(hint, type) and hint in TYPES else None


def names() -> str:
    return ", ".join(kind.__name__ for kind in TYPES if kind is not Json)
