"""Moments, days and times between them: how they are made, and how they are written."""

from __future__ import annotations

import ast
import datetime
import re
from collections.abc import Iterable, Mapping
from typing import Any

from .names import at, attribute, constant
from .refusal import Refused

__all__ = [
    "MICROSECOND",
    "MOMENTS",
    "checks",
    "days_of",
    "is_in_utc",
    "micros_of",
    "micros_of_time",
    "of_parts",
    "parts_of_moment",
    "replaced",
    "span",
]

MICROSECOND = datetime.timedelta(microseconds=1)

#: What ``timedelta`` takes, in its order, in microseconds.
_UNITS = {
    "days": 86_400_000_000,
    "seconds": 1_000_000,
    "microseconds": 1,
    "milliseconds": 1_000,
    "minutes": 60_000_000,
    "hours": 3_600_000_000,
    "weeks": 604_800_000_000,
}

#: Parts of moments, and what each is at most; a day of a month is at most its last.
_DATE = {"year": datetime.MAXYEAR, "month": 12, "day": 31}
_TIME = {"hour": 23, "minute": 59, "second": 59, "microsecond": 999_999}

#: What makes moments, by what is written: the parts that it takes.
MOMENTS: dict[Any, tuple[str, ...]] = {
    datetime.date: tuple(_DATE),
    datetime.time: tuple(_TIME),
    datetime.datetime: (*_DATE, *_TIME),
}

#: What makes a moment of a day and a time.
COMBINED = "datetime.combine"

_IS_LEAP = "(year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))"

#: The last day of a month.
_LAST = f"((29 if {_IS_LEAP} else 28) if month == 2 else 30 if month in (4, 6, 9, 11) else 31)"

#: Days since the first of the year 1.
_DAYS = (
    "(year - 1) * 365 + (year - 1) // 4 - (year - 1) // 100 + (year - 1) // 400 + (367 * month - 362) // 12 "
    f"- (0 if month <= 2 else 1 if {_IS_LEAP} else 2) + day - 1"
)

_MICROS = "((hour * 60 + minute) * 60 + second) * 1000000 + microsecond"

#: What ``strftime`` writes whatever the language: an attribute and its digits.
_CODES = {
    "m": ("month", 2),
    "d": ("day", 2),
    "H": ("hour", 2),
    "M": ("minute", 2),
    "S": ("second", 2),
    "f": ("microsecond", 6),
}

#: Python's own digits of a year differ by its version and its platform.
_YEAR = len(datetime.date(5, 1, 1).strftime("%Y"))

#: Parts of a moment, which depend on its time zone.
PARTS = frozenset(
    "year month day hour minute second microsecond date weekday isoweekday isoformat strftime toordinal".split()
)
PARTS |= {"replace(tzinfo=utc)", "replace(tzinfo=None)", "replace of parts", "time"}


def micros_of(value: datetime.timedelta) -> int:
    """A time in microseconds.

    Raises ``OverflowError`` if it has more than 64 bits of them.
    """
    micros = value // MICROSECOND
    if not -(2**63) <= micros < 2**63:
        raise OverflowError("a timedelta of more than 64 bits of microseconds")
    return micros


def span(node: ast.Call, value: datetime.timedelta | None) -> ast.expr:
    """``timedelta(...)`` as a number of microseconds: that of a value, if it is known, or what its arguments give."""
    if value is not None:
        try:
            total: ast.expr = constant(micros_of(value), node)
        except OverflowError:
            raise Refused(node, "a timedelta of more than 292 000 years", "take a shorter one") from None
        return _spanned(total, node)
    given = dict(zip(_UNITS, node.args)) | {str(keyword.arg): keyword.value for keyword in node.keywords}
    if len(given) != len(node.args) + len(node.keywords) or not given or given.keys() - _UNITS.keys():
        raise Refused(node, "timedelta of this form", "write timedelta(days=n)")
    parts: list[ast.expr] = [
        at(ast.BinOp(part, ast.Mult(), constant(_UNITS[unit], node)), node) for unit, part in given.items()
    ]
    total = parts[0]
    for part in parts[1:]:
        total = at(ast.BinOp(total, ast.Add(), part), node)
    return _spanned(total, node)


def _spanned(total: ast.expr, node: ast.Call) -> ast.expr:
    return at(ast.Call(at(ast.Name("timedelta", ast.Load()), node), [total], []), node)


def of_parts(node: ast.Call, called: Any) -> ast.Call:
    """``datetime(...)``, ``date(...)``, ``time(...)`` with a name for each part, ``datetime.combine(date, time)`` as a
    function of these.

    Raises ``Refused`` for other forms.
    """
    given = [keyword for keyword in node.keywords if keyword.arg != "tzinfo"]
    if called == datetime.datetime.combine:
        if len(node.args) != 2 or given:
            raise Refused(node, "combine of this form", "write datetime.combine(date, time)")
        return at(ast.Call(at(ast.Name(COMBINED, ast.Load()), node), node.args, []), node)
    names, name = MOMENTS[called], called.__name__
    parts = [at(ast.keyword(part, value), value) for part, value in zip(names, node.args)] + given
    found = {str(part.arg) for part in parts}
    needed = set(_DATE) & set(names)
    if len(node.args) > len(names) or len(found) < len(parts) or found - set(names) or needed - found:
        instead = "give tzinfo by its name" if len(node.args) > len(names) else f"write {name}({', '.join(names[:3])})"
        raise Refused(node, f"{name} of this form", instead)
    return at(ast.Call(at(ast.Name(f"{name} of parts", ast.Load()), node), [], parts), node)


