"""What a function does, as it is sent to the database."""

from __future__ import annotations

import ast
import builtins
import copy
import decimal
import inspect
import sys
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from .captures import Capture, Captures, names_outside
from .kernel import json_of
from .moments import is_in_utc
from .names import OWN, Shapes, copied
from .program import Assigned, Compiled
from .records import records_of
from .refusal import Refused
from .statements import Desugaring
from .tuples import with_named_tuples

if TYPE_CHECKING:
    from ..database import Database

__all__ = ["Body", "own_names"]

#: Functions of Python that programs have.
_BUILTINS = frozenset(
    "abs all any bool dict enumerate float int len list max min print range reversed round set sorted str sum "
    "zip".split()
)

#: Functions of Python whose names mean that only where they are called.
_CALLED = frozenset(("divmod", "format", "pow", "repr"))


class Body:
    """What a function does, as it is sent."""

    def __init__(
        self,
        function: Callable[..., Any],
        tree: ast.FunctionDef,
        source: str,
        database: Database,
        program: Compiled,
    ) -> None:
        self._function, self._tree, self._source = function, tree, source
        self._database, self._program = database, program

    def json(self) -> dict[str, Any]:
        """The body as JSON.

        Raises ``Refused`` for what a program cannot do.
        """
        import fabius

        tree, program = self._tree, self._program
        parameters = set(program.signature.parameters)
        self._take_globals()
        own, stored = own_names(tree, program)
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        self._refuse_taken(names | own, own)
        known = {"the database": self._database, "the package": fabius}
        lists = {name for name, kind in zip(program.signature.parameters, program.kinds) if kind.is_list}
        assigned_first = {name for name in lists & stored if _is_first_assigned(tree.body, name)}
        captures = Captures(self._function, own, program.assigned, self._program_of, known)
        as_read = copy.deepcopy(tree.body)
        statements = captures.block(tree.body)
        if captures.missing:
            # It is read again with what it has learned of the functions that are called.
            self._give_back_of_called(captures.missing.values())
            tree.body = as_read
            own, stored = own_names(tree, program)
            captures = Captures(self._function, own, program.assigned, self._program_of, known)
            statements = captures.block(tree.body)
        program.captures = [*program.captures, *captures.found.values()]
        program.raises = captures.raises
        program.calls, program.taken = captures.calls, captures.taken
        moments = {name for name, kind in zip(program.signature.parameters, program.kinds) if kind.of is datetime}
        moments |= {capture.name for capture in program.captures if capture.kind is datetime}
        if is_in_utc(statements, moments) or any(one.is_in_utc for one, _ in captures.calls.values()):
            program.look_at_moments()
        tree.body = statements
        statements = with_named_tuples(tree)
        statements, renamed = _own_lists(statements, lists & stored)
        tree.body = statements
        kept = (lists - stored) | set(renamed.values())
        mutable = {own for name, own in renamed.items() if name in assigned_first}
        shapes, records = Shapes(lists | kept, tree), records_of(tree)
        desugaring = Desugaring(shapes, (parameters | kept) - mutable, records, program)
        tree.body = desugaring.block(statements)
        program.divides = desugaring.divides
        optional = [name for name, kind in zip(program.signature.parameters, program.kinds) if kind.is_optional]
        made = json_of(tree)
        # Decorators, annotations and defaults are none of what it does.
        said = {"class": made["class"], "at": made["at"], "body": made["body"]}
        return {
            # Who has read it, for whoever looks at it later.
            "interpreter": f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}",
            "flags": {"optimize": sys.flags.optimize},
            "source": self._source,
            "database": "the database",
            "package": "the package",
            "optional": optional,
            "spans": program.spans,
            "gives spans": [place for place, kind in enumerate(program.returns) if kind.of is timedelta],
            "given back": sorted(program.assigned),
            "tree": said,
        }

    def _refuse_taken(self, used: set[str], own: set[str]) -> None:
        """Refuses names of Python's functions that mean something else here."""
        outside = names_outside(self._function)
        calls = [node.func for node in ast.walk(self._tree) if isinstance(node, ast.Call)]
        called = {function.id for function in calls if isinstance(function, ast.Name)}
        for name in sorted(_BUILTINS & used | _CALLED & called):
            if name in own or (name in outside and outside[name] is not getattr(builtins, name)):
                raise Refused(self._tree, f"{name!r}, which is not Python's own here", "give it another name")

    def _take_globals(self) -> None:
        """Globals that are assigned come in as arguments, and go back when the call has committed."""
        outside = names_outside(self._function)
        places = [node for node in ast.walk(self._tree) if isinstance(node, (ast.Global, ast.Nonlocal))]
        names = {name: place for place in places for name in place.names}
        for name, place in sorted(names.items()):
            kind = type(outside.get(name))
            if kind not in (bool, int, str, decimal.Decimal):
                what = f"global {name}, which is no bool, int, str or Decimal now"
                raise Refused(place, what, "give it a value before the function is defined")
            if name in _names_within(self._tree):
                what = f"a variable within an expression that is called {name}, as what is assigned outside"
                raise Refused(place, what, "give the one in the comprehension, or behind lambda, another name")
            self._give_back(name, Assigned(kind, name, self._function))

    def _give_back(self, own: str, one: Assigned) -> None:
        """A global that is assigned is a variable of its own."""
        self._program.assigned[own] = one
        self._program.captures.append(Capture(own, one.name, one.kind, one.function))

    def _give_back_of_called(self, others: Iterable[Assigned]) -> None:
        """Globals that called functions assign are as if they were assigned here."""
        _, stored = own_names(self._tree, self._program)
        taken = stored | {*self._program.signature.parameters} | _names_within(self._tree)
        own = inspect.unwrap(self._function)
        for one in others:
            if not one.is_global:
                what = f"a call of a function that assigns {one.name}, which is of another function"
                raise Refused(self._tree, what, "return what it assigns")
            module = inspect.unwrap(one.function).__globals__
            is_here = module is own.__globals__ and one.name not in taken
            # No name of the function's own is called so.
            self._give_back(one.name if is_here else f"{one.name}@{len(self._program.assigned) + 1}", one)

    def _program_of(self, called: Any) -> Compiled:
        """The program of a function that is called."""
        from ..transactions import Transaction

        if isinstance(called, Transaction):
            if called.database is not self._database:
                raise Refused(self._tree, f"a call of {called!r}, of another database", "call it outside")
            program = called.program()
        else:
            program = self._database._transaction(called).program()
        return program


