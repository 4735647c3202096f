"""What names hold, and how nodes are made."""

from __future__ import annotations

import ast
from typing import Any, TypeVar

from .kernel import Called

__all__ = ["DICT", "LIST", "ONE", "OWN", "SET", "Renamed", "Shapes", "Statements", "is_call_of_row"]

#: What a name holds.
LIST, DICT, SET, ONE = "list", "dict", "set", "one"

#: What the own copy of a list ends with that is a parameter, and is assigned.
OWN = " own"

Statements = list[ast.stmt]

N = TypeVar("N", bound=ast.AST)


def at(node: N, place: ast.AST) -> N:
    """A node that stands where another does."""
    return ast.copy_location(node, place)


def load(name: str, place: ast.AST) -> ast.Name:
    """A name as a value."""
    return at(ast.Name(name, ast.Load()), place)


def stored(name: str, place: ast.AST) -> ast.Name:
    """A name as what is assigned to."""
    return at(ast.Name(name, ast.Store()), place)


def store(name: str, value: ast.expr, place: ast.AST) -> ast.Assign:
    """``name = value``"""
    return at(ast.Assign([stored(name, place)], value), place)


def constant(value: Any, place: ast.AST) -> ast.Constant:
    """A literal."""
    return at(ast.Constant(value), place)


def call(function: str, arguments: list[ast.expr], place: ast.AST) -> ast.Call:
    """A call of a function of Python."""
    return at(ast.Call(load(function, place), arguments, []), place)


def attribute(owner: ast.expr, name: str, place: ast.AST) -> ast.Attribute:
    """``owner.name``"""
    return at(ast.Attribute(owner, name, ast.Load()), place)


def count_of(name: str, place: ast.AST) -> ast.Call:
    """How many elements a list has."""
    return call("len", [load(name, place)], place)


def compare(left: ast.expr, operator: ast.cmpop, right: ast.expr, place: ast.AST) -> ast.Compare:
    """``left < right``"""
    return at(ast.Compare(left, [operator], [right]), place)


def negated(value: ast.expr, place: ast.AST) -> ast.UnaryOp:
    """``not value``"""
    return at(ast.UnaryOp(ast.Not(), value), place)


def when(test: ast.expr, then: Statements, otherwise: Statements, place: ast.AST) -> ast.If:
    """``if test: then``"""
    return at(ast.If(test, then, otherwise), place)


def loop(variable: ast.expr, over: ast.expr, body: Statements, place: ast.AST) -> ast.For:
    """``for variable in over: body``"""
    return at(ast.For(variable, over, body, []), place)


def copied(name: str, place: ast.AST) -> ast.expr:
    """``name.copy()``"""
    return at(ast.Call(at(ast.Attribute(load(name, place), "copy", ast.Load()), place), [], []), place)


def root(node: ast.AST) -> str:
    """The name that a chain of attributes, elements and calls begins with."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def parts_of(name: str) -> tuple[str, str]:
    """The lists of a dictionary's keys and values."""
    return f"{name} keys", f"{name} values"


def items_of(name: str, shape: str) -> str:
    """The list of what a loop over a collection gives."""
    return parts_of(name)[0] if shape == DICT else name


def is_call_of(node: ast.expr, function: str) -> bool:
    """Whether it calls a function of Python."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function


def is_of_database(node: ast.AST) -> bool:
    """Whether it is the database, or a table of it: not a row, nor what a row has."""
    if isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id == "the database"


def is_of_table(node: ast.AST) -> bool:
    """Whether it is ``db.table[key]``, or ``db.table.get(key)``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        return isinstance(node.func.value, ast.Attribute) and is_of_database(node.func.value)
    return isinstance(node, ast.Subscript) and is_of_database(node.value)


def is_of_range(node: ast.AST) -> bool:
    """Whether it is ``db.table[lower:upper]``, or ``db.table[first, lower:upper]``."""
    if not isinstance(node, ast.Subscript) or not is_of_database(node.value):
        return False
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(isinstance(part, ast.Slice) for part in parts)


def is_of_rows(over: ast.expr) -> bool:
    """Whether a loop is over rows: of a table, or of a statement."""
    if is_of_range(over):
        return True
    called = over.func if isinstance(over, ast.Call) else over
    return isinstance(called, ast.Attribute) and root(called) == "the database"


class Renamed(ast.NodeTransformer):
    """Gives names others."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return at(ast.Name(self._names.get(node.id, node.id), node.ctx), node)


def is_call_of_row(node: ast.expr) -> bool:
    """Whether it is the row that a statement gives: ``db.sql(...).one()``."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "one"
        and isinstance(node.func.value, ast.Call)
        and is_of_database(node.func.value.func)
    )


class Shapes:
    """What a function's names hold, by what is assigned to them."""

    def __init__(self, lists: set[str], tree: ast.FunctionDef) -> None:
        #: Names that are rows, of a statement or of a table.
        self.rows = _rows_of(tree)
        self._shapes = dict.fromkeys(lists, LIST)
        self._names = 0
        before: dict[str, str] | None = None
        while before != self._shapes:
            before = dict(self._shapes)
            for node in ast.walk(tree):
                if isinstance(node, ast.Assign):
                    for one in node.targets:
                        self._note(one, node.value)
                elif isinstance(node, ast.AnnAssign) and node.value is not None:
                    self._note(node.target, node.value)

    def _note(self, one: ast.expr, value: ast.expr) -> None:
        if isinstance(one, ast.Name) and self.of(value) != ONE:
            self._shapes[one.id] = self.of(value)
        if isinstance(one, (ast.Tuple, ast.List)) and isinstance(value, Called) and value.gives == len(one.elts):
            lists = [one.elts[place] for place in value.gives_lists]
            self._shapes.update((target.id, LIST) for target in lists if isinstance(target, ast.Name))
        elif isinstance(one, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
            for target, part in zip(one.elts, value.elts):
                self._note(target, part)

    def of(self, node: ast.expr) -> str:
        """What an expression gives."""
        if isinstance(node, ast.Name):
            return self._shapes.get(node.id, ONE)
        if isinstance(node, (ast.List, ast.ListComp)):
            return LIST
        if isinstance(node, (ast.Dict, ast.DictComp)):
            return DICT
        if isinstance(node, (ast.Set, ast.SetComp)):
            return SET
        if isinstance(node, Called):
            return LIST if node.gives == 1 and node.gives_lists else ONE
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                return {"list": LIST, "sorted": LIST, "dict": DICT, "set": SET}.get(node.func.id, ONE)
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("copy", "keys", "values"):
                shape = self.of(node.func.value)
                return shape if node.func.attr == "copy" or shape == ONE else LIST
            if isinstance(node.func, ast.Attribute) and node.func.attr == "split":
                return LIST
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return self.of(node.value)
        if isinstance(node, ast.BinOp):
            return self.of(node.left)
        return ONE

    def hold(self, name: str, shape: str) -> None:
        """From here on, a name holds this."""
        self._shapes[name] = shape

    def new(self, what: str) -> str:
        """A name that no function can write."""
        self._names += 1
        return f"{what} {self._names}"


def _rows_of(tree: ast.AST) -> set[str]:
    targets: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and (is_call_of_row(node.value) or is_of_table(node.value)):
            targets += node.targets
        elif isinstance(node, (ast.For, ast.comprehension)) and is_of_rows(node.iter):
            targets.append(node.target)
    return {target.id for target in targets if isinstance(target, ast.Name)}
