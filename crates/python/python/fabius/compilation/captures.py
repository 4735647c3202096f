"""What a compiled function takes from outside itself: it is computed when a call is made, and goes with the call.

Globals of simple classes, moments (``datetime.now``), chance (``random``), identifiers (``uuid4``), and values that are
made of what is known before the call (``timedelta(days=3)``) become arguments that callers do not see (Calvin, section
4.1). So the call means the same whenever it is replayed. Calls of other functions become calls of their programs.
"""

from __future__ import annotations

import ast
import builtins
import datetime
import decimal
import enum
import inspect
import logging
import random
import sysconfig
import time
import types
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import Error, ProgrammingError
from ..parameters import braced
from .handlers import refuse_uncatchable, refuse_values
from .kernel import BETWEEN, LOGGED, PRINTED, WRITTEN, Called, Said
from .kinds import Kind
from .moments import MOMENTS, of_parts, replaced, span
from .names import at
from .records import is_record, made
from .refusal import Refused

__all__ = ["Capture", "Captures", "OPENED", "SCALARS", "names_outside", "place_of"]

#: Classes whose values can be columns'.
SCALARS: tuple[type, ...] = (
    bool,
    int,
    float,
    decimal.Decimal,
    str,
    bytes,
    uuid.UUID,
    datetime.datetime,
    datetime.date,
    datetime.time,
    datetime.timedelta,
)

#: What gives another value each time, by what it gives.
_FRESH: dict[Any, type] = {
    time.time: float,
    time.time_ns: int,
    datetime.datetime.now: datetime.datetime,
    datetime.date.today: datetime.date,
    random.random: float,
    random.randint: int,
    random.randrange: int,
    random.getrandbits: int,
    random.uniform: float,
    uuid.uuid4: uuid.UUID,
    uuid.uuid1: uuid.UUID,
}

#: What makes values of others, and of nothing else.
_PURE: tuple[Any, ...] = (
    decimal.Decimal,
    datetime.date,
    datetime.datetime,
    datetime.datetime.combine,
    datetime.datetime.fromtimestamp,
    datetime.datetime.fromisoformat,
    datetime.date.fromisoformat,
    datetime.time,
    datetime.time.fromisoformat,
    uuid.UUID,
)

#: What opens a file, by the name that it has in :attr:`Captures.taken`.
OPENED = "open a file"

_LEVELS = ("debug", "info", "warning", "error", "critical")


class Capture:
    """A value that is computed when a call is made."""

    def __init__(self, name: str, text: str, kind: type, function: Callable[..., Any]) -> None:
        #: The hidden parameter.
        self.name = name
        self.text = text
        self.kind = kind
        self._function = function
        self._code = compile(text, "<captured>", "eval")

    def renamed(self, name: str) -> Capture:
        """The same under another name, for a function that calls the one whose it is."""
        return Capture(name, self.text, self.kind, self._function)

    @property
    def place(self) -> tuple[int, str]:
        """The global that it is, if it is one."""
        return place_of(self._function, self.text)

    @property
    def names(self) -> set[str]:
        """Names that it is made of."""
        return set(self._code.co_names)

    def value(self) -> Any:
        """The value for a call.

        Raises ``TypeError`` if it is of another class than when the function was defined.
        """
        value = eval(self._code, names_outside(self._function))
        if type(value) is not self.kind:
            raise TypeError(
                f"{self.text} was of class {self.kind.__name__} when {self._function.__qualname__} was compiled, "
                f"and is {type(value).__name__} now"
            )
        return value


def names_outside(function: Callable[..., Any]) -> dict[str, Any]:
    """What a function's names mean that are not its own."""
    function = inspect.unwrap(function)
    seen = dict(function.__globals__)
    cells = zip(function.__code__.co_freevars, function.__closure__ or ())
    for name, cell in cells:
        try:
            seen[name] = cell.cell_contents
        except ValueError:
            # It has no value yet.
            seen.pop(name, None)
    return seen