def own_names(tree: ast.FunctionDef, program: Compiled) -> tuple[set[str], set[str]]:
    """Names that are the function's own, and those of them that it assigns."""
    comprehended = _targets_of_comprehensions(tree)
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    stored = {node.id for node in names if isinstance(node.ctx, ast.Store) and node not in comprehended}
    stored |= {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name}
    return stored | set(program.signature.parameters) | set(program.assigned), stored


def _targets_of_comprehensions(tree: ast.AST) -> set[ast.Name]:
    """The names that comprehensions give their elements."""
    targets = [node.target for node in ast.walk(tree) if isinstance(node, ast.comprehension)]
    return {name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def _names_within(tree: ast.AST) -> set[str]:
    """Names that are there within an expression only: of comprehensions and of functions without a name."""
    parameters = [node.args for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    names = {one.arg for node in parameters for one in ast.walk(node) if isinstance(one, ast.arg)}
    return names | {name.id for name in _targets_of_comprehensions(tree)}


def _own_lists(statements: list[ast.stmt], names: set[str]) -> tuple[list[ast.stmt], dict[str, str]]:
    """Gives lists that are parameters, and are assigned, names of their own; what the caller has stays as it is."""
    renamed = {name: name + OWN for name in sorted(names)}
    begin: list[ast.stmt] = []
    for name, own in renamed.items():
        place = statements[0]
        begin.append(
            ast.copy_location(
                ast.Assign([ast.copy_location(ast.Name(own, ast.Store()), place)], copied(name, place)), place
            )
        )
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id in renamed:
                node.id = renamed[node.id]
    return [*begin, *statements], renamed


def _is_first_assigned(statements: list[ast.stmt], name: str) -> bool:
    """Whether the first statement that has a name assigns it."""
    for statement in statements:
        if any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(statement)):
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            return any(isinstance(target, ast.Name) and target.id == name for target in targets)
    return False
