"""Order by keys: ``sorted(xs, key=...)``, ``min(xs, key=...)``."""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING

from .kernel import Append, Element, Empty, SetElement
from .names import (
    LIST,
    Renamed,
    Statements,
    at,
    call,
    compare,
    constant,
    count_of,
    load,
    loop,
    store,
    stored,
    when,
)
from .refusal import Refused

if TYPE_CHECKING:
    from .collections import Collections

__all__ = ["first_of", "keys_of", "sorted_by"]

#: Functions of Python whose values can be keys.
_PLAIN = ("abs", "bool", "float", "int", "len", "str")


def keys_of(key: ast.expr, element: ast.Name, own: Collections, out: Statements) -> list[ast.expr]:
    """What an element is compared by: the parts of its key.

    Raises ``Refused`` for a key that is no function of the element.
    """
    if isinstance(key, ast.Constant) and key.value is None:
        return [element]
    if isinstance(key, ast.Name) and key.id in _PLAIN:
        return [own.named(own.value(call(key.id, [element], key), out), out)]
    if not isinstance(key, ast.Lambda):
        raise Refused(key, "this key", "write key=lambda x: ...")
    arguments = key.args
    if len(arguments.args) != 1 or arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs:
        raise Refused(key, "a key of other than one argument", "write key=lambda x: ...")
    body: ast.expr = Renamed({arguments.args[0].arg: element.id}).visit(copy.deepcopy(key.body))
    parts = body.elts if isinstance(body, ast.Tuple) else [body]
    return [own.named(one, out) for one in own.sequence(parts, out)]


def _is_before(pairs: list[tuple[ast.expr, ast.expr]], order: ast.cmpop, equal: ast.expr | None) -> ast.expr:
    """Whether one key comes before another: by its first part, or the next where that is the same."""
    (one, other), *rest = pairs
    first = compare(one, order, other, one)
    then = _is_before(rest, order, equal) if rest else equal
    if then is None:
        return first
    alike = at(ast.BoolOp(ast.And(), [compare(one, ast.Eq(), other, one), then]), one)
    return at(ast.BoolOp(ast.Or(), [first, alike]), one)


def sorted_by(
    name: str, values: str, key: ast.expr, is_reversed: bool, own: Collections, place: ast.AST, out: Statements
) -> None:
    """Makes a name the list of the elements of another in the order of their keys: each goes to the place that as many
    come before."""
    element = load(own.shapes.new("element"), place)
    body: Statements = []
    parts = keys_of(key, element, own, body)
    lists = [own.shapes.new("keys") for _ in parts]
    for one, part in zip(lists, parts):
        own.shapes.hold(one, LIST)
        out.append(store(one, at(Empty(), place), place))
        body.append(at(Append(list=load(one, place), value=part), place))
    out.append(loop(stored(element.id, place), load(values, place), body, place))
    out.append(store(name, load(values, place), place))
    this, other, before = (own.shapes.new(what) for what in ("place", "place", "before"))

    def element_of(of: str, number: str) -> ast.expr:
        return at(Element(list=load(of, place), place=load(number, place)), place)

    pairs = [(element_of(one, other), element_of(one, this)) for one in lists]
    is_first = compare(load(other, place), ast.Lt(), load(this, place), place)
    test = _is_before(pairs, ast.Gt() if is_reversed else ast.Lt(), is_first)
    more = store(before, at(ast.BinOp(load(before, place), ast.Add(), constant(1, place)), place), place)
    numbers = call("range", [count_of(values, place)], place)
    inner: Statements = [
        store(before, constant(0, place), place),
        loop(stored(other, place), numbers, [when(test, [more], [], place)], place),
        at(SetElement(list=load(name, place), place=load(before, place), value=element_of(values, this)), place),
    ]
    out.append(loop(stored(this, place), numbers, inner, place))


def first_of(
    name: str, key: ast.expr, total: str, best: list[str], own: Collections, value: ast.expr, is_first: str
) -> Statements:
    """What ``min`` and ``max`` do with an element: it becomes their value if its key comes before that of what is."""
    out: Statements = []
    element = own.named(value, out)
    assert isinstance(element, ast.Name)
    parts = keys_of(key, element, own, out)
    if not best:
        best.extend(own.shapes.new("best") for _ in parts)
    pairs: list[tuple[ast.expr, ast.expr]] = [(part, load(one, value)) for part, one in zip(parts, best)]
    taken: Statements = [store(total, element, value), *(store(one, part, value) for part, one in zip(parts, best))]
    better = _is_before(pairs, ast.Lt() if name == "min" else ast.Gt(), None)
    begin = [*taken, store(is_first, constant(False, value), value)]
    return [*out, when(load(is_first, value), begin, [when(better, taken, [], value)], value)]
