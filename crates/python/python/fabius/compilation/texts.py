"""Texts that are taken apart, and what f-strings write."""

from __future__ import annotations

import ast
import datetime
import re

from .collections import Body
from .kernel import Raised
from .loops import Loops
from .moments import MOMENTS, checks, days_of, micros_of_time, parts_of_moment
from .names import LIST, ONE, Statements, at, attribute, call, compare, constant, load, loop, store, stored, when
from .refusal import Refused

__all__ = ["Texts"]

#: White space, at which `split` without a separator parts.
_WHITE = "".join(character for character in map(chr, range(0x3001)) if character.isspace())

#: A format of `strftime`; one of a number ends with its only `%`.
_OF_MOMENT = re.compile(r"%.")


class Texts(Loops):
    """What is done with texts. Other expressions are the business of whoever is derived from it."""

    def method(self, owner: ast.expr, name: str, arguments: list[ast.expr], place: ast.AST) -> ast.Call:
        """``owner.name(arguments)``"""
        return at(ast.Call(attribute(owner, name, place), arguments, []), place)

    def _separator(self, node: ast.expr, out: Statements) -> ast.expr:
        """What a text is parted at: it is not empty."""
        separator = self.named(self.value(node, out), out)
        if not (isinstance(separator, ast.Constant) and separator.value):
            raised = at(Raised(kind="ValueError", message=constant("empty separator", node)), node)
            out.append(when(compare(separator, ast.Eq(), constant("", node), node), [raised], [], node))
        return separator

    def _behind(self, text: ast.expr, found: ast.expr, separator: ast.expr, place: ast.AST) -> ast.expr:
        """What stands behind a separator."""
        begin = at(ast.BinOp(found, ast.Add(), call("len", [separator], place)), place)
        return self.method(text, "[:]", [begin, constant(None, place)], place)

    def divided(self, name: str, node: ast.Call, out: Statements) -> None:
        """Adds the parts of ``text.split(separator, maxsplit)`` to a list."""
        assert isinstance(node.func, ast.Attribute)
        options = dict(zip(("sep", "maxsplit"), node.args)) | {str(one.arg): one.value for one in node.keywords}
        if options.keys() - {"sep", "maxsplit"} or len(node.args) > 2:
            raise Refused(node, "split of this form", "write text.split(separator)")
        text = self.named(self.value(node.func.value, out), out)
        given = options.get("sep")
        if given is None or (isinstance(given, ast.Constant) and given.value is None):
            if "maxsplit" in options:
                raise Refused(node, "split at white space, so many times", "give it a separator")
            self._add_words(name, text, node, out)
            return
        separator = self._separator(given, out)
        most = self.named(self.value(options["maxsplit"], out), out) if "maxsplit" in options else None
        rest, found, turns = (self.shapes.new(what) for what in ("rest", "found", "turns"))
        out.append(store(rest, text, node))
        begin: Statements = []
        if most is not None:
            out.append(store(turns, constant(0, node), node))
            bounds: list[ast.expr] = [
                compare(most, ast.GtE(), constant(0, node), node),
                compare(load(turns, node), ast.GtE(), most, node),
            ]
            begin.append(when(at(ast.BoolOp(ast.And(), bounds), node), [at(ast.Break(), node)], [], node))
            begin.append(store(turns, at(ast.BinOp(load(turns, node), ast.Add(), constant(1, node)), node), node))
        is_last = compare(load(found, node), ast.Lt(), constant(0, node), node)
        part = self.method(load(rest, node), "[:]", [constant(None, node), load(found, node)], node)
        body: Statements = [
            *begin,
            store(found, self.method(load(rest, node), "find", [separator], node), node),
            when(is_last, [at(ast.Break(), node)], [], node),
            *self.grown(name, LIST, part, node),
            store(rest, self._behind(load(rest, node), load(found, node), separator, node), node),
        ]
        out.append(at(ast.While(constant(True, node), body, []), node))
        out.extend(self.grown(name, LIST, load(rest, node), node))

    def _add_words(self, name: str, text: ast.expr, place: ast.AST, out: Statements) -> None:
        """``text.split()``"""
        word, number = self.shapes.new("word"), self.shapes.new("place")
        out.append(store(word, constant("", place), place))
        behind = at(ast.BinOp(load(number, place), ast.Add(), constant(1, place)), place)
        one = self.shapes.new("character")
        longer = store(word, at(ast.BinOp(load(word, place), ast.Add(), load(one, place)), place), place)
        is_white = compare(load(one, place), ast.In(), constant(_WHITE, place), place)

        def ended() -> ast.stmt:
            is_word = compare(load(word, place), ast.NotEq(), constant("", place), place)
            return when(is_word, self.grown(name, LIST, load(word, place), place), [], place)

        body: Statements = [
            store(one, self.method(text, "[:]", [load(number, place), behind], place), place),
            when(is_white, [ended(), store(word, constant("", place), place)], [longer], place),
        ]
        out.append(loop(stored(number, place), call("range", [call("len", [text], place)], place), body, place))
        out.append(ended())

    def add_characters(self, text: ast.expr, grown: Body, out: Statements) -> None:
        """Adds the characters of a text to a list or set."""
        number = self.shapes.new("place")
        behind = at(ast.BinOp(load(number, text), ast.Add(), constant(1, text)), text)
        part = at(ast.Attribute(text, "[:]", ast.Load()), text)
        one = at(ast.Call(part, [load(number, text), behind], []), text)
        numbers = call("range", [call("len", [text], text)], text)
        out.append(loop(stored(number, text), numbers, grown(one), text))

    def parted(self, node: ast.Call, out: Statements) -> list[ast.expr]:
        """The three parts of ``text.partition(separator)`` and ``text.rpartition(separator)``."""
        assert isinstance(node.func, ast.Attribute)
        if len(node.args) != 1 or node.keywords:
            raise Refused(node, f"{node.func.attr} of this form", f"write text.{node.func.attr}(separator)")
        is_first = node.func.attr == "partition"
        text = self.named(self.value(node.func.value, out), out)
        separator = self._separator(node.args[0], out)
        found = self.named(self.method(text, "find" if is_first else "rfind", [separator], node), out)
        empty = constant("", node)
        parts = [self.shapes.new("part") for _ in range(3)]
        there = [
            self.method(text, "[:]", [constant(None, node), found], node),
            separator,
            self._behind(text, found, separator, node),
        ]
        missing = [text, empty, empty] if is_first else [empty, empty, text]
        out.append(
            when(
                compare(found, ast.Lt(), constant(0, node), node),
                [store(name, part, node) for name, part in zip(parts, missing)],
                [store(name, part, node) for name, part in zip(parts, there)],
                node,
            )
        )
        return [load(name, node) for name in parts]

    def place_in_text(self, node: ast.Call, out: Statements) -> ast.expr:
        """``text.index(part)``, ``text.rindex(part)``"""
        assert isinstance(node.func, ast.Attribute)
        name = "find" if node.func.attr == "index" else "rfind"
        found = self.named(self.parts_of_call(self.method(node.func.value, name, node.args, node), out), out)
        raised = at(Raised(kind="ValueError", message=constant("substring not found", node)), node)
        out.append(when(compare(found, ast.Lt(), constant(0, node), node), [raised], [], node))
        return found

    def moment_of_parts(self, node: ast.Call, out: Statements) -> ast.expr:
        """``date(year=y, month=m, day=d)`` and its like, and ``moment.replace(day=d)``: a ``ValueError`` before what it
        is needed for if there is no such moment."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        done = [self.named(one, out) for one in self.sequence([*owner, *(one.value for one in node.keywords)], out)]
        moment = done.pop(0) if owner else None
        given = {str(part.arg): value for part, value in zip(node.keywords, done)}

        def parts(names: tuple[str, ...], kinds: tuple[str, ...]) -> dict[str, ast.expr]:
            if name not in kinds and not (moment is not None and given.keys() & set(names)):
                return {}
            own = [attribute(moment, one, node) if moment is not None else constant(0, node) for one in names]
            return {one: given.get(one) or self.named(other, out) for one, other in zip(names, own)}

        # As Python does, these are looked at as numbers of 32 bits before they are looked at as parts.
        given = {part: self._small(value, out) for part, value in given.items()}
        date = parts(MOMENTS[datetime.date], ("date of parts", "datetime of parts"))
        time = parts(MOMENTS[datetime.time], ("time of parts", "datetime of parts"))
        for is_wrong, message in checks(date | time, node):
            inner: Statements = []
            raised = at(Raised(kind="ValueError", message=self.value(message, inner)), node)
            out.append(when(self.value(is_wrong, out, truth=True), [*inner, raised], [], node))
        made = [moment] if moment is not None else []
        if date:
            days = self.named(self.value(days_of(date, node), out), out)
            made = [call("date replaced" if made else "date of", [*made, days], node)]
        if time:
            micros = self.named(self.value(micros_of_time(time, node), out), out)
            function = "time replaced" if moment is not None else "datetime of" if date else "time of"
            made = [call(function, [*made, micros], node)]
        return made[0]

    def _small(self, value: ast.expr, out: Statements) -> ast.expr:
        """An `int` of 32 bits; others end the transaction."""
        is_literal = isinstance(value, ast.Constant) and type(value.value) is int and 0 <= value.value < 2**31
        return value if is_literal else self.named(call("part of", [value], value), out)

    def moment_as_text(self, moment: ast.expr, text: ast.expr, place: ast.AST, out: Statements) -> ast.expr:
        """``moment.strftime(text)``"""
        if not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
            raise Refused(place, "a format that is computed", "write it out")
        return at(ast.JoinedStr(parts_of_moment(self.named(moment, out), text.value, place)), place)

    def _value_JoinedStr(self, node: ast.JoinedStr, out: Statements) -> ast.expr:
        parts: list[ast.expr] = []
        values = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
        done = self.sequence(values, out)
        # What a part needs done first is done behind the values before it, which stay what they are.
        for part, value in zip(node.values, done):
            if isinstance(part, ast.FormattedValue):
                parts.extend(self._formatted(part, value, out))
            else:
                parts.append(value)
        return at(ast.JoinedStr(parts), node)

    def _formatted(self, part: ast.FormattedValue, value: ast.expr, out: Statements) -> list[ast.expr]:
        """What an f-string writes for a value."""
        if part.conversion == ord("a"):
            raise Refused(part, "!a in an f-string", "write !r, or nothing")
        if part.conversion != -1:
            value = call("str" if part.conversion == ord("s") else "repr", [value], part)
        text = _format_of(part)
        if not text:
            return [at(ast.FormattedValue(value, -1, None), part)]
        if _OF_MOMENT.search(text):
            return parts_of_moment(self.named(value, out), text, part)
        return [at(ast.FormattedValue(call("format", [value, constant(text, part)], part), -1, None), part)]


def _format_of(part: ast.FormattedValue) -> str:
    """The format behind the colon."""
    if part.format_spec is None:
        return ""
    assert isinstance(part.format_spec, ast.JoinedStr)
    texts = [one.value for one in part.format_spec.values if isinstance(one, ast.Constant)]
    if len(texts) != len(part.format_spec.values):
        raise Refused(part, "a format that is computed", "write it out")
    return "".join(map(str, texts))


def is_of_text(node: ast.expr, shape: str, names: tuple[str, ...]) -> bool:
    """Whether it calls one of these methods of what is no collection."""
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names and shape == ONE
    )
