"""Data classes: a record is a variable for each of its fields."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .kernel import Called
from .names import OWN, at, load, stored
from .refusal import Refused

__all__ = ["Made", "fields_of", "is_record", "made", "records_of"]


class Made(ast.expr):
    """A new record, with the values of its fields in their order."""

    _fields = ("values",)
    values: list[ast.expr]
    kind: type

    if TYPE_CHECKING:

        def __init__(self, *, values: list[ast.expr]) -> None: ...


def is_record(kind: Any) -> bool:
    """Whether it is a data class."""
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


def fields_of(kind: Any) -> list[str]:
    """The names of its fields."""
    return [field.name for field in dataclasses.fields(kind)]


def made(node: ast.Call, kind: Any) -> Made:
    """A call of a data class, whose arguments are in their words already.

    Raises ``Refused`` for classes that do more than keep their fields.
    """
    code = getattr(kind.__init__, "__code__", None)
    is_plain = code is not None and code.co_filename == "<string>" and not hasattr(kind, "__post_init__")
    if not is_plain or not all(field.init for field in dataclasses.fields(kind)):
        raise Refused(node, f"a {kind.__name__}, which is made by code of its own", "use a plain data class")
    named = {str(keyword.arg): keyword.value for keyword in node.keywords}
    try:
        values: dict[str, Any] = dict(inspect.signature(kind).bind(*node.args, **named).arguments)
    except TypeError as error:
        raise Refused(node, f"this {kind.__name__}: {error}", "give it its fields") from None
    for field in dataclasses.fields(kind):
        if field.name not in values:
            default: Any = field.default
            if type(default) not in (bool, int, float, str, type(None)):
                raise Refused(node, f"the default of {field.name}, which is no literal", "give it")
            values[field.name] = at(ast.Constant(default), node)
    done = at(Made(values=[values[name] for name in fields_of(kind)]), node)
    done.kind = kind
    # They are computed in the order in which they are written.
    if list(named) != [name for name in fields_of(kind) if name in named]:
        raise Refused(node, f"fields of a {kind.__name__} in another order", "give them in their order")
    return done


def field_of(name: str, field: str) -> str:
    """The variable of a record's field."""
    return f"{name} {field}{OWN}"


def records_of(tree: ast.AST) -> dict[str, type]:
    """Names that are records, by what is assigned to them.

    Raises ``Refused`` for a name that is two kinds of them.
    """
    records: dict[str, type] = {}
    count = -1
    while count != len(records):
        count = len(records)
        for node in ast.walk(tree):
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                kind = kind_of_record(node.value, records)
                if kind is not None and isinstance(target, ast.Name):
                    if records.setdefault(target.id, kind) is not kind:
                        raise Refused(node, f"a name that is a {kind.__name__} and another", "use two names")
    return records


def kind_of_record(node: ast.AST | None, records: Mapping[str, type]) -> type | None:
    """The data class of a value, if it is a record."""
    if isinstance(node, Made):
        return node.kind
    if isinstance(node, Called):
        return node.record
    return records.get(node.id) if isinstance(node, ast.Name) else None


def values_of(node: ast.expr, records: Mapping[str, type]) -> list[ast.expr]:
    """The values of a record's fields."""
    if isinstance(node, Made):
        return node.values
    assert isinstance(node, ast.Name)
    return [load(field_of(node.id, field), node) for field in fields_of(records[node.id])]


def field_named(node: ast.Attribute, records: Mapping[str, type], is_changed: bool = False) -> ast.Name | None:
    """The variable of ``record.field``, if it is that."""
    if not isinstance(node.value, ast.Name) or node.value.id not in records:
        return None
    name, kind = node.value.id, records[node.value.id]
    if node.attr not in fields_of(kind):
        raise Refused(node, f"{node.attr} of a {kind.__name__}", f"these are there: {', '.join(fields_of(kind))}")
    if is_changed and kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise Refused(node, f"a change of a {kind.__name__}, which is frozen", "make another")
    field = field_of(name, node.attr)
    return stored(field, node) if is_changed else load(field, node)


def taken(name: ast.Name, value: ast.expr, records: Mapping[str, type], place: ast.AST) -> list[tuple[str, ast.expr]]:
    """What becomes of the fields of a name that becomes a record.

    Raises ``Refused`` for a second name of what may change.
    """
    kind = kind_of_record(value, records)
    if kind is None:
        raise Refused(place, f"a name that is a {records[name.id].__name__} and something else", "use two names")
    if isinstance(value, ast.Name) and not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise Refused(value, f"a second name for a {kind.__name__}", "make it frozen: @dataclass(frozen=True)")
    return [(field_of(name.id, field), one) for field, one in zip(fields_of(kind), values_of(value, records))]
