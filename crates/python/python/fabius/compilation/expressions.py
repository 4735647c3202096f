"""Expressions of a function in fewer words, with what is done before them."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ..errors import ProgrammingError
from ..parameters import bound, braced, named
from .handlers import DIVISION
from .kernel import Called, Element, Handler, Query, Raised, Received, Zero
from .names import (
    DICT,
    LIST,
    ONE,
    Shapes,
    Statements,
    at,
    attribute,
    call,
    compare,
    constant,
    is_call_of_row,
    is_of_database,
    is_of_range,
    is_of_rows,
    items_of,
    load,
    negated,
    root,
    store,
    stored,
    when,
)
from .records import field_named
from .refusal import Refused
from .texts import Texts, is_of_text

if TYPE_CHECKING:
    from .program import Compiled

__all__ = ["Expressions"]

#: Functions and methods that the database writes out, with several copies of what they are given.
_WRITTEN_OUT = frozenset("str isoformat rfind count removeprefix removesuffix ljust rjust zfill".split())

#: Parts of moments, and of times between them.
_OF_VALUES = frozenset("year month day hour minute second microsecond days seconds microseconds".split())


class Expressions(Texts):
    """What is computed, one part after the other."""

    def __init__(self, shapes: Shapes, parameters: set[str], records: Mapping[str, type], program: Compiled) -> None:
        super().__init__(shapes, parameters)
        #: Names that are records.
        self.records = records
        #: The program that is made.
        self.program = program
        #: Whether something may divide by zero.
        self.divides = False
        #: The handlers that this is in, the innermost last.
        self.handling: list[tuple[Handler, ast.ExceptHandler]] = []

    def catches(self, name: str) -> bool:
        """Whether an exception is caught here."""
        return any(name in names for names in self.catching)

    def value(self, node: ast.expr, out: Statements, truth: bool = False) -> ast.expr:
        """An expression in fewer words; ``out`` gets what is done before. ``truth`` says that only its truth counts."""
        handler: Callable[..., ast.expr] | None = getattr(self, f"_value_{type(node).__name__}", None)
        if handler is None:
            return node
        if isinstance(node, (ast.BoolOp, ast.UnaryOp)):
            return handler(node, out, truth)
        return handler(node, out)

    def _value_BinOp(self, node: ast.BinOp, out: Statements) -> ast.expr:
        if self.shapes.of(node) != ONE:
            return load(self.list_of(node, out), node)
        left, right = self.sequence([node.left, node.right], out)
        return self.calculated(left, node.op, right, node, out)

    def calculated(
        self, left: ast.expr, op: ast.operator, right: ast.expr, place: ast.AST, out: Statements
    ) -> ast.expr:
        """``left op right``, of values in fewer words."""
        if isinstance(op, (ast.FloorDiv, ast.Mod)):
            # The database writes out what rounding down means, with several copies of each.
            left, right = self._once(left, out), self._once(right, out)
            self.divisor(right, out)
        elif isinstance(op, ast.Div):
            right = self._once(right, out) if self.catches(DIVISION) else right
            self.divisor(right, out)
        elif isinstance(op, ast.Pow) and not _is_natural(right):
            raise Refused(place, "a power whose exponent is no literal of int", "multiply in a loop; 2 ** n is 1 << n")
        elif isinstance(op, (ast.LShift, ast.RShift)) and not _is_natural(right):
            left, right = self.named(left, out), self.named(right, out)
            raised = at(Raised(kind="ValueError", message=constant("negative shift count", place)), place)
            out.append(when(compare(right, ast.Lt(), constant(0, place), place), [raised], [], place))
        return at(ast.BinOp(left, op, right), place)

    def divisor(self, node: ast.expr, out: Statements) -> None:
        """What something is divided by. The database itself ends the transaction if it is zero."""
        if isinstance(node, ast.Constant) and node.value:
            return
        self.divides = True
        if self.catches(DIVISION):
            raised = at(Raised(kind=DIVISION, message=constant("", node)), node)
            out.append(when(compare(node, ast.Eq(), at(Zero(), node), node), [raised], [], node))

    def _once(self, node: ast.expr, out: Statements) -> ast.expr:
        """A value that may be copied."""
        return node if isinstance(node, (ast.Name, ast.Constant, ast.Attribute)) else self.named(node, out)

    def quotient(self, node: ast.Call, out: Statements) -> list[ast.expr]:
        """The two parts of ``divmod(a, b)``."""
        left, right = (self.named(one, out) for one in self.sequence(node.args, out))
        self.divisor(right, out)
        return [at(ast.BinOp(left, op, right), node) for op in (ast.FloorDiv(), ast.Mod())]

    def _value_UnaryOp(self, node: ast.UnaryOp, out: Statements, truth: bool = False) -> ast.expr:
        if isinstance(node.op, ast.Invert):
            minus = at(ast.UnaryOp(ast.USub(), constant(1, node)), node)
            return at(ast.BinOp(self.value(node.operand, out), ast.BitXor(), minus), node)
        operand = self.value(node.operand, out, isinstance(node.op, ast.Not))
        return at(ast.UnaryOp(node.op, operand), node)

    def _value_BoolOp(self, node: ast.BoolOp, out: Statements, truth: bool = False) -> ast.expr:
        parts: list[tuple[ast.expr, Statements]] = []
        for value in node.values:
            before: Statements = []
            parts.append((self.value(value, before, truth), before))
        if not any(before for _, before in parts[1:]):
            out.extend(parts[0][1])
            return at(ast.BoolOp(node.op, [value for value, _ in parts]), node)
        # What a later part needs is done only where Python comes to it.
        name = self.shapes.new("truth")
        inner: Statements = []
        for value, before in reversed(parts):
            value = call("bool", [value], value) if truth else value
            after = inner
            inner = [*before, store(name, value, value)]
            if after:
                test: ast.expr = load(name, node)
                if isinstance(node.op, ast.Or):
                    test = negated(test, node)
                inner.append(when(test, after, [], node))
        out.extend(inner)
        return load(name, node)

    def _value_IfExp(self, node: ast.IfExp, out: Statements) -> ast.expr:
        test = self.value(node.test, out, truth=True)
        then_before: Statements = []
        else_before: Statements = []
        then, otherwise = self.value(node.body, then_before), self.value(node.orelse, else_before)
        if not then_before and not else_before:
            return at(ast.IfExp(test, then, otherwise), node)
        name = self.shapes.new("value")
        then_before.append(store(name, then, node))
        else_before.append(store(name, otherwise, node))
        out.append(when(test, then_before, else_before, node))
        return load(name, node)

    def _value_Compare(self, node: ast.Compare, out: Statements) -> ast.expr:
        if len(node.ops) > 1:
            befores: Statements = []
            self.sequence([node.left, *node.comparators], befores)
            if befores or any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops):
                return self._chain(node, out)
        op, right = node.ops[0], node.comparators[0]
        if isinstance(op, (ast.In, ast.NotIn)):
            return self.contains(node.left, op, right, node, out)
        left, *others = self.sequence([node.left, *node.comparators], out)
        return at(ast.Compare(left, node.ops, others), node)

    def _chain(self, node: ast.Compare, out: Statements) -> ast.expr:
        """``a < f() < b`` as ``a < f() and f() < b``, with each computed once."""
        pairs: list[ast.expr] = []
        left = self.named(self.value(node.left, out), out)
        for op, right in zip(node.ops, node.comparators):
            is_within = isinstance(op, (ast.In, ast.NotIn))
            right = right if is_within else at(ast.NamedExpr(stored(self.shapes.new("value"), right), right), right)
            pairs.append(compare(left, op, right, node))
            left = load(right.target.id, right) if isinstance(right, ast.NamedExpr) else right
        return self.value(at(ast.BoolOp(ast.And(), pairs), node), out)

    def _value_NamedExpr(self, node: ast.NamedExpr, out: Statements) -> ast.expr:
        if self.shapes.of(node.target) != ONE:
            raise Refused(node, ":= of a collection", "assign it before")
        out.append(store(node.target.id, self.value(node.value, out), node))
        return load(node.target.id, node)

    def contains(self, left: ast.expr, op: ast.cmpop, right: ast.expr, place: ast.AST, out: Statements) -> ast.expr:
        """``value in collection``"""
        if isinstance(right, (ast.Tuple, ast.List, ast.Set)) and right.elts:
            value, *others = self.sequence([left, *right.elts], out)
            value = self.named(value, out)
            is_within = isinstance(op, ast.In)
            operator = ast.Eq() if is_within else ast.NotEq()
            compared: list[ast.expr] = [compare(value, operator, one, place) for one in others]
            if len(compared) == 1:
                return compared[0]
            return at(ast.BoolOp(ast.Or() if is_within else ast.And(), compared), place)
        if isinstance(right, ast.Attribute) and is_of_database(right):
            keys = left.elts if isinstance(left, ast.Tuple) else [left]
            values = self.sequence(keys, out)
            key = at(ast.Tuple(values, ast.Load()), left) if isinstance(left, ast.Tuple) else values[0]
            return compare(key, op, right, place)
        if self.shapes.of(right) != ONE or isinstance(right, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.List)):
            value = self.named(self.value(left, out), out)
            return compare(value, op, load(self.list_of(right, out), place), place)
        one, other = self.sequence([left, right], out)
        return compare(one, op, other, place)

    def _value_Attribute(self, node: ast.Attribute, out: Statements) -> ast.expr:
        if node.attr == "rowcount" and isinstance(node.value, ast.Call) and root(node) == "the database":
            name = self.shapes.new("value")
            asked = at(ast.Attribute(self.parts_of_call(node.value, out), node.attr, ast.Load()), node)
            out.append(store(name, at(ast.Call(asked, [], []), node), node))
            return load(name, node)
        if is_of_database(node) or root(node) == "the package":
            return node
        field = field_named(node, self.records)
        if field is not None:
            return field
        if is_call_of_row(node.value):
            row = self.shapes.new("row")
            out.append(store(row, self.row_or_value(node.value, out), node))
            return at(ast.Attribute(load(row, node), node.attr, node.ctx), node)
        owner = self.value(node.value, out)
        if node.attr in _OF_VALUES and not isinstance(owner, ast.Name):
            # A part of a value: the database takes parts of what has a name.
            owner = self.named(owner, out)
        return at(ast.Attribute(owner, node.attr, node.ctx), node)

    def rows_of(self, over: ast.expr, out: Statements) -> ast.expr:
        """Rows of a table or a statement; ``db.table[first, lower:upper]`` is what a key begins with, and bounds."""
        if not isinstance(over, ast.Subscript):
            return self.parts_of_call(over, out) if isinstance(over, ast.Call) else over
        *prefix, bounds = over.slice.elts if isinstance(over.slice, ast.Tuple) else [over.slice]
        if not isinstance(bounds, ast.Slice) or any(isinstance(part, ast.Slice) for part in prefix):
            raise Refused(over, "a range that is not the last part of a key", "write db.table[first, lower:upper]")
        if bounds.step is not None:
            raise Refused(over, "a range of keys with a step", "go through all, and leave out others")
        none = constant(None, over)
        values = self.sequence([*prefix, bounds.lower or none, bounds.upper or none], out)
        return at(ast.Call(attribute(over.value, "[:]", over), values, []), over)

    def row(self, node: ast.expr, out: Statements) -> ast.expr:
        """A row that is written to or deleted: it need not be read."""
        if is_of_range(node):
            raise Refused(node, "a range of rows anywhere but in a loop", "write for row in db.table[a:b]")
        if isinstance(node, ast.Subscript) and is_of_database(node.value):
            key = node.slice
            if isinstance(key, ast.Tuple):
                key = at(ast.Tuple(self.sequence(key.elts, out), ast.Load()), key)
            else:
                key = self.value(key, out)
            return at(ast.Subscript(node.value, key, node.ctx), node)
        return node if isinstance(node, ast.Name) else self.value(node, out)

    def row_or_value(self, node: ast.expr, out: Statements) -> ast.expr:
        """What a name becomes: a row of the database, or a value."""
        if isinstance(node, ast.Subscript) and is_of_database(node.value):
            return self.row(node, out)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            asked = isinstance(node.func.value, ast.Call) and is_of_database(
                getattr(node.func.value.func, "value", node)
            )
            if asked or is_of_database(node.func.value):
                return self.parts_of_call(node, out)
        return self.value(node, out)

    def _value_Subscript(self, node: ast.Subscript, out: Statements) -> ast.expr:
        shape = self.shapes.of(node.value)
        if shape == DICT:
            return self.got(self.collection(node.value, out), node.slice, None, node, out)
        if shape == LIST:
            if isinstance(node.slice, ast.Slice):
                return load(self.list_of(node, out), node)
            name = load(self.list_of(node.value, out), node)
            return at(Element(list=name, place=self.place_in(name, node.slice, out)), node)
        if is_of_database(node.value):
            name_of_row = self.shapes.new("row")
            out.append(at(ast.Assign([stored(name_of_row, node)], self.row(node, out)), node))
            return load(name_of_row, node)
        if isinstance(node.value, (ast.Tuple, ast.List)):
            raise Refused(node, "an element of a literal", "give the list a name")
        if isinstance(node.value, ast.Name) and node.value.id in self.shapes.rows:
            # A column by its place.
            return at(ast.Subscript(node.value, self.value(node.slice, out), node.ctx), node)
        return self._part_of_text(node, out)

    def _part_of_text(self, node: ast.Subscript, out: Statements) -> ast.expr:
        """``text[place]``, ``text[a:b]``"""
        if isinstance(node.slice, ast.Slice):
            if node.slice.step is not None:
                raise Refused(node, "a slice with a step", "go through the places: for i in range(0, len(x), 2)")
            none = constant(None, node)
            text, *bounds = self.sequence([node.value, node.slice.lower or none, node.slice.upper or none], out)
        else:
            text, index = self.sequence([node.value, node.slice], out)
            text, index = self.named(text, out), self.named(index, out)
            index = self._checked(index, call("len", [text], node), "string index out of range", node, out)
            bounds = [index, at(ast.BinOp(index, ast.Add(), constant(1, node)), node)]
        return at(ast.Call(at(ast.Attribute(text, "[:]", ast.Load()), node), bounds, []), node)

    def place_in(
        self, name: ast.expr, index: ast.expr, out: Statements, message: str = "list index out of range"
    ) -> ast.expr:
        """A place in a list, from 0, that is there."""
        if isinstance(index, ast.Slice):
            raise Refused(index, "a change of a part of a list", "change its elements one by one")
        given = self.named(self.value(index, out), out)
        return self._checked(given, call("len", [name], index), message, index, out)

    def _checked(self, given: ast.expr, count: ast.expr, message: str, place: ast.AST, out: Statements) -> ast.expr:
        """A place counted from the begin, if it is within."""
        zero = constant(0, place)
        from_end = at(ast.BinOp(given, ast.Add(), count), place)
        positive = at(ast.IfExp(compare(given, ast.Lt(), zero, place), from_end, given), place)
        found = self.named(positive, out)
        bounds: list[ast.expr] = [compare(found, ast.Lt(), zero, place), compare(found, ast.GtE(), count, place)]
        raised = at(Raised(kind="IndexError", message=constant(message, place)), place)
        out.append(when(at(ast.BoolOp(ast.Or(), bounds), place), [raised], [], place))
        return found

    # Calls.

    def parts_of_call(self, node: ast.Call, out: Statements) -> ast.expr:
        """A call with its arguments in fewer words."""
        function = node.func
        if isinstance(function, ast.Attribute) and _is_query(function):
            return self._query(node, out)
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Call):
            inner = self.parts_of_call(function.value, out)
            function = at(ast.Attribute(inner, function.attr, function.ctx), function)
            if isinstance(inner, Query):
                return at(ast.Call(function, self.sequence(node.args, out), node.keywords), node)
            node = at(ast.Call(function, node.args, node.keywords), node)
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
        flat: list[ast.expr] = []
        for value in values:
            flat.extend(value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value])
        is_ours = isinstance(function, ast.Attribute) and (
            is_of_database(function.value) or root(function.value) == "the package"
        )
        if is_ours and isinstance(function, ast.Attribute) and function.attr == "require":
            node = _with_message(node)
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
            flat = values
        has_object = isinstance(function, ast.Attribute) and not is_ours
        head = [function.value] if has_object and isinstance(function, ast.Attribute) else []
        done = self.sequence([*head, *flat], out)
        if getattr(function, "attr", getattr(function, "id", "")) in _WRITTEN_OUT:
            done = [self._once(one, out) for one in done]
        if head and isinstance(function, ast.Attribute):
            function = at(ast.Attribute(done.pop(0), function.attr, function.ctx), function)
        made: list[ast.expr] = []
        for value in values:
            if isinstance(value, (ast.Tuple, ast.List)):
                parts = [done.pop(0) for _ in value.elts]
                made.append(at(ast.Tuple(parts, ast.Load()), value))
            else:
                made.append(done.pop(0))
        names = [keyword.arg for keyword in node.keywords]
        count = len(node.args)
        keywords = [at(ast.keyword(name, value), node) for name, value in zip(names, made[count:])]
        return at(ast.Call(function, made[:count], keywords), node)

    def _query(self, node: ast.Call, out: Statements) -> ast.expr:
        """``db.execute(text, values)``, ``db.sql(text, name=value)``"""
        if isinstance(node.func, ast.Attribute) and node.func.attr == "sql":
            return self._braced(node, out)
        if not node.args or node.keywords or len(node.args) > 2:
            raise Refused(node, "execute of this form", "write db.execute(text, (value, ...))")
        text = node.args[0]
        if not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
            instead = "write the text out, with %s for each value: db.execute('... where id = %s', (id,))"
            raise Refused(text, "a statement that is put together", instead)
        given = node.args[1] if len(node.args) == 2 else None
        values: list[ast.expr]
        try:
            if given is None:
                written, values = text.value, []
            elif isinstance(given, (ast.Tuple, ast.List)):
                written, values = bound(text.value, given.elts)[0], given.elts
            elif isinstance(given, ast.Dict):
                pairs = zip(given.keys, given.values)
                names = {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}
                written, found = bound(text.value, names)
                values = list(found)
            else:
                raise Refused(given, "parameters that are a value", "write them out: (value, ...)")
        except ProgrammingError as error:
            raise Refused(node, f"this statement: {error.args[0]}", "write %s, and a value for each") from None
        return at(Query(text=written, args=self.sequence(values, out)), node)

    def _braced(self, node: ast.Call, out: Statements) -> ast.expr:
        """``db.sql("... {name}", name=value)``"""
        text = node.args[0] if len(node.args) == 1 else node
        given = {str(keyword.arg): keyword.value for keyword in node.keywords}
        if not (isinstance(text, ast.Constant) and isinstance(text.value, str)) or "None" in given:
            instead = "write the text out, with {name} for each value: db.sql('... where id = {id}', id=id)"
            raise Refused(text, "a statement that is put together", instead)
        try:
            written, names = braced(text.value)
            named(names, given, dict)
        except ProgrammingError as error:
            raise Refused(node, f"this statement: {error.args[0]}", "write {name}, and name=value for each") from None
        done = dict(zip(given, self.sequence(list(given.values()), out)))
        return at(Query(text=written, args=[done[name] for name in names]), node)

    def _value_List(self, node: ast.expr, out: Statements) -> ast.expr:
        return load(self.list_of(node, out), node)

    _value_ListComp = _value_List

    def called(self, node: Called, out: Statements) -> Called:
        """A call with its arguments in fewer words, computed in the order in which they are written."""
        if self.program.callees[node.function].divides:
            self.divides = True
            if self.catches(DIVISION):
                what = "a call within try with except ZeroDivisionError"
                raise Refused(node, what, "test what it divides by, and raise another exception")
        if node.back and self.catching:
            what = "a call within try of a function that assigns globals"
            raise Refused(node, what, "return what it assigns, and assign it here")
        done = self.sequence([node.args[place] for place in node.order], out)
        arguments = [done[node.order.index(place)] for place in range(len(node.args))]
        made = copy.copy(node)
        made.args = arguments
        return made

    def received(self, node: Called, out: Statements) -> list[ast.expr]:
        """The values that a function gives, each with a name; globals that it assigns become what it has made of
        them."""
        names = [self.shapes.new("value") for _ in range(node.gives)]
        for place in node.gives_lists:
            self.shapes.hold(names[place], LIST)
        given, called = [*names, *node.back], self.called(node, out)
        out.append(at(Received(names=given, value=called), node) if len(given) > 1 else store(given[0], called, node))
        return [load(name, node) for name in names]

    def _value_Called(self, node: Called, out: Statements) -> ast.expr:
        if node.back:
            if not node.gives:
                raise Refused(node, "the value of a function that returns none", "call it in a line of its own")
            if node.gives == 1:
                return self.received(node, out)[0]
        name = self.shapes.new("value")
        out.append(store(name, self.called(node, out), node))
        return load(name, node)

    def _value_Name(self, node: ast.Name, out: Statements) -> ast.expr:
        if node.id in self.records:
            name = self.records[node.id].__name__
            instead = f"use its parts: {node.id}[0]" if name == "tuple" else "use its fields"
            raise Refused(node, f"a {name} as a value", instead)
        # Whether a dictionary has something, its keys say.
        return load(items_of(node.id, DICT), node) if self.shapes.of(node) == DICT else node

    def _value_Call(self, node: ast.Call, out: Statements) -> ast.expr:
        if getattr(node.func, "attr", getattr(node.func, "id", "")).endswith(" of parts"):
            return self.moment_of_parts(node, out)
        if isinstance(node.func, ast.Name):
            made = self._builtin(node.func.id, node, out)
            if made is not None:
                return made
        elif isinstance(node.func, ast.Attribute):
            shape, what = self.shapes.of(node.func.value), node.func.attr
            if shape == DICT and what == "get" and 1 <= len(node.args) <= 2:
                otherwise = node.args[1] if len(node.args) > 1 else constant(None, node)
                return self.got(self.collection(node.func.value, out), node.args[0], otherwise, node, out)
            if shape != ONE and what in ("count", "index", "pop"):
                return self.asked(shape, node, out)
            if what == "join" and len(node.args) == 1:
                return self.joined(node, out)
            if self.shapes.of(node) == LIST:
                return load(self.list_of(node, out), node)
            if is_of_text(node, shape, ("index", "rindex")):
                return self.place_in_text(node, out)
            if is_of_text(node, shape, ("strftime",)) and len(node.args) == 1:
                return self.moment_as_text(self.value(node.func.value, out), node.args[0], node, out)
            is_asked = isinstance(node.func.value, ast.Call) and root(node) == "the database" and what == "scalar"
            if is_asked or (what == "get" and is_of_database(node.func.value)):
                name = self.shapes.new("value")
                out.append(store(name, self.parts_of_call(node, out), node))
                return load(name, node)
        return self.parts_of_call(node, out)

    def _builtin(self, name: str, node: ast.Call, out: Statements) -> ast.expr | None:
        """A function of Python over a collection, or one that is an operator."""
        if name == "pow" and len(node.args) == 2 and not node.keywords:
            return self._value_BinOp(at(ast.BinOp(node.args[0], ast.Pow(), node.args[1]), node), out)
        over = node.args[0] if node.args else None
        if name in ("int", "float") and len(node.args) == 1 and not node.keywords:
            # A text may be no number: that is found before what it is needed for.
            return self.named(self.parts_of_call(node, out), out)
        if name == "len" and isinstance(over, ast.ListComp) and _gives_rows(over):
            # Each counts as one.
            ones = at(ast.GeneratorExp(constant(1, node), over.generators), node)
            return self.value(call("sum", [ones], node), out)
        is_collection = over is not None and (
            self.shapes.of(over) != ONE
            or isinstance(over, (ast.GeneratorExp, ast.ListComp, ast.SetComp))
            or (isinstance(over, ast.Attribute) and is_of_database(over))
        )
        if name in ("list", "dict", "set") or (name == "sorted" and over is not None):
            return load(self.list_of(node, out), node)
        if over is None or not (is_collection or name in ("sum", "any", "all")):
            return None
        if name in ("len", "bool") and len(node.args) == 1:
            return call(name, [load(self.list_of(over, out), node)], node)
        if name in ("any", "all") and len(node.args) == 1:
            return self.any_of(name == "any", over, node, out)
        if name in ("sum", "min", "max"):
            return self.reduced(name, node, out)
        return None


def _gives_rows(node: ast.ListComp) -> bool:
    """Whether its elements are rows of the database."""
    targets = [one.target for one in node.generators if is_of_rows(one.iter)]
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    return isinstance(node.elt, ast.Name) and node.elt.id in names


def _is_natural(node: ast.expr) -> bool:
    """Whether it is a literal of `int` that is not negative."""
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value >= 0


def _is_query(function: ast.Attribute) -> bool:
    """Whether it is ``db.execute`` or ``db.sql``."""
    return function.attr in ("execute", "sql") and isinstance(function.value, ast.Name) and is_of_database(function)


def _with_message(node: ast.Call) -> ast.Call:
    """``require(condition, message=...)`` with its message in its place."""
    if len(node.args) == 1 and [keyword.arg for keyword in node.keywords] == ["message"]:
        return at(ast.Call(node.func, [*node.args, node.keywords[0].value], []), node)
    return node
