"""Statements of a function in fewer words: targets, loops, conditions, exceptions."""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .collections import Changes
from .expressions import Expressions
from .handlers import DIVISION, caught, is_told
from .kernel import BARE, Called, Declared, Element, Handler, Raised, Received, Reraised, Said, SetElement, Tried, Zero
from .names import (
    DICT,
    LIST,
    ONE,
    OWN,
    SET,
    Shapes,
    Statements,
    at,
    compare,
    constant,
    count_of,
    is_call_of,
    is_call_of_row,
    is_of_database,
    load,
    negated,
    parts_of,
    root,
    store,
    when,
)
from .records import Made, field_named, kind_of_record, taken, values_of
from .refusal import Refused
from .texts import is_of_text

if TYPE_CHECKING:
    from .program import Compiled

__all__ = ["Desugaring"]

#: Operators that need something done before them.
_WRITTEN_OUT = (ast.Pow, ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor)


class Desugaring(Expressions):
    """Says a function's statements in the words that the database knows.

    What an expression needs done first stands before its statement, in Python's order, and only where Python would do
    it.
    """

    def __init__(self, shapes: Shapes, parameters: set[str], records: Mapping[str, type], program: Compiled) -> None:
        super().__init__(shapes, parameters, records, program)
        #: The data class of its result, if it is one.
        self.record = program.record

    def block(self, statements: Sequence[ast.stmt]) -> Statements:
        """Statements in fewer words.

        Raises ``Refused`` for what cannot be said.
        """
        out: Statements = []
        for statement in statements:
            handler: Callable[[Any, Statements], None] | None = getattr(self, f"_do_{type(statement).__name__}", None)
            if handler is None:
                out.append(statement)
            else:
                handler(statement, out)
        return out

    def _do_Expr(self, node: ast.Expr, out: Statements) -> None:
        alone = node.value
        if isinstance(alone, ast.Call) and isinstance(alone.func, ast.Attribute):
            shape = self.shapes.of(alone.func.value)
            if shape != ONE:
                self.change(shape, alone, out)
                return
        if isinstance(alone, Called) and alone.back:
            self.received(alone, out)
        elif isinstance(alone, Called):
            out.append(at(ast.Expr(self.called(alone, out)), node))
        elif isinstance(alone, ast.Call):
            out.append(at(ast.Expr(self.parts_of_call(alone, out)), node))
        elif isinstance(alone, ast.Constant):
            out.append(node)
        else:
            out.append(at(ast.Expr(self.value(alone, out)), node))

    def _do_Said(self, node: Said, out: Statements) -> None:
        out.append(at(Said(state=node.state, value=self.value(node.value, out)), node))

    def _do_Assign(self, node: ast.Assign, out: Statements) -> None:
        value: ast.expr = node.value
        if len(node.targets) > 1 and self.shapes.of(value) != ONE:
            raise Refused(node, f"a second name for a {self.shapes.of(value)}", "make one for each name")
        is_zero = isinstance(value, ast.Constant) and type(value.value) is int and value.value == 0
        if is_zero and isinstance(node.targets[0], ast.Name):
            # What is added to it may be of another class.
            value = at(Zero(), value)
        if len(node.targets) > 1:
            value = self.named(self.value(value, out), out)
        elif isinstance(node.targets[0], ast.Name) and isinstance(value, ast.Tuple):
            raise Refused(node, "a tuple with a name", "write as many names: a, b = x, y")
        for target in node.targets:
            self._assign(target, value, node, out)

    def _do_AnnAssign(self, node: ast.AnnAssign, out: Statements) -> None:
        if node.value is not None:
            self._assign(node.target, node.value, node, out)

    def _assign(self, target: ast.expr, value: ast.expr, place: ast.AST, out: Statements) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            if _are_rows(target, value):
                self._assign_rows(target.elts, value.elts, place, out)  # type: ignore[attr-defined]
                return
            value = self._several(value, len(target.elts), out)
            if not isinstance(value, (ast.Tuple, ast.List)) or len(value.elts) != len(target.elts):
                raise Refused(place, "several targets for one value", "write as many values: a, b = x, y")
            # All values are there before the first target has its own.
            values = [self.named(self.value(part, out), out) for part in value.elts]
            for part, one in zip(target.elts, values):
                self._assign(part, one, place, out)
            return
        if isinstance(value, Called) and value.record is not None:
            value = self._made(value, out)
        if isinstance(target, ast.Name) and target.id in self.records:
            fields = taken(target, value, self.records, place)
            values = [self.named(one, out) for one in self.sequence([one for _, one in fields], out)]
            out.extend(store(name, one, place) for (name, _), one in zip(fields, values))
            return
        if isinstance(target, ast.Attribute):
            target = field_named(target, self.records, is_changed=True) or target
        if isinstance(target, ast.Name):
            shape = self.shapes.of(target)
            if shape != ONE:
                if (
                    isinstance(value, ast.Name)
                    and self.shapes.of(value) == shape
                    and " " not in value.id.removesuffix(OWN)
                ):
                    raise Refused(value, f"a second name for a {shape}", f"copy it: {value.id}.copy()")
                self.collect(target.id, shape, value, out)
                return
            out.append(at(ast.Assign([target], self.row_or_value(value, out)), place))
            return
        if isinstance(target, ast.Subscript) and self.shapes.of(target.value) in (DICT, LIST):
            name = self.collection(target.value, out)
            if self.shapes.of(target.value) == DICT:
                made = self.named(self.value(value, out), out)
                self.put(name, self.value(target.slice, out), made, place, out)
                return
            self.refuse_parameter(name, place)
            made = self.named(self.value(value, out), out)
            index = self.place_in(load(name, place), target.slice, out, "list assignment index out of range")
            out.append(at(SetElement(list=load(name, place), place=index, value=made), place))
            return
        made = self.value(value, out)
        if isinstance(target, ast.Attribute):
            # The value comes first.
            first: Statements = []
            row = self.row(target.value, first)
            made = self.named(made, out) if first else made
            out.extend(first)
            target = at(ast.Attribute(row, target.attr, target.ctx), target)
        out.append(at(ast.Assign([target], made), place))

    def _assign_rows(
        self, targets: Sequence[ast.expr], values: Sequence[ast.expr], place: ast.AST, out: Statements
    ) -> None:
        """Several names for rows, and for values among them, which have theirs once all rows are there."""
        later: list[tuple[ast.expr, ast.expr]] = []
        for target, value in zip(targets, values):
            if _is_row(value):
                self._assign(target, value, place, out)
            else:
                later.append((target, self.named(self.value(value, out), out)))
        for target, value in later:
            self._assign(target, value, place, out)

    def _several(self, value: ast.expr, count: int, out: Statements) -> ast.expr:
        """What gives several values at once, as so many."""
        if isinstance(value, Called) and value.gives > 1:
            if value.record is not None:
                raise Refused(value, f"several targets for a {value.record.__name__}", "take its fields: x.field")
            return at(ast.Tuple(self.received(value, out), ast.Load()), value)
        asked = isinstance(value, ast.Call) and is_call_of_row(value)
        if asked or (isinstance(value, ast.Name) and value.id in self.shapes.rows):
            return self._columns(value, count, out)
        if is_call_of(value, "divmod") and isinstance(value, ast.Call) and len(value.args) == 2:
            return at(ast.Tuple(self.quotient(value, out), ast.Load()), value)
        if is_of_text(value, ONE, ("partition", "rpartition")) and isinstance(value, ast.Call):
            return at(ast.Tuple(self.parted(value, out), ast.Load()), value)
        if not isinstance(value, (ast.Tuple, ast.List)) and self.shapes.of(value) == LIST:
            return self._elements(value, count, out)
        return value

    def _columns(self, value: ast.expr, count: int, out: Statements) -> ast.expr:
        """The columns of a row of SQL."""
        row = self.shapes.new("row")
        names = [self.shapes.new("value") for _ in range(count)]
        if isinstance(value, ast.Name):
            row = value.id
        else:
            out.append(store(row, self.row_or_value(value, out), value))
        out.append(at(Received(names=names, value=load(row, value)), value))
        return at(ast.Tuple([load(name, value) for name in names], ast.Load()), value)

    def _made(self, value: Called, out: Statements) -> Made:
        """The record that a function gives."""
        fields = self.received(value, out) if value.gives > 1 else [self.value(value, out)]
        made = at(Made(values=fields), value)
        assert value.record is not None
        made.kind = value.record
        return made

    def _elements(self, value: ast.expr, count: int, out: Statements) -> ast.expr:
        """The elements of a list that has so many."""
        name = self.list_of(value, out)
        given = self.named(count_of(name, value), out)
        shown = at(ast.FormattedValue(given, -1, None), value)
        end = constant(")", value)
        few: list[ast.expr] = [
            constant(f"not enough values to unpack (expected {count}, got ", value),
            shown,
            end,
        ]
        many: list[ast.expr] = [constant(f"too many values to unpack (expected {count}", value), end]
        if sys.version_info >= (3, 14):
            many[1:1] = [constant(", got ", value), shown]
        orders: tuple[tuple[ast.cmpop, list[ast.expr]], ...] = ((ast.Lt(), few), (ast.Gt(), many))
        for order, parts in orders:
            raised = at(Raised(kind="ValueError", message=at(ast.JoinedStr(parts), value)), value)
            out.append(when(compare(given, order, constant(count, value), value), [raised], [], value))
        elements: list[ast.expr] = [
            at(Element(list=load(name, value), place=constant(place, value)), value) for place in range(count)
        ]
        return at(ast.Tuple(elements, ast.Load()), value)

    def _do_AugAssign(self, node: ast.AugAssign, out: Statements) -> None:
        target = node.target
        if isinstance(target, ast.Attribute):
            target = field_named(target, self.records, is_changed=True) or target
        shape = self.shapes.of(target)
        if isinstance(target, ast.Name) and shape != ONE:
            if isinstance(node.op, {LIST: ast.Add, SET: ast.BitOr}.get(shape, ast.MatMult)):
                self.refuse_parameter(target.id, node)
                self.extend(target.id, shape, node.value, node, out)
                return
            if shape == SET and isinstance(node.op, (ast.Sub, ast.BitAnd)):
                self.refuse_parameter(target.id, node)
                own = load(target.id, node)
                self.collect(target.id, SET, at(ast.BinOp(own, node.op, node.value), node), out)
                return
            raise Refused(node, f"this operator on a {shape}", "use append, add or a loop")
        if isinstance(target, ast.Subscript) and self.shapes.of(target.value) != ONE:
            key = self.named(self.value(target.slice, out), out)
            self._augment_element(target, key, node, out)
            return
        if isinstance(target, ast.Attribute):
            target = at(ast.Attribute(self.row(target.value, out), target.attr, target.ctx), target)
        before: Statements = []
        value = self.value(node.value, before)
        divides = isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod))
        if before or (divides and self.catches(DIVISION)) or isinstance(node.op, _WRITTEN_OUT):
            # What is there is read before the value is computed.
            loaded = copy.copy(target)
            loaded.ctx = ast.Load()
            read = self.named(self.value(loaded, out), out)
            out.extend(before)
            out.append(at(ast.Assign([target], self.calculated(read, node.op, value, node, out)), node))
            return
        if divides:
            self.divisor(value, out)
        out.append(at(ast.AugAssign(target, node.op, value), node))

    def _augment_element(self, target: ast.Subscript, key: ast.expr, node: ast.AugAssign, out: Statements) -> None:
        """``xs[i] += value``, ``d[key] += value``: what is there becomes another."""
        name = self.collection(target.value, out)
        self.refuse_parameter(name, node)
        if self.shapes.of(target.value) == DICT:
            values = parts_of(name)[1]
            index: ast.expr = self.place_of_key(name, key, node, out)
        else:
            values = name
            index = self.place_in(load(name, node), key, out, "list index out of range")
        read = self.named(at(Element(list=load(values, node), place=index), node), out)
        value = self.calculated(read, node.op, self.value(node.value, out), node, out)
        out.append(at(SetElement(list=load(values, node), place=index, value=value), node))

    def _do_If(self, node: ast.If, out: Statements) -> None:
        test = self.value(node.test, out, truth=True)
        out.append(at(ast.If(test, self.block(node.body), self.block(node.orelse)), node))

    def _do_While(self, node: ast.While, out: Statements) -> None:
        body, otherwise = self._else_of(node, out)
        before: Statements = []
        test = self.value(node.test, before, truth=True)
        if before:
            # What the condition needs is done each time.
            leave = when(negated(test, test), [at(ast.Break(), node)], [], node)
            body, test = [*before, leave, *body], constant(True, node.test)
        out.append(at(ast.While(test, body, []), node))
        out.extend(otherwise)

    def _else_of(self, node: ast.For | ast.While, out: Statements) -> tuple[Statements, Statements]:
        """A loop's body, and what stands behind it for its ``else``."""
        if not node.orelse:
            return self.block(node.body), []
        ended = self.shapes.new("ended")
        out.append(store(ended, constant(True, node), node))
        body = [_Breaks(ended).visit(copy.deepcopy(statement)) for statement in node.body]
        flat = [made for one in body for made in _several(one)]
        otherwise: Statements = [when(load(ended, node), self.block(node.orelse), [], node)]
        # What is assigned before each `break` and in `else` has a value behind the loop.
        names = _assigned(node.orelse)
        for before in _before_breaks(node.body):
            names &= _assigned(before)
        otherwise.extend(at(Declared(name=name), node) for name in sorted(names))
        return self.block(flat), otherwise

    def _do_For(self, node: ast.For, out: Statements) -> None:
        body, otherwise = self._else_of(node, out)
        self.loop_over(node.target, node.iter, body, node, out, _changes(node.body))
        out.extend(otherwise)

    def _do_Return(self, node: ast.Return, out: Statements) -> None:
        value = node.value
        kind = kind_of_record(value, self.records)
        if isinstance(value, Called) and value.gives > 1 and value.record is self.record:
            value = at(ast.Tuple(self.received(value, out), ast.Load()), value)
            out.append(at(ast.Return(value), node))
            return
        if kind is not self.record and kind is not None:
            raise Refused(node, f"a {kind.__name__} as the result", "annotate what it returns")
        if value is not None and kind is not None:
            fields = values_of(value, self.records)
            value = at(ast.Tuple(fields, ast.Load()), node) if len(fields) > 1 else fields[0]
        elif self.record is not None:
            raise Refused(node, f"a result that is no {self.record.__name__}", "return one that has a name")
        if isinstance(value, ast.Tuple):
            value = at(ast.Tuple(self.sequence(value.elts, out), ast.Load()), node)
        elif value is not None:
            shape = self.shapes.of(value)
            if shape in (DICT, SET):
                raise Refused(node, f"a {shape} as the result", "return a list: sorted(...)")
            value = load(self.list_of(value, out), node) if shape == LIST else self.value(value, out)
        out.append(at(ast.Return(value), node))

    def _do_Delete(self, node: ast.Delete, out: Statements) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name) or self.shapes.of(getattr(target, "value", target)) == LIST:
                raise Refused(node, "del of a name, or of a list's element", "make a new list of what is kept")
            if isinstance(target, ast.Subscript) and self.shapes.of(target.value) == DICT:
                key = self.named(self.value(target.slice, out), out)
                self.remove(self.collection(target.value, out), key, node, out)
            else:
                out.append(at(ast.Delete([self.row(target, out)]), node))

    def _do_Raise(self, node: ast.Raise, out: Statements) -> None:
        if node.exc is None or not hasattr(node, "kind"):
            out.append(self._reraised(node))
            return
        arguments = node.exc.args if isinstance(node.exc, ast.Call) else []
        if len(arguments) > 1 or (isinstance(node.exc, ast.Call) and node.exc.keywords):
            raise Refused(node, "an exception of several arguments", "give it one text")
        message = self.value(arguments[0], out) if arguments else at(ast.Constant(""), node)
        # One without a text is another than one with an empty text.
        bare = "" if arguments else BARE
        out.append(at(Raised(kind=bare + node.kind, message=message), node))

    def _do_Assert(self, node: ast.Assert, out: Statements) -> None:
        if sys.flags.optimize:
            # `python -O` leaves them out.
            return
        message = node.msg or at(ast.Constant(""), node)
        fails = at(ast.UnaryOp(ast.Not(), self.value(node.test, out, truth=True)), node)
        inner: Statements = []
        kind = "AssertionError" if node.msg else BARE + "AssertionError"
        raised = at(Raised(kind=kind, message=self.value(message, inner)), node)
        out.append(at(ast.If(fails, [*inner, raised], []), node))

    def _do_Try(self, node: ast.Try, out: Statements) -> None:
        classes = [caught(handler.kinds, self.program.raises) for handler in node.handlers]  # type: ignore[attr-defined]
        for handler, names in zip(node.handlers, classes):
            if {"KeyError", DIVISION} & set(names) and is_told(handler):
                instead = "leave the name out, or take what is not there from the key"
                raise Refused(handler, "the text of a KeyError or a ZeroDivisionError", instead)
        self.catching.append({name for names in classes for name in names})
        body = self.block(node.body)
        self.catching.pop()
        handlers = [self._handler(handler, names) for handler, names in zip(node.handlers, classes)]
        out.append(at(Tried(body=body, handlers=handlers, orelse=self.block(node.orelse)), node))

    def _handler(self, node: ast.ExceptHandler, classes: list[str]) -> Handler:
        handler = at(Handler(classes=classes, name=node.name, body=[], reraised=False), node)
        self.handling.append((handler, node))
        handler.body = self.block(node.body)
        self.handling.pop()
        return handler

    def _reraised(self, node: ast.Raise) -> ast.stmt:
        """``raise``, or ``raise error`` within ``except ... as error``"""
        for depth, (handler, source) in enumerate(reversed(self.handling)):
            if node.exc is None or isinstance(node.exc, ast.Name) and node.exc.id == handler.name:
                inner = (one for one in ast.walk(source) if isinstance(one, ast.ExceptHandler) and one is not source)
                if node.exc is not None and any(one.name == handler.name for one in inner):
                    raise Refused(node, f"{handler.name}, which is another exception's name too", "give it another")
                handler.reraised = True
                return at(Reraised(depth=depth), node)
        what = "raise without an exception" if node.exc is None else "raise of anything but a class of exceptions"
        raise Refused(node, what, 'write raise ValueError("...")')

    def _do_Match(self, node: Any, out: Statements) -> None:
        subject = self.named(self.value(node.subject, out), out)
        rest: Statements = []
        for case in reversed(node.cases):
            test = self._matches(case.pattern, subject)
            if case.guard is not None:
                test = at(ast.BoolOp(ast.And(), [test, case.guard]), case.guard)
            if isinstance(test, ast.Constant) and test.value is True:
                rest = list(case.body)
            else:
                rest = [at(ast.If(test, case.body, rest), case.pattern)]
        out.extend(self.block(rest))

    def _matches(self, pattern: Any, subject: ast.expr) -> ast.expr:
        kind = type(pattern).__name__
        if kind == "MatchValue":
            return at(ast.Compare(subject, [ast.Eq()], [pattern.value]), pattern)
        if kind == "MatchSingleton":
            # Only a `bool` is compared with one.
            same = ast.Is() if pattern.value is None else ast.Eq()
            return at(ast.Compare(subject, [same], [at(ast.Constant(pattern.value), pattern)]), pattern)
        if kind == "MatchOr":
            return at(ast.BoolOp(ast.Or(), [self._matches(one, subject) for one in pattern.patterns]), pattern)
        if kind == "MatchAs" and pattern.pattern is None and pattern.name is None:
            return at(ast.Constant(True), pattern)
        raise Refused(pattern, "this pattern", "match literals and _")


