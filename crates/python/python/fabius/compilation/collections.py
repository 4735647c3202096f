"""Lists, sets and dictionaries: how they are made, gone through, asked and changed.

A dictionary is two lists, of keys and of values; a set is a list in which each element is once.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Callable, Sequence

from .kernel import Append, Called, Declared, Element, Empty, Raised, SetElement, Zero
from .names import (
    DICT,
    LIST,
    ONE,
    OWN,
    SET,
    Renamed,
    Shapes,
    Statements,
    at,
    call,
    compare,
    constant,
    count_of,
    is_call_of,
    is_of_database,
    is_of_rows,
    items_of,
    load,
    loop,
    negated,
    parts_of,
    store,
    stored,
    when,
)
from .ordering import first_of, sorted_by
from .refusal import Refused

__all__ = ["Changes", "Collections"]

#: Names that get another collection in a loop, and those that change there in place.
Changes = tuple[set[str], set[str]]

#: What is done with an element.
Body = Callable[[ast.expr], Statements]


class Collections:
    """What is done with collections. Expressions are the business of whoever is derived from it."""

    def __init__(self, shapes: Shapes, parameters: set[str]) -> None:
        self.shapes = shapes
        self.parameters = parameters
        #: Names of exceptions that are caught here, for each ``try`` around.
        self.catching: list[set[str]] = []

    def value(self, node: ast.expr, out: Statements, truth: bool = False) -> ast.expr:
        """An expression in fewer words; ``out`` gets what is done before."""
        raise NotImplementedError

    def parts_of_call(self, node: ast.Call, out: Statements) -> ast.expr:
        """A call with its arguments in fewer words."""
        raise NotImplementedError

    def add_characters(self, text: ast.expr, grown: Body, out: Statements) -> None:
        """Adds the characters of a text to a list or set."""
        raise NotImplementedError

    def rows_of(self, over: ast.expr, out: Statements) -> ast.expr:
        """Rows of the database in fewer words."""
        raise NotImplementedError

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
        raise NotImplementedError

    def place_in(self, name: ast.expr, index: ast.expr, out: Statements, message: str = "") -> ast.expr:
        """A place in a list, from 0, that is there."""
        raise NotImplementedError

    def divided(self, name: str, node: ast.Call, out: Statements) -> None:
        """Adds the parts of a text to a list."""
        raise NotImplementedError

    def sequence(self, nodes: Sequence[ast.expr], out: Statements) -> list[ast.expr]:
        """Expressions that are computed one after the other."""
        done: list[ast.expr] = []
        for node in nodes:
            before: Statements = []
            value = self.value(node, before)
            if before:
                done = [self.named(one, out) for one in done]
                out.extend(before)
            done.append(value)
        return done

    def named(self, node: ast.expr, out: Statements) -> ast.expr:
        """A value that stays what it is now."""
        is_own = isinstance(node, ast.Name) and " " in node.id and not node.id.endswith(OWN)
        if isinstance(node, ast.Constant) or is_own:
            return node
        name = self.shapes.new("value")
        if isinstance(node, ast.Name) and self.shapes.of(node) == LIST:
            self.shapes.hold(name, LIST)
        out.append(store(name, node, node))
        return load(name, node)

    # How they are found.

    def collection(self, node: ast.expr, out: Statements) -> str:
        """The name of a collection, which it gets if it has none."""
        if isinstance(node, ast.Name):
            return node.id
        shape = self.shapes.of(node)
        name = self.shapes.new(shape)
        self.shapes.hold(name, shape)
        self.collect(name, shape, node, out)
        return name

    def list_of(self, node: ast.expr, out: Statements) -> str:
        """The name of a list with the elements of something."""
        if isinstance(node, ast.Name) and self.shapes.of(node) != ONE:
            return items_of(node.id, self.shapes.of(node))
        if _is_part(node) and self.shapes.of(node.func.value) == DICT:  # type: ignore[attr-defined]
            keys, values = parts_of(self.collection(node.func.value, out))  # type: ignore[attr-defined]
            return keys if node.func.attr == "keys" else values  # type: ignore[attr-defined]
        if isinstance(node, ast.Attribute) and is_of_database(node):
            raise Refused(node, "rows as a collection", "loop over them, or let a statement of SQL sort and count them")
        if self.shapes.of(node) == SET:
            # No element is in it twice.
            return self.collection(node, out)
        if isinstance(node, Called):
            given = self.value(node, out)
            assert isinstance(given, ast.Name)
            self.shapes.hold(given.id, LIST)
            return given.id
        name = self.shapes.new("list")
        self.shapes.hold(name, LIST)
        self.collect(name, LIST, node, out)
        return name

    # How they are made.

    def collect(self, name: str, shape: str, node: ast.expr, out: Statements) -> None:
        """Makes a name a collection of what an expression gives."""
        if _is_empty(node):
            out.extend(store(part, at(Empty(), node), node) for part in (parts_of(name) if shape == DICT else [name]))
            return
        if shape == DICT:
            self._collect_dict(name, node, out)
            return
        # It may be made of what it has been, and stay that where it is not made.
        is_seen = bool(self.catching) or any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node))
        made = self.shapes.new(name.partition(" ")[0]) if is_seen else name
        self.shapes.hold(made, shape)
        out.append(store(made, at(Empty(), node), node))
        is_set = isinstance(node, (ast.Set, ast.SetComp, ast.BinOp)) or is_call_of(node, "set") or _is_copy(node)
        if shape == SET and not is_set:
            self._refuse_other(node, "a set")
        self._add_all(made, shape, node, out)
        if is_seen:
            out.append(store(name, load(made, node), node))

    def _refuse_other(self, node: ast.expr, what: str) -> None:
        if isinstance(node, ast.Name) and self.shapes.of(node) != ONE:
            raise Refused(node, f"a second name for {what}", f"copy it: {node.id}.copy()")
        raise Refused(node, f"{what} of this", "begin with an empty one, and add to it")

    def grown(self, name: str, shape: str, value: ast.expr, place: ast.AST) -> Statements:
        """A list or set with one element more."""
        out: Statements = []
        if shape == SET:
            value = self.named(value, out)
            test = compare(value, ast.NotIn(), load(name, place), place)
            return [*out, when(test, [at(Append(list=load(name, place), value=value), place)], [], place)]
        return [at(Append(list=load(name, place), value=value), place)]

    def _add_all(self, name: str, shape: str, node: ast.expr, out: Statements) -> None:
        """Adds what an expression gives to a list or set."""

        def grown(value: ast.expr) -> Statements:
            return self.grown(name, shape, value, node)

        if shape == LIST and self.shapes.of(node) == SET:
            self.each(load(self.list_of(node, out), node), grown, node, out)
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            for part in node.elts:
                if isinstance(part, ast.Starred):
                    self.each(part.value, grown, part, out)
                else:
                    out.extend(grown(self.value(part, out)))
        elif isinstance(node, ast.SetComp):
            self._generated(node.generators, node.elt, grown, node, out)
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            self.each(node, grown, node, out)
        elif isinstance(node, ast.BinOp):
            self._add_both(name, shape, node, out)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            self._add_part(name, node, out)
        elif isinstance(node, ast.Call):
            self._add_called(name, shape, node, out)
        elif isinstance(node, Called):
            self.each(node, grown, node, out)
        elif isinstance(node, ast.Name):
            if self.shapes.of(node) == ONE:
                # Elements of what is no collection are characters.
                self.add_characters(node, grown, out)
            else:
                self.each(node, grown, node, out)
        else:
            self.add_characters(self.named(self.value(node, out), out), grown, out)

    def _add_called(self, name: str, shape: str, node: ast.Call, out: Statements) -> None:
        function = node.func
        if _is_copy(node):
            self.each(function.value, lambda value: self.grown(name, shape, value, node), node, out)  # type: ignore[attr-defined]
            return
        if _is_part(node) and self.shapes.of(node.func.value) == DICT:  # type: ignore[attr-defined]
            self.each(node, lambda value: self.grown(name, shape, value, node), node, out)
            return
        if isinstance(function, ast.Attribute) and function.attr == "split" and self.shapes.of(function.value) == ONE:
            self.divided(name, node, out)
            return
        called = function.id if isinstance(function, ast.Name) else ""
        if called in ("list", "set") and not node.args:
            return
        if called in ("list", "set", "range", "reversed") and not node.keywords:
            over = node if called in ("range", "reversed") else node.args[0]
            if is_of_rows(over):
                raise Refused(node, "rows in a list", "take their columns: [row.id for row in ...]")
            if called != "range" and len(node.args) != 1:
                raise Refused(node, f"{called} of several arguments", "give it one")
            place: list[ast.expr] = []
            self.loop_over(self._element(place, node), over, self.grown(name, shape, place[0], node), node, out)
            return
        if called == "sorted" and len(node.args) == 1:
            self._add_sorted(name, node, out)
            return
        raise Refused(node, "a collection of this", "begin with an empty one, and add to it in a loop")

    def _element(self, seen: list[ast.expr], place: ast.AST) -> ast.Name:
        """A name for the elements of a loop, as target; as value it is put into a list."""
        name = self.shapes.new("element")
        seen.append(load(name, place))
        return stored(name, place)

    def _add_sorted(self, name: str, node: ast.Call, out: Statements) -> None:
        options = {str(keyword.arg): keyword.value for keyword in node.keywords}
        reverse = options.pop("reverse", constant(False, node))
        key = options.pop("key", None)
        if options or not isinstance(reverse, ast.Constant):
            raise Refused(node, "sorted of this form", "write sorted(xs, key=lambda x: ..., reverse=True)")
        if key is not None:
            values = self.list_of(node.args[0], out)
            sorted_by(name, values, key, bool(reverse.value), self, node, out)
            return
        seen: list[ast.expr] = []
        element = self._element(seen, node)
        over = call("sorted", [load(self.list_of(node.args[0], out), node), constant(bool(reverse.value), node)], node)
        out.append(loop(element, over, self.grown(name, LIST, seen[0], node), node))

    def _add_both(self, name: str, shape: str, node: ast.BinOp, out: Statements) -> None:
        """``xs + ys``, ``[x] * n``, ``a | b``, ``a & b``, ``a - b``"""

        def grown(value: ast.expr) -> Statements:
            return self.grown(name, shape, value, node)

        if shape == LIST and isinstance(node.op, ast.Mult):
            values = load(self.list_of(node.left, out), node)
            times = self.named(self.value(node.right, out), out)
            inner: Statements = []
            self.each(values, grown, node, inner)
            out.append(loop(stored(self.shapes.new("time"), node), call("range", [times], node), inner, node))
        elif isinstance(node.op, ast.Add if shape == LIST else ast.BitOr):
            left, right = self.list_of(node.left, out), self.list_of(node.right, out)
            self.each(load(left, node), grown, node, out)
            self.each(load(right, node), grown, node, out)
        elif shape == SET and isinstance(node.op, (ast.BitAnd, ast.Sub)):
            left, right = self.list_of(node.left, out), self.list_of(node.right, out)
            wanted = ast.In() if isinstance(node.op, ast.BitAnd) else ast.NotIn()

            def body(value: ast.expr) -> Statements:
                return [when(compare(value, wanted, load(right, node), node), grown(value), [], node)]

            self.each(load(left, node), body, node, out)
        else:
            raise Refused(node, f"this operator on a {shape}", "write a loop")

    def _add_part(self, name: str, node: ast.Subscript, out: Statements) -> None:
        """``xs[a:b]``"""
        assert isinstance(node.slice, ast.Slice)
        if node.slice.step is not None:
            raise Refused(node, "a slice with a step", "take its elements in a loop")
        values = self.list_of(node.value, out)
        bounds: list[ast.expr] = []
        for bound, usual in ((node.slice.lower, constant(0, node)), (node.slice.upper, count_of(values, node))):
            if bound is None:
                bounds.append(usual)
                continue
            given = self.named(self.value(bound, out), out)
            from_end = at(ast.BinOp(given, ast.Add(), count_of(values, node)), node)
            positive = at(ast.IfExp(compare(given, ast.Lt(), constant(0, node), node), from_end, given), node)
            within = call("max", [positive, constant(0, node)], node)
            bounds.append(call("min", [within, count_of(values, node)], node))
        number = self.shapes.new("place")
        element = at(Element(list=load(values, node), place=load(number, node)), node)
        out.append(loop(stored(number, node), call("range", bounds, node), self.grown(name, LIST, element, node), node))

    def _collect_dict(self, name: str, node: ast.expr, out: Statements) -> None:
        made = self.shapes.new(name.partition(" ")[0])
        self.shapes.hold(made, DICT)
        for part in parts_of(made):
            out.append(store(part, at(Empty(), node), node))
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values):
                if key is None:
                    raise Refused(node, "a dictionary in another (**)", "put its values one by one")
                one, other = self.sequence([key, value], out)
                self.put(made, one, other, node, out)
        elif isinstance(node, ast.DictComp):

            def body(pair: ast.expr) -> Statements:
                assert isinstance(pair, ast.Tuple)
                inner: Statements = []
                key, value = self.sequence(pair.elts, inner)
                self.put(made, key, value, node, inner)
                return inner

            pair = at(ast.Tuple([node.key, node.value], ast.Load()), node)
            self._generated(node.generators, pair, body, node, out)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "copy":
            self._put_all(made, self.collection(node.func.value, out), node, out)
        elif is_call_of(node, "dict") and isinstance(node, ast.Call) and len(node.args) <= 1:
            if node.args:
                if self.shapes.of(node.args[0]) != DICT:
                    raise Refused(node, "a dictionary of this", "write {key: value for ...}")
                self._put_all(made, self.collection(node.args[0], out), node, out)
            for keyword in node.keywords:
                value = self.value(keyword.value, out)
                self.put(made, constant(keyword.arg, node), value, node, out)
        else:
            self._refuse_other(node, "a dictionary")
        for list_of_name, list_of_made in zip(parts_of(name), parts_of(made)):
            out.append(store(list_of_name, load(list_of_made, node), node))

    def _put_all(self, name: str, other: str, place: ast.AST, out: Statements) -> None:
        keys, values = parts_of(other)
        number = self.shapes.new("place")
        inner: Statements = []
        key, value = (at(Element(list=load(part, place), place=load(number, place)), place) for part in (keys, values))
        self.put(name, self.named(key, inner), value, place, inner)
        out.append(loop(stored(number, place), call("range", [count_of(keys, place)], place), inner, place))

    def each(self, over: ast.expr, body: Body, place: ast.AST, out: Statements) -> None:
        """Does something with each element of something, without a list of them where that can be."""
        if isinstance(over, (ast.GeneratorExp, ast.ListComp)):
            self._generated(over.generators, over.elt, body, place, out)
            return
        seen: list[ast.expr] = []
        element = self._element(seen, place)
        name = self.list_of(over, out)
        out.append(loop(element, load(name, place), body(seen[0]), place))

    def _generated(
        self,
        generators: Sequence[ast.comprehension],
        element: ast.expr,
        body: Body,
        place: ast.AST,
        out: Statements,
    ) -> None:
        """The loops of a comprehension."""
        names = {
            name.id: self.shapes.new(name.id)
            for generator in generators
            for name in ast.walk(generator.target)
            if isinstance(name, ast.Name)
        }

        def renamed(node: ast.expr) -> ast.expr:
            made: ast.expr = Renamed(names).visit(copy.deepcopy(node))
            return made

        def nested(rest: Sequence[ast.comprehension]) -> Statements:
            if not rest:
                before: Statements = []
                value = self.value(renamed(element), before)
                return [*before, *body(value)]
            inner = nested(rest[1:])
            for test in reversed(rest[0].ifs):
                before = []
                condition = self.value(renamed(test), before, truth=True)
                inner = [*before, when(condition, inner, [], place)]
            made: Statements = []
            # The first is what it is outside.
            over = rest[0].iter if rest is generators else renamed(rest[0].iter)
            self.loop_over(renamed(rest[0].target), over, inner, place, made)
            return made

        if any(generator.is_async for generator in generators):
            raise Refused(place, "async", "write a plain function")
        out.extend(nested(generators))

    # How they are asked.

    def _find(self, name: str, value: ast.expr, place: ast.AST, out: Statements) -> str:
        """The place of a value in a list, from 0; -1 if it is not in it."""
        found, number = self.shapes.new("found"), self.shapes.new("place")
        minus = at(ast.UnaryOp(ast.USub(), constant(1, place)), place)
        out.append(store(found, minus, place))
        element = at(Element(list=load(name, place), place=load(number, place)), place)
        ends: Statements = [store(found, load(number, place), place), at(ast.Break(), place)]
        body: Statements = [when(compare(element, ast.Eq(), value, place), ends, [], place)]
        out.append(loop(stored(number, place), call("range", [count_of(name, place)], place), body, place))
        return found

    def got(self, name: str, key: ast.expr, otherwise: ast.expr | None, place: ast.AST, out: Statements) -> ast.expr:
        """``d[key]``, or ``d.get(key, otherwise)``"""
        keys, values = parts_of(name)
        key = self.named(self.value(key, out), out)
        if otherwise is None:
            index = self.place_of_key(name, key, place, out)
            return at(Element(list=load(values, place), place=index), place)
        result = self.shapes.new("value")
        instead = self.named(self.value(otherwise, out), out)
        found = self._find(keys, key, place, out)
        is_missing = compare(load(found, place), ast.Lt(), constant(0, place), place)
        element = at(Element(list=load(values, place), place=load(found, place)), place)
        out.append(
            when(is_missing, [store(result, instead, place)], [store(result, element, place)], place),
        )
        return load(result, place)

    def place_of_key(self, name: str, key: ast.expr, place: ast.AST, out: Statements) -> ast.Name:
        """The place of a key that is there."""
        key = self.named(key, out)
        found = self._find(parts_of(name)[0], key, place, out)
        is_missing = compare(load(found, place), ast.Lt(), constant(0, place), place)
        out.append(when(is_missing, [at(Raised(kind="KeyError", message=key), place)], [], place))
        return load(found, place)

    def any_of(self, is_any: bool, over: ast.expr, place: ast.AST, out: Statements) -> ast.expr:
        """``any`` and ``all``"""
        if isinstance(over, (ast.GeneratorExp, ast.ListComp)) and len(over.generators) > 1:
            raise Refused(place, "any or all over several loops", "write the loops out")
        found = self.shapes.new("found")
        out.append(store(found, constant(not is_any, place), place))

        def body(value: ast.expr) -> Statements:
            test = value if is_any else negated(value, place)
            return [when(test, [store(found, constant(is_any, place), place), at(ast.Break(), place)], [], place)]

        self.each(over, body, place, out)
        return load(found, place)

    def reduced(self, name: str, node: ast.Call, out: Statements) -> ast.expr:
        """``sum``, ``min`` and ``max`` of elements."""
        options = {str(keyword.arg): keyword.value for keyword in node.keywords}
        total = self.shapes.new(name)
        if name == "sum":
            start = node.args[1] if len(node.args) > 1 else options.pop("start", None)
            out.append(store(total, at(Zero(), node) if start is None else self.value(start, out), node))
            self.each(
                node.args[0],
                lambda value: [at(ast.AugAssign(stored(total, node), ast.Add(), value), node)],
                node,
                out,
            )
            return load(total, node)
        if options.keys() - {"default", "key"} or len(node.args) > 1:
            raise Refused(node, f"{name} of this form", f"write {name}(xs, key=lambda x: ..., default=value)")
        is_first = self.shapes.new("first")
        over, default = node.args[0], options.get("default")
        if default is not None:
            # It is computed whether it is needed or not.
            over = over if isinstance(over, ast.GeneratorExp) else load(self.list_of(over, out), node)
            default = self.named(self.value(default, out), out)
        out.append(at(Declared(name=total), node))
        out.append(store(is_first, constant(True, node), node))
        better = ast.Lt() if name == "min" else ast.Gt()
        best: list[str] = []

        def body(value: ast.expr) -> Statements:
            if "key" in options:
                return first_of(name, options["key"], total, best, self, value, is_first)
            before: Statements = []
            value = self.named(value, before)
            other = when(compare(value, better, load(total, node), node), [store(total, value, node)], [], node)
            begin: Statements = [store(total, value, node), store(is_first, constant(False, node), node)]
            return [*before, when(load(is_first, node), begin, [other], node)]

        loops: Statements = []
        self.each(over, body, node, loops)
        out.extend(at(Declared(name=one), node) for one in best)
        out.extend(loops)
        empty: Statements = []
        if default is not None:
            empty.append(store(total, default, node))
        else:
            what = "iterable argument is empty" if sys.version_info >= (3, 12) else "arg is an empty sequence"
            message = constant(f"{name}() {what}", node)
            empty.append(at(Raised(kind="ValueError", message=message), node))
        out.append(when(load(is_first, node), empty, [], node))
        return load(total, node)

    def joined(self, node: ast.Call, out: Statements) -> ast.expr:
        """``separator.join(texts)``"""
        assert isinstance(node.func, ast.Attribute)
        separator = self.named(self.value(node.func.value, out), out)
        text, is_first = self.shapes.new("text"), self.shapes.new("first")
        out.append(store(text, constant("", node), node))
        out.append(store(is_first, constant(True, node), node))

        def body(value: ast.expr) -> Statements:
            def added(part: ast.expr) -> ast.stmt:
                return at(ast.AugAssign(stored(text, node), ast.Add(), part), node)

            begin: Statements = [store(is_first, constant(False, node), node)]
            return [when(load(is_first, node), begin, [added(separator)], node), added(value)]

        self.each(node.args[0], body, node, out)
        return load(text, node)

    def asked(self, shape: str, node: ast.Call, out: Statements) -> ast.expr:
        """``xs.pop()``, ``xs.pop(i)``, ``d.pop(key)``, ``xs.count(x)``, ``xs.index(x)``"""
        assert isinstance(node.func, ast.Attribute)
        name, what = self.collection(node.func.value, out), node.func.attr
        if shape == DICT and what == "pop" and len(node.args) == 1:
            key = self.named(self.value(node.args[0], out), out)
            value = self.named(self.got(name, key, None, node, out), out)
            self.remove(name, key, node, out)
            return value
        if shape == LIST and what == "pop" and len(node.args) <= 1:
            self.refuse_parameter(name, node)
            at_index = self.named(self.value(node.args[0], out), out) if node.args else None
            message = constant("pop from empty list", node)
            is_empty = compare(count_of(name, node), ast.Eq(), constant(0, node), node)
            out.append(when(is_empty, [at(Raised(kind="IndexError", message=message), node)], [], node))
            last: ast.expr = at(ast.BinOp(count_of(name, node), ast.Sub(), constant(1, node)), node)
            if at_index is not None:
                last = self.place_in(load(name, node), at_index, out, "pop index out of range")
            place = self.named(last, out)
            value = self.named(at(Element(list=load(name, node), place=place), node), out)
            self._replace(name, place, [], place, node, out)
            return value
        if shape == LIST and what in ("count", "index") and len(node.args) == 1:
            value = self.named(self.value(node.args[0], out), out)
            if what == "index":
                index = self._find(name, value, node, out)
                raised = at(Raised(kind="ValueError", message=_not_in_list(value, node)), node)
                is_missing = compare(load(index, node), ast.Lt(), constant(0, node), node)
                out.append(when(is_missing, [raised], [], node))
                return load(index, node)
            total = self.shapes.new("count")
            out.append(store(total, constant(0, node), node))

            def body(element: ast.expr) -> Statements:
                more: Statements = [at(ast.AugAssign(stored(total, node), ast.Add(), constant(1, node)), node)]
                return [when(compare(element, ast.Eq(), value, node), more, [], node)]

            self.each(load(name, node), body, node, out)
            return load(total, node)
        raise Refused(node, f"{what} of a {shape} in this form", "write a loop")

    # How they change.

    def _replace(
        self, name: str, place: ast.expr, new: list[ast.expr], gone: ast.expr | None, node: ast.AST, out: Statements
    ) -> None:
        """``xs[place:place] = new``, without the element at ``gone``, which is that at ``place``."""
        behind = place if gone is None else at(ast.BinOp(gone, ast.Add(), constant(1, node)), node)
        before: ast.expr
        before, after = (
            at(ast.Subscript(load(name, node), at(part, node), ast.Load()), node)
            for part in (ast.Slice(None, place, None), ast.Slice(behind, None, None))
        )
        if new:
            before = at(ast.BinOp(before, ast.Add(), at(ast.List(new, ast.Load()), node)), node)
        self.collect(name, LIST, at(ast.BinOp(before, ast.Add(), after), node), out)

    def refuse_parameter(self, name: str, place: ast.AST) -> None:
        """What callers gave is theirs."""
        if name in self.parameters:
            name = name.removesuffix(OWN)
            raise Refused(place, f"a change of {name}, which its caller has", f"copy it: own = list({name})")

    def put(self, name: str, key: ast.expr, value: ast.expr, place: ast.AST, out: Statements) -> None:
        """``d[key] = value``"""
        keys, values = parts_of(name)
        value = self.named(value, out)
        key = self.named(key, out)
        found = self._find(keys, key, place, out)
        new: Statements = [
            at(Append(list=load(keys, place), value=key), place),
            at(Append(list=load(values, place), value=value), place),
        ]
        old: Statements = [at(SetElement(list=load(values, place), place=load(found, place), value=value), place)]
        out.append(when(compare(load(found, place), ast.Lt(), constant(0, place), place), new, old, place))

    def remove(self, name: str, key: ast.expr, place: ast.AST, out: Statements) -> None:
        """``del d[key]``"""
        keys, values = parts_of(name)
        self.got(name, key, None, place, out)
        kept, others = parts_of(self.shapes.new("kept"))
        out.extend(store(part, at(Empty(), place), place) for part in (kept, others))
        number = self.shapes.new("place")

        def element(part: str) -> ast.expr:
            return at(Element(list=load(part, place), place=load(number, place)), place)

        keep: Statements = [
            at(Append(list=load(kept, place), value=element(keys)), place),
            at(Append(list=load(others, place), value=element(values)), place),
        ]
        body: Statements = [when(compare(element(keys), ast.NotEq(), key, place), keep, [], place)]
        out.append(loop(stored(number, place), call("range", [count_of(keys, place)], place), body, place))
        out.append(store(keys, load(kept, place), place))
        out.append(store(values, load(others, place), place))

    def extend(self, name: str, shape: str, over: ast.expr, place: ast.AST, out: Statements) -> None:
        """``xs += ys``, ``s |= t``"""
        if isinstance(over, ast.Name) and over.id == name:
            raise Refused(place, f"{name} as its own part", "make a new list")
        self.each(over, lambda value: self.grown(name, shape, value, place), place, out)

    def change(self, shape: str, node: ast.Call, out: Statements) -> None:
        """A method of a collection that stands by itself."""
        assert isinstance(node.func, ast.Attribute)
        what, arguments = node.func.attr, node.args
        name = self.collection(node.func.value, out)
        self.refuse_parameter(name, node)
        if what in ("append", "add") and len(arguments) == 1 and shape == (LIST if what == "append" else SET):
            out.extend(self.grown(name, shape, self.value(arguments[0], out), node))
        elif what in ("extend", "update") and len(arguments) == 1 and shape != DICT:
            self.extend(name, shape, arguments[0], node, out)
        elif what == "update" and shape == DICT and len(arguments) == 1 and self.shapes.of(arguments[0]) == DICT:
            self._put_all(name, self.collection(arguments[0], out), node, out)
        elif what == "clear" and not arguments:
            lists = parts_of(name) if shape == DICT else (name,)
            out.extend(store(part, at(Empty(), node), node) for part in lists)
        elif what in ("discard", "remove") and shape == SET and len(arguments) == 1:
            value = self.named(self.value(arguments[0], out), out)
            if what == "remove":
                is_missing = compare(value, ast.NotIn(), load(name, node), node)
                out.append(when(is_missing, [at(Raised(kind="KeyError", message=value), node)], [], node))
            alone = at(ast.Set([value]), node)
            self.collect(name, SET, at(ast.BinOp(load(name, node), ast.Sub(), alone), node), out)
        elif what == "sort" and shape == LIST and not arguments:
            names = [part for keyword in node.keywords for part in ast.walk(keyword) if isinstance(part, ast.Name)]
            if any(part.id == name for part in names):
                raise Refused(node, f"a key that asks {name}, which is being sorted", f"{name} = sorted({name}, ...)")
            self.collect(name, LIST, at(ast.Call(load("sorted", node), [load(name, node)], node.keywords), node), out)
        elif what == "reverse" and shape == LIST and not arguments:
            self.collect(name, LIST, call("reversed", [load(name, node)], node), out)
        elif what == "insert" and shape == LIST and len(arguments) == 2:
            place, value = (self.named(one, out) for one in self.sequence(arguments, out))
            self._replace(name, place, [value], None, node, out)
        elif what == "remove" and shape == LIST and len(arguments) == 1:
            found = load(self._find(name, self.named(self.value(arguments[0], out), out), node, out), node)
            raised = at(Raised(kind="ValueError", message=constant("list.remove(x): x not in list", node)), node)
            out.append(when(compare(found, ast.Lt(), constant(0, node), node), [raised], [], node))
            self._replace(name, found, [], found, node, out)
        elif what == "pop":
            self.asked(shape, node, out)
        else:
            raise Refused(node, f"{what} of a {shape} in this form", "make a new one in a loop")


def _is_empty(node: ast.expr) -> bool:
    """Whether it is written as a collection without elements."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("list", "set", "dict") and not node.args and not node.keywords
    return isinstance(node, (ast.List, ast.Dict)) and not getattr(node, "elts", getattr(node, "keys", None))


def _is_copy(node: ast.expr) -> bool:
    """Whether it is ``collection.copy()``."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "copy"


def _is_part(node: ast.expr) -> bool:
    """Whether it is ``d.keys()`` or ``d.values()``."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("keys", "values")
        and not node.args
    )


def _not_in_list(value: ast.expr, place: ast.AST) -> ast.expr:
    """What Python says of a value that is not in a list."""
    if sys.version_info >= (3, 14):
        return constant("list.index(x): x not in list", place)
    shown = at(ast.FormattedValue(call("repr", [value], place), -1, None), place)
    return at(ast.JoinedStr([shown, constant(" is not in list", place)]), place)