def replaced(node: ast.Call, function: ast.Attribute) -> ast.Call:
    """``moment.replace(day=1)`` as what is known to be of a moment.

    Raises ``Refused`` for parts that no moment has.
    """
    found = {str(part.arg) for part in node.keywords}
    if not found or found - set(MOMENTS[datetime.datetime]):
        known = ", ".join(f"{part}=..." for part in MOMENTS[datetime.datetime])
        raise Refused(node, "replace of this form", f"write text.replace(old, new), or of a moment: {known}")
    function = at(ast.Attribute(function.value, "replace of parts", ast.Load()), function)
    return at(ast.Call(function, [], node.keywords), node)


def checks(values: Mapping[str, ast.expr], place: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """When parts of a moment are wrong, and what is said then, in Python's order and words."""
    found = []
    for part, most in {**_DATE, **_TIME}.items():
        if part in values:
            last, least = (_LAST, 1) if part == "day" else (str(most), int(part in _DATE))
            is_wrong = of_template(f"{part} < {least} or {part} > {last}", values, place)
            found.append((is_wrong, _said(part, values, place)))
    return found


def days_of(values: Mapping[str, ast.expr], place: ast.AST) -> ast.expr:
    """The days from the first that there is to that of a year, month and day."""
    return of_template(_DAYS, values, place)


def micros_of_time(values: Mapping[str, ast.expr], place: ast.AST) -> ast.expr:
    """The microseconds of a day, of an hour, minute, second and microsecond."""
    return of_template(_MICROS, values, place)


def _said(part: str, values: Mapping[str, ast.expr], place: ast.AST) -> ast.expr:
    """What this interpreter says of a part that is wrong: its words differ by its version."""
    sample = {"year": 1987, "month": 11, "day": 9} | dict.fromkeys(_TIME, 0) | {part: 76543210}
    make: Any = datetime.datetime
    try:
        make(*sample.values())
        raise AssertionError(f"a {part} of {sample[part]}")
    except ValueError as error:
        said = str(error)
    meant = {str(sample["year"]): "year", str(sample[part]): part} if part in _DATE else {str(sample[part]): part}
    if part == "day":
        meant |= {"11": "month", "30": _LAST}
    texts: list[ast.expr] = [
        at(ast.FormattedValue(of_template(meant[word], values, place), -1, None), place)
        if word in meant
        else constant(word, place)
        for word in re.split(r"(\d+)", said)
        if word
    ]
    return at(ast.JoinedStr(texts), place)


def of_template(text: str, values: Mapping[str, ast.expr], place: ast.AST) -> ast.expr:
    """An expression that is written out, of values by their names."""
    tree = _Filled(values, place).visit(ast.parse(text, mode="eval").body)
    assert isinstance(tree, ast.expr)
    return tree


class _Filled(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, ast.expr], place: ast.AST) -> None:
        self._values, self._place = values, place

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._values[node.id]

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        return at(node, self._place) if isinstance(node, ast.expr) else node


def parts_of_moment(moment: ast.expr, text: str, place: ast.AST) -> list[ast.expr]:
    """What a format of ``strftime`` writes, as parts of an f-string.

    Raises ``Refused`` for what depends on the language, or on the platform.
    """
    parts: list[ast.expr] = []
    plain, rest = "", text
    while rest:
        before, percent, rest = rest.partition("%")
        plain += before
        if not percent:
            break
        code, rest = rest[:1], rest[1:]
        if code == "%":
            plain += "%"
            continue
        name, digits = ("year", _YEAR) if code == "Y" else _CODES.get(code, ("", 0))
        if not name:
            known = ", ".join(f"%{known}" for known in ("Y", *_CODES))
            raise Refused(place, f"%{code} in the format of a moment", f"these are there: {known}")
        if plain:
            parts.append(constant(plain, place))
            plain = ""
        formatted = at(
            ast.Call(
                at(ast.Name("format", ast.Load()), place),
                [attribute(moment, name, place), constant(f"0{digits}d", place)],
                [],
            ),
            place,
        )
        parts.append(at(ast.FormattedValue(formatted, -1, None), place))
    if plain:
        parts.append(constant(plain, place))
    return parts


def is_in_utc(statements: Iterable[ast.stmt], moments: set[str]) -> bool:
    """Whether statements look at parts of moments that these names hold, or move them: both depend on the time zone."""
    moments, count = set(moments), -1
    nodes = [node for statement in statements for node in ast.walk(statement)]

    def holds(node: ast.AST) -> bool:
        return any(isinstance(part, ast.Name) and part.id in moments for part in ast.walk(node))

    while moments and count != len(moments):
        count = len(moments)
        for node in nodes:
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value and holds(node.value):
                moments |= _names(node.targets if isinstance(node, ast.Assign) else [node.target])
            elif isinstance(node, (ast.For, ast.comprehension)) and holds(node.iter):
                moments |= _names([node.target])
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and any(map(holds, node.args)):
                # A list that grows, or what a key names.
                moments |= _names([node.func.value]) | _arguments(node)
            elif isinstance(node, ast.Call) and any(map(holds, node.args)):
                moments |= _arguments(node)
    for node in nodes:
        looks = (isinstance(node, ast.Attribute) and node.attr in PARTS) or isinstance(node, ast.FormattedValue)
        looks |= isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == COMBINED
        is_shown = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("str", "format")
        moves = isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, (ast.Add, ast.Sub))
        if (looks or is_shown or moves) and holds(node):
            return True
    return False


def _names(targets: Iterable[ast.AST]) -> set[str]:
    return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}


def _arguments(node: ast.Call) -> set[str]:
    """Names of what the functions take that a call is given."""
    given = [keyword.value for keyword in node.keywords]
    return {argument.arg for function in given if isinstance(function, ast.Lambda) for argument in function.args.args}
