"""Loops: over ranges, rows and collections, side by side, counted or backwards."""

from __future__ import annotations

import ast

from .collections import Changes, Collections
from .kernel import Append, Element, Received, SetElement
from .names import (
    DICT,
    LIST,
    Statements,
    at,
    call,
    constant,
    count_of,
    is_call_of,
    is_of_rows,
    load,
    loop,
    parts_of,
    store,
    stored,
)
from .refusal import Refused

__all__ = ["Loops"]


class Loops(Collections):
    """How collections and rows are gone through."""

    def loop_over(
        self,
        target: ast.expr,
        over: ast.expr,
        body: Statements,
        place: ast.AST,
        out: Statements,
        changes: Changes = (set(), set()),
    ) -> None:
        """A loop, whose body is in fewer words already."""
        if is_call_of(over, "range") and isinstance(over, ast.Call):
            numbers = at(ast.Call(over.func, self.sequence(over.args, out), over.keywords), over)
            out.append(loop(target, numbers, body, place))
        elif is_of_rows(over):
            row, body = self._apart(target, body)
            out.append(loop(row, self.rows_of(over, out), body, place))
        else:
            self._loop_over_elements(target, over, body, place, out, changes)

    def _apart(self, target: ast.expr, body: Statements) -> tuple[ast.expr, Statements]:
        """What a loop over rows assigns, and a body that takes a row's columns first if they have names."""
        if not isinstance(target, (ast.Tuple, ast.List)):
            return target, body
        names = [one.id for one in target.elts if isinstance(one, ast.Name)]
        if len(names) < len(target.elts):
            raise Refused(target, "this target of a loop", "take a name for each column")
        row = self.shapes.new("row")
        return stored(row, target), [at(Received(names=names, value=load(row, target)), target), *body]

    def _loop_over_elements(
        self, target: ast.expr, over: ast.expr, body: Statements, place: ast.AST, out: Statements, changes: Changes
    ) -> None:
        lists, first = self._side_by_side(over, out)
        rebound, changed = changes
        named = [name.removesuffix(" keys").removesuffix(" values") for name in lists]
        if any(name in changed for name in named):
            raise Refused(place, "a loop over a collection that changes in it", "loop over a copy: list(...)")
        # A name that gets another collection is looped over as it was.
        lists = [self._copied(name, place, out) if own in rebound else name for name, own in zip(lists, named)]
        targets: list[ast.expr] = [target]
        number: ast.expr | None = None
        if first is not None:
            if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
                raise Refused(place, "enumerate with one target", "write for i, x in enumerate(...)")
            number, rest = target.elts
            targets = [rest]
        if len(lists) > 1:
            if not isinstance(targets[0], ast.Tuple) or len(targets[0].elts) != len(lists):
                raise Refused(place, "other than one target for each list", "write for a, b in ...")
            targets = targets[0].elts
        for statement in body:
            for part in ast.walk(statement):
                if isinstance(part, Append) and isinstance(part.list, ast.Name) and part.list.id in lists:
                    raise Refused(place, "a loop over a list that grows in it", "loop over a copy of it")
        is_reversed = is_call_of(over, "reversed")
        is_set = any(
            isinstance(part, SetElement) and isinstance(part.list, ast.Name) and part.list.id in lists
            for statement in body
            for part in ast.walk(statement)
        )
        if len(lists) == 1 and not is_set and number is None and isinstance(targets[0], ast.Name) and not is_reversed:
            out.append(loop(targets[0], load(lists[0], place), body, place))
            return
        # By places, as far as the shortest list goes.
        counts: list[ast.expr] = [count_of(name, place) for name in lists]
        count = counts[0] if len(lists) == 1 else call("min", counts, place)
        turn = self.shapes.new("place")
        begin: Statements = []
        for one, name in zip(targets, lists):
            if not isinstance(one, ast.Name):
                raise Refused(one, "this target of a loop", "take a name, and its parts in the loop")
            element = at(Element(list=load(name, place), place=load(turn, place)), place)
            begin.append(at(ast.Assign([one], element), place))
        if number is not None and first is not None:
            value = at(ast.BinOp(load(turn, place), ast.Add(), first), place)
            begin.append(at(ast.Assign([number], value), place))
        places = [count]
        if is_reversed:
            minus = at(ast.UnaryOp(ast.USub(), constant(1, place)), place)
            places = [at(ast.BinOp(count, ast.Sub(), constant(1, place)), place), minus, minus]
        out.append(loop(stored(turn, place), call("range", places, place), [*begin, *body], place))

    def _copied(self, name: str, place: ast.AST, out: Statements) -> str:
        made = self.shapes.new("list")
        self.shapes.hold(made, LIST)
        out.append(store(made, load(name, place), place))
        return made

    def _side_by_side(self, over: ast.expr, out: Statements) -> tuple[list[str], ast.expr | None]:
        """Lists whose elements a loop is over, side by side; and the first number, if they are counted."""
        if isinstance(over, ast.Call) and is_call_of(over, "enumerate") and over.args:
            first: ast.expr = constant(0, over)
            for given in [*over.args[1:], *(keyword.value for keyword in over.keywords)]:
                first = self.named(self.value(given, out), out)
            lists, other = self._side_by_side(over.args[0], out)
            if other is not None:
                raise Refused(over, "enumerate of enumerate", "count by a variable")
            return lists, first
        if isinstance(over, ast.Call) and is_call_of(over, "zip") and over.args and not over.keywords:
            return [self.list_of(part, out) for part in over.args], None
        if isinstance(over, ast.Call) and is_call_of(over, "reversed") and len(over.args) == 1:
            return [self.list_of(over.args[0], out)], None
        if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr == "items":
            if self.shapes.of(over.func.value) == DICT and not over.args:
                return list(parts_of(self.collection(over.func.value, out))), None
        pairs = over.args[0] if isinstance(over, ast.Call) and is_call_of(over, "sorted") and over.args else None
        if isinstance(pairs, ast.Call) and isinstance(pairs.func, ast.Attribute) and pairs.func.attr == "items":
            named = all(keyword.arg == "reverse" for keyword in over.keywords)  # type: ignore[attr-defined]
            if self.shapes.of(pairs.func.value) == DICT and named:
                return self._sorted_items(over, pairs.func.value, out), None  # type: ignore[arg-type]
        return [self.list_of(over, out)], None

    def _sorted_items(self, node: ast.Call, items: ast.expr, out: Statements) -> list[str]:
        """The keys of a dictionary in their order, and its values: no two keys are the same."""
        own = load(self.collection(items, out), node)
        keys = self.list_of(at(ast.Call(node.func, [own], node.keywords), node), out)
        key = self.shapes.new("key")
        value = at(ast.Subscript(own, load(key, node), ast.Load()), node)
        each = ast.comprehension(stored(key, node), load(keys, node), [], 0)
        return [keys, self.list_of(at(ast.ListComp(value, [each]), node), out)]