def _are_rows(target: ast.Tuple | ast.List, value: ast.expr) -> bool:
    """Whether it is ``a, b = db.table[key], db.table[other]``, where no key needs a name that is assigned."""
    if not isinstance(value, ast.Tuple) or len(value.elts) != len(target.elts):
        return False
    names = {part.id for part in target.elts if isinstance(part, ast.Name)}
    used = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    return any(map(_is_row, value.elts)) and len(names) == len(target.elts) and not names & used


def _is_row(value: ast.expr) -> bool:
    """Whether it is ``db.table[key]``."""
    return isinstance(value, ast.Subscript) and is_of_database(value.value)


def _assigned(statements: Sequence[ast.stmt]) -> set[str]:
    """Names that statements assign, one after the other."""
    assigned = [target for one in statements if isinstance(one, ast.Assign) for target in one.targets]
    return {target.id for target in assigned if isinstance(target, ast.Name)}


def _before_breaks(statements: Sequence[ast.stmt]) -> list[Sequence[ast.stmt]]:
    """What stands before each ``break`` of a loop, in its block."""
    found: list[Sequence[ast.stmt]] = []
    for number, statement in enumerate(statements):
        if isinstance(statement, ast.Break):
            found.append(statements[:number])
        elif isinstance(statement, ast.If):
            found.extend(_before_breaks(statement.body) + _before_breaks(statement.orelse))
        elif isinstance(statement, (ast.For, ast.While)):
            found.extend(_before_breaks(statement.orelse))
        elif any(isinstance(part, ast.Break) for part in ast.walk(statement)):
            # What stands before it in `match` or `try` is not looked at.
            found.append([])
    return found


