"""Moments, days and times between them: how they are made, and how they are written."""

from __future__ import annotations

import ast
import datetime
from collections.abc import Iterable

from .names import at, attribute, constant
from .refusal import Refused

__all__ = ["MICROSECOND", "is_in_utc", "micros_of", "parts_of_moment", "span"]

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
PARTS = frozenset("year month day hour minute second microsecond date weekday isoweekday isoformat strftime".split())
PARTS |= {"replace(tzinfo=utc)", "replace(tzinfo=None)"}


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
