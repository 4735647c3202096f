"""What the catalog says of a table's columns: what their values are, and what else changes with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..tables import Shape
from .formula import Column, Kind

if TYPE_CHECKING:
    from ..database import Result

__all__ = ["Facts", "facts"]

_INTS = {"int2": ("smallint", 2**15), "int4": ("integer", 2**31), "int8": ("bigint", 2**63)}

_OTHERS = {
    "text": ("text", Kind.TEXT),
    "varchar": ("character varying", Kind.TEXT),
    "float8": ("double precision", Kind.FLOAT),
    "date": ("date", Kind.DATE),
    "timestamp": ("timestamp", Kind.TIMESTAMP),
    "timestamptz": ("timestamptz", Kind.TIMESTAMPTZ),
    "uuid": ("uuid", Kind.UUID),
}

#: Actions of references that change no rows: ``NO ACTION``, ``RESTRICT``.
_NOTHING = ("a", "r")

#: A `numeric` without digits is below.
_NUMERIC_MAX = 10**28


class Facts(NamedTuple):
    """A table, as the catalog has it."""

    oid: int
    columns: dict[str, Column]
    #: Columns that follow others.
    generated: frozenset[str]
    #: Whether it is a table, and no view.
    is_table: bool
    #: Whether a deletion changes other rows too.
    spreads_deletion: bool
    #: The columns with which others change in rows that refer to them.
    spread: frozenset[str]

    def changed_with(self, name: str) -> frozenset[str]:
        """The columns that change when one is assigned."""
        return self.generated | {name}


def facts(shape: Shape, execute: Callable[[str, Any], Result]) -> Facts:
    """What the catalog says of a table, which is asked once."""
    if shape.facts is None:
        shape.facts = _asked(shape, execute)
    return shape.facts


def _asked(shape: Shape, execute: Callable[[str, Any], Result]) -> Facts:
    found = execute(
        "select a.attname::text, t.typname::text, t.typtype::text, a.attnotnull, a.atttypmod, a.attgenerated::text, "
        "c.oid::bigint, c.relkind::text from pg_class c join pg_attribute a on a.attrelid = c.oid "
        "join pg_type t on t.oid = a.atttypid "
        "where c.oid = %s::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum",
        (shape.written,),
    )
    references = execute(
        "select distinct a.attname::text, c.confdeltype::text, c.confupdtype::text "
        "from pg_constraint c cross join unnest(c.confkey) as k (n) "
        "join pg_attribute a on a.attrelid = c.confrelid and a.attnum = k.n "
        "where c.contype = 'f' and c.confrelid = %s::regclass",
        (shape.written,),
    )
    return Facts(
        found[0][6],
        {name: _column(name, *of) for name, *of, _, _, _ in found},
        frozenset(row[0] for row in found if row[5]),
        found[0][7] == "r",
        any(deleted not in _NOTHING for _, deleted, _ in references),
        frozenset(name for name, _, updated in references if updated not in _NOTHING),
    )


def _column(name: str, type: str, sort: str, is_not_null: bool, modifier: int) -> Column:
    if sort == "e":
        return Column(name, "enum", Kind.TEXT, not is_not_null)
    if sort == "b" and type in _INTS:
        type, bound = _INTS[type]
        return Column(name, type, Kind.INT, not is_not_null, bound)
    if sort == "b" and type == "numeric":
        if modifier < 4:
            return Column(name, type, Kind.DECIMAL, not is_not_null, _NUMERIC_MAX, None)
        digits, scale = (modifier - 4) >> 16, (modifier - 4) & 0xFFFF
        return Column(name, type, Kind.DECIMAL, not is_not_null, 10 ** max(digits - scale, 0), scale)
    if sort == "b" and type in _OTHERS:
        type, kind = _OTHERS[type]
        return Column(name, type, kind, not is_not_null, is_exact=modifier == -1)
    return Column(name, type, None, not is_not_null)