#: Methods that change a list, a set or a dictionary, other than by adding at its end.
_CHANGING = frozenset("insert pop remove clear sort reverse discard add update popitem setdefault".split())


def _changes(statements: Sequence[ast.stmt]) -> Changes:
    """What statements do to collections: those that get another one, and those that change in place."""
    rebound: set[str] = set()
    changed: set[str] = set()
    for node in (part for statement in statements for part in ast.walk(statement)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            rebound.add(node.id)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
            changed.add(root(node.func))
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Del):
            changed.add(root(node))
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            changed.add(node.target.id)
    return rebound, changed


class _Breaks(ast.NodeTransformer):
    """Notes that a loop was left before its end."""

    def __init__(self, ended: str) -> None:
        self._ended = ended

    def visit_Break(self, node: ast.Break) -> list[ast.stmt]:
        return [store(self._ended, constant(False, node), node), node]

    def visit_For(self, node: ast.For) -> ast.For:
        # What stands in its `else` leaves the loop around it.
        node.orelse = [made for one in node.orelse for made in _several(self.visit(one))]
        return node

    def visit_While(self, node: ast.While) -> ast.While:
        node.orelse = [made for one in node.orelse for made in _several(self.visit(one))]
        return node


def _several(made: ast.stmt | list[ast.stmt]) -> list[ast.stmt]:
    return made if isinstance(made, list) else [made]