def place_of(function: Callable[..., Any], name: str) -> tuple[int, str]:
    """What is the same for all functions whose global, or name around them, is the same."""
    function = inspect.unwrap(function)
    around = function.__code__.co_freevars
    cells = function.__closure__ or ()
    return id(cells[around.index(name)] if name in around else function.__globals__), name


class Captures(ast.NodeTransformer):
    """Replaces what comes from outside by parameters, calls of functions by calls of programs, and printing by what
    callers are told."""

    def __init__(
        self,
        function: Callable[..., Any],
        own: set[str],
        assigned: Mapping[str, Any],
        program_of: Callable[[Any], Any],
        known: Mapping[str, Any],
    ) -> None:
        self._function = function
        self._outside = names_outside(function)
        self._own = own
        #: Globals that are assigned: the variables that they are here.
        self._assigned = {one.place: name for name, one in assigned.items()}
        #: Globals that functions assign that are called, if they are not known to be assigned here.
        self.missing: dict[tuple[int, str], Any] = {}
        self._program_of = program_of
        self._known = known
        self._loops = 0
        self._fresh = 0
        self.found: dict[str, Capture] = {}
        #: Classes of exceptions that are raised, by how they are written.
        self.raises: dict[str, type[BaseException]] = {}
        #: Files that are open, by their names; the variables that have their paths.
        self._files: dict[str, ast.Name] = {}
        #: What the parts of the source mean that come from outside, by the numbers of their nodes: the names of
        #: captures, of `calls`, and of what opens files.
        self.taken: dict[int, str] = {}
        #: Calls of programs: which, and the names of what they captured.
        self.calls: dict[str, tuple[Any, list[str | None]]] = {}

    def _meant(self, node: ast.expr, beyond: bool = False) -> tuple[bool, Any]:
        """What a chain of names means outside of the function, if it means something there; ``beyond`` the database
        and this package only if asked."""
        if isinstance(node, ast.Name):
            if node.id in self._own:
                return False, None
            if node.id in self._outside:
                return True, self._outside[node.id]
            return hasattr(builtins, node.id), getattr(builtins, node.id, None)
        if isinstance(node, ast.Attribute):
            found, value = self._meant(node.value, beyond)
            if found and (beyond or not self._is_ours(value)):
                try:
                    return True, getattr(value, node.attr)
                except Exception:
                    return False, None
        return False, None

    def _is_ours(self, value: Any) -> bool:
        """Whether it is the database or this package, which the database knows itself."""
        return any(value is known for known in self._known.values())

    def _ours(self, node: ast.expr) -> ast.expr | None:
        """The database, this package or a part of it, as the database knows it."""
        found, value = self._meant(node)
        if not found:
            return None
        for name, known in self._known.items():
            if value is known:
                return at(ast.Name(name, ast.Load()), node)
        if (getattr(value, "__module__", None) or "").partition(".")[0] == "fabius" and hasattr(value, "__name__"):
            package = at(ast.Name("the package", ast.Load()), node)
            return at(ast.Attribute(package, value.__name__, ast.Load()), node)
        return None

    def _captured(self, node: ast.expr, kind: type, name: str | None = None) -> ast.Name:
        text = ast.unparse(node)
        name = name or text
        if name not in self.found:
            self.found[name] = Capture(name, text, kind, self._function)
        self._take(node, name)
        return at(ast.Name(name, ast.Load()), node)

    def _take(self, node: ast.expr, name: str) -> None:
        number = getattr(node, "number", None)
        # What stands for others in the source has none.
        if number is not None:
            self.taken[number] = name

    def _is_closed(self, node: ast.AST) -> bool:
        """Whether a value is made of constants and of names from outside."""
        names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
        if not all(self._meant(name)[0] for name in names):
            return False
        made = (ast.Lambda, ast.NamedExpr, ast.comprehension, ast.Await)
        # Nothing else is called here: it would be before the transaction, and outside of it.
        called = [self._meant(part.func)[1] for part in ast.walk(node) if isinstance(part, ast.Call)]
        return all(any(one == known for known in (*_PURE, *_FRESH)) for one in called) and not any(
            isinstance(part, made) for part in ast.walk(node)
        )

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Statements that take nothing from outside but parameters.

        Raises ``Refused`` for what cannot be captured.
        """
        return [made for statement in statements for made in _several(self.visit(statement))]

    def visit_Global(self, node: ast.stmt) -> ast.stmt:
        return at(ast.Pass(), node)

    visit_Nonlocal = visit_Global

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if not isinstance(node.ctx, ast.Load):
            return node
        if node.id in self._files:
            raise Refused(node, "a file as a value", "write texts to it: file.write(text), or print(text, file=file)")
        found, value = self._meant(node)
        if found and type(value) is int and not -(2**63) <= value < 2**63:
            raise Refused(node, f"{node.id}, an int of more than 64 bits", "use Decimal")
        if found and type(value) in SCALARS:
            return self._captured(node, type(value))
        if found and isinstance(value, (dict, list, tuple, set, type(None))):
            what = f"{node.id}, a {type(value).__name__} from outside the function"
            raise Refused(node, what, "write it in the function, or pass what is needed of it as an argument")
        return self._ours(node) or node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.ctx, ast.Load):
            found, value = self._meant(node)
            module = self._meant(node.value)[1] if found else None
            if isinstance(module, types.ModuleType) and (id(vars(module)), node.attr) in self._assigned:
                return at(ast.Name(self._assigned[id(vars(module)), node.attr], ast.Load()), node)
            if found and type(value) in SCALARS:
                return self._captured(node, type(value))
            if found and isinstance(value, enum.Enum):
                raise Refused(node, "a member of an enumeration", f"write {ast.unparse(node)}.value")
        return self._ours(node) or self.generic_visit(node)  # type: ignore[return-value]

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        if isinstance(node.exc, ast.Name) and node.exc.id in self._own:
            # An exception that is caught.
            return node
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        # What it comes from is not kept.
        node.cause = None
        if raised is not None:
            found, kind = self._meant(raised, beyond=True)
            if found and isinstance(kind, type) and issubclass(kind, BaseException):
                name = f"{kind.__module__}.{kind.__qualname__}"
                if any(isinstance(getattr(kind, own), types.FunctionType) for own in ("__init__", "__str__")):
                    if not issubclass(kind, Error):
                        what = f"a {kind.__name__}, which is made by code of its own"
                        raise Refused(node, what, "use an exception whose text is its argument")
                self._know_exceptions({name: kind}, node)
                node.kind = name  # type: ignore[attr-defined]
            else:
                raise Refused(node, "raise of anything but a class of exceptions", 'write raise ValueError("...")')
            if isinstance(node.exc, ast.Call):
                node.exc.args = [self.visit(argument) for argument in node.exc.args]
        return node

    def visit_Try(self, node: ast.Try) -> ast.stmt:
        if node.finalbody:
            raise Refused(node.finalbody[0], "finally", "write it behind the try, and in its handlers")
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        for handler in node.handlers:
            if handler.type is None:
                raise Refused(handler, "except without a class", "name what is caught: except ValueError")
            named = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            kinds = [self._meant(one, beyond=True)[1] for one in named]
            for kind, one in zip(kinds, named):
                refuse_uncatchable(kind, one)
            refuse_values(handler)
            handler.kinds = tuple(kinds)  # type: ignore[attr-defined]
            handler.body = self.block(handler.body)
        return node

    def _know_exceptions(self, kinds: Mapping[str, type[BaseException]], node: ast.AST) -> None:
        for name, kind in kinds.items():
            if self.raises.setdefault(name, kind) is not kind:
                raise Refused(node, f"two exceptions of the name {name}", "give one of them another name")

    def visit_For(self, node: ast.For) -> ast.stmt:
        node.iter = self.visit(node.iter)
        self._loops += 1
        node.target = self.visit(node.target)
        node.body = self.block(node.body)
        self._loops -= 1
        node.orelse = self.block(node.orelse)
        return node

    def visit_While(self, node: ast.While) -> ast.stmt:
        self._loops += 1
        self.generic_visit(node)
        self._loops -= 1
        return node

    def visit_ListComp(self, node: Any) -> Any:
        targets = [name for generator in node.generators for name in ast.walk(generator.target)]
        before, self._loops = self._own, self._loops + 1
        # Its variables are its own.
        self._own = before | {name.id for name in targets if isinstance(name, ast.Name)}
        self.generic_visit(node)
        self._own, self._loops = before, self._loops - 1
        return node

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_With(self, node: ast.With) -> Any:
        """Files that are written: what comes to be in them is there once the call has committed."""
        before: list[ast.stmt] = []
        around = dict(self._files)
        for item in node.items:
            called = item.context_expr
            is_open = isinstance(called, ast.Call) and self._meant(called.func) == (True, open)
            if not is_open or not isinstance(item.optional_vars, ast.Name):
                raise Refused(node, "with", 'write files by `with open(path, "a") as file:`, and do the rest outside')
            before.extend(self._opened(called, item.optional_vars))  # type: ignore[arg-type]
        body = self.block(node.body)
        self._files = around
        return [*before, *body]

    def _opened(self, call: ast.Call, name: ast.Name) -> list[ast.stmt]:
        """``with open(path, mode) as name:``"""
        options = {str(keyword.arg): keyword.value for keyword in call.keywords}
        modes = [*call.args[1:], *(options.pop(one) for one in ("mode",) if one in options)]
        mode = modes[0].value if len(modes) == 1 and isinstance(modes[0], ast.Constant) else None
        if mode not in ("a", "w") or options or not call.args:
            instead = "files are written, by open(path, 'a') or open(path, 'w'); read them before the call"
            raise Refused(call, "a file that is opened so", instead)
        self._take(call.func, OPENED)
        path = at(ast.Name(f"{name.id} path", ast.Load()), name)
        target = at(ast.Name(path.id, ast.Store()), name)
        self._files[name.id] = path
        made: list[ast.stmt] = [at(ast.Assign([target], self.visit(call.args[0])), call)]
        if mode == "w":
            made.append(self._written("w", path, [], call))
        return made

    def _written(self, mode: str, path: ast.Name, parts: list[ast.expr], place: ast.AST) -> ast.stmt:
        head: list[ast.expr] = [
            ast.Constant(f"{mode}{BETWEEN}"),
            _shown(at(ast.Name(path.id, ast.Load()), place), place),
            ast.Constant(BETWEEN),
        ]
        text = at(ast.JoinedStr([at(part, place) for part in head] + parts), place)
        return at(Said(state=WRITTEN, value=text), place)

    def _file_of(self, node: ast.expr | None) -> ast.Name | None:
        return self._files.get(node.id) if isinstance(node, ast.Name) else None

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> ast.stmt:
        raise Refused(node, f"{node.name}, which is defined in it", "define it outside of the transaction")

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        before, self._loops = self._own, self._loops + 1
        self._own = before | {argument.arg for argument in node.args.args}
        self.generic_visit(node)
        self._own, self._loops = before, self._loops - 1
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Call):
            function = node.value.func
            path = self._file_of(function.value) if isinstance(function, ast.Attribute) else None
            if isinstance(function, ast.Attribute) and path is not None:
                if function.attr != "write" or len(node.value.args) != 1 or node.value.keywords:
                    raise Refused(node, f"{ast.unparse(function)} of a file", "write texts to it: file.write(text)")
                # What is no text cannot be added to one.
                text = at(ast.BinOp(self.visit(node.value.args[0]), ast.Add(), at(ast.Constant(""), node)), node)
                return self._written("a", path, [_shown(text, node)], node)
            found, called = self._meant(function)
            if found and called is print:
                return self._printed(node.value)
            if found and _is_logging(called):
                return self._logged(node.value, called)
        return self.generic_visit(node)

    def _with_variables(self, node: ast.Call) -> ast.Call:
        """``db.sql("... {name}")`` as ``db.sql("... {name}", name=name)``."""
        try:
            names = braced(node.args[0].value)[1]  # type: ignore[attr-defined]
        except ProgrammingError:
            return node
        given = {keyword.arg for keyword in node.keywords}
        missing = [name for name in names if name not in given and (name in self._own or name in self._outside)]
        variables = [at(ast.keyword(name, at(ast.Name(name, ast.Load()), node)), node) for name in missing]
        return at(ast.Call(node.func, node.args, [*node.keywords, *variables]), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        table = self._named_table(node)
        if table is not None:
            return table
        if isinstance(node.func, ast.Attribute) and node.func.attr == "sql" and self._ours(node.func.value) is not None:
            if len(node.args) == 1 and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
                node = self._with_variables(node)
        if _is_execute_sql(self._meant(node.func, beyond=True)[1]):
            database = at(ast.Name("the database", ast.Load()), node.func)
            node.func = at(ast.Attribute(database, "execute", ast.Load()), node.func)
        found, called = self._meant(node.func)
        if isinstance(node.func, ast.Attribute) and isinstance(getattr(called, "__self__", None), SCALARS):
            # A method of a value is none of what is outside, wherever the value comes from.
            found, called = False, None
        if not found and isinstance(node.func, ast.Attribute) and node.func.attr == "quantize":
            return self._quantized(node, node.func)
        zoned = None if found else self._zoned(node)
        if zoned is not None:
            return zoned
        if not found and isinstance(node.func, ast.Attribute) and node.func.attr == "replace" and not node.args:
            return self.generic_visit(replaced(node, node.func))  # type: ignore[return-value]
        if not found:
            if isinstance(node.func, ast.Name) and node.func.id not in self._own:
                instead = "define it before, or import it"
                raise Refused(node.func, f"{node.func.id}, which is not defined here", instead)
            return self.generic_visit(node)  # type: ignore[return-value]
        if called is datetime.timedelta:
            return self._span(node)
        fresh = next((kind for function, kind in _FRESH.items() if called == function), None)
        if fresh is not None:
            if called == datetime.datetime.now and not node.args and not node.keywords:
                raise Refused(node, "a moment without a time zone", "write datetime.now(timezone.utc)")
            return self._freshly(node, fresh)
        if any(called == function for function in _PURE):
            if self._is_closed(node):
                try:
                    kind = type(eval(ast.unparse(node), dict(self._outside)))
                except Exception as error:
                    raise Refused(node, f"a value that cannot be made ({error})", "write one that can") from None
                if kind in SCALARS:
                    return self._captured(node, kind)
            if called in MOMENTS or called == datetime.datetime.combine:
                return self._moment(node, called)
            if called is decimal.Decimal:
                node.func = at(ast.Name("Decimal", ast.Load()), node.func)
            return self.generic_visit(node)  # type: ignore[return-value]
        if is_record(called):
            self.generic_visit(node)
            return made(node, called)
        if called is print or _is_logging(called):
            raise Refused(node, f"{ast.unparse(node.func)} within an expression", "call it in a line of its own")
        if isinstance(node.func, ast.Name) and node.func.id in ("Decimal", "timedelta"):
            raise Refused(node, "a call of this", f"give what is called {node.func.id} another name")
        if self._ours(node.func) or not _is_function(called):
            return self.generic_visit(node)  # type: ignore[return-value]
        if _is_of_library(called):
            name = f"{called.__module__}.{called.__qualname__}"
            instead = 'call it before, and pass what it gives as an argument; or side="client"'
            raise Refused(node, f"a call of {name}, which is no function of your own", instead)
        try:
            program = self._program_of(called)
        except Refused as refused:
            raise Refused(node, refused.what, refused.instead) from None
        return self._called(node, program)

    def _quantized(self, node: ast.Call, function: ast.Attribute) -> ast.expr:
        """``x.quantize(Decimal("0.01"))``, by its digits behind the point and how it rounds."""
        given = dict(zip(("exp", "rounding"), node.args)) | {str(one.arg): one.value for one in node.keywords}
        unit = given.get("exp")
        rounding: Any = decimal.ROUND_HALF_EVEN
        if "rounding" in given:
            rounding = self._meant(given["rounding"])[1]
            if isinstance(given["rounding"], ast.Constant):
                rounding = given["rounding"].value
        is_literal = (
            isinstance(unit, ast.Call)
            and self._meant(unit.func)[1] is decimal.Decimal
            and all(isinstance(argument, ast.Constant) for argument in unit.args)
        )
        if not is_literal or unit is None or given.keys() - {"exp", "rounding"} or not isinstance(rounding, str):
            raise Refused(node, "quantize to what is no literal", 'write x.quantize(Decimal("0.01"))')
        try:
            exponent = eval(ast.unparse(unit), dict(self._outside)).as_tuple().exponent
        except Exception as error:
            raise Refused(node, f"a value that cannot be made ({error})", "write one that can") from None
        if not isinstance(exponent, int) or not -10 <= exponent <= 0:
            raise Refused(node, "quantize to other than 0 to 10 digits", 'write x.quantize(Decimal("0.01"))')
        digits: list[ast.expr] = [at(ast.Constant(-exponent), node), at(ast.Constant(rounding), node)]
        owner = at(ast.Attribute(self.visit(function.value), "quantize", ast.Load()), node)
        return at(ast.Call(owner, digits, []), node)

    def _zoned(self, node: ast.Call) -> ast.expr | None:
        """``x.replace(tzinfo=timezone.utc)``, ``x.replace(tzinfo=None)``, ``x.astimezone(timezone.utc)``."""
        if not isinstance(node.func, ast.Attribute):
            return None
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
        form = (node.func.attr, len(node.args), [keyword.arg for keyword in node.keywords])
        if form not in (("replace", 0, ["tzinfo"]), ("astimezone", 1, []), ("astimezone", 0, ["tz"])):
            return None
        is_none = isinstance(values[0], ast.Constant) and values[0].value is None
        is_utc = self._meant(values[0])[1] is datetime.timezone.utc
        if not is_utc and not (is_none and node.func.attr == "replace"):
            raise Refused(node, "a time zone other than UTC", "write x.astimezone(timezone.utc)")
        name = "astimezone(utc)" if node.func.attr == "astimezone" else f"replace(tzinfo={'utc' if is_utc else 'None'})"
        owner = at(ast.Attribute(self.visit(node.func.value), name, ast.Load()), node)
        return at(ast.Call(owner, [], []), node)

    def _moment(self, node: ast.Call, called: Any) -> ast.expr:
        """``datetime(year, month, ...)`` and its like, of what is computed in the transaction."""
        zones = [keyword.value for keyword in node.keywords if keyword.arg == "tzinfo"]
        zone = zones[0] if zones else ast.Constant(None)
        is_none = isinstance(zone, ast.Constant) and zone.value is None
        if not is_none and self._meant(zone)[1] is not datetime.timezone.utc:
            raise Refused(zone, "a time zone other than UTC", "write tzinfo=timezone.utc")
        made: ast.expr = self.generic_visit(of_parts(node, called))  # type: ignore[assignment]
        if is_none:
            return made
        return at(ast.Call(at(ast.Attribute(made, "replace(tzinfo=utc)", ast.Load()), node), [], []), node)

    def _span(self, node: ast.Call) -> ast.expr:
        """``timedelta(...)``"""
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        value: datetime.timedelta | None = None
        if all(_is_literal(part) for part in given):
            try:
                value = eval(ast.unparse(node), dict(self._outside))
            except Exception as error:
                raise Refused(node, f"a value that cannot be made ({error})", "write one that can") from None
        self.generic_visit(node)
        return span(node, value)

    def _named_table(self, node: ast.Call) -> ast.expr | None:
        """``db.table("shop.stock")``"""
        if not (isinstance(node.func, ast.Attribute) and node.func.attr == "table" and len(node.args) == 1):
            return None
        database, name = self._ours(node.func.value), node.args[0]
        if database is None or not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
            return None
        return at(ast.Attribute(database, name.value, ast.Load()), node)

    def _freshly(self, node: ast.Call, kind: type) -> ast.expr:
        text = ast.unparse(node)
        if self._loops:
            instead = "take it before the loop: its value is captured once, when the call is made"
            raise Refused(node, f"{text} in a loop", instead)
        if not self._is_closed(node):
            instead = "give it arguments that are known before the call, or pass its value as an argument"
            raise Refused(node, f"{text}, whose arguments are computed", instead)
        self._fresh += 1
        return self._captured(node, kind, f"{text} #{self._fresh}")

    def _called(self, node: ast.Call, program: Any) -> ast.expr:
        """The call of another compiled function, with its arguments in its order."""
        # They are computed in the order in which they are written.
        positional = [self.visit(argument) for argument in node.args]
        named = {str(keyword.arg): self.visit(keyword.value) for keyword in node.keywords}
        try:
            arguments: dict[str, Any] = dict(program.signature.bind(*positional, **named).arguments)
        except TypeError as error:
            raise Refused(node, f"this call of {ast.unparse(node.func)}: {error}", "call it as it is defined") from None
        written = [*positional, *named.values()]
        for name, parameter in program.signature.parameters.items():
            if name not in arguments:
                default = parameter.default
                if default is not None and type(default) not in (bool, int, float, str):
                    raise Refused(node, f"a call without {name}, whose default is no literal", "give it")
                arguments[name] = at(ast.Constant(default), node)
                written.append(arguments[name])
        ordered = [arguments[name] for name in program.signature.parameters]
        captured_as: list[str | None] = []
        for capture in program.captures:
            if "#" in capture.name and self._loops:
                instead = "give it the value as an argument"
                raise Refused(node, f"a call in a loop of what captures {capture.text}", instead)
            shared = self._shared(program, capture)
            if shared is not None:
                captured_as.append(None)
                ordered.append(at(ast.Name(shared, ast.Load()), node))
                written.append(ordered[-1])
                continue
            if not capture.text.isidentifier() and capture.names & {name for _, name in self._assigned}:
                instead = "pass its value as an argument"
                raise Refused(node, f"a call of what reads {capture.text}, which is assigned here", instead)
            self._fresh += 1
            name = f"{program.name} {capture.name} #{self._fresh}"
            self.found[name] = capture.renamed(name)
            captured_as.append(name)
            ordered.append(at(ast.Name(name, ast.Load()), node))
            written.append(ordered[-1])
        call = f"{program.name} #{len(self.calls)}"
        self.calls[call] = program, captured_as
        self._take(node.func, call)
        self._know_exceptions(program.raises, node)
        optional = [place for place, kind in enumerate(program.kinds) if kind.is_optional]
        captured = [Kind(capture.kind) for capture in program.captures]
        kinds = [*program.kinds, *captured]
        gives = program.returns
        called = at(
            Called(
                function=program.name,
                args=ordered,
                order=[ordered.index(argument) for argument in written],
                optional=optional,
                spans=[place for place, kind in enumerate(kinds) if kind.of is datetime.timedelta],
                gives=len(gives),
                may_be_none=[place for place, kind in enumerate(gives) if kind.is_optional],
                gives_lists=[place for place, kind in enumerate(gives) if kind.is_list],
                gives_spans=[place for place, kind in enumerate(gives) if kind.of is datetime.timedelta],
            ),
            node,
        )
        called.record = program.record
        called.back = [self._assigned.get(program.assigned[name].place, name) for name in sorted(program.assigned)]
        return called

    def _shared(self, program: Any, capture: Capture) -> str | None:
        """The variable that has what a called function captures, if that is a global that is assigned."""
        place = capture.place
        if capture.name in program.assigned and place not in self._assigned:
            self.missing[place] = program.assigned[capture.name]
            return capture.name
        return self._assigned.get(place)

    def _printed(self, call: ast.Call) -> ast.stmt:
        """What is printed, as one text."""
        options = {str(keyword.arg): keyword.value for keyword in call.keywords}
        path = self._file_of(options.get("file"))
        other = set(options) - {"sep", "end", "flush"} - ({"file"} if path is not None else set())
        if other:
            raise Refused(
                call, f"print with {other.pop()}", "print to the standard output, or a file that is opened here"
            )
        parts: list[ast.expr] = []
        between, end = (self._option(options, name, usual) for name, usual in (("sep", " "), ("end", "\n")))
        for argument in call.args:
            if parts:
                parts.append(_shown(between, call))
            parts.append(_shown(self.visit(argument), call))
        parts.append(_shown(end, call))
        if path is not None:
            return self._written("a", path, parts, call)
        text = at(ast.JoinedStr(parts), call)
        return at(Said(state=PRINTED, value=text), call)

    def _option(self, options: Mapping[str, ast.expr], name: str, usual: str) -> ast.expr:
        given = options.get(name)
        if given is None or (isinstance(given, ast.Constant) and given.value is None):
            return ast.Constant(usual)
        made: ast.expr = self.visit(given)
        return made

    def _logged(self, call: ast.Call, called: Any) -> ast.stmt:
        if len(call.args) != 1 or call.keywords:
            raise Refused(call, "a log's entry of several arguments", 'write an f-string: log.info(f"...")')
        owner = getattr(called, "__self__", None)
        name = owner.name if isinstance(owner, logging.Logger) else ""
        head = at(ast.Constant(f"{called.__name__} {name}\n"), call)
        text = at(ast.JoinedStr([head, _shown(self.visit(call.args[0]), call)]), call)
        return at(Said(state=LOGGED, value=text), call)


def _is_literal(node: ast.expr) -> bool:
    """Whether it is a number that is written out."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _several(made: Any) -> list[ast.stmt]:
    return made if isinstance(made, list) else [] if made is None else [made]


def _shown(value: ast.expr, place: ast.AST) -> ast.expr:
    value = value if hasattr(value, "lineno") else at(value, place)
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value
    return at(ast.FormattedValue(value, -1, None), value)


def _is_logging(called: Any) -> bool:
    name = getattr(called, "__name__", "")
    owner = getattr(called, "__self__", None)
    return name in _LEVELS and (isinstance(owner, logging.Logger) or called is getattr(logging, name, None))


#: Where the functions are that come with Python, or were installed.
_LIBRARIES = tuple({path for name, path in sysconfig.get_paths().items() if name.endswith("lib") or name == "stdlib"})


def _is_of_library(called: Any) -> bool:
    """Whether it is a function of no program of the user's own."""
    return isinstance(called, types.FunctionType) and called.__code__.co_filename.startswith(_LIBRARIES)


def _is_function(called: Any) -> bool:
    from ..transactions import Transaction

    return isinstance(called, (types.FunctionType, Transaction))


def _is_execute_sql(called: Any) -> bool:
    from ..transactions import execute_sql

    return called is execute_sql
