"""Tuples with a name: a frozen record whose fields are the places."""

from __future__ import annotations

import ast
import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from .kernel import Called
from .names import Statements, at, attribute, constant, is_call_of, load
from .records import Made, fields_of

__all__ = ["with_named_tuples"]

#: What no part of a tuple with a name can be.
_COLLECTIONS = (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.Starred)


@functools.cache
def _tuple_of(count: int) -> Any:
    """The class of tuples of so many parts."""
    fields: list[tuple[str, Any]] = [(f"part_{place}", Any) for place in range(count)]
    return dataclasses.make_dataclass("tuple", fields, frozen=True)


def with_named_tuples(tree: ast.FunctionDef) -> Statements:
    """The statements of a function in which a name that is only ever a tuple of so many scalars is a record."""
    kinds = _kinds(tree)
    return [_Named(kinds).visit(statement) for statement in tree.body] if kinds else tree.body


def _kinds(tree: ast.FunctionDef) -> dict[str, Any]:
    """Names that are tuples wherever they are assigned, of as many parts."""
    assigned = [
        (node.targets[0], node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    ]
    targets = {target for target, _ in assigned}
    others = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node not in targets
    }
    others |= {argument.arg for argument in ast.walk(tree) if isinstance(argument, ast.arg)}
    others |= {handler.name for handler in ast.walk(tree) if isinstance(handler, ast.ExceptHandler) and handler.name}
    known: dict[str, int] = {}
    while True:
        counts: dict[str, set[int]] = {}
        for target, value in assigned:
            counts.setdefault(target.id, set()).add(_count(value, known))
        found = {name: max(one) for name, one in counts.items() if len(one) == 1 and name not in others}
        found = {name: count for name, count in found.items() if count}
        if found == known:
            return {name: _tuple_of(count) for name, count in known.items()}
        known = found


def _count(value: ast.expr, known: Mapping[str, int]) -> int:
    """How many parts a tuple has; 0 for what is none."""
    if isinstance(value, ast.Name):
        return known.get(value.id, 0)
    if isinstance(value, ast.Tuple) and not any(isinstance(part, _COLLECTIONS) for part in value.elts):
        return len(value.elts)
    if isinstance(value, Called) and value.gives > 1 and value.record is None and not value.gives_lists:
        return value.gives
    return 0


class _Named(ast.NodeTransformer):
    def __init__(self, kinds: dict[str, Any]) -> None:
        self._kinds = kinds

    def _of(self, node: ast.AST | None) -> list[str]:
        """The fields of a tuple with a name."""
        kind = self._kinds.get(node.id) if isinstance(node, ast.Name) else None
        return fields_of(kind) if kind is not None else []

    def _parts(self, node: ast.expr) -> ast.expr:
        """The parts of what may be a tuple with a name."""
        fields = self._of(node)
        if not fields:
            return node
        assert isinstance(node, ast.Name)
        return at(ast.Tuple([attribute(load(node.id, node), field, node) for field in fields], ast.Load()), node)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        self.generic_visit(node)
        target = node.targets[0]
        if self._of(target) and isinstance(target, ast.Name):
            kind = self._kinds[target.id]
            if isinstance(node.value, ast.Tuple):
                node.value = at(Made(values=node.value.elts), node.value)
                node.value.kind = kind
            elif isinstance(node.value, Called):
                node.value.record = kind
        elif isinstance(target, (ast.Tuple, ast.List)):
            node.value = self._parts(node.value)
        return node

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        self.generic_visit(node)
        node.value = self._parts(node.value) if node.value is not None else None
        return node

    def visit_For(self, node: ast.For) -> ast.stmt:
        self.generic_visit(node)
        node.iter = self._parts(node.iter)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        are_within = [isinstance(operator, (ast.In, ast.NotIn)) for operator in node.ops]
        pairs = zip(node.comparators, are_within)
        node.comparators = [self._parts(one) if is_within else one for one, is_within in pairs]
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if is_call_of(node, "len") and len(node.args) == 1 and self._of(node.args[0]):
            return constant(len(self._of(node.args[0])), node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        fields, place = self._of(node.value), node.slice
        sign = 1
        if isinstance(place, ast.UnaryOp) and isinstance(place.op, ast.USub):
            sign, place = -1, place.operand
        if not fields or not isinstance(place, ast.Constant) or type(place.value) is not int:
            return node
        at_place = sign * place.value
        if not -len(fields) <= at_place < len(fields):
            return node
        return attribute(node.value, fields[at_place], node)
